# SPDX-License-Identifier: BSD-2-Clause
"""Note what NVRTC looks for and opens: each path, whether a file is there, and its state.

In the child process, NVRTC calls the functions here in place of the C library's that take a path. So which files a
compile depends on is known, whatever its texts say. Whoever gets the report reads the files, whose states show that
they are what NVRTC has read; the text of one that was written too shortly before is in the report. It runs in a child
process, as `nvrtc_child`, so it imports nothing of this package.
"""

from __future__ import annotations

import collections
import ctypes
import errno
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    State = tuple[int, int, int, int]  # as in `headers.file_state`
    Opened = tuple[State, bytes | None]  # with the text, where the state does not show which it is

NVRTC = "NVRTC"
_NOT_NOTED = "what it looked for could not be noted"
_LARGEST = 256 << 20  # bytes of a header
_MARGIN = 2_000_000_000  # nanoseconds, as in `headers.file_state`
_KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
_NO_WAIT = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # for a writer, or for what a file of the system will have
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
# The characters of names that a file system knows in no other form, but in either case.
_USUAL = b"+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
# Others with which it could look for files.
_UNKNOWN = frozenset(
    (
        *("__fxstatat", "__fxstatat64", "__open_2", "__open64_2", "__openat_2", "__openat64_2", "faccessat", "freopen"),
        *("freopen64", "fstatat", "fstatat64", "fts_open", "fts64_open", "ftw", "ftw64", "glob", "glob64", "nftw"),
        *("nftw64", "open_by_handle_at", "openat", "openat64", "scandir", "scandir64", "statx"),
    )
)


class _RefusedError(Exception):
    """NVRTC may not read a file, for this reason."""


