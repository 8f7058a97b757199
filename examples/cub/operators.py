# SPDX-License-Identifier: BSD-2-Clause
"""Operators of reductions and scans: Python's operators as CUB's functors, device functions as functors of theirs."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np
from numba.cuda import autolink, types

from .arguments import COMPLEX, INTEGERS, NUMBERS, REALS, given

# The name in C++, the ufunc, and the supported types.
_KNOWN = {
    min: ("minimum", np.minimum, REALS),
    max: ("maximum", np.maximum, REALS),
    operator.add: ("plus", np.add, NUMBERS),
    operator.mul: ("multiplies", np.multiply, NUMBERS),
    operator.and_: ("bit_and", np.bitwise_and, INTEGERS),
    operator.or_: ("bit_or", np.bitwise_or, INTEGERS),
    operator.xor: ("bit_xor", np.bitwise_xor, INTEGERS),
}


@dataclass(frozen=True)
class Operator:
    """An operator in C++: ``functor`` is an expression, ``name`` a part of symbols, ``code`` what to link with it.
    Where it has state, ``args`` and ``parameters`` are what a function takes for it."""

    name: str
    functor: str
    declaration: str = ""
    code: tuple = ()
    args: tuple = ()
    parameters: tuple = ()


def known(function, dtype):
    """Return one of Python's own operators for values of *dtype*."""
    name, _, allowed = _KNOWN[function]
    if dtype not in allowed:
        raise TypeError(f"op: got {function.__name__}, which {dtype} does not have")
    return Operator(name, f"autolink_cub::{name}<{autolink.cxx_type(dtype)}>{{}}")


def operator_of(argument, dtype, state=None):
    """Return the operator for a call's argument of type *argument*, for values of *dtype*."""
    if isinstance(argument, types.Dispatcher):
        return _compiled("op", argument, dtype, dtype, state)
    function = getattr(argument, "typing_key", None)
    if function not in _KNOWN:
        names = "min, max, operator.add, mul, and_, or_, xor"
        raise TypeError(
            f"op: got {argument}, expected one of {names}, or a function decorated with cuda.jit(device=True)"
        )
    if given(state):
        raise TypeError(f"state: got {state}, expected None: {function.__name__} has none")
    return known(function, dtype)


def comparison_of(argument, dtype, state=None):
    """Return the comparison for a call's argument of type *argument*: whether the first of two values of *dtype* comes
    before the second."""
    if not isinstance(argument, types.Dispatcher):
        raise TypeError(f"before: got {argument}, expected a function decorated with cuda.jit(device=True)")
    return _compiled("before", argument, dtype, types.boolean, state)


def _compiled(name, argument, dtype, returns, state):
    """Return a device function as an operator that returns *returns*."""
    state = state if given(state) else ()
    function = autolink.device_function(argument, dtype, dtype, state=state)
    if function.returns not in (*NUMBERS, types.boolean) or (function.returns in COMPLEX) != (returns in COMPLEX):
        called = argument.dispatcher.py_func.__name__
        raise TypeError(f"{name}: got {called}, which returns {function.returns}, expected {returns}")
    functor = f"autolink_cub::returning<{autolink.cxx_type(returns)}, {function.functor}>"
    if state == ():
        return Operator(function.symbol, f"{functor}()", function.declaration, (function,))
    passed = (("state", autolink.state),), ("const void* state",)
    return Operator(function.symbol, f"{functor}(state)", function.declaration, (function,), *passed)


def with_state(op, state):
    """Return *op* as a function of two values, in the simulator."""
    return op if state is None else lambda a, b: op(a, b, state)


def in_numpy(op):
    """Return the NumPy ufunc for *op*, or None if there is none."""
    return _KNOWN[op][1] if op in _KNOWN else None
