# SPDX-License-Identifier: BSD-2-Clause
"""The call graph: the functions through which a kernel reaches its call sites."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from ..protocol.call_sites import CallSite
from .function_code import FunctionCode

Node = TypeVar("Node")


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


def all_functions(kernel: FunctionCode) -> Iterator[FunctionCode]:
    """Yield the functions that are compiled into *kernel* or for its calls, and the kernel last."""
    return callees_first(kernel, lambda code: code.calls.below)


def call_graph(kernel: FunctionCode) -> tuple[CallGraph, dict[CallSite, tuple[tuple[Frame, ...], int]]]:
    """Return the call graph of *kernel*, and for each of its call sites the shortest chain of calls from the kernel to
    it, and the index of the function that contains it."""
    leads_to_site: dict[FunctionCode, bool] = {}
    for code in all_functions(kernel):
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
