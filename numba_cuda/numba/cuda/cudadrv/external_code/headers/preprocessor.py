# SPDX-License-Identifier: BSD-2-Clause
"""Read the preprocessing directives of a C++ text, in every spelling that NVRTC accepts.

Conditionals are not evaluated: more is found than a compile reads, never less. What cannot be decided is reported.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Collection, Iterable, Iterator
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
_DIRECTIVE = re.compile(
    rb"^" + SPACE + rb"(?:#|%:)" + SPACE + rb"(include_next|include|import|embed|define)(?![\w$])([^\n]*)", re.MULTILINE
)
_DEFINITION = re.compile(SPACE + rb"([\w$\\\x80-\xff]+)(?:\(([^)]*)\))?(.*)")
_LITERAL = rb'(?:"([^"\n]{1,500})"|<([^>\n]{1,500})>)'  # a longer one is left to NVRTC
_OPERAND = re.compile(SPACE + _LITERAL)
_PROBE = re.compile(rb"__has_(?:include(?:_next)?|embed)(?![\w$])(?:\s*\(\s*" + _LITERAL + rb"\s*\))?")
# What precedes a name that is asked for or defined, and not used.
_GUARD = re.compile(
    rb"(?:(?<![\w$])defined" + SPACE + rb"\(?|(?:#|%:)" + SPACE + rb"(?:(?:el)?ifn?def|(?:un)?def(?:ine)?))" + SPACE
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
                guarded = guarded_places(rest)
                if not all(any(found.groups()) or found.start() in guarded for found in _PROBE.finditer(rest)):
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
    return lexemes.sub(_without_comment, text)


def _without_comment(found: re.Match[bytes]) -> bytes:
    """Return what stands for a lexeme. A comment that does not end stays: what it contains may be found, and is no
    less than a compile reads."""
    text = found[0]
    is_comment = text.startswith(b"//") or (text.startswith(b"/*") and text.endswith(b"*/") and len(text) > 3)
    return b" " if is_comment else text


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


def guarded_places(text: bytes) -> set[int]:
    """Return where names in *text* are asked for (``defined``, ``#ifdef``) or defined, not used."""
    return {found.end() for found in _GUARD.finditer(text)}


def _named(every: bool, quoted: bytes | None, angled: bytes | None) -> tuple[str, str]:
    return EVERY if every else QUOTED if quoted else ANGLED, os.fsdecode(quoted or angled or b"")


_WORD = re.compile(rb"(?:[A-Za-z_$\x80-\xff]|\\[uU])[\w$\\\x80-\xff]*")
_NAME = re.compile(rb"[A-Za-z_]\w*")
_PATH = re.compile(rb"[\w./+-]*")
_CALL = re.compile(rb"([A-Za-z_]\w*)\s*\(\s*([\w./+-]+)\s*\)")
_ARGUMENT = re.compile(rb'\s*\(\s*(?:"([^"\n]{1,500})"|<([^<>\s]{1,500})>|(\w+))\s*([,)])')
_DEFINE = re.compile(SPACE + rb"(?:#|%:)" + SPACE + rb"define\b")
_TOKEN = re.compile(rb"[\w$]+")
_MOST = 1000  # steps in which macros of one program are replaced; headers that name others so need some ten
_DEEPEST = 50  # macros within macros
_LONGEST = 4096  # bytes of a path
_PROBES = frozenset((b"__has_include", b"__has_include_next", b"__has_embed"))
# What puts the path of the file that it stands in into the code.
_PATHS = frozenset(
    b"assert source_location __FILE__ __BASE_FILE__ __FILE_NAME__ __builtin_FILE __builtin_FILE_NAME"
    b" __builtin_source_location".split()
)


class UnknownTextError(Exception):
    """The definitions alone do not show what a macro stands for."""

    def __init__(self, text: bytes):
        super().__init__(text.decode(errors="replace"))


class Macros:
    """The macros that all texts of a program define."""

    def __init__(self, definitions: Iterable[Definition]):
        self._known: dict[bytes, dict[Definition, None]] = {}
        for definition in definitions:
            self._known.setdefault(definition.name, {})[definition] = None
        self._steps = _MOST
        self._included: dict[bytes, set[bytes] | None] = {}

    def includes(self, name: bytes) -> set[bytes]:
        """Return what ``#include name`` may include, or ``#include name(argument)``: names with their quotes or angle
        brackets. Raise `UnknownTextError` if the definitions are not enough: there is none, or one calls another macro,
        for example; or if there are too many."""
        if name not in self._included:
            self._included[name] = None
            self._included[name] = self._found_includes(name)
        if (found := self._included[name]) is None:
            raise UnknownTextError(name)
        return found

    def _found_includes(self, name: bytes) -> set[bytes]:
        call = _CALL.fullmatch(name)
        if (call[1] if call else name) not in self._known or not (call or _NAME.fullmatch(name)):
            raise UnknownTextError(name)
        return set(self._includes_of_call(call[1], call[2]) if call else self._includes(name, ()))

    def _includes_of_call(self, name: bytes, argument: bytes) -> Iterator[bytes]:
        for definition in self._known[name]:
            for path in self._expanded(_path_of_call(definition, argument), (name,)):
                yield b"<" + path + b">"

    def _includes(self, name: bytes, outer: tuple[bytes, ...]) -> Iterator[bytes]:
        self._step(name, outer)
        for body in self._bodies(name):
            if body[:1] == b'"' and body.find(b'"', 1) == len(body) - 1:
                yield body
            elif body[:1] == b"<" and body.find(b">") == len(body) - 1:
                for path in self._expanded(body[1:-1], (*outer, name)):
                    yield b"<" + path + b">"
            elif body in self._known:
                if body not in outer:
                    yield from self._includes(body, (*outer, name))
            elif body:
                raise UnknownTextError(body)

    def _expanded(self, text: bytes, outer: tuple[bytes, ...]) -> Iterator[bytes]:
        """Yield *text* with each macro in it replaced by each of its definitions."""
        self._step(text, outer)
        for found in _NAME.finditer(text):
            name = found[0]
            if name in outer or name not in self._known:
                continue
            for body in self._bodies(name):
                if not _PATH.fullmatch(body):
                    raise UnknownTextError(body)
                for inner in self._expanded(body, (*outer, name)):
                    for rest in self._expanded(text[found.end() :], outer):
                        yield text[: found.start()] + inner + rest
            # It may also be undefined there.
        yield text

    def _step(self, text: bytes, outer: tuple[bytes, ...]) -> None:
        """Count a step. Raise `UnknownTextError` if there are too many, or these go too deep or make too long a text:
        macros can double a text again and again."""
        self._steps -= 1
        if self._steps < 0 or len(text) > _LONGEST or len(outer) > _DEEPEST:
            raise UnknownTextError(text[:_LONGEST])

    def _bodies(self, name: bytes) -> list[bytes]:
        definitions = self._known[name]
        if any(definition.parameters is not None for definition in definitions):
            raise UnknownTextError(name + b"(...)")
        return [definition.body for definition in definitions]

    def probing(self) -> frozenset[bytes]:
        """Return the macros that pass on the name of a header to ``__has_include``: their first argument. Raise
        `UnknownTextError` if one does anything else with it."""
        users: dict[bytes, dict[Definition, None]] = {}
        for each in itertools.chain.from_iterable(self._known.values()):
            for word in _TOKEN.findall(each.body):
                users.setdefault(word, {})[each] = None
        found = set(_PROBES)
        pending = list(_PROBES)
        while pending:
            name = pending.pop()
            further = {each.name for each in users.get(name, ()) if self._passes_on(each, name)}
            pending += further - found
            found |= further
        return frozenset(found - _PROBES)

    def _passes_on(self, definition: Definition, name: bytes) -> bool:
        """Return whether *definition* passes its first argument on to the macro *name*, or stands for that. Raise
        `UnknownTextError` if it uses it otherwise, but for names of headers that it contains."""
        passes = False
        for use in _mentions({name}, definition.body):
            argument = _ARGUMENT.match(definition.body, use.end())
            if argument and not argument[3]:
                self._check_name(argument[2], definition)
            elif self._is_passed_on(definition, argument, is_last=use.end() == len(definition.body)):
                passes = True
            else:
                raise UnknownTextError(definition.name)
        return passes

    def _check_name(self, angled: bytes | None, definition: Definition) -> None:
        """Raise if a macro or a parameter is part of an *angled* name in the body of *definition*."""
        for word in _WORD.findall(angled or b""):
            if word in self._known or word in (definition.parameters or ()):
                raise UnknownTextError(definition.name)

    @staticmethod
    def _is_passed_on(definition: Definition, argument: re.Match[bytes] | None, *, is_last: bool) -> bool:
        """Return whether the *argument* of a probe in a body is its macro's first parameter alone; or, if the probe
        *is_last* in the body, whether arguments of the macro will follow it."""
        if is_last:
            return definition.parameters is None
        first = (definition.parameters or (b"",))[0].replace(b"...", b"__VA_ARGS__")
        return argument is not None and argument[3] == first and argument[4] == b")"

    def probed(self, text: bytes, macros: frozenset[bytes]) -> Iterator[str]:
        """Yield the name of each header that *text* probes for through *macros*, those of `probing`. Raise
        `UnknownTextError` if one is used otherwise."""
        guarded = guarded_places(text)
        for use in _mentions(macros, text):
            argument = _ARGUMENT.match(text, use.end())
            if argument and not argument[3]:
                self._check_name(argument[2], Definition(use[0], None, b""))
                yield os.fsdecode(argument[1] or argument[2])
            elif use.start() not in guarded and not _in_definition(text, use.start()):
                raise UnknownTextError(use[0])

    def contain_path(self, text: bytes) -> bool:
        """Return whether what *text* says may put the path of its file into the code, through macros too."""
        seen: set[bytes] = set()
        pending = set(_WORD.findall(text))
        while pending:
            if not _PATHS.isdisjoint(pending):
                return True
            seen |= pending
            bodies = [each.body for word in pending for each in self._known.get(word, ())]
            pending = {word for body in bodies for word in _WORD.findall(body)} - seen
        return False


def _path_of_call(macro: Definition, argument: bytes) -> bytes:
    """Return what a *macro* that puts its parameter into a name in angle brackets makes of *argument*. Raise
    `UnknownTextError` if it does anything else."""
    parameter, *others = macro.parameters or (b"",)
    is_name = macro.body[:1] == b"<" and macro.body.find(b">") == len(macro.body) - 1 and b"#" not in macro.body
    if not is_name or others or not _NAME.fullmatch(parameter):
        raise UnknownTextError(macro.name)
    return _NAME.sub(lambda found: argument if found[0] == parameter else found[0], macro.body[1:-1])


def _mentions(names: Collection[bytes], text: bytes) -> Iterator[re.Match[bytes]]:
    return (found for found in _TOKEN.finditer(text) if found[0] in names)


def _in_definition(text: bytes, at: int) -> bool:
    return _DEFINE.match(text, text.rfind(b"\n", 0, at) + 1, at) is not None  # `probing` has looked at it
