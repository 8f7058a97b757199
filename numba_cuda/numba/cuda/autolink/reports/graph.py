# SPDX-License-Identifier: BSD-2-Clause
"""The graph of a report in four columns: kernel, calls, inputs of the link, result. Also for Graphviz."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from numba_cuda_autolink.mangled_names import readable
from numba_cuda_autolink.printable_texts import number_of
from numba_cuda_autolink.source_locations import shown_file

from ..function_code.object_names import only_different
from . import formatting
from .records import BuildReport, CallReport, CodeReport, KernelReport

# The columns, each with its shape in Graphviz and the most characters of a title.
COLUMNS = {"kernel": ("box", 12), "calls": ("ellipse", 20), "inputs": ("note", 18), "result": ("box3d", 14)}
MOST_BOXES = 12  # in a column; of more, those of one family are drawn as one
_MOST_PLACES = 20  # in the hint of an arrow
_CHARACTER, _DETAIL_CHARACTER = 7.7, 6.1  # mean widths in a wide font
_BOX_HEIGHT, _ROW, _GAP, _PADDING, _MARGIN, _HEADING = 36.0, 46.0, 26.0, 9.0, 5.0, 18.0
_quoted = functools.partial(json.dumps, ensure_ascii=False)


@dataclass(frozen=True)
class Box:
    """A box: its column, its text, and all about it as a hint. Boxes of one *family*, a plural, may be drawn as one."""

    column: str
    title: str
    detail: str
    hint: str
    family: str = ""


@dataclass
class Graph:
    """Boxes by key, in order, and for each arrow between two of them the places that it stands for."""

    boxes: dict[str, Box] = field(default_factory=dict)
    arrows: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def connect(self, tail: str, head: str, *places: str) -> None:
        known = self.arrows.setdefault((tail, head), [])
        known += [place for place in places if place not in known]


@dataclass(frozen=True)
class PlacedBox:
    """A box in a drawing: its upper left corner and size, and its title as far as there is room."""

    box: Box
    title: str
    detail: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Arrow:
    """An arrow in a drawing, from one point to another."""

    hint: str
    x: float
    y: float
    to_x: float
    to_y: float


@dataclass(frozen=True)
class Drawing:
    """Where the boxes and arrows of a graph are drawn, and its columns' names with their left sides."""

    width: float
    height: float
    headings: tuple[tuple[str, float], ...]
    boxes: tuple[PlacedBox, ...]
    arrows: tuple[Arrow, ...]


def graph(report: KernelReport) -> Graph:
    """Return the graph of *report*; its architectures share all boxes but the result."""
    drawn = Graph()
    place = f"{formatting.file(report.filename)}:{report.line}" if report.filename else ""
    title = formatting.function(report.kernel)
    hint = f"{title}{report.signature}\n{shown_file(report.filename or '?')}:{report.line}"
    drawn.boxes["kernel"] = Box("kernel", title, place, hint)
    for build in report.builds:
        _add_build(drawn, build)
    return drawn


def _add_build(drawn: Graph, build: BuildReport) -> None:
    callers: dict[str, str] = {}  # by call site, the key of the call's box
    for call in build.calls:
        callers[call.site] = key = f"call {call.name} {call.object}{call.arguments}"
        became = f"not {'' if call.left is None else 'all '}inlined: " if call.may_be_left else ""
        if key not in drawn.boxes or call.may_be_left:
            drawn.boxes[key] = Box("calls", call.name, f"{became}{call.arguments}", call.call, _group(call))
        drawn.connect("kernel", key, _place(call))
    result = f"result {build.arch}"
    inputs = [code for code in build.link.inputs if not code.own]
    for code, title in zip(inputs, formatting.titles(inputs, build.calls), strict=True):
        key = _add_input(drawn, code, title)
        for origin in code.brought_by:
            if origin not in callers:
                drawn.boxes.setdefault(f"call {origin}", Box("calls", origin, "", origin))
                drawn.connect("kernel", f"call {origin}")
            drawn.connect(callers.get(origin, f"call {origin}"), key)
        drawn.connect(key, result)
    made = build.result
    hint = f"{made.kind} of {readable(build.entry_name)}, sha256 {made.sha256[:12]}"
    drawn.boxes[result] = Box("result", made.kind, f"{build.arch}, {formatting.size(made.size)}", hint)
    if not inputs:
        drawn.connect("kernel", result)


def _group(call: CallReport) -> str:
    return "C++ functions" if call.type_name == "CxxFunction" else f"{call.type_name} objects"


def _place(call: CallReport) -> str:
    chain = formatting.chain(call.chain)
    return f"{formatting.file(call.filename)}:{call.line}" + (f" by way of {chain}" if len(call.chain) > 1 else "")


