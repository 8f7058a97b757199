# SPDX-License-Identifier: BSD-2-Clause
"""C++ sources that Python files have as string literals: the line of the file for each line of a source."""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import itertools
import linecache
import re
import sys
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from types import FrameType, MappingProxyType

from .source_syntax import nodes_of

_given: dict[str, tuple[str, int]] = {}  # the line of Python that gave a source, by its text
_callers: dict[str, tuple[int, ...]] = {}  # the lines of that file that were running then, by its text
_elsewhere: ContextVar[Mapping[str, tuple[str, int]]] = ContextVar(
    "numba_cuda_autolink_elsewhere", default=MappingProxyType({})
)
_MOST_GIVEN = 256
_BETWEEN, _JOINING = (tokenize.NL, tokenize.COMMENT), ("+", "(", ")")  # literals
_BEFORE_BODY = re.compile(r"([A-Za-z]*)('''|\"\"\"|'|\")")
_ESCAPES = "\n\\'\"abfnrtv01234567xNuU"  # what follows a backslash: before others, it stands for itself
_ESCAPE = re.compile(r"\\.")
_FORMATTED = re.compile(r"[A-Za-z]+(?P<quotes>\"{3}|'{3}|\"|')(?P<body>.*)(?P=quotes)", re.DOTALL)
_BRACES = re.compile(r"(\{\{|\}\}|\{[^{}]*\})")
_PART = re.compile(r"\\(?:N\{[^}]*\}|[0-7]{1,3}|x..|u.{4}|U.{8}|.)|.", re.DOTALL)  # of a literal: an escape, or not


def note_source(text: str, place: tuple[str, int]) -> tuple[str, int]:
    """Let `place_in_python` find the lines of the source *text*, which the line of Python at *place* gave, and return
    that; inside of `noting_sources`, the place that this has. Of many sources, those that were noted last are known."""
    _given.pop(text, None)
    _given[text] = place = _elsewhere.get().get(text, place)
    frame: FrameType | None = sys._getframe(1)
    lines = set()
    while frame is not None:
        if frame.f_code.co_filename == place[0]:
            lines.add(frame.f_lineno)
        frame = frame.f_back
    _callers[text] = tuple(lines)
    if len(_given) > _MOST_GIVEN:
        oldest = next(iter(_given))
        _given.pop(oldest, None)
        _callers.pop(oldest, None)
    return place


@contextlib.contextmanager
def noting_sources(sources: Iterable[tuple[str, tuple[str, int]]]) -> Iterator[None]:
    """Note *sources* of another process, each with the place that gave it, and let what the block unpickles have these
    places."""
    token = _elsewhere.set(dict(sources))
    try:
        for source in _elsewhere.get().items():
            note_source(*source)
        yield
    finally:
        _elsewhere.reset(token)


def find_given(data: bytes) -> list[tuple[str, tuple[str, int]]]:
    """Return the noted sources in pickled *data*, with their places, for `noting_sources`."""
    return [(text, place) for text, place in [*_given.items()] if text.encode("utf-8", "surrogatepass") in data]


def find_source(text: str, place: tuple[str, int]) -> tuple[str, Sequence[int]] | None:
    """Return the Python file of the source *text*, which the line at *place* gave, and the line there of each of its
    lines; None if it is not there, or if several literals may be it: of these, one in the statement of that line is it,
    or the only one in the function there. Formatted literals count if their function was running then: others
    may resemble it."""
    filename, line = place
    wanted, code = text.split("\n"), "".join(linecache.getlines(filename))
    running = {None, *(_function_around(filename, each) for each in (line, *_callers.get(text, ())))}
    plain = (
        numbers[place : place + len(wanted)]
        for text, numbers in _literals(code)
        for place in _find_text(wanted, text.split("\n"))
    )
    formatted = (
        numbers
        for lines, numbers in _formatted(code)
        if _is_made_of(lines, wanted) and _function_around(filename, numbers[0]) in running
    )
    found = [*plain, *formatted]
    for first, last in _find_around(filename, line) if len(found) > 1 else ():
        within = [numbers for numbers in found if first <= numbers[0] <= last]
        if within:
            found = within
            break
    return (filename, found[0]) if len({tuple(numbers) for numbers in found}) == 1 else None


def _find_around(filename: str, line: int, *kinds: type[ast.stmt]) -> list[tuple[int, int]]:
    """Return the first and the last lines of the statements around a *line* that are of these *kinds*, by default of
    all, the innermost first."""
    nodes = [each for each in nodes_of(filename) if isinstance(each, kinds or ast.stmt)]
    around = [(each.lineno, each.end_lineno or each.lineno) for each in nodes if isinstance(each, ast.stmt)]
    return sorted(
        ((first, last) for first, last in around if first <= line <= last), key=lambda each: each[1] - each[0]
    )


def _function_around(filename: str, line: int) -> tuple[int, int] | None:
    """Return the first and the last line of the innermost function around a *line*, or None at the level of a module or
    a class."""
    return next(iter(_find_around(filename, line, ast.FunctionDef, ast.AsyncFunctionDef)), None)


def place_in_python(filename: str, line: int) -> tuple[str, int]:
    """Return the place in a Python file of the *line* of a file that begins with a source that was noted; of any other
    file, the same place."""
    text = "" if filename.endswith(".py") else "".join(linecache.getlines(filename))
    return place_in_text(text, line) or (filename, line)


def place_in_text(text: str, line: int) -> tuple[str, int] | None:
    """Return the place in a Python file of the *line* of a *text* that begins with a source that was noted."""
    for source, place in [*_given.items()]:
        is_there = source.strip() and text.startswith(source) and line <= len(source.rstrip("\n").split("\n"))
        if is_there and (found := find_source(source, place)) is not None:
            return found[0], found[1][line - 1]
    return None


