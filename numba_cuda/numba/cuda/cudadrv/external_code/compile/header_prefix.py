# SPDX-License-Identifier: BSD-2-Clause
"""The lines at the beginning of a source that include headers, which a compile server can precompile.

Functions in LTO-IR have line numbers, and NVRTC makes names of how many lines there are before something. Behind
precompiled headers it counts the lines of the prefix twice, and before a ``#line`` it precompiles nothing. So a source
whose prefix can be precompiled has room behind it: as many blank lines, which the server leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..inputs.link_input import line_marker

_LINE = re.compile(r"[ \t]*(?:#[ \t]*(?:include[ \t]*<[^<>]+>[ \t]*|(?:define|undef)[ \t][^\\/]*))?(?://[^\\]*)?")
_BEGINNING = re.compile(r'((?:#(?:define|undef) [^\\/\n]*\n)*)#line 1 "([^"\\\n]*)"\n')
_STOP = "#pragma nv_hdrstop\n"


def with_room(source: str, name: str, macros: str = "") -> str:
    """Return *source*, which messages call *name*, after the lines of *macros*, and with room behind its prefix."""
    lines = source.split("\n")
    size = _size(lines)
    room = "\n" * (size + macros.count("\n")) + line_marker(name, size + 1) if size else ""
    prefix = (f"{line}\n" for line in lines[:size])
    return "".join([macros, line_marker(name), *prefix, room, "\n".join(lines[size:])])


class Prefixed(NamedTuple):
    """The text of a source in another form: its *prefix* to precompile, and a *text* that begins with the prefix."""

    prefix: str
    text: str


def prefixed(source: str) -> Prefixed | None:
    """Return another form of a source that `with_room` made; None for other sources, or if the prefix is empty."""
    if (beginning := _BEGINNING.match(source)) is None:
        return None
    macros, name = beginning.groups()
    lines = source[beginning.end() :].split("\n")
    size = _size(lines)
    end = 2 * size + macros.count("\n")
    if not size or any(lines[size:end]) or len(lines) < end:
        return None
    prefix = "".join([macros, *(f"{line}\n" for line in lines[:size])])
    rest = "\n".join(lines[end:])
    return Prefixed(f"{prefix}{_STOP}", f"{prefix}{line_marker(name, end + 1)}{rest}")


def _size(lines: Sequence[str]) -> int:
    """Return how many lines belong to the prefix, the last of which is a directive."""
    size = next((number for number, line in enumerate(lines) if not _LINE.fullmatch(line)), len(lines))
    while size and "#" not in lines[size - 1].partition("//")[0]:
        size -= 1
    return size
