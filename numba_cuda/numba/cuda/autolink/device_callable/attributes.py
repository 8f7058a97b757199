# SPDX-License-Identifier: BSD-2-Clause
"""Attributes of device callables as constants of kernels."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr
from numba.cuda.extending import infer_getattr
from numba.cuda.typing.templates import AttributeTemplate

from ..protocol.callee import attribute_of
from ..protocol.errors import typing_error
from .base_class import DeviceCallable, type_name
from .constants import as_constant, constant_type
from .object_type import DeviceCallableType


def attribute(owner: Any, name: str) -> tuple[Any, Any]:
    """Return the attribute *name* of the object *owner* as a constant, and its Numba type. Raise `TypingError` if
    there is no such attribute, or it cannot be a constant."""

    def read() -> Any:
        try:
            return getattr(owner, name)
        except AttributeError as error:
            if hasattr(type(owner), name):  # a property that raised
                raise
            if hasattr(type(owner), "__getattr__"):  # what it has is not in dir()
                raise _error(owner, f": {error}") from None
            public = sorted(each for each in {*dir(owner)} - {*dir(DeviceCallable)} if not each.startswith("_"))
            advice = f"attributes: {', '.join(public) or 'none'}"
            raise _error(owner, f" has no attribute {name!r}", advice) from None

    return constant(owner, f".{name}", read)


def constant(owner: Any, what: str, read: Callable[[], Any]) -> tuple[Any, Any]:
    """Return what *read* returns as a constant, and its Numba type; *what* of the object *owner* it reads, as text.
    Raise `TypingError` if *read* raises, or it cannot be a constant."""
    try:
        value = as_constant(read())
    except TypingError:
        raise
    except Exception as error:
        raise _error(owner, f"{what} raised {type(error).__name__}: {error}") from error
    if isinstance(value, DeviceCallable) and read() is not value:
        # Each object would be a constant of its own, and would be deleted before the call is compiled.
        advice = "what to do: keep the object, for example with functools.cached_property"
        raise _error(owner, f"{what} makes a new object each time it is read", advice)
    try:
        numba_type = constant_type(value)
    except Exception:  # a mock or a proxy, which is not of the type that it says
        numba_type = None
    if numba_type is None:
        raise _error(owner, *_not_constant(what, value))
    return value, numba_type


def _error(owner: Any, diagnosis: str, advice: str = "") -> TypingError:
    lines = [f"{type_name(owner)}{diagnosis}", f"object: {safe_repr(owner)}", advice]
    return typing_error("\n  ".join(filter(None, lines)))


def _not_constant(what: str, value: Any) -> tuple[str, str]:
    """Return why *value* cannot be a constant, and what to do."""
    if isinstance(value, MethodType):
        advice = "decorate it with @autolink.device_method, or call it outside of kernels"
        if hasattr(value.__self__, "cxx_reads_files"):  # a library of C++
            advice = f"call it outside of kernels; a function of C++ with that name is lib[{value.__name__!r}]"
        return f"{what} is a Python method", f"what to do: {advice}"
    if attribute_of(value, "__cuda_array_interface__") is not None:
        return f"{what} is an array on the device, not a constant", "what to do: pass it to the kernel as an argument"
    expected = "expected: a number, string, tuple, dtype, NumPy array, device function or other device callable"
    return f"{what} is of type {type(value).__qualname__}, which cannot be a constant of a kernel", expected


@infer_getattr
class _Attributes(AttributeTemplate):
    key = DeviceCallableType

    def generic_resolve(self, typ: Any, name: str) -> Any:
        # Numba looks for __call__ and other names that may be missing.
        return None if name.startswith("__") else attribute(typ.numba_cuda_link_object, name)[1]
