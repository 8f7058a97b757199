# SPDX-License-Identifier: BSD-2-Clause
"""Why a link ran with link-time optimisation, or did not, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.target import Target

from .records import CodeReport


def linked_kind(code: CodeReport) -> str:
    """What kind the linker got."""
    return code.compiled.kind if code.compiled else code.kind


def why(target: Target, lto: bool, inputs: Sequence[CodeReport]) -> str:
    """Why a link for *target* ran with *lto*, or without."""
    if not target.lto:
        reason = "debug=True" if target.debug else "lto=False, or nvJitLink was not found"
        if not lto:
            return reason
        demanding = _names(code for code in inputs if linked_kind(code) == kinds.LTO_IR.name)
        return f"{demanding} cannot be linked otherwise; the kernel itself takes no part ({reason})"
    text = "what cuda.jit does unless told lto=False or debug=True"
    apart = [code for code in inputs if linked_kind(code) != kinds.LTO_IR.name]
    if apart:
        text += f"; {_names(apart)} cannot take part, and {'is' if len(apart) == 1 else 'are'} called without inlining"
    return text


def _names(codes: Iterable[CodeReport]) -> str:
    names = [f"{code.name} ({linked_kind(code)})" for code in codes]
    if len(names) > 3:
        names[3:] = [f"{len(names) - 3} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
