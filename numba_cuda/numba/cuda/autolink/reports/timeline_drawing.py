# SPDX-License-Identifier: BSD-2-Clause
"""The timeline of a build as a drawing: a lane for each thread and child process, a bar for each span."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from numba.cuda.cudadrv.external_code.timeline import Span

from . import formatting
from .theme import FONT, paint
from .trace import KINDS, Placed, lanes

_WIDTH, _LEFT, _MARGIN = 1000.0, 130.0, 12.0
_BAR, _BETWEEN, _AXIS = 18.0, 8.0, 22.0
_CHARACTER = 6.0  # the mean width of a character
_TICKS = 5
_LEGIBLE = 12  # characters that a name is shortened to at least


def drawing(spans: Sequence[Span]) -> str:
    """Return the ``svg`` element; hovering over a bar shows all about its span."""
    first = min(span.start for span in spans)
    total = max(max(span.start + span.seconds for span in spans) - first, 1e-9)
    scale = (_WIDTH - _LEFT - _MARGIN) / total
    parts, top = [], _AXIS + _BETWEEN
    own_process = spans[0].process
    for number, lane in enumerate(lanes(spans), 1):
        depth = max(placed.depth for placed in lane.placed) + 1
        name = f"thread {number}" if lane.process == own_process else f"process {lane.process}"
        parts.append(_text(name, _MARGIN, top + 13, "faint"))
        parts += [_bar(placed, _LEFT + (placed.span.start - first) * scale, top, scale) for placed in lane.placed]
        top += depth * _BAR + _BETWEEN
    for tick in range(_TICKS + 1):
        x = _LEFT + (_WIDTH - _LEFT - _MARGIN) * tick / _TICKS
        anchor = "end" if tick == _TICKS else "middle" if tick else "start"
        parts.append(_text(formatting.time(total * tick / _TICKS) if tick else "0", x, 14, "faint", anchor))
        line = f"M{x:.1f} {_AXIS} V{top:.1f}"
        parts.insert(0, f'<path d="{line}" fill="none" {paint(stroke="line")}/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH:.0f}" height="{top:.0f}"'
        f' viewBox="0 0 {_WIDTH:.0f} {top:.0f}" style="--nca-width: 100%; font-family: {FONT} !important"'
        f' role="img"><title>Timeline of the build</title>{"".join(parts)}</svg>'
    )


def colour(kind: str) -> str:
    """Return the name of the colour of a kind of span."""
    return kind.replace(" ", "-").lower() if kind in KINDS else "faint"


def _bar(placed: Placed, x: float, top: float, scale: float) -> str:
    span = placed.span
    width = max(span.seconds * scale, 1.0)
    y = top + placed.depth * _BAR
    took = f"{formatting.time(span.seconds)}, {formatting.came_from(span.origin)}"
    hint = f"{span.kind}: {span.name}\n{took}\nprocess {span.process}"
    label = _label(span, int((width - 8) / _CHARACTER))
    text = _text(label, x + 4, y + 12.5, "back") if label else ""
    box = f'x="{x:.2f}" y="{y:.1f}" width="{width:.2f}" height="{_BAR - 2}" rx="2"'
    return f'<g class="span"><title>{escape(hint)}</title><rect {box} {paint(fill=colour(span.kind))}/>{text}</g>'


def _label(span: Span, room: int) -> str:
    """Return what a bar with *room* for so many characters says: the span's name, or at least its kind, or nothing."""
    name = formatting.file(span.name) if span.kind == "compile" else span.name
    if len(name) > room >= len(span.kind):
        return formatting.shortened(name, room) if room >= _LEGIBLE else span.kind
    return name if len(name) <= room else ""


def _text(text: str, x: float, y: float, colour: str, anchor: str = "start") -> str:
    font = "font-size: 10.5px !important"
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="10.5"'
    return f"<text {place} {paint(font, fill=colour)}>{escape(text)}</text>"
