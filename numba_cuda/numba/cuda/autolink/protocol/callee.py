# SPDX-License-Identifier: BSD-2-Clause
"""Callees: objects with linkable code, and which object answers for a call."""

from __future__ import annotations

import functools
import inspect
import pickle
from collections.abc import Callable
from types import MethodType, ModuleType
from typing import Any

from numba.cuda.cudadrv.external_code.safe_repr import safe_repr

from ..value_fingerprint import UnknownValueError, fingerprint

HOOK = "__numba_cuda_link__"
KEY_HOOK = "__numba_cuda_link_key__"

# The id() of an object; of a bound method, those of its owner and its function.
Identity = tuple[int, ...]


class Callee:
    """An object with linkable code. Two are equal if they are the same object, or the same method of one object.

    Attributes
    ----------
    obj:
        The object itself, which is kept alive.
    hook:
        Its ``__numba_cuda_link__``.
    identity:
        As `identity` returns it: unique while the objects in `told_apart_by` live.
    """

    __slots__ = ("hook", "identity", "obj")

    def __init__(self, obj: Any, hook: Callable[..., Any]):
        self.obj = obj
        self.hook = hook
        self.identity = identity(obj)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Callee) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        return safe_repr(self.obj)

    def __reduce__(self) -> Any:
        return _callee_of_pickled, (self.obj,)  # the hook comes with the object

    @property
    def told_apart_by(self) -> tuple[Any, ...]:
        """The objects whose identities tell it apart."""
        return _told_apart_by(self.obj)

    @property
    def name(self) -> str:
        """A short name: that of a function, class or method (with its owner's type), or of an object's type."""
        named = self.obj if hasattr(self.obj, "__name__") else type(self.obj)
        owner = getattr(self.obj, "__self__", None)
        if owner is None or isinstance(owner, ModuleType):
            return str(named.__name__)
        return f"{getattr(owner, '__name__', type(owner).__name__)}.{named.__name__}"

    @property
    def link_key(self) -> Callable[..., Any] | None:
        """The object's own ``__numba_cuda_link_key__``, or None."""
        return _own_attribute(self.obj, KEY_HOOK)

    def code_digest(self) -> bytes | None:
        """Return a digest of the hook's code, and of that of the object's class and its bases; None if unknown.

        An author who changes the code that a hook generates need not change the link key.
        """
        hook: Any = self.hook
        parts: list[Any] = []
        while isinstance(hook, (functools.partial, MethodType)):
            if isinstance(hook, functools.partial):
                parts.append((hook.args, hook.keywords))
            hook = hook.func if isinstance(hook, functools.partial) else hook.__func__
        owner = getattr(self.obj, "__self__", self.obj)
        try:
            # The classes of its attributes, too, may have methods that the hook calls.
            kinds = list(dict.fromkeys(map(type, getattr(owner, "__dict__", {}).values())))
            return fingerprint(parts, hook, owner if inspect.isclass(owner) else [type(owner), *kinds])
        except UnknownValueError:
            return None


def _callee_of_pickled(obj: Any) -> Callee:
    found = find_callee(obj)
    if found is None:
        raise pickle.UnpicklingError(f"{type(obj).__name__} {safe_repr(obj)} no longer has a {HOOK}")
    return found


def _told_apart_by(obj: Any) -> tuple[Any, ...]:
    if hasattr(obj, "__self__") and hasattr(obj, "__func__"):
        return obj.__self__, obj.__func__  # Python makes a new object of a bound method at every access
    return (obj,)


def identity(obj: Any) -> Identity:
    """Return what identifies *obj* while it lives: its ``id()``; of a bound method, those of its owner and function."""
    return tuple(map(id, _told_apart_by(obj)))


def find_callee(obj: Any) -> Callee | None:
    """Return the object that answers for a call of *obj*, or None if there is none.

    For a bound method that is the method itself, else its owner; for a dispatcher the dispatcher, else its Python
    function.
    """
    for candidate in (obj, getattr(obj, "__self__", None), getattr(obj, "py_func", None)):
        if candidate is not None:
            hook = _own_attribute(candidate, HOOK)
            if hook is not None:
                return Callee(candidate, hook)
    return None


def _own_attribute(obj: Any, name: str) -> Callable[..., Any] | None:
    """Return the attribute *name* of *obj*, or None; of a class, only one that can be called on the class itself."""
    if inspect.isclass(obj):
        static = inspect.getattr_static(obj, name, None)
        if not isinstance(static, (classmethod, staticmethod)) and not hasattr(type(obj), name):
            return None
    return getattr(obj, name, None)
