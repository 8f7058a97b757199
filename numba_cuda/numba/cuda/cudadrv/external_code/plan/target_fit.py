# SPDX-License-Identifier: BSD-2-Clause
"""Whether link inputs fit the target of a link, as far as their headers show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..inputs.link_input import LinkInput
from ..platform.target import Target

if TYPE_CHECKING:
    from ..formats.containers import Piece


def misfit(link_input: LinkInput, target: Target) -> str:
    """Return why *link_input* does not fit *target*, and what to do; ``""`` if no header shows a misfit."""
    kind, code = link_input.kind.name, link_input.code
    if link_input.kind.is_compiled:
        return ""
    from numba_cuda_autolink.errors import FormatError
    from numba_cuda_autolink.ptx import read_ptx

    from ..formats.containers import pieces
    from ..formats.elf import read_elf
    from ..formats.lto_ir import read_lto_ir

    major, minor = target.compute_capability
    sm = major * 10 + minor
    try:
        if kind == "cubin":
            return _cubin_misfit(read_elf(code).sm, sm, target.arch)
        if kind == "PTX":
            ptx = read_ptx(code)
            is_only_for_another = ptx.suffix == "a" and (ptx.sm != sm or target.suffix != "a")
            if ptx.sm > sm or is_only_for_another:
                why = "is newer than" if ptx.sm > sm else "is for that architecture only, not for"
                return f"its .target {ptx.target} {why} {_remedy(target.arch)}"
        if kind == "LTO-IR" and (made_for := read_lto_ir(code).sm or 0) > sm:
            return f"it is LTO-IR for sm_{made_for}, which is newer than {_remedy(target.arch)}"
        if kind in ("fatbin", "object"):
            return _container_misfit(list(pieces(kind, code)), sm, target.arch)
    except FormatError as error:
        return str(error)
    return ""


def _runs_on(cubin_sm: int, target_sm: int) -> bool:
    """Return whether machine code runs, as it does on its own and later minor versions of its major version."""
    return cubin_sm // 10 == target_sm // 10 and cubin_sm <= target_sm


def _cubin_misfit(sm: int | None, target_sm: int, arch: str) -> str:
    if sm is None or _runs_on(sm, target_sm):
        return ""
    first = target_sm // 10 * 10
    runs = f"sm_{target_sm}" if first == target_sm else f"sm_{first} to sm_{target_sm}"
    return (
        f"it is machine code for sm_{sm}, and the kernel is built for {arch}, which runs code for {runs}\n"
        f"  what to do: compile it for {arch} (in the hook: autolink.current_target().arch), or return PTX or LTO-IR"
        " for that architecture or an older one"
    )


def _remedy(arch: str) -> str:
    return (
        f"{arch}, which the kernel is built for\n"
        f"  what to do: compile it for {arch} or an older architecture (in the hook: autolink.current_target().arch)"
    )


def _container_misfit(held: list[Piece], target_sm: int, arch: str) -> str:
    if not held or any(piece.sm is None for piece in held):
        return ""
    found = sorted({(piece.kind, piece.sm or 0) for piece in held})
    if any(_runs_on(sm, target_sm) if kind == "cubin" else sm <= target_sm for kind, sm in found):
        return ""
    listed = ", ".join(f"{kind} for sm_{sm}" for kind, sm in found)
    return (
        f"it holds {listed}: nothing for {arch}, which the kernel is built for\n"
        f"  what to do: compile it for {arch} (nvcc -arch={arch})"
    )
