# SPDX-License-Identifier: BSD-2-Clause
"""The content of a Python function, wherever it is in a file: its bytecode, and the numbers and texts that it reads."""

from __future__ import annotations

import hashlib
import types as pytypes
from collections.abc import Iterator
from typing import Any

_DIGITS = 12  # of a digest
_CONSTANTS = (bool, int, float, complex, str, bytes, type(None))


def content_of(function: pytypes.FunctionType) -> str:
    """Return a digest, the same for equal functions in one version of Python: of bytecode, constants, names, default
    values, and the numbers and texts among the global variables and those of enclosing functions that it reads."""
    parts = (
        *_code(function.__code__, function.__globals__),
        *_closure(function),
        repr(_constant(function.__defaults__)),
    )
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def _code(code: pytypes.CodeType, names: dict[str, Any]) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_argcount))
    for name in code.co_names:
        yield repr(_constant(names.get(name)))
    for each in code.co_consts:
        if isinstance(each, pytypes.CodeType):
            yield from _code(each, names)
        else:
            yield repr(_constant(each))


def _closure(function: pytypes.FunctionType) -> Iterator[str]:
    for cell in function.__closure__ or ():
        try:
            yield repr(_constant(cell.cell_contents))
        except ValueError:  # not filled yet
            yield ""


def _constant(value: Any) -> Any:
    """Return *value* if it is a number, a text or a tuple of these; for anything else ``...``."""
    if isinstance(value, tuple):
        return tuple(map(_constant, value))
    return value if type(value) in _CONSTANTS else ...
