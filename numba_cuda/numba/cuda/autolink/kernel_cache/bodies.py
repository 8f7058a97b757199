# SPDX-License-Identifier: BSD-2-Clause
"""Bodies: Python functions that are compiled into a kernel although it does not reach them by name.

Those are the bodies of overloads and intrinsics, and plain functions that these call. What is registered with Numba
counts in the kernel's key. An object that returned a body is asked for it again. Each other one is found again through
the global of a module in which it is defined. The fingerprint of what is found counts.
"""

from __future__ import annotations

import types as pytypes
from dataclasses import dataclass
from typing import Any

from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr
from numba.cuda.cudadrv.external_code.platform.target import Target

from ..compilation.context import asking
from ..device_callable.python_bodies import PythonBody
from ..function_code.call_graph import callees_first, calls_of
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

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"

    def changed(self, target: Target) -> bool:
        """Return whether it is another function now, or leads to other values."""
        found = _function(global_of(self.module, self.name))
        return found is None or not _is(found, self.digest)


@dataclass(frozen=True)
class ReturnedBody:
    """The body that a called *obj* returned for the types of the *arguments* of a call, and in which file it is."""

    obj: Any
    arguments: Any
    filename: str
    digest: bytes

    def __str__(self) -> str:
        return f"a Python function of {safe_repr(self.obj)}"

    def changed(self, target: Target) -> bool:
        """Return whether the object returns another function now for *target*, or that leads to other values."""
        with asking(target):
            found = _function(self.arguments.apply(self.obj.__numba_cuda_call__))
        return found is None or not _is(found, self.digest)


def _is(function: pytypes.FunctionType, digest: bytes) -> bool:
    try:
        return fingerprint(function) == digest
    except UnknownValueError:
        return False


def bodies_of(library: Any, kernel: pytypes.FunctionType, reached: Reached) -> tuple[Body | ReturnedBody, ...]:
    """Return the bodies that are compiled into *kernel*, whose code is *library*, besides what it *reached* by name.
    Raises `NotCacheableError` if one cannot be found again, or leads to a value that cannot be fingerprinted."""
    reached_functions = [function for thing in (kernel, *reached.things) if (function := _function(thing)) is not None]
    called = [calls_of(each) for each in callees_first(library, lambda each: calls_of(each).lines)]
    for value in (value for each in called if each.number < reached.number_then for value in each.frozen):
        if value.changed():
            raise NotCacheableError(f"{value}, has changed since that was compiled")
    generators = {id(function): function for each in called for function in each.generators.values()}
    compiled = {id(function): function for each in called for function in each.functions.values()} | generators
    for function in reached_functions:
        compiled.pop(id(function), None)
    returned = {number: body for each in called for number, body in each.bodies.items()}
    # What an overload or an intrinsic returns depends on its own code and the types of the arguments alone.
    known = registered_codes()
    bodies: list[Body | ReturnedBody] = list(map(_returned_body, returned.values()))
    bodies += [
        _body(function)
        for function in compiled.values()
        if id(function) not in returned
        and function.__code__ not in known
        and origin_of(function.__globals__.get("__name__")) is None
    ]
    named = (*reached_functions, *generators.values(), *(body.function for body in returned.values()))
    files = {function.__code__.co_filename for function in named}
    for filename, line in (place for each in called for place in each.inlined.items()):
        if filename not in files and not is_numba_cuda_file(filename):
            raise NotCacheableError(f"the code at {filename}:{line}, which is inlined, is not reached by name")
    return tuple(bodies)


def _returned_body(body: PythonBody) -> ReturnedBody:
    try:
        digest = fingerprint(body.function)
    except UnknownValueError as error:
        raise NotCacheableError(
            f"a Python function that {safe_repr(body.obj)} returns leads to more: {error}"
        ) from error
    if digest != body.fingerprint:
        raise NotCacheableError(f"a Python function that {safe_repr(body.obj)} returned has changed since")
    return ReturnedBody(body.obj, body.arguments, body.function.__code__.co_filename, digest)


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
