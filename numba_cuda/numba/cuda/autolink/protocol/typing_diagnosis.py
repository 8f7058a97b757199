# SPDX-License-Identifier: BSD-2-Clause
"""Why Numba cannot type a use of called objects: what the Python code does wrong, in place of Numba's own message.

Only where a compilation has failed, the function is read once more, and the uses are looked for that kernels cannot
have and that Numba's message shows. An error that is none of them is left as it is.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import re
import types as pytypes
from collections.abc import Iterator
from typing import Any

from numba import cuda
from numba.cuda import types
from numba.cuda.compiler import run_frontend
from numba.cuda.core import ir
from numba.cuda.core.ir_utils import get_definition, guard
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr
from numba.cuda.cudadrv.external_code.inputs.link_input import VariableSource
from numba.cuda.typing.typeof import Purpose, typeof

from ..compilation.context import compilation
from ..frontend_api.both_typing_errors import BothTypingError, also_of_class
from ..frontend_api.kernel_syntax import NO_CONTAINERS
from ..frontend_api.placed_messages import lines_of, message_of_python, placed
from ..frontend_api.unsupported_python import CONVERT, LOCAL_ARRAY
from .argument_counts import Misuse, misfits
from .call_sites import constant_of
from .callee import CALL_HOOK, HOOK, find_callee, misspelt_hook, place_of
from .errors import typing_error

_UNTYPED = re.compile(r"Cannot determine Numba type|Unknown attribute")
_OPERATORS = ("binop", "inplace_binop", "unary")
_NO_OVERLOAD = "No implementation of function"
_NONE_GIVEN = re.compile(r"^ *>>> .*[(, ]none[,)]", re.MULTILINE)
_OTHER_STRUCT = re.compile(r">>> setitem\((?:unaligned )?array\(Record\(.*, (?:UniTuple|Tuple|Struct|value of)\b")
_ARRAYS = (cuda.local.array, cuda.shared.array)
_OURS = ("numba.cuda.autolink", "numba.cuda.cudadrv.external_code", "numba_cuda_autolink")
_AS_CONSTANT = "before the kernel is defined, as a global variable or one of the enclosing function"
_MAKE_BEFORE = f"make the object {_AS_CONSTANT}"
_CALL_BEFORE = "call it before the kernel is defined, and use what it returns in the kernel"
_MADE = {"build_list": "list", "build_set": "set", "build_map": "dict"}  # by the operation that makes it in a kernel
_NOT_BOUND = "Cannot bind 'args="  # as numba-cuda-mlir says of a call of a device function, at the function's line
_FAULTY_OVERLOAD = "InternalError: "  # of an implementation, whatever its call is
_BUG = "triggered a compiler bug"  # as numba-cuda-mlir calls what it does not compile
_IN_TUPLE = (
    "make it a tuple, and call its elements by constant index or in a loop over literal_unroll (from"
    " numba.cuda import literal_unroll)"
)
_NAMED = "give each object a name of its own: a global variable, or an attribute of a module"
_MOST_ELEMENTS = 1000  # of a container that are looked at


def has_own_diagnosis(error: Exception, function: Any) -> bool:
    """Return whether the message of a front end's *error*, which compiling *function* raised, begins with a diagnosis
    of this project. Its second line then is the place, instead of the front end's lines about steps and places."""
    in_progress = compilation()
    message = placed(str(error), function)
    if in_progress is None or message.partition("\n")[0] not in in_progress.diagnoses:
        return False
    error.args = (message, *error.args[1:])
    if (cause := in_progress.diagnoses[message.partition("\n")[0]]) is not None:
        error.__cause__ = cause
        error.log = getattr(cause, "log", "")  # type: ignore[attr-defined]
    return True


def diagnose(error: Exception, function: Any, kind: type[Exception] = BothTypingError) -> Exception | None:
    """Return the error of the class *kind* to raise in place of *error*, which compiling *function* raised; ``None``
    for *error* itself, which `has_own_diagnosis` has changed if it is one of this project."""
    if type(error).__module__ != "builtins" and has_own_diagnosis(error, function):
        return None
    text, found = str(error), None
    with contextlib.suppress(Exception):  # whatever is wrong with the function, Numba has said it
        func_ir, lines = run_frontend(function), lines_of(error)
        *_, advice = placed(text).partition("\n  what to do: ")
        has_advice = advice not in ("", CONVERT) or _FAULTY_OVERLOAD in text
        is_at = (lambda line: True) if _NOT_BOUND in text else lines.__contains__
        misfit = (each for each in misfits(func_ir) if is_at(each.loc.line) and not has_advice)
        found = next(itertools.chain(_misuses(func_ir, text), misfit), None)
    if found is None:
        return plain_error(error, kind)
    package = kind.__module__.partition(".")[0]  # of the front end, which has its own literal_unroll
    remedy = found.remedy.replace("from numba.cuda", f"from {package}.cuda")
    better = typing_error(f"{found.diagnosis}\n  what to do: {remedy}", found.loc, error=kind)
    has_own_diagnosis(better, function)
    return better