class Lookups:
    """What the NVRTC in *library* looks up, from one `begin` to the next."""

    def __init__(self, library: ctypes.CDLL, find: Callable[[ctypes.CDLL], dict[str, list[int]]], replace: Any):
        slots = find(library)
        if unknown := sorted(_UNKNOWN.intersection(slots)):
            raise OSError(f"NVRTC looks for files with {unknown[0]}")
        if not {"fopen", "fopen64"} & slots.keys() or not any(name.endswith(("stat", "stat64")) for name in slots):
            raise OSError("NVRTC does not look for files with the C library")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.fdopen.argtypes, self._libc.fdopen.restype = (_INT, _TEXT), _ADDRESS
        # What was opened, by path: ``None`` if there was no regular file.
        self._opened: dict[bytes, Opened | None] = {}
        self._seen: dict[bytes, None] = {}  # paths that had a status
        # The names that had none, by what is before them in the path. NVRTC asks for the status before it opens a file,
        # which is not there for it then.
        self._missing: dict[bytes, dict[bytes, None]] = collections.defaultdict(dict)
        self._listed: dict[bytes, frozenset[bytes]] = {}  # by folder of packages, all names in it, in lower case
        self._others: set[bytes] = set()  # files that are not headers, also those that NVRTC has written
        self._callbacks = {name: self._replacement(name) for name in _FUNCTIONS if name in slots}
        addresses = {name: ctypes.cast(call, ctypes.c_void_p).value or 0 for name, call in self._callbacks.items()}
        self.begin()
        replace(slots, addresses)

    def begin(self, packages: Iterable[str] = (), others: Iterable[str] = ()) -> None:
        """Note what is looked up from now on; *packages* are the folders of headers that are not the user's own, and
        *others* files that are not headers."""
        for noted in (self._opened, self._seen, self._missing, self._listed, self._others):
            noted.clear()
        self._others.update(map(os.fsencode, others))
        for folder in map(os.fsencode, packages):
            try:
                names = b"\0".join((b".", b"..", b"", *os.listdir(folder)))
            except OSError:  # each name is asked for
                continue
            if names.isascii():  # no other letter is the same as one of these in a file system that knows no cases
                self._listed[folder] = frozenset(names.lower().split(b"\0"))
        self._folder, self._doubt = b"", ""
        self._settled = time.time_ns() - _MARGIN  # a change from now on shows in a state that is older than this
        self.refused = ""  # what NVRTC was not allowed to read, and why
        try:
            self._folder = os.getcwdb()
        except OSError:
            self._doubt = "its working directory has been removed"

    def _replacement(self, name: str) -> Any:
        result, arguments, place = _FUNCTIONS[name]
        function = ctypes.CFUNCTYPE(result, *arguments, use_errno=True)
        real = function((name, self._libc))
        seen, missing, listed, others = self._seen, self._missing, self._listed, self._others
        set_errno, not_there = ctypes.set_errno, errno.ENOENT
        fdopen, is_file = self._libc.fdopen, name.startswith("fopen")

        def look(*given: Any) -> Any:
            try:
                seen[given[place]] = None
            except Exception:
                self._doubt = _NOT_NOTED
            return real(*given)

        def status(*given: Any) -> int:
            try:
                folder, root, name = given[place].rpartition(b"/")
                absent = missing[folder or root]
                if name not in absent:
                    may_be = folder not in listed or name.lower() in listed[folder] or name.translate(None, _USUAL)
                    if may_be and real(*given) == 0:
                        seen[given[place]] = None
                        return 0
                    absent[name] = None
                set_errno(not_there)
                return -1
            except Exception:
                self._doubt = _NOT_NOTED
                return real(*given)

        def open_(path: bytes, mode: Any, *more: int) -> Any:
            try:
                folder, root, name = path.rpartition(b"/")
                if name in missing[folder or root] and mode == b"r":
                    set_errno(not_there)
                    return None
                if path in others:
                    return real(path, mode, *more)
                writes = (b"r" not in mode or b"+" in mode) if is_file else mode & os.O_ACCMODE != os.O_RDONLY
                if writes:
                    others.add(path)
                    missing[folder or root].pop(name, None)
                    return real(path, mode, *more)
                descriptor = self._open(path, 0 if is_file else mode)
                return fdopen(descriptor, mode) if is_file else descriptor
            except OSError as error:
                set_errno(error.errno or not_there)
                return None if is_file else -1
            except Exception as error:
                self._doubt = self._doubt or f"{path!r}: {error}"
                return real(path, mode, *more)

        if name.removesuffix("64") in ("fopen", "open"):
            return function(open_)
        return function(status if "stat" in name else look)

    def _open(self, path: bytes, flags: int) -> int:
        """Open the file at *path* for NVRTC, which waits for nothing there, and note it. Raise `OSError` if there is
        none, or it may not be read."""
        try:
            descriptor = os.open(path, flags | _NO_WAIT)
        except OSError:
            self._note(path, None)
            raise
        try:
            status = os.fstat(descriptor)
            before = self._opened.get(path)
            if before is None or before[0] != _state(status):
                self._note(path, _opened(descriptor, status, self._settled))
        except BaseException as error:
            os.close(descriptor)
            if not isinstance(error, _RefusedError):
                raise
            self.refused = self.refused or f"{os.fsdecode(os.path.join(self._folder, path))}: {error}"
            raise FileNotFoundError(errno.ENOENT, self.refused) from error
        return descriptor

    def _note(self, path: bytes, opened: Opened | None) -> None:
        before = self._opened.setdefault(path, opened)
        if (before and before[0]) != (opened and opened[0]):
            self._doubt = self._doubt or f"{os.fsdecode(path)}: it changed while it was compiled"

    def unite(self, report: Mapping[str, Any]) -> None:
        """Add what another compile looked up, whose result this one uses: its `report`."""
        if report["unknown"]:
            self._doubt = self._doubt or report["unknown"][1]
        for path, state, _ in report["headers"]:
            self._note(os.fsencode(path), (tuple(state), None))
        for folder, names in report["absent"].items():
            self._missing[os.fsencode(folder or "/")].update(dict.fromkeys(os.fsencode(names).split(b"\0")))

    def report(self, name: str) -> tuple[dict[str, Any], list[bytes]]:
        """Return what was looked up for the source called *name*: ``headers`` (path, state, and the number of its text
        or ``None``, for each file that is there), ``absent`` (by folder, the names without a regular file, joined by
        zeros), and ``unknown``: a file, and why what was read is not known, or ``None``. Return the texts too."""
        source = os.path.basename(os.fsencode(name))
        looked_up = (*self._missing.values(), map(os.path.basename, (*self._seen, *self._opened)))
        if not any(source in names for names in looked_up):
            self._doubt = self._doubt or "it did not look for the source, as far as its calls show"
        for path in self._seen.keys() - self._opened.keys() - self._others - {b""}:
            self._look_again(path)
        headers: dict[str, tuple[State, int | None]] = {}
        texts: list[bytes] = []
        for path, opened in self._opened.items():
            if opened is None:
                continue
            state, text = opened
            headers[os.fsdecode(os.path.join(self._folder, path))] = state, None if text is None else len(texts)
            texts += [] if text is None else [text]
        return {
            "headers": [(path, *opened) for path, opened in headers.items()],
            "absent": self._absent(),
            "unknown": (NVRTC, self._doubt) if self._doubt else None,
        }, texts

    def _absent(self) -> dict[str, str]:
        """Return the names of what is absent by the whole paths of the folders, of which one may be named in two
        ways."""
        found: dict[bytes, dict[bytes, None]] = collections.defaultdict(dict)
        for folder, names in self._missing.items():
            found[os.path.join(self._folder, folder).removesuffix(b"/")].update(names)
        for path, opened in self._opened.items():
            if opened is None:
                folder, _, name = os.path.join(self._folder, path).rpartition(b"/")
                found[folder][name] = None
        for path in (*self._others, b""):
            folder, _, name = os.path.join(self._folder, path).rpartition(b"/")
            found[folder].pop(name, None)
        texts: dict[tuple[bytes, ...], str] = {}  # many folders are searched for the same names
        absent = {}
        for folder, names in found.items():
            if given := tuple(names):
                if given not in texts:
                    texts[given] = os.fsdecode(b"\0".join(sorted(given)))
                absent[os.fsdecode(folder)] = texts[given]
        return absent

    def _look_again(self, path: bytes) -> None:
        """Note what is at a *path* that NVRTC did not open: files that it knows by another path, for example."""
        try:
            if not stat.S_ISDIR(os.stat(path).st_mode):
                os.close(self._open(path, os.O_RDONLY))
        except OSError:
            self._note(path, None)


def _opened(descriptor: int, status: os.stat_result, settled: int) -> Opened | None:
    """Return what is to be noted of a file that was just opened, and stays at its beginning: with its text, unless it
    is older than *settled*. Raise `_RefusedError` if it may not be read: a device, for example, may have no end."""
    if not stat.S_ISREG(status.st_mode):
        if kind := _KINDS.get(stat.S_IFMT(status.st_mode)):
            raise _RefusedError(f"it is {kind}, expected a regular file")
        return None
    if status.st_size > _LARGEST:
        raise _RefusedError(f"it has more than {_LARGEST} bytes")
    state = _state(status)
    if state[1] < settled and state[2] < settled:
        return state, None
    parts, size = [], 0
    try:
        while size <= _LARGEST and (part := os.read(descriptor, (status.st_size or 1 << 16) + 1)):
            parts.append(part)
            size += len(part)
        os.lseek(descriptor, 0, os.SEEK_SET)
    except OSError as error:  # a file of the system, with what may come later
        raise _RefusedError(f"it cannot be read: {error.strerror}") from error
    if size > _LARGEST:
        raise _RefusedError(f"it has more than {_LARGEST} bytes")
    return state, b"".join(parts)


def _state(status: os.stat_result) -> State:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
