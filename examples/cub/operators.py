# SPDX-License-Identifier: BSD-2-Clause
"""Operators of reductions and scans: Python's operators as CUB's functors, device functions as linked code."""

from __future__ import annotations

import functools
import hashlib
import operator
import re
from dataclasses import dataclass

import numpy as np
from numba import cuda
from numba.cuda import autolink, types

from .arguments import INTEGERS, NUMBERS, REALS

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
_BY_VALUE = (*INTEGERS, types.float32, types.float64)
# The names of called functions contain a count of what Numba compiled before.
_FUNCTION_NUMBER = re.compile(r"B\d+v\d+(?=B)")
# Code by symbol and target, so that a symbol always has the same code.
_code: dict = {}


@dataclass(frozen=True)
class Operator:
    """An operator in C++: ``functor`` is an expression, ``name`` a part of symbols, ``code`` what to link with it."""

    name: str
    functor: str
    declaration: str = ""
    code: tuple = ()


def known(function, dtype):
    """Return one of Python's own operators for values of *dtype*."""
    name, _, allowed = _KNOWN[function]
    if dtype not in allowed:
        raise TypeError(f"op: got {function.__name__}, which {dtype} does not have")
    return Operator(name, f"autolink_cub::{name}<{autolink.cxx_type(dtype)}>{{}}")


def operator_of(argument, dtype):
    """Return the operator for a call's argument of type *argument*, for values of *dtype*."""
    if isinstance(argument, types.Dispatcher):
        return _compiled(argument.dispatcher.py_func, dtype, autolink.current_target())
    function = getattr(argument, "typing_key", None)
    if function not in _KNOWN:
        names = "min, max, operator.add, mul, and_, or_, xor"
        raise TypeError(
            f"op: got {argument}, expected one of {names}, or a function decorated with cuda.jit(device=True)"
        )
    return known(function, dtype)


@functools.cache
def _compiled(function, dtype, target):
    """Compile a device function. Its symbol contains a digest of its code, so that equal functions are linked once."""
    if dtype not in _BY_VALUE:
        raise TypeError(f"op: got a device function for {dtype}, expected integers, float32 or float64")
    compile_as = functools.partial(
        cuda.compile,
        function,
        (dtype, dtype),
        cc=target.compute_capability,
        abi="c",
        fastmath=target.fastmath,
    )
    text, returns = compile_as(abi_info={"abi_name": "cub_operator"})
    if returns not in _BY_VALUE:
        raise TypeError(f"op: got {function.__name__}, which returns {returns}, expected {dtype}")
    digest = hashlib.sha256(_FUNCTION_NUMBER.sub("", text).encode()).hexdigest()[:16]
    name = f"cub_operator_{dtype}_{digest}"
    T, R = autolink.cxx_type(dtype), autolink.cxx_type(returns)
    declaration = f"""
#ifndef HAVE_{name}
#define HAVE_{name}
extern "C" __device__ {R} {name}({T}, {T});
struct {name}_functor {{
    __device__ {T} operator()({T} a, {T} b) const {{ return {name}(a, b); }}
}};
#endif"""
    if (name, target) not in _code:
        code, _ = compile_as(abi_info={"abi_name": name}, output="ltoir" if target.lto else "ptx")
        kind = cuda.LTOIR if target.lto else cuda.PTXSource
        _code[name, target] = kind(_bytes(code), name=name)
    return Operator(digest, f"{name}_functor{{}}", declaration, (_code[name, target],))


def _bytes(code):
    return code.encode() if isinstance(code, str) else bytes(code)


def in_numpy(op):
    """Return the NumPy ufunc for *op*, or None if there is none."""
    return _KNOWN[op][1] if op in _KNOWN else None
