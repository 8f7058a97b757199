# SPDX-License-Identifier: BSD-2-Clause
"""Find in the text of a CUDA C++ source which headers it includes.

Conditionals are not evaluated: more is found than a compile reads, never less, except for includes through macros that
are not plain text, which are reported. Names are looked up where NVRTC looks. A quoted name is looked up in the
directory of the file that includes it (for the source itself, the directory of its name, or the working directory if it
has none), then in the include paths, like a name in angle brackets. Paths are spelled as in ``__FILE__``.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .file_state import Header, file_state, is_settled, state_of
from .macros import Macros, UnknownTextError

# Each part can match in one way only: a comment ends at the first "*/".
_SPACE = rb"[ \t\f\v]*(?:/\*(?:[^*]|\*(?!/))*\*/[ \t\f\v]*)*"
_NAME = rb'(?:"([^"\n\0]+)"|<([^>\n\0]+)>)'
_INCLUDE = re.compile(rb"#" + _SPACE + rb"include(_next)?\b" + _SPACE + rb"(?:" + _NAME + rb"|([^\s/]\S*))")
_HAS_INCLUDE = re.compile(rb"__has_include(_next)?\s*\(\s*(?:" + _NAME + rb"|\S)")
# Headers define it for compilers that lack it; NVRTC has it.
_DEFINED_HAS_INCLUDE = re.compile(rb"#[ \t]*define[ \t]+__has_include(?:_next)?\([^)\n]*\)")
# The argument of a macro that wraps __has_include.
_ARGUMENT = re.compile(rb"[(,]\s*<([^<>\s()]+)>\s*[),]")
_CONDITION = re.compile(rb'#[ \t]*(?:el)?if[^\n"]*"[^\n]*')
_QUOTED = re.compile(rb'"([^"\n\0]+)"')
_SPLICE = re.compile(rb"\\\r?\n")
_CLOCK = re.compile(rb"__(?:DATE|TIME|TIMESTAMP)__")
_COMMENT_OR_LITERAL = re.compile(
    rb"""//[^\n]*|/\*[\s\S]*?\*/|R"([^()\\\s]{0,16})\([\s\S]*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
)
_WRAPPER = re.compile(rb"#[ \t]*define[ \t]+\w+\(([^)\n]*)\)[^\n]*?__has_include(?:_next)?\s*\(\s*(\w+)\s*\)")

QUOTED, ANGLED, EVERY = '"', "<", "*"


@dataclass(frozen=True)
class Directives:
    """What a text includes, and what it probes for.

    Attributes
    ----------
    names:
        Pairs of a form and a name. The form is `QUOTED`, `ANGLED` or `EVERY`: ``#include_next`` may mean every file of
        that name.
    macros:
        The macros in include directives.
    computed_probe:
        Whether ``__has_include`` is applied to a macro.
    clock:
        Whether it mentions ``__DATE__``, ``__TIME__`` or ``__TIMESTAMP__``.
    """

    names: tuple[tuple[str, str], ...]
    macros: tuple[bytes, ...]
    computed_probe: bool
    clock: bool

    @classmethod
    def of(cls, text: bytes) -> Directives:
        """Read the directives of *text*, a source or a header."""
        if b"\\" in text:
            text = _SPLICE.sub(b"", text)
        if b"%:" in text:
            text = text.replace(b"%:", b"#")
        names: dict[tuple[str, str], None] = {}
        computed = False
        for found in _includes(text):
            computed |= not _add(names, *found.groups()[:3])
        if b"__has_include" in text or b"HAS_INCLUDE" in text.upper():
            text = _DEFINED_HAS_INCLUDE.sub(b"", text)
            for found in _HAS_INCLUDE.finditer(text):
                computed |= not _add(names, *found.groups())
            for name in _ARGUMENT.findall(text):
                _add(names, None, b"", name)
            for condition in _CONDITION.findall(text):
                for name in _QUOTED.findall(condition):
                    _add(names, None, name, b"")
        macros: tuple[bytes, ...] = ()
        computed_probe = False
        if computed:  # or only a comment looks like that
            text = _COMMENT_OR_LITERAL.sub(_blank_comment, text)
            macros = tuple(found[4] for found in _includes(text) if found[4])
            text = _WRAPPER.sub(_blank_wrapper, text)
            computed_probe = any(not any(found.groups()[1:]) for found in _HAS_INCLUDE.finditer(text))
        return cls(tuple(names), macros, computed_probe, _CLOCK.search(text) is not None)


