# SPDX-License-Identifier: BSD-2-Clause
"""Reads files that come from outside: only regular ones, without waiting, and never more than a limit."""

from __future__ import annotations

import errno
import os
import stat

LARGEST_FILE = 2 << 30  # bytes
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def read_regular_file(path: str | os.PathLike[str], largest: int = LARGEST_FILE) -> bytes:
    """Return the content of the file *path*. Raise `OSError` if it is not there, is not a regular file, or has more
    than *largest* bytes, and `ValueError` if *path* cannot name a file."""
    kind = stat.S_IFMT(os.stat(path).st_mode)
    if kind != stat.S_IFREG:
        raise _not_regular(kind, path)
    with open(path, "rb", opener=_without_waiting) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(largest + 1) if size <= largest else b""
    if max(size, len(content)) > largest:
        raise OSError(errno.EFBIG, f"it has more than {largest} bytes", path)
    return content


def refuse_special_file(path: str | os.PathLike[str]) -> None:
    """Raise `OSError` if *path* is neither a regular file nor a directory, so that to open it may take for ever."""
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except (OSError, ValueError):
        return
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        raise _not_regular(kind, path)


def _not_regular(kind: int, path: str | os.PathLike[str]) -> OSError:
    what = _KINDS.get(kind, "not a regular file")
    return OSError(errno.EINVAL, f"it is {what}, expected a regular file", os.fspath(path))


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a FIFO may have taken the place of the file
