# SPDX-License-Identifier: BSD-2-Clause
"""The structure of linkable code: what is truncated, damaged or of another kind, as far as headers and tables show it.

nvJitLink accepts, misreports or crashes on some of it. Damage within machine code or LTO-IR shows only in a link: see
`link.checked_link`.
"""

from __future__ import annotations

import hashlib

from numba_cuda_autolink.errors import FormatError

from ..diagnostics.signal_handlers import raised_by_signal_handler

# The readers of each format are imported where they are needed: a kernel's own code needs one of them.

_MOST_REMEMBERED = 1024
_known: dict[bytes, str] = {}


def structural_fault(kind: str, code: bytes) -> str:
    """Return what is wrong with the structure of *code* of *kind* (the name of a `Kind`), ``""`` if nothing is.

    The answer is remembered by content: asking again costs a hash.
    """
    key = hashlib.sha256(kind.encode() + b"\0" + code).digest()
    fault = _known.get(key)
    if fault is None:
        if len(_known) >= _MOST_REMEMBERED:
            _known.clear()
        fault = _known[key] = _fault(kind, code)
    return fault


def _fault(kind: str, code: bytes) -> str:
    try:
        match kind:
            case "PTX":
                from numba_cuda_autolink.ptx import read_ptx

                read_ptx(code)
            case "LTO-IR":
                from .containers import read_lto_ir

                read_lto_ir(code)
            case "cubin":
                return _cubin_fault(code)
            case "object":
                return _object_fault(code)
            case "archive":
                return _archive_fault(code)
            case "fatbin":
                _check_cubins(kind, code)
    except FormatError as error:
        return str(error)
    except Exception as error:  # whatever damage does to a reader, it is damage
        if raised_by_signal_handler(error):
            raise
        return f"it cannot be read ({type(error).__name__}: {error})"
    return ""


def _cubin_fault(code: bytes) -> str:
    from .cubin import check_tables
    from .elf import ET_REL, read_elf

    file = read_elf(code)
    if not file.is_cuda:
        return "it is an ELF file for a CPU, not for a GPU: pass object files as cuda.Object, or with suffix .o"
    if file.type != ET_REL:
        return (
            "it is not relocatable: nothing can be linked with it\n"
            "  what to do: compile with nvcc -cubin -rdc=true, or with cuda.core's"
            " ProgramOptions(relocatable_device_code=True)"
        )
    check_tables(code, file)
    return ""


def _object_fault(code: bytes) -> str:
    from .containers import pieces
    from .elf import elf_symbols, read_elf

    file = read_elf(code)
    if file.is_cuda:
        return "it is a cubin, which the linker ignores there: pass it as cuda.Cubin, or with suffix .cubin"
    if not list(pieces("object", code)):
        return "it holds no code for GPUs: compile with nvcc -dc"
    elf_symbols(code, file)
    return ""


def _archive_fault(code: bytes) -> str:
    from .containers import read_archive
    from .elf import ELF_MAGIC, read_elf

    for name, member in read_archive(code):
        if member.startswith(ELF_MAGIC) and read_elf(member).is_cuda:
            return (
                f"its member {name!r} is a cubin, which the linker ignores in an archive: pass each cubin as"
                " cuda.Cubin, or make the archive of objects (nvcc -lib -rdc=true)"
            )
    if not _check_cubins("archive", code):
        return "it holds no code for GPUs: make it with nvcc -lib -rdc=true"
    return ""


def _check_cubins(kind: str, code: bytes) -> bool:
    from .containers import pieces
    from .cubin import check_tables
    from .elf import read_elf

    found = list(pieces(kind, code))
    for piece in found:
        if piece.kind == "cubin" and piece.code is not None:
            check_tables(piece.code, read_elf(piece.code))
    return bool(found)
