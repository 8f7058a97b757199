# SPDX-License-Identifier: BSD-2-Clause
"""Bodies: Python functions that are compiled into a kernel although it does not reach them by name.

Those are the bodies of overloads and intrinsics, and plain functions that these call. What is registered with Numba
counts in the kernel's key; each other one is found again through the global of a module in which it is defined, whose
fingerprint counts.
"""

from __future__ import annotations

import types as pytypes
from dataclasses import dataclass
from typing import Any

from ..compiling.call_graph import callees_first, calls_of
from ..python_code import codes, origin_of
from ..value_fingerprint import UnknownValueError, fingerprint
from .reachable import Reached
from .references import NotCacheableError, global_of, is_numba_cuda_file
from .registered import registered_codes


@dataclass(frozen=True)
class Body:
    """The global *name* of *module*, in which a function is defined that is compiled into the kernel."""

    module: str
    name: str
    digest: bytes

    @property
    def changed(self) -> bool:
        """Whether it is another function now, or leads to other values."""
        found = _function(global_of(self.module, self.name))
        try:
            return found is None or fingerprint(found) != self.digest
        except UnknownValueError:
            return True


def bodies_of(library: Any, kernel: pytypes.FunctionType, reached: Reached) -> tuple[Body, ...]:
    """Return the bodies that are compiled into *kernel*, whose code is *library*, besides what it *reached* by name.
    Raises `NotCacheableError` if one cannot be found again, or leads to a value that cannot be fingerprinted."""
    reached_functions = [function for thing in (kernel, *reached.things) if (function := _function(thing)) is not None]
    called = [calls_of(each) for each in callees_first(library, lambda each: calls_of(each).lines)]
    generators = {id(function): function for each in called for function in each.generators.values()}
    compiled = {id(function): function for each in called for function in each.functions.values()} | generators
    for function in reached_functions:
        compiled.pop(id(function), None)
    # What an overload or an intrinsic returns depends on its own code and the types of the arguments alone.
    known = registered_codes()
    bodies = [
        _body(function)
        for function in compiled.values()
        if function.__code__ not in known and origin_of(function.__globals__.get("__name__")) is None
    ]
    files = {function.__code__.co_filename for function in (*reached_functions, *generators.values())}
    for filename, line in (place for each in called for place in each.inlined.items()):
        if filename not in files and not is_numba_cuda_file(filename):
            raise NotCacheableError(f"the code at {filename}:{line}, which is inlined, is not reached by name")
    return tuple(dict.fromkeys(bodies))


def _body(function: pytypes.FunctionType) -> Body:
    module = function.__globals__.get("__name__", "")
    label = f"{module}.{function.__qualname__}, which is compiled into the kernel,"
    name = function.__qualname__.partition(".<locals>.")[0]
    found = _function(global_of(module, name))
    if found is None or function.__code__ not in codes(found.__code__):
        raise NotCacheableError(f"{label} is not defined by a global of its module")
    if function.__closure__:
        raise NotCacheableError(f"{label} has closure variables that another process cannot find")
    try:
        return Body(module, name, fingerprint(found))
    except UnknownValueError as error:
        raise NotCacheableError(f"{label} leads to more: {error}") from error


def _function(obj: Any) -> Any:
    """Return the Python function that *obj* is, or is made of, or None."""
    for attribute in ("py_func", "_defn", "__func__"):
        obj = getattr(obj, attribute, obj)
    return obj if isinstance(obj, pytypes.FunctionType) else None
