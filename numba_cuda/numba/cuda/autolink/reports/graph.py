# SPDX-License-Identifier: BSD-2-Clause
"""The graph of a report: kernel, functions, objects, code and result in columns, and edges; also for Graphviz."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field

from numba.cuda.cudadrv.external_code.formats.cxx_names import readable

from ..notebook_cells import shown_file
from . import formatting
from .records import BuildReport, CodeReport, KernelReport

# The columns, and their shapes in Graphviz.
_COLUMNS = {"kernel": "box", "device functions": "box", "objects": "ellipse", "code": "note", "result": "box3d"}
_quoted = functools.partial(json.dumps, ensure_ascii=False)


@dataclass(frozen=True)
class Node:
    """A node: the name and the number of its column, its text (``brief`` replaces ``detail`` where there is little
    room), and everything about it, for a tooltip. Nodes of one ``family``, a plural, may be drawn as one."""

    role: str
    layer: int
    title: str
    detail: str
    brief: str
    hint: str
    family: str = ""


@dataclass
class Graph:
    """Nodes by key, in order of first use, and the labels of each edge."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def connect(self, tail: str, head: str, label: str = "") -> None:
        """Draw an edge; an edge that is drawn twice gets both labels."""
        labels = self.edges.setdefault((tail, head), [])
        if label and label not in labels:
            labels.append(label)


def graph(report: KernelReport) -> Graph:
    """Return the graph of *report*; its architectures share all nodes but the result."""
    drawn = Graph()
    depths = [0] * len(report.graph.functions)  # the longest paths from the kernel; the functions are in no such order
    for _ in depths:
        for call in report.graph.calls:
            depths[call.callee] = max(depths[call.callee], depths[call.caller] + 1)
    for index, function in enumerate(report.graph.functions):
        role, family = ("device functions", "functions") if index else ("kernel", "")
        title = formatting.function(function.name)
        place = f"{formatting.file(function.filename)}:{function.line}" if function.filename else ""
        name = function.name if index else title + report.signature
        hint = f"{name}\n{shown_file(function.filename or '?')}:{function.line}"
        drawn.nodes[f"function {index}"] = Node(role, depths[index], title, place, "", hint, family)
    for call in report.graph.calls:
        drawn.connect(f"function {call.caller}", f"function {call.callee}", f"line {call.line}" if call.line else "")
    for build in report.builds:
        _add_build(drawn, build, max(depths, default=0) + 1)
    return drawn


def _add_build(drawn: Graph, build: BuildReport, layer: int) -> None:
    """Add the objects, the code and the result of *build*, in three columns from *layer* on."""
    for call in build.calls:
        key = f"object {call.name} {call.call}"
        arguments = f"({', '.join(call.argtypes)})"
        family = f"{call.type_name} objects"
        drawn.nodes.setdefault(key, Node("objects", layer, call.name, arguments, arguments, call.call, family))
        drawn.connect(f"function {call.function}", key, f"{formatting.file(call.filename)}:{call.line}")
        for code in call.returned:
            drawn.connect(key, _add_code(drawn, code, layer + 1))
    sites = {call.site for call in build.calls}
    result = f"result {build.arch}"
    for code in (part for item in build.link.inputs if not item.own for part in item.parts or (item,)):
        key = _add_code(drawn, code, layer + 1)
        for origin in code.brought_by:
            if origin not in sites:
                drawn.nodes.setdefault(f"by {origin}", Node("objects", layer, origin, "", "", origin))
                drawn.connect("function 0", f"by {origin}")
                drawn.connect(f"by {origin}", key)
        drawn.connect(key, result, f"compiled in {code.unit}" if code.unit else "")
    made = build.result
    detail = formatting.size(made.size) + (f", {made.registers} registers" if made.registers is not None else "")
    hint = f"{made.kind} of {readable(build.entry_name)}, sha256 {made.sha256[:12]}"
    drawn.nodes[result] = Node("result", layer + 2, f"{made.kind} for {build.arch}", detail, "", hint)
    if not any(head == result for _, head in drawn.edges):
        drawn.connect("function 0", result)


def _add_code(drawn: Graph, code: CodeReport, layer: int) -> str:
    """Add the node of *code*, unless it is there, and return its key."""
    key = f"code {code.kind} {code.sha256} {code.name}"
    detail = f"{code.kind}, {formatting.size(code.size)}"
    hint = [code.name, detail, f"sha256 {code.sha256}"]
    if code.compiled is not None:
        hint.append(f"compiled to {formatting.compiled(code.compiled)}")
    for what, names in ("defines ", code.defines), ("undefined: ", code.undefined):
        hint += [what + ", ".join(map(readable, names))] if names else []
    brief = detail.replace(" source", "", 1)
    title, family = formatting.file(code.name), f"{code.kind} inputs"
    drawn.nodes.setdefault(key, Node("code", layer, title, detail, brief, "\n".join(hint), family))
    return key


def to_dot(report: KernelReport) -> str:
    """Return the call graph for Graphviz: kernel, functions, objects, code and result."""
    drawn = graph(report)
    names = {key: f"n{number}" for number, key in enumerate(drawn.nodes)}
    lines = [
        f"digraph {_quoted(report.kernel)} {{",
        "  rankdir=LR;",
        '  node [fontname="Helvetica", fontsize=11];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]
    for key, node in drawn.nodes.items():
        label = _quoted("\n".join(filter(None, (node.title, node.detail))))
        lines.append(f"  {names[key]} [shape={_COLUMNS[node.role]}, label={label}, tooltip={_quoted(node.hint)}];")
    for (tail, head), labels in drawn.edges.items():
        label = f" [label={_quoted(', '.join(labels))}]" if labels else ""
        lines.append(f"  {names[tail]} -> {names[head]}{label};")
    return "\n".join([*lines, "}"]) + "\n"
