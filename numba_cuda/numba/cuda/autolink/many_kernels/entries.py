# SPDX-License-Identifier: BSD-2-Clause
"""Cache entries that travel between processes that share no cache directory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from numba.cuda.cudadrv.external_code.cache.entry import pack
from numba.cuda.cudadrv.external_code.cache.key import CacheKey
from numba.cuda.cudadrv.external_code.cache.shared_work import BuiltEntry
from numba.cuda.cudadrv.external_code.cache.store import current_store


class PackedEntry(NamedTuple):
    """An entry as it is stored, with the digest of its key."""

    digest: bytes
    entry: bytes


def packed(built: Iterable[BuiltEntry], *, links: bool) -> tuple[PackedEntry, ...]:
    """Return what was *built*, as far as another machine can use it; *links* only on demand: each is one kernel's, and
    travels with that."""
    entries = {
        each.key.digest: PackedEntry(each.key.digest, pack(each.key, each.data))
        for each in built
        if each.is_portable and (links or each.key.kind != "link")
    }
    return tuple(entries.values())


def keep(entries: Iterable[PackedEntry]) -> None:
    """Put *entries* into this process's cache."""
    store = current_store()
    for digest, entry in entries:
        store.adopt(digest, entry)


class CacheMark:
    """An entry that only those processes find that share this process's cache directory."""

    def __init__(self) -> None:
        self.key = CacheKey("mark", "build_many", (("random", os.urandom(16)),))

    @contextlib.contextmanager
    def left(self) -> Iterator[CacheKey]:
        """Leave the mark in the directory while the block runs."""
        disk = current_store().disk
        disk.write(self.key, b"")
        try:
            yield self.key
        finally:
            with contextlib.suppress(OSError):
                disk.remove(self.key.digest)


def shares_cache(mark: CacheKey) -> bool:
    """Whether this process has the cache directory in which *mark* was left."""
    return current_store().disk.read(mark.digest) is not None


class Collected:
    """The entries that workers built, in the parent."""

    def __init__(self) -> None:
        self._related: dict[bytes, tuple[bytes, ...]] = {}
        self._in_memory: dict[bytes, bytes] = {}
        self._on_disk = current_store().settings.on_disk

    def add(self, entries: Sequence[PackedEntry]) -> None:
        """Keep *entries*, which one attempt built: programs with the lists of their headers and their checks."""
        digests = tuple(each.digest for each in entries)
        for digest, entry in entries:
            self._related[digest] = digests
            if self._on_disk:
                current_store().adopt(digest, entry, memory=False)
            else:
                self._in_memory[digest] = entry

    def has(self, digest: bytes) -> bool:
        """Whether the entry of *digest* is known here."""
        return digest in self._related or bool(self.related_to(digest))

    def related_to(self, digest: bytes) -> tuple[PackedEntry, ...]:
        """Return the entry of *digest*, and those that came with it; none if it is not known here."""
        found = []
        for each in self._related.get(digest, (digest,)):
            entry = self._in_memory.get(each) if not self._on_disk else current_store().disk.read_entry(each)
            if entry is not None:
                found.append(PackedEntry(each, entry))
        return tuple(found)
