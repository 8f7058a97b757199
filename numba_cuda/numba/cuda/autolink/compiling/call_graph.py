# SPDX-License-Identifier: BSD-2-Clause
"""The call graph: by which functions a kernel gets to its call sites.

Each code library keeps its `Calls`: what is below it, and where in the source it is called. That costs something only
where a library is linked into another.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..protocol.call_sites import CallSite


class Calls:
    """What one compiled function calls: other compiled functions, by their libraries, and objects, by call sites."""

    def __init__(self) -> None:
        self.sites: list[CallSite] = []
        self.filename: str | None = None
        self.line: int | None = None
        self.lines: dict[Any, int | None] = {}
        self._lowering: Any = None

    @contextlib.contextmanager
    def being_lowered(self, lowering: Any) -> Iterator[None]:
        """*lowering* is at the place of what is added now."""
        loc = lowering.func_ir.loc
        self.filename, self.line, self._lowering = loc.filename, loc.line, lowering
        try:
            yield
        finally:
            self._lowering = None

    def add(self, library: Any) -> None:
        """*library* is called; its place is that of the first call."""
        if library not in self.lines:
            self.lines[library] = getattr(getattr(self._lowering, "loc", None), "line", None)

    def add_site(self, site: CallSite) -> None:
        """An object is called."""
        if site not in self.sites:
            self.sites.append(site)


@dataclass(frozen=True)
class Frame:
    """A place in a chain of calls: the line of *function* where the next one is called."""

    function: str
    filename: str | None
    line: int | None

    def __str__(self) -> str:
        return f"{self.function} ({self.filename}:{self.line})" if self.line is not None else self.function


@dataclass(frozen=True)
class Function:
    """A compiled function, and where its source begins."""

    name: str
    filename: str | None
    line: int | None


@dataclass(frozen=True)
class FunctionCall:
    """A call between two functions, by their indices, and the line of the first one."""

    caller: int
    callee: int
    line: int | None


@dataclass(frozen=True)
class CallGraph:
    """The functions by which a kernel gets to its call sites.

    Attributes
    ----------
    functions:
        The kernel, and the functions below it that call sites are in or under, in order of first use.
    calls:
        The calls between them.
    """

    functions: tuple[Function, ...]
    calls: tuple[FunctionCall, ...]


def call_graph(kernel: Any) -> tuple[CallGraph, dict[CallSite, tuple[tuple[Frame, ...], int]]]:
    """The call graph of the library *kernel*; and for each of its call sites the shortest chain of calls to it, from
    the kernel to the call itself, and the index of the function that it is in."""
    lead_somewhere: dict[Any, bool] = {}

    def leads_somewhere(library: Any) -> bool:
        known = lead_somewhere.get(library)
        if known is None:
            calls = _calls(library)
            lead_somewhere[library] = known = bool(calls.sites) | any([leads_somewhere(below) for below in calls.lines])
        return known

    leads_somewhere(kernel)
    numbers = {kernel: 0}
    chains: dict[Any, tuple[Frame, ...]] = {kernel: ()}
    edges = []
    sites: dict[CallSite, tuple[tuple[Frame, ...], int]] = {}
    queue = [kernel]
    for library in queue:
        calls = _calls(library)
        for site in calls.sites:
            here = Frame(library.name, site.filename, site.line)
            sites.setdefault(site, ((*chains[library], here), numbers[library]))
        for below, line in calls.lines.items():
            if not lead_somewhere[below]:
                continue
            if below not in numbers:
                numbers[below] = len(numbers)
                chains[below] = (*chains[library], Frame(library.name, calls.filename, line))
                queue.append(below)
            edges.append(FunctionCall(numbers[library], numbers[below], line))
    functions = tuple(Function(library.name, _calls(library).filename, _calls(library).line) for library in numbers)
    return CallGraph(functions, tuple(edges)), sites


_NONE = Calls()


def _calls(library: Any) -> Calls:
    calls = getattr(library, "calls", _NONE)
    return calls if isinstance(calls, Calls) else _NONE
