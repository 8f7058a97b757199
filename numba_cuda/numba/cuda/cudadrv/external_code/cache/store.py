# SPDX-License-Identifier: BSD-2-Clause
"""The store of everything that is cached: artefacts by `CacheKey`, in memory and on disk.

Memory and disk are `cuda.core.utils`'s `InMemoryProgramCache` and `FileStreamProgramCache`. The entries on disk are
trusted: they are code that will run, so whoever can write to the directory decides what runs.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .disk import MISMATCHES, DiskEntries, write_file
from .guard import BuildGuard
from .key import CacheKey, PartsTable, differences
from .log import logger, print_log
from .settings import CacheSettings

_MEMORY_BYTES = 256 << 20
_PREFIX = "numba-cuda-autolink-"  # of temporary directories

Origin = Literal["memory", "disk", "built"]


class CacheMismatchError(RuntimeError):
    """In verify mode: a rebuilt artefact differs from the cached one, so its key leaves something out.

    Attributes
    ----------
    key:
        What both were built for.
    cached, rebuilt:
        The paths of the files that hold the two.
    """

    def __init__(self, key: CacheKey, origin: str, cached: str, rebuilt: str):
        self.key = key
        self.cached = cached
        self.rebuilt = rebuilt
        super().__init__(
            f"{key} from {origin} differs from what is built now\n"
            f"  cached:     {cached}\n"
            f"  rebuilt:    {rebuilt}\n"
            f"  what to do: find what it depends on that its key leaves out, or what makes its build irreproducible"
        )


@dataclass(frozen=True)
class Fetched:
    """What `CacheStore.fetch` returns: the artefact, where it came from, and the seconds that it took."""

    data: bytes
    origin: Origin
    seconds: float


class CacheStore:
    """Artefacts by `CacheKey`, in memory and on disk, for all threads of this process and all processes of this user.

    A fault of the disk never makes a result wrong. It costs a rebuild, and one `CacheWarning` for each kind of fault.
    """

    def __init__(self, settings: CacheSettings):
        from cuda.core.utils import InMemoryProgramCache

        self.settings = settings
        self.disk = DiskEntries(settings)
        self._memory = InMemoryProgramCache(max_size_bytes=_MEMORY_BYTES)
        self._memory_lock = threading.Lock()  # its own could not be taken before a fork
        self._guard: BuildGuard[tuple[bytes, Origin]] = BuildGuard()
        self._seen: dict[bytes, CacheKey] = {}

    def fetch(self, key: CacheKey, build: Callable[[], bytes]) -> Fetched:
        """Return what is cached under *key*, or call *build* and cache what it returns.

        When several threads and processes need the same key at once, one builds and the others wait for it. *build*
        may fetch under other keys; it must not wait for another thread or process that fetches under this one.

        Raises
        ------
        CacheMismatchError
            In verify mode, if what is cached is not what *build* returns.
        """
        start = time.perf_counter()
        found = self._look(key.digest)
        if found is None:
            with self._guard.turn(key.digest, self.disk.lock_folder(), lambda: self._look(key.digest)) as found:
                if found is None:
                    data = _built(key, build)
                    self._keep(key, data)
        if found is None:
            fetched = Fetched(data, "built", time.perf_counter() - start)
        else:
            if self.settings.verify:
                self.verify(key, *found, build)
            fetched = Fetched(*found, time.perf_counter() - start)
        self._log(key, fetched.origin, fetched.seconds)
        return fetched

    def get(self, key: CacheKey) -> bytes | None:
        """Return what is cached under *key*, or ``None``."""
        start = time.perf_counter()
        found = self._look(key.digest)
        self._log(key, found[1] if found else None, time.perf_counter() - start)
        return found[0] if found else None

    def get_from_disk(self, key: CacheKey) -> bytes | None:
        """Return what is on disk under *key*, or ``None``. Memory neither answers nor remembers it."""
        start = time.perf_counter()
        data = self.disk.read(key.digest)
        self._log(key, None if data is None else "disk", time.perf_counter() - start)
        return data

    def has(self, key: CacheKey) -> bool:
        """Return whether there is an entry under *key*, which may be damaged."""
        return self._remembered(key.digest) is not None or self.disk.has(key.digest)

    def put(self, key: CacheKey, data: bytes) -> None:
        """Cache *data* under *key*, replacing what is there."""
        self._keep(key, _checked(key, data))
        self._note(key)

    def put_on_disk(self, key: CacheKey, data: bytes) -> None:
        """Cache *data* under *key* on disk alone: what a process loads once needs no room in its memory."""
        self.disk.write(key, _checked(key, data))
        self._note(key)

    def note_not_cached(self, kind: str, name: str, where: str, why: str) -> None:
        """Log why something of this kind and name is not cached, and leave an entry that ``cache why`` shows."""
        logger.info("%s %r is not cached: %s: %s", kind, name, where, why)
        self.disk.write(CacheKey("not cached", name, (("kind", kind), (where, why))), b"")

    def verify(self, key: CacheKey, cached: bytes, origin: Origin, build: Callable[[], bytes]) -> None:
        """Compare what is *cached* under *key* with what *build* returns now.

        Raises
        ------
        CacheMismatchError
            If they differ.
        """
        rebuilt = _built(key, build)
        if rebuilt != cached:
            stem = re.sub(r"[^\w.-]+", "_", f"{key.kind}-{key.name}")[:80] + f"-{key.digest.hex()[:16]}"
            files = [
                self.disk.save(MISMATCHES, name, data) or write_file(tempfile.mkdtemp(prefix=_PREFIX), name, data)
                for name, data in ((f"{stem}.cached", cached), (f"{stem}.rebuilt", rebuilt))
            ]
            raise CacheMismatchError(key, origin, *files)

    def clear(self) -> int:
        """Remove everything from memory and disk. Return how many entries were removed from disk.

        Raises
        ------
        OSError
            If an entry cannot be removed.
        """
        with self._memory_lock:
            self._memory.clear()
        return self.disk.clear()

    def before_fork(self) -> None:
        """Keep other threads away from what a forked child will use."""
        self._memory_lock.acquire()

    def after_fork(self, *, in_child: bool) -> None:
        """Undo `before_fork`. A child also drops the locks that its parent's other threads hold."""
        self._memory_lock.release()
        if in_child:
            self._guard.after_fork()
            self.disk.after_fork()

    def _look(self, digest: bytes) -> tuple[bytes, Origin] | None:
        if (data := self._remembered(digest)) is not None:
            return data, "memory"
        if (data := self.disk.read(digest)) is not None:
            self._remember(digest, data)
            return data, "disk"
        return None

    def _remembered(self, digest: bytes) -> bytes | None:
        with self._memory_lock:
            data: bytes | None = self._memory.get(digest)
        return data

    def _remember(self, digest: bytes, data: bytes) -> None:
        with self._memory_lock:
            self._memory[digest] = data

    def _keep(self, key: CacheKey, data: bytes) -> None:
        self._remember(key.digest, data)
        self.disk.write(key, data)

    def _note(self, key: CacheKey) -> None:
        """Remember *key*, so that a later miss can be compared with it."""
        if logger.isEnabledFor(logging.DEBUG):
            self._seen[key.digest] = key

    def _log(self, key: CacheKey, origin: Origin | None, seconds: float) -> None:
        if not logger.isEnabledFor(logging.DEBUG):
            return  # to explain a miss means reading every entry on disk
        if origin == "built":
            logger.debug("%s built in %.2f ms; %s", key, seconds * 1e3, self._why_missed(key))
        elif origin is None:
            logger.debug("%s not cached; %s", key, self._why_missed(key))
        else:
            logger.debug("%s from %s in %.2f ms", key, origin, seconds * 1e3)
        self._note(key)

    def _why_missed(self, key: CacheKey) -> str:
        """Return how *key* differs from the nearest earlier one of its kind and name, on disk or in this process."""
        stored = (e for e in self.disk.entries() if (e.kind, e.name) == (key.kind, key.name) and e.digest != key.digest)
        tables: list[PartsTable] = [entry.parts for entry in sorted(stored, key=lambda e: e.written, reverse=True)]
        tables += [
            seen.table
            for digest, seen in reversed(self._seen.items())
            if (seen.kind, seen.name) == (key.kind, key.name) and digest != key.digest
        ]
        if not tables:
            return "there is no earlier entry of this name"
        nearest = min((differences(table, key) for table in tables), key=len)
        return f"differs from the nearest earlier one in {', '.join(map(str, nearest))}"


