# SPDX-License-Identifier: BSD-2-Clause
"""Files: written whole, so that each is the old one or the complete new one; read only if they are regular, so that
nothing waits for a pipe or a device."""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from typing import IO


@contextlib.contextmanager
def replace_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Give the file that replaces the one at *path* when the ``with`` block ends, unless it raises. What is not a file,
    such as ``/dev/stdout``, is written as it is. Raises `OSError`, which names *path*."""
    target = os.path.realpath(path)
    try:
        if os.path.lexists(target) and not os.path.isfile(target):
            with open(target, "wb") as file:
                yield file
            return
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        if error.errno is None:
            raise
        # What fails is an operation on a temporary file, whose name nobody knows.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def missing_file(what: str, path: str) -> FileNotFoundError:
    """Return the error of *what*, such as ``"load()"``, for a *path* with no file."""
    whole = os.path.abspath(path)
    return FileNotFoundError(
        f"{what} finds no file {path!r}\n"
        f"  looked for: {whole}{', which is a directory' if os.path.isdir(whole) else ''}\n"
        f"  what to do: {find_elsewhere(path)}"
    )


def check_folder(what: str, path: str) -> None:
    """Raise `FileNotFoundError` if there is no folder for the file *path* that *what*, such as ``"save()"``, writes."""
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            f"{what} cannot write {path!r}: there is no folder {folder}\n  what to do: mkdir -p {folder}"
        )


def find_elsewhere(path: str) -> str:
    """Return what to do about a *path* with no file: the file that is meant, if its folder has one with such a name."""
    if os.path.isdir(path):
        return "name a file: this is a folder"
    folder, name = os.path.split(os.path.abspath(path))
    names = os.listdir(folder) if os.path.isdir(folder) and os.access(folder, os.R_OK) else []
    if near := difflib.get_close_matches(name, [each for each in names if each != name], 1, _ALIKE):
        return f"did you mean {near[0]}?"
    if not os.path.isabs(path):
        return BESIDE
    return f"correct the path: {'no such file is in' if os.path.isdir(folder) else 'there is no folder'} {folder}"


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


BESIDE = "relative paths begin at the working directory: write Path(__file__).parent / ... for files beside your own"
_ALIKE = 0.8  # of names, which share their suffixes
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
    return read_with_status(os.fspath(path), largest)[0]


def read_with_status(path: str, largest: int = LARGEST_FILE) -> tuple[bytes, os.stat_result]:
    """Return the content of the regular file at *path* and its status from before it was read, in a third of the system
    calls that `open` makes. Raise `OSError` if it is something else, has more than *largest* bytes, or cannot be read.
    """
    descriptor = open_regular(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(descriptor)
        parts, size = [], 0
        # Files of the system have no size, and may have no end.
        while max(status.st_size, size) <= largest and (part := os.read(descriptor, (status.st_size or 1 << 16) + 1)):
            parts.append(part)
            size += len(part)
        if max(status.st_size, size) > largest:
            raise OSError(errno.EFBIG, f"it has more than {largest} bytes", path)
        return b"".join(parts), status
    finally:
        os.close(descriptor)


def is_regular_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a regular file at *path*. Raise `OSError` if it is neither that nor a directory, so that to open
    it may take for ever."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    if stat.S_ISDIR(status.st_mode):
        return False
    _check(status, path)
    return True


def _check(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise OSError(errno.EINVAL, f"it is {_KINDS.get(kind, 'not a regular file')}, expected a regular file", path)
