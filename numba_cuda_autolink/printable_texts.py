# SPDX-License-Identifier: BSD-2-Clause
"""Texts of errors: short enough to read, and without characters that control a terminal."""

from __future__ import annotations

import difflib
import itertools
import os
import re
from collections.abc import Iterable, Sequence

_LONGEST_TEXT, _LONGEST_LINE = 20_000, 1000
# What moves a terminal's cursor, changes its colours or the order of its text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return *text* with escapes in place of control characters, but for ends of lines and tabs, and of what cannot be
    encoded. Sources and servers may contain any."""
    text = text.replace("\r\n", "\n").encode("utf-8", "backslashreplace").decode()
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def bounded(text: str, where: str = "") -> str:
    """Return what a message shows of a *text*: its first 20,000 characters, and 1,000 of each line, `printable`. A last
    line counts the others, and tells *where* they are."""
    lines = printable(text[:_LONGEST_TEXT]).split("\n")
    lines = [line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 3]}..." for line in lines]
    if (rest := len(text) - _LONGEST_TEXT) > 0:
        lines.append(f"... and {rest} more characters{where}")
    return "\n".join(lines)


def bound_text(error: BaseException) -> None:
    """Let what is printed of *error*, of a class of Python's own, be `bounded`: it may show an argument as it is."""
    if type(error).__module__ != "builtins":
        return
    error.args = tuple([bounded(each) if isinstance(each, str) else each for each in error.args])
    if isinstance(error, OSError) and isinstance(error.filename, (str, bytes, os.PathLike)):
        error.filename = bounded(os.fsdecode(error.filename))


def number_of(number: int, what: str) -> str:
    """Return ``1 call`` or ``3 calls``, ``1 entry`` or ``3 entries``."""
    several = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number} {what if number == 1 else several}"


def public_names(names: Iterable[str]) -> list[str]:
    """Return those of *names* that are for users, and Python's own: what ``dir()`` of an object shows."""
    return [name for name in names if not name.startswith("_") or name.startswith("__")]


def _common(names: Sequence[str]) -> str:
    """Return the whole words that all of several *names* begin with: ``--`` of options."""
    if len(names) < 2:
        return ""
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(min(names), max(names), strict=False))
    text = "".join(letter for letter, _ in same)
    return text[: max(text.rfind("-"), text.rfind("_")) + 1]


def did_you_mean(wrong: object, names: Iterable[str]) -> str:
    """Return ``; did you mean NAME?`` for the one of *names* that has the letters of *wrong* in another order, or that
    looks most like it; or an empty text."""
    names = [*names] if isinstance(wrong, str) else []
    begin = len(_common(names)) if str(wrong).startswith(_common(names)) else 0
    exchanged = [each for each in names if sorted(each) == sorted(str(wrong))]
    ends = {each[begin:]: each for each in names}  # which alone tell the names apart
    longer = [each for each in names if len(each) - begin > 2 and str(wrong).startswith(each)]  # --signature for --sig
    near = exchanged or longer or [ends[each] for each in difflib.get_close_matches(str(wrong)[begin:], ends, 1)]
    return f"; did you mean {near[0]}?" if near else ""
