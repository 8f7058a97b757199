# SPDX-License-Identifier: BSD-2-Clause
"""Read the preprocessing directives of a C++ text, in every spelling that NVRTC accepts.

Conditionals are not evaluated: more is found than a compile reads, never less. What cannot be decided is reported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

SPACE = rb"[ \t\f\v\r]*"
_SPLICE = re.compile(rb"\\\r?\n")
# Comments, and what may seem to begin one: literals, and the rest of a line after a quote that is not closed on it.
# A pattern that begins with a set of characters is searched several times as fast as other alternatives. What does not
# end takes the rest of the text, so that each byte is looked at once.
_LEXEME = (
    rb'''[/"'](?:(?<=/)(?:/[^\n]*|\*[\s\S]*?(?:\*/|\Z))|(?<=")[^"\\\n]*(?:\\.[^"\\\n]*)*"'''
    rb"""|(?<=')[^'\\\n]*(?:\\.[^'\\\n]*)*'|(?<=["'])[^\n]*)"""
)
_LEXEMES = re.compile(_LEXEME)
# The same where there are raw strings or numbers with separators.
_SEPARATOR = re.compile(rb"'(?<=[\da-fA-F]')[\da-fA-F]")
_ALL_LEXEMES = re.compile(
    rb'(?<!\w)(?:u8|[uUL])?R"([^()\\\s]{0,16})\((?:[\s\S]*?\)\1"|[\s\S]*)'
    rb"|(?<![\w.])\.?\d[\w.]*'[\w.']*|" + _LEXEME
)
# A pattern that begins with a literal is searched ten times as fast as one that begins with ``^``.
_DIRECTIVE = re.compile(
    rb"\n" + SPACE + rb"(?:#|%:)" + SPACE + rb"(?:define[ \t\f\v\r]+([\w$\\\x80-\xff]+)"
    rb"|(include_next|include|import|embed)(?![\w$])|(/|define(?![\w$])))([^\n]*)"
)
_TRIGRAPH = re.compile(rb"\?\?[=/]")
_QUOTE = re.compile(rb"[\"']")
_LINE_END = re.compile(SPACE + rb"(?:\n|\Z)")
_AFTER_COMMENT = re.compile(rb"\*/" + SPACE + rb"(?:#|%:)")
_PARAMETERS = re.compile(rb"(?:\(([^)]*)\))?(.*)", re.DOTALL)
_LITERAL = rb'(?:"([^"\n]{1,500})"|<([^>\n]{1,500})>)'  # a longer one is left to NVRTC
_OPERAND = re.compile(SPACE + _LITERAL)
_PROBE = re.compile(rb"__has_(?:include(?:_next)?|embed)(?![\w$])(?:\s*\(\s*" + _LITERAL + rb"\s*\))?")
# What precedes a name that is asked for or defined, and not used.
_GUARD = re.compile(
    rb"(?:(?<![\w$])defined" + SPACE + rb"\(?|(?:#|%:)" + SPACE + rb"(?:(?:el)?ifn?def|(?:un)?def(?:ine)?))" + SPACE
)
# What has its own meaning, and what a macro could paste together to that: how such tokens begin and end.
_SPECIAL = re.compile(rb"__(?<![\w$]__)(?:has|DAT|TIM|FIL)[\w$]*")
_PREDEFINED = (b"__has_include", b"__DATE__", b"__TIME__", b"__FILE__")
_CLOCK = frozenset((b"__DATE__", b"__TIME__", b"__TIMESTAMP__"))
_ENDS = re.compile(rb"E__(?![\w$])"), re.compile(rb"s_include(?<!__has_include)")
_REST = 6  # bytes of such a piece before or after what `_ENDS` finds of it, and one that is no part of it
_LAST_PIECE = re.compile(
    rb"(?<![\w$])(?:(?:(?:_?h)?a)?s_include(?:_next)?|(?:(?:(?:_?D)?A)?T|(?:(?:_?T)?I)?M|(?:(?:_?F)?I)?L)?E__)(?![\w$])"
)

_Line = tuple[bytes, bytes, bytes, bytes]  # the groups of `_DIRECTIVE`

QUOTED, ANGLED, EVERY = '"', "<", "*"


class Definition(NamedTuple):
    """A macro: its name, its parameters (``None`` if it is not function-like) and what stands for it."""

    name: bytes
    parameters: tuple[bytes, ...] | None
    body: bytes

    @classmethod
    def of(cls, name: bytes, rest: bytes) -> Definition:
        """Read a definition, of which the *rest* follows the name."""
        found = _PARAMETERS.match(without_comments(rest) if b"/" in rest else rest)
        assert found is not None
        listed, body = found.groups()
        return cls(name, None if listed is None else tuple(map(bytes.strip, listed.split(b","))), body.strip())


@dataclass(frozen=True)
class Directives:
    """What a text includes, probes for and defines."""

    # Forms and names. The form is `QUOTED`, `ANGLED` or `EVERY`: ``#include_next`` may mean every file of that name.
    names: tuple[tuple[str, str], ...]
    computed: tuple[bytes, ...]  # what include directives have in place of a name
    # The macros, under whatever condition: their names, and what follows these, which is read where it matters.
    definitions: tuple[tuple[bytes, bytes], ...]
    clock: bool  # whether it mentions ``__DATE__`` or ``__TIME__``
    unclear: str  # why the text alone does not show what a compile reads; empty if it does

    @classmethod
    def of(cls, text: bytes) -> Directives:
        """Read the directives of *text*, a source or a header."""
        unclear = "it has trigraphs" if _TRIGRAPH.search(text) else ""
        text = b"\n" + spliced(text)  # a directive follows the end of a line
        lines = _plain_lines(text)
        found = None if lines is None else cls._read(text, lines, unclear)
        # With its comments, a text may seem to do more than it does.
        if found is None or found.computed or found.clock or found.unclear:
            text = without_comments(text)
            found = cls._read(text, _DIRECTIVE.findall(text), unclear)
        return found

    @classmethod
    def _read(cls, text: bytes, lines: Sequence[_Line], unclear: str) -> Directives:
        names: dict[tuple[str, str], None] = {}
        computed, definitions = [], []
        for defined, directive, _, operand in lines:
            if defined:
                definitions.append((defined, operand))
            elif directive == b"embed":
                unclear = "it uses #embed"
            elif directive:
                if name := _OPERAND.match(operand):
                    names[_named(directive == b"include_next", *name.groups())] = None
                else:
                    computed.append(operand.strip())
        special = set(_SPECIAL.findall(text))
        if any(word.startswith((b"__has_include", b"__has_embed")) for word in special):
            for probe in _PROBE.finditer(text):
                if any(probe.groups()):
                    names[_named(b"_next" in probe[0].partition(b"(")[0], *probe.groups())] = None
            if _probes_for_unknown(text):
                unclear = "it probes for a header that a macro names"
        if _has_pieces(text, special):
            unclear = "it has parts of a predefined name, which a macro may paste together"
        return cls(tuple(names), tuple(computed), tuple(definitions), not _CLOCK.isdisjoint(special), unclear)


def _plain_lines(text: bytes) -> list[_Line] | None:
    """Return the directives of *text*, or ``None`` if comments may hide one, end in one or contain one. A definition
    too many does no harm, nor does a comment that begins after one and ends with a line."""
    if b"/*" not in text:
        return _DIRECTIVE.findall(text)
    if _AFTER_COMMENT.search(text):
        return None
    lines: list[_Line] = []
    checked, end, in_comment = 0, -1, False
    for found in _DIRECTIVE.finditer(text):
        defined, directive, other, operand = found.groups(b"")
        if other or _ends_in_comment(operand):
            if end < found.end():
                end = text.find(b"*/", found.end())
            operand = without_comments(operand).partition(b"/*")[0]
            if not defined or end < 0 or _QUOTE.search(operand) or not _LINE_END.match(text, end + 2):
                return None
        if directive:
            last = text.rfind(b"/*", checked, found.start()), text.rfind(b"*/", checked, found.start())
            in_comment = last[1] < last[0] + 2 if max(last) >= 0 else in_comment
            checked = found.start()
            if in_comment:
                return None
        lines.append((defined, directive, other, operand))
    return lines


def _ends_in_comment(line: bytes) -> bool:
    return b"/*" in line and b"*/" not in line.rpartition(b"/*")[2]


def _probes_for_unknown(text: bytes) -> bool:
    """Whether *text* probes for a header whose name is not there, other than in the definition of a macro."""
    if all(map(any, _PROBE.findall(text))):
        return False
    rest = _DIRECTIVE.sub(lambda found: b"" if found[1] else found[0], text)
    guarded = guarded_places(rest)
    return not all(any(found.groups()) or found.start() in guarded for found in _PROBE.finditer(rest))


def spliced(text: bytes) -> bytes:
    """Return *text* with its lines spliced."""
    text = text.removeprefix(b"\xef\xbb\xbf")
    return _SPLICE.sub(b"", text) if b"\\" in text else text


def without_comments(text: bytes) -> bytes:
    """Return *text*, whose lines are spliced, without comments."""
    lexemes = _ALL_LEXEMES if b'R"' in text or _SEPARATOR.search(text) else _LEXEMES
    return lexemes.sub(_without_comment, text)


def _without_comment(found: re.Match[bytes]) -> bytes:
    """Return what stands for a lexeme. A comment that does not end stays: what it contains may be found, and is no
    less than a compile reads."""
    text = found[0]
    is_comment = text.startswith(b"//") or (text.startswith(b"/*") and text.endswith(b"*/") and len(text) > 3)
    return b" " if is_comment else text


def _has_pieces(text: bytes, special: set[bytes]) -> bool:
    """Whether *text*, which mentions the *special* words, has a part of a predefined name."""
    if any(name != word and name.startswith(word) for word in special for name in _PREDEFINED):
        return True
    ends = (end for pattern in _ENDS for end in pattern.finditer(text))
    return any(_LAST_PIECE.search(text, max(0, end.start() - _REST), end.end() + _REST) for end in ends)


def guarded_places(text: bytes) -> set[int]:
    """Return where names in *text* are asked for (``defined``, ``#ifdef``) or defined, not used."""
    return {found.end() for found in _GUARD.finditer(text)}


def _named(every: bool, quoted: bytes | None, angled: bytes | None) -> tuple[str, str]:
    return EVERY if every else QUOTED if quoted else ANGLED, os.fsdecode(quoted or angled or b"")
