# SPDX-License-Identifier: BSD-2-Clause
"""The graph of a report drawn as SVG: columns from the kernel to the result, with all details in tooltips."""

from __future__ import annotations

from collections import Counter
from html import escape
from itertools import accumulate
from typing import NamedTuple

from .folding import folded
from .formatting import shortened
from .graph import Node, graph
from .layout import layout
from .records import KernelReport
from .theme import CLASS, FONT, paint, style, variables

_TITLE, _DETAIL = 12.0, 10.5  # font sizes
_TITLE_CHARACTER, _DETAIL_CHARACTER = 0.62, 0.56  # mean widths of characters, in font sizes, of a wide font
_LONGEST_TITLE, _LONGEST_DETAIL = 32, 40
_MANY = 14  # from here on, boxes have one line, and edges of one node run along one line
_POINT = 14.0
_MOST_PLACES = 20  # in the tooltip of an edge
_MARGIN, _HEADING, _PADDING, _BETWEEN = 16.0, 26.0, 12.0, 48.0
STYLE = """
& g.node:hover .box { stroke-width: 2; }
& svg text { letter-spacing: normal; word-spacing: normal; text-transform: none; font-style: normal; }
"""


class _Boxes(NamedTuple):
    """How the nodes of a column are drawn: with two lines of text, or with one where there are many."""

    height: float
    gap: float
    one_line: bool

    def texts(self, node: Node) -> tuple[str, str]:
        """Return the title and the detail that the box of *node* shows."""
        detail = node.brief if self.one_line else node.detail
        # What tells objects apart is in their names.
        title = node.title if node.role == "objects" else shortened(node.title, _LONGEST_TITLE)
        return title, shortened(detail, _LONGEST_DETAIL)

    def width(self, node: Node) -> float:
        title, detail = self.texts(node)
        lines = (len(title) * _TITLE * _TITLE_CHARACTER, len(detail) * _DETAIL * _DETAIL_CHARACTER)
        return (sum(lines) + _PADDING if self.one_line and detail else max(lines)) + 2 * _PADDING


_FEW, _DENSE = _Boxes(38.0, 12.0, False), _Boxes(24.0, 5.0, True)


def to_svg(report: KernelReport) -> str:
    """Return the call graph as the text of an SVG image."""
    return drawing(report, f"<style>{variables()}\n{style(STYLE)}</style>")


def drawing(report: KernelReport, styles: str = "") -> str:
    """Return the ``svg`` element; *styles* is its ``style`` element, empty in a page that has the styles."""
    drawn = folded(graph(report))
    nodes = drawn.nodes.values()
    layers = {key: node.layer for key, node in drawn.nodes.items()}
    boxes = {layer: _DENSE if number >= _MANY else _FEW for layer, number in Counter(layers.values()).items()}
    heights = {key: boxes[layer].height + boxes[layer].gap for key, layer in layers.items()}
    placed = layout(layers, drawn.edges, heights, _POINT)
    widths = [0.0] * (max(boxes) + 1)
    for node in nodes:
        widths[node.layer] = max(widths[node.layer], boxes[node.layer].width(node))
    lefts = list(accumulate(widths, lambda left, width: left + width + _BETWEEN, initial=_MARGIN))
    top = _MARGIN + _HEADING
    width = lefts[-1] - _BETWEEN + _MARGIN
    height = top + placed.height + _MARGIN - min(each.gap for each in boxes.values()) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{CLASS}" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" font-family="{FONT}"'
        f' style="--nca-width: {width:.0f}px; font-family: {FONT.replace(chr(34), "")} !important" role="img">',
        f"<title>{escape(f'What {report.kernel} calls, and what it is linked from')}</title>",
        styles,
        f'<rect width="{width:.0f}" height="{height:.0f}" {paint(fill="back")}/>',
    ]
    columns = {node.role: node.layer for node in sorted(nodes, key=lambda node: -node.layer)}
    parts += [_text("detail", role, lefts[layer], _MARGIN + 8) for role, layer in columns.items()]
    outgoing = Counter(tail for tail, _ in drawn.edges)
    incoming = Counter(head for _, head in drawn.edges)
    for (tail, head), labels in drawn.edges.items():
        route = placed.routes[tail, head]
        sides = [(x, y + top) for layer, y in route for x in (lefts[layer], lefts[layer] + widths[layer])]
        places = f": {', '.join(labels[:_MOST_PLACES])}" if labels else ""
        places += f" and {len(labels) - _MOST_PLACES} more" if len(labels) > _MOST_PLACES else ""
        hint = f"{drawn.nodes[tail].title} → {drawn.nodes[head].title}{places}"
        parts.append(_edge(sides[1:-1], hint, outgoing[tail] >= _MANY, incoming[head] >= _MANY))
    for key, node in drawn.nodes.items():
        parts.append(_node(node, boxes[node.layer], lefts[node.layer], placed.nodes[key] + top, widths[node.layer]))
    return "\n".join([*parts, "</svg>"])


def _edge(points: list[tuple[float, float]], hint: str, from_many: bool, to_many: bool) -> str:
    """Return a line through *points*, which alternately lead to the next column and across it."""
    (x, y), (tip_x, tip_y) = points[0], points[-1]
    path = f"M{x:.1f} {y:.1f}"
    for index, (to_x, to_y) in enumerate([*points[1:-1], (tip_x - 5, tip_y)], 1):
        middle = (x + to_x) / 2
        if index % 2 == 0:
            path += f" L{to_x:.1f} {to_y:.1f}"
        elif (from_many and index == 1) or (to_many and index == len(points) - 1):
            bend = min(6.0, abs(to_y - y) / 2) * (1 if to_y > y else -1)
            path += f" H{middle - abs(bend):.1f} Q{middle:.1f} {y:.1f} {middle:.1f} {y + bend:.1f} V{to_y - bend:.1f}"
            path += f" Q{middle:.1f} {to_y:.1f} {middle + abs(bend):.1f} {to_y:.1f} H{to_x:.1f}"
        else:
            path += f" C{middle:.1f} {y:.1f} {middle:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    return (
        f'<g><title>{escape(hint)}</title><path d="{path}" fill="none" {paint(stroke="edge")}/>'
        f'<path d="M{tip_x:.1f} {tip_y:.1f} l-7 -3.5 v7 z" {paint(fill="edge")}/></g>'
    )


def _node(node: Node, boxes: _Boxes, x: float, middle: float, width: float) -> str:
    title, detail = boxes.texts(node)
    left, place = x + _PADDING, f'x="{x:.1f}" y="{middle - boxes.height / 2:.1f}" height="{boxes.height}"'
    lines = _text("title", title, left, middle + 4 if boxes.one_line or not detail else middle - 3)
    if detail and boxes.one_line:
        lines += _text("detail", detail, x + width - _PADDING, middle + 4, "end")
    elif detail:
        lines += _text("detail", detail, left, middle + 12)
    return (
        f'<g class="node"><title>{escape(node.hint)}</title>'
        f'<rect class="box" {place} width="{width:.1f}" rx="4" {paint(fill="node", stroke="line")}/>'
        f'<rect {place} width="4" rx="2" {paint(fill=node.role)}/>{lines}</g>'
    )


def _text(kind: str, text: str, x: float, y: float, anchor: str = "start") -> str:
    size, weight, colour = (_TITLE, 600, "text") if kind == "title" else (_DETAIL, 400, "faint")
    font = f"font-size: {size}px !important; font-weight: {weight} !important"
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}"'
        f" {paint(font, fill=colour)}>{escape(text)}</text>"
    )
