# SPDX-License-Identifier: BSD-2-Clause
"""The state of a file: what shows that it is unchanged without reading it. Where no file may appear that a compile
looked for and did not find, and the directories whose states show that."""

from __future__ import annotations

import functools
import os
import platform
import stat
import uuid
from collections.abc import Iterable, Mapping
from typing import NamedTuple

# Size, time of modification, time of status change (nanoseconds) and inode. A file whose state is unchanged is taken to
# be unchanged, unless it was modified so shortly before it was read that a later change could show the same times.
FileState = tuple[int, int, int, int]

_GONE: FileState = (-1, -1, -1, -1)

# Larger than the granularity of any file system's times, and than the usual clock skew of a network file system.
_TIME_MARGIN = 2_000_000_000

_FEW = 16  # questions about single files, which cost less than to list a directory


@functools.cache
def this_machine() -> str:
    """Return what tells this machine, since it was started, from others."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:  # it is not Linux
        return f"{platform.node()} {uuid.getnode()}"


def state_of(file: str | int) -> FileState:
    """Return the state of the file or directory at a path, or of an open one; a state of its own if there is none."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return _GONE
    return state_in(status)


def state_in(status: os.stat_result) -> FileState:
    """Return the state of a file with this *status*."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def all_unchanged(known: Iterable[tuple[str, FileState]]) -> bool:
    """Whether the files and directories at the paths in *known* have the same states as before."""
    return all(state_of(path) == state for path, state in known)


def is_settled(state: FileState, at: int) -> bool:
    """Whether a change after the time *at* (nanoseconds) would show in a *state* seen after it."""
    return max(state[1], state[2]) < at - _TIME_MARGIN


class Header(NamedTuple):
    """A header as it was read: the state that its file had, and the SHA-256 of its content as hexadecimal digits."""

    path: str
    state: FileState
    sha256: str


class Absences(NamedTuple):
    """In each folder, an absolute path (``""``: the root), there are no files with these *names*, which zeros join.

    A new one would change the state of one of the directories *watched*, the deepest that exist on the way to it; where
    a link leads to nothing, it would not.
    """

    names: tuple[tuple[str, str], ...]
    watched: tuple[tuple[str, FileState], ...]
    has_links: bool

    @classmethod
    def of(cls, names: Mapping[str, str]) -> Absences | None:
        """Look for *names*, by folder; return ``None`` if there is a file of one."""
        directories = _Directories()
        watched: dict[str, FileState] = {}
        for folder, inside in names.items():
            here = folder or "/"
            nearest = directories.nearest(here)
            watched[nearest] = directories.states[nearest]
            if nearest != here:
                continue
            for name in _may_be_in(here, inside):
                path = os.path.join(here, name)
                if os.path.lexists(path):
                    if os.path.isfile(path):
                        return None
                    directories.has_links |= os.path.islink(path)
        return cls(tuple(names.items()), tuple(watched.items()), directories.has_links)

    def is_settled(self, recorded: int) -> bool:
        """Whether any change after *recorded* shows in the states."""
        return not self.has_links and all(is_settled(state, recorded) for _, state in self.watched)

    def refreshed(self, recorded: int) -> Absences | None:
        """Look again if a file may have appeared since *recorded*; return ``None`` if one has."""
        if self.is_settled(recorded) and all_unchanged(self.watched):
            return self
        return Absences.of(dict(self.names))


class _Directories:
    """The *states* of directories, each from before a look at what is in it: what appears meanwhile shows later."""

    def __init__(self) -> None:
        self.states: dict[str, FileState] = {}
        self.has_links = False  # on the way to what is not there
        self._nearest: dict[str, str] = {}

    def nearest(self, folder: str) -> str:
        """Return the deepest directory that exists on the way to *folder*. Raise `OSError` if there is none."""
        if (found := self._nearest.get(folder)) is None:
            parent = os.path.dirname(folder)
            found = folder if parent == folder else self.nearest(parent)
            if found in (folder, parent):
                try:
                    status = os.stat(folder)
                except OSError:
                    if found == folder:
                        raise
                else:
                    if stat.S_ISDIR(status.st_mode):
                        self.states[folder], found = state_in(status), folder
                self.has_links |= found == parent and os.path.islink(folder)
            self._nearest[folder] = found
        return found


def _may_be_in(folder: str, names: str) -> list[str]:
    """Return those of *names* that may be in *folder*, which is listed if there are more than a few: some file systems
    know names in either case, or short forms of them."""
    if names.count("\0") < _FEW:
        return names.split("\0")
    try:
        listed = {"", os.curdir, os.pardir, *map(str.casefold, os.listdir(folder))}
    except OSError:  # what is in it may be read all the same
        return names.split("\0")
    if names.isascii() and "~" not in names and listed.isdisjoint(names.casefold().split("\0")):
        return []
    return [name for name in names.split("\0") if name.casefold() in listed or not name.isascii() or "~" in name]
