# SPDX-License-Identifier: BSD-2-Clause
"""The call graph: the functions through which a kernel reaches its call sites.

Each function keeps its `Calls`: what it calls, and where in the source. That costs time only where a function is linked
into another.
"""

from __future__ import annotations

import contextlib
import itertools
import types as pytypes
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ..protocol.call_sites import CallSite
from .ordered_set import OrderedSet

if TYPE_CHECKING:
    from .function_code import FunctionCode

Node = TypeVar("Node")
_numbers = itertools.count(1)


class Calls:
    """What one compiled function calls: other compiled functions, and objects that provide linkable code."""

    def __init__(self) -> None:
        self.sites = OrderedSet()  # of objects, in order
        self.filename: str | None = None
        self.line: int | None = None  # where the source begins
        self.lines: dict[FunctionCode, int | None] = {}  # by function called, the line of the first call
        self.called_by_cxx: dict[FunctionCode, int | None] = {}  # the same for functions that C++ calls, which an object brings
        # By `id`: the Python function that was compiled, and those that lower calls in it.
        self.functions: dict[int, pytypes.FunctionType] = {}
        # By the `id` of the function, the bodies in Python that called objects returned.
        self.bodies: dict[int, Any] = {}
        self.frozen: tuple[Any, ...] = ()  # the constants that typing read of its closure
        self.number = 0  # among all functions that were compiled in this process
        self._lowering: Any = None

    @contextlib.contextmanager
    def being_lowered(self, lowering: Any, frozen: Iterable[Any]) -> Iterator[None]:
        """Take the lines of what is added inside the ``with`` block from *lowering*, which makes the values *frozen*
        constants."""
        loc, function = lowering.func_ir.loc, lowering.func_ir.func_id.func
        self.filename, self.line, self._lowering = loc.filename, loc.line, lowering
        self.functions[id(function)] = function
        self.number, self.frozen = next(_numbers), tuple(frozen)
        try:
            yield
        finally:
            self._lowering = None

    def note_implementation(self, function: Any) -> None:
        """Note a Python *function* that lowers a call, and the functions in its closure."""
        if isinstance(function, pytypes.FunctionType) and id(function) not in self.functions:
            self.functions[id(function)] = function
            for cell in function.__closure__ or ():
                with contextlib.suppress(ValueError):  # not filled yet
                    self.note_implementation(cell.cell_contents)

    def add(self, callee: FunctionCode, *, line: int | None = None, by_cxx: bool = False) -> None:
        """Note a call to *callee* at *line*, or of C++ that is called; by default, where code is being lowered."""
        lines = self.called_by_cxx if by_cxx else self.lines
        if callee not in lines:
            lines[callee] = line or getattr(getattr(self._lowering, "loc", None), "line", None)

    @property
    def below(self) -> dict[FunctionCode, int | None]:
        """The functions that it calls and those that C++ calls for it, with their lines."""
        return self.lines | self.called_by_cxx


@dataclass(frozen=True)
class Frame:
    """A link in a chain of calls: the line of *function* that calls the next one."""

    function: str
    filename: str | None
    line: int | None

    def __str__(self) -> str:
        return f"{self.function} ({self.filename}:{self.line})" if self.line is not None else self.function


@dataclass(frozen=True)
class Function:
    """A compiled function, and the line where its source begins."""

    name: str
    filename: str | None
    line: int | None


@dataclass(frozen=True)
class FunctionCall:
    """A call between two functions, by their indices, and the line of the first such call."""

    caller: int
    callee: int
    line: int | None


@dataclass(frozen=True)
class CallGraph:
    """The functions through which a kernel reaches its call sites: the kernel, and those below it that contain call
    sites or lead to them, in order of first use; and the calls between them."""

    functions: tuple[Function, ...]
    calls: tuple[FunctionCall, ...]


def callees_first(root: Node, callees: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """Yield *root* and all below it: each once, after everything that it calls."""
    visited = {root}
    path = [(root, iter(callees(root)))]
    while path:
        library, callees_left = path[-1]
        below = next((each for each in callees_left if each not in visited), None)
        if below is None:
            path.pop()
            yield library
        else:
            visited.add(below)
            path.append((below, iter(callees(below))))


def call_graph(kernel: FunctionCode) -> tuple[CallGraph, dict[CallSite, tuple[tuple[Frame, ...], int]]]:
    """Return the call graph of *kernel*, and for each of its call sites the shortest chain of calls from the kernel to
    it, and the index of the function that contains it."""
    leads_to_site: dict[FunctionCode, bool] = {}
    for code in callees_first(kernel, lambda code: code.calls.below):
        leads_to_site[code] = bool(code.calls.sites) or any(leads_to_site.get(below) for below in code.calls.below)
    numbers = {kernel: 0}
    chains: dict[FunctionCode, tuple[Frame, ...]] = {kernel: ()}
    edges = []
    sites: dict[CallSite, tuple[tuple[Frame, ...], int]] = {}
    queue = [kernel]
    for code in queue:
        calls = code.calls
        for site in calls.sites:
            here = Frame(code.name, site.filename, site.line)
            sites.setdefault(site, ((*chains[code], here), numbers[code]))
        for below, line in calls.below.items():
            if not leads_to_site[below]:
                continue
            if below not in numbers:
                numbers[below] = len(numbers)
                chains[below] = (*chains[code], Frame(code.name, calls.filename, line))
                queue.append(below)
            edges.append(FunctionCall(numbers[code], numbers[below], line))
    functions = tuple(Function(code.name, code.calls.filename, code.calls.line) for code in numbers)
    return CallGraph(functions, tuple(edges)), sites


def next_number() -> int:
    """Return a number that is larger than those of the functions compiled so far, and smaller than all others."""
    return next(_numbers)
