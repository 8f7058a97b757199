# SPDX-License-Identifier: BSD-2-Clause
"""The graph of a report drawn as SVG: columns from the kernel to the result. Tooltips hold the details, and text that
is too long for its box."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from . import formatting
from .graph import COLUMNS, Node, graph
from .layout import layout
from .records import KernelReport
from .theme import CLASS, FONT, colour, variables

_TITLE, _DETAIL = 12.0, 10.5  # font sizes
_TITLE_CHARACTER, _DETAIL_CHARACTER = 0.62, 0.56  # mean widths of characters, in font sizes, of a wide font
_LONGEST_TITLE, _LONGEST_DETAIL = 26, 32
_MANY = 14  # from here on, boxes have one line, and edges of one node run along one line
_POINT = 14.0
_MARGIN, _HEADING, _PADDING, _BETWEEN = 16.0, 26.0, 12.0, 48.0


@dataclass(frozen=True)
class _Boxes:
    """How the nodes of a column are drawn: with two lines of text, or with one where there are many."""

    height: float
    gap: float
    one_line: bool


_FEW = _Boxes(38.0, 12.0, False)
_DENSE = _Boxes(24.0, 5.0, True)


def style() -> str:
    """Return the style sheet of the drawing, without the variables of the colours."""
    roles = "\n".join(
        f".{CLASS} .{role} {{ fill: var(--nca-{role}); }}" for role in (name.replace(" ", "-") for name in COLUMNS)
    )
    return f"""
