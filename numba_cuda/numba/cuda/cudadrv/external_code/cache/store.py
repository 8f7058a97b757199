# SPDX-License-Identifier: BSD-2-Clause
"""The store of everything that is cached: artefacts by `CacheKey`, in memory, on disk, and behind these in directories
that are only read (``"image"``) and in the cache that machines share (``"remote"``).

The entries on disk are trusted: they are code that will run, so whoever can write to the directory decides what runs.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import dataclasses
import functools
import itertools
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, overload

from ..cache.settings import logger, print_log
from .build_locks import BuildGuard
from .cells import CELL, is_named_otherwise
from .changes import BUILT_AGAIN, REMOVED, call_of, changes_in_words, fact, made_with, nearest, of_same_call, values_of
from .disk import LOCKS, MISMATCHES, DiskEntries, read_only_data
from .entry import CacheKey, StoredEntry, data_of, described, pack, unpack
from .last_runs import LastRuns, current_run
from .moved_kernels import changes_of_moved, moved_from
from .settings import CacheSettings
from .statistics import Statistics, leave

if TYPE_CHECKING:
    from .remote_store import RemoteStore

_MEMORY_BYTES = 256 << 20
_LONGEST_SETTLING = 0.2  # seconds

Origin = Literal["memory", "disk", "image", "remote", "built"]
# Entries on disk with which a miss is compared while misses are logged, read in some 40 ms.
_MOST_READ = 1000
_MOST_SEEN = 8  # and those of this process, of one kind and name
_Seen: TypeAlias = collections.defaultdict[tuple[str, str], collections.deque[StoredEntry]]

# The kinds that another machine can use: no pickles, and nothing that is only true here.
PORTABLE_KINDS = frozenset(("answer", "headers", "link", "names", "program", "prototype", "source", "symbols"))

# Taken where memory is used, and while a process forks: the child's memory is whole, and no thread holds its lock.
_lock = threading.Lock()


class CacheMismatchError(RuntimeError):
    """In verify mode: a rebuilt artefact differs from the cached one, so its key leaves something out.

    Attributes
    ----------
    key:
        What both were built for.
    cached, rebuilt:
        The paths of the files that hold the two.
    """

    __module__ = "numba.cuda.autolink"  # as tracebacks show it

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


class KeptEntry(NamedTuple):
    """What was built and is kept under a key, and whether another machine can use it."""

    key: CacheKey
    data: bytes
    is_portable: bool


_kept: ContextVar[list[KeptEntry] | None] = ContextVar("numba_cuda_autolink_kept", default=None)


@contextlib.contextmanager
def noting_kept() -> Iterator[list[KeptEntry]]:
    """List what is built and kept within the block, also in threads that run in a copy of the context. What is found in
    this machine's cache meanwhile is sent to the shared one, unless it is there."""
    kept: list[KeptEntry] = []
    token = _kept.set(kept)
    try:
        yield kept
    finally:
        _kept.reset(token)


IsPortable: TypeAlias = Callable[[bytes], bool]


def _always(_: bytes) -> bool:
    return True


