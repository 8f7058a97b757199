# SPDX-License-Identifier: BSD-2-Clause
"""The state of Python objects: their attributes and slots, or what their class pickles."""

from __future__ import annotations

import functools
import inspect
import struct
import types as pytypes
from typing import Any

from .python_code import is_versioned


def state(obj: Any) -> Any:
    """Return what can differ between *obj* and others of its class: its attributes, or what its class pickles.

    Cached properties are left out: they follow from the other attributes and are there only after they were used. The
    result is a class where the state is unknown: that of the error which *obj* raises, or its own.
    """
    cls = type(obj)
    if has_own_getstate(cls):
        own_getstate = cls.__getstate__
        if not isinstance(own_getstate, pytypes.FunctionType):
            return cls  # written in C: it may say nothing
        try:
            return own_getstate(obj)
        except Exception as error:
            return type(error)
    slots = _slots(obj)
    references = len(slots) + (cls.__dictoffset__ > 0) + (cls.__weakrefoffset__ > 0)
    if cls.__basicsize__ != object.__basicsize__ + references * struct.calcsize("P") or cls.__itemsize__:
        return cls  # a larger instance has state besides its attributes
    of_class = {
        name: value
        for base in reversed(cls.__mro__[:-1])
        if not is_versioned(base.__module__)
        for name, value in vars(base).items()
        if not name.startswith(("__", "_abc_")) and not hasattr(type(value), "__get__")
    }
    return of_class | own_attributes(obj)


def has_own_getstate(cls: type) -> bool:
    """Return whether instances of *cls* say what is pickled of them."""
    return getattr(cls, "__getstate__", None) is not getattr(object, "__getstate__", None)


def own_attributes(obj: Any) -> dict[str, Any]:
    """Return the attributes and slots of *obj*, without its cached properties."""
    return {
        name: value
        for name, value in {**_slots(obj), **getattr(obj, "__dict__", {})}.items()
        if not isinstance(inspect.getattr_static(type(obj), name, None), functools.cached_property)
    }


def attributes(value: Any) -> dict[str, Any] | None:
    """Return the attributes that an instance of a subclass of a built-in type has."""
    return {**getattr(value, "__dict__", {}), **_slots(value)} or None


def _slots(value: Any) -> dict[str, Any]:
    return {
        name: getattr(value, name, NotImplemented)
        for base in type(value).__mro__
        if "__slots__" in vars(base)
        for name, slot in vars(base).items()
        if isinstance(slot, pytypes.MemberDescriptorType)
    }
