# SPDX-License-Identifier: BSD-2-Clause
"""Where a command writes its result: a file, or standard output, which then has nothing else."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
from collections.abc import Iterator

from numba_cuda_autolink.files import replace_whole

from .argument_parsing import CommandError

STANDARD_OUTPUT = pathlib.Path("-")


def check_folder(path: pathlib.Path) -> None:
    """Raise `CommandError` if *path* is a folder, or is in a folder that does not exist: before anything is built."""
    if path == STANDARD_OUTPUT:
        return
    if path.is_dir():
        raise CommandError(f"{path} is a folder\n  what to do: name a file in it")
    if not path.parent.is_dir():
        raise CommandError(f"{path}: there is no folder {path.parent}\n  what to do: mkdir -p {path.parent}")


def write(path: pathlib.Path, content: bytes) -> None:
    """Write *content* to the file *path*, or to standard output. Raises `OSError`, which names the file."""
    if path == STANDARD_OUTPUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    with replace_whole(path) as file:
        file.write(content)


@contextlib.contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Send what is printed inside the ``with`` block to standard error: users' files and libraries may print, also past
    Python, and the result is all that standard output has."""
    sys.stdout.flush()
    saved = None
    with contextlib.suppress(OSError):  # there is no standard output
        saved = os.dup(1)
        os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        if saved is not None:
            os.dup2(saved, 1)
            os.close(saved)