def _includes(text: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the include directives: those at the start of a line, or after a comment that ends there. Comments are full
    of examples with includes."""
    for found in _INCLUDE.finditer(text):
        before = text[text.rfind(b"\n", 0, found.start()) + 1 : found.start()].rstrip()
        if not before or before.endswith(b"*/"):
            yield found


def _add(names: dict[tuple[str, str], None], following: bytes | None, quoted: bytes, angled: bytes) -> bool:
    name = quoted or angled
    if name:
        names[EVERY if following else QUOTED if quoted else ANGLED, os.fsdecode(name)] = None
    return bool(name)


def _blank_comment(found: re.Match[bytes]) -> bytes:
    return b" " if found[0].startswith(b"/") else found[0]


def _blank_wrapper(found: re.Match[bytes]) -> bytes:
    """A function-like macro may pass on its own parameter."""
    parameters = [parameter.strip() for parameter in found[1].split(b",")]
    return b"" if found[2] in parameters else found[0]


@dataclass
class Found:
    """The result of a scan.

    Attributes
    ----------
    headers:
        The headers by path, in order of discovery.
    absent:
        The names that were not found, by the directory in which they were looked up (``""``: the working directory).
    computed_includes:
        The files with an include through a macro that is not plain text.
    computed_probes, clocks:
        The files whose `Directives` have a computed probe, or a clock.
    """

    headers: dict[str, Header] = field(default_factory=dict)
    absent: dict[str, dict[str, None]] = field(default_factory=dict)
    computed_includes: list[str] = field(default_factory=list)
    computed_probes: list[str] = field(default_factory=list)
    clocks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SourceText:
    """A source, and where its includes are looked up.

    Attributes
    ----------
    code:
        Its text.
    folder:
        Where its own quoted includes are looked up first; ``""`` is the working directory, ``None`` no directory.
    search:
        The include paths, in order.
    preincluded:
        The names of headers included before its first line.
    defined:
        The macros that options define, and their values.
    """

    code: bytes
    folder: str | None
    search: tuple[str, ...]
    preincluded: tuple[str, ...] = ()
    defined: tuple[tuple[str, str], ...] = ()

    def scan(self, traced: Iterable[str] = ()) -> Found:
        """Find the headers; *traced* are paths that NVRTC is known to read, whatever the text says."""
        return _Scan(self).run(tuple(traced))


class _Scan:
    def __init__(self, source: SourceText):
        self.source = source
        self.found = Found()
        self._folders = tuple(dict.fromkeys(source.search))
        self._pending: list[tuple[str, Directives]] = []
        self._looked_up: set[tuple[str, str, str | None]] = set()
        self._is_file: dict[str, bool] = {}
        self._followed: set[tuple[str, str]] = set()
        self._real_folders: dict[str, str] = {}
        self._macros: dict[tuple[str, bytes], str | None] = {}

    def run(self, traced: tuple[str, ...]) -> Found:
        source = self.source
        self._take("", Directives.of(source.code), source.folder)
        for name in source.preincluded:
            self._look_up(EVERY, name, source.folder)
        self._follow()
        while self._macros and self._follow_macros():
            pass
        for path in traced:
            if path not in self.found.headers:
                self._take_traced(path)
        self._follow()
        return self.found

    def _follow(self) -> None:
        while self._pending:
            path, directives = self._pending.pop()
            self._take(path, directives, os.path.dirname(path))

    def _take(self, path: str, directives: Directives, folder: str | None) -> None:
        if directives.computed_probe:
            self.found.computed_probes.append(path)
        if directives.clock:
            self.found.clocks.append(path)
        for macro in directives.macros:
            self._macros[path, macro] = folder
        for form, name in directives.names:
            self._look_up(form, name, folder if form != ANGLED else None)

    def _follow_macros(self) -> bool:
        """Look up what macros in include directives stand for; return whether that led to further headers."""
        before = len(self.found.headers)
        macros = Macros([self.source.code, *map(_text, self.found.headers)], self.source.defined)
        unknown: dict[str, None] = {}
        for (path, macro), folder in self._macros.items():
            try:
                names = macros.includes(macro) if macro.decode(errors="replace").isidentifier() else None
            except UnknownTextError:
                names = None
            if names is None:
                unknown[path] = None
            for name in sorted(names or ()):
                text = os.fsdecode(name[1:-1])
                self._look_up(QUOTED, text, folder) if name[:1] == b'"' else self._look_up(ANGLED, text, None)
        self.found.computed_includes = list(unknown)
        self._follow()
        return len(self.found.headers) > before

    def _look_up(self, form: str, name: str, folder: str | None) -> None:
        if (form, name, folder) in self._looked_up:
            return
        self._looked_up.add((form, name, folder))
        for base in self._folders if folder is None else (folder, *self._folders):
            path = os.path.join(base, name)
            if self._exists(path):
                self._read(path)
                if form != EVERY:
                    return
            else:
                self.found.absent.setdefault(base, {})[name] = None

    def _exists(self, path: str) -> bool:
        known = self._is_file.get(path)
        if known is None:
            known = self._is_file[path] = file_state(path) is not None
        return known

    def _read(self, path: str) -> None:
        if path not in self.found.headers:
            self.found.headers[path], directives = read_header(path)
            # Headers that include each other as "../b/b.h" and "../a/a.h" get longer and longer spellings.
            folder, name = os.path.split(path)
            file = self._real_folder(folder), name
            if file not in self._followed:
                self._followed.add(file)
                self._pending.append((path, directives))

    def _real_folder(self, folder: str) -> str:
        known = self._real_folders.get(folder)
        if known is None:
            known = self._real_folders[folder] = os.path.realpath(folder)
        return known

    def _take_traced(self, path: str) -> None:
        """Read *path*, which a macro named relative to any directory above it, and look for files that would take its
        place."""
        computing = (os.path.dirname(file) for file in self.found.computed_includes if file)
        own = () if self.source.folder is None else (self.source.folder,)
        bases = tuple(dict.fromkeys((*own, *computing, *self._folders)))
        self._read(path)
        for base in bases:
            if (below := _below(base, path)) is not None:
                for other in bases:
                    self._look_up_traced(other, below)

    def _look_up_traced(self, base: str, name: str) -> None:
        path = os.path.join(base, name)
        if self._exists(path):
            self._read(path)
        else:
            self.found.absent.setdefault(base, {})[name] = None


def _text(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError:  # it was removed meanwhile, which its state will show
        return b""
    return _SPLICE.sub(b"", text) if b"\\" in text else text


def _below(base: str, path: str) -> str | None:
    if not base:
        return None if os.path.isabs(path) else path
    start = os.path.join(base, "")
    return path[len(start) :] if path.startswith(start) else None


# The headers read in this process, most of them the toolkit's, and when each was read.
_read_before: dict[str, tuple[int, Header, Directives]] = {}
_MOST_REMEMBERED = 20_000


def read_header(path: str) -> tuple[Header, Directives]:
    """Return the header at *path* and its directives, read now unless this process read it before and it is unchanged.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    known = _read_before.get(path)
    if known is not None and known[1].state == file_state(path) and is_settled(known[1].state, known[0]):
        return known[1], known[2]
    now = time.time_ns()
    with open(path, "rb") as file:
        state = state_of(os.fstat(file.fileno()))  # before reading, so that a change during it shows later
        content = file.read()
    header = Header(path, state, hashlib.sha256(content).digest())
    same = known is not None and known[1].sha256 == header.sha256
    directives = known[2] if known is not None and same else Directives.of(content)
    if len(_read_before) >= _MOST_REMEMBERED:
        _read_before.clear()
    _read_before[path] = now, header, directives
    return header, directives
