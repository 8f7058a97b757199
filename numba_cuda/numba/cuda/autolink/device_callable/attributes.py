# SPDX-License-Identifier: BSD-2-Clause
"""Attributes of device callables as constants of kernels."""

from __future__ import annotations

import contextlib
from types import MethodType
from typing import Any

from numba.cuda.core import ir
from numba.cuda.core.consts import ConstantInference
from numba.cuda.core.errors import TypingError
from numba.cuda.core.rewrites import Rewrite, register_rewrite
from numba.cuda.cudadrv.external_code.safe_repr import safe_repr
from numba.cuda.extending import infer_getattr
from numba.cuda.typing.templates import AttributeTemplate

from ..protocol.call_sites import constant_of
from ..protocol.callee import attribute_of
from .constants import as_constant, constant_type
from .numba_types import DeviceCallableType
from .objects import DeviceCallable, type_name


def attribute(owner: Any, name: str) -> tuple[Any, Any]:
    """Return the attribute *name* of the object *owner* as a constant, and its Numba type. Raise `TypingError` if there
    is no such attribute, or it cannot be a constant."""
    try:
        value = as_constant(getattr(owner, name))
    except Exception as error:
        if not isinstance(error, AttributeError) or hasattr(type(owner), name):  # a property that raised
            raise _error(owner, f".{name} raised {type(error).__name__}: {error}") from error
        public = sorted(each for each in {*dir(owner)} - {*dir(DeviceCallable)} if not each.startswith("_"))
        raise _error(owner, f" has no attribute {name!r}", f"attributes: {', '.join(public) or 'none'}") from None
    if isinstance(value, DeviceCallable) and getattr(owner, name) is not value:
        # Each object would be a constant of its own, and would be deleted before the call is compiled.
        advice = "what to do: keep the object, for example with functools.cached_property"
        raise _error(owner, f".{name} makes a new object each time it is read", advice)
    try:
        numba_type = constant_type(value)
    except Exception:  # a mock or a proxy, which is not of the type that it says
        numba_type = None
    if numba_type is None:
        raise _error(owner, *_not_constant(name, value))
    return value, numba_type


def _error(owner: Any, diagnosis: str, advice: str = "") -> TypingError:
    lines = [f"{type_name(owner)}{diagnosis}", f"object: {safe_repr(owner)}", advice]
    return TypingError("\n  ".join(filter(None, lines)))


def _not_constant(name: str, value: Any) -> tuple[str, str]:
    """Return why *value* cannot be a constant, and what to do."""
    if isinstance(value, MethodType):
        advice = "what to do: to call it in kernels, decorate it with @autolink.device_method"
        return f".{name} is a Python method", advice
    if attribute_of(value, "__cuda_array_interface__") is not None:
        return f".{name} is an array on the device, not a constant", "what to do: pass it to the kernel as an argument"
    expected = "expected: a number, string, tuple, dtype, NumPy array, device function or other device callable"
    return f".{name} is of type {type(value).__qualname__}, which cannot be a constant of a kernel", expected


@infer_getattr
class _Attributes(AttributeTemplate):
    key = DeviceCallableType

    def generic_resolve(self, typ: Any, name: str) -> Any:
        # Numba looks for __call__ and other names that may be missing.
        return None if name.startswith("__") else attribute(typ.numba_cuda_link_object, name)[1]


@register_rewrite("before-inference")
class _AttributesAsGlobals(Rewrite):
    """Replaces an attribute of a known object with a global of its value.

    Without this, its type would be the same, but known too late to prune the branches that depend on it.
    """

    def match(self, func_ir: Any, block: Any, typemap: Any, calltypes: Any) -> bool:
        """Whether *block* reads such attributes."""
        self._func_ir, self._block = func_ir, block
        self._found = {}
        for statement in block.find_insts(ir.Assign):
            expr = statement.value
            is_attribute = isinstance(expr, ir.Expr) and expr.op == "getattr"
            owner = constant_of(func_ir, expr.value) if is_attribute else None
            if isinstance(owner, DeviceCallable):
                with contextlib.suppress(TypingError):  # typing reports it at the line that reads the attribute
                    value, _ = attribute(owner, expr.attr)
                    # A branch may depend on it, or on an attribute of it.
                    if value is None or isinstance(value, (bool, int, float, str, DeviceCallable)):
                        self._found[statement] = ir.Global(f"{type(owner).__qualname__}.{expr.attr}", value, expr.loc)
        return bool(self._found)

    def apply(self) -> Any:
        """Return the block with the attributes as globals."""
        for statement, replacement in self._found.items():
            definitions = self._func_ir._definitions[statement.target.name]
            definitions[definitions.index(statement.value)] = replacement
            statement.value = replacement
        # The old one has cached which variables are not constants.
        self._func_ir._consts = ConstantInference(self._func_ir)
        return self._block
