# SPDX-License-Identifier: BSD-2-Clause
"""Note what NVRTC looks for and reads: each path, whether a file is there, and its content as NVRTC gets it.

In the child process, NVRTC calls the functions here in place of the C library's that take a path. So which files a
compile depends on is known, whatever its texts say. Texts are searched for ``__TIME__`` and the like, but not the
toolkit's, which have none. It runs in a child process, as `nvrtc_child`, so it imports nothing of this package.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, NamedTuple

    State = tuple[int, int, int, int]  # as in `headers.file_state`

    class Text(NamedTuple):
        state: State
        sha256: str
        has_clock: bool  # whether it is the user's own and may use the time

else:
    import collections

    Text = collections.namedtuple("Text", "state sha256 has_clock")

NVRTC = "NVRTC"
_NO_MEMORY = "there was no memory left to note what it looked for"
_LARGEST = 256 << 20  # bytes of a header
_MARGIN = 2_000_000_000  # nanoseconds, as in `headers.file_state`
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_INT, _SIZE, _TEXT, _ADDRESS = ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p
# The result and the arguments of the functions that take a path, and the number of that argument.
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...], int]] = {
    **dict.fromkeys(("fopen", "fopen64"), (_ADDRESS, (_TEXT, _TEXT), 0)),
    **dict.fromkeys(("open", "open64"), (_INT, (_TEXT, _INT, _INT), 0)),
    **dict.fromkeys(("__xstat", "__xstat64", "__lxstat", "__lxstat64"), (_INT, (_INT, _TEXT, _ADDRESS), 1)),
    **dict.fromkeys(("stat", "stat64", "lstat", "lstat64"), (_INT, (_TEXT, _ADDRESS), 0)),
    "access": (_INT, (_TEXT, _INT), 0),
    "opendir": (_ADDRESS, (_TEXT,), 0),
    "readlink": (ctypes.c_ssize_t, (_TEXT, _ADDRESS, _SIZE), 0),
    "realpath": (_ADDRESS, (_TEXT, _ADDRESS), 0),
}
# Others with which it could look for files.
_UNKNOWN = frozenset(
    (
        *("__fxstatat", "__fxstatat64", "__open_2", "__open64_2", "__openat_2", "__openat64_2", "faccessat", "freopen"),
        *("freopen64", "fstatat", "fstatat64", "fts_open", "fts64_open", "ftw", "ftw64", "glob", "glob64", "nftw"),
        *("nftw64", "open_by_handle_at", "openat", "openat64", "scandir", "scandir64", "statx"),
    )
)

_SPLICE = re.compile(rb"(?:\\|\?\?/)[ \t]*\r?\n")
# What stands for the time, and pieces that macros may paste together to that: patterns, each by a part that a text must
# have to be searched for it.
_CLOCK = {
    b"__DAT": rb"__DAT(?:E_{0,2})?(?![\w$])",
    b"__TIM": rb"__TIM(?:E_{0,2}|EST\w*)?(?![\w$])",
    b"E__": rb"(?<![\w$])(?:_?DAT|AT|T|_?TIM|IM|M)?E__(?![\w$])",
    b"P__": rb"(?<![\w$])(?:\w*STAM|TAM|AM|M)?P__(?![\w$])",
}


class Lookups:
    """What the NVRTC in *library* looks up, from one `begin` to the next."""

    def __init__(self, library: ctypes.CDLL, find: Callable[[ctypes.CDLL], dict[str, list[int]]], replace: Any):
        slots = find(library)
        if unknown := sorted(_UNKNOWN.intersection(slots)):
            raise OSError(f"NVRTC looks for files with {unknown[0]}")
        if not {"fopen", "fopen64"} & slots.keys() or not any(name.endswith(("stat", "stat64")) for name in slots):
            raise OSError("NVRTC does not look for files with the C library")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.fileno.argtypes = (ctypes.c_void_p,)
        self._known: dict[bytes, Text] = {}  # the texts read before, which are unchanged while their states are
        self._callbacks = {name: self._replacement(name) for name in _FUNCTIONS if name in slots}
        addresses = {name: ctypes.cast(call, ctypes.c_void_p).value or 0 for name, call in self._callbacks.items()}
        self.begin()
        replace(slots, addresses)

    def begin(self, packages: Sequence[str] = (), others: Iterable[str] = ()) -> None:
        """Note what is looked up from now on; *packages* are the folders of headers that are not the user's own, and
        *others* files that are not headers."""
        # By path: what was read, ``False`` if there was no regular file, ``None`` if it was only looked for.
        self._noted: dict[bytes, Text | bool | None] = {}
        # The paths that had no status. NVRTC asks for it before it opens a file, which then is not there for it either.
        self._missing: dict[bytes, None] = {}
        self._others = set(map(os.fsencode, others))  # also the files that NVRTC has written
        self._packages = tuple(os.path.join(os.fsencode(each), b"") for each in packages)
        self._folder, self._doubt = b"", ""
        self.refused = ""  # what NVRTC was not allowed to read, and why
        try:
            self._folder = os.getcwdb()
        except OSError:
            self._doubt = "its working directory has been removed"

    def _replacement(self, name: str) -> Any:
        result, arguments, place = _FUNCTIONS[name]
        function = ctypes.CFUNCTYPE(result, *arguments, use_errno=True)
        real = function((name, self._libc))
        is_status, opens = "stat" in name, name.removesuffix("64") in ("fopen", "open")
        failed, descriptor_of = (None, self._libc.fileno) if name.startswith("fopen") else (-1, int)

        def look(*given: Any) -> Any:
            result = real(*given)
            try:
                if result == -1 and is_status:
                    self._missing[given[place]] = None
                else:
                    self._noted.setdefault(given[place])
            except MemoryError:
                self._doubt = _NO_MEMORY
            return result

        def open_(path: bytes, mode: bytes | int, *more: int) -> Any:
            if path in self._missing and mode == b"r":
                ctypes.set_errno(errno.ENOENT)
                return failed
            if path in self._others:
                return real(path, mode, *more)
            if (b"r" not in mode or b"+" in mode) if isinstance(mode, bytes) else mode & os.O_ACCMODE != os.O_RDONLY:
                self._others.add(path)
                self._missing.pop(path, None)
                return real(path, mode, *more)
            try:
                if self._is_refused(path):
                    ctypes.set_errno(errno.ENOENT)
                    return failed
                opened = real(path, mode, *more)
                self._note_opened(path, None if opened == failed else descriptor_of(opened))
            except Exception as error:
                self._doubt = self._doubt or f"{os.fsdecode(path)}: {error}"
                opened = real(path, mode, *more)
            return opened

        return function(open_ if opens else look)

    def _is_refused(self, path: bytes) -> bool:
        """Whether nothing may be read there: NVRTC would wait for a pipe, and a device may have no end."""
        try:
            status = os.stat(path)
        except OSError:
            return False
        why = ""
        if kind := _KINDS.get(stat.S_IFMT(status.st_mode), ""):
            why = f"it is {kind}, expected a regular file"
        elif stat.S_ISREG(status.st_mode) and status.st_size > _LARGEST:
            why = f"it has more than {_LARGEST} bytes"
        self.refused = self.refused or (why and f"{os.fsdecode(os.path.join(self._folder, path))}: {why}")
        return bool(why)

    def _note_opened(self, path: bytes, descriptor: int | None) -> None:
        status = None if descriptor is None else os.fstat(descriptor)
        if descriptor is None or status is None or not stat.S_ISREG(status.st_mode):
            self._note(path, False)
        elif not isinstance(before := self._noted.get(path), Text) or before.state != _state(status):
            self._note(path, self._text(path, descriptor, status))

    def _note(self, path: bytes, noted: Text | bool | None) -> None:
        before = self._noted.setdefault(path, noted)
        if before is None:
            self._noted[path] = noted
        elif noted is not None and noted != before:
            self._doubt = self._doubt or f"{os.fsdecode(path)}: it changed while it was compiled"

    def _text(self, path: bytes, descriptor: int, status: os.stat_result) -> Text:
        """Return the text of an open file, whose offset stays as it is."""
        state, now = _state(status), time.time_ns()
        whole = os.path.join(self._folder, path)
        known = self._known.get(whole)
        if known is not None and known.state == state:
            return known
        content = _read(descriptor, status.st_size)
        is_own = not whole.startswith(self._packages)
        text = Text(state, hashlib.sha256(content).hexdigest(), is_own and _has_clock(content))
        if max(state[1], state[2]) < now - _MARGIN:  # else a later change may show the same state
            self._known[whole] = text
        return text

    def record(self) -> list[tuple[str, State | bool | None]]:
        """Return what was looked up as JSON values, for `unite` in a process that has read the same files."""
        return [
            (os.fsdecode(os.path.join(self._folder, path)), noted.state if isinstance(noted, Text) else noted)
            for path, noted in self._all().items()
        ]

    def _all(self) -> dict[bytes, Text | bool | None]:
        """Return what is known of each path but those of other files."""
        found: dict[bytes, Text | bool | None] = dict.fromkeys(self._missing, False)
        for path, noted in self._noted.items():
            if noted is not None or path not in found:
                found[path] = noted
        return {path: each for path, each in found.items() if path and path not in self._others}

    def unite(self, record: Iterable[tuple[str, Sequence[int] | bool | None]]) -> None:
        """Add what another compile looked up, whose result this one uses."""
        for name, noted in record:
            path = os.fsencode(name)
            if noted is None or isinstance(noted, bool):
                self._note(path, noted)
                continue
            text = self._known.get(path)
            if text is None or text.state != tuple(noted):
                with open(path, "rb") as file:
                    text = self._text(path, file.fileno(), os.fstat(file.fileno()))
            if text.state != tuple(noted):
                self._doubt = self._doubt or f"{name}: it changed after it was compiled"
            self._note(path, text)

    def report(self, name: str, code: bytes, options: Iterable[str]) -> dict[str, Any]:
        """Return what was looked up for the source *code* called *name*: ``headers`` (path, state and SHA-256 of each
        file that is there), ``absent`` (by folder, the names without a regular file), and ``unknown``: a file, and why
        the same files may compile to something else; or ``None``."""
        where, why = (NVRTC, self._doubt) if self._doubt else ("", "")
        source = os.fsencode(name)
        looked_up = self._all()
        if not any(path == source or path.endswith(b"/" + source) for path in looked_up):
            where, why = NVRTC, "it did not look for the source, as far as its calls show"
        headers: dict[str, Text] = {}
        absent: dict[bytes, dict[bytes, None]] = {}
        for path, noted in looked_up.items():
            if noted is None and (noted := self._look_again(path)) is None:
                continue
            if isinstance(noted, Text):
                headers[os.fsdecode(os.path.join(self._folder, path))] = noted
            else:
                end = path.rfind(b"/") + 1
                absent.setdefault(path[:end], {})[path[end:]] = None
        given = b"\n".join((code, *(os.fsencode(each) for each in options)))
        timed = ["the source"] if _has_clock(given) else []
        timed += [path for path, text in headers.items() if text.has_clock]
        if timed and not why:
            where, why = timed[0], "it uses the time of the compile"
        return {
            "headers": [(path, text.state, text.sha256) for path, text in headers.items()],
            "absent": self._whole(absent),
            "unknown": (where, why) if why else None,
        }

    def _whole(self, absent: Mapping[bytes, Iterable[bytes]]) -> dict[str, list[str]]:
        """Return *absent* by the whole paths of the folders, of which one may be named in two ways."""
        whole: dict[str, dict[str, None]] = {}
        for folder, names in absent.items():
            path = os.fsdecode(os.path.join(self._folder, folder)).removesuffix("/")
            whole.setdefault(path, {}).update(dict.fromkeys(map(os.fsdecode, names)))
        return {folder: list(names) for folder, names in whole.items()}

    def _look_again(self, path: bytes) -> Text | bool | None:
        """Return what is at a *path* that NVRTC only looked for: files that it knows by another path, for example."""
        try:
            status = os.stat(path)
        except OSError:
            return False
        if stat.S_ISDIR(status.st_mode) or self._is_refused(path):
            return None
        try:
            with open(path, "rb") as file:
                return self._text(path, file.fileno(), os.fstat(file.fileno()))
        except OSError as error:
            self._doubt = f"{os.fsdecode(path)}: {error}"
            return None


def _read(descriptor: int, size: int) -> bytes:
    """Return the content of an open file of *size* bytes, whose offset stays as it is."""
    parts, start = [], 0
    while part := os.pread(descriptor, max(size + 1 - start, 1 << 16), start):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _has_clock(text: bytes) -> bool:
    text = _SPLICE.sub(b"", text) if b"\\" in text or b"??/" in text else text
    return any(part in text and re.search(pattern, text) is not None for part, pattern in _CLOCK.items())


def _state(status: os.stat_result) -> State:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
