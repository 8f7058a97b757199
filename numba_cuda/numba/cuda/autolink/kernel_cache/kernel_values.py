# SPDX-License-Identifier: BSD-2-Clause
"""The walk over all that a kernel is compiled from: its functions, what they name, and what is registered with Numba.

The same program meets the same objects in the same order in every process. So the digest of the walk is the kernel's
key, and an object is found again by its number.

What users registered with Numba may take part in a compile, although the kernel names none of it. So all of it counts,
except for what Numba and its front ends register. A function of it that looks something up by a name made at run time
may mean anything.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import types as pytypes
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from numba.cuda.compiler import ExternFunction
from numba.cuda.cudadrv.external_code.plan.declared_functions import declarations

from ..c_abi.extern import Extern
from ..device_callable.base_class import BoundDeviceMethod, DeviceMethod
from ..protocol.callee import CALL_HOOK, HOOK, find_callee
from ..protocol.loaded_modules import origin_of
from ..protocol.value_digest import ValuePickler, codes, walk

# The methods of called objects that Numba calls while it compiles, without asking a hook.
_OPERATORS = frozenset(
    (
        *("__len__", "__getitem__", "__contains__", "__iter__", "__bool__", "__int__", "__index__", "__float__"),
        *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__getattr__", "__getattribute__"),
    )
)
_METHODS = (pytypes.FunctionType, classmethod, staticmethod, property, functools.cached_property)
_SHORT = 60
_TOOLS = ("numba.", "numpy.")
_OURS, _VALUES = "numba.cuda.autolink.", "numba.cuda.autolink.c_abi."


class LinkedPath(str):
    """The path of a file that is linked."""


def as_linked(item: Any) -> Any:
    """Return *item*, which ``link=`` names; of a file its path."""
    return LinkedPath(os.fspath(item)) if isinstance(item, (str, os.PathLike)) else item


class KernelValues(ValuePickler):
    """Pickles what a kernel is compiled from.

    The answers of called objects are compared apart. Of such an object, its state counts, what its class evaluates
    without a hook, and the attributes that any function may mean.
    """

    def __init__(self, names: Collection[str] = (), has_lines: bool = False):
        super().__init__(names)
        self.has_lines = has_lines
        # Short values as text, by the names by which functions reach them: for messages.
        self.shown: dict[str, str] = {}
        # The files that ``link=`` and declared functions name, in order. Their links compare them by content.
        self.paths: list[str] = []
        self._labels: dict[int, str] = {}

    def _globals(self, function: Any, names: list[str]) -> Iterator[Any]:
        for name, value in super()._globals(function, names):
            label = f"{function.__name__}.{name}"
            self._show(label, value)
            self._labels.setdefault(id(value), label)
            yield name, value

    def _counts_of_installed(self, value: Any, origin: Any) -> bool:
        """Let also objects with a hook of an installed package count, which kernels call as ``package.module.obj``."""
        if super()._counts_of_installed(value, origin):
            return True
        is_package = isinstance(value, pytypes.ModuleType) and origin_of(value.__name__) not in (None, "versioned")
        return origin != "versioned" and not isinstance(value, type) and (is_package or _brings_code(value))

    def _show(self, label: str, value: Any) -> None:
        if type(value) in (bool, int, str) and len(text := repr(value)) < _SHORT:
            self.shown.setdefault(label, f"{text} {type(value).__qualname__}")

    def _members(self, cls: type) -> list[Any]:
        members = super()._members(cls)
        if not any(name in vars(base) for base in cls.__mro__ for name in (HOOK, CALL_HOOK)):
            return members
        kept = [(name, value) for name, value in members if not isinstance(value, _METHODS) or name in _OPERATORS]
        says = vars(cls).get(CALL_HOOK)
        return [*kept, _parameters(says)] if isinstance(says, pytypes.FunctionType) else kept

    def _object(self, obj: Any) -> Any:
        cls = type(obj)
        if cls is LinkedPath:
            self.paths.append(str(obj))
            return os.path.basename(obj)
        if isinstance(obj, BoundDeviceMethod):
            return obj.__func__, obj.__self__
        if isinstance(obj, DeviceMethod):
            return obj.parts[CALL_HOOK]
        if isinstance(obj, ExternFunction):
            declared = declarations.get(obj)
            how = () if declared is None else (declared.abi, declared.use_cooperative, declared.link)
            linked = [as_linked(item) for item in (*how[2:], ())[0]]
            return obj.name, obj.sig, *how[:2], linked, self._find_attributes(obj)
        if hasattr(obj, "_defn") and cls.__module__.startswith("numba."):
            return cls, getattr(obj, "__name__", ""), obj._defn
        is_called = hasattr(obj, CALL_HOOK) or find_callee(obj) is not None
        asked = self._find_attributes(obj) if is_called else ()
        if cls.__module__.startswith(_OURS) and not cls.__module__.startswith(_VALUES) and not isinstance(obj, Extern):
            return cls, getattr(obj, "__name__", ""), asked  # its answers say the rest
        label = self._labels.get(id(obj))
        self.at = label or self.at
        encoded = super()._object(obj)
        if label is not None and type(encoded[1]) is list and type(state := [*encoded[1], None, None, None][2]) is dict:
            for name, value in state.items():
                self._show(f"{label}.{name}", value)
        return encoded, asked

    def _find_attributes(self, obj: Any) -> list[Any]:
        found: list[Any] = []
        for name in sorted(self.names):
            if name.startswith("__"):
                continue
            try:
                found.append((name, getattr(obj, name)))
            except AttributeError:
                pass
            except Exception as error:
                found.append((name, "raises", type(error)))
        return found

    def _linked(self, item: Any) -> Any:
        return as_linked(item)


def values_of_kernel(
    function: Any, options: Any, linked: Sequence[Any], others: Sequence[Any], *, has_lines: bool
) -> KernelValues:
    """Walk over a kernel's Python *function*, the *options* of ``cuda.jit``, what ``link=`` names, and *others*; where
    its code *has_lines*, paths and lines count. Raise `UnknownValueError` if that leads to something that another
    process could not tell from something else."""
    link = list(map(as_linked, linked))
    return walk((function, dict(options), link, list(others)), KernelValues, has_lines=has_lines)


def names_external_code(function: Any) -> bool:
    """Return whether *function*, or one that it names, names an object with a hook or a function that links code."""
    seen: set[int] = set()
    work: list[tuple[Any, tuple[str, ...]]] = [(function, ())]
    while work:
        value, names = work.pop()
        if id(value) in seen and not isinstance(value, pytypes.ModuleType):
            continue
        seen.add(id(value))
        value = getattr(value, "py_func", value) if callable(value) and not isinstance(value, type) else value
        if isinstance(value, pytypes.ModuleType):
            if value.__name__.partition(".")[0] not in ("numba", "numpy"):
                found = vars(value)
                work += [(found[name], names) for name in names if name in found and id(found[name]) not in seen]
        elif isinstance(value, tuple):
            work += [(each, ()) for each in value]
        elif _brings_code(value):
            return True
        elif isinstance(value, pytypes.FunctionType) and not str(value.__module__).startswith(_TOOLS):
            named = tuple(name for code in codes(value.__code__) for name in code.co_names)
            work += [(value.__globals__[name], named) for name in named if name in value.__globals__]
            work += [(cell.cell_contents, named) for cell in value.__closure__ or () if cell != pytypes.CellType()]
            work += [(default, named) for default in value.__defaults__ or ()]
    return False


def _brings_code(value: Any) -> bool:
    declared = declarations.get(value) if isinstance(value, ExternFunction) else None
    return bool(declared is not None and declared.link) or hasattr(value, CALL_HOOK) or find_callee(value) is not None


def _parameters(function: pytypes.FunctionType) -> list[Any]:
    parameters = inspect.signature(function).parameters.values()
    return [(each.name, int(each.kind), each.annotation, each.default) for each in parameters]


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
