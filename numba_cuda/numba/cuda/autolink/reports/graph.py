# SPDX-License-Identifier: BSD-2-Clause
"""The graph of a report: kernel, device functions, objects, code and result, as nodes in columns, and edges."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import words
from .records import CallReport, CodeReport, Report

COLUMNS = ("kernel", "device functions", "objects", "code", "result")


@dataclass(frozen=True)
class Node:
    """A node: its column's name, what stands in it (``brief`` in place of ``detail`` where there is little room), and
    all that there is to say about it."""

    role: str
    layer: int
    title: str
    detail: str
    brief: str
    hint: str


@dataclass
class Graph:
    """Nodes by key, in order of first use, and edges with a remark each."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def connect(self, tail: str, head: str, remark: str = "") -> None:
        """Draw an edge; what is drawn twice is one edge with two remarks."""
        remarks = self.edges.setdefault((tail, head), [])
        if remark and remark not in remarks:
            remarks.append(remark)


def graph(report: Report) -> Graph:
    """The graph of *report*; its architectures share all but the result."""
    drawn = Graph()
    depths = _depths(report)
    deepest = max(depths, default=0)
    for index, function in enumerate(report.graph.functions):
        name = words.function(function.name)
        place = f"{words.file(function.filename)}:{function.line}" if function.filename else ""
        if index == 0:
            hint = f"{name}{report.signature}\n{function.filename}:{function.line}"
            drawn.nodes["function 0"] = Node("kernel", 0, name, place, "", hint)
        else:
            hint = f"{function.name}\n{function.filename}:{function.line}"
            drawn.nodes[f"function {index}"] = Node("device functions", depths[index], name, place, "", hint)
    for call in report.graph.calls:
        drawn.connect(f"function {call.caller}", f"function {call.callee}", f"line {call.line}" if call.line else "")
    layer = deepest + 1
    for build in report.builds:
        for made in build.calls:
            key = _object_key(made)
            arguments = f"({', '.join(made.argtypes)})"
            drawn.nodes.setdefault(key, Node("objects", layer, made.name, arguments, arguments, made.call))
            drawn.connect(f"function {made.function}", key, f"{words.file(made.filename)}:{made.line}")
            for code in made.returned:
                drawn.connect(key, _code(drawn, code, layer + 1))
        result = f"result {build.arch}"
        for code in build.link.inputs:
            if code.own:
                continue
            for part in code.parts or (code,):
                key = _code(drawn, part, layer + 1)
                for origin in part.brought_by:
                    if " called at " not in origin:
                        drawn.nodes.setdefault(f"by {origin}", Node("objects", layer, origin, "", "", origin))
                        drawn.connect("function 0", f"by {origin}")
                        drawn.connect(f"by {origin}", key)
                drawn.connect(key, result, f"compiled in {part.unit}" if part.unit else "")
        made_of = build.result
        registers = f", {made_of.registers} registers" if made_of.registers is not None else ""
        hint = f"{made_of.kind} of {build.entry_name}, {words.digest(made_of.sha256)}"
        drawn.nodes[result] = Node(
            "result",
            layer + 2,
            f"{made_of.kind} for {build.arch}",
            f"{words.size(made_of.size)}{registers}",
            "",
            hint,
        )
        if not any(head == result for _, head in drawn.edges):
            drawn.connect("function 0", result)
    return drawn


def _depths(report: Report) -> list[int]:
    """How far each function is from the kernel, on the longest way. Callees follow their callers in no order."""
    depths = [0] * len(report.graph.functions)
    for _ in depths:
        for call in report.graph.calls:
            depths[call.callee] = max(depths[call.callee], depths[call.caller] + 1)
    return depths


def _object_key(call: CallReport) -> str:
    return f"object {call.call}"


def _code(drawn: Graph, code: CodeReport, layer: int) -> str:
    key = f"code {code.kind} {code.sha256} {code.name}"
    if key not in drawn.nodes:
        detail = f"{code.kind}, {words.size(code.size)}"
        hint = f"{code.name}\n{detail}\nsha256 {code.sha256}"
        if code.compiled is not None:
            hint += f"\ncompiled to {code.compiled.kind}, {words.size(code.compiled.size)}"
            hint += f": {words.origin(code.compiled.origin, code.compiled.seconds)}"
        for label, names in (("defines", code.defines), ("wants", code.wants)):
            if names:
                hint += f"\n{label} {', '.join(names)}"
        brief = f"{code.kind.removesuffix(' source')}, {words.size(code.size)}"
        drawn.nodes[key] = Node("code", layer, words.file(code.name), detail, brief, hint)
    return key
