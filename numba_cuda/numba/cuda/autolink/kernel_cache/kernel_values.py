# SPDX-License-Identifier: BSD-2-Clause
"""The walk over all that a kernel is compiled from: its functions, what they name, and what is registered with Numba.

The same program meets the same objects in the same order in every process. So the digest of the walk is the kernel's
key, and an object is found again by its number.
"""

from __future__ import annotations

import functools
import inspect
import os
import types as pytypes
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from numba.cuda.compiler import ExternFunction

from ..c_abi.extern import Extern
from ..device_callable.base_class import BoundDeviceMethod, DeviceMethod
from ..frontends.numba_cuda.declared_functions import declarations
from ..protocol.callee import HOOK, find_callee
from ..protocol.value_digest import ValuePickler, codes, walk

_CALL = "__numba_cuda_call__"
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

    def _show(self, label: str, value: Any) -> None:
        if type(value) in (bool, int, str) and len(text := repr(value)) < _SHORT:
            self.shown.setdefault(label, f"{text} {type(value).__qualname__}")

    def _members(self, cls: type) -> list[Any]:
        members = super()._members(cls)
        if not any(name in vars(base) for base in cls.__mro__ for name in (HOOK, _CALL)):
            return members
        kept = [(name, value) for name, value in members if not isinstance(value, _METHODS) or name in _OPERATORS]
        says = vars(cls).get(_CALL)
        return [*kept, _parameters(says)] if isinstance(says, pytypes.FunctionType) else kept

    def _object(self, obj: Any) -> Any:
        cls = type(obj)
        if cls is LinkedPath:
            self.paths.append(str(obj))
            return os.path.basename(obj)
        if isinstance(obj, BoundDeviceMethod):
            return obj.__func__, obj.__self__
        if isinstance(obj, DeviceMethod):
            return obj.parts[_CALL]
        if isinstance(obj, ExternFunction):
            declared = declarations.get(obj)
            how = () if declared is None else (declared.abi, declared.use_cooperative, declared.link)
            linked = [as_linked(item) for item in (*how[2:], ())[0]]
            return obj.name, obj.sig, *how[:2], linked, self._find_attributes(obj)
        if hasattr(obj, "_defn") and cls.__module__.startswith("numba."):
            return cls, getattr(obj, "__name__", ""), obj._defn
        is_called = hasattr(obj, _CALL) or find_callee(obj) is not None
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


def values_of_kernel(function: Any, options: Any, linked: Sequence[Any], others: Sequence[Any]) -> KernelValues:
    """Walk over a kernel's Python *function*, the *options* of ``cuda.jit``, what ``link=`` names, and *others*. Raise
    `UnknownValueError` if that leads to something that another process could not tell from something else."""
    has_lines = bool(options.get("debug") or options.get("lineinfo"))  # in which paths and lines are
    link = list(map(as_linked, linked))
    found: KernelValues = walk((function, dict(options), link, list(others)), KernelValues, has_lines=has_lines)
    return found


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
    return bool(declared is not None and declared.link) or hasattr(value, _CALL) or find_callee(value) is not None


def _parameters(function: pytypes.FunctionType) -> list[Any]:
    parameters = inspect.signature(function).parameters.values()
    return [(each.name, int(each.kind), each.annotation, each.default) for each in parameters]
