# SPDX-License-Identifier: BSD-2-Clause
"""Places in sources, as errors and reports show them: a line, and the call in it, underlined."""

from __future__ import annotations

import ast
import functools
import linecache
import re
import weakref
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Protocol

from .short_tracebacks import running_shell

_CELL = re.compile(r"(?:.*[/\\])?ipykernel_\d+[/\\]\d+\.py|<ipython-input-.*>")
_LONGEST_LINE = 100
_ATTRIBUTE = re.compile(r"\battribute '(\w+)'")


def cell_name(filename: str) -> str | None:
    """Return the name of the cell that *filename* stands for, as IPython's own messages have it: ``Cell In[3]``. In
    another process, or for a cell that ran before, it is ``notebook cell``. ``None`` for every other file."""
    if not _CELL.fullmatch(filename):
        return None
    named = getattr(getattr(running_shell(), "compile", None), "format_code_name", lambda filename: None)(filename)
    return " ".join(named) if named else "notebook cell"


def shown_file(filename: str) -> str:
    return cell_name(filename) or filename


def with_place(
    message: str, place: str, filename: str, line: int, *, is_call: bool = True, last_column: int | None = None
) -> str:
    """Return *message* with a second line *place*, the source of *line* below it, and a caret under the attribute or
    call that the message is about: the call that ends in *last_column*, in bytes, if it is known; under the whole line,
    if the message is about none, or of several it names none."""
    first, *others = message.split("\n")
    filename = next((each for each in linecache.cache if cell_name(each) == filename), filename)
    text = linecache.getline(filename, line)
    begin, end = (is_call and _called(filename, line, message, last_column)) or (
        len(text) - len(text.lstrip()),
        len(text.rstrip()),
    )
    if not text.strip() or end > _LONGEST_LINE:
        return "\n".join([first, f"  {place}", *others])
    indent = len(text) - len(text.lstrip())
    caret = f"{' ' * (begin - indent)}{'^' * (end - begin)}"
    return "\n".join([first, f"  {place}", f"      {text.strip()}", f"      {caret}", *others])


def find_call(filename: str, line: int, name: str) -> tuple[str, int] | None:
    """Return the place of the first call of *name* in the function that begins at *line*, None if there is none."""
    for function in _nodes(filename):
        if not isinstance(function, ast.FunctionDef):
            continue
        if line in (function.lineno, *(each.lineno for each in function.decorator_list)):
            calls = (each for each in ast.walk(function) if isinstance(each, ast.Call))
            return next(((filename, each.lineno) for each in calls if ast.unparse(each.func).endswith(name)), None)
    return None


class GivenSource(Protocol):
    """A source that a Python file has as text: *place* is the line that gave it."""

    text: str
    place: tuple[str, int]


_given: weakref.WeakSet[GivenSource] = weakref.WeakSet()


def note_source(source: GivenSource) -> None:
    """Let `place_in_python` find the lines of *source*."""
    _given.add(source)


def find_source(source: GivenSource) -> tuple[str, int] | None:
    """Return the Python file of *source*, and how many of its lines are before the text; None if it is not there."""
    filename, line = source.place
    places = _find_text(source.text, linecache.getlines(filename))
    start = min(places, key=lambda place: abs(place + 1 - line), default=None)
    return None if start is None else (filename, start)


def place_in_python(filename: str, line: int) -> tuple[str, int]:
    """Return the place in a Python file of the *line* of a file that begins with a source that was noted; of any other
    file, the same place."""
    text = "" if filename.endswith(".py") else "".join(linecache.getlines(filename))
    for source in [each for each in _given if each.text.strip() and text.startswith(each.text)]:
        if line <= len(source.text.splitlines()) and (found := find_source(source)) is not None:
            return found[0], found[1] + line
    return filename, line


def find_in_given(text: str, pattern: re.Pattern[str]) -> tuple[str, int] | None:
    """Return the place in a Python file of the first line with *pattern* of a noted source that *text* contains."""
    for source in [each for each in _given if each.text.strip() and each.text in text]:
        lines = source.text.splitlines()
        number = next((number for number, line in enumerate(lines, 1) if pattern.search(line)), 0)
        if number and (found := find_source(source)) is not None:
            return found[0], found[1] + number
    return None


def _find_text(text: str, lines: Sequence[str]) -> Iterator[int]:
    """Yield how many *lines* of a file are before those of a *text* in it, however they are indented."""
    wanted, lines = ([line.strip() for line in each] for each in (text.splitlines() or [""], lines))
    for place in range(len(lines) - len(wanted) + 1):
        found = lines[place : place + len(wanted)]
        if len(wanted) == 1:
            is_there = wanted[0] in found[0]
        else:
            is_there = found[0].endswith(wanted[0]) and found[-1].startswith(wanted[-1]) and found[1:-1] == wanted[1:-1]
        if is_there:
            yield place


def _nodes(filename: str) -> list[ast.AST]:
    try:
        return _parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):  # the file has changed, or is not Python's
        return []


@functools.lru_cache(maxsize=1)  # errors come in series: a launch tries several signatures
def _parse(source: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(source)))


def code_of_file(filename: str) -> Iterator[CodeType]:
    """Yield the code of all functions in a file of Python, as they are compiled now; nothing if that fails."""
    try:
        pending = [compile("".join(linecache.getlines(filename)), filename, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return
    while pending:
        yield (code := pending.pop())
        pending += [each for each in code.co_consts if isinstance(each, CodeType)]


def _called(filename: str, line: int, message: str, last_column: int | None) -> tuple[int, int] | None:
    """Return the columns of the attribute, or else of the call, in a *line* that *message* is about; None if that is
    not known."""
    nodes = [each for each in _nodes(filename) if getattr(each, "lineno", 0) == getattr(each, "end_lineno", 0) == line]
    if attribute := _ATTRIBUTE.search(message.partition("\n")[0]):
        owners = [each for each in nodes if isinstance(each, ast.Attribute) and each.attr == attribute[1]]
        return _columns(owners[0], linecache.getline(filename, line)) if owners else None
    calls = [each for each in nodes if isinstance(each, ast.Call)]
    words = {word.lower() for word in re.findall(r"\w+", message)}
    named = [each for each in calls if each.end_col_offset == last_column] or [
        each for each in calls if _name(each) in words
    ]
    calls = named if len(calls) > 1 else calls
    return _columns(calls[0], linecache.getline(filename, line)) if len(calls) == 1 else None


def _name(call: ast.Call) -> str:
    """Return the last name of the function that *call* calls, in lower case: objects are named after their classes."""
    function = call.func.value if isinstance(call.func, ast.Subscript) else call.func
    return str(getattr(function, "attr", getattr(function, "id", ""))).lower()


def _columns(node: ast.AST, text: str) -> tuple[int, int]:
    """Return the columns of *node* in its line *text*, which Python counts in bytes."""
    begin, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
    encoded = text.encode()
    return len(encoded[:begin].decode()), len(encoded[:end].decode())
