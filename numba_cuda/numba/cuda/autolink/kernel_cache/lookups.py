# SPDX-License-Identifier: BSD-2-Clause
"""Functions that run while a kernel is compiled, and look up what no name in their code tells: the environment, files,
attributes whose names are made at run time."""

from __future__ import annotations

import builtins
import sys
import types as pytypes
from collections.abc import Iterator
from typing import Any

from ..python_code import closure_of, globals_used, imports_of, names_used, origin_of

# fmt: off
# Modules of Python whose functions depend on their arguments alone.
_PURE = frozenset(
    (
    "__future__", "_collections", "_collections_abc", "_functools", "_operator", "_struct", "_thread", "_weakref",
    "abc", "array", "ast", "bisect", "builtins", "cmath", "collections", "contextlib", "copy", "copyreg", "ctypes",
    "dataclasses", "datetime", "decimal", "dis", "enum", "fractions", "functools", "heapq", "inspect", "itertools",
    "json", "keyword", "logging", "math", "numbers", "operator", "re", "statistics", "string", "struct", "textwrap",
    "threading", "traceback", "types", "typing", "unittest", "warnings", "weakref",
    )
)
# fmt: on
_FROM_OUTSIDE = frozenset(("__import__", "breakpoint", "compile", "eval", "exec", "globals", "input", "locals", "open"))
_BY_NAME = frozenset(("attrgetter", "dir", "getattr", "methodcaller", "vars"))


def looked_up(function: pytypes.FunctionType, outer: tuple[Any, ...] = ()) -> str | None:
    """Return the name of what *function*, or a function that it names, looks something up in; None if it does not."""
    if any(function is each for each in outer) or origin_of(function.__globals__.get("__name__")) is not None:
        return None
    imported = tuple(imports_of(function.__code__))
    values = [*_named(function), *((name, sys.modules.get(name)) for name in imported)]
    if any(isinstance(value, pytypes.ModuleType) and origin_of(value.__name__) is None for _, value in values):
        for name in names_used(function.__code__):
            if name in _BY_NAME:
                return name
    for name, value in values:
        is_module = isinstance(value, pytypes.ModuleType)
        home = value.__name__ if is_module else getattr(value, "__module__", None)
        if home in ("builtins", "io", "_io"):
            if getattr(value, "__name__", None) in _FROM_OUTSIDE:
                return name
        elif isinstance(home, str) and _is_impure(home):
            return name
        for each in () if is_module else _functions(value):
            if (found := looked_up(each, (*outer, function))) is not None:
                return found
    return next(filter(_is_impure, imported), None)


def _named(function: pytypes.FunctionType) -> Iterator[tuple[str, Any]]:
    for name in globals_used(function.__code__):
        yield name, function.__globals__.get(name, getattr(builtins, name, None))
    yield from closure_of(function)


def _functions(value: Any) -> Iterator[pytypes.FunctionType]:
    """Yield the function that *value* is or wraps, and the methods of the class that it is, or of its class."""
    cls = value if isinstance(value, type) else type(value)
    for each in (value, *(vars(cls).values() if origin_of(cls.__module__) is None else ())):
        for attribute in ("py_func", "__func__", "__wrapped__"):
            each = getattr(each, attribute, each)
        if isinstance(each, pytypes.FunctionType):
            yield each


def _is_impure(module: str) -> bool:
    package = module.partition(".")[0]
    return package in sys.stdlib_module_names and package not in _PURE
