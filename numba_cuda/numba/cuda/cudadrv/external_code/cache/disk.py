# SPDX-License-Identifier: BSD-2-Clause
"""The cache directory: undamaged entries that only this user could have written; and directories that are read as they
are, such as those of a container image or a wheel.

If something is wrong with the directory, reads find nothing and writes keep nothing, with one warning for each kind of
fault.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence

from numba_cuda_autolink.cache_folder import DIRECTORY, make_private, why_not_trusted

from .build_locks import FileLock
from .entry import DAMAGED, CacheKey, DamagedEntryError, StoredEntry, data_of, describe, open_entry, pack, unpack
from .settings import CacheSettings, CacheWarning
from .statistics import FILE_NAME as STATISTICS

# The size cap is enforced, on average, each time that one part in so many of it was written: to look at 10,000 entries
# takes 60 ms.
_CAP_CHECKS = 256
_COMMON_SIZE = 1 << 18  # bytes of a large kernel's entries

ENTRIES, _TEMPORARY, LOCKS = "entries", "tmp", "locks"
# What verify mode found to differ, and sources that did not compile.
MISMATCHES, FAILED_SOURCES, SOURCES = "mismatches", "failed-sources", "sources"
EMULATOR = "emulator"  # code for this machine's CPU
RUNS = "runs"  # what the last run of each kernel used

_MOST_SAVED = 100  # files in one of these; one of more than so many bytes counts several times
_MOST_SAVED_BYTES = 1 << 20
_LARGEST_READ_ONLY = 1 << 30  # bytes of one entry
_LONGEST_WRITE = 3600.0  # seconds; a temporary file that is older was left by a killed process
_LONGEST_RUN = 90 * 24 * 3600.0  # seconds; without its file, a kernel is compared with its latest build


class DiskEntries:
    """The entries in the directory of *settings*, which is opened when it is first used."""

    def __init__(self, settings: CacheSettings):
        self._settings = settings
        self._root = settings.directory
        self._is_usable: bool | None = None if settings.on_disk else False  # ``None``: it was not opened yet
        self._warned: dict[str, str] = {}
        self._writes = 0  # in progress
        self.damaged: set[bytes] = set()  # the digests of entries that were found damaged, and are built again

    @property
    def is_open(self) -> bool:
        return bool(self._is_usable)

    def path(self, digest: bytes) -> str | None:
        """Return the path of the entry under the key with *digest*, which may be missing or damaged; ``None`` if the
        directory cannot be used."""
        return _path(self._root, digest) if self._open() else None

    def read(self, digest: bytes) -> bytes | None:
        """Return the data under the key with *digest*, or ``None``. `read_entry` says what is checked."""
        entry = self.read_entry(digest)
        return None if entry is None else data_of(entry)

    def read_entry(self, digest: bytes) -> bytes | None:
        """Return the undamaged entry under the key with *digest*, as `pack` made it, or ``None``.

        The file and the folders above it are checked before the file is opened: it is a regular file, not larger than
        the whole cache may be, and nobody but this user and root could have written it.
        """
        if (path := self.path(digest)) is None:
            return None
        try:
            if not self._all_trusted(*self._folders(path), path):
                return None
            with open_entry(path) as file:
                status = os.fstat(file.fileno())
                if status.st_size > self._settings.max_bytes:
                    raise DamagedEntryError("it is larger than the whole cache may be")
                entry = file.read(status.st_size)
                unpack(entry, digest)
                with contextlib.suppress(OSError):  # whose file system is read-only, for example
                    os.utime(file.fileno(), ns=(time.time_ns(), status.st_mtime_ns))
            return entry
        except FileNotFoundError:
            return None
        except DamagedEntryError as error:
            # It stays until the rebuilt one replaces it: to remove it here might remove one that was just written.
            self.damaged.add(digest)
            self._warn("damaged", f"found a damaged cache entry and rebuilds it: {path}: {error}.")
        except OSError as error:
            self._warn("read", f"cannot read its cache and rebuilds what is in it: {error}.")
        return None

    def write(self, key: CacheKey, data: bytes) -> None:
        """Write *data* under *key*, replacing what is there. An entry larger than the whole cache may be is dropped."""
        if self._open():
            known = key.facts
            if key.digest in self.damaged:
                key = dataclasses.replace(key, facts=lambda: (*known(), ("", DAMAGED, "yes")))
            self.write_entry(key.digest, pack(key, data))

    def write_entry(self, digest: bytes, entry: bytes, built: int | None = None) -> bool:
        """Write an *entry*, as `pack` makes it, as `write` does. It was *built* at a time in nanoseconds since the
        epoch, by default now. Return whether it was written."""
        if (path := self.path(digest)) is None or len(entry) > self._settings.max_bytes:
            return False
        self._writes += 1
        try:
            try:
                self._place(path, entry)
            except FileNotFoundError:  # another process cleared the cache at this moment
                self._place(path, entry)
            if built is not None:
                with contextlib.suppress(OSError, OverflowError):  # `cache why` shows the time; nothing depends on it
                    os.utime(path, ns=(time.time_ns(), built))
            # The digest serves as a random number, so that no process has to count what others write.
            chance = len(entry) * _CAP_CHECKS / self._settings.max_bytes
            if int.from_bytes(digest[:4], "little") < chance * 2**32:
                self._evict(self._settings.max_bytes)
        except OSError as error:
            self._warn("write", f"cannot write to its cache {self._root} and continues without it: {error}.")
            return False
        else:
            return True
        finally:
            self._writes -= 1

    def settle(self, seconds: float) -> None:
        """Wait until no entry is being written, no longer than so many *seconds*."""
        end = time.monotonic() + seconds
        while self._writes > 0 and time.monotonic() < end:
            time.sleep(0.001)

    def entries(self) -> Iterator[StoredEntry]:
        """Yield the entries that can be read. Does not create the directory."""
        for path in self._paths():
            with contextlib.suppress(OSError, DamagedEntryError):
                yield describe(path)

    def entry(self, digest: bytes) -> StoredEntry | None:
        """Return the entry under the key with *digest*, if there is one that can be read."""
        with contextlib.suppress(OSError, DamagedEntryError):
            if (path := self.path(digest)) is not None:
                return describe(path)
        return None

    def bytes_in(self, folder: str) -> int:
        """Return how much is in the files of a *folder* of its directory, such as `EMULATOR`."""
        return sum(each.stat(follow_symlinks=False).st_size for each in _files_in(os.path.join(self._root, folder)))

    def size(self) -> tuple[int, int]:
        """Return how many entries there are, and their size in bytes; none is read."""
        sizes = []
        for path in self._paths():
            with contextlib.suppress(OSError):
                sizes.append(os.lstat(path).st_size)
        return len(sizes), sum(sizes)

    def has_more_than(self, count: int) -> bool:
        """Whether there are more than *count* entries; at most so many are looked at, and none is read."""
        return next(itertools.islice(self._paths(), count, None), None) is not None

    def clear(self) -> int:
        """Remove all entries, the files of `save`, the sources for debuggers, the emulator's code, and the lock files
        that killed processes left. Return how many entries were removed; raise `OSError` if one cannot be."""
        if not self._open():
            return 0
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._root, STATISTICS))
        for file in _files_in(os.path.join(self._root, LOCKS)):
            with contextlib.suppress(OSError):
                if lock := FileLock.try_lock(file.path):
                    lock.release()
        for folder in MISMATCHES, FAILED_SOURCES, EMULATOR, RUNS:
            for file in _files_in(os.path.join(self._root, folder)):
                os.unlink(file.path)
        shutil.rmtree(os.path.join(self._root, SOURCES), ignore_errors=True)
        removed = self._evict(-1)
        for name in os.listdir(os.path.join(self._root, ENTRIES)):
            shutil.rmtree(os.path.join(self._root, ENTRIES, name), ignore_errors=True)
        return removed

    def prune(self, max_bytes: int) -> int:
        """Remove the least recently used entries until the rest takes at most *max_bytes*. Return how many went; raise
        `OSError` if one cannot be removed."""
        return self._evict(max_bytes) if self._open() else 0

    def remove(self, digest: bytes) -> None:
        """Remove the entry under the key with *digest*, if there is one. Raise `OSError` if it cannot be removed."""
        if (path := self.path(digest)) is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def private_folder(self, name: str) -> str | None:
        """Return the folder *name* of this directory; ``None`` if there cannot be one."""
        with contextlib.suppress(OSError):
            if self._open():
                folder = os.path.join(self._root, name)
                make_private(folder)
                return folder
        return None

    def save(self, folder: str, name: str, data: bytes) -> str:
        """Save a file for the user to look at in *folder*, `MISMATCHES` or `FAILED_SOURCES`, and remove the oldest of
        many; or in a new directory for temporary files. Return its path; raise `OSError` if neither can be written."""
        with contextlib.suppress(OSError):
            if (place := self.private_folder(folder)) is not None:
                path = write_file(os.path.join(place, name), data, place)
                others = [file for file in _files_in(place) if file.path != path]
                kept = 1
                for file in sorted(others, key=_time_of, reverse=True):
                    kept += file.stat(follow_symlinks=False).st_size // _MOST_SAVED_BYTES + 1
                    if kept > _MOST_SAVED:
                        os.unlink(file.path)
                return path
        place = tempfile.mkdtemp(prefix=f"numba-cuda-autolink-{folder}-")
        return write_file(os.path.join(place, name), data, place)

    def why_unusable(self) -> str:
        """Return why its directory, which this does not make, cannot be written, has no room for an entry of common
        size, and that others than this user and root can write to it; empty if it can be used."""
        place = os.path.abspath(self._root)
        while not os.path.lexists(place):
            place = os.path.dirname(place)
        folders = filter(os.path.exists, (self._root, os.path.join(self._root, ENTRIES)))
        causes = []
        try:
            with tempfile.TemporaryFile(dir=place, buffering=0) as file:
                while file.tell() < _COMMON_SIZE:
                    file.write(bytes(_COMMON_SIZE - file.tell()))
        except OSError as error:
            causes.append(f"no file can be written in {place}: {error.strerror}")
        with contextlib.suppress(OSError):  # said above
            causes += [f"{each} {why}" for each in folders if (why := why_not_trusted(each))][:1]
        return ", and ".join(causes)

    def _open(self) -> bool:
        """Return whether the directory can be used, which is created if it is missing."""
        if self._is_usable is None:
            is_usable, temporary = False, os.path.join(self._root, _TEMPORARY)
            try:
                is_usable = self._prepare(self._root, os.path.join(self._root, ENTRIES), temporary)
                remove_abandoned(temporary)
            except OSError as error:
                text = f"cannot use its cache {self._root} and continues without it: {error}. Set {DIRECTORY}."
                self._warn("open", text)
            self._is_usable = is_usable
        return self._is_usable

    def _place(self, path: str, entry: bytes) -> None:
        if self._prepare(*self._folders(path), os.path.join(self._root, _TEMPORARY)):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            # Nothing waits until it is on the disk: what a crash of the system truncates is damaged.
            write_file(path, entry, os.path.join(self._root, _TEMPORARY))

    def _evict(self, max_bytes: int) -> int:
        """Remove entries, the least recently used first, until the rest takes at most *max_bytes*: before these, any
        that alone takes more. Return how many were removed."""
        found = []
        for path in self._paths():
            with contextlib.suppress(OSError):
                found.append((path, os.lstat(path)))
        # The last ones go first.
        found.sort(key=lambda each: (each[1].st_size <= max_bytes, each[1].st_atime_ns), reverse=True)
        total, removed = sum(status.st_size for _, status in found), 0
        while found and total > max_bytes:
            path, status = found.pop()
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.lstat(path), status):  # else it was replaced meanwhile
                    os.unlink(path)
                    removed += 1
            total -= status.st_size
        remove_abandoned(os.path.join(self._root, _TEMPORARY))
        remove_abandoned(os.path.join(self._root, RUNS), age=_LONGEST_RUN)
        return removed

    def _folders(self, path: str) -> tuple[str, str, str]:
        """The directories whose owners and modes decide who can write an entry."""
        return self._root, os.path.join(self._root, ENTRIES), os.path.dirname(path)

    def _paths(self) -> Iterator[str]:
        if not self._settings.on_disk:
            return
        with contextlib.suppress(OSError), os.scandir(os.path.join(self._root, ENTRIES)) as folders:
            for folder in folders:
                with contextlib.suppress(OSError), os.scandir(folder.path) as files:
                    yield from (file.path for file in files if file.is_file(follow_symlinks=False))

    def _prepare(self, *folders: str) -> bool:
        """Create those of *folders* that are missing; return whether all are trusted."""
        with contextlib.suppress(FileNotFoundError):
            return self._all_trusted(*folders)
        for folder in folders:
            make_private(folder)
        return self._all_trusted(*folders)

    def _all_trusted(self, *paths: str) -> bool:
        """Return whether only this user and root can have written to *paths*. Warn of the first that others could."""
        for path in paths:
            if why := why_not_trusted(path):
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


def read_only_data(directories: Sequence[str], digest: bytes) -> bytes | None:
    """Return the data under the key with *digest* in the first of *directories* that has it undamaged, or ``None``.
    Each was the cache directory of some process.

    The user names them, and so trusts them: neither owners nor modes nor times are looked at.
    """
    for directory in directories:
        with contextlib.suppress(OSError, DamagedEntryError), open_entry(_path(directory, digest)) as file:
            return unpack(file.read(_LARGEST_READ_ONLY), digest)
    return None


def _path(directory: str, digest: bytes) -> str:
    name = hashlib.sha256(digest).hexdigest()
    return os.path.join(directory, ENTRIES, name[:2], name[2:])


def remove_abandoned(folder: str, prefix: str = "", age: float = _LONGEST_WRITE) -> None:
    """Remove the files in *folder* whose names begin with *prefix*, and that were written more than *age* seconds ago:
    by default those that killed processes left."""
    for file in _files_in(folder):
        with contextlib.suppress(OSError):
            if file.name.startswith(prefix) and _time_of(file) < time.time() - age:
                os.unlink(file.path)


def _files_in(folder: str) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        return [file for file in found if not file.is_dir(follow_symlinks=False)]
    return []


def write_file(path: str, data: bytes, folder: str) -> str:
    """Write *data* to the file *path* in one step, whatever is there, by way of a file in *folder*; return *path*."""
    handle, temporary = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return path


def _time_of(file: os.DirEntry[str]) -> float:
    return file.stat(follow_symlinks=False).st_mtime
