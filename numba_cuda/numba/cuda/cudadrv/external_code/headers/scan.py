# SPDX-License-Identifier: BSD-2-Clause
"""Find in the text of a CUDA C++ source which headers it includes.

More is found than a compile reads, never less; where the texts do not show what is included or probed for, the result
is marked as incomplete. Names are looked up where NVRTC looks. A quoted name is looked up in the directory of the file
that includes it (for the source itself, the directory of its name, or the working directory if it has none), then in
the include paths, like a name in angle brackets. Paths are spelled as in ``__FILE__``.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from numba_cuda_autolink.files import is_regular_file, read_with_status

from .file_state import FolderNames, Header, is_settled, listed_name, state_in, state_of
from .macros import Macros, UnknownTextError
from .preprocessor import ANGLED, EVERY, Definition, Directives


@dataclass
class Found:
    """The result of a scan."""

    headers: dict[str, Header] = field(default_factory=dict)  # by path
    # The names that were not found, by the directory in which they were looked up (``""``: the working directory).
    absent: dict[str, dict[str, None]] = field(default_factory=dict)
    # Directories with headers that were read under another spelling of their path, and the real paths of these.
    links: dict[str, str] = field(default_factory=dict)
    computed: list[str] = field(default_factory=list)  # the files with an include that only a compile can resolve
    # The file for which nobody can say what a compile reads, and why; ``None`` if that is known of all.
    unclear: tuple[str, str] | None = None
    has_path: bool = False  # whether the path of one of the user's files may get into the code


@dataclass(frozen=True)
class SourceText:
    """The text of a source, and where its includes are looked up."""

    code: bytes
    # Where its own quoted includes are looked up first; ``""`` is the working directory, ``None`` no directory.
    folder: str | None
    search: tuple[str, ...]  # the include paths, in order
    preincluded: tuple[str, ...] = ()  # the names of headers included before its first line
    defined: tuple[tuple[str, str], ...] = ()  # the macros that options define, and their values
    undefined: tuple[str, ...] = ()  # the macros that options undefine
    packages: tuple[str, ...] = ()  # the include paths of installed packages, whose paths are not the user's

    def scan(self, traced: Iterable[str] = ()) -> Found:
        """Find the headers; *traced* are paths that NVRTC is known to read, whatever the text says."""
        return Scan(self).run(traced)

    @functools.cached_property
    def directives(self) -> tuple[Directives, Directives]:
        """The directives of the options and of the code."""
        options = b"".join(b"#define %s %s\n" % (name.encode(), value.encode()) for name, value in self.defined)
        options += b"".join(b"#undef %s\n" % name.encode() for name in self.undefined)
        return Directives.of(options), Directives.of(self.code)

    @property
    def roots(self) -> tuple[str, ...]:
        """The directories in which names are looked up, without those of the files that include."""
        return tuple(dict.fromkeys(self.search if self.folder is None else (self.folder, *self.search)))


class Scan:
    """A scan of *source*, which may read the user's own files before all others."""

    def __init__(self, source: SourceText):
        self.source = source
        self.found = Found()
        self._folders = tuple(dict.fromkeys(source.search))
        self._texts: list[tuple[str, Directives, str | None]] = []  # taken, with the directory of each
        self._pending: list[tuple[str, Directives]] = []
        self._macros, self._probing = Macros(()), frozenset[bytes]()
        self._looked_up: set[tuple[str, str, str | None, bool]] = set()
        self._followed: dict[tuple[str, str], str] = {}
        self._names_in = functools.cache(FolderNames)
        self._is_file = functools.cache(is_regular_file)
        self._is_folder = functools.cache(os.path.isdir)
        self._real_path = functools.cache(self._real_path_of)

    def read_own(self) -> bool:
        """Read the user's own headers that the source includes. Return whether a compile is certain to read no other of
        the user's files, whatever the headers of packages say."""
        self._begin()
        while own := [each for each in self._pending if not self._is_packaged(each[0])]:
            self._pending = [each for each in self._pending if self._is_packaged(each[0])]
            for path, directives in own:
                self._take(path, directives, os.path.dirname(path))
        texts = [directives for _, directives, _ in self._texts]
        return not (
            self.found.unclear
            or any(directives.computed for directives in texts)
            # Headers of packages may include what a macro names.
            or any(_may_name_header(*each) for text in texts for each in text.definitions)
            or not set(self._folders).issubset(self.source.packages)
        )

    def run(self, traced: Iterable[str] = ()) -> Found:
        """Find the headers; *traced* are paths that NVRTC is known to read."""
        self._begin()
        self._follow()
        for path in traced:
            if path not in self.found.headers or not self.found.headers[path].is_read:
                self._take_traced(path)
        return self.found

    def _begin(self) -> None:
        """Take the source itself, unless that was done."""
        if self._texts:
            return
        source = self.source
        options, code = source.directives
        self._take("", options, None)
        self._take("", code, source.folder)
        for name in source.preincluded:
            self._look_up(EVERY, name, source.folder)

    def _take(self, path: str, directives: Directives, folder: str | None) -> None:
        self._texts.append((path, directives, folder))
        if directives.unclear or directives.clock:
            self._doubt(path, directives.unclear or "it uses the time of the compile")
        for form, name in directives.names:
            self._look_up(form, name, folder)
        for form, name in directives.probes:
            self._look_up(form, name, folder, is_read=False)

    def _doubt(self, path: str, why: str) -> None:
        self.found.unclear = self.found.unclear or (path or "the source", why)

    def _follow(self) -> None:
        """Take the headers that are pending, and those that they lead to, themselves or by macros."""
        while self._pending or self._follow_macros():
            path, directives = self._pending.pop()
            self._take(path, directives, os.path.dirname(path))

    def _follow_macros(self) -> bool:
        """Look up what macros stand for in directives; return whether that led to further headers."""
        macros = self._macros = Macros(each for _, directives, _ in self._texts for each in directives.definitions)
        self.found.computed = []
        for path, directives, folder in self._texts:
            for operand in directives.computed:
                try:
                    for name in sorted(macros.includes(operand)):
                        self._look_up(name[:1].decode(), os.fsdecode(name[1:-1]), folder)
                except UnknownTextError:
                    self.found.computed.append(path)
        try:
            probing = self._probing = macros.probing()
            for _, directives, folder in self._texts if probing else ():
                for probed in macros.probed(directives.text, probing):
                    self._look_up(EVERY, probed, folder, is_read=False)
        except UnknownTextError as error:
            self._doubt("", f"the macro {error} probes for a header that the text does not show")
        if not self._pending:
            own = (directives for path, directives, _ in self._texts if not self._is_packaged(path))
            self.found.has_path = any(macros.contain_path(directives.text) for directives in own)
        return bool(self._pending)

    def words_that_matter(self) -> frozenset[bytes]:
        """Return the words that a text has if it probes for headers through macros, or if it may put its path into the
        code."""
        return self._probing | self._macros.paths

    def _is_packaged(self, path: str) -> bool:
        return any(_below(folder, path) is not None for folder in self.source.packages)

    def _look_up(self, form: str, name: str, folder: str | None, *, is_read: bool = True) -> None:
        """Look for the header *name*, which a compile reads, or only probes for if it *is_read* not."""
        if form == ANGLED:
            folder = None
        if not self._looked_up.isdisjoint(((form, name, folder, True), (form, name, folder, is_read))):
            return
        self._looked_up.add((form, name, folder, is_read))
        first = listed_name(name)
        for base in self._folders if folder is None else (folder, *self._folders):
            if self._take_file(base, name, first, is_read=is_read) and form != EVERY:
                return

    def _take_file(self, base: str, name: str, first: str, *, is_read: bool = True) -> bool:
        """Take the header *name* below *base* if there is one, else note its absence; return whether there is."""
        if self._names_in(base).may_contain(first):
            path = os.path.join(base, name)
            # Toolkits have few folders in common. NVRTC would wait for what is neither a file nor a directory.
            if self._is_folder(os.path.dirname(path) or os.curdir) and self._is_file(path):
                if is_read:
                    self._read(path)
                elif path not in self.found.headers:
                    self.found.headers[path] = present_header(path)
                return True
        self.found.absent.setdefault(base, {})[name] = None
        return False

    def _read(self, path: str) -> None:
        if path in self.found.headers and self.found.headers[path].is_read:
            return
        self.found.headers[path], directives = read_header(path)
        # Headers that include each other as "../b/b.h" and "../a/a.h" get longer and longer spellings: each file is
        # followed once, and it is noted which other spellings lead to it.
        folder, name = os.path.split(path)
        real = self._real_path(folder)
        if (first := self._followed.setdefault((real, name), folder)) == folder:
            self._pending.append((path, directives))
        else:
            self.found.links.update({folder: real, first: real})

    def _real_path_of(self, folder: str) -> str:
        """Return the real path of *folder*: that of the folder above it is known from others."""
        above, name = os.path.split(folder)
        if not os.path.isabs(folder) or name in ("", os.curdir, os.pardir) or os.path.islink(folder):
            return os.path.realpath(folder)
        return os.path.join(self._real_path(above), name)

    def _take_traced(self, path: str) -> None:
        """Read *path*, which a macro named relative to any directory above it, and look for files that would take its
        place."""
        computing = (os.path.dirname(file) for file in self.found.computed if file)
        bases = tuple(dict.fromkeys((*self.source.roots, *computing)))
        self._read(path)
        for base in bases:
            if (name := _below(base, path)) is not None:
                for other in bases:
                    self._take_file(other, name, listed_name(name))
        self._follow()


