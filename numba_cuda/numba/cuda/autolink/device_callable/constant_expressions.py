# SPDX-License-Identifier: BSD-2-Clause
"""Expressions of device callables that are constants of kernels: attributes, ``len(obj)``, ``obj[i]``, comparisons.

Where the IR names the object, a global of the value replaces the expression before types are inferred. Without this,
its type would be the same, but known too late to prune the branches that depend on it. Elsewhere (an argument of a
device function, an element of a tuple) the object is known by its Numba type.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any, NoReturn

from numba.cuda import types
from numba.cuda.core.consts import ConstantInference
from numba.cuda.core.errors import TypingError
from numba.cuda.core.rewrites import Rewrite, register_rewrite
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr
from numba.cuda.extending import infer_getattr, lower_builtin, typeof_impl
from numba.cuda.typing.templates import AbstractTemplate, AttributeTemplate, infer_global, signature

from numba_cuda_autolink.printable_texts import did_you_mean

from ..c_abi.c_types import CABIError
from ..frontend_api.front_end import NUMBA_CUDA
from ..protocol.call_sites import constant_of
from ..protocol.callee import attribute_of
from ..protocol.errors import typing_error
from .base_class import DeviceCallable, type_name
from .constants import as_constant, constant_type
from .object_type import DeviceCallableType

# The comparisons as text, and the methods that define one, on either side.
COMPARISONS: dict[Any, tuple[str, tuple[str, ...]]] = {
    operator.eq: ("==", ("__eq__",)),
    operator.ne: ("!=", ("__ne__", "__eq__")),
    operator.lt: ("<", ("__lt__", "__gt__")),
    operator.le: ("<=", ("__le__", "__ge__")),
    operator.gt: (">", ("__gt__", "__lt__")),
    operator.ge: (">=", ("__ge__", "__le__")),
}


def _value(function: Any, *operands: Any) -> tuple[Any, Any] | None:
    """Return the constant ``function(*operands)`` and its Numba type; None if no object among them defines it."""
    owner = next((each for each in operands if isinstance(each, DeviceCallable)), None)
    if function in COMPARISONS:
        sign, methods = COMPARISONS[function]
        text = " ".join(("self", sign, "other") if owner is operands[0] else ("other", sign, "self"))
        defined = any(_defines(each, name) for each in operands for name in methods)
        return constant(owner, f": {text}", lambda: function(*operands)) if defined else None
    if owner is not operands[0]:
        return None
    text = ": len(self)" if function is len else f"[{operands[1]!r}]"
    name = "__len__" if function is len else "__getitem__"
    return constant(owner, text, lambda: function(*operands)) if _defines(owner, name) else None


def _defines(obj: Any, name: str) -> bool:
    return isinstance(obj, DeviceCallable) and getattr(type(obj), name, None) is not getattr(object, name, None)


class ConstantsAsGlobals:
    """Replaces an expression of a known object with a global of its value, in the IR of one *vocabulary*."""

    vocabulary = NUMBA_CUDA
    constant_inference: Any = ConstantInference

    def match(self, func_ir: Any, block: Any, typemap: Any, calltypes: Any) -> bool:
        self._func_ir, self._block = func_ir, block
        self._found = {}
        words = self.vocabulary.ir
        for statement in block.find_insts(words.Assign):
            expr = statement.value
            try:
                found = self._constant(expr) if isinstance(expr, words.Expr) else None
            except TypingError as error:
                if expr.op != "getattr":  # typing reports it at the line of the expression, unless a branch is pruned
                    self._found[statement] = words.Const(Refused(str(error)), expr.loc)
                continue
            # A branch may depend on it, or on an attribute of it.
            if found is not None and (found[0] is None or isinstance(found[0], _BRANCHED_ON)):
                name = expr.attr if expr.op == "getattr" else "a value"
                self._found[statement] = words.Global(f"{name} of an object", found[0], expr.loc)
        return bool(self._found)

    def _constant(self, expr: Any) -> tuple[Any, Any] | None:
        if expr.op == "getattr":
            owner = self._known(expr.value)
            return attribute(owner, expr.attr) if isinstance(owner, DeviceCallable) else None
        if expr.op == "call" and len(expr.args) == 1 and not expr.kws and self._known(expr.func) is len:
            return _value_of_known(len, self._known(expr.args[0]))
        if expr.op == "static_getitem":
            return _value_of_known(operator.getitem, self._known(expr.value), expr.index)
        if expr.op == "getitem":
            owner, index = self._known(expr.value), self._known(expr.index)
            if index is None and _defines(owner, "__getitem__"):
                raise _not_constant_index(owner)
            return _value_of_known(operator.getitem, owner, index)
        if expr.op == "binop" and expr.fn in COMPARISONS:
            return _value_of_known(expr.fn, self._known(expr.lhs), self._known(expr.rhs))
        return None

    def _known(self, var: Any) -> Any:
        return constant_of(self._func_ir, var, self.vocabulary)

    def apply(self) -> Any:
        for statement, replacement in self._found.items():
            definitions = self._func_ir._definitions[statement.target.name]
            # Numba's own rewrite of a getitem leaves its definition as it was.
            (number,) = (n for n, each in enumerate(definitions) if _is_one(each, statement.value))
            definitions[number] = statement.value = replacement
        # The old one has cached which variables are not constants.
        self._func_ir._consts = self.constant_inference(self._func_ir)
        return self._block


@register_rewrite("before-inference")
class _ConstantsAsGlobals(ConstantsAsGlobals, Rewrite):
    """The rewrite of numba-cuda."""


def _is_one(definition: Any, expr: Any) -> bool:
    if definition is expr:
        return True
    operations = getattr(definition, "op", None), expr.op
    return operations == ("getitem", "static_getitem") and definition.index.name == expr.index_var.name


_BRANCHED_ON = (bool, int, float, str, DeviceCallable)


@dataclass(frozen=True)
class Refused:
    """An expression that has no constant value, for the reason *why*."""

    why: str


@typeof_impl.register(Refused)
def _typeof(refused: Refused, context: Any) -> NoReturn:
    raise ValueError(refused.why)  # which Numba turns into an error at the line of the expression


_CONSTANT_INDEX = "index with a constant, or with the variable of a loop over literal_unroll"


def _not_constant_index(owner: Any) -> TypingError:
    if hasattr(type(owner), "_cxx_text"):  # which says that it has no index at all
        _value(operator.getitem, owner, None)
    return typing_error(
        f"an element of {type_name(owner)} needs a constant index\n  object: {safe_repr(owner)}\n"
        f"  what to do: {getattr(type(owner), '_constant_index', _CONSTANT_INDEX)}"
    )


def _value_of_known(function: Any, *operands: Any) -> tuple[Any, Any] | None:
    return None if any(each is None for each in operands) else _value(function, *operands)


def value_of_types(function: Any, numba_types: Sequence[Any]) -> tuple[Any, Any] | None:
    """Return the constant of operands of these Numba types; None if it is not one."""
    if not any(isinstance(each, DeviceCallableType) for each in numba_types):
        return None
    operands = []
    for each in numba_types:
        if isinstance(each, DeviceCallableType):
            operands.append(each.numba_cuda_link_object)
        elif isinstance(each, types.Literal):
            operands.append(each.literal_value)
        elif each == types.none:
            operands.append(None)
        elif function is operator.getitem and operands:
            raise _not_constant_index(operands[0])
        else:
            return None
    return _value(function, *operands)


def _register(function: Callable[..., Any], count: int) -> None:
    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            found = value_of_types(function, args)
            return None if found is None else signature(found[1], *args)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        found = value_of_types(function, sig.args)
        assert found is not None
        return context.get_constant_generic(builder, sig.return_type, found[0])

    infer_global(function)(Template)
    others = [types.Any] * (count - 1)
    lower_builtin(function, DeviceCallableType, *others)(lower)
    if function in COMPARISONS:
        lower_builtin(function, *others, DeviceCallableType)(lower)
        lower_builtin(function, DeviceCallableType, DeviceCallableType)(lower)


for _function, _count in ((len, 1), (operator.getitem, 2), *((each, 2) for each in COMPARISONS)):
    _register(_function, _count)


def attribute(owner: Any, name: str) -> tuple[Any, Any]:
    """Return the attribute *name* of *owner* as a constant, and its Numba type, or raise `TypingError`."""

    def read() -> Any:
        try:
            return getattr(owner, name)
        except AttributeError as error:
            if hasattr(type(owner), name):  # a property that raised
                raise
            if hasattr(type(owner), "__getattr__"):  # what it has is not in dir()
                raise _error(owner, str(error)) from None
            public = sorted(each for each in {*dir(owner)} - {*dir(DeviceCallable)} if not each.startswith("_"))
            meant = did_you_mean(name, public).removeprefix("; ")
            advice = f"attributes: {', '.join(public) or 'none'}" + (f"\n  what to do: {meant}" if meant else "")
            raise _error(owner, f"{type_name(owner)} has no attribute {name!r}\n  {advice}") from None

    return constant(owner, f".{name}", read)


def constant(owner: Any, what: str, read: Callable[[], Any]) -> tuple[Any, Any]:
    """Return what *read* returns as a constant, and its Numba type; *what* of the object *owner* it reads, as text.
    Raise `TypingError` if *read* raises, or it cannot be a constant."""
    try:
        value = as_constant(read())
    except TypingError:
        raise
    except Exception as error:
        raised = "" if isinstance(error, CABIError) else f"{type_name(owner)}{what} raised {type(error).__name__}: "
        raise _error(owner, f"{raised}{error}") from error
    if isinstance(value, DeviceCallable) and read() is not value:
        # Each object would be a constant of its own, and would be deleted before the call is compiled.
        advice = "what to do: keep the object, for example with functools.cached_property"
        raise _error(owner, f"{type_name(owner)}{what} makes a new object each time it is read\n  {advice}")
    try:
        numba_type = constant_type(value)
    except Exception:  # a mock or a proxy, which is not of the type that it says
        numba_type = None
    if numba_type is None:
        raise _error(owner, f"{type_name(owner)}{_not_constant(what, value)}")
    return value, numba_type


def _error(owner: Any, diagnosis: str) -> TypingError:
    first, *advice = diagnosis.split("\n")
    return typing_error("\n".join([first, f"  object: {safe_repr(owner)}", *advice]))


def _not_constant(what: str, value: Any) -> str:
    if isinstance(value, MethodType):
        advice = "decorate it with @autolink.device_method, or call it outside of kernels"
        if hasattr(value.__self__, "_cxx_reads_files"):  # a library of C++
            advice = f"call it outside of kernels; a function of C++ with that name is lib[{value.__name__!r}]"
        return f"{what} is a Python method\n  what to do: {advice}"
    if attribute_of(value, "__cuda_array_interface__") is not None:
        return f"{what} is an array on the device, not a constant\n  what to do: pass it to the kernel as an argument"
    expected = "expected: a number, string, tuple, dtype, NumPy array, device function or other device callable"
    return f"{what} is of type {type(value).__qualname__}, which cannot be a constant of a kernel\n  {expected}"


@infer_getattr
class _Attributes(AttributeTemplate):
    key = DeviceCallableType

    def generic_resolve(self, typ: Any, name: str) -> Any:
        # Numba looks for __call__ and other names that may be missing.
        return None if name.startswith("__") else attribute(typ.numba_cuda_link_object, name)[1]