def plain_error(error: Exception, kind: type[Exception] = BothTypingError) -> Exception | None:
    """Return the error of the class *kind*, and of its own, in place of an *error* of a class of Python's, which a
    front end raised over a statement of the user; ``None`` for every other."""
    text = message_of_python(error)
    return None if text is None else typing_error(text, error=also_of_class(kind, type(error)))


def _misuses(func_ir: ir.FunctionIR, text: str) -> Iterator[Misuse]:
    for block in func_ir.blocks.values():
        for assignment in block.find_insts(ir.Assign):
            value, loc = assignment.value, assignment.loc
            if isinstance(value, (ir.Global, ir.FreeVar)):
                yield from _misused_constant(value.name, value.value, loc, text)
            elif isinstance(value, ir.Expr):
                yield from _misused_expression(func_ir, value, loc, text)
    if _NO_OVERLOAD in text or _BUG in text:
        yield from _misused_operands(func_ir, text)
    if "Cannot unify" in text:
        for name, definitions in func_ir._definitions.items():
            called = [
                constant_of(func_ir, each) for each in definitions if isinstance(each, (ir.Var, ir.Global, ir.Expr))
            ]
            yield from _chosen(name, [each for each in called if find_callee(each)], definitions)


def _misused_expression(func_ir: ir.FunctionIR, expr: ir.Expr, loc: ir.Loc, text: str) -> Iterator[Misuse]:
    if (kind := _MADE.get(expr.op)) is not None:
        items = [value for item in expr.items for value in (item if isinstance(item, tuple) else [item])]
        if _has_called_objects(constant_of(func_ir, each) for each in items):
            yield Misuse(loc, f"kernels cannot call objects in a {kind}", _NAMED if kind == "dict" else _IN_TUPLE)
        elif _BUG in text:
            yield Misuse(loc, NO_CONTAINERS, LOCAL_ARRAY)
    elif expr.op == "getattr":
        owner = constant_of(func_ir, expr.value)
        if owner is not None and find_callee(owner) is None:
            yield from _misused_constant(expr.attr, getattr(owner, expr.attr, None), loc, text)
    elif expr.op in ("getitem", "getiter") and expr.op in text:
        elements = _elements(func_ir, expr.value)
        if find_callee(elements) is not None and safe_repr(elements) in text:
            yield from _indexed(func_ir, expr, elements, loc)
        if isinstance(elements, tuple) and _has_called_objects(elements):
            if expr.op == "getitem":
                diagnosis = "the index of a tuple of called objects must be a constant"
            else:
                diagnosis = "a loop over a tuple of called objects must be unrolled"
            yield Misuse(
                loc,
                diagnosis,
                "loop over the tuple with `for f in literal_unroll(functions)` (from numba.cuda import literal_unroll),"
                " or call each element in a branch of its own",
            )
    elif expr.op == "call" and _NO_OVERLOAD in text and constant_of(func_ir, expr.func) in _ARRAYS:
        for dtype in (*expr.args[1:], *(value for name, value in expr.kws if name == "dtype")):
            if (callee := find_callee(constant_of(func_ir, dtype))) is not None:
                yield Misuse(
                    loc,
                    "the dtype of an array is an object to call, not a type",
                    f"give a Numba type; a type of C++ by name is lib.type({callee.name!r}), made before the kernel",
                )


def _indexed(func_ir: ir.FunctionIR, expr: ir.Expr, value: Any, loc: ir.Loc) -> Iterator[Misuse]:
    name = _name(guard(get_definition, func_ir, expr.value)).strip("'")
    diagnosis = f"{name} is an object to call, which has no index and no elements"
    yield _used_as_value(loc, name, value, diagnosis, f"call it: {name}(...)")


