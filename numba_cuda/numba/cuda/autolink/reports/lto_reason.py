# SPDX-License-Identifier: BSD-2-Clause
"""Why a link ran with or without link-time optimisation, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.target import Target

from .records import CodeReport


def lto_reason(target: Target, lto: bool, inputs: Sequence[CodeReport]) -> str:
    """Return why a link for *target* ran with link-time optimisation (*lto*), or why without."""
    if not target.lto:
        reason = "debug=True" if target.debug else "lto=False, or nvJitLink was not found"
        if not lto:
            return reason
        needing = _names(code for code in inputs if code.linked_kind == kinds.LTO_IR.name)
        return f"{needing} cannot be linked without it; the kernel itself takes no part ({reason})"
    text = "the default of cuda.jit without lto=False and debug=True"
    apart = [code for code in inputs if code.linked_kind != kinds.LTO_IR.name]
    if apart:
        text += f"; {_names(apart)} cannot take part, and {'is' if len(apart) == 1 else 'are'} called without inlining"
    return text


def _names(codes: Iterable[CodeReport]) -> str:
    names = [f"{code.name} ({code.linked_kind})" for code in codes]
    if len(names) > 3:
        names[3:] = [f"{len(names) - 3} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
