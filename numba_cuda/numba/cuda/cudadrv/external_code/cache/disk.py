# SPDX-License-Identifier: BSD-2-Clause
"""The cache directory: `cuda.core`'s file cache, for entries that are whole and that nobody else could have written.

Whatever is wrong with the directory, reads then find nothing and writes keep nothing, with one warning per kind of
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

# The size cap is enforced once per this part of it written, on average: looking at 10,000 entries takes 60 ms.
_CAP_CHECKS = 256

_ENTRIES, _TEMPORARY, _LOCKS, _MISMATCHES = "entries", "tmp", "locks", "mismatches"


class DiskEntries:
    """The entries in the directory of *settings*, opened when first used."""

    def __init__(self, settings: CacheSettings):
        self._settings = settings
        self._files: FileStreamProgramCache | None = None
        self._unusable = not settings.on_disk
        self._warned: dict[str, str] = {}

    def read(self, digest: bytes) -> bytes | None:
        """The data under the key of *digest*, or ``None``."""
        files = self._open()
        if files is None:
            return None
        path = entry_path(files, digest)
        try:
            if not self._are_trusted(*self._folders(path), path):
                return None
            if not stat.S_ISREG(os.lstat(path).st_mode):
                raise DamagedEntryError("it is not a file")
            return unpack(files[digest], digest)
        except (KeyError, FileNotFoundError):
            return None
        except DamagedEntryError as error:
            # It stays until the rebuilt one replaces it: removing it here might hit one that was just written.
            self._warn("damaged", f"found a damaged entry and builds it again: {path}: {error}.")
        except OSError as error:
            self._warn("read", f"cannot read its cache and builds again what is in it: {error}.")
        return None

    def has(self, digest: bytes) -> bool:
        """Whether there is an entry under the key of *digest*."""
        files = self._open()
        return files is not None and os.path.isfile(entry_path(files, digest))

    def write(self, key: CacheKey, data: bytes) -> None:
        """Keep *data* under *key*, in place of what is there."""
        files = self._open()
        if files is None:
            return
        entry = pack(key, data)
        try:
            try:
                self._place(files, key.digest, entry)
            except FileNotFoundError:  # someone cleared the cache at this moment
                self._place(files, key.digest, entry)
            # The digest serves as the dice, so that no process has to count what others write.
            chance = len(entry) * _CAP_CHECKS / self._settings.max_bytes
            if int.from_bytes(key.digest[:4], "little") < chance * 2**32:
                self._evict(self._settings.max_bytes)
        except OSError as error:
            self._warn("write", f"cannot write to its cache {self._settings.directory} and goes on without: {error}.")

    def entries(self) -> Iterator[StoredEntry]:
        """What is there, as far as it can be read. Nothing is opened or made for it."""
        for path in self._paths():
            with contextlib.suppress(OSError):
                yield describe(path)

    def clear(self) -> int:
        """Remove all entries, and lock files that a killed process left. Returns how many entries are gone.

        Raises
        ------
        OSError
            If one cannot be removed.
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

    def prune(self, max_bytes: int) -> int:
        """Remove the entries that were not used for longest, until the rest takes no more than *max_bytes*. Returns
        how many are gone.

        Raises
        ------
        OSError
            If one cannot be removed.
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
        """Where processes that share this cache lock what they build; ``None`` if they cannot."""
        if self._open() is None:
            return None
        return self._private_folder(_LOCKS)

    def mismatch_folder(self) -> str | None:
        """Where artefacts go that were to be the same; ``None`` if that cannot be written."""
        if self._open() is None:
            return None
        return self._private_folder(_MISMATCHES)

    def after_fork(self) -> None:
        """In a forked child: what another thread of the parent had in use does not come free here."""
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
            if self._are_trusted(*folders):
                self._files = FileStreamProgramCache(root)  # without a cap, so that it does not look at all entries
            else:
                self._unusable = True
        except OSError as error:
            self._unusable = True
            self._warn("open", f"cannot use its cache {root} and goes on without: {error}. Set {DIRECTORY}.")
        return self._files

    def _place(self, files: FileStreamProgramCache, digest: bytes, entry: bytes) -> None:
        path = entry_path(files, digest)
        folders = (*self._folders(path), os.path.join(self._settings.directory, _TEMPORARY))
        for folder in folders:
            _make_private(folder)
        if self._are_trusted(*folders):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            files[digest] = entry

    def _evict(self, max_bytes: int) -> None:
        from cuda.core.utils import FileStreamProgramCache

        # A cache with a cap looks at all sizes when it is opened, and evicts when it is written to.
        capped = FileStreamProgramCache(self._settings.directory, max_size_bytes=max_bytes)
        capped[b"evict"] = b""
        with contextlib.suppress(KeyError):
            del capped[b"evict"]

    def _folders(self, path: str) -> tuple[str, str, str]:
        """The directories that decide on who can write an entry."""
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

    def _are_trusted(self, *paths: str) -> bool:
        """Whether only this user could have written there. What others wrote could be code of theirs."""
        for path in paths:
            if why := _why_not_trusted(path):
                self._warn(
                    "trust",
                    f"does not use {path} of its cache: it {why}, who could put code there that runs in your kernels. "
                    f"Give it back to this user (chown, chmod go-w), remove it, or set {DIRECTORY} to another "
                    f"directory.",
                )
                return False
        return True

    def _warn(self, fault: str, message: str) -> None:
        if self._warned.setdefault(fault, message) is message:
            warnings.warn(f"numba-cuda-autolink {message}", CacheWarning, stacklevel=2)


def entry_path(files: FileStreamProgramCache, digest: bytes) -> str:
    """The file of an entry. Where it lies differs between versions of cuda.core, which tells nobody but itself."""
    return str(files._path_for_key(digest))


def _make_private(folder: str) -> None:
    """Make *folder* and what is missing above it, for this user alone."""
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
        return ""  # what a user may do is not in the file's mode there

else:

    def _why_not_trusted(path: str) -> str:
        status = os.stat(path)
        # Root could change anything anyway, and images come with caches of root's.
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
