# SPDX-License-Identifier: BSD-2-Clause
"""What macros may stand for where a header is included or probed for, and where a path gets into the code."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Collection, Iterable, Iterator

from .preprocessor import SPACE, Definition, guarded_places

_WORD = re.compile(rb"[A-Za-z_$\\\x80-\xff](?:(?<!\\)|(?=[uU]))[\w$\\\x80-\xff]*")
_NAME = re.compile(rb"[A-Za-z_]\w*")
_PATH = re.compile(rb"[\w./+-]*")
_CALL = re.compile(rb"([A-Za-z_]\w*)\s*\(\s*([\w./+-]+)\s*\)")
_ARGUMENT = re.compile(rb'\s*\(\s*(?:"([^"\n]{1,500})"|<([^<>\s]{1,500})>|(\w+))\s*([,)])')
_DEFINE = re.compile(SPACE + rb"(?:#|%:)" + SPACE + rb"define\b")
_TOKEN = re.compile(rb"[\w$]+")
_MOST = 1000  # steps in which macros of one program are replaced; headers that name others so need some ten
_FEW_WORDS = 100
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

    def __init__(self, definitions: Iterable[tuple[bytes, bytes]]):
        self._known: dict[bytes, dict[bytes, None]] = {}
        for name, rest in definitions:
            self._known.setdefault(name, {})[rest] = None
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
        for definition in self._definitions(name):
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

    def _definitions(self, name: bytes) -> list[Definition]:
        return [Definition.of(name, rest) for rest in self._known.get(name, ())]

    def _bodies(self, name: bytes) -> list[bytes]:
        definitions = self._definitions(name)
        if any(definition.parameters is not None for definition in definitions):
            raise UnknownTextError(name + b"(...)")
        return [definition.body for definition in definitions]

    def probing(self) -> frozenset[bytes]:
        """Return the macros that pass on the name of a header to ``__has_include``: their first argument. Raise
        `UnknownTextError` if one does anything else with it."""
        pending = [name for name in _PROBES if name in self._rests]
        found = set(pending)
        while pending:
            name = pending.pop()
            further = {user for user in self._users.get(name, ()) if self._any_passes_on(user, name)} - found
            pending += further
            found |= further
        return frozenset(found - _PROBES)

    @functools.cached_property
    def _rests(self) -> bytes:
        return b" ".join([rest for rests in self._known.values() for rest in rests])

    @functools.cached_property
    def _users(self) -> dict[bytes, set[bytes]]:
        """The macros in whose definitions each word is."""
        users: dict[bytes, set[bytes]] = {}
        for name, rests in self._known.items():
            for word in _WORD.findall(b" ".join(rests)):
                users.setdefault(word, set()).add(name)
        return users

    def _any_passes_on(self, user: bytes, name: bytes) -> bool:
        return any([self._passes_on(definition, name) for definition in self._definitions(user)])

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
        """Yield the name of each header that *text*, which has no comments, probes for through *macros*, those of
        `probing`. Raise `UnknownTextError` if one is used otherwise."""
        if not any(name in text for name in macros):
            return
        guarded = guarded_places(text)
        for use in _mentions(macros, text):
            argument = _ARGUMENT.match(text, use.end())
            if argument and not argument[3]:
                self._check_name(argument[2], Definition(use[0], None, b""))
                yield os.fsdecode(argument[1] or argument[2])
            elif use.start() not in guarded and not _in_definition(text, use.start()):
                raise UnknownTextError(use[0])

    @functools.cached_property
    def paths(self) -> frozenset[bytes]:
        """The words that put the path of their file into the code: macros whose definitions have one, and so on."""
        found = set(_PATHS)
        pending = [name for name in _PATHS if name in self._rests]
        while pending:
            further = self._users.get(pending.pop(), set()) - found
            pending += further
            found |= further
        return frozenset(found)

    def contain_path(self, text: bytes) -> bool:
        """Whether *text*, which has no comments, may put the path of its file into the code."""
        return has_any(self.paths, text)


def has_any(words: frozenset[bytes], text: bytes) -> bool:
    """Whether *text*, which has no comments, has any of *words*."""
    if len(words) < _FEW_WORDS and not any(word in text for word in words):  # which is faster than to list its words
        return False
    return not words.isdisjoint(_WORD.findall(text))


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
