# SPDX-License-Identifier: BSD-2-Clause
"""Pickles in which references stand for the objects that a kernel reaches, so that another process finds its own.

An object that the kernel reaches is found by its number among all that it reaches, any other by the name of a module's
global.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import types as pytypes
from collections.abc import Iterable, Iterator
from typing import Any

import numba.cuda
from numba.cuda import types
from numba.cuda.serialize import NumbaPickler

from ..protocol.call_sites import CallSite
from ..protocol.callee import identity
from ..protocol.calling_code import CallingCode
from .reachable import Reached

_NUMBA_CUDA = os.path.dirname(os.path.abspath(numba.cuda.__file__))


class NotCacheableError(Exception):
    """Another process could not find a kernel's external code again, and so could not check it."""


def is_numba_cuda_file(path: str | os.PathLike[str]) -> bool:
    """Return whether *path* is one of numba-cuda's own files."""
    return os.path.abspath(path).startswith(_NUMBA_CUDA + os.sep)


def is_numba_cuda_global(obj: Any) -> bool:
    """Return whether *obj* is a global of one of numba-cuda's own modules."""
    return _global_name(obj, _numba_cuda_modules()) is not None


def global_of(module: str, name: str) -> Any:
    """Return what *module* has under the qualified *name*, or None."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def code_label(code: Any) -> str:
    """Return what messages call *code* in memory."""
    return f"{type(code).__name__} {code.name!r}"


class KernelPickler(NumbaPickler):
    """Pickles what belongs to a kernel, with references in place of the objects that it reaches. Raises
    `NotCacheableError` if one of the *entries* (paths, code in memory, call sites), or an object that returned one of
    the *bodies*, is neither reached nor a global of the module that calls it."""

    def __init__(self, file: io.BytesIO, reached: Reached, entries: Iterable[Any], bodies: Iterable[Any] = ()):
        super().__init__(file, protocol=5)
        self._reached = reached
        self._globals: dict[Any, tuple[str, ...]] = {}
        self._linked = {
            os.fspath(item): ("linked", number)
            for number, item in enumerate(reached.linked)
            if isinstance(item, (str, os.PathLike))
        }
        for body in bodies:
            self._locate(body.obj, _modules_at(body.filename), str(body))
        for entry in entries:
            if isinstance(entry, CallSite):
                self._locate(entry.callee.obj, _modules_at(entry.filename), str(entry))
                for given in (getattr(each, "numba_cuda_link_object", None) for each in entry.argtypes):
                    if given is not None and not isinstance(given, CallingCode):  # which is compiled again
                        self._locate(given, _modules_at(entry.filename), f"{given}, an argument of {entry},")
            elif not isinstance(entry, (str, os.PathLike)):
                self._locate(entry, _numba_cuda_modules(), code_label(entry))
            elif os.fspath(entry) not in self._linked and not is_numba_cuda_file(entry):
                raise NotCacheableError(_not_reached(os.fspath(entry)))

    def _locate(self, obj: Any, modules: Iterable[pytypes.ModuleType], label: str) -> None:
        if self._reached.number(obj) is not None or isinstance(obj, types.Type):
            return
        owner = getattr(obj, "__self__", obj)
        if self._reached.number(owner) is None:
            name = _global_name(owner, modules) or _qualified_name(owner)
            if name is None:
                raise NotCacheableError(_not_reached(label))
            self._globals[identity(owner)] = ("global", *name)

    def reducer_override(self, obj: Any) -> Any:
        """Pickle the type of a function that is written in a kernel so that it holds the function: nothing else does
        in another process."""
        if isinstance(obj, types.Dispatcher):
            return _type_of_function, (type(obj), obj.dispatcher)
        return super().reducer_override(obj)

    def persistent_id(self, obj: Any) -> Any:
        """Return the reference that stands for *obj*; ``None`` if *obj* itself is pickled."""
        if isinstance(obj, (str, os.PathLike)):
            # Another checkout of the same sources has the file in another folder.
            return self._linked.get(os.fspath(obj))
        number = self._reached.number(obj)
        return self._globals.get(identity(obj)) or (None if number is None else ("reached", number))


class KernelUnpickler(pickle.Unpickler):
    """Reads what `KernelPickler` wrote. References become the objects that are reached now."""

    def __init__(self, file: io.BytesIO, reached: Reached):
        super().__init__(file)
        self._reached = reached

    def persistent_load(self, reference: Any) -> Any:
        """Return the object that *reference* stands for."""
        if reference[0] == "reached":
            return self._reached.things[reference[1]]
        if reference[0] == "linked":
            return os.fspath(self._reached.linked[reference[1]])
        _, module, name = reference
        found: Any = sys.modules.get(module)
        if found is None:
            raise pickle.UnpicklingError(f"module {module} is not imported")
        for part in name.split("."):
            found = getattr(found, part)
        return found


def _type_of_function(cls: Any, dispatcher: Any) -> types.Dispatcher:
    found = cls(dispatcher)
    found.numba_cuda_autolink_held = dispatcher
    return found


def _not_reached(label: str) -> str:
    return (
        f"{label} is neither a global nor a closure variable of the kernel or of a device function that it calls, nor"
        " an attribute or element of one, so that nothing could check in another process whether it changed"
    )


def _modules_at(filename: str) -> Iterator[pytypes.ModuleType]:
    return (module for module in tuple(sys.modules.values()) if getattr(module, "__file__", None) == filename)


def _numba_cuda_modules() -> Iterator[pytypes.ModuleType]:
    ours = (name for name in tuple(sys.modules) if name.startswith("numba.cuda."))
    return (sys.modules[name] for name in ours if not name.startswith("numba.cuda.tests"))


def _global_name(obj: Any, modules: Iterable[pytypes.ModuleType]) -> tuple[str, str] | None:
    """Return the names of the first of *modules* that has *obj* as a global, and of that global."""
    for module in modules:
        for name, value in tuple(vars(module).items()):
            if value is obj:
                return module.__name__, name
    return None


def _qualified_name(obj: Any) -> tuple[str, str] | None:
    """Return the module and the qualified name of a function or class that can be found under them."""
    module, name = getattr(obj, "__module__", None), getattr(obj, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str) and global_of(module, name) is obj:
        return module, name
    return None
