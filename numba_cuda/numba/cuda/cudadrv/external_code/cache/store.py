# SPDX-License-Identifier: BSD-2-Clause
"""The one store of all caches: what was built for a `CacheKey` in this process, or by any process on this machine.

Memory and disk are `cuda.core.utils`'s `InMemoryProgramCache` and `FileStreamProgramCache`. The entries on disk are
trusted: they are code that will run, and whoever can write to the directory decides on it.

=====================  ===============================================================================
``cache_key``          what an artefact depends on: named parts, and their digest
``cache_entry``        the format of an entry on disk
``cache_disk``         the directory, and what can go wrong with it
``cache_guard``        one build per key
``cache_settings``     the environment variables
=====================  ===============================================================================
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .disk import DiskEntries
from .guard import BuildGuard
from .key import CacheKey, PartsTable, differences
from .settings import CacheSettings

_MEMORY_BYTES = 256 << 20

Origin = Literal["memory", "disk", "built"]


class CacheMismatchError(RuntimeError):
    """In verify mode: an artefact built again differs from the cached one, so its key leaves something out.

    ``cached`` and ``rebuilt`` are the paths of the files that hold the two.
    """

    def __init__(self, key: CacheKey, origin: str, cached: str, rebuilt: str):
        self.key = key
        self.cached = cached
        self.rebuilt = rebuilt
        super().__init__(
            f"{key} from {origin} differs from what is built now: it depends on something that its key leaves out, or "
            f"its build is not reproducible.\n  cached:  {cached}\n  rebuilt: {rebuilt}"
        )


@dataclass(frozen=True)
class Fetched:
    """What `CacheStore.fetch` gives: the artefact, where it came from, and the seconds that it took."""

    data: bytes
    origin: Origin
    seconds: float


class CacheStore:
    """Artefacts by `CacheKey`, in memory and on disk. Safe to use from threads and from many processes.

    No fault of the disk keeps a result from being right; there is a `CacheWarning` for each kind of fault.
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
        """What is cached under *key*; else what *build* returns, which is then cached.

        Of all threads and processes that want it at once, one builds and the others wait for it. *build* may fetch
        under other keys; it should not wait for another thread or process that fetches under this one.

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
        if self.settings.log:
            self._log(key, fetched.origin, fetched.seconds)
        return fetched

    def get(self, key: CacheKey, *, memory: bool = True) -> bytes | None:
        """What is cached under *key*, or ``None``. Without *memory*, what is on disk now, where another process may
        have replaced what this one remembers; memory only if there is nothing."""
        start = time.perf_counter()
        found = self._look(key.digest, disk_first=not memory)
        if self.settings.log:
            self._log(key, found[1] if found else None, time.perf_counter() - start)
        return found[0] if found else None

    def has(self, key: CacheKey) -> bool:
        """Whether there is something under *key*, whole or damaged."""
        return self._remembered(key.digest) is not None or self.disk.has(key.digest)

    def put(self, key: CacheKey, data: bytes) -> None:
        """Cache *data* under *key*, in place of what is there."""
        self._keep(key, _checked(key, data))
        if self.settings.log:
            self._seen[key.digest] = key

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
            both = {f"{stem}.cached": cached, f"{stem}.rebuilt": rebuilt}
            try:
                files = _saved(self.disk.mismatch_folder(), both)
            except OSError:
                files = _saved(None, both)
            raise CacheMismatchError(key, origin, *files)

    def clear(self) -> int:
        """Forget everything. Returns how many entries were removed from disk."""
        with self._memory_lock:
            self._memory.clear()
        return self.disk.clear()

    def before_fork(self) -> None:
        """Keep other threads out of what a forked child goes on to use."""
        self._memory_lock.acquire()

    def after_fork(self, *, in_child: bool) -> None:
        """Undo `before_fork`; a child also lets go of what its parent's other threads hold."""
        self._memory_lock.release()
        if in_child:
            self._guard.after_fork()
            self.disk.after_fork()

    def _look(self, digest: bytes, disk_first: bool = False) -> tuple[bytes, Origin] | None:
        if not disk_first and (data := self._remembered(digest)) is not None:
            return data, "memory"
        data = self.disk.read(digest)
        if data is not None:
            self._remember(digest, data)
            return data, "disk"
        if disk_first and (data := self._remembered(digest)) is not None:
            return data, "memory"
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

    def _log(self, key: CacheKey, origin: Origin | None, seconds: float) -> None:
        if origin == "built":
            how = f"built in {seconds * 1e3:.2f} ms; {self._why_missed(key)}"
        elif origin is None:
            how = f"not cached; {self._why_missed(key)}"
        else:
            how = f"from {origin} in {seconds * 1e3:.2f} ms"
        print(f"numba-cuda-autolink cache: {key} {how}", file=sys.stderr)
        self._seen[key.digest] = key

    def _why_missed(self, key: CacheKey) -> str:
        """In what *key* differs from the nearest earlier one of its kind and name, on disk or in this process."""
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


def _saved(folder: str | None, contents: dict[str, bytes]) -> list[str]:
    folder = folder or tempfile.mkdtemp(prefix="numba-cuda-autolink-")
    for name, data in contents.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
    return [os.path.join(folder, name) for name in contents]


def _built(key: CacheKey, build: Callable[[], bytes]) -> bytes:
    return _checked(key, build())


def _checked(key: CacheKey, data: bytes) -> bytes:
    if not isinstance(data, bytes):
        raise TypeError(f"the cache keeps bytes, got {type(data).__name__} for {key}")
    return data


_creating = threading.Lock()
_store: CacheStore | None = None


def store() -> CacheStore:
    """This process's store, with the settings that the environment had when it was first asked for."""
    global _store
    if _store is None:
        with _creating:
            if _store is None:
                _store = CacheStore(CacheSettings.from_environment())
    return _store


def reset() -> None:
    """Forget memory, settings and which warnings were given: the next use reads the environment again."""
    global _store
    _store = None


def fetch(key: CacheKey, build: Callable[[], bytes]) -> Fetched:
    """`CacheStore.fetch` of this process's store."""
    return store().fetch(key, build)


def get(key: CacheKey, *, memory: bool = True) -> bytes | None:
    """`CacheStore.get` of this process's store."""
    return store().get(key, memory=memory)


def put(key: CacheKey, data: bytes) -> None:
    """`CacheStore.put` of this process's store."""
    store().put(key, data)


def _before_fork() -> None:
    _creating.acquire()
    if _store is not None:
        _store.before_fork()


def _after_fork(in_child: bool) -> None:
    if _store is not None:
        _store.after_fork(in_child=in_child)
    _creating.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(False),
        after_in_child=lambda: _after_fork(True),
    )