def _used_as_value(loc: ir.Loc, name: str, value: Any, diagnosis: str, remedy: str) -> Misuse:
    """Return the misuse of an object that a kernel calls *name*: with this *diagnosis* and *remedy*, or that C++ does
    not know the name, or has a constant of it."""
    of_cxx = value._cxx_value(name) if hasattr(type(value), "_cxx_value") else None
    return Misuse(loc, *(of_cxx or (diagnosis, remedy)))


def _elements(func_ir: ir.FunctionIR, var: ir.Var) -> Any:
    made = guard(get_definition, func_ir, var)
    if isinstance(made, ir.Expr) and made.op == "build_tuple":
        return tuple(constant_of(func_ir, each) for each in made.items)
    return constant_of(func_ir, var)


def _misused_operands(func_ir: ir.FunctionIR, text: str) -> Iterator[Misuse]:
    nothing: dict[str, ir.Loc] = {}
    for loc, operand, may_be_none in _operands(func_ir, text):
        definition = guard(get_definition, func_ir, operand)
        if find_callee(value := constant_of(func_ir, operand)) is not None:
            if safe_repr(value) in text:
                is_item = getattr(definition, "op", "") == "getitem"
                name = repr(value.__name__) if is_item else _name(definition)
                shown = f"lib[{name}]" if is_item else name.strip("'")
                diagnosis = f"kernels can call the object {name}, and cannot store it or calculate with it"
                yield _used_as_value(loc, name.strip("'"), value, diagnosis, f"call it: {shown}(...)")
            continue
        called = definition.func if isinstance(definition, ir.Expr) and definition.op == "call" else None
        if called is None or find_callee(constant_of(func_ir, called)) is None:
            continue
        if _OTHER_STRUCT.search(text):
            yield Misuse(
                loc,
                "a struct cannot be assigned to an element of an array of records of another type",
                "assign its members, x[i]['name'] = r.name; or make the array with the dtype of that struct",
            )
        if may_be_none and _NONE_GIVEN.search(text):
            function = guard(get_definition, func_ir, called)
            yield from _without_returns(constant_of(func_ir, called), _name(function), loc)
            nothing[_name(function)] = loc
    if nothing:
        yield Misuse(
            next(iter(nothing.values())),
            f"{' or '.join(nothing)} returns nothing, and its result is used",
            "call it as a statement of its own, or let the function return the value that the kernel uses",
        )


def _without_returns(obj: Any, name: str, loc: ir.Loc) -> Iterator[Misuse]:
    """Yield the misuse of the result of *obj*, which the kernel calls *name*, if its own hook names a C function
    without the type of the result."""
    hook: Any = getattr(obj, CALL_HOOK, None)
    if not (place := place_of(hook)) or str(getattr(hook, "__module__", "")).startswith(_OURS):
        return
    core = typeof(obj, Purpose.constant)
    asked = [core, *(each.calls for each in getattr(core, "elsewhere", {}).values())]
    answers = [answer for each in asked for answer in getattr(each, "answers", {}).values()]
    symbols = [each.symbol for each in answers if getattr(each, "returns", "") == types.none]
    if symbols:
        yield Misuse(
            loc,
            f"Extern({symbols[-1]!r}) has no returns=, and the kernel uses the result of {name}"
            f"\n  __numba_cuda_call__ is defined at: {place}",
            f"write the type that C returns, Extern({symbols[-1]!r}, returns=...); if it is void, call it as a"
            " statement of its own",
        )


def _name(function: Any) -> str:
    if isinstance(function, ir.Expr):  # getattr() with a default does not work for it
        return repr(function.attr) if function.op == "getattr" else "the object"
    return repr(function.name) if isinstance(function, (ir.Global, ir.FreeVar)) else "the object"


def _operands(func_ir: ir.FunctionIR, text: str) -> Iterator[tuple[ir.Loc, ir.Var, bool]]:
    """Yield the operands of the statements whose operation *text* says is not implemented, with their places, and
    whether they may be the one that is ``None``: *text* tells for operations of two."""
    for block in func_ir.blocks.values():
        for statement in block.body:
            value: Any = statement.value if isinstance(statement, ir.Assign) else None
            if isinstance(statement, (ir.SetItem, ir.StaticSetItem)):
                name, operands = "setitem", statement.list_vars()
            elif getattr(value, "op", "") in _OPERATORS:
                name, operands = value.fn.__name__, value.list_vars()
            elif getattr(value, "op", "") == "call":
                name = getattr(constant_of(func_ir, value.func), "__name__", "")
                operands = [each for each in value.list_vars() if each is not value.func]
            else:
                name, operands = getattr(value, "op", ""), value.list_vars() if isinstance(value, ir.Expr) else []
            if operands and re.search(rf"(?:>>> |lowering ){re.escape(name)}\b", text):
                given = re.search(rf">>> {re.escape(name)}\((none)?.*?(, none)?\)$", text, re.MULTILINE)
                is_none = tuple(map(bool, given.groups())) if given and len(operands) == 2 else ()
                for number, operand in enumerate(operands):
                    yield statement.loc, operand, is_none[number] if any(is_none) else True


