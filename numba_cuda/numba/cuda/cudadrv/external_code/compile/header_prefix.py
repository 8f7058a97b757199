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
_MARKER = re.compile(r'#line 1 "([^"\\]*)"')
_STOP = "#pragma nv_hdrstop\n"


def with_room(source: str, name: str) -> str:
    """Return *source*, which messages call *name*, with room behind its prefix."""
    lines = source.split("\n")
    size = _size(lines)
    room = "\n" * size + line_marker(name, size + 1) if size else ""
    return "".join([line_marker(name), *(f"{line}\n" for line in lines[:size]), room, "\n".join(lines[size:])])


class Prefixed(NamedTuple):
    """The text of a source in another form: its *prefix* to precompile, and a *text* that begins with the prefix."""

    prefix: str
    text: str


def prefixed(source: str) -> Prefixed | None:
    """Return another form of a source that `with_room` made; None for other sources, or if the prefix is empty."""
    first, *lines = source.split("\n")
    size = _size(lines)
    marker = _MARKER.fullmatch(first)
    if marker is None or not size or any(lines[size : 2 * size]) or len(lines) < 2 * size:
        return None
    prefix = "".join(f"{line}\n" for line in lines[:size])
    rest = "\n".join(lines[2 * size :])
    return Prefixed(f"{prefix}{_STOP}", f"{prefix}{line_marker(marker[1], 2 * size + 1)}{rest}")


def _size(lines: Sequence[str]) -> int:
    """Return how many lines belong to the prefix, the last of which is a directive."""
    size = next((number for number, line in enumerate(lines) if not _LINE.fullmatch(line)), len(lines))
    while size and "#" not in lines[size - 1].partition("//")[0]:
        size -= 1
    return size
