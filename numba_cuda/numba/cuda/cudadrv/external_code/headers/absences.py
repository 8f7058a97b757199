# SPDX-License-Identifier: BSD-2-Clause
"""Where no file may appear that a compile looked for and did not find, and the directories whose states show that."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import NamedTuple

from .file_state import FileState, all_unchanged, is_settled, state_in

_FEW = 16  # questions about single files, which cost less than to list a directory


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
    found = names.split("\0")
    if len(found) <= _FEW:
        return found
    try:
        listed = {"", os.curdir, os.pardir, *map(str.casefold, os.listdir(folder))}
    except OSError:  # what is in it may be read all the same
        return found
    if names.isascii() and "~" not in names and listed.isdisjoint(names.casefold().split("\0")):
        return []
    return [name for name in found if name.casefold() in listed or not name.isascii() or "~" in name]
