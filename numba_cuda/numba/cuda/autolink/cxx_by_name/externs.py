# SPDX-License-Identifier: BSD-2-Clause
"""The C function of a call, from the lowered name that describes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.cuda import types

from ..device_callable.conversions import state
from ..device_callable.extern import Extern
from .calls import Call
from .refusals import CxxError
from .results import CxxObject, coded_type, numbers_in


class WrittenArgumentError(CxxError):
    """A call writes to arguments: those at the positions ``written``. ``is_void``: it returns nothing."""

    def __init__(self, message: str, written: tuple[int, ...], is_void: bool):
        super().__init__(message)
        self.written = written
        self.is_void = is_void


def extern_of(call: Call, answer: str, records: Sequence[Any]) -> Extern:
    """Return the C function of *call*, whose question has the lowered name *answer*. Raise `CxxError` if Python cannot
    call it. *records* are the Numba types of known structs."""
    mode, bits, *code = numbers_in(answer)
    written = tuple(number for number in range(len(call.parameters)) if bits >> number & 1)
    returns = coded_type(iter(code), records)
    if isinstance(returns, CxxObject):
        raise CxxError(
            f"{call.label} returns an object that only C++ knows ({returns.size} bytes)\n"
            "  what to do: let a lambda, lib.expr(...), use the object and return numbers; or keep it in memory of a"
            " lib.type(...)"
        )
    if written and not call.pattern.written:
        positions = ", ".join(str(number + 1) for number in written)
        raise WrittenArgumentError(
            f"{call.label} writes to argument {positions}, which is not a variable or an element of an array\n"
            "  what to do: pass a variable of the type that C++ declares; or an array, with .passing(..., 'element')",
            written,
            returns == types.none,
        )
    passed = {
        f"args_{number}": state if parameter.is_state else view
        for number, (view, parameter) in enumerate(zip(call.array_views(mode), call.parameters, strict=True))
        if parameter.is_passed
    }
    return Extern(call.symbol, returns=returns, args=passed)
