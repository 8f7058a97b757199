# SPDX-License-Identifier: BSD-2-Clause
"""The state of a file: what shows that it is unchanged without reading it."""

from __future__ import annotations

import functools
import os
import platform
import uuid
from collections.abc import Iterable
from typing import NamedTuple

# Size, time of modification, time of status change (nanoseconds) and inode. A file whose state is unchanged is taken to
# be unchanged, unless it was modified so shortly before it was read that a later change could show the same times.
FileState = tuple[int, int, int, int]

_GONE: FileState = (-1, -1, -1, -1)

# Larger than the granularity of any file system's times, and than the usual clock skew of a network file system.
_TIME_MARGIN = 2_000_000_000


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
