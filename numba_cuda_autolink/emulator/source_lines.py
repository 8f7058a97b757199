# SPDX-License-Identifier: BSD-2-Clause
"""The source lines of instructions: of inlined code, the callee's line and then the caller's."""

from __future__ import annotations

import os

from .parser import Location, Text


def source_lines(text: Text, location: Location | None) -> tuple[str, ...]:
    """Return the chain of *location* as ``file:line``, innermost first, without the lines of generated code."""
    lines: list[str] = []
    while location is not None and len(lines) < 32:
        lines.append(f"{text.files.get(location.file, '?')}:{location.line}")
        at = location.inlined_at
        location = None
        if at is not None:
            lines_of = (o for o in text.locations if (o.file, o.line, o.column) == at)
            location = next(lines_of, None)
            if location is None:
                lines.append(f"{text.files.get(at[0], '?')}:{at[1]}")
    return tuple(line for line in lines if not _is_generated(line)) or tuple(lines)


def _is_generated(line: str) -> bool:
    """Return whether the *line* is of a text that autolink gave the compiler, which is in no file."""
    file, _, _ = line.rpartition(":")
    name = os.path.basename(file)
    return (name == "prelude" or "(" in name) and not os.path.exists(file)


def describe_lines(lines: tuple[str, ...], word: str = "at") -> str:
    """Return *lines* as the end of a message."""
    if not lines:
        return ""
    return f"\n  {word} {lines[0]}" + "".join(f"\n  inlined at {line}" for line in lines[1:])
