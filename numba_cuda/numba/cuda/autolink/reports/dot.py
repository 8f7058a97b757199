# SPDX-License-Identifier: BSD-2-Clause
"""The graph of a report for Graphviz."""

from __future__ import annotations

from .graph import graph
from .records import KernelReport

_SHAPES = {
    "kernel": "box",
    "device functions": "box",
    "objects": "ellipse",
    "code": "note",
    "result": "box3d",
}


def to_dot(report: KernelReport) -> str:
    """Return the graph as the text of a ``.dot`` file."""
    drawn = graph(report)
    names = {key: f"n{number}" for number, key in enumerate(drawn.nodes)}
    lines = [
        f"digraph {_quoted(report.kernel)} {{",
        "  rankdir=LR;",
        '  node [fontname="Helvetica", fontsize=11];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]
    for key, node in drawn.nodes.items():
        label = "\n".join(part for part in (node.title, node.detail) if part)
        lines.append(
            f"  {names[key]} [shape={_SHAPES[node.role]}, label={_quoted(label)}, tooltip={_quoted(node.hint)}];"
        )
    for (tail, head), labels in drawn.edges.items():
        label = f" [label={_quoted(', '.join(labels))}]" if labels else ""
        lines.append(f"  {names[tail]} -> {names[head]}{label};")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
