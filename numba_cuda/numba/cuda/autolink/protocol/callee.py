# SPDX-License-Identifier: BSD-2-Clause
"""Objects with linkable code, and which object answers for a call."""

from __future__ import annotations

import inspect
import os
import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

from numba.cuda.cudadrv.external_code.safe_repr import safe_repr

HOOK = "__numba_cuda_link__"
KEY_HOOK = "__numba_cuda_link_key__"


class Callee:
    """An object with linkable code, told apart by identity.

    A bound method is told apart by the identities of its owner and its function, since Python makes a new object of it
    at every access.
    """

    __slots__ = ("_identity", "hook", "obj")

    def __init__(self, obj: Any, hook: Callable[..., Any]):
        self.obj = obj
        self.hook = hook
        self._identity = identity(obj)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Callee) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return safe_repr(self.obj)

    def __reduce__(self) -> Any:
        return _callee_again, (self.obj,)  # the hook comes with the object

    @property
    def name(self) -> str:
        """A short name: that of a function or class, of a method with its owner's type, or of an object's type."""
        named = self.obj if hasattr(self.obj, "__name__") else type(self.obj)
        owner = getattr(self.obj, "__self__", None)
        if owner is None or isinstance(owner, ModuleType):
            return str(named.__name__)
        return f"{getattr(owner, '__name__', type(owner).__name__)}.{named.__name__}"

    @property
    def link_key(self) -> Callable[..., Any] | None:
        """The object's ``__numba_cuda_link_key__``, if it has one that is its own."""
        return _own_attribute(self.obj, KEY_HOOK)

    @property
    def source_stamp(self) -> str:
        """File, size and time of the Python source of the hook; empty where there is none. A link key does not tell
        that its author changed what is generated for it."""
        code = getattr(inspect.unwrap(self.hook), "__code__", None)
        try:
            found = os.stat(code.co_filename)  # type: ignore[union-attr]
        except (AttributeError, OSError):
            return ""
        return f"{code.co_filename} ({found.st_size} bytes of {found.st_mtime_ns})"  # type: ignore[union-attr]


def _callee_again(obj: Any) -> Callee:
    found = find_callee(obj)
    if found is None:
        raise pickle.UnpicklingError(f"{safe_repr(obj)} has no {HOOK} any more")
    return found


def _is_method(obj: Any) -> bool:
    return hasattr(obj, "__self__") and hasattr(obj, "__func__")


def identity(obj: Any) -> tuple[int, int | None]:
    """What tells *obj* apart: its identity, of a method that of its owner and that of its function."""
    return (id(obj.__self__), id(obj.__func__)) if _is_method(obj) else (id(obj), None)


def find_callee(obj: Any) -> Callee | None:
    """Who answers for a call of *obj*: of a bound method the method itself, then its owner; of a dispatcher the
    dispatcher itself, then its Python function. None where nobody does."""
    for candidate in (obj, getattr(obj, "__self__", None), getattr(obj, "py_func", None)):
        if candidate is not None:
            hook = _own_attribute(candidate, HOOK)
            if hook is not None:
                return Callee(candidate, hook)
    return None


def _own_attribute(obj: Any, name: str) -> Callable[..., Any] | None:
    """The attribute *name* of *obj*; of a class only one that can be called on the class itself."""
    if inspect.isclass(obj):
        static = inspect.getattr_static(obj, name, None)
        if not isinstance(static, (classmethod, staticmethod)) and not hasattr(type(obj), name):
            return None
    return getattr(obj, name, None)
