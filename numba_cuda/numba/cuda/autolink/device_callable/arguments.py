# SPDX-License-Identifier: BSD-2-Clause
"""Binds the arguments of a call in a kernel to the parameters of its ``__numba_cuda_call__``."""

from __future__ import annotations

import contextlib
import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numba.cuda import types
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr

from ..frontend_api.front_end import NUMBA_CUDA, others
from ..protocol.callee import place_of
from .constants import as_constant, constant_type

_Parameter = inspect.Parameter


class ArgumentError(TypeError):
    """The arguments of a call do not fit the parameters."""


@dataclass(frozen=True)
class CallArguments:
    """The Numba types of a call's arguments, by parameter and in their order, defaults included; those of a parameter
    ``*args`` are named ``args_0``, ``args_1`` and so on. ``as_given``, the types of constants are literal."""

    named: Mapping[str, Any]
    as_given: Mapping[str, Any] = field(compare=False)
    pysig: inspect.Signature
    _bound: inspect.BoundArguments

    @property
    def types(self) -> tuple[Any, ...]:
        return tuple(self.named.values())

    def apply(self, function: Callable[..., Any], translate: Callable[[Any], Any] | None = None) -> Any:
        """Call *function* with the types, by position and by keyword as in the kernel; *translate* changes each."""
        if translate is None:
            return function(*self._bound.args, **self._bound.kwargs)
        named = {name: translate(each) for name, each in self._bound.kwargs.items()}
        return function(*map(translate, self._bound.args), **named)

    @classmethod
    def bind(cls, function: Callable[..., Any], args: Sequence[Any], kws: Mapping[str, Any]) -> CallArguments:
        """Bind the types of a call's positional and keyword arguments, or raise `ArgumentError`."""
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            raise ArgumentError(
                f"__numba_cuda_call__ is not a function with parameters: {safe_repr(function)}\n"
                "  what to do: make it a method, def __numba_cuda_call__(self, ...), and no property"
            ) from None
        _check_keywords(signature, kws)
        try:
            bound = signature.bind(*args, **kws)
        except TypeError as error:
            change = place = ""
            if getattr(function, "__signature__", None) is None:
                change = "; or give __numba_cuda_call__ other parameters, after self"
                place = f"\n  __numba_cuda_call__ is defined at: {place_of(function)}"
            names = _parameters_of_method(function)
            if names and names[0] not in ("self", "cls"):
                raise ArgumentError(
                    f"self is missing: {names[0]!r} stands for the object in {function.__name__}\n"
                    f"  what to do: write def {function.__name__}({', '.join(['self', *names])})"
                ) from None
            raise ArgumentError(
                f"{error}; its parameters are {_show(signature)}{place}\n"
                f"  what to do: pass one argument for each{change}"
            ) from None
        named: dict[str, Any] = {}
        as_given: dict[str, Any] = {}
        expanded: list[inspect.Parameter] = []
        for name, parameter in signature.parameters.items():
            if parameter.kind is _Parameter.VAR_KEYWORD:
                raise ArgumentError(f"the parameter **{name} is not supported: keywords need names")
            if parameter.kind is _Parameter.VAR_POSITIONAL:
                elements = bound.arguments.get(name, ())
                given = tuple(_argument_type(parameter, element, function) for element in elements)
                as_given |= {f"{name}_{i}": element for i, element in enumerate(elements)}
                expanded += [parameter.replace(name=f"{name}_{i}") for i in range(len(given))]
                named |= {f"{name}_{i}": element for i, element in enumerate(given)}
                bound.arguments[name] = given
            else:
                argument = bound.arguments[name] if name in bound.arguments else _type_of_default(parameter)
                as_given[name] = argument
                bound.arguments[name] = named[name] = _argument_type(parameter, argument, function)
                expanded.append(parameter)
        return cls(named, as_given, _positional(expanded), bound)


def _parameters_of_method(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the parameters of a method, with that of the object; none of another *function*."""
    code = getattr(getattr(function, "__func__", None), "__code__", None)
    return code.co_varnames[: code.co_argcount] if code is not None else ()


def _check_keywords(signature: inspect.Signature, kws: Mapping[str, Any]) -> None:
    parameters = signature.parameters
    if any(each.kind is _Parameter.VAR_KEYWORD for each in parameters.values()):
        return
    is_unnamed = all(
        each.kind in (_Parameter.VAR_POSITIONAL, _Parameter.POSITIONAL_ONLY) for each in parameters.values()
    )
    for name in kws:
        if is_unnamed:
            raise ArgumentError(
                f"the argument {name}=... has a name, but all are passed by position\n"
                f"  what to do: pass it by its position, without '{name}='"
            )
        if name not in parameters:
            near = difflib.get_close_matches(name, parameters, n=1)
            hint = f" did you mean {near[0]!r}?" if near else ""
            raise ArgumentError(f"there is no parameter {name!r};{hint} its parameters are {_show(signature)}")


def _show(signature: inspect.Signature) -> str:
    named = [each.replace(annotation=_Parameter.empty) for each in signature.parameters.values()]
    return str(inspect.Signature(named))


def _argument_type(parameter: inspect.Parameter, argument: Any, function: Callable[..., Any]) -> Any:
    if isinstance(argument, types.Omitted):  # the default of a device function's own parameter, passed on
        argument = constant_type(as_constant(argument.value))
    if not _requires_literal(parameter, function):
        return _without_literals(argument)
    if isinstance(argument, types.Literal):
        return argument
    raise ArgumentError(f"argument {parameter.name!r} must be a constant that is known at compile time, got {argument}")


def _without_literals(argument: Any) -> Any:
    """Return the type of a constant number's value. Constants of other kinds, such as strings, have no other type."""
    if isinstance(argument, (types.IntegerLiteral, types.BooleanLiteral)):
        return types.unliteral(argument)
    if isinstance(argument, (types.Tuple, types.UniTuple)):
        elements = tuple(_without_literals(element) for element in argument)
        return argument if elements == tuple(argument) else types.Tuple(elements)
    return argument


def _requires_literal(parameter: inspect.Parameter, function: Callable[..., Any]) -> bool:
    annotation = parameter.annotation
    if isinstance(annotation, str):  # from __future__ import annotations
        with contextlib.suppress(Exception):  # a name that exists only for type checkers
            annotation = eval(annotation, getattr(inspect.unwrap(function), "__globals__", {}))
    return any(annotation is each.types.Literal for each in (NUMBA_CUDA, *others()))


def _type_of_default(parameter: inspect.Parameter) -> Any:
    if (default_type := constant_type(as_constant(parameter.default))) is not None:
        return default_type
    default = safe_repr(parameter.default)
    raise ArgumentError(f"the default of parameter {parameter.name!r} cannot be a constant of a kernel: {default}")


def _positional(parameters: Sequence[inspect.Parameter]) -> inspect.Signature:
    """Return a signature that Numba's lowering can fold arguments into: it mishandles keyword-only parameters."""
    positional: list[inspect.Parameter] = []
    for parameter in parameters:
        default = as_constant(parameter.default)
        if default is _Parameter.empty and positional and positional[-1].default is not _Parameter.empty:
            default = None  # Python requires a default after another one; it is not used
        positional.append(_Parameter(parameter.name, _Parameter.POSITIONAL_OR_KEYWORD, default=default))
    return inspect.Signature(positional)
