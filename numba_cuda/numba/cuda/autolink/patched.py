# SPDX-License-Identifier: BSD-2-Clause
"""What programs set on the modules, classes and Numba types of versioned code: ``types.Float.suffix = "f"``.

Versions identify the code of Python, NumPy, Numba and of installed packages, and so no content of it counts. What a
program sets there is in no version. So attributes count that hold data, or code from elsewhere; code under its own name
does not.
"""

from __future__ import annotations

import functools
import types as pytypes
from collections.abc import Iterable, Iterator
from typing import Any

from numba.cuda import types

from .python_code import origin_of

_PRIMITIVES = (bool, int, float, complex, str, bytes, type(None))
_LARGEST = 100
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class whose attributes can be set
_WRAPPERS = ("__func__", "fget", "func", "__wrapped__")
# For each name, the Numba types and their classes that have it, and what that was made from.
_holders: tuple[Any, dict[str, list[Any]]] = (), {}


def set_on(owner: Any, names: Iterable[str], outer: tuple[Any, ...] = ()) -> Iterator[Any]:
    """Yield those attributes among *names* that count, of *owner*, a module or class, and of what these names mean
    there."""
    for holder in owner.__mro__ if isinstance(owner, type) else (owner,):
        found = vars(holder)
        for name in names:
            if name not in found:
                continue
            value = found[name]
            if _counts(name, value):
                yield name, value
            elif isinstance(value, (type, pytypes.ModuleType)) and all(value is not each for each in outer):
                yield from set_on(value, names, (*outer, owner))


def set_on_bases(cls: type) -> list[Any]:
    """Return the attributes that count of those bases of *cls* that versions identify."""
    return [
        (base.__qualname__, name, value)
        for base in cls.__mro__[1:]
        if base.__flags__ & _HEAP_TYPE and origin_of(base.__module__) is not None
        for name, value in vars(base).items()
        if not name.startswith(("__", "_abc_")) and _counts(name, value)
    ]


def set_on_type(numba_type: types.Type) -> list[Any]:
    """Return the attributes of *numba_type* that its class does not set; all of them, if no version identifies it."""
    cls: Any = type(numba_type)
    known = _set_by(cls)
    return (
        []
        if vars(numba_type).keys() <= known
        else sorted((n, v) for n, v in vars(numba_type).items() if n not in known)
    )


def set_on_types(names: Iterable[str]) -> Iterator[Any]:
    """Yield what counts among the attributes called *names* of Numba's types and of their classes."""
    for name in names:
        for holder in _holders[1].get(name, ()):
            value = vars(holder).get(name)
            is_type = isinstance(holder, types.Type)
            cls: Any = type(holder)
            if name not in _set_by(cls) if is_type else _counts(name, value):
                yield str(holder) if is_type else holder.__qualname__, name, value


def look_at_types() -> None:
    """Find out which attributes Numba's types and their classes have, for `set_on_types`."""
    global _holders
    classes = _with_subclasses(types.Type)
    instances = [value for value in vars(types).values() if types.Type in type(value).__mro__]  # isinstance takes 2 ms
    content = [frozenset(vars(holder)) for holder in (*classes, *instances)]
    if content == _holders[0]:
        return
    found: dict[str, list[Any]] = {}
    for cls in classes:
        if origin_of(cls.__module__) is not None:
            for name in vars(cls):
                if not name.startswith(("__", "_abc_")):
                    found.setdefault(name, []).append(cls)
    for instance in instances:
        for name in vars(instance):
            found.setdefault(name, []).append(instance)
    _holders = content, found


def _with_subclasses(cls: Any) -> list[Any]:
    found: dict[Any, None] = {cls: None}
    work = [cls]
    while work:
        for each in work.pop().__subclasses__():
            if each not in found:
                found[each] = None
                work.append(each)
    return sorted(found, key=lambda each: (each.__module__, each.__qualname__))


@functools.lru_cache(maxsize=512)
def _set_by(cls: Any) -> frozenset[str]:
    """Return the names that the functions of *cls*, its bases and its metaclass use."""
    if origin_of(cls.__module__) is None:
        return frozenset(("_code",))  # Numba's number of the type
    names: set[str] = set()
    for base in (*cls.__mro__, *type(cls).__mro__):
        for name, value in vars(base).items():
            code = getattr(_unwrapped(value), "__code__", None)
            names.update((name,) if isinstance(value, functools.cached_property) else ())
            names.update(code.co_names if code is not None else ())
    return frozenset(names)


def _unwrapped(value: Any) -> Any:
    for attribute in _WRAPPERS:
        value = getattr(value, attribute, value)
    return value


def _counts(name: str, value: Any) -> bool:
    """Return whether the attribute *name* of versioned code is data, or something that is not from there."""
    if type(value) in _PRIMITIVES:
        return True
    if type(value) in (list, tuple, set, frozenset, dict):
        return len(value) <= _LARGEST
    code = _unwrapped(value)
    if isinstance(code, pytypes.ModuleType):
        return origin_of(code.__name__) is None
    home = getattr(code, "__module__", None)
    if origin_of(home if isinstance(home, str) else type(code).__module__) is None:
        return True
    return isinstance(code, (pytypes.FunctionType, pytypes.BuiltinFunctionType)) and code.__name__ != name
