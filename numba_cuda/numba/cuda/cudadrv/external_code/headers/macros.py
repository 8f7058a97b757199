# SPDX-License-Identifier: BSD-2-Clause
"""What a macro can stand for in ``#include MACRO``: every text that any of its definitions gives it.

Definitions are taken from all texts, under whatever condition: more is found than a compile includes, never less.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

_COMMENT = re.compile(rb"//.*|/\*(?:[^*]|\*(?!/))*(?:\*/|$)")
_NAME = re.compile(rb"[A-Za-z_]\w*")
_PATH = re.compile(rb"[\w./+-]*")
_MOST = 1000


class UnknownTextError(Exception):
    """A macro's text alone does not show what it stands for."""


class Macros:
    """The macros that *texts* define, and those that options define (*defined*: names and values)."""

    def __init__(self, texts: Sequence[bytes], defined: Iterable[tuple[str, str]] = ()):
        self._texts = texts
        self._known: dict[bytes, list[bytes]] = {}
        self._options = {name.encode(): value.encode() for name, value in defined}

    def includes(self, name: bytes) -> set[bytes]:
        """Return what ``#include name`` may include: names with their quotes or angle brackets. A macro that is
        defined nowhere includes nothing.

        Raises
        ------
        UnknownTextError
            If the text of a definition is not enough: if it calls another macro, for example.
        """
        return set(itertools.islice(self._includes(name, ()), _MOST))

    def _includes(self, name: bytes, outer: tuple[bytes, ...]) -> Iterator[bytes]:
        for body in self._bodies(name):
            if body[:1] == b'"' and body.find(b'"', 1) == len(body) - 1:
                yield body
            elif body[:1] == b"<" and body.find(b">") == len(body) - 1:
                for path in self._expanded(body[1:-1], (*outer, name)):
                    yield b"<" + path + b">"
            elif _NAME.fullmatch(body):
                if body not in outer:
                    yield from self._includes(body, (*outer, name))
            elif body:
                raise UnknownTextError(body.decode(errors="replace"))

    def _expanded(self, text: bytes, outer: tuple[bytes, ...]) -> Iterator[bytes]:
        """Yield *text* with each macro in it replaced by each of its definitions."""
        for found in _NAME.finditer(text):
            name = found[0]
            if name in outer or not (bodies := self._bodies(name)):
                continue
            for body in bodies:
                if not _PATH.fullmatch(body):
                    raise UnknownTextError(body.decode(errors="replace"))
                for inner in self._expanded(body, (*outer, name)):
                    for rest in self._expanded(text[found.end() :], outer):
                        yield text[: found.start()] + inner + rest
            # It may also be undefined there.
        yield text

    def _bodies(self, name: bytes) -> list[bytes]:
        """Return every definition of *name*."""
        if name not in self._known:
            define = re.compile(rb"#[ \t]*define[ \t]+" + name + rb"(?!\w)([^\n]*)")
            found = [found[1] for text in self._texts if name in text for found in define.finditer(text)]
            if any(body.startswith(b"(") for body in found):
                raise UnknownTextError(f"{name.decode()}(...)")
            bodies = [_COMMENT.sub(b" ", body).strip() for body in found]
            if name in self._options:
                bodies.append(self._options[name].strip())
            self._known[name] = list(dict.fromkeys(bodies))
        return self._known[name]
