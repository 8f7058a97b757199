# SPDX-License-Identifier: BSD-2-Clause
"""Attributes of device callables, as the constants that kernels see."""

from __future__ import annotations

from collections.abc import Iterator
from types import MethodType, ModuleType
from typing import Any

from numba.cuda.core import ir
from numba.cuda.core.consts import ConstantInference
from numba.cuda.core.errors import TypingError
from numba.cuda.core.rewrites import Rewrite, register_rewrite
from numba.cuda.cudadrv.external_code.safe_repr import safe_repr
from numba.cuda.extending import infer_getattr
from numba.cuda.typing.templates import AttributeTemplate

from .constants import as_constant, constant_type
from .numba_types import DeviceCallableType
from .objects import DeviceCallable


def attribute(owner: Any, name: str) -> tuple[Any, Any]:
    """The attribute *name* of the object *owner* as a constant, and its Numba type.

    Raises
    ------
    TypingError
        If there is none, or it cannot be a constant.
    """
    try:
        value = as_constant(getattr(owner, name))
    except AttributeError as error:
        if hasattr(type(owner), name):  # a property that raised
            raise TypingError(f"{safe_repr(owner)}.{name} raised AttributeError: {error}") from error
        raise TypingError(
            f"{safe_repr(owner)} has no attribute {name!r}; it has {', '.join(_names(owner)) or 'none'}"
        ) from None
    except Exception as error:
        raise TypingError(f"{safe_repr(owner)}.{name} raised {type(error).__name__}: {error}") from error
    if isinstance(value, DeviceCallable) and getattr(owner, name) is not value:
        # Each would be another constant with code of its own, and gone before the call is compiled.
        raise TypingError(
            f"{safe_repr(owner)}.{name} makes a new object each time it is read: keep it, for example with"
            " functools.cached_property"
        )
    numba_type = constant_type(value)
    if numba_type is None:
        raise TypingError(_not_constant(owner, name, value))
    return value, numba_type


def _names(owner: Any) -> Iterator[str]:
    for name in sorted({*dir(owner)} - {*dir(DeviceCallable)}):
        if not name.startswith("_"):
            yield name


def _not_constant(owner: Any, name: str, value: Any) -> str:
    where = f"{safe_repr(owner)}.{name}"
    if isinstance(value, MethodType):
        return f"{where} is a Python method: to call it in kernels, decorate it with @autolink.device_method"
    if hasattr(value, "__cuda_array_interface__"):
        return f"{where} is an array on the device, which is no constant: pass it to the kernel as an argument"
    return (
        f"{where} is of type {type(value).__qualname__}, which cannot be a constant of a kernel; numbers, strings,"
        " tuples, dtypes, NumPy arrays, device functions and other device callables can"
    )


@infer_getattr
class _Attributes(AttributeTemplate):
    key = DeviceCallableType

    def generic_resolve(self, typ: Any, name: str) -> Any:
        if name.startswith("__"):
            # Numba looks for __call__ and others that it can do without.
            return None
        return attribute(typ.numba_cuda_link_object, name)[1]


@register_rewrite("before-inference")
class _AttributesAsGlobals(Rewrite):
    """Turns an attribute of a known object into a global of its value.

    Its type would be the same without this, but known too late for the branches that depend on it to be pruned.
    """

    def match(self, func_ir: Any, block: Any, typemap: Any, calltypes: Any) -> bool:
        """Whether *block* reads such attributes."""
        self._func_ir, self._block = func_ir, block
        self._found = {}
        for statement in block.find_insts(ir.Assign):
            expr = statement.value
            if isinstance(expr, ir.Expr) and expr.op == "getattr":
                owner = _global_value(func_ir, expr.value)
                if isinstance(owner, DeviceCallable) and _prunes(owner, expr.attr):
                    value, _ = attribute(owner, expr.attr)
                    self._found[statement] = ir.Global(f"{type(owner).__qualname__}.{expr.attr}", value, expr.loc)
        return bool(self._found)

    def apply(self) -> Any:
        """The block with the attributes as globals."""
        for statement, replacement in self._found.items():
            definitions = self._func_ir._definitions[statement.target.name]
            definitions[definitions.index(statement.value)] = replacement
            statement.value = replacement
        # It remembers which variables are no constants.
        self._func_ir._consts = ConstantInference(self._func_ir)
        return self._block


def _global_value(func_ir: Any, var: Any) -> Any:
    """The Python value of a variable that is a global, or an attribute of a module that is one; None for others."""
    try:
        definition = func_ir.get_definition(var)
    except KeyError:
        return None
    if isinstance(definition, (ir.Global, ir.FreeVar)):
        return definition.value
    if isinstance(definition, ir.Expr) and definition.op == "getattr":
        owner = _global_value(func_ir, definition.value)
        return getattr(owner, definition.attr, None) if isinstance(owner, ModuleType) else None
    return None


def _prunes(owner: Any, name: str) -> bool:
    """Whether a branch may depend on the attribute: on itself, or on an attribute of it."""
    try:
        value, _ = attribute(owner, name)
    except TypingError:  # an error of the line that reads it, which typing reports
        return False
    return value is None or isinstance(value, (bool, int, float, str, DeviceCallable))
