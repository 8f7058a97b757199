# SPDX-License-Identifier: BSD-2-Clause
"""Calls of C++ functions in the IR of a function that cannot be typed: they are found, and get what they lack.

C passes numbers by value. So where C++ refers to a variable (``T&``), the call gets its place: an element of an array
where it is, and a variable in an array of its own, from which it is assigned after the call.

Results that are structs are tuples with the names of the members: of C++ these are asked only where a kernel uses one.
"""

from __future__ import annotations

import copy
import enum
import types as pytypes
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from numba.cuda import types

from ..c_abi.extern import Extern
from ..compilation.context import current_target
from ..frontend_api.front_end import Vocabulary
from ..frontend_api.typing_rounds import Use, register_rewrite
from ..protocol.call_sites import constant_of, find_read_only
from .calls import Call, CallPattern
from .cxx_errors import CxxError
from .functions import CxxFunction, drop_number
from .library_source import LibrarySource
from .places import PlacedCall
from .records import ask_names
from .results import WrittenArgumentError

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


def _pass_elements(state: Any, vocabulary: Vocabulary, found: MutableMapping[str, Any]) -> bool:
    """Let calls get the elements of a tuple, ``f(*x)``, as arguments. The types of variables are *found*. Return
    whether any call is rewritten."""
    rewritten = False
    for block, statement, _ in find_calls(state, vocabulary):
        call = statement.value
        given = found.get(call.vararg.name) if call.vararg is not None else None
        if isinstance(given, vocabulary.types.BaseTuple):
            for number, element in enumerate(given):
                value = vocabulary.ir.Expr.static_getitem(call.vararg, number, None, statement.loc)
                call.args = [*call.args, _define(state, block, statement, value, vocabulary.ir)]
                found[call.args[-1].name] = element
            call.vararg = None
            rewritten = True
    return rewritten


@register_rewrite()
def pass_elements(state: Any, vocabulary: Vocabulary) -> bool:
    """Let calls that are not typed get the elements of tuples. Return whether there are any."""
    has_any = any(statement.value.vararg is not None for _, statement, _ in find_calls(state, vocabulary))
    return has_any and _pass_elements(state, vocabulary, dict(infer_partly(state, vocabulary)))


@register_rewrite(of_typed=True)
def pass_elements_of_typed(state: Any, vocabulary: Vocabulary) -> bool:
    """Let typed calls get the elements of tuples. Return whether there are any."""
    return _pass_elements(state, vocabulary, state.typemap)


@register_rewrite()
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


@register_rewrite()
def rewrite_flags(state: Any, vocabulary: Vocabulary) -> bool:
    """Let operators get the numbers of members of an ``enum.IntFlag``, and so variables that have results of
    operators too, in a function that calls C++. Return whether there are any."""
    ir, func_ir, rewritten = vocabulary.ir, state.func_ir, False
    assigned = {
        statement.target.name: (block, statement)
        for block in (func_ir.blocks.values() if find_calls(state, vocabulary) else ())
        for statement in block.find_insts(ir.Assign)
    }

    def is_operator(value: Any) -> bool:
        while isinstance(value, ir.Var):  # each is assigned once
            value = assigned[value.name][1].value if value.name in assigned else None
        return isinstance(value, ir.Expr) and value.op in ("binop", "inplace_binop", "unary")

    for block, statement in [*assigned.values()]:
        value = statement.value
        is_phi = isinstance(value, ir.Expr) and value.op == "phi"
        is_number = any(map(is_operator, value.incoming_values)) if is_phi else is_operator(value)
        for operand in value.list_vars() if is_number and isinstance(value, ir.Expr) else ():
            if isinstance(flag := constant_of(func_ir, operand, vocabulary), enum.IntFlag):
                before = assigned[operand.name] if is_phi else (block, statement)
                number = _define(state, *before, ir.Const(int(flag), statement.loc), ir)
                vocabulary.ir_utils.replace_vars_inner(value, {operand.name: number})
                rewritten = True
    return rewritten


@register_rewrite()
def name_members(state: Any, vocabulary: Vocabulary) -> bool:
    """Let calls that return structs return tuples with the names of the members. Return whether there are any."""
    calls = [each for each in find_calls(state, vocabulary) if not isinstance(each[2], NamedResults)]
    found = infer_partly(state, vocabulary) if calls else {}
    structs = [each for each in calls if isinstance(found.get(each[1].target.name), vocabulary.types.BaseTuple)]
    for block, statement, callee in structs:
        _call(name_results(callee), state, block, statement, vocabulary.ir)
    return bool(structs)