def _add_input(drawn: Graph, code: CodeReport, title: str) -> str:
    """Add the box of a linked input under a *title*, unless it is there, and return its key."""
    key = f"input {code.kind} {code.source or code.sha256} {code.name}"
    kind = code.kind.removesuffix(" source")
    what = number_of(len(code.parts), "source") if code.parts else kind
    if title.startswith(formatting.CODE_OF):
        title, what = title.removeprefix(formatting.CODE_OF), kind
    elif formatting.is_of_library(code):
        title, _, what = title.partition(", ")  # the file, and how many functions
    detail = f"{what}, {formatting.size(code.size)}"
    hint = [code.name, *(part.name for part in code.parts), formatting.code(code)]
    if code.compiled is not None:
        hint.append(f"compiled to {formatting.compiled(code.compiled)}")
    for what, names in ("defines ", code.defines), ("undefined: ", code.undefined):
        hint += [what + ", ".join(map(readable, names))] if names else []
    family = "C++ sources" if kind == "CUDA C++" else f"{kind} inputs"
    drawn.boxes.setdefault(key, Box("inputs", title, detail, "\n".join(hint), family))
    return key


def fold(whole: Graph) -> Graph:
    """Return the graph with the families of its long columns as one box each. Every arrow is kept, with all places,
    between the boxes that its ends are in."""
    numbers = Counter(box.column for box in whole.boxes.values())
    homes = {
        key: f"family {box.column} {box.family}" if box.family and numbers[box.column] > MOST_BOXES else key
        for key, box in whole.boxes.items()
    }
    members: dict[str, list[Box]] = {}
    for key, box in whole.boxes.items():
        members.setdefault(homes[key], []).append(box)
    folded = Graph({key: _family(boxes) for key, boxes in members.items()})
    for (tail, head), places in whole.arrows.items():
        folded.connect(homes[tail], homes[head], *places)
    return folded


def _family(boxes: Sequence[Box]) -> Box:
    first = boxes[0]
    if len(boxes) == 1:
        return first
    titles = list(dict.fromkeys(box.title for box in boxes))  # calls of one object may have several types
    if len(titles) == 1:
        return replace(first, detail=f"{len(boxes)} types of arguments")
    names = only_different(titles)
    return Box(first.column, f"{len(titles)} {first.family}", f"{names[0]} … {names[-1]}", "\n".join(titles))


def draw(report: KernelReport) -> Drawing:
    """Return the drawing of a report's graph: columns as wide as their texts, and each in the middle of the height."""
    drawn = fold(graph(report))
    columns = {name: [key for key, box in drawn.boxes.items() if box.column == name] for name in COLUMNS}
    height = max(map(len, columns.values())) * _ROW
    x, placed, headings = _MARGIN, dict[str, PlacedBox](), []
    for name, keys in columns.items():
        if not keys:
            continue
        headings.append((name, x))
        boxes = [drawn.boxes[key] for key in keys]
        details = (formatting.shortened(box.detail, COLUMNS[name][1] * 5 // 4) for box in boxes)
        texts = list(zip(_titles(boxes, COLUMNS[name][1]), details, strict=True))
        width = max(max(len(t) * _CHARACTER, len(d) * _DETAIL_CHARACTER) for t, d in texts) + 2 * _PADDING
        top = _MARGIN + _HEADING + (height - len(keys) * _ROW + _ROW - _BOX_HEIGHT) / 2
        for number, (key, text) in enumerate(zip(keys, texts, strict=True)):
            placed[key] = PlacedBox(drawn.boxes[key], *text, x, top + number * _ROW, width, _BOX_HEIGHT)
        x += width + _GAP
    arrows = tuple(_arrow(placed[tail], placed[head], places) for (tail, head), places in drawn.arrows.items())
    size = x - _GAP + _MARGIN, height + _HEADING + 2 * _MARGIN
    return Drawing(*size, tuple(headings), tuple(placed.values()), arrows)


def _titles(boxes: Sequence[Box], most: int) -> list[str]:
    """Return the titles of a column, with no more than *most* characters unless that makes different titles equal. Of
    long ones, the arguments that all objects of a class share are left out first."""
    titles = [box.title for box in boxes]
    if max(map(len, titles)) > most:
        families = {box.family: [other.title for other in boxes if other.family == box.family] for box in boxes}
        brief = {family: iter(only_different(names)) for family, names in families.items()}
        titles = [next(brief[box.family]) for box in boxes]
    shortened = [formatting.shortened(title, most) for title in titles]
    return shortened if len(set(shortened)) == len(set(titles)) else titles


def _arrow(tail: PlacedBox, head: PlacedBox, places: Sequence[str]) -> Arrow:
    shown = f": {', '.join(places[:_MOST_PLACES])}" if places else ""
    more = f" and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
    hint = f"{tail.box.title} → {head.box.title}{shown}{more}"
    return Arrow(hint, tail.x + tail.width, tail.y + tail.height / 2, head.x, head.y + head.height / 2)


def to_dot(report: KernelReport) -> str:
    drawn = graph(report)
    names = {key: f"n{number}" for number, key in enumerate(drawn.boxes)}
    lines = [
        f"digraph {_quoted(report.kernel)} {{",
        "  rankdir=LR;",
        '  node [fontname="Helvetica", fontsize=11];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]
    for key, box in drawn.boxes.items():
        label = _quoted("\n".join(filter(None, (box.title, box.detail))))
        lines.append(f"  {names[key]} [shape={COLUMNS[box.column][0]}, label={label}, tooltip={_quoted(box.hint)}];")
    for (tail, head), places in drawn.arrows.items():
        label = f" [label={_quoted(', '.join(places))}]" if places else ""
        lines.append(f"  {names[tail]} -> {names[head]}{label};")
    return "\n".join([*lines, "}"]) + "\n"
