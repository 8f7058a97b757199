# SPDX-License-Identifier: BSD-2-Clause
"""The state of a file: what shows that it is unchanged without reading it."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

# Size, time of modification, time of status change (nanoseconds) and inode. A file whose state is unchanged is taken to
# be unchanged, unless it was modified so shortly before it was read that a later change could show the same times.
FileState = tuple[int, int, int, int]

_GONE: FileState = (-1, -1, -1, -1)

# Larger than the granularity of any file system's times, and than the usual clock skew of a network file system.
_TIME_MARGIN = 2_000_000_000


def state_of(status: os.stat_result) -> FileState:
    """Return the state that *status* shows."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def file_state(path: str) -> FileState | None:
    """Return the state of the regular file at *path*, ``None`` if there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return state_of(status) if stat.S_ISREG(status.st_mode) else None


def path_state(path: str) -> FileState:
    """Return the state of the file or directory at *path*, a state of its own if there is none."""
    try:
        return state_of(os.stat(path))
    except (OSError, ValueError):
        return _GONE


def all_unchanged(paths: Sequence[str], states: Sequence[FileState]) -> bool:
    """Whether the files and directories at *paths* have the same *states* as before."""
    return all(map(_is_unchanged, paths, states))


def _is_unchanged(path: str, state: FileState) -> bool:
    return path_state(path) == state


def is_settled(state: FileState, at: int) -> bool:
    """Whether a change after the time *at* (nanoseconds) would show in a *state* seen after it."""
    return max(state[1], state[2]) < at - _TIME_MARGIN


class Header(NamedTuple):
    """A header as it was read: the state that its file had, and the SHA-256 of its content."""

    path: str
    state: FileState
    sha256: bytes
