# SPDX-License-Identifier: BSD-2-Clause
"""Read the preprocessing directives of a C++ text, in every spelling that NVRTC accepts.

More is found than a compile reads, never less. Of conditionals, only those are evaluated that depend on nothing but
``__CUDACC_RTC__``, which NVRTC defines. What cannot be decided is reported.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import NamedTuple

SPACE = rb"[ \t\f\v\r]*"
_SPLICE = re.compile(rb"\\\r?\n")
# Comments, and what may seem to begin one: literals, and the rest of a line after a quote that is not closed on it.
# A pattern that begins with a set of characters is searched several times as fast as other alternatives. What does not
# end takes the rest of the text, so that no byte is looked at more than twice.
_LEXEME = (
    rb"""[/"'](?:(?P<comment>(?<=/)(?:/[^\n]*|\*[^*]*\*+(?:[^/*][^*]*\*+)*/))"""
    rb"""|(?<=")[^"\\\n]*(?:\\.[^"\\\n]*)*"|(?<=')[^'\\\n]*(?:\\.[^'\\\n]*)*'"""
    rb"""|(?P<open>(?<=/)\*[\s\S]*|(?<=["'])[^\n]*))"""
)
_LEXEMES = re.compile(_LEXEME)
_OPEN = b"\0"  # after a comment or literal that does not end
# The same where there are raw strings or numbers with separators.
_SEPARATOR = re.compile(rb"'(?<=[\da-fA-F]')[\da-fA-F]")
_ALL_LEXEMES = re.compile(
    rb'(?<!\w)(?:u8|[uUL])?R"([^()\\\s]{0,16})\((?:[\s\S]*?\)\1"|[\s\S]*)'
    rb"|(?<![\w.])\.?\d[\w.]*'[\w.']*|" + _LEXEME
)
# A pattern that begins with a literal is searched ten times as fast as one that begins with ``^``.
_DIRECTIVE = re.compile(
    rb"\n" + SPACE + rb"(?:#|%:)" + SPACE + rb"(?:define[ \t\f\v\r]+([\w$\\\x80-\xff]+)"
    rb"|(include_next|include|import|embed)(?![\w$]))([^\n]*)"
)
_TRIGRAPH = re.compile(rb"\?\?[=/]")
_CONDITIONAL = re.compile(
    rb"\n" + SPACE + rb"(?:#|%:)" + SPACE + rb"(ifn?def|if|elifn?def|elif|else|endif)(?![\w$])([^\n]*)"
)
_OF_NVRTC = b"__CUDACC_RTC__"
_REDEFINED = re.compile(rb"(?:#|%:)" + SPACE + rb"(?:define|undef)[ \t\f\v\r]+" + _OF_NVRTC + rb"(?![\w$])")
_IS_DEFINED = re.compile(rb"(?<![\w$])defined(?:\s*\(\s*([\w$]+)\s*\)|\s+([\w$]+))")
_IN_PARENTHESES = re.compile(rb"\(([^()]*)\)")
_LONGEST_CONDITION = 500
_PARAMETERS = re.compile(rb"(?:\(([^)]*)\))?(.*)", re.DOTALL)
_LITERAL = rb'(?:"([^"\n]{1,500})"|<([^>\n]{1,500})>)'  # a longer one is left to NVRTC
_OPERAND = re.compile(SPACE + _LITERAL)
_PROBE = re.compile(rb"__has_(?:include(?:_next)?|embed)(?![\w$])(?:\s*\(\s*" + _LITERAL + rb"\s*\))?")
# What precedes a name that is asked for or defined, and not used.
_GUARD = re.compile(
    rb"(?:(?<![\w$])defined" + SPACE + rb"\(?|(?:#|%:)" + SPACE + rb"(?:(?:el)?ifn?def|(?:un)?def(?:ine)?))" + SPACE
)
# What has its own meaning, and how tokens begin which a macro could paste together to that.
_SPECIAL = re.compile(rb"__(?<![\w$]__)(?:has|DAT|TIM|FIL)[\w$]*")
_PREDEFINED = (b"__has_include", b"__DATE__", b"__TIME__", b"__FILE__")
_CLOCK = frozenset((b"__DATE__", b"__TIME__", b"__TIMESTAMP__"))


def _pieces(end: bytes, before: str) -> bytes:
    """Return a pattern for words that end in *end*, with one of the words in *before* it."""
    words = (each.encode() + end for each in ("", *before.split()))
    return end + b"(?:%s)" % b"|".join(rb"(?<=(?<![\w$])%s)" % word for word in words)