def find_in_given(text: str, pattern: re.Pattern[str]) -> tuple[str, int] | None:
    """Return the place in a Python file of the first line with *pattern* of a noted source that *text* contains."""
    for source, place in [*_given.items()]:
        if not source.strip() or source not in text:
            continue
        number = next((number for number, line in enumerate(source.split("\n")) if pattern.search(line)), None)
        if number is not None and (found := find_source(source, place)) is not None:
            return found[0], found[1][number]
    return None


def replaced_escape(line: str) -> str:
    """Return the first escape that Python has replaced in this *line* of a noted source, as the Python file has it;
    empty if there is none."""
    pattern = re.compile(rf"^\s*{re.escape(line.strip())}\s*$")
    place = next(filter(None, (find_in_given(source, pattern) for source in [*_given])), None)
    written = linecache.getline(*place) if place is not None else ""
    for found in _ESCAPE.finditer(written):
        before = _ESCAPE.split(written[: found.start()])[-1].lstrip()[-8:]
        ends_line = found[0] == r"\n" and line.count('"') % 2 == 0  # as it does in C++
        is_quoted = line.count('"') == written.count(r"\"") or len(re.findall(r'(?<!\\)"', written)) == 2
        if found[0] == r"\"" and is_quoted:
            continue  # in a literal that quotes begin and end, where all quotes of C++ are written so
        if before and before in line and not ends_line and found[0] not in (r"\\", *_ESCAPE.findall(line)):
            return found[0]
    return ""


def _find_text(wanted: Sequence[str], lines: Sequence[str]) -> Iterator[int]:
    """Yield how many of the *lines* of a literal are before those that are *wanted*, however they are indented."""
    wanted, lines = ([line.strip() for line in each] for each in (wanted, lines))
    for place in range(len(lines) - len(wanted) + 1):
        found = lines[place : place + len(wanted)]
        if len(wanted) == 1:
            is_there = wanted[0] in found[0]
        else:
            is_there = found[0].endswith(wanted[0]) and found[-1].startswith(wanted[-1]) and found[1:-1] == wanted[1:-1]
        if is_there:
            yield place


@functools.lru_cache(maxsize=1)  # errors come in series
def _literals(code: str) -> Sequence[tuple[str, list[int]]]:
    """Return the values of the string literals in *code*, and the line of the file for each of their lines: of those
    that are joined, by standing next to each other or by ``+``, together. Formatted ones have no value yet:
    `_formatted` has these."""
    found: list[tuple[str, list[int]]] = []
    is_joined = False
    with contextlib.suppress(tokenize.TokenError, SyntaxError):  # the file has changed, or is not Python's
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type == tokenize.STRING:
                value, lines = _value(token.string), _lines(token.string, token.start[0])
                if len(value) == len(lines):
                    before = found.pop() if is_joined else ("", [])
                    found.append((before[0] + value, before[1] + lines))
                is_joined = len(value) == len(lines)
            elif token.type not in _BETWEEN and token.string not in _JOINING:
                is_joined = False
    return [(text, _lines_of_lines(text, lines)) for text, lines in found if text]


@functools.lru_cache(maxsize=1)
def _formatted(code: str) -> Sequence[tuple[list[str], list[int]]]:
    """Return the lines of each formatted string literal in *code*, as they are written, and their lines in the file."""
    found = []
    with contextlib.suppress(SyntaxError, ValueError):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.JoinedStr):
                written = _FORMATTED.fullmatch(ast.get_source_segment(code, node) or "")
                lines = written["body"].split("\n") if written is not None else []
                found.append((lines, [node.lineno + number for number in range(len(lines))]))
    return found


def _is_made_of(written: Sequence[str], lines: Sequence[str]) -> bool:
    """Return whether *lines* are those *written* in a formatted literal, which has words of its own, with any text for
    what is in braces."""
    has_words = any(re.search(r"\w", _BRACES.sub("", each)) for each in written)
    return (
        len(written) == len(lines)
        and has_words
        and all(
            re.fullmatch("".join(map(_pattern, _BRACES.split(each.strip()))), line.strip())
            for each, line in zip(written, lines, strict=True)
        )
    )


def _pattern(part: str) -> str:
    return re.escape(part[0]) if part in ("{{", "}}") else ".*" if part.startswith("{") else re.escape(part)


def _value(literal: str) -> str:
    """Return the value of a *literal*; an empty text if it is not known, or bytes."""
    with contextlib.suppress(ValueError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes, which the user's own import has shown
        value = ast.literal_eval(literal)
        return value if isinstance(value, str) else ""
    return ""


def _lines(literal: str, line: int) -> list[int]:
    """Return the line of the file for each character of the value of a *literal* that begins in *line*."""
    begin = _BEFORE_BODY.match(literal)
    assert begin is not None
    body, is_raw = literal[begin.end() : -len(begin[2])], "r" in begin[1].lower()
    lines = []
    for part in body if is_raw else _PART.findall(body):
        count = 1 if len(part) == 1 or part[1] in _ESCAPES else 2
        lines += [line] * (count if part != "\\\n" else 0)
        line += part.endswith("\n")
    return lines


def _lines_of_lines(text: str, lines: Sequence[int]) -> list[int]:
    """Return those of *lines*, of the characters of a *text*, that are of the first in each line of the text."""
    begins = itertools.accumulate([len(each) + 1 for each in text.split("\n")[:-1]], initial=0)
    return [lines[min(begin, len(lines) - 1)] for begin in begins]