class CacheStore:
    """Artefacts by `CacheKey`, in memory and on disk, for all threads of this process and all processes of this user.

    A fault of the disk never makes a result wrong. It costs a rebuild, and one `CacheWarning` for each kind of fault.
    """

    def __init__(self, settings: CacheSettings):
        from cuda.core.utils import InMemoryProgramCache

        self._started = time.time()
        self.settings = settings
        self.disk = DiskEntries(settings)
        self.remote = self._remote()
        self.statistics = Statistics()
        self._used: dict[bytes, StoredEntry] = {}
        self._bases: dict[bytes, bytes] = {}
        self._seen: _Seen = collections.defaultdict(lambda: collections.deque(maxlen=_MOST_SEEN))
        self._has_built = False
        self._memory = InMemoryProgramCache(max_size_bytes=_MEMORY_BYTES)
        self._guard: BuildGuard[tuple[bytes, Origin]] = BuildGuard()
        self._runs = LastRuns(self.disk, self._guard)

    @overload
    def fetch(self, key: CacheKey, build: Callable[[], bytes], *, is_portable: IsPortable = _always) -> Fetched: ...

    @overload
    def fetch(
        self, key: CacheKey, build: Callable[[], bytes | None], *, is_portable: IsPortable = _always
    ) -> Fetched | None: ...

    def fetch(
        self, key: CacheKey, build: Callable[[], bytes | None], *, is_portable: IsPortable = _always
    ) -> Fetched | None:
        """Return what is cached under *key*, or call *build* and cache what it returns; ``None`` if that is ``None``,
        because nothing belongs under this key.

        When several threads and processes need the same key at once, one builds and the others wait for it. *build*
        may fetch under other keys; it must not wait for another thread or process that fetches under this one. In
        verify mode it is always called; raises `CacheMismatchError` if what is cached is not what it returns. What is
        not *is_portable* stays on this machine.
        """
        start = time.perf_counter()
        data: bytes | None = None
        origin: Origin = "built"
        found = self._look(key.digest)
        if found is None:
            folder = self.disk.private_folder(LOCKS)
            with self._guard.turn(key.digest, folder, lambda: self._look(key.digest)) as found:
                if found is None:
                    found = self._look_behind(key)
                if found is None:
                    if (data := build()) is None:
                        return None
                    key = key.known_once()
                    self._keep(key, data, is_portable=is_portable(data))
        if found is not None:
            data, origin = found
            self._send_found(key, data, origin, is_portable)
            if self.settings.verify:
                self.verify(key, data, origin, build)
        assert data is not None
        fetched = Fetched(data, origin, time.perf_counter() - start)
        self._count(key, origin, fetched.seconds)
        self._log(key, origin, start)
        self._note_use(key)
        return fetched

    def get(self, key: CacheKey, *, memory: bool = True, remote: bool = True) -> bytes | None:
        """Return what is cached under *key*, or ``None``. Without *memory*, the process's memory is not used; without
        *remote*, the shared cache is not asked."""
        start = time.perf_counter()
        data, origin = self._look(key.digest, memory) or self._look_behind(key, memory, remote) or (None, None)
        if data is not None and origin is not None and remote and key.kind != "headers":  # whose files are elsewhere
            self._send_found(key, data, origin, _always)
        self._count(key, origin or "missing", 0.0)
        self._log(key, origin, start)
        if data is not None:
            self._note_use(key)
        return data

    def levels(self, key: CacheKey, *, remote: bool = True) -> Iterator[bytes]:
        """Yield what each level of the cache has under *key*, the nearest first: of a record that does not hold here,
        another level may have another version. Without *remote*, the shared cache is not asked."""
        # Another process may have replaced what is in this one's memory.
        own = self._look(key.digest, memory=False) or self._look(key.digest)
        if own is not None:
            self._send_found(key, *own, _always)
        for data, origin in itertools.chain([own] if own is not None else [], self._behind(key, remote)):
            self._count(key, origin, 0.0)
            yield data

    def send(self, key: CacheKey) -> None:
        """Have the shared cache hold what is here under *key*, where jobs are built for other machines."""
        if _kept.get() is not None and self.remote is not None and (found := self._look(key.digest)) is not None:
            self._send_found(key, *found, _always)

    @contextlib.contextmanager
    def turn(self, key: CacheKey) -> Iterator[None]:
        """Wait until no other thread or process builds under *key*, as `fetch` does, and keep others from it."""
        with self._guard.turn(key.digest, self.disk.private_folder(LOCKS), lambda: None):
            yield

    def has(self, key: CacheKey) -> bool:
        """Return whether there is an entry under *key*, which may be damaged."""
        return self._recall(key.digest) is not None or os.path.isfile(self.disk.path(key.digest) or "")

    def put(
        self,
        key: CacheKey,
        data: bytes,
        *,
        memory: bool = True,
        is_portable: bool = True,
        built_since: float | None = None,
    ) -> None:
        """Cache *data* under *key*, replacing what is there. What a process loads once needs no room in *memory*. It
        counts as built if *built_since*, a time of `time.perf_counter`, says when that began; an undamaged entry on
        disk then stays as it is."""
        # It is there if only what leads to it was lost, as the record of a program's headers.
        is_there = built_since is not None and self.has(key) and self.disk.read(key.digest) is not None
        self._keep(key, data, memory, is_portable, on_disk=not is_there)
        if built_since is not None:
            self._count(key, "built", time.perf_counter() - built_since)
            self._log(key, "built", built_since)
        elif logger.isEnabledFor(logging.DEBUG):
            self._see(key)
        self._note_use(key)

    def adopt(self, digest: bytes, entry: bytes, *, memory: bool = True, built: int | None = None) -> bool:
        """Keep an *entry*, as `pack` makes it, that another process wrote under the key with *digest*. It was *built*
        at a time in nanoseconds since the epoch, by default now. Return whether it is on disk. Raise
        `DamagedEntryError` if it is not an entry."""
        data = unpack(entry, digest)
        if memory:
            self._remember(digest, data)
        return self.disk.write_entry(digest, entry, built)

    def note_not_cached(self, kind: str, name: str, why: str, facts: Iterable[tuple[str, str, str]] = ()) -> None:
        """Log why something of this kind and name is not cached, and leave an entry that ``cache why`` shows."""
        logger.info("%s %r is not cached: %s", kind, name, why)
        known = *facts, ("", "kind", kind), ("", "reason", why)
        parts = (("known", repr(known)),)
        self.disk.write(CacheKey("not cached", name, parts, facts=lambda: known), b"")

    def verify(self, key: CacheKey, cached: bytes, origin: str, build: Callable[[], bytes | None]) -> None:
        """Raise `CacheMismatchError` if what is *cached* under *key* is not what *build* returns now, if anything."""
        rebuilt = build()
        if rebuilt is not None and rebuilt != cached:
            stem = re.sub(r"[^\w.-]+", "_", f"{key.kind}-{key.name}")[:80] + f"-{key.digest.hex()[:16]}"
            saved = (("cached", cached), ("rebuilt", rebuilt))
            files = [self.disk.save(MISMATCHES, f"{stem}.{suffix}", data) for suffix, data in saved]
            raise CacheMismatchError(key, origin, *files)

    def clear(self) -> int:
        """Remove everything from memory and disk. Return how many entries were removed from disk; raise `OSError` if
        one cannot be."""
        with _lock:
            self._memory.clear()
        self._runs, self._used = LastRuns(self.disk, self._guard), {}
        return self.disk.clear()

    def after_fork(self) -> None:
        """In a forked child: what the parent counted it leaves itself, and its threads are not here."""
        self._guard.after_fork()
        self.statistics = Statistics()
        self.remote = self._remote()

    def _remote(self) -> RemoteStore | None:
        if self.settings.remote is None:
            return None
        from .remote_store import RemoteStore

        return RemoteStore(self.settings.remote)

    def end(self, timeout: float | None = None) -> None:
        """Leave the statistics for `statistics.read`, and let the shared cache finish, as a process does at its end.
        That waits for writes at most *timeout* seconds; by default no longer than a question waits for its answer."""
        left, self.statistics = self.statistics, Statistics()
        if self.disk.is_open:
            leave(self.settings.directory, left)
        if self.remote is not None:
            self.remote.flush(self.remote.settings.wait if timeout is None else timeout)
            self.remote.warn_of_writes()

    def abandon(self) -> None:
        """Leave no locks and no half-written entries behind: this process ends in the middle of its builds."""
        self._guard.release_all()
        self.disk.settle(_LONGEST_SETTLING)

    def _count(self, key: CacheKey, origin: str, seconds: float) -> None:
        with _lock:
            self.statistics.add(key.kind, origin, seconds)

    def _look(self, digest: bytes, memory: bool = True) -> tuple[bytes, Origin] | None:
        if memory and (data := self._recall(digest)) is not None:
            return data, "memory"
        if (data := self.disk.read(digest)) is not None:
            if memory:
                self._remember(digest, data)
            return data, "disk"
        return None

    def _look_behind(self, key: CacheKey, memory: bool = True, remote: bool = True) -> tuple[bytes, Origin] | None:
        """Return what the nearest level behind the disk has under *key*, and keep it here."""
        found = next(self._behind(key, remote), None)
        if found is not None:
            if memory:
                self._remember(key.digest, found[0])
            if found[1] == "remote":
                self.disk.write(key, found[0])
        return found

    def _behind(self, key: CacheKey, remote: bool) -> Iterator[tuple[bytes, Origin]]:
        """Yield what the levels behind the disk have under *key*, if that can come from another machine."""
        if key.kind in PORTABLE_KINDS:
            if (data := read_only_data(self.settings.read_only, key.digest)) is not None:
                yield data, "image"
            if remote and self.remote is not None and (entry := self.remote.read(key.digest)) is not None:
                yield data_of(entry), "remote"

    def _send_found(self, key: CacheKey, data: bytes, origin: Origin, is_portable: IsPortable) -> None:
        """Have the shared cache hold what was found here, where jobs are built for other machines."""
        if _kept.get() is None or self.remote is None or origin == "remote" or key.kind not in PORTABLE_KINDS:
            return
        if is_portable(data):
            self.remote.write(key.digest, pack(key, data), if_missing=True)

    def _keep(
        self, key: CacheKey, data: bytes, memory: bool = True, is_portable: bool = True, *, on_disk: bool = True
    ) -> None:
        if not isinstance(data, bytes):
            raise TypeError(f"the cache keeps bytes, got {type(data).__name__} for {key}")
        is_portable = is_portable and key.kind in PORTABLE_KINDS
        if key.subject:
            base = self._base_digest(key)
            is_of_this_run = base != key.digest and base in self._runs.earlier(key.subject)[1]
            facts, lines = ((), ()) if is_of_this_run else self._runs.known_before(key.subject, base)
            key = dataclasses.replace(key, base=base, run=current_run(), read_before=lines, facts_before=facts)
        self._has_built = True
        if (kept := _kept.get()) is not None:
            kept.append(KeptEntry(key, data, is_portable))
        if memory:
            self._remember(key.digest, data)
        if on_disk:
            self.disk.write(key, data)
        if is_portable and self.remote is not None:
            self.remote.write(key.digest, pack(key, data))

    def _note_use(self, key: CacheKey) -> None:
        self._bases.pop(key.digest, None)
        if key.subject:
            self._runs.note(key, has_built=self._has_built)

    def _base(self, key: CacheKey) -> StoredEntry | None:
        """Return the entry of the build before that under *key*: of what the last run used of its kernel, perhaps in
        another folder, the one that differs least, or one of an earlier run with the same values that differs no more,
        as where a parameter of a program has several values in turn; or if it used nothing, of what this one used,
        among those that were made with the same values and functions, and of a notebook's kernel the last of these in
        any case."""
        entry = described(key)
        before, own = (
            [self._used_entry(each) for each in digests if each != key.digest]
            for digests in self._runs.earlier(key.subject)
        )
        before = [
            None if each is None else each.as_known(*self._runs.known_before(key.subject, each.digest))
            for each in before
        ]
        alike = [each for each in own if each is not None and call_of(each) == call_of(entry)]
        alike = [each for each in alike if made_with(each, exactly=True) == made_with(entry, exactly=True)]
        if alike and fact(entry, CELL):  # which was edited since, and ran again
            return alike[-1]
        if of_call := [each for each in before if each is not None and call_of(each) == call_of(entry)]:
            same = [each for each in of_call if is_named_otherwise(each.facts, entry.facts)]
            base = self._with_values(key, nearest(entry, same or of_call))
            # Of a kernel that was made with these values, the entry may have been removed.
            return None if base is not None and None in before and made_with(base) != made_with(entry) else base
        return nearest(entry, alike)

    def _with_values(self, key: CacheKey, base: StoredEntry | None) -> StoredEntry | None:
        """Return the latest entry that an earlier run used of the kernel of *key*, with the same values, if it differs
        in no more than *base*, which has other values; or else *base*."""
        entry = described(key)
        if base is None or values_of(base) == values_of(entry):
            return base
        recent = (self._used_entry(each) for each in reversed(self._runs.recent(key.subject)) if each != key.digest)
        alike = of_same_call(entry, (each for each in recent if each is not None))
        found = next((each for each in alike if values_of(each) == values_of(entry)), base)
        return min(found, base, key=lambda each: len(changes_in_words(each, entry)))

    def _used_entry(self, digest: bytes) -> StoredEntry | None:
        """Return the entry of what a run used: each kernel of a factory is compared with all of them."""
        if digest not in self._used and (entry := self.disk.entry(digest)) is not None:
            self._used[digest] = entry
        return self._used.get(digest)

    def _base_digest(self, key: CacheKey) -> bytes:
        """Return the digest of the base of *key*, which may have been removed from the disk; its own if it was built
        before, and removed."""
        if key.digest not in self._bases:  # found before its entry is written
            self._bases[key.digest] = self._find_base(key)
        return self._bases[key.digest]

    def _find_base(self, key: CacheKey) -> bytes:
        used = any(key.digest in each for each in self._runs.earlier(key.subject))
        if used and self.disk.entry(key.digest) is None:
            return key.digest
        base = self._base(key)
        return self._removed(key) if base is None else base.digest

    def _removed(self, key: CacheKey) -> bytes:
        """Return the digest of what the last run used of the kernel of *key* and was removed since, if there is one."""
        before, _ = self._runs.earlier(key.subject)
        return next((each for each in reversed(before) if self._used_entry(each) is None), b"")

    def _recall(self, digest: bytes) -> bytes | None:
        with _lock:
            data: bytes | None = self._memory.get(digest)
        return data

    def _remember(self, digest: bytes, data: bytes) -> None:
        with _lock:
            self._memory[digest] = data

    def _log(self, key: CacheKey, origin: Origin | None, start: float) -> None:
        if not logger.isEnabledFor(logging.DEBUG):
            return
        if origin is None and (seen := self._seen[key.kind, key.name]) and seen[-1].digest == key.digest:
            return  # it was looked for just before
        milliseconds = (time.perf_counter() - start) * 1e3
        if origin not in (None, "built"):
            logger.debug("%s from %s in %.2f ms", key, origin, milliseconds)
        else:
            what = "not cached" if origin is None else f"built in {milliseconds:.2f} ms"
            why = self._why_missed(key)
            logger.debug("%s %s%s", key, what, f"; {why}" if why else "")
        self._see(key)

    def _see(self, key: CacheKey) -> None:
        self._seen[key.kind, key.name].append(described(key))

    @functools.cached_property
    def _found(self) -> Mapping[tuple[str, str], Sequence[StoredEntry]] | None:
        """The entries of each kind and name that were on disk before this process; ``None`` if there are too many."""
        if self.disk.has_more_than(_MOST_READ):
            return None
        found = collections.defaultdict[tuple[str, str], list[StoredEntry]](list)
        before = (entry for entry in self.disk.entries() if entry.written < self._started)
        for entry in sorted(before, key=lambda entry: entry.written):
            found[entry.kind, entry.name].append(entry)
        return found

    def _why_missed(self, key: CacheKey) -> str:
        """Return what changed since the build that *key* is compared with, as ``cache why`` does; nothing if that is
        not known."""
        if not self.settings.on_disk:
            return "the cache is off"
        if key.digest in self.disk.damaged:
            return "its entry was damaged"
        entry = described(key)
        found = None if self._found is None else self._found.get((key.kind, key.name), ())
        if not key.subject:
            return self._why_compiled(entry, found)
        if self._base_digest(key) == key.digest:
            return BUILT_AGAIN
        if (before := self._base(key)) is None:
            if found is None:
                return "cache why shows earlier builds"
            alike = (each for each in of_same_call(entry, found) if made_with(each) == made_with(entry))
            before = next((each for each in [*alike][::-1] if each.run != current_run()), None)
        if before is not None:
            return ", ".join(changes_in_words(before, entry))
        if self._removed(key):
            return REMOVED
        before = moved_from(entry, found or ())
        return "first build" if before is None else ", ".join(changes_of_moved(before, entry))

    def _why_compiled(self, entry: StoredEntry, found: Sequence[StoredEntry] | None) -> str:
        """Return what changed since the nearest of the *found* ones from before, or else of this process: nothing where
        that may be of another text of the same name."""
        if found is None:
            return "cache why shows earlier builds"
        own = of_same_call(entry, self._seen[entry.kind, entry.name])
        before = nearest(entry, of_same_call(entry, found)) or nearest(entry, own)
        if before is None or not entry.facts:
            return ""
        texts = [[each for each in some.facts if each[1] == "source"] for some in (before, entry)]
        is_same = bool(fact(entry, "path")) or texts[0] == texts[1]
        return ", ".join(changes_in_words(before, entry)) if is_same else ""


_store: CacheStore | None = None  # of this process


def current_store() -> CacheStore:
    """Return this process's store, with the settings that the environment had when the store was first used."""
    global _store
    if _store is None:
        with _lock:
            if _store is None:
                settings = CacheSettings.from_environment()
                print_log(settings.log)
                _store = CacheStore(settings)
                atexit.register(_end)
    return _store


def reset_store(store: CacheStore | None = None) -> CacheStore | None:
    """Use *store* from now on; by default a new one, with the settings that the environment has when it is first used.

    Returns the store that it replaces, with all that it remembers.
    """
    global _store
    replaced, _store = _store, store
    return replaced


def abandon() -> None:
    """Leave no locks and no half-written entries behind: this process ends in the middle of its builds."""
    if _store is not None:
        _store.abandon()


def _end() -> None:
    if _store is not None:
        _store.end()


def _after_fork_in_child() -> None:
    _lock.release()
    if _store is not None:
        _store.after_fork()


os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork_in_child)
