# SPDX-License-Identifier: BSD-2-Clause
"""What is registered with Numba: overloads, intrinsics, lowerings, casts, attributes, data models and types of values.

Any of it may take part in a compile, although the kernel names none of it. So all of it counts, except for what Numba
itself registers, which versions identify. What an installed package registers counts as the code of its modules.
"""

from __future__ import annotations

import collections
import sys
import types as pytypes
from collections.abc import Iterable, Iterator
from typing import Any

from numba.cuda import types

from ..python_code import closure_of, codes, origin_of
from ..value_fingerprint import UnknownValueError
from .lookups import looked_up

_LISTS = ("functions", "attributes", "globals", "getattrs", "setattrs", "casts", "constants")
# The names that modules give their registries.
_NAMES = ("registry", "builtin_registry", "typing_registry", "impl_registry", "target_registry", "lowering_registry")
# What Numba keeps in a template while it compiles.
_OF_TEMPLATES = ("_impl_cache", "_compiled_overloads", "_inline_overloads", "_overload_cache", "_abc_impl")

# How much of each list was looked at, and what in it is not Numba's own. Registries only grow.
_NONE: list[Any] = []
_VERSIONED = ("abc", "numba.", "builti", "numpy", "numpy.", "functo", "types")
_DEFINED_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_seen: dict[int, tuple[list[Any], int, list[Any]]] = {}


def registered() -> Iterator[tuple[str, Any]]:
    """Yield what each registration is for, and what tells it apart from others: for an installed package, the name of
    each module that registers, and what identifies that module."""
    packages: dict[str, Any] = {}
    count: collections.Counter[str] = collections.Counter()
    for label, things in _registrations():
        home = _home(things)
        origin = origin_of(home)
        if origin is None:
            count[label] += 1  # their order counts
            name = f"{label} ({count[label]})" if count[label] > 1 else label
            source = next(filter(None, map(looked_up, _all_functions(things))), None)
            yield (
                name,
                [_content(thing) for thing in things]
                if source is None
                else UnknownValueError(f"it looks something up in {source} while a kernel is compiled"),
            )
        else:
            packages[str(home)] = origin
    for home, origin in sorted(packages.items()):
        yield f"what {home} registers with Numba", origin


def registered_codes() -> set[pytypes.CodeType]:
    """Return the code of all functions that users registered, and of those in them and in their closures."""
    found: set[pytypes.CodeType] = set()
    for _, things in _registrations():
        for thing in things:
            for function in _functions(thing):
                found.update(codes(function.__code__))
    return found


def _registrations() -> Iterator[tuple[str, tuple[Any, ...]]]:
    templates: set[int] = set()
    for registry in _registries():
        for name in _LISTS:
            for entry in _new(getattr(registry, name, _NONE)):
                things = entry if isinstance(entry, tuple) else (entry,)
                if len(things) > 1 and things[0] is things[1]:
                    continue  # what an intrinsic returned when it was first compiled: the intrinsic itself counts
                if name == "functions":
                    templates.update(map(id, things))
                if name == "globals":
                    things = things[::-1]  # the implementation first
                    if templates.issuperset(map(id, getattr(things[0], "templates", things))):
                        continue
                yield f"{name} registered with Numba for {_label(things)}", things
    for name, table in _tables():
        for key, value in tuple(table.items()):
            if _home((value,)) is not None or origin_of(_home((key,)) or "numba") is None:
                yield f"{name} registered with Numba for {_label((value, key))}", (value, key)


