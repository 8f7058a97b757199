# SPDX-License-Identifier: BSD-2-Clause
"""Files that are either the old one or the complete new one, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import IO


@contextlib.contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
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
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
