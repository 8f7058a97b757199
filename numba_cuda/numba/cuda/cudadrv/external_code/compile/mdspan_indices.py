# SPDX-License-Identifier: BSD-2-Clause
"""Errors of NVRTC about the indices of an mdspan: in brackets, and more or fewer than it has dimensions."""

from __future__ import annotations

import itertools
import linecache
import re
from collections.abc import Sequence
from typing import Any

from ..inputs.link_input import line_marker

# Of the type of an mdspan; there is a comma before each size.
EXTENTS = r"\bextents<[^<>,]+(?P<sizes>[^<>]*)>"
# In brackets, with which C++17 and C++20 have no elements of an mdspan.
_OPERANDS = re.compile(rf" *operand types are: (?:const )?cuda::std::(?:\w+::)?mdspan<.*?{EXTENTS}")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
# In parentheses, of which the header says it.
_REFUSED = re.compile(
    r'no instance of function template "cuda::std::(?:\w+::)?layout_\w+::mapping<.*>::operator\(\) \[with _Extents='
    rf".*?{EXTENTS}"
)
_GIVEN = re.compile(r" *argument types are: \((?P<types>.*)\)")
_PARENTHESES = re.compile(r"(?P<name>[A-Za-z_]\w*)\((?P<indices>[^()]+)\)")
_PLACE = re.compile(r' at (?:line (?P<number>\d+) of "?(?P<of>[^"]+?)"?|(?P<place>[^"]+):(?P<line>\d+))$')
BY_CALL = "detected during"
_IN_WORDS = re.compile(
    r"an mdspan (?:has no .* before C\+\+23, but|takes .*, as in) (?P<right>\w+\(.*\))"
    r"|(?:an mdspan|(?P<name>\w+)) is (?P<rank>\d)d, and C\+\+ indexes it with (?P<given>\d+)"
)


def explain_indices(text: str, marked: str, lines: Sequence[str], code: str) -> dict[str, Any] | None:
    """Return the fields of the diagnostic with the right index in its text, at the line that has the wrong one, and
    without candidates, for an error with this *text* and these *lines* about the index of an mdspan; ``None`` for any
    other. NVRTC points at *marked*; *code* is what it compiled."""
    if text == 'no operator "[]" matches these operands':
        return _explain_brackets(marked, lines)
    refused = _REFUSED.match(text)
    return _explain_parentheses(refused["sizes"].count(","), lines, code) if refused else None


def what_to_index(text: str) -> str:
    """Return what to write for the index that the *text* of `explain_indices` is about; empty for another text."""
    if (found := _IN_WORDS.match(text)) is None:
        return ""
    if found["right"]:
        return f"write {found['right']}"
    return f"write {_write(found['name'] or 'a', int(found['rank']))}, or pass a {found['given']}d array"


def _explain_brackets(marked: str, lines: Sequence[str]) -> dict[str, Any] | None:
    view = _OPERANDS.match(lines[3]) if marked and len(lines) > 3 else None
    name = re.search(r"\w+(?= *$)", lines[1][: -len(marked)]) if view else None
    indices = _BRACKETS.match(marked)
    if view is None or name is None or indices is None:
        return None
    rank, given = view["sizes"].count(","), indices[1].count(",") + 1
    if given == rank:
        text = f"an mdspan has no {name[0]}{indices[0]} before C++23, but {name[0]}({indices[1]})"
    else:
        text = f"an mdspan takes {rank} indices, as in {_write(name[0], rank)}, got {given}"
    return {"text": text, "lines": (lines[0], *lines[1:3], *_calls(lines[3:]))}


def _explain_parentheses(rank: int, lines: Sequence[str], code: str) -> dict[str, Any] | None:
    types, calls = next(filter(None, map(_GIVEN.match, lines)), None), _calls(lines)
    inner = next((number for number, each in enumerate(calls) if "mdspan<" in each and _PLACE.search(each)), None)
    if types is None or inner is None or (found := _PLACE.search(calls[inner])) is None:
        return None
    given, place, line = types["types"].count(",") + 1, found["place"] or found["of"], found["line"] or found["number"]
    written = _read_line(code, place, int(line)).strip()
    indexed = [each for each in _PARENTHESES.finditer(written) if each["indices"].count(",") + 1 == given]
    name, shown = "an mdspan", []
    if len(indexed) == 1:
        name, shown = indexed[0]["name"], [f"  {written}", " " * (2 + indexed[0].start()) + "^"]
    text = f"{name} is {rank}d, and C++ indexes it with {given}"
    head = f"{place}({line}): error: {text}"
    outer = calls[inner + 1 :]
    others = [f"{' ' * 10}{BY_CALL} {outer[0].strip()}", *outer[1:]] if outer else []
    return {"text": text, "place": place, "line": line, "lines": (head, *shown, *others)}


def _read_line(code: str, place: str, line: int) -> str:
    """Return a *line* of a *place* in *code*, or of a file; empty if there is none."""
    _, is_there, text = code.partition(line_marker(place))
    return "".join(text.splitlines()[line - 1 : line]) if is_there else linecache.getline(place, line)


def _calls(lines: Sequence[str]) -> list[str]:
    """Return those of the *lines* of an error that say which calls led to it."""
    return [*itertools.dropwhile(lambda line: BY_CALL not in line, lines)]


def _write(name: str, rank: int) -> str:
    return f"{name}({', '.join('ijklmnopqr'[:rank])})"
