# SPDX-License-Identifier: BSD-2-Clause
"""The source lines of instructions: of inlined code, the callee's line and then the caller's."""

from __future__ import annotations

import os

from ..given_sources import place_in_python
from ..source_locations import shown_file, with_place
from .parser import Location, Text


def source_lines(text: Text, location: Location | None) -> tuple[str, ...]:
    """Return the chain of *location* as ``file:line``, innermost first, without the lines of generated code."""
    lines: list[str] = []
    while location is not None and len(lines) < 32:
        filename, line = place_in_python(text.files.get(location.file, "?"), location.line)
        lines.append(f"{filename}:{line}")
        location = location.inlined_at
    return tuple(line for line in lines if not _is_generated(line)) or tuple(lines)


def _is_generated(line: str) -> bool:
    """Return whether the *line* is of a text that autolink gave the compiler, which is in no file, or of no place."""
    file, _, number = line.rpartition(":")
    name = os.path.basename(file)
    return number == "0" or ((name == "prelude" or "(" in name) and not os.path.exists(file))


def with_lines(message: str, lines: tuple[str, ...], word: str = "at") -> str:
    """Return *message* with *lines* from its second line on: the source of the first that is not of an installed
    package is shown."""
    if not lines:
        return message
    packages = {"site-packages", "dist-packages"}
    own = next((number for number, each in enumerate(lines) if packages.isdisjoint(each.split("/"))), 0)
    file, _, line = lines[own].rpartition(":")
    first, *others = message.split("\n")
    within = [f"  in: {lines[0]}"] if own else []
    message = "\n".join([first, *within, *(f"  inlined at: {each}" for each in lines[own + 1 :]), *others])
    return with_place(message, f"{word}: {shown_file(file)}:{line}", file, int(line), is_call=False)
