# SPDX-License-Identifier: BSD-2-Clause
"""The folder of the cache: where it is, who could have written what is in it, and entries that have only a name.

Such an entry is the SHA-256 of its content, and the content. It is replaced atomically, and read only from a folder
that nobody but this user and root can write. A damaged entry, like any failure of the disk, is a miss.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Mapping

from .files import read_regular_file, replace_whole

DIRECTORY = "NUMBA_CUDA_AUTOLINK_CACHE_DIR"
FOLDER_NAME = "numba-cuda-autolink"


def cache_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return the path of the folder, which may be missing; an empty text if the user has none."""
    if named := environ.get(DIRECTORY):
        return os.path.abspath(os.path.expanduser(named))
    base = environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification says to ignore relative paths
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, FOLDER_NAME) if os.path.isabs(base) else ""


_GENERATED = re.compile(r".*/(sources/[0-9a-f]{16}/[^/]+)", re.DOTALL)


def find_generated(path: str) -> str:
    """Return the path that a generated source has in this folder, if *path*, of code that was compiled with another
    folder, is not there; else *path*."""
    if (found := _GENERATED.fullmatch(path)) is None or os.path.isfile(path):
        return path
    here = os.path.join(cache_folder(), found[1])
    return here if os.path.isfile(here) else path


def make_private(folder: str) -> None:
    """Create *folder*, and those above it, if they are missing, for this user alone."""
    try:
        os.mkdir(folder, 0o700)
    except FileNotFoundError:
        parent = os.path.dirname(folder)
        if os.path.isdir(parent):
            raise  # a folder in which nothing can be created, as in /proc
        make_private(parent)
        make_private(folder)
    except OSError:
        if not os.path.isdir(folder):
            raise


def why_not_trusted(path: str) -> str:
    """Return why others than this user and root can have written to *path*; an empty text if they cannot."""
    status = os.stat(path)
    # Root can change anything anyway, and container images bring caches that belong to root.
    if status.st_uid not in (os.geteuid(), 0):
        import pwd

        try:
            return f"belongs to user {pwd.getpwuid(status.st_uid).pw_name}"
        except KeyError:
            return f"belongs to user {status.st_uid}"
    if status.st_mode & stat.S_IWOTH:
        return "can be written to by any user"
    if status.st_mode & stat.S_IWGRP:
        return "can be written to by users of its group"
    return ""


def read_entry(name: str) -> bytes | None:
    """Return the content of the entry *name*, which is in a folder of the cache's: ``folder/name``; or ``None``."""
    with contextlib.suppress(OSError):
        data = read_regular_file(_path(name))
        if len(data) > 32 and hashlib.sha256(data[32:]).digest() == data[:32]:
            return data[32:]
    return None


def write_entry(name: str, content: bytes) -> None:
    """Keep *content* as the entry *name*, if the disk allows it."""
    with contextlib.suppress(OSError), replace_whole(_path(name)) as file:
        file.write(hashlib.sha256(content).digest() + content)


def _path(name: str) -> str:
    """Return the path of an entry. Raise `OSError` if its folder cannot be made, or is not to be trusted."""
    path = os.path.join(cache_folder(), name)
    folder = os.path.dirname(path)
    if not os.path.isabs(folder):
        raise FileNotFoundError(folder)
    make_private(folder)
    if why_not_trusted(folder):
        raise PermissionError(folder)
    return path
