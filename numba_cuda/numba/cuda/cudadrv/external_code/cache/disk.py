# SPDX-License-Identifier: BSD-2-Clause
"""The cache directory: `cuda.core`'s file cache, for undamaged entries that only this user could have written.

If something is wrong with the directory, reads find nothing and writes keep nothing, with one warning for each kind of
fault.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .entry import DamagedEntryError, StoredEntry, describe, pack, unpack
from .guard import FileLock
from .key import CacheKey
from .settings import DIRECTORY, CacheSettings, CacheWarning

if TYPE_CHECKING:
    from cuda.core.utils import FileStreamProgramCache

# The size cap is enforced, on average, each time that one part in so many of it was written: to look at 10,000 entries
# takes 60 ms.
_CAP_CHECKS = 256

_ENTRIES, _TEMPORARY, _LOCKS, _MISMATCHES = "entries", "tmp", "locks", "mismatches"


class DiskEntries:
    """The entries in the directory of *settings*, which is opened when it is first used."""

    def __init__(self, settings: CacheSettings):
        self._settings = settings
        self._files: FileStreamProgramCache | None = None
        self._unusable = not settings.on_disk
        self._warned: dict[str, str] = {}

    def read(self, digest: bytes) -> bytes | None:
        """Return the data under the key with *digest*, or ``None``.

        The file and the folders above it are checked before the file is opened: it is a regular file, not larger than
        the whole cache may be, and nobody but this user and root could have written it.
        """
        files = self._open()
        if files is None:
            return None
        path = entry_path(files, digest)
        try:
            if not self._all_trusted(*self._folders(path), path):
                return None
            status = os.lstat(path)
            if not stat.S_ISREG(status.st_mode):
                raise DamagedEntryError("it is not a regular file")
            if status.st_size > self._settings.max_bytes:
                raise DamagedEntryError("it is larger than the whole cache may be")
            return unpack(files[digest], digest)
        except (KeyError, FileNotFoundError):
            return None
        except DamagedEntryError as error:
            # It stays until the rebuilt one replaces it: to remove it here might remove one that was just written.
            self._warn("damaged", f"found a damaged cache entry and rebuilds it: {path}: {error}.")
        except OSError as error:
            self._warn("read", f"cannot read its cache and rebuilds what is in it: {error}.")
        return None

    def has(self, digest: bytes) -> bool:
        """Return whether there is an entry under the key with *digest*. It may be damaged."""
        files = self._open()
        return files is not None and os.path.isfile(entry_path(files, digest))

    def write(self, key: CacheKey, data: bytes) -> None:
        """Write *data* under *key*, replacing what is there. An entry larger than the whole cache may be is dropped."""
        files = self._open()
        if files is None:
            return
        entry = pack(key, data)
        if len(entry) > self._settings.max_bytes:
            return
        try:
            try:
                self._place(files, key.digest, entry)
            except FileNotFoundError:  # another process cleared the cache at this moment
                self._place(files, key.digest, entry)
            # The digest serves as a random number, so that no process has to count what others write.
            chance = len(entry) * _CAP_CHECKS / self._settings.max_bytes
            if int.from_bytes(key.digest[:4], "little") < chance * 2**32:
                self._evict(self._settings.max_bytes)
        except OSError as error:
            root = self._settings.directory
            self._warn("write", f"cannot write to its cache {root} and continues without it: {error}.")

    def entries(self) -> Iterator[StoredEntry]:
        """Yield the entries that can be read. Does not create the directory."""
        for path in self._paths():
            with contextlib.suppress(OSError):
                yield describe(path)

    def clear(self) -> int:
        """Remove all entries, and the lock files that killed processes left. Return how many entries were removed.

        Raises
        ------
        OSError
            If an entry cannot be removed.
        """
        files = self._open()
        if files is None:
            return 0
        before = len(files)
        files.clear()
        with contextlib.suppress(OSError), os.scandir(os.path.join(self._settings.directory, _LOCKS)) as locks:
            for file in locks:
                if lock := FileLock.try_lock(file.path):
                    lock.release()
        return before - len(files)

    def remove(self, digest: bytes) -> None:
        """Remove the entry under the key with *digest*, if there is one.

        Raises
        ------
        OSError
            If it cannot be removed.
        """
        files = self._open()
        if files is not None:
            with contextlib.suppress(KeyError):
                del files[digest]

    def prune(self, max_bytes: int) -> int:
        """Remove the least recently used entries until the rest takes at most *max_bytes*. Return how many went.

        Raises
        ------
        OSError
            If an entry cannot be removed.
        """
        files = self._open()
        if files is None:
            return 0
        before = len(files)
        if max_bytes > 0:
            self._evict(max_bytes)
        else:
            files.clear()
        return before - len(files)

    def lock_folder(self) -> str | None:
        """Return the folder for lock files of the processes that share this cache; ``None`` if there cannot be one."""
        if self._open() is None:
            return None
        return self._private_folder(_LOCKS)

    def mismatch_folder(self) -> str | None:
        """Return the folder for artefacts that verify mode found to differ; ``None`` if there cannot be one."""
        if self._open() is None:
            return None
        return self._private_folder(_MISMATCHES)

    def after_fork(self) -> None:
        """In a forked child, open the directory again: a thread of the parent may have been using the open one."""
        self._files = None

    def _open(self) -> FileStreamProgramCache | None:
        if self._files is not None or self._unusable:
            return self._files
        from cuda.core.utils import FileStreamProgramCache

        root = self._settings.directory
        folders = (root, os.path.join(root, _ENTRIES), os.path.join(root, _TEMPORARY))
        try:
            for folder in folders:
                _make_private(folder)
            if self._all_trusted(*folders):
                self._files = FileStreamProgramCache(root)  # without a cap: with one, it looks at all entries
            else:
                self._unusable = True
        except OSError as error:
            self._unusable = True
            self._warn("open", f"cannot use its cache {root} and continues without it: {error}. Set {DIRECTORY}.")
        return self._files

    def _place(self, files: FileStreamProgramCache, digest: bytes, entry: bytes) -> None:
        path = entry_path(files, digest)
        folders = (*self._folders(path), os.path.join(self._settings.directory, _TEMPORARY))
        for folder in folders:
            _make_private(folder)
        if self._all_trusted(*folders):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            files[digest] = entry

    def _evict(self, max_bytes: int) -> None:
        from cuda.core.utils import FileStreamProgramCache

        # A cache with a cap reads all sizes when it is opened, and evicts when it is written to.
        capped = FileStreamProgramCache(self._settings.directory, max_size_bytes=max_bytes)
        capped[b"evict"] = b""
        with contextlib.suppress(KeyError):
            del capped[b"evict"]

    def _folders(self, path: str) -> tuple[str, str, str]:
        """The directories whose owners and modes decide who can write an entry."""
        return self._settings.directory, os.path.join(self._settings.directory, _ENTRIES), os.path.dirname(path)

    def _paths(self) -> Iterator[str]:
        if not self._settings.on_disk:
            return
        with contextlib.suppress(OSError), os.scandir(os.path.join(self._settings.directory, _ENTRIES)) as folders:
            for folder in folders:
                with contextlib.suppress(OSError), os.scandir(folder.path) as files:
                    yield from (file.path for file in files if file.is_file(follow_symlinks=False))

    def _private_folder(self, name: str) -> str | None:
        folder = os.path.join(self._settings.directory, name)
        try:
            _make_private(folder)
        except OSError:
            return None
        return folder

    def _all_trusted(self, *paths: str) -> bool:
        """Return whether only this user and root can have written to *paths*. Warn of the first that others could."""
        for path in paths:
            if why := _why_not_trusted(path):
                self._warn(
                    "trust",
                    f"does not use {path} of its cache: it {why}, who could put code there that runs in your kernels. "
                    f"Make it this user's alone (chown, chmod go-w), remove it, or set {DIRECTORY}.",
                )
                return False
        return True

    def _warn(self, fault: str, message: str) -> None:
        if self._warned.setdefault(fault, message) is message:
            warnings.warn(f"numba-cuda-autolink {message}", CacheWarning, stacklevel=2)


def entry_path(files: FileStreamProgramCache, digest: bytes) -> str:
    """Return the path of an entry's file, which differs between versions of cuda.core and is not public there."""
    return str(files._path_for_key(digest))


def _make_private(folder: str) -> None:
    """Create *folder* and the missing folders above it, for this user alone."""
    try:
        os.mkdir(folder, 0o700)
    except FileNotFoundError:
        parent = os.path.dirname(folder)
        if parent == folder:
            raise
        _make_private(parent)
        _make_private(folder)
    except OSError:
        if not os.path.isdir(folder):
            raise


if sys.platform == "win32":

    def _why_not_trusted(path: str) -> str:
        return ""  # on Windows the mode does not say who may write

else:

    def _why_not_trusted(path: str) -> str:
        status = os.stat(path)
        # Root can change anything anyway, and container images bring caches that belong to root.
        if status.st_uid not in (os.geteuid(), 0):
            return f"belongs to {_user_name(status.st_uid)}"
        if status.st_mode & stat.S_IWOTH:
            return "can be written to by any user"
        if status.st_mode & stat.S_IWGRP:
            return "can be written to by users of its group"
        return ""

    def _user_name(uid: int) -> str:
        import pwd

        try:
            return f"user {pwd.getpwuid(uid).pw_name}"
        except KeyError:
            return f"user {uid}"
