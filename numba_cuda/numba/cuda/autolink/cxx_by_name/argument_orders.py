# SPDX-License-Identifier: BSD-2-Clause
"""Arguments that C++ takes in another order: found by trying the calls with two of them exchanged."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from numba.cuda.cudadrv.external_code.platform.target import Target

from ..c_abi.c_types import CABIError
from .calls import Call
from .cxx_errors import CxxError
from .python_arguments import is_python_function
from .resolving import Resolver

_MOST_ARGUMENTS = 4  # so that at most six calls are tried
_OF_ARGUMENTS = (
    "is incompatible with parameter",
    "does not match because argument",
    "no suitable ",
    "failed deduction",
)


def explain_order(
    make_call: Callable[[Sequence[Any]], Call],
    resolver: Resolver,
    argtypes: Sequence[Any],
    error: CxxError,
    target: Target,
) -> CxxError:
    """Return the *error* of a call with arguments of these types, with which two of them to exchange, if C++ takes them
    then, and for no other two; the *error* as it is for any other."""
    is_tried = 1 < len(argtypes) <= _MOST_ARGUMENTS and not any(map(is_python_function, argtypes))
    if not is_tried or not any(each in error.log for each in _OF_ARGUMENTS):
        return error
    calls = {}
    for one, other in itertools.combinations(range(len(argtypes)), 2):
        exchanged = [*argtypes]
        exchanged[one], exchanged[other] = argtypes[other], argtypes[one]
        if argtypes[one] != argtypes[other]:
            try:
                calls[one + 1, other + 1] = make_call(exchanged)
            except CABIError:
                return error
    refused = resolver.find_refusals([*calls.values()], target) if calls else {}
    taken = [numbers for numbers, call in calls.items() if call.symbol not in refused]
    if len(taken) != 1:
        return error
    ((one, other),) = taken
    said = str(error).partition("\n  what to do: ")[0]
    text = f"{said}\n  what to do: exchange arguments {one} and {other}: C++ takes them in that order"
    return CxxError(text, error.log)