def _registries() -> Iterator[Any]:
    found: dict[int, None] = {}
    for module in tuple(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        for name in _NAMES:
            registry = names.get(name)
            if type(registry).__name__ == "Registry" and id(registry) not in found and hasattr(registry, "functions"):
                found[id(registry)] = None
                yield registry


def _tables() -> Iterator[tuple[str, Any]]:
    """Yield the tables by type that Numba has besides registries."""
    from numba.core.typing.typeof import typeof_impl as core_typeof_impl
    from numba.cuda.datamodel import default_manager
    from numba.cuda.models import cuda_data_manager
    from numba.cuda.typing.asnumbatype import as_numba_type
    from numba.cuda.typing.typeof import typeof_impl

    yield "typeof", typeof_impl.registry
    yield "Numba's typeof", core_typeof_impl.registry
    yield "data model", cuda_data_manager._handlers
    yield "Numba's data model", default_manager._handlers
    yield "as_numba_type", as_numba_type.lookup


def _new(entries: list[Any]) -> list[Any]:
    """Return what in *entries* is not Numba's own."""
    _, count, found = _seen.get(id(entries), (entries, 0, []))
    for entry in entries[count:]:
        things = entry if type(entry) is tuple else (entry,)
        if not all(map(_is_plainly_numbas, things)) and _home(things) is not None:
            found.append(entry)
    _seen[id(entries)] = entries, len(entries), found
    return found


def _is_plainly_numbas(thing: Any) -> bool:
    """Return, in a short time, whether *thing* is one of the thousands that Numba registers, or has no code."""
    kind = type(thing)
    if kind is pytypes.FunctionType:
        if (thing.__module__ or thing.__code__.co_filename)[:6] not in _VERSIONED:
            return False
        closure = thing.__closure__
        return closure is None or all(_is_plainly_numbas(value) for _, value in closure_of(thing))
    if kind is str or thing is None:
        return True
    if kind is tuple:
        return all(map(_is_plainly_numbas, thing))
    if isinstance(thing, type):
        kind = thing
        made_from = thing.__dict__.get("_overload_func") or thing.__dict__.get("_definition_func")
        if made_from is not None and not _is_plainly_numbas(made_from.__func__):
            return False
        if "key" in thing.__dict__ and not _is_plainly_numbas(thing.__dict__["key"]):
            return False
    elif (templates := getattr(thing, "templates", None)) is not None:
        return all(map(_is_plainly_numbas, templates))
    return kind.__module__[:6] in _VERSIONED


def _home(things: Iterable[Any]) -> str | None:
    """Return the first module, other than Python's and Numba's, that defines any of *things* or what they refer to."""
    for thing in things:
        for each in _defined(thing):
            module = getattr(each, "__module__", None)
            if isinstance(module, str) and origin_of(module) != "versioned":
                return module
    return None


def _defined(thing: Any) -> Iterator[Any]:
    """Yield the classes and functions that *thing* consists of."""
    if isinstance(thing, (tuple, list)):
        for each in thing:
            yield from _defined(each)
    elif isinstance(thing, type):
        if thing.__flags__ & _DEFINED_IN_PYTHON:
            yield thing
        if _is_template(thing):
            for value in vars(thing).values():
                if not isinstance(value, dict):
                    yield from _functions(value)
            yield getattr(thing, "key", None)
    elif isinstance(thing, pytypes.FunctionType) or hasattr(thing, "__wrapped__"):
        yield from _functions(thing)
    else:
        yield type(thing)
        yield from getattr(thing, "templates", ())


def _functions(thing: Any, outer: tuple[Any, ...] = ()) -> Iterator[pytypes.FunctionType]:
    """Yield the functions in *thing*, which a class may have as an attribute, and in their closures."""
    for attribute in ("__func__", "__wrapped__", "func"):
        thing = getattr(thing, attribute, thing)
    if isinstance(thing, type) and _is_template(thing):
        for value in vars(thing).values():
            yield from _functions(value, outer)
    if not isinstance(thing, pytypes.FunctionType) or any(thing is each for each in outer):
        return
    yield thing
    for _, value in closure_of(thing):
        yield from _functions(value, (*outer, thing))


def _all_functions(things: Iterable[Any]) -> Iterator[pytypes.FunctionType]:
    for thing in things:
        for each in (thing, *getattr(thing, "templates", ())):
            yield from _functions(each)


def _is_template(cls: type) -> bool:
    return any(base.__name__ in ("FunctionTemplate", "AttributeTemplate") for base in cls.__mro__)


def _content(thing: Any) -> Any:
    """Return what tells *thing* apart. Of the classes and functions that Numba makes for a registration, that is what
    they were made from, without what was compiled since and without Numba's own state."""
    thing = getattr(thing, "__func__", thing)
    if isinstance(thing, type):
        if not _is_template(thing) or origin_of(thing.__module__) is None:
            return thing
        members = {name: _content(value) for name, value in vars(thing).items() if not _is_numbas(name)}
        bases = [_content(base) for base in thing.__mro__[1:] if _home((base,)) is not None]
        return [thing.__name__, _named(getattr(thing, "key", None)), members, bases]
    if isinstance(thing, pytypes.FunctionType):
        if origin_of(thing.__module__) is None:
            return thing
        return [thing.__module__, thing.__qualname__, [_content(value) for _, value in closure_of(thing)]]
    if hasattr(thing, "templates"):
        return [_content(template) for template in thing.templates]
    return _named(thing) if type(thing).__module__.startswith("numba.") else thing


def _is_numbas(name: str) -> bool:
    return name.startswith("__") or name in ("key", *_OF_TEMPLATES)


def _named(value: Any) -> Any:
    """Return the name of the object *value*, for which an implementation is registered, or the value itself."""
    if isinstance(value, (type, types.Type, pytypes.FunctionType)):
        return value
    state = getattr(value, "_inline", None)  # of the options of an overload
    if hasattr(value, "_defn") or not callable(value) or state is not None:
        return type(value).__qualname__, getattr(value, "__qualname__", None), state
    return getattr(value, "__module__", None), getattr(value, "__qualname__", None) or repr(type(value))


def _label(things: tuple[Any, ...]) -> str:
    return _described(things[1] if len(things) > 1 else getattr(things[0], "key", things[0]))


def _described(value: Any) -> str:
    if isinstance(value, (str, types.Type)):
        return str(value)
    if isinstance(value, tuple):
        return ", ".join(map(_described, value))
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return f"{getattr(value, '__module__', '')}.{name}" if isinstance(name, str) else type(value).__qualname__
