# SPDX-License-Identifier: BSD-2-Clause
"""What one compiled function calls, and where in the source. That costs time only where a function is linked into
another."""

from __future__ import annotations

import contextlib
import types as pytypes
from collections.abc import Iterable, Iterator
from typing import Any


class Calls:
    """What one compiled function calls: other compiled functions, and objects that provide linkable code."""

    def __init__(self) -> None:
        self.sites = OrderedSet()  # of objects, in order
        self.filename: str | None = None
        self.line: int | None = None  # where the source begins
        self.lines: dict[Any, int | None] = {}  # by function called, the line of the first call
        self.called_by_cxx: dict[Any, int | None] = {}  # the same for functions that C++ calls, which an object brings
        # By `id`: the Python function that was compiled, and those that lower calls in it.
        self.functions: dict[int, pytypes.FunctionType] = {}
        # What device callables returned for calls: by their types and those of the arguments, the objects, the
        # arguments, and what they returned.
        self.meanings: dict[Any, tuple[Any, Any, Any]] = {}
        self._lowering: Any = None

    @contextlib.contextmanager
    def being_lowered(self, lowering: Any) -> Iterator[None]:
        """Take the lines of what is added inside the ``with`` block from *lowering*."""
        loc, function = lowering.func_ir.loc, lowering.func_ir.func_id.func
        self.filename, self.line, self._lowering = loc.filename, loc.line, lowering
        self.functions[id(function)] = function
        try:
            yield
        finally:
            self._lowering = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "functions": {}, "meanings": {}, "called_by_cxx": {}, "_lowering": None}

    def note_implementation(self, function: Any) -> None:
        """Note a Python *function* that lowers a call, and the functions in its closure."""
        if isinstance(function, pytypes.FunctionType) and id(function) not in self.functions:
            self.functions[id(function)] = function
            for cell in function.__closure__ or ():
                with contextlib.suppress(ValueError):  # not filled yet
                    self.note_implementation(cell.cell_contents)

    def add(self, callee: Any, *, line: int | None = None, by_cxx: bool = False) -> None:
        """Note a call to *callee* at *line*, or of C++ that is called; by default, where code is being lowered."""
        lines = self.called_by_cxx if by_cxx else self.lines
        if callee not in lines:
            lines[callee] = line or getattr(getattr(self._lowering, "loc", None), "line", None)

    @property
    def below(self) -> dict[Any, int | None]:
        """The functions that it calls and those that C++ calls for it, with their lines."""
        return self.lines | self.called_by_cxx


class OrderedSet:
    """A set that keeps the order of insertion, with the methods that numba-cuda calls."""

    def __init__(self, items: Iterable[Any] = ()):
        self._items = dict.fromkeys(items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: Any) -> None:
        self._items[item] = None

    def update(self, items: Iterable[Any]) -> None:
        self._items.update(dict.fromkeys(items))
