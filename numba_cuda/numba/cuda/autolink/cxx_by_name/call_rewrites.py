# SPDX-License-Identifier: BSD-2-Clause
"""Calls of C++ functions in the IR of a function that cannot be typed: they are found, and get what they lack."""

from __future__ import annotations

import types as pytypes
from collections.abc import Mapping
from typing import Any

from ..frontend_api.front_end import Vocabulary
from ..frontend_api.typing_rounds import register_rewrite
from ..protocol.call_sites import constant_of
from .functions import CxxFunction
from .named_results import NamedResults, name_results

_DEVICE_FUNCTION = "__numba_cuda_autolink_{}__"


def find_calls(state: Any, vocabulary: Vocabulary) -> list[tuple[Any, Any, CxxFunction]]:
    """Return the calls of C++ functions in a compiler's *state*: their blocks, their assignments, and the functions."""
    ir = vocabulary.ir
    return [
        (block, statement, callee)
        for block in state.func_ir.blocks.values()
        for statement in block.find_insts(ir.Assign)
        if isinstance(statement.value, ir.Expr) and statement.value.op == "call" and not statement.value.kws
        if isinstance(callee := constant_of(state.func_ir, statement.value.func, vocabulary), CxxFunction)
    ]


def infer_partly(state: Any, vocabulary: Vocabulary) -> Mapping[str, Any]:
    """Return the types of the variables that can be typed."""
    found = vocabulary.typed_passes.type_inference_stage(
        state.typingctx, state.targetctx, state.func_ir, state.args, state.return_type, state.locals, raise_errors=False
    )
    types: Mapping[str, Any] = found.typemap
    return types


@register_rewrite
def compile_python_functions(state: Any, vocabulary: Vocabulary) -> bool:
    """Make device functions of the Python functions that calls pass. Return whether there are any."""
    func_ir = state.func_ir
    args = [arg for _, statement, _ in find_calls(state, vocabulary) for arg in statement.value.args]
    passed = {arg.name: constant_of(func_ir, arg, vocabulary) for arg in args}
    made = {
        name: _make_device_function(function, vocabulary)
        for name, function in passed.items()
        if isinstance(function, pytypes.FunctionType)
    }
    definitions = {id(vocabulary.ir_utils.get_definition(func_ir, name)): function for name, function in made.items()}
    for block in func_ir.blocks.values():
        for assign in block.find_insts(vocabulary.ir.Assign):
            if (function := definitions.get(id(assign.value))) is not None:
                assign.value = vocabulary.ir.Global(function.__name__, function, assign.loc)
                func_ir._definitions[assign.target.name] = [assign.value]
    return bool(made)


def _make_device_function(function: Any, vocabulary: Vocabulary) -> Any:
    """Return the device function of a Python *function*, always the same one."""
    name = _DEVICE_FUNCTION.format(vocabulary.name)
    if name not in vars(function):
        setattr(function, name, vocabulary.make_device_function(function))
    return getattr(function, name)


@register_rewrite
def name_members(state: Any, vocabulary: Vocabulary) -> bool:
    """Let calls that return structs return tuples with the names of the members. Return whether there are any."""
    calls = [each for each in find_calls(state, vocabulary) if not isinstance(each[2], NamedResults)]
    found = infer_partly(state, vocabulary) if calls else {}
    structs = [each for each in calls if isinstance(found.get(each[1].target.name), vocabulary.types.BaseTuple)]
    for block, statement, callee in structs:
        statement.value.func = _define(state, vocabulary, block, statement, name_results(callee))
    return bool(structs)


def _define(state: Any, vocabulary: Vocabulary, block: Any, statement: Any, value: Any) -> Any:
    """Return a new variable with a constant *value*, which is assigned before the *statement*."""
    ir, loc = vocabulary.ir, statement.loc
    target = block.scope.redefine("$of_cxx", loc)
    constant = ir.Global(value.__name__, value, loc)
    state.func_ir._definitions[target.name].append(constant)
    block.body.insert(block.body.index(statement), ir.Assign(constant, target, loc))
    return target
