# SPDX-License-Identifier: BSD-2-Clause
"""Whether the file of a library, shared or of bitcode, is whole. To load one that was truncated ends the process."""

import glob
import os
import struct

# Where the two tables of a 64-bit ELF file begin, and the size and number of the rows of each.
_TABLES = struct.Struct("<32xQQ6xHHHHxx")

_BITCODE, _WRAPPED = b"BC\xc0\xde", b"\xde\xc0\x17\x0b"
# Of a block of LLVM bitcode: what it is, and the length of its content in words.
_BLOCK = struct.Struct("<II")

_LIBRARIES = ("libnvrtc.", "libnvJitLink.", "libnvvm.", "libdevice.")
_FOLDERS = {"12": ("cuda_nvrtc/lib", "nvjitlink/lib", "cuda_nvcc/nvvm/lib64", "cuda_nvcc/nvvm/libdevice")}


def is_library(name):
    """Return whether a file of this *name* is a shared library, or one of bitcode."""
    base = os.path.basename(name)
    return (
        base.endswith(".bc") or base.endswith(".so") or (".so." in base and base.rpartition(".so.")[2][0:1].isdigit())
    )


def find_fault(path):
    """Return what is wrong with the library *path*: it is neither an ELF file nor bitcode, as its name has it, or it
    ends before its tables or blocks do. Empty if none is so. Raise `OSError` if it cannot be read."""
    with open(path, "rb") as file:
        header = file.read(_TABLES.size)
        size = os.fstat(file.fileno()).st_size
        if path.endswith(".bc") and header[:4] in (_BITCODE, _WRAPPED):
            return _fault_of_blocks(file, size) if header[:4] == _BITCODE else ""
    if header[:4] != b"\x7fELF":
        return "is not a library" if size else "is empty"
    if len(header) < _TABLES.size:
        return f"is truncated: it has {size} bytes"
    if header[4:6] != b"\x02\x01":  # of 32 bits, or big-endian
        return ""
    programs, sections, program, program_count, section, section_count = _TABLES.unpack(header)
    return _truncated(size, max(programs + program * program_count, sections + section * section_count))


def _fault_of_blocks(file, size):
    end = 4
    while end == 4 or end < size:
        file.seek(end)
        if len(block := file.read(_BLOCK.size)) < _BLOCK.size:
            return _truncated(size, end + _BLOCK.size)
        end += _BLOCK.size + 4 * _BLOCK.unpack(block)[1]
    return _truncated(size, end)


def _truncated(size, end):
    return f"is truncated: it has {size} of {end} bytes" if size < end else ""


def find_damaged(cuda):
    """Return the path of a library that kernels are compiled or linked with and whose file has a fault, and what it is;
    ``None`` if there is none among NVIDIA's packages for that major version of *cuda*. Nothing is loaded."""
    from importlib.machinery import PathFinder

    packages = PathFinder.find_spec("nvidia")  # none if the libraries are those of a CUDA toolkit
    for root in (packages and packages.submodule_search_locations) or ():
        for folder in _FOLDERS.get(cuda, (f"cu{cuda}/lib", f"cu{cuda}/nvvm/libdevice")):
            for path in glob.glob(f"{glob.escape(root)}/{folder}/lib*"):
                name = os.path.basename(path)
                if name.startswith(_LIBRARIES) and is_library(name) and (fault := find_fault(path)):
                    return path, fault
    return None