def _misused_constant(name: str, value: Any, loc: ir.Loc, text: str) -> Iterator[Misuse]:
    if isinstance(value, (list, dict)):
        if _has_called_objects(value.values() if isinstance(value, dict) else value):
            yield Misuse(
                loc,
                f"kernels cannot call objects in a {type(value).__name__}: {name!r}",
                _NAMED if isinstance(value, dict) else _IN_TUPLE,
            )
    elif f"'{name}'" not in text:
        return
    elif isinstance(value, VariableSource):
        yield Misuse(
            loc,
            f"kernels cannot use the autolink.Variable {name!r} by its name: it is a variable of C++",
            "declare it extern in C++, and call a function that reads or writes it",
        )
    elif inspect.isroutine(value) and str(value.__module__).startswith(_OURS):
        yield Misuse(loc, f"kernels cannot call {value.__qualname__}() of numba-cuda-autolink", _CALL_BEFORE)
    elif inspect.isclass(value):
        has_hook = any(hasattr(value, name) for name in (HOOK, CALL_HOOK)) and find_callee(value) is None
        if has_hook or value.__module__.startswith(_OURS):
            yield Misuse(loc, f"kernels cannot make objects: {value.__qualname__} is called in one", _MAKE_BEFORE)
    elif isinstance(value, pytypes.FunctionType):
        if _calls_objects(value):
            yield Misuse(
                loc,
                f"kernels cannot call the Python function {name!r}: it is not a device function",
                "decorate it with @cuda.jit(device=True), or write cuda.jit(device=True)(lambda ...)",
            )
    elif isinstance(value, functools.partial):
        if _has_called_objects([value.func, *value.args, *value.keywords.values()]):
            yield Misuse(
                loc,
                f"kernels cannot call functools.partial: {name!r}",
                "write a device function that passes these arguments",
            )
    elif hasattr(type(value), CALL_HOOK) and find_callee(value) is None and _UNTYPED.search(text):
        kind, near = type(value).__qualname__, misspelt_hook(value, HOOK)
        yield Misuse(
            loc,
            f"kernels cannot call {name!r}: {kind} has {CALL_HOOK}, but no {HOOK}",
            f"derive {kind} from autolink.DeviceCallable, and {f'rename {near} to' if near else 'define'} {HOOK}",
        )
    elif find_callee(value) is None and _UNTYPED.search(text) and (near := misspelt_hook(value, HOOK)):
        kind = type(value).__qualname__
        yield Misuse(
            loc,
            f"kernels cannot call {name!r}: {kind} has {near}, which is no hook",
            f"derive {kind} from autolink.DeviceCallable, rename {near} to {HOOK}, and define {CALL_HOOK}",
        )
    elif find_callee(value) is not None and _UNTYPED.search(text):
        kind = type(value).__qualname__
        yield Misuse(
            loc,
            f"kernels cannot call {name!r}: {kind} has {HOOK}, but no Numba type",
            f"derive {kind} from autolink.DeviceCallable and define __numba_cuda_call__, or register a Numba type"
            " for it (numba.cuda.extending.typeof_impl)",
        )


def _chosen(name: str, called: list[Any], definitions: list[Any]) -> Iterator[Misuse]:
    if len({id(each) for each in called}) > 1:
        what = "a conditional expression" if name.startswith("$") else f"the variable {name!r}"
        yield Misuse(
            definitions[-1].loc,
            f"{what} stands for one called object or another, chosen while the kernel runs",
            "call each object in a branch of its own: y = f(x) if condition else g(x)",
        )


def _has_called_objects(elements: Any) -> bool:
    return any(find_callee(each) is not None for _, each in zip(range(_MOST_ELEMENTS), elements, strict=False))


def _calls_objects(function: pytypes.FunctionType) -> bool:
    names = inspect.getclosurevars(function)
    return _has_called_objects([*names.nonlocals.values(), *names.globals.values()])