def _may_name_header(name: bytes, rest: bytes) -> bool:
    return (b'"' in rest or b"<" in rest) and Definition.of(name, rest).body[:1] in (b'"', b"<")


def _below(base: str, path: str) -> str | None:
    if not base:
        return None if os.path.isabs(path) else path
    start = os.path.join(base, "")
    return path[len(start) :] if path.startswith(start) else None


def layout(roots: Sequence[str], packages: Sequence[str]) -> tuple[str, ...]:
    """Return how the directories *roots* lie within each other, the same wherever they are; those of installed
    *packages* as they are."""
    return tuple(
        root
        if root in packages
        else " ".join(
            f"{number}/{name}" for number, other in enumerate(roots) if (name := _below(other, root)) is not None
        )
        for root in roots
    )


def moved(path: str, roots: Sequence[str], packages: Sequence[str]) -> str:
    """Return *path* relative to the first of *roots* that it is in, or as it is if it is in none or in a package."""
    for number, root in enumerate(roots):
        if (name := _below(root, path)) is not None:
            return path if root in packages else f"<{number}>/{name}"
    return path


# The headers read in this process, most of them the toolkit's, and when each was read.
_read_before: dict[str, tuple[int, Header, Directives]] = {}
_MOST_REMEMBERED = 20_000
_LARGEST = 256 << 20  # bytes of a header; a larger one is an error before NVRTC reads it


def present_header(path: str) -> Header:
    """Return the header at *path*, which a compile only probes for. Raise `OSError` if it is not a regular file."""
    if not is_regular_file(path):
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return Header(path, state_of(path), "")


def read_header(path: str) -> tuple[Header, Directives]:
    """Return the header at *path* and its directives, read now unless this process read it before and it is unchanged.
    Raise `OSError` if it is not a regular file that can be read, or is too large."""
    known = _read_before.get(path)
    if known is not None and known[1].state == state_of(path) and is_settled(known[1].state, known[0]):
        return known[1:]
    now = time.time_ns()
    content, status = read_with_status(path, _LARGEST)  # from before reading, so that a change during it shows later
    header = Header(path, state_in(status), hashlib.sha256(content).hexdigest())
    directives = known[2] if known is not None and known[1].sha256 == header.sha256 else Directives.of(content)
    if len(_read_before) >= _MOST_REMEMBERED:
        _read_before.clear()
    _read_before[path] = now, header, directives
    return header, directives
