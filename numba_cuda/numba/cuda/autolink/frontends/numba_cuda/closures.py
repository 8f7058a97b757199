# SPDX-License-Identifier: BSD-2-Clause
"""Functions and lambdas that are written in a kernel, with variables of the functions around the kernel."""

from __future__ import annotations

import types as pytypes
from typing import Any

from numba.cuda.core import ir
from numba.cuda.core.ir_utils import get_definition, guard


def make_closure(make_function: Any, caller_ir: Any) -> Any:
    """Return the function that an expression of the IR makes, with the values of its free variables. Return None, for
    numba-cuda to make it, if none of them belongs to a function around the caller."""
    code, caller = make_function.code, caller_ir.func_id.func
    cells = dict(zip(caller.__code__.co_freevars, caller.__closure__ or (), strict=True))
    if make_function.defaults or not cells.keys() & set(code.co_freevars):
        return None
    for name in set(code.co_freevars) - cells.keys():
        definition = guard(get_definition, caller_ir, name)
        if not isinstance(definition, ir.const_types):
            return None
        cells[name] = pytypes.CellType(definition.value)
    closure = tuple(cells[name] for name in code.co_freevars)
    function = pytypes.FunctionType(code, caller.__globals__, code.co_name, None, closure)
    function.__qualname__ = f"closure.<locals>.{code.co_name}"  # as numba-cuda names those that it makes
    return function
