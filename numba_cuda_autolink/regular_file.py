# SPDX-License-Identifier: BSD-2-Clause
"""Opens regular files alone: nothing waits for a pipe or a device, and never more is read than a limit."""

from __future__ import annotations

import errno
import os
import stat

LARGEST_FILE = 2 << 30  # bytes
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def open_regular(path: str, flags: int) -> int:
    """Open the regular file at *path*, as an ``opener`` of `open` does. Raise `OSError` if it is something else."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)
    try:
        _check(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read_regular_file(path: str | os.PathLike[str], largest: int = LARGEST_FILE) -> bytes:
    """Return the content of the file *path*. Raise `OSError` if it is not there, is not a regular file, or has more
    than *largest* bytes, and `ValueError` if *path* cannot name a file."""
    _check(os.stat(path), path)  # before it is opened, which a device could notice
    with open(path, "rb", opener=open_regular) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(largest + 1) if size <= largest else b""
    if max(size, len(content)) > largest:
        raise OSError(errno.EFBIG, f"it has more than {largest} bytes", path)
    return content


def read_with_status(path: str) -> tuple[bytes, os.stat_result]:
    """Return the content of the regular file at *path* and its status from before it was read, in a third of the system
    calls that `open` makes. Raise `OSError` if it is something else, or cannot be read."""
    descriptor = open_regular(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(descriptor)
        parts = []
        while part := os.read(descriptor, status.st_size + 1):
            parts.append(part)
        return b"".join(parts), status
    finally:
        os.close(descriptor)


def refuse_special_file(path: str | os.PathLike[str]) -> None:
    """Raise `OSError` if *path* is neither a regular file nor a directory, so that to open it may take for ever."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return
    if not stat.S_ISDIR(status.st_mode):
        _check(status, path)


def _check(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise OSError(errno.EINVAL, f"it is {_KINDS.get(kind, 'not a regular file')}, expected a regular file", path)
