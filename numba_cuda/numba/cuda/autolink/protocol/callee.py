# SPDX-License-Identifier: BSD-2-Clause
"""Callees: objects with linkable code, and which object answers for a call."""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import pickle
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr

from numba_cuda_autolink.assigned_names import Assigned
from numba_cuda_autolink.source_locations import shown_file

from .loaded_modules import UnknownValueError, package_of

CALL_HOOK = "__numba_cuda_call__"
HOOK = "__numba_cuda_link__"
KEY_HOOK = "__numba_cuda_link_key__"
TYPES = "__numba_cuda_link_types__"
_NO_SUCH_NAME = "_numba_cuda_link_asks_for_a_name_that_nothing_has"

# The id() of an object while it lives; of a bound method, which is a new object at every access, those of its parts.
Identity = tuple[int, ...]


class Callee:
    """An object with linkable code. Two are equal if they are the same object, or the same method of one object.

    ``identity`` identifies it while the objects in ``identified_by`` live.
    """

    __slots__ = ("hook", "identified_by", "identity", "obj")

    def __init__(self, obj: Any, hook: Callable[..., Any]):
        self.obj = obj
        self.hook = hook
        self.identified_by = _parts_of_identity(obj)
        self.identity = tuple(map(id, self.identified_by))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Callee) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        return safe_repr(self.obj)

    def __reduce__(self) -> Any:
        return _callee_of_pickled, (self.obj,)  # the hook comes with the object

    @property
    def name(self) -> str:
        """A short name: that of a function, class or method (with its owner's type), or of an object's type."""
        name, owner = _name_of(self.obj), attribute_of(self.obj, "__self__")
        return name if owner is None or isinstance(owner, ModuleType) else f"{_name_of(owner)}.{name}"

    @property
    def link_key(self) -> Callable[..., Any] | None:
        return _own_attribute(self.obj, KEY_HOOK)

    def package(self) -> tuple[Any, ...] | None:
        """Return the name of the object's class, and what identifies the package that defines it; None if unknown."""
        defined = self._defined
        try:
            package = package_of(defined)
        except UnknownValueError:
            return None
        return None if package is None else (defined.__module__, defined.__qualname__, self.name, *package)

    @property
    def referred(self) -> tuple[int, ...]:
        """The positions of the arguments that are places, arrays that begin with a variable or an element."""
        return _property_of(self.obj, "_referred") or ()

    @property
    def given_text(self) -> tuple[str, tuple[str, int]] | None:
        """The text of the source that it is from, and the file and line where that was given; ``None`` if there is
        none."""
        return _property_of(self.obj, "_given_text")

    @property
    def expression(self) -> tuple[str, Assigned] | None:
        """The C++ expression that it is, and the variable that holds it; ``None`` of any other object."""
        return _property_of(self.obj, "_expression")

    @property
    def folder(self) -> str:
        return os.path.dirname(getattr(sys.modules.get(self._defined.__module__), "__file__", None) or "")

    @property
    def _defined(self) -> Any:
        owner = attribute_of(self.obj, "__self__") or self.obj
        return owner if isinstance(owner, (type, FunctionType)) else type(owner)


def _callee_of_pickled(obj: Any) -> Callee:
    found = find_callee(obj)
    if found is None:
        raise pickle.UnpicklingError(f"{type(obj).__name__} {safe_repr(obj)} no longer has a {HOOK}")
    return found


def _name_of(obj: Any) -> str:
    name = attribute_of(obj, "__name__")
    return name if isinstance(name, str) else type(obj).__name__


def _parts_of_identity(obj: Any) -> tuple[Any, ...]:
    owner, function = attribute_of(obj, "__self__"), attribute_of(obj, "__func__")
    return (obj,) if owner is None or function is None else (owner, function)


def identity(obj: Any) -> Identity:
    return tuple(map(id, _parts_of_identity(obj)))


def find_callee(obj: Any) -> Callee | None:
    """Return the object that answers for a call to *obj*, or None if there is none.

    For a bound method that is the method, else its owner; for a dispatcher the dispatcher, else its Python function.
    """
    for candidate in (obj, attribute_of(obj, "__self__"), attribute_of(obj, "py_func")):
        if candidate is not None:
            hook = _own_attribute(candidate, HOOK)
            if hook is not None:
                return Callee(candidate, hook)
    return None


def find_link_key(obj: Any) -> Callable[..., Any] | None:
    """Return the hook for the link key of the object that answers for a call to *obj*, or else of *obj* itself, which
    may leave its code to others."""
    callee = find_callee(obj)
    return callee.link_key if callee is not None else _own_attribute(obj, KEY_HOOK)


def takes_core_types(obj: Any) -> bool:
    """Whether the hooks of *obj* ask for numba-cuda's types, whichever front end compiles the call."""
    found = attribute_of(obj, TYPES)
    if found is None and (owner := attribute_of(obj, "__self__")) is not None:
        found = attribute_of(owner, TYPES)
    return bool(found == "numba-cuda")


def place_of(hook: Any) -> str:
    """Return the file and line where a *hook* is defined, such as ``power.py:12``; empty if that is unknown."""
    code = getattr(inspect.unwrap(hook), "__code__", None) if callable(hook) else None
    return "" if code is None else f"{shown_file(code.co_filename)}:{code.co_firstlineno}"


def misspelt_hook(obj: Any, hook: str) -> str:
    """Return the attribute of *obj* whose name looks like that of a *hook* and is none, as its class writes it; empty
    if there is none."""
    names = {name for name in dir(type(obj)) if "numba_cuda" in name}
    for each in type(obj).__mro__:  # Python puts it before names like __name
        prefix = f"_{each.__name__.lstrip('_')}__"
        names = {name.removeprefix(prefix[:-2]) if name.startswith(prefix) else name for name in names}
    names -= {HOOK, KEY_HOOK, TYPES, CALL_HOOK}
    return next(iter(difflib.get_close_matches(hook, sorted(names), 1, 0.8)), "")


def _property_of(obj: Any, name: str) -> Any:
    """Return the property *name* of *obj*, or None if its class has none, whatever the object answers."""
    found = inspect.getattr_static(type(obj), name, None)
    return found.__get__(obj) if isinstance(found, property) else None


def _own_attribute(obj: Any, name: str) -> Callable[..., Any] | None:
    """Return the attribute *name* of *obj*, or None; of a class, only one that can be called on the class itself."""
    if inspect.isclass(obj):
        static = inspect.getattr_static(obj, name, None)
        if not isinstance(static, (classmethod, staticmethod)) and not hasattr(type(obj), name):
            return None
    return attribute_of(obj, name)


def attribute_of(obj: Any, name: str) -> Any:
    """Return the attribute *name* of *obj*, or None; for one that raises, a function that raises when it is called.

    Of an object that answers to every name, as mocks and proxies do, or that raises for unknown names, only attributes
    count that are really there.
    """
    try:
        if (found := getattr(obj, name, None)) is None:
            return None
    except Exception as error:
        found = functools.partial(_raise, error)
    try:
        answers_to_all = hasattr(obj, _NO_SUCH_NAME)
    except Exception:
        answers_to_all = True
    return None if answers_to_all and inspect.getattr_static(obj, name, None) is None else found


def _raise(error: Exception, *_: Any) -> NoReturn:
    raise error