def _built(key: CacheKey, build: Callable[[], bytes]) -> bytes:
    return _checked(key, build())


def _checked(key: CacheKey, data: bytes) -> bytes:
    if not isinstance(data, bytes):
        raise TypeError(f"the cache keeps bytes, got {type(data).__name__} for {key}")
    return data


class _ProcessStore:
    """The store of this process, created when it is first used."""

    def __init__(self) -> None:
        self._creating = threading.Lock()
        self._store: CacheStore | None = None

    def get(self) -> CacheStore:
        if self._store is None:
            with self._creating:
                if self._store is None:
                    settings = CacheSettings.from_environment()
                    print_log(settings.log)
                    self._store = CacheStore(settings)
        return self._store

    def replace(self, store: CacheStore | None) -> CacheStore | None:
        replaced, self._store = self._store, store
        return replaced

    def before_fork(self) -> None:
        self._creating.acquire()
        if self._store is not None:
            self._store.before_fork()

    def after_fork(self, in_child: bool) -> None:
        if self._store is not None:
            self._store.after_fork(in_child=in_child)
        self._creating.release()


_process = _ProcessStore()


def current_store() -> CacheStore:
    """Return this process's store, with the settings that the environment had when the store was first used."""
    return _process.get()


def reset_store(store: CacheStore | None = None) -> CacheStore | None:
    """Use *store* from now on; by default a new one, with the settings that the environment has when it is first used.

    Returns the store that it replaces, with all that it remembers.
    """
    return _process.replace(store)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_process.before_fork,
        after_in_parent=functools.partial(_process.after_fork, False),
        after_in_child=functools.partial(_process.after_fork, True),
    )
