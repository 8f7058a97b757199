# SPDX-License-Identifier: BSD-2-Clause
"""Calls that pass C++ the data of an array, where a Python function that it calls expects the array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CPrototype

from ..protocol.ask import AskedCall
from ..protocol.errors import CallError, HookError


def check_state(asked: Iterable[AskedCall], prototypes: Sequence[tuple[str, CPrototype]], loc: Any) -> None:
    """Raise `CallError` if one of the objects *asked* returned a function with an array as state, and the call at *loc*
    of C functions with these *prototypes* passes none."""
    addresses = [each for _, prototype in prototypes for each in prototype.parameters if each.cxx == "const void*"]
    if not prototypes or addresses:
        return
    for call in asked:
        if any(each.takes_arrays for each in call.answer.calling):
            diagnosis = (
                "returned a function with an array as state, and the call passes none\n"
                "  what to do: pass the array as state, in the args of the Extern: args={'name': autolink.state}"
            )
            raise CallError(HookError(call.callee, call.argtypes, diagnosis), call, loc)
