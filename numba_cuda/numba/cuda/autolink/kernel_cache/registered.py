# SPDX-License-Identifier: BSD-2-Clause
"""What users registered with Numba: overloads, intrinsics, lowerings, casts, data models, types of values.

Any of it may take part in a compile, although the kernel names none of it. So all of it counts, except for what Numba
and its front ends register. A function of it that looks something up by a name made at run time may mean anything.
"""

from __future__ import annotations

import contextlib
import sys
import types as pytypes
from collections.abc import Iterator, Sequence
from typing import Any

from ..protocol.loaded_modules import origin_of
from ..protocol.value_digest import codes, walk

_LISTS = ("functions", "attributes", "globals", "getattrs", "setattrs", "casts", "constants")
# The names that modules give their registries.
_NAMES = ("registry", "builtin_registry", "typing_registry", "impl_registry", "target_registry", "lowering_registry")
_STANDARD = ("abc", "builtins", "cmath", "functools", "math", "operator", "types")
_NUMBAS = frozenset(("llvmlite", "numba", "numba_cuda_mlir", "numpy", *_STANDARD))
_MADE_FROM = ("_overload_func", "_definition_func", "generic", "key")
# What looks something up by a name made at run time: anything, or an attribute of a module.
_ANYWHERE = frozenset(
    ("__import__", "compile", "eval", "exec", "globals", "import_module", "locals", "modules", "__dict__")
)
_OF_MODULES = frozenset(("attrgetter", "dir", "getattr", "methodcaller", "vars"))
# How much of each list was looked at, and what in it users registered. Registries only grow.
_seen: dict[int, tuple[list[Any], int, list[Any]]] = {}


def registered() -> list[Any]:
    """Return the functions and classes that users registered, in the order in which they count."""
    found: dict[int, Any] = {}
    for registry in _registries():
        for name in _LISTS:
            for each in _of_users(getattr(registry, name, [])):
                found[id(each)] = each
    for table in _tables():
        for pair in tuple(table.items()):
            for each in _users(pair):
                found[id(each)] = each
    return list(found.values())


def why_unpredictable(users: Sequence[Any]) -> str | None:
    """Return why what *users* registered may find what no name in its code tells; ``None`` if it does not."""
    if not users:
        return None
    things = walk(users).things
    modules = any(isinstance(each, pytypes.ModuleType) and origin_of(each.__name__) is None for each in things)
    refused = _ANYWHERE | _OF_MODULES if modules else _ANYWHERE
    for function in (thing for thing in things if isinstance(thing, pytypes.FunctionType)):
        used = {name for code in codes(function.__code__) for name in code.co_names}
        if origin_of(function.__globals__.get("__name__")) is None and (found := sorted(refused & used)):
            return f"{function.__qualname__} looks something up with {found[0]} while a kernel is compiled"
    return None


def _registries() -> list[Any]:
    found: dict[int, Any] = {}
    for module in tuple(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        for registry in map(names.get, _NAMES):
            if type(registry).__name__ == "Registry" and hasattr(registry, "functions"):
                found[id(registry)] = registry
    return list(found.values())


def _tables() -> Iterator[Any]:
    from numba.core.typing.typeof import typeof_impl as core_typeof_impl
    from numba.cuda.datamodel import default_manager
    from numba.cuda.models import cuda_data_manager
    from numba.cuda.typing.asnumbatype import as_numba_type
    from numba.cuda.typing.typeof import typeof_impl

    yield from (typeof_impl.registry, core_typeof_impl.registry, as_numba_type.lookup)
    yield from (cuda_data_manager._handlers, default_manager._handlers)


def _of_users(entries: list[Any]) -> list[Any]:
    _, count, found = _seen.get(id(entries), (entries, 0, []))
    for entry in entries[count:]:
        found += _users(entry)
    _seen[id(entries)] = entries, len(entries), found
    return found


def _users(thing: Any) -> list[Any]:
    """Return what in a registration neither Python nor Numba defines. Of the templates that Numba makes, that is what
    they were made from."""
    if isinstance(thing, (tuple, list)):
        return [each for part in thing for each in _users(part)]
    thing = getattr(thing, "__func__", thing)
    if not isinstance(thing, (type, pytypes.FunctionType)):
        return [each for part in getattr(thing, "templates", ()) for each in _users(part)]
    home = thing.__module__ or "numba"
    if home.partition(".")[0] not in _NUMBAS or home.startswith("numba.cuda.tests"):
        return [thing]
    if isinstance(thing, type):
        parts = [thing.__dict__.get(name) for name in _MADE_FROM]
    else:
        parts = [getattr(thing, "__wrapped__", None)]
        for cell in thing.__closure__ or ():
            with contextlib.suppress(ValueError):  # not filled yet
                parts.append(cell.cell_contents)
    inner = (part for part in parts if part is not thing and not isinstance(part, (tuple, list)))
    return [each for part in inner for each in _users(part)]
