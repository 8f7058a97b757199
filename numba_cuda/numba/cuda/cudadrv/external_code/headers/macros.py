# SPDX-License-Identifier: BSD-2-Clause
"""What macros stand for: names of headers, probes for headers, and paths.

Definitions are taken from all texts, under whatever condition: more is found than a compile includes, never less.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator

from .preprocessor import Definition, is_guarded

_WORD = re.compile(rb"(?:[A-Za-z_$\x80-\xff]|\\[uU])[\w$\\\x80-\xff]*")
_NAME = re.compile(rb"[A-Za-z_]\w*")
_PATH = re.compile(rb"[\w./+-]*")
_CALL = re.compile(rb"([A-Za-z_]\w*)\s*\(\s*([\w./+-]+)\s*\)")
_ARGUMENT = re.compile(rb'\s*\(\s*(?:"([^"\n]+)"|<([^<>\s]+)>|(\w+))\s*([,)])')
_MOST = 1000
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

    def includes(self, name: bytes) -> set[bytes]:
        """Return what ``#include name`` may include, or ``#include name(argument)``: names with their quotes or angle
        brackets. Raise `UnknownTextError` if the definitions are not enough: there is none, or one calls another macro,
        for example."""
        call = _CALL.fullmatch(name)
        if (call[1] if call else name) not in self._known or not (call or _NAME.fullmatch(name)):
            raise UnknownTextError(name)
        found = self._includes_of_call(call[1], call[2]) if call else self._includes(name, ())
        return set(itertools.islice(found, _MOST))

    def _includes_of_call(self, name: bytes, argument: bytes) -> Iterator[bytes]:
        for definition in self._known[name]:
            for path in self._expanded(_path_of_call(definition, argument), (name,)):
                yield b"<" + path + b">"

    def _includes(self, name: bytes, outer: tuple[bytes, ...]) -> Iterator[bytes]:
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

    def _bodies(self, name: bytes) -> list[bytes]:
        definitions = self._known[name]
        if any(definition.parameters is not None for definition in definitions):
            raise UnknownTextError(name + b"(...)")
        return [definition.body for definition in definitions]

    def probing(self) -> frozenset[bytes]:
        """Return the macros that pass on the name of a header to ``__has_include``: their first argument. Raise
        `UnknownTextError` if one does anything else with it."""
        found = set(_PROBES)
        while True:
            mention = _mention(found)
            further = set()
            for each in itertools.chain.from_iterable(self._known.values()):
                for use in mention.finditer(each.body) if any(name in each.body for name in found) else ():
                    argument = _ARGUMENT.match(each.body, use.end())
                    if argument and not argument[3]:
                        self._check_name(argument[2], each)
                    elif self._is_passed_on(each, each.body[use.end() :]):
                        further.add(each.name)
                    else:
                        raise UnknownTextError(each.name)
            if further <= found:
                return frozenset(found - _PROBES)
            found |= further

    def _check_name(self, angled: bytes | None, definition: Definition) -> None:
        """Raise if a macro or a parameter is part of an *angled* name in the body of *definition*."""
        for word in _WORD.findall(angled or b""):
            if word in self._known or word in (definition.parameters or ()):
                raise UnknownTextError(definition.name)

    @staticmethod
    def _is_passed_on(definition: Definition, rest: bytes) -> bool:
        """Return whether the *rest* of a body, after a probe, is its macro's first parameter alone, or empty."""
        if not rest.strip():
            return definition.parameters is None
        argument = _ARGUMENT.match(rest)
        first = (definition.parameters or (b"",))[0].replace(b"...", b"__VA_ARGS__")
        return argument is not None and argument[3] == first and argument[4] == b")"

    def probed(self, text: bytes, macros: frozenset[bytes]) -> Iterator[str]:
        """Yield the name of each header that *text* probes for through *macros*, those of `probing`. Raise
        `UnknownTextError` if one is used otherwise."""
        for use in _mention(macros).finditer(text):
            argument = _ARGUMENT.match(text, use.end())
            if argument and not argument[3]:
                self._check_name(argument[2], Definition(use[0], None, b""))
                yield os.fsdecode(argument[1] or argument[2])
            elif not is_guarded(text, use.start()) and not _in_definition(text, use.start()):
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


def _mention(names: Iterable[bytes]) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![\w$])(?:" + b"|".join(map(re.escape, sorted(names))) + rb")(?![\w$])")


def _in_definition(text: bytes, at: int) -> bool:
    line = text[text.rfind(b"\n", 0, at) + 1 : at]
    return re.match(rb"\s*(?:#|%:)\s*define\b", line) is not None  # `probing` has looked at it
