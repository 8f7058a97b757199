# SPDX-License-Identifier: BSD-2-Clause
"""Read the preprocessing directives of a C++ text, in every spelling that NVRTC accepts.

Conditionals are not evaluated: more is found than a compile reads, never less. What cannot be decided is reported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

SPACE = rb"[ \t\f\v\r]*"
_SPLICE = re.compile(rb"\\\r?\n")
# Comments, and what may seem to begin one: literals, and the rest of a line after a quote that is not closed on it.
# A pattern that begins with a set of characters is searched several times as fast as other alternatives.
_LEXEME = (
    rb'''[/"'](?:(?<=/)(?:/[^\n]*|\*[\s\S]*?\*/)|(?<=")[^"\\\n]*(?:\\.[^"\\\n]*)*"'''
    rb"""|(?<=')[^'\\\n]*(?:\\.[^'\\\n]*)*'|(?<=["'])[^\n]*)"""
)
_LEXEMES = re.compile(_LEXEME)
# The same where there are raw strings or numbers with separators.
_SEPARATOR = re.compile(rb"'(?<=[\da-fA-F]')[\da-fA-F]")
_ALL_LEXEMES = re.compile(
    rb'(?<!\w)(?:u8|[uUL])?R"([^()\\\s]{0,16})\([\s\S]*?\)\1"' rb"|(?<!\w)\.?\d[\w.]*'[\w.']*|" + _LEXEME
)
_DIRECTIVE = re.compile(
    rb"^" + SPACE + rb"(?:#|%:)" + SPACE + rb"(include_next|include|import|embed|define)(?![\w$])([^\n]*)", re.MULTILINE
)
_DEFINITION = re.compile(SPACE + rb"([\w$\\\x80-\xff]+)(?:\(([^)]*)\))?(.*)")
_LITERAL = rb'(?:"([^"\n]+)"|<([^>\n]+)>)'
_OPERAND = re.compile(SPACE + _LITERAL)
_PROBE = re.compile(rb"__has_(?:include(?:_next)?|embed)(?![\w$])(?:\s*\(\s*" + _LITERAL + rb"\s*\))?")
# What precedes a name that is asked for or defined, and not used.
_GUARD = re.compile(
    rb"(?:(?<![\w$])defined\s*\(?|(?:#|%:)" + SPACE + rb"(?:(?:el)?ifn?def|(?:un)?def(?:ine)?))" + SPACE
)
# What a macro could make by pasting tokens together, and how such tokens begin and end.
_PREDEFINED = {b"__has_include": b"s_include", b"__DATE__": b"DATE__", b"__TIME__": b"TIME__", b"__FILE__": b"FILE__"}
_FIRST_PIECE = {name: re.compile(name[:5] + rb"(?<![\w$]" + name[:5] + rb")[\w$]*") for name in _PREDEFINED}
_LAST_PIECE = re.compile(rb"(?<![\w$])(?:(?:(?:_?h)?a)?s_include(?:_next)?|_?(?:DATE|TIME|FILE)__)(?![\w$])")
_CLOCK = re.compile(rb"__(?:DATE|TIME|TIMESTAMP)__")

QUOTED, ANGLED, EVERY = '"', "<", "*"


class Definition(NamedTuple):
    """A macro: its name, its parameters (``None`` if it is not function-like) and what stands for it."""

    name: bytes
    parameters: tuple[bytes, ...] | None
    body: bytes


@dataclass(frozen=True)
class Directives:
    """What a text includes, probes for and defines."""

    # Forms and names. The form is `QUOTED`, `ANGLED` or `EVERY`: ``#include_next`` may mean every file of that name.
    names: tuple[tuple[str, str], ...]
    computed: tuple[bytes, ...]  # what include directives have in place of a name
    definitions: tuple[Definition, ...]  # the macros, under whatever condition
    clock: bool  # whether it mentions ``__DATE__`` or ``__TIME__``
    unclear: str  # why the text alone does not show what a compile reads; empty if it does

    @classmethod
    def of(cls, text: bytes) -> Directives:
        """Read the directives of *text*, a source or a header."""
        unclear = "it has trigraphs" if b"??=" in text or b"??/" in text else ""
        text = without_comments(text)
        names: dict[tuple[str, str], None] = {}
        computed, definitions = [], []
        for directive, operand in _DIRECTIVE.findall(text):
            if directive == b"define":
                if found := _DEFINITION.match(operand):
                    name, parameters, body = found.groups()
                    listed = None if parameters is None else tuple(map(bytes.strip, parameters.split(b",")))
                    definitions.append(Definition(name, listed, body.strip()))
            elif directive == b"embed":
                unclear = "it uses #embed"
            elif found := _OPERAND.match(operand):
                names[_named(directive == b"include_next", *found.groups())] = None
            else:
                computed.append(operand.strip())
        if b"__has_" in text:
            for found in _PROBE.finditer(text):
                if any(found.groups()):
                    names[_named(b"_next" in found[0].partition(b"(")[0], *found.groups())] = None
            if not all(map(any, _PROBE.findall(text))):
                rest = _DIRECTIVE.sub(lambda found: b"" if found[1] == b"define" else found[0], text)
                if not all(any(found.groups()) or is_guarded(rest, found.start()) for found in _PROBE.finditer(rest)):
                    unclear = "it probes for a header that a macro names"
        if _has_pieces(text):
            unclear = "it has parts of a predefined name, which a macro may paste together"
        return cls(tuple(names), tuple(computed), tuple(definitions), _CLOCK.search(text) is not None, unclear)


def without_comments(text: bytes) -> bytes:
    """Return *text* with its lines spliced and without comments."""
    text = text.removeprefix(b"\xef\xbb\xbf")
    if b"\\" in text:
        text = _SPLICE.sub(b"", text)
    lexemes = _ALL_LEXEMES if b'R"' in text or _SEPARATOR.search(text) else _LEXEMES
    return lexemes.sub(lambda found: b" " if found[0].startswith(b"/") else found[0], text)


def may_mention(text: bytes, names: Iterable[bytes]) -> bool:
    """Return whether *text* may contain one of *names*, in a fraction of the time of `without_comments`."""
    if b"\\" in text:
        text = _SPLICE.sub(b"", text)
    return any(name in text for name in names)


def _has_pieces(text: bytes) -> bool:
    for name, tail in _PREDEFINED.items():
        start = name[:5]
        if start in text and any(name != word and name.startswith(word) for word in _FIRST_PIECE[name].findall(text)):
            return True
        if tail in text and text.count(tail) != text.count(name) and _LAST_PIECE.search(text):
            return True
    return False


def is_guarded(text: bytes, at: int) -> bool:
    """Return whether the name at *at* in *text* is asked for (``defined``, ``#ifdef``) or defined, not used."""
    line = text[text.rfind(b"\n", 0, at) + 1 : at]
    return any(found.end() == len(line) for found in _GUARD.finditer(line))


def _named(every: bool, quoted: bytes | None, angled: bytes | None) -> tuple[str, str]:
    return EVERY if every else QUOTED if quoted else ANGLED, os.fsdecode(quoted or angled or b"")
