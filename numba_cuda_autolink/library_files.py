# SPDX-License-Identifier: BSD-2-Clause
"""Whether the file of a shared library is whole. To load one that was truncated ends the process (SIGBUS)."""

import glob
import os
import struct

# Where the two tables of a 64-bit ELF file begin, and the size and number of the rows of each.
_TABLES = struct.Struct("<32xQQ6xHHHHxx")

_LIBRARIES = ("libnvrtc.", "libnvJitLink.", "libnvvm.")
_FOLDERS = {"12": ("cuda_nvrtc/lib", "nvjitlink/lib", "cuda_nvcc/nvvm/lib64")}


def is_library(name):
    """Return whether a file of this *name* is a shared library."""
    base = os.path.basename(name)
    return base.endswith(".so") or (".so." in base and base.rpartition(".so.")[2][0:1].isdigit())


def find_fault(path):
    """Return what is wrong with the shared library *path*: it is not an ELF file, or it ends before its tables do.
    Empty if neither is so. Raise `OSError` if it cannot be read."""
    with open(path, "rb") as file:
        header = file.read(_TABLES.size)
        size = os.fstat(file.fileno()).st_size
    if header[:4] != b"\x7fELF":
        return "is not a library" if size else "is empty"
    if len(header) < _TABLES.size:
        return f"is truncated: it has {size} bytes"
    if header[4:6] != b"\x02\x01":  # of 32 bits, or big-endian
        return ""
    programs, sections, program, program_count, section, section_count = _TABLES.unpack(header)
    end = max(programs + program * program_count, sections + section * section_count)
    return f"is truncated: it has {size} of {end} bytes" if size < end else ""


def find_damaged(cuda):
    """Return the path of a library that kernels are compiled or linked with and whose file has a fault, and what it is;
    ``None`` if there is none among NVIDIA's packages for that major version of *cuda*. Nothing is loaded."""
    from importlib.machinery import PathFinder

    packages = PathFinder.find_spec("nvidia")  # none if the libraries are those of a CUDA toolkit
    for root in (packages and packages.submodule_search_locations) or ():
        for folder in _FOLDERS.get(cuda, (f"cu{cuda}/lib",)):
            for path in glob.glob(f"{glob.escape(root)}/{folder}/lib*.so.*"):
                if os.path.basename(path).startswith(_LIBRARIES) and (fault := find_fault(path)):
                    return path, fault
    return None
