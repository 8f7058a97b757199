# SPDX-License-Identifier: BSD-2-Clause
"""Places in sources, as errors and reports show them: a line, and the call in it, underlined."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterable, Sequence

from .mangled_names import short_name
from .short_tracebacks import running_shell
from .source_syntax import columns_of_message, shared_arrays

_CELL = re.compile(r"(?:.*[/\\])?ipykernel_\d+[/\\]\d+\.py|<ipython-input-.*>")
_SHARED_ARRAY = re.compile(r"_cudapy_smem_(\d+)(?:_[0-9a-f]{16})?|static_shared_memory(?:_(\d+))?")
_LONGEST_LINE = 100
_noted: dict[str, str] = {}  # names of cells of another process, by their files


def cell_name(filename: str) -> str | None:
    """Return the name of the cell that *filename* stands for, as IPython's own messages have it: ``Cell In[3]``. For
    a cell that ran before, or that is not known here, it is ``notebook cell``. ``None`` for every other file."""
    if not _CELL.fullmatch(filename):
        return None
    named = getattr(getattr(running_shell(), "compile", None), "format_code_name", lambda filename: None)(filename)
    return " ".join(named) if named else _noted.get(filename, "notebook cell")


def find_cells(data: bytes) -> list[tuple[str, str, list[str]]]:
    """Return the files of notebook cells that pickled *data* names, with names and lines, for `note_cells`."""
    if running_shell() is None and not _noted:
        return []
    files = [each for each in [*linecache.cache] if _CELL.fullmatch(each) and each.encode() in data]
    return [(each, shown_file(each), linecache.getlines(each)) for each in files]


def note_cells(cells: Iterable[tuple[str, str, list[str]]]) -> None:
    """Let errors show the *cells* of another process as that one does."""
    for filename, name, lines in cells:
        _noted[filename] = name
        linecache.cache[filename] = sum(map(len, lines)), None, lines, filename


def shown_file(filename: str) -> str:
    """Return what users are shown of a *filename*: the name of a cell, or the path, a file's always the same."""
    return cell_name(filename) or (os.path.normpath(filename) if os.path.isabs(filename) else filename)


def shown_place(place: str) -> str:
    """Return a ``file:line`` with the name of a cell in place of its file."""
    file, _, line = place.rpartition(":")
    return f"{shown_file(file)}:{line}"


def name_of_file(path: str) -> str:
    """Return the name that Python has for a *path* in debug information, where a folder is before a cell's too, and a
    generated source may be in another cache's folder."""
    name = os.path.basename(path)
    if name.startswith("<") and name.endswith(">"):
        return name
    from .cache_folder import find_generated

    return find_generated(path)


def with_place(
    message: str,
    place: str,
    filename: str,
    line: int,
    *,
    is_call: bool = True,
    is_named: bool = False,
    last_column: int | None = None,
    columns: tuple[int, int] | None = None,
    text: str = "",
) -> str:
    """Return *message* with a second line *place*, the source of *line* below it, or the *text* that Python has made of
    that, and a caret under its *columns*; by
    default under the attribute, operator or call that the message is about: the call that ends in *last_column*, in
    bytes, if it is known; under the whole line, if the message is about none, or it names none of several, nor the only
    one if it *is_named* there."""
    first, *others = message.split("\n")
    filename = next((each for each in linecache.cache if cell_name(each) == filename), filename)
    text = text or linecache.getline(filename, line).rstrip()
    if not text.strip():
        return "\n".join([first, f"  {place}", *others])
    indent = len(text) - len(text.lstrip())
    if columns is None:
        found = columns_of_message(filename, line, message, last_column, is_named) if is_call else None
        columns = found or (indent, len(text))
    return "\n".join([first, f"  {place}", *(f"      {each}" for each in _underline(text, indent, *columns)), *others])


def without_generated(lines: Sequence[str]) -> tuple[str, ...]:
    """Return *lines*, each a ``file:line``, without those of texts that autolink gave the compiler, which are in no
    file, or of no place; all of them, if there are no others."""
    return tuple(each for each in lines if not _is_generated(each)) or tuple(lines)


def _is_generated(place: str) -> bool:
    file, _, number = place.rpartition(":")
    name = os.path.basename(file)
    return number == "0" or ((name == "prelude" or "(" in name) and not os.path.exists(file))


def with_lines(message: str, lines: tuple[str, ...], word: str = "at") -> str:
    """Return *message* with *lines*, each a ``file:line`` that the one before it is inlined at, from its second line
    on: the source of the first that is not of an installed package is shown."""
    if not lines:
        return message
    packages = {"site-packages", "dist-packages"}
    own = next((number for number, each in enumerate(lines) if packages.isdisjoint(each.split("/"))), 0)
    file, _, line = lines[own].rpartition(":")
    first, *others = message.split("\n")
    within = [f"  in: {shown_place(lines[0])}"] if own else []
    message = "\n".join([first, *within, *(f"  inlined at: {shown_place(each)}" for each in lines[own + 1 :]), *others])
    return with_place(message, f"{word}: {shown_place(lines[own])}", file, int(line), is_call=False)


def _underline(text: str, indent: int, begin: int, end: int) -> tuple[str, str]:
    """Return *text* after its *indent*, and carets below the columns from *begin* to *end*: of a long line, what is
    around them, with … where it is cut."""
    first = min(max(indent, (begin + min(end, begin + _LONGEST_LINE) - _LONGEST_LINE) // 2), begin)
    first = max(indent, min(first, len(text) - _LONGEST_LINE))
    last = first + _LONGEST_LINE
    before, after = "…" * (first > indent), "…" * (last < len(text))
    carets = " " * (begin - first + len(before)) + "^" * (min(end, last) - begin)
    return f"{before}{text[first:last]}{after}", carets


def name_of_shared_array(label: str, labels: Iterable[str], places: Iterable[str]) -> str:
    """Return the name of the variable for the array of ``cuda.shared.array`` that a front end's *label* stands for, of
    all *labels*; *places* are the ``file:line`` where a kernel is, innermost first. Where there are other arrays than
    those of the functions there, it is ``a shared array``; variables of C++ have the name of their source."""
    if _SHARED_ARRAY.fullmatch(label) is None:
        return short_name(label)
    numbers = {each: int(found[1] or found[2] or -1) for each in labels if (found := _SHARED_ARRAY.fullmatch(each))}
    names = list(dict.fromkeys(each for place in places for each in shared_arrays(place)))
    order = sorted(numbers, key=lambda each: numbers[each])
    return names[order.index(label)][1] if len(names) == len(order) else "a shared array"
