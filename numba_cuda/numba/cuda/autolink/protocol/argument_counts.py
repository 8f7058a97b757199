# SPDX-License-Identifier: BSD-2-Clause
"""Calls of functions of a front end, of Python and of the user with another number of arguments than these take."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from numba.cuda.core import ir
from numba.cuda.core.ir_utils import get_definition, guard

from numba_cuda_autolink.printable_texts import did_you_mean

from .call_sites import constant_of
from .callee import find_callee

# The first line of the docstring of a function that is a class in Python.
_DOCUMENTED = re.compile(r"\w+\(([\w, =]*)\)(?:\n|$)")
_FRONT_ENDS = ("numba.cuda.", "numba_cuda_mlir.")
_CONTEXT = "typingctx"  # which a front end passes first


class Misuse(NamedTuple):
    """What a kernel does wrong at a place, and what to do."""

    loc: ir.Loc
    diagnosis: str
    remedy: str


def misfits(func_ir: ir.FunctionIR) -> Iterator[Misuse]:
    """Yield the calls that do not fit the parameters of their functions."""
    for block in func_ir.blocks.values():
        for call in block.find_exprs(op="call"):
            called = constant_of(func_ir, call.func)
            if called is None or call.vararg is not None or find_callee(called) is not None:
                continue
            signature = _signature(called)
            if signature is not None and (wrong := _misfit(signature, call)) is not None:
                shown = f"{_name(func_ir, call.func)}({', '.join(map(_shown, signature.parameters.values()))})"
                yield Misuse(call.loc, f"{shown} {wrong}", _remedy(signature, call))


def _name(func_ir: ir.FunctionIR, function: ir.Var) -> str:
    """Return the name of a *function* as the kernel has it, such as ``cuda.atomic.add``."""
    definition = guard(get_definition, func_ir, function)
    if isinstance(definition, ir.Expr) and definition.op == "getattr":
        return f"{_name(func_ir, definition.value)}.{definition.attr}"
    return str(getattr(definition, "name", function.name))


def _misfit(signature: inspect.Signature, call: ir.Expr) -> str | None:
    named = [name for name, _ in call.kws]
    if unknown := _unknown(signature, call):
        return f"has no parameter {unknown!r}{did_you_mean(unknown, signature.parameters)}"
    try:
        signature.bind(*call.args, **dict.fromkeys(named))
    except TypeError as error:
        return f"does not fit its call: {error}" if named else f"takes {_count(signature)}, got {len(call.args)}"
    return None


def _unknown(signature: inspect.Signature, call: ir.Expr) -> str | None:
    """Return the name of an argument of *call* that no parameter has."""
    if any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values()):
        return None
    return next((name for name, _ in call.kws if name not in signature.parameters), None)


def _remedy(signature: inspect.Signature, call: ir.Expr) -> str:
    takes = _positional(signature)
    if _unknown(signature, call):
        return "pass the arguments by position, or by these names"
    missing = [each.name for each in takes[len(call.args) :] if each.default is each.empty]
    missing = [name for name in missing if name not in dict(call.kws)]
    if missing:
        return f"pass {' and '.join(missing)}, too"
    return f"pass no more than {', '.join(each.name for each in takes)}" if takes else "pass no argument"


def _count(signature: inspect.Signature) -> str:
    takes = _positional(signature)
    required = sum(each.default is each.empty for each in takes)
    if any(each.kind is each.VAR_POSITIONAL for each in signature.parameters.values()):
        return f"at least {required} argument{'s' * (required != 1)}"
    most = "" if required == len(takes) else f" to {len(takes)}"
    return f"{required}{most} argument{'s' * (len(takes) != 1)}"


def _positional(signature: inspect.Signature) -> list[inspect.Parameter]:
    several = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return [each for each in signature.parameters.values() if each.kind not in several]


def _shown(parameter: inspect.Parameter) -> str:
    return str(parameter.replace(annotation=parameter.empty, default=parameter.empty)) + (
        "" if parameter.default is parameter.empty else f"={parameter.default}"
    )


def _signature(function: Any) -> inspect.Signature | None:
    """Return the parameters of a *function* as its users know them, ``None`` if they are not known."""
    function = getattr(function, "py_func", function)
    if inspect.isclass(function):
        return _documented(function) if str(function.__module__).startswith(_FRONT_ENDS) else None
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    parameters = [*signature.parameters.values()]
    is_intrinsic = bool(parameters) and parameters[0].name == _CONTEXT
    return signature.replace(parameters=parameters[1:]) if is_intrinsic else signature


def _documented(function: type) -> inspect.Signature | None:
    found = _DOCUMENTED.match((function.__doc__ or "").strip())
    if found is None:
        return None
    texts = [each.strip().partition("=") for each in found[1].split(",") if each.strip()]
    empty, kind = inspect.Parameter.empty, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(name, kind, default=value or empty) for name, _, value in texts])