# These begin with a literal, which is searched fast.
_PIECES = (
    re.compile(_pieces(b"E__", "T AT DAT _DAT M IM TIM _TIM L IL FIL _FIL") + rb"(?![\w$])"),
    re.compile(_pieces(b"s_include", "a ha _ha") + rb"(?:_next)?(?![\w$])"),
)

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
    probes: tuple[tuple[str, str], ...]  # the same for what it probes for
    computed: tuple[bytes, ...]  # what include directives have in place of a name
    # The macros, under whatever condition: their names, and what follows these, which is read where it matters.
    definitions: tuple[tuple[bytes, bytes], ...]
    clock: bool  # whether it mentions ``__DATE__`` or ``__TIME__``
    unclear: str  # why the text alone does not show what a compile reads; empty if it does
    text: bytes = field(compare=False, repr=False)  # without comments, and without branches that NVRTC skips

    @classmethod
    def of(cls, text: bytes) -> Directives:
        """Read the directives of *text*, a source or a header."""
        unclear = "it has trigraphs" if _TRIGRAPH.search(text) else ""
        text = _read_by_nvrtc(without_comments(b"\n" + spliced(text)))  # a directive follows the end of a line
        names: dict[tuple[str, str], None] = {}
        probes: dict[tuple[str, str], None] = {}
        computed, definitions = [], []
        for defined, directive, operand in _DIRECTIVE.findall(text):
            if defined:
                definitions.append((defined, operand))
            elif directive == b"embed":
                unclear = "it uses #embed"
            elif name := _OPERAND.match(operand):
                names[_named(directive == b"include_next", *name.groups())] = None
            else:
                computed.append(operand.strip())
        special = set(_SPECIAL.findall(text))
        if any(word.startswith((b"__has_include", b"__has_embed")) for word in special):
            for probe in _PROBE.finditer(text):
                if any(probe.groups()):
                    probes[_named(b"_next" in probe[0].partition(b"(")[0], *probe.groups())] = None
            if _probes_for_unknown(text):
                unclear = "it probes for a header that a macro names"
        if _has_pieces(text, special):
            unclear = "it has parts of a predefined name, which a macro may paste together"
        if _OF_NVRTC in text and _REDEFINED.search(text):
            unclear = f"it may redefine {_OF_NVRTC.decode()}"
        clock = not _CLOCK.isdisjoint(special)
        return cls(tuple(names), tuple(probes), tuple(computed), tuple(definitions), clock, unclear, text)


def _read_by_nvrtc(text: bytes) -> bytes:
    """Return *text*, which has no comments, without branches that NVRTC skips because it defines ``__CUDACC_RTC__``;
    all of it where literals do not end or may contain lines, or where the conditionals do not match each other."""
    if _OF_NVRTC not in text or b'R"' in text or _OPEN in text:
        return text
    kept, start = [], 0
    skipped = False
    levels: list[tuple[bool, bool]] = []  # whether the conditional itself is skipped, and all its further branches
    for found in _CONDITIONAL.finditer(text):
        directive, condition = found.groups()
        was_skipped, is_true = skipped, _truth(directive, condition)
        if directive.startswith(b"if"):
            levels.append((skipped, False))
        elif not levels:
            return text
        outer, done = levels.pop()
        if directive == b"endif":
            skipped = outer
        else:
            skipped = outer or done or is_true is False
            levels.append((outer, done or is_true is True))
        if was_skipped and not skipped:
            start = found.start()
        elif skipped and not was_skipped:
            kept.append(text[start : found.end()])
    return text if levels else b"".join((*kept, text[start:]))


def _truth(directive: bytes, condition: bytes) -> bool | None:
    """Whether the *condition* of a *directive* holds in NVRTC; ``None`` if that depends on more than whether
    ``__CUDACC_RTC__`` is defined."""
    if directive in (b"else", b"endif"):
        return True
    if directive.endswith(b"def"):
        return b"n" not in directive if condition.strip() == _OF_NVRTC else None
    if _OF_NVRTC not in condition or len(condition) > _LONGEST_CONDITION:
        return None
    values = _IS_DEFINED.sub(lambda found: b" 1 " if _OF_NVRTC in found.groups() else b" ~ ", condition)
    if values.strip(b" \t01~()!&|"):  # what a macro stands for may have operators
        return None
    while b"(" in values:
        values, count = _IN_PARENTHESES.subn(lambda found: _value(found[1]), values)
        if not count:
            return None
    return {b" 1 ": True, b" 0 ": False}.get(_value(values))


def _value(operands: bytes) -> bytes:
    """Return the value of *operands*, which have no parentheses: ``1``, ``0``, or ``~`` if it is not known."""
    every = [[_operand(each) for each in one.split(b"&&")] for one in operands.split(b"||")]
    any_of = [b"0" if b"0" in one else b"~" if b"~" in one else b"1" for one in every]
    return b" %s " % (b"1" if b"1" in any_of else b"~" if b"~" in any_of else b"0")


def _operand(text: bytes) -> bytes:
    bare = text.strip()
    value = bare.lstrip(b"! \t")
    if value not in (b"0", b"1"):
        return b"~"
    return b"1" if (value == b"1") == (bare.count(b"!") % 2 == 0) else b"0"


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
    """Return what stands for a lexeme. A comment or literal that does not end stays, and is marked: what it contains
    may be found, and is no less than a compile reads."""
    kind = found.lastgroup
    return b" " if kind == "comment" else found[0] if kind is None else found[0] + _OPEN


def _has_pieces(text: bytes, special: set[bytes]) -> bool:
    """Whether *text*, which mentions the *special* words, has a part of a predefined name."""
    if any(name != word and name.startswith(word) for word in special for name in _PREDEFINED):
        return True
    return any(pattern.search(text) for pattern in _PIECES)


def guarded_places(text: bytes) -> set[int]:
    """Return where names in *text* are asked for (``defined``, ``#ifdef``) or defined, not used."""
    return {found.end() for found in _GUARD.finditer(text)}


def _named(every: bool, quoted: bytes | None, angled: bytes | None) -> tuple[str, str]:
    return EVERY if every else QUOTED if quoted else ANGLED, os.fsdecode(quoted or angled or b"")
