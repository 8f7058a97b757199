# SPDX-License-Identifier: BSD-2-Clause
"""What a kernel reaches by name: globals, closure variables, their attributes and elements, through device functions.

The same program reaches the same objects in the same order in every process. So an object can be found again by its
number, and the parts together tell whether anything changed that the kernel was made of: what each name means, and what
each object is.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import os
import types as pytypes
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from cuda.core import ObjectCode
from numba.cuda.compiler import ExternFunction
from numba.cuda.cudadrv.linkable_code import LinkableCode

from ..frontends.numba_cuda.declared_functions import declarations
from ..function_code.call_graph import next_number
from ..object_state import state
from ..patched import look_at_types
from ..protocol.callee import find_callee, identity
from ..python_code import file_digest, globals_used, names_used, origin_of
from ..value_encoders import attributes_of
from ..value_fingerprint import UnknownValueError, fingerprint, fingerprint_of_code, plain

# A property that makes an object with the same property leads on for ever.
_MOST_THINGS = 1000


class Reached:
    """Everything that a kernel reaches, given its Python function and what it names with ``link=``; and what counts
    although nothing names it, because it is *registered* with Numba."""

    def __init__(
        self, function: Callable[..., Any], link: Iterable[Any] = (), registered: Iterable[tuple[str, Any]] = ()
    ):
        # Every object that is reached and is more than a value, in order, each once.
        self.things: list[Any] = []
        # For each name by which something is reached ("kernel.fft.storage_size"), what it is: short values as they are,
        # others as type and fingerprint, an object that has a name already as that name. Equal in every process in
        # which nothing changed.
        self.parts: dict[str, str] = {}
        # What is named with link=, by the kernel or a declared function: paths and code in memory.
        self.linked: list[Any] = []
        # Whether any of it may bring external code.
        self.external_code = False
        # Functions with smaller numbers were compiled before, when their names may have meant something else.
        self.number_then = next_number()
        # The first thing that cannot be fingerprinted, in words, so that nothing says whether it changed.
        self.unknown: str | None = None
        self._labels: dict[Any, str] = {}
        self._numbers: dict[Any, int] = {}
        self._owners: list[tuple[str, Any]] = []
        self._names: dict[str, None] = {}
        self._modules: set[tuple[int, tuple[str, ...]]] = set()
        self._work: deque[Callable[[], None]] = deque()
        look_at_types()
        self._add(function.__name__, function.__code__)
        self._function(function.__name__, function)
        for number, item in enumerate(link):
            self._linked(f"link[{number}]", item)
        while self._work:
            self._work.popleft()()
        for label, value in registered:
            if isinstance(value, UnknownValueError):
                self._is_unknown(label, str(value))
            else:
                self._add(label, value, digest=fingerprint_of_code)

    def number(self, thing: Any) -> int | None:
        """Return the place of *thing* in ``things``; ``None`` if it is not reached."""
        return self._numbers.get(identity(thing))

    def _add(self, label: str, *values: Any, digest: Callable[..., bytes] = fingerprint) -> None:
        if len(values) == 1 and type(values[0]) in (bool, int, str) and len(text := repr(values[0])) < 60:
            shown = f"{text} {type(values[0]).__qualname__}"
        elif len(values) == 1 and isinstance(values[0], type) and origin_of(values[0].__module__) == "versioned":
            shown = f"{values[0].__module__}.{values[0].__qualname__}"
        else:
            try:
                shown = f"{type(values[0]).__qualname__} {digest(*values).hex()[:32]}"
            except UnknownValueError as error:
                shown = "unknown"
                self._is_unknown(label, str(error))
        self._show(label, shown)

    def _show(self, label: str, shown: str) -> None:
        while self.parts.setdefault(label, shown) != shown:
            label += "'"

    def _is_unknown(self, label: str, why: str) -> None:
        self.unknown = self.unknown or f"{label}: {why}"

    def _is_new(self, thing: Any) -> bool:
        known_as = identity(thing)
        if known_as in self._numbers:
            return False
        self._numbers[known_as] = len(self.things)
        self.things.append(thing)
        return True

    def _function(self, label: str, function: Any) -> None:
        """Reach everything that the code of *function* names."""
        code = function.__code__
        names = names_used(code)
        for name in names:
            if name not in self._names:
                self._names[name] = None
                for owner_label, owner in tuple(self._owners):
                    self._work.append(functools.partial(self._named, owner_label, owner, name))
        for name in globals_used(code):
            if name in function.__globals__:
                self._reach(f"{label}.{name}", function.__globals__[name], names)
            elif origin_of(getattr(value := getattr(builtins, name, len), "__module__", None)) is None:
                self._reach(f"{label}.{name}", value, names)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            try:
                value = cell.cell_contents
            except ValueError:  # not filled yet
                self._show(f"{label}.{name}", "not filled")
                continue
            self._reach(f"{label}.{name}", value, names)
        for name, value in (function.__kwdefaults__ or {}).items():
            self._reach(f"{label}.{name}", value, names)
        for number, value in enumerate(function.__defaults__ or ()):
            self._reach(f"{label} default {number}", value, names)

    def _reach(self, label: str, value: Any, names: tuple[str, ...]) -> None:
        """Reach *value* as *label*, from a function that uses *names*."""
        if plain(value):
            self._add(label, value)
        elif isinstance(value, tuple):
            self._add(label, type(value), len(value), getattr(type(value), "_fields", None))
            for number, element in enumerate(value):
                self._reach(f"{label}[{number}]", element, names)
        elif isinstance(value, pytypes.ModuleType):
            self._module(label, value, names)
        elif (known_as := identity(value)) in self._numbers:
            self._show(label, f"the same as {self._labels.get(known_as, 'code that is linked')}")
        elif len(self.things) >= _MOST_THINGS:
            self._is_unknown(label, f"the kernel reaches more than {_MOST_THINGS} objects")
        else:
            self._is_new(value)
            self._labels[known_as] = label
            self.external_code = self.external_code or _may_bring_code(value)
            self._thing(label, value)

    def _module(self, label: str, module: pytypes.ModuleType, names: tuple[str, ...]) -> None:
        self._add(label, "module", module.__name__, origin_of(module.__name__))
        if (id(module), names) in self._modules:
            return
        self._modules.add((id(module), names))
        for name, value in attributes_of(module, names):
            self._work.append(functools.partial(self._reach, f"{label}.{name}", value, names))

    def _thing(self, label: str, value: Any) -> None:
        if isinstance(getattr(value, "py_func", None), pytypes.FunctionType):
            options = dict(getattr(value, "targetoptions", {}))
            options.pop("extensions", None)
            self._add(label, value.py_func.__code__, options)
            self._work.append(functools.partial(self._function, label, value.py_func))
        elif isinstance(value, ExternFunction):
            self._add(label, value.name, value.sig)
            declared = declarations.get(value)
            if declared is not None:
                self._add(f"declare_device of {label}", declared.use_cooperative, declared.abi)
                for number, item in enumerate(declared.link):
                    self._linked(f"link[{number}] of {label}", item)
            self._owner(label, value)
        elif hasattr(value, "__self__") and hasattr(value, "__func__"):
            self._add(label, getattr(value, "__numba_cuda_call__", value).__func__, digest=fingerprint_of_code)
            self._reach(f"{label}.__self__", value.__self__, ())
        elif isinstance(value, pytypes.FunctionType) and find_callee(value) is None:
            self._add(label, value.__module__, value.__qualname__)
            origin = origin_of(value.__globals__.get("__name__"))
            if origin is not None:
                self._add(f"{label}'s module", origin)
            else:
                self._add(f"{label}'s code", value.__code__)
                self._work.append(functools.partial(self._function, label, value))
        elif isinstance(value, pytypes.BuiltinFunctionType) and find_callee(value) is None:
            self._add(label, value.__module__, value.__qualname__)
        elif _is_the_compilers(value):
            self._add(label, type(value), getattr(value, "__name__", ""), getattr(value, "_defn", None))
            # A library of C++, whose attributes are its functions, or a class, whose size the headers decide.
            if hasattr(value, "__numba_cuda_call__"):
                self._owner(label, value)
        elif isinstance(value, (type, pytypes.FunctionType)) or not isinstance(attributes := state(value), dict):
            self._add(label, value)
            self._owner(label, value)
        else:
            # The code of its class shows in the attributes, and in the answers that are compared.
            self._show(label, f"{type(value).__module__}.{type(value).__qualname__}")
            if isinstance(value, (list, dict, set, frozenset, bytearray)):
                self._add(f"{label}'s content", value)
            for name, attribute in attributes.items():
                self._add(f"{label}.{name}", attribute)
            if _may_bring_code(value) and (operators := _operators(type(value))):
                self._add(f"{label}'s operators", operators, digest=fingerprint_of_code)
            if says := getattr(type(value), "__numba_cuda_call__", None):
                self._add(f"{label}'s parameters", *_parameters(says))  # they say which arguments are literals
            self._owner(label, value)

    def _linked(self, label: str, item: Any) -> None:
        """Reach what is named with ``link=``: it counts by its content, and a file by its name too."""
        self.external_code = True
        self.linked.append(item)
        if isinstance(item, (str, os.PathLike)):
            self._add(label, os.path.basename(item), file_digest(item))
        else:
            self._add(label, item)
        if isinstance(item, (LinkableCode, ObjectCode)):
            self._is_new(item)

    def _owner(self, label: str, owner: Any) -> None:
        """Reach the attributes of *owner* that any of the functions may mean."""
        self._owners.append((label, owner))
        for name in self._names:
            self._work.append(functools.partial(self._named, label, owner, name))

    def _named(self, label: str, owner: Any, name: str) -> None:
        if name.startswith("__"):
            return
        try:
            value = getattr(owner, name)
        except AttributeError:
            return
        except Exception as error:
            self._add(f"{label}.{name}", "raises", type(error))
            return
        self._reach(f"{label}.{name}", value, tuple(self._names))


def _operators(cls: type) -> dict[str, Any]:
    """Return the methods of a class that kernels use without naming them: those of ``len(obj)``, ``obj[i]`` and
    comparisons."""
    names = ("__len__", "__getitem__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
    methods = {name: getattr(cls, name, None) for name in names}
    return {name: method for name, method in methods.items() if method is not getattr(object, name, None)}


def _parameters(function: Any) -> list[Any]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [function]
    return [(each.name, int(each.kind), each.annotation, each.default) for each in parameters]


def _may_bring_code(value: Any) -> bool:
    if isinstance(value, ExternFunction) and (declared := declarations.get(value)) is not None and declared.link:
        return True
    return find_callee(value) is not None or hasattr(value, "__numba_cuda_call__")


def _is_the_compilers(value: Any) -> bool:
    """Return whether *value* is one of the objects of Numba and NumPy that kernels name, which versions identify."""
    module = (value if isinstance(value, type) else type(value)).__module__
    return module.partition(".")[0] in ("numba", "numpy") and not module.startswith("numba.cuda.tests")