def _call(function: Any, state: Any, block: Any, statement: Any, ir: Any) -> None:
    """Let the *statement* call another *function*."""
    constant = ir.Global(function.__name__, function, statement.loc)
    statement.value.func = _define(state, block, statement, constant, ir)


def _define(state: Any, block: Any, statement: Any, constant: Any, ir: Any) -> Any:
    """Return a new variable with a *constant*, which is assigned before the *statement*."""
    target = block.scope.redefine("$of_cxx", statement.loc)
    state.func_ir._definitions[target.name].append(constant)
    block.body.insert(block.body.index(statement), ir.Assign(constant, target, statement.loc))
    return target


@register_rewrite()
def rewrite_written(state: Any, vocabulary: Vocabulary) -> bool:
    """Give the calls in the function of a compiler's *state* that write to their arguments the places of these, in the
    IR of *vocabulary*. Return whether there are any."""
    if not (calls := find_calls(state, vocabulary)):
        return False
    found = infer_partly(state, vocabulary)
    rewritten = False
    for block, statement, callee in calls:
        argtypes = [found.get(arg.name) for arg in statement.value.args]
        refused = None if None in argtypes else callee._get_refusal([vocabulary.to_core(each) for each in argtypes])
        if isinstance(refused, WrittenArgumentError):
            call = PlacedCall(state, vocabulary, found, block, statement)
            rewritten |= call.pass_places(callee, refused.referred, refused.written)
    return rewritten


@register_rewrite(of_typed=True)
def rewrite_referred(state: Any, vocabulary: Vocabulary) -> bool:
    """Give the calls that may write to their arguments the places of these. Return whether there are any."""
    rewritten = False
    for block, statement, callee in find_calls(state, vocabulary):
        argtypes = [vocabulary.to_core(state.typemap[arg.name]) for arg in statement.value.args]
        referred = getattr(callee.__numba_cuda_call__(*map(drop_number, argtypes)), "referred", ())
        if referred:
            call = PlacedCall(state, vocabulary, state.typemap, block, statement)
            rewritten |= call.pass_places(callee, referred, ())
    return rewritten


@register_rewrite(of_typed=True)
def note_read_only(state: Any, vocabulary: Vocabulary) -> bool:
    """Let C++ take elements of read-only arrays as ``const``. Return whether a call has any that it does not take
    so."""
    records = (vocabulary.types.Record, vocabulary.types.NestedArray)
    if not any(isinstance(each, records) for each in state.typemap.values()):
        return False
    rewritten = False
    for block, statement, callee in find_calls(state, vocabulary):
        found = find_read_only(state.func_ir, state.typemap, statement.value, vocabulary)
        if found != callee._pattern.read_only:
            _call(callee._change(read_only=found), state, block, statement, vocabulary.ir)
            rewritten = True
    return rewritten


class NamedResults(CxxFunction):
    """A function of C++ with named results."""

    def __reduce__(self) -> Any:
        return _get_named, (self._source, self._pattern)

    def _change(self, **changes: Any) -> CxxFunction:
        """Return the function that is called by another pattern, with these *changes*."""
        return name_results(super()._change(**changes))

    def __numba_cuda_call__(self, *args: types.Type) -> Extern:
        """Return the C function for arguments of these types. Raise `CxxError` if C++ refuses the call."""
        found = copy.copy(super().__numba_cuda_call__(*args))
        found.returns = self._name(self._call(args), found.returns)
        return found

    def _guess_result(self, args: Sequence[types.Type], use: Use) -> types.Type:
        """Return what a call probably returns, as that of the function without names."""
        return self._name(self._call(args), super()._guess_result(args, use))

    def _name(self, call: Call, returns: Any) -> Any:
        """Return the type of a result with names, or as it is if C++ has none that are known."""
        if not isinstance(returns, types.BaseTuple):
            return returns
        try:
            named: Any = ask_names(self._source, call, self._source.records, current_target().cc)
        except CxxError:
            named = returns
        return named if _without_names(named) == returns else returns


def name_results(function: CxxFunction) -> CxxFunction:
    """Return *function* with named results."""
    return _get_named(function._source, function._pattern)


def _get_named(source: LibrarySource, pattern: CallPattern) -> CxxFunction:
    found: CxxFunction = source.get_object(("named", pattern), lambda: NamedResults(source, pattern))
    return found


def _without_names(numba_type: Any) -> Any:
    if not isinstance(numba_type, types.BaseTuple):
        return numba_type
    return types.BaseTuple.from_types([_without_names(each) for each in numba_type.types])
