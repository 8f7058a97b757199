# SPDX-License-Identifier: BSD-2-Clause
"""Functions that are written in a kernel: what they take from around them."""

from __future__ import annotations

import types as pytypes
from typing import Any

from ..frontend_api.front_end import Vocabulary
from .call_sites import constant_of
from .callee import find_callee
from .errors import typing_error


def make_closure(make_function: Any, caller_ir: Any, vocabulary: Vocabulary, error: type[Exception]) -> Any:
    """Return the function that an expression of the IR makes, with the values of its free variables. Return None, for
    the front end to make it, if none of them belongs to a function around the caller. Raise an *error*, the front end's
    class of typing errors, if a called object gets a function with a variable of the kernel."""
    words, code, caller = vocabulary.ir_utils, make_function.code, caller_ir.func_id.func
    cells = dict(zip(caller.__code__.co_freevars, caller.__closure__ or (), strict=True))
    of_caller = [name for name in code.co_freevars if name not in cells]
    found = {name: words.guard(words.get_definition, caller_ir, name) for name in of_caller}
    constant = getattr(vocabulary.ir, "const_types", vocabulary.ir.Const)
    for name, definition in found.items():
        if not isinstance(definition, constant):
            if _is_passed(make_function, caller_ir, vocabulary):
                raise typing_error(
                    f"a function that C++ gets uses {name!r}, a variable of the kernel, which is not a constant\n"
                    f"  what to do: pass {name} to C++ as an argument, and let C++ pass it on to the function",
                    make_function.loc,
                    error=error,
                )
            return None
    if make_function.defaults or not cells.keys() & set(code.co_freevars):
        return None
    cells |= {name: pytypes.CellType(definition.value) for name, definition in found.items()}
    closure = tuple(cells[name] for name in code.co_freevars)
    function = pytypes.FunctionType(code, caller.__globals__, code.co_name, None, closure)
    function.__qualname__ = f"closure.<locals>.{code.co_name}"  # as front ends name those that they make
    return function


def _is_passed(make_function: Any, caller_ir: Any, vocabulary: Vocabulary) -> bool:
    """Return whether a call of an object with linkable code gets the function."""
    words = vocabulary.ir_utils
    return any(
        words.guard(words.get_definition, caller_ir, each) is make_function
        for block in caller_ir.blocks.values()
        for call in block.find_exprs(op="call")
        if find_callee(constant_of(caller_ir, call.func, vocabulary)) is not None
        for each in (*call.args, *(value for _, value in call.kws))
    )