.{CLASS} .back {{ fill: var(--nca-back); }}
.{CLASS} .box {{ fill: var(--nca-node); stroke: var(--nca-line); }}
.{CLASS} .title {{ fill: var(--nca-text); font: 600 {_TITLE}px {FONT}; }}
.{CLASS} .detail, .{CLASS} .heading {{ fill: var(--nca-faint); font: {_DETAIL}px {FONT}; }}
.{CLASS} .edge {{ fill: none; stroke: var(--nca-edge); }}
.{CLASS} .arrow {{ fill: var(--nca-edge); }}
.{CLASS} g.node:hover .box {{ stroke: var(--nca-text); }}
{roles}
"""


def to_svg(report: KernelReport) -> str:
    """Return the call graph as the text of an SVG image."""
    return drawing(report, f"<style>{variables()}{style()}</style>")


def drawing(report: KernelReport, styles: str = "") -> str:
    """Return the ``svg`` element; *styles* is its ``style`` element, empty in a page that has the styles."""
    drawn = graph(report)
    crowds = Counter(node.layer for node in drawn.nodes.values())
    boxes = {layer: _DENSE if number >= _MANY else _FEW for layer, number in crowds.items()}
    placed = layout(
        {key: node.layer for key, node in drawn.nodes.items()},
        list(drawn.edges),
        {key: boxes[node.layer].height + boxes[node.layer].gap for key, node in drawn.nodes.items()},
        _POINT,
    )
    lefts, widths = _columns(list(drawn.nodes.values()), boxes)
    top = _MARGIN + _HEADING
    width = lefts[-1] + widths[-1] + _MARGIN
    height = top + placed.height + _MARGIN - min(each.gap for each in boxes.values()) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{CLASS}" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape(f'What {report.kernel} calls, and what it is linked from')}</title>",
        styles,
        f'<rect class="back" width="{width:.0f}" height="{height:.0f}" fill="{colour("back")}"/>',
        *_headings(list(drawn.nodes.values()), lefts),
    ]
    outgoing = Counter(tail for tail, _ in drawn.edges)
    incoming = Counter(head for _, head in drawn.edges)
    for (tail, head), labels in drawn.edges.items():
        route = placed.routes[tail, head]
        points = []
        for layer, y in route:
            if layer != route[0][0]:
                points.append((lefts[layer], y + top))
            if layer != route[-1][0]:
                points.append((lefts[layer] + widths[layer], y + top))
        hint = f"{drawn.nodes[tail].title} → {drawn.nodes[head].title}"
        hint = f"{hint}: {', '.join(labels)}" if labels else hint
        parts.append(_edge(points, hint, outgoing[tail] >= _MANY, incoming[head] >= _MANY))
    for key, node in drawn.nodes.items():
        parts.append(_node(node, lefts[node.layer], placed.nodes[key] + top, widths[node.layer], boxes[node.layer]))
    return "\n".join([*parts, "</svg>"])


def _shown(node: Node, boxes: _Boxes) -> tuple[str, str]:
    detail = node.brief if boxes.one_line else node.detail
    return formatting.shortened(node.title, _LONGEST_TITLE), formatting.shortened(detail, _LONGEST_DETAIL)


def _columns(nodes: list[Node], boxes: Mapping[int, _Boxes]) -> tuple[list[float], list[float]]:
    """Return the left edges and the widths of the columns."""
    widths = [0.0] * (max(node.layer for node in nodes) + 1)
    for node in nodes:
        title, detail = _shown(node, boxes[node.layer])
        lines = (len(title) * _TITLE * _TITLE_CHARACTER, len(detail) * _DETAIL * _DETAIL_CHARACTER)
        longest = sum(lines) + _PADDING if boxes[node.layer].one_line and detail else max(lines)
        widths[node.layer] = max(widths[node.layer], longest + 2 * _PADDING)
    lefts = [_MARGIN]
    for width in widths[:-1]:
        lefts.append(lefts[-1] + width + _BETWEEN)
    return lefts, widths


def _headings(nodes: list[Node], lefts: list[float]) -> list[str]:
    first: dict[str, int] = {}
    for node in nodes:
        first[node.role] = min(node.layer, first.get(node.role, node.layer))
    return [_text("heading", role, lefts[layer], _MARGIN + 8) for role, layer in first.items()]


def _edge(points: list[tuple[float, float]], hint: str, from_many: bool, to_many: bool) -> str:
    """Return a line through *points*, which alternately lead to the next column and across it."""
    x, y = points[0]
    path = f"M{x:.1f} {y:.1f}"
    tip_x, tip_y = points[-1]
    points = [*points[:-1], (tip_x - 5, tip_y)]
    for index, (to_x, to_y) in enumerate(points[1:], 1):
        middle = (x + to_x) / 2
        if index % 2 == 0:
            path += f" L{to_x:.1f} {to_y:.1f}"
        elif (from_many and index == 1) or (to_many and index == len(points) - 1):
            bend = max(min(6.0, abs(to_y - y) / 2), 0.0) * (1 if to_y > y else -1)
            path += f" H{middle - abs(bend):.1f} Q{middle:.1f} {y:.1f} {middle:.1f} {y + bend:.1f} V{to_y - bend:.1f}"
            path += f" Q{middle:.1f} {to_y:.1f} {middle + abs(bend):.1f} {to_y:.1f} H{to_x:.1f}"
        else:
            path += f" C{middle:.1f} {y:.1f} {middle:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    arrow = f"M{tip_x:.1f} {tip_y:.1f} l-7 -3.5 v7 z"
    return (
        f'<g><title>{escape(hint)}</title><path class="edge" d="{path}" fill="none" stroke="{colour("edge")}"/>'
        f'<path class="arrow" d="{arrow}" fill="{colour("edge")}"/></g>'
    )


def _node(node: Node, x: float, middle: float, width: float, boxes: _Boxes) -> str:
    title, detail = _shown(node, boxes)
    role, left, y = node.role.replace(" ", "-"), x + _PADDING, middle - boxes.height / 2
    if boxes.one_line or not detail:
        lines = _text("title", title, left, middle + 4)
        lines += _text("detail", detail, x + width - _PADDING, middle + 4, "end") if detail else ""
    else:
        lines = _text("title", title, left, middle - 3) + _text("detail", detail, left, middle + 12)
    return (
        f'<g class="node"><title>{escape(node.hint)}</title>'
        f'<rect class="box" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{boxes.height}" rx="4"'
        f' fill="{colour("node")}" stroke="{colour("line")}"/>'
        f'<rect class="{role}" x="{x:.1f}" y="{y:.1f}" width="4" height="{boxes.height}" rx="2" fill="{colour(role)}"/>'
        f"{lines}</g>"
    )


def _text(kind: str, text: str, x: float, y: float, anchor: str = "start") -> str:
    size, fill = (_TITLE, colour("text")) if kind == "title" else (_DETAIL, colour("faint"))
    where = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}"'
    return f'<text class="{kind}" {where}>{escape(text)}</text>'
