# SPDX-License-Identifier: BSD-2-Clause
"""What tells that a file is as it was, without reading it."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

# Size, modification, status change (nanoseconds) and inode: a file that has these unchanged is taken to be unchanged,
# unless it was modified so shortly before it was read that it could have been modified again without a trace.
FileState = tuple[int, int, int, int]

# Larger than the granularity of any file system's times, and than the usual clock skew of a network file system.
_TIME_MARGIN = 2_000_000_000


def state_of(status: os.stat_result) -> FileState:
    """What of *status* tells a change."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def file_state(path: str) -> FileState | None:
    """The state of the regular file at *path*, ``None`` if there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return state_of(status) if stat.S_ISREG(status.st_mode) else None


def is_settled(state: FileState, at: int) -> bool:
    """Whether a change after the time *at* (nanoseconds) would show in a *state* seen after it."""
    return max(state[1], state[2]) < at - _TIME_MARGIN


class Header(NamedTuple):
    """A header as it was read: the state that its file had, and the SHA-256 of its content."""

    path: str
    state: FileState
    sha256: bytes
