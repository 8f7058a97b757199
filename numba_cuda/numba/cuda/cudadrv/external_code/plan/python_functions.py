# SPDX-License-Identifier: BSD-2-Clause
"""The Python functions that a kernel is compiled from, as the cache's history describes them: nothing of this is in a
key."""

from __future__ import annotations

import hashlib
import inspect
import os
import platform
import time
import types
from dataclasses import dataclass
from typing import Any

from ..cache.entry import Facts, LineDigests, digests_of_lines

_imported = time.time()
_LONGEST = 60  # characters of a value


@dataclass(frozen=True)
class PythonFunction:
    """A Python function: its *name*, its file's *path* and *line*, a digest of its code, but for the names of its
    *parameters*, and the short *values* that it reads by global names or from its closure."""

    name: str
    path: str
    line: int
    digest: str
    parameters: str
    values: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, function: types.FunctionType) -> PythonFunction:
        code = function.__code__
        path = os.path.abspath(code.co_filename) if os.path.exists(code.co_filename) else code.co_filename
        parameters = ", ".join(code.co_varnames[: code.co_argcount])
        name = function.__qualname__.rpartition("<locals>.")[2]
        digest = hashlib.sha256(repr(_content(code, code.co_argcount)).encode()).hexdigest()[:16]
        return cls(name, path, code.co_firstlineno, digest, parameters, _values(function))

    @property
    def content(self) -> str:
        """A digest of its code and values, wherever it is in a file."""
        return hashlib.sha256(repr((self.digest, self.parameters, self.values)).encode()).hexdigest()[:12]

    def facts(self, *, with_line: bool) -> Facts:
        """Return what users know of it; *with* its *line* if the compiled code has lines."""
        line = [(self.name, "line", str(self.line))] if with_line else []
        values = [(self.name, f"value {name}", value) for name, value in self.values]
        return ((self.name, "code", self.digest), (self.name, "parameters", self.parameters), *values, *line)

    def lines(self) -> LineDigests:
        """Return digests of its lines, after one empty text for each line before it; nothing if its file was written
        since this process began."""
        try:
            if os.stat(self.path).st_mtime >= _imported:
                return ()
            with open(self.path, encoding="utf-8") as file:
                source = file.read().splitlines(keepends=True)
            block = inspect.getblock(source[self.line - 1 :])
        except (OSError, SyntaxError, ValueError, IndexError):
            return ()
        return ((f"code {self.name}", ("",) * (self.line - 1) + digests_of_lines("".join(block))),)


@dataclass(frozen=True)
class PythonKernel:
    """A kernel: its *name* with those of the functions that enclose it, the *types* of its arguments as signatures have
    them, and its *functions*, itself first."""

    name: str
    types: str
    functions: tuple[PythonFunction, ...]

    def facts(self, *, with_lines: bool) -> Facts:
        """Return what users know of it; *with* the *lines* of its functions if the compiled code has them."""
        own = self.functions[0]
        return (
            ("", "path", own.path),
            ("", "kernel", self.name),
            ("", "types", self.types),
            ("", "Python", platform.python_version()),
            *(fact for each in self.functions for fact in each.facts(with_line=with_lines)),
        )

    def lines(self) -> LineDigests:
        return tuple(line for each in self.functions for line in each.lines())


def _content(code: types.CodeType, parameters: int = 0) -> tuple[Any, ...]:
    """Return what code consists of, without lines and the names of its first *parameters*."""
    constants = tuple(_content(each) if isinstance(each, types.CodeType) else repr(each) for each in code.co_consts)
    names = code.co_names, code.co_varnames[parameters:], code.co_freevars, code.co_cellvars
    return code.co_code, constants, names, code.co_argcount, code.co_flags


def _values(function: types.FunctionType) -> tuple[tuple[str, str], ...]:
    code = function.__code__
    known = {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        if cell != types.CellType():
            known[name] = cell.cell_contents
    shown = ((name, repr(value)) for name, value in known.items() if type(value) in (bool, int, float, str))
    return tuple((name, text) for name, text in shown if len(text) <= _LONGEST)
