# SPDX-License-Identifier: BSD-2-Clause
"""Looks at linkable code before nvJitLink gets it, which accepts, misreports or crashes on some of what is wrong.

`check_structure` finds what is cut off, damaged or of another kind, as far as headers show it; `check_fit` finds what
cannot be linked for a target. Damage inside of machine code or LTO-IR shows only when it is linked: see `link_trial`.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ..target import Target
from . import containers as link_formats
from .containers import ET_REL, FormatError
from .cubin_tables import check_tables

if TYPE_CHECKING:
    from ..inputs.link_input import LinkInput

_MEMORY = 1024
_known: dict[bytes, str] = {}


def structural_fault(kind: str, code: bytes) -> str:
    """What is wrong with the structure of *code*, which is to be of *kind* (the name of a `Kind`); empty if nothing.

    Remembered by content: looking again costs a hash.
    """
    key = hashlib.sha256(kind.encode() + b"\0" + code).digest()
    fault = _known.get(key)
    if fault is None:
        fault = _fault(kind, code)
        if len(_known) >= _MEMORY:
            _known.clear()
        _known[key] = fault
    return fault


def _fault(kind: str, code: bytes) -> str:
    try:
        if kind == "PTX":
            link_formats.ptx(code)
        elif kind == "LTO-IR":
            link_formats.lto_ir(code)
        elif kind == "cubin":
            return _cubin_fault(code)
        elif kind == "object":
            return _object_fault(code)
        elif kind in ("fatbin", "archive"):
            if kind == "archive" and (fault := _archive_fault(code)):
                return fault
            for piece in link_formats.pieces(kind, code):
                if piece.kind == "cubin" and piece.code is not None:
                    file = link_formats.elf(piece.code)
                    if file.sm is not None:
                        check_tables(piece.code, file)
    except FormatError as error:
        return str(error)
    except Exception as error:  # whatever damage does to a reader, it is damage
        return f"it cannot be read ({type(error).__name__}: {error})"
    return ""


def _cubin_fault(code: bytes) -> str:
    file = link_formats.elf(code)
    if not file.is_cuda:
        return (
            "it is an ELF file for a host processor, not for a GPU: pass object files as cuda.Object, or with suffix .o"
        )
    if file.type != ET_REL:
        return (
            "it is not relocatable: nothing can be linked with it\n"
            "  what to do: compile with nvcc -cubin -rdc=true, or with cuda.core's"
            " ProgramOptions(relocatable_device_code=True)"
        )
    link_formats.elf_symbols(code, file)
    if file.sm is not None:
        check_tables(code, file)
    return ""


def _object_fault(code: bytes) -> str:
    file = link_formats.elf(code)
    if file.is_cuda:
        return "it is a cubin, which the linker ignores there: pass it as cuda.Cubin, or with suffix .cubin"
    if not list(link_formats.pieces("object", code)):
        return "it holds no code for GPUs: compile with nvcc -dc"
    link_formats.elf_symbols(code, file)
    return ""


def _archive_fault(code: bytes) -> str:
    for name, member in link_formats.archive(code):
        if member.startswith(link_formats.ELF_MAGIC) and link_formats.elf(member).is_cuda:
            return (
                f"its member {name!r} is a cubin, which the linker ignores in an archive: pass each cubin as"
                " cuda.Cubin, or make the archive of objects (nvcc -lib -rdc=true)"
            )
    if not list(link_formats.pieces("archive", code)):
        return "it holds no code for GPUs: make it with nvcc -lib -rdc=true"
    return ""


def misfit(link_input: LinkInput, target: Target) -> str:
    """Why *link_input* does not fit *target* (a `Target`); empty if headers tell of nothing."""
    kind, code = link_input.kind.name, link_input.code
    major, minor = target.compute_capability
    wanted = major * 10 + minor
    try:
        if kind == "cubin":
            return _cubin_misfit(link_formats.elf(code).sm, wanted, target.arch)
        if kind == "PTX":
            return _ptx_misfit(link_formats.ptx(code), wanted, target)
        if kind == "LTO-IR":
            return _ltoir_misfit(link_formats.lto_ir(code).sm, wanted, target.arch)
        if kind in ("fatbin", "object"):
            return _none_fits(list(link_formats.pieces(kind, code)), wanted, target.arch)
    except FormatError as error:
        return str(error)
    return ""


def _runs_on(cubin_sm: int, wanted: int) -> bool:
    """Machine code runs on its own and on later minor versions of the same major version."""
    return cubin_sm // 10 == wanted // 10 and cubin_sm <= wanted


def _cubin_misfit(sm: int | None, wanted: int, arch: str) -> str:
    if sm is None or _runs_on(sm, wanted):
        return ""
    first = wanted // 10 * 10
    runs = f"sm_{wanted}" if first == wanted else f"sm_{first} to sm_{wanted}"
    return (
        f"it is machine code for sm_{sm}, and the kernel is built for {arch}, which runs code for {runs}\n"
        f"  what to do: compile it for {arch} (autolink.current_target().arch tells the hook), or return PTX or LTO-IR"
        " of that architecture or an older one"
    )


def _ptx_misfit(ptx: link_formats.Ptx, wanted: int, target: Target) -> str:
    if ptx.sm > wanted:
        why = "is newer than"
    elif ptx.suffix == "a" and (ptx.sm != wanted or target.suffix != "a"):
        why = "is for that architecture alone, and is not"
    else:
        return ""
    return (
        f"its .target {ptx.target} {why} {target.arch}, which the kernel is built for\n"
        f"  what to do: make it for {target.arch} or an older architecture (autolink.current_target().arch tells the"
        " hook)"
    )


def _ltoir_misfit(sm: int | None, wanted: int, arch: str) -> str:
    if sm is None or sm <= wanted:
        return ""
    return (
        f"it is LTO-IR for sm_{sm}, which is newer than {arch}, which the kernel is built for\n"
        f"  what to do: make it for {arch} or an older architecture (autolink.current_target().arch tells the"
        " hook)"
    )


def _none_fits(pieces: list[link_formats.Piece], wanted: int, arch: str) -> str:
    held = {(piece.kind, piece.sm) for piece in pieces if piece.sm is not None}
    if len(held) < len({(piece.kind, piece.sm) for piece in pieces}):
        return ""  # one does not tell what it is for
    for piece_kind, sm in held:
        if _runs_on(sm, wanted) if piece_kind == "cubin" else sm <= wanted:
            return ""
    if not held:
        return ""
    listed = ", ".join(f"{piece_kind} for sm_{sm}" for piece_kind, sm in sorted(held))
    return (
        f"it holds {listed}: nothing for {arch}, which the kernel is built for\n"
        f"  what to do: compile it for {arch} (nvcc -arch={arch})"
    )
