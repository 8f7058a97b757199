# SPDX-License-Identifier: BSD-2-Clause
"""The cache on disk, for users: how large it is, how to empty it, and why something was built again.

The environment variables that it follows are read when the cache is first used:

======================================  ==============================================================
``NUMBA_CUDA_AUTOLINK_CACHE_DIR``       its directory; by default in the platform's cache folder
``NUMBA_CUDA_AUTOLINK_CACHE``           ``0``: nothing on disk; ``verify``: rebuild what is found, and
                                        raise an error if the two differ
``NUMBA_CUDA_AUTOLINK_CACHE_SIZE``      how large it may grow, such as ``500M`` or ``2G``; 1 GiB
``NUMBA_CUDA_AUTOLINK_LOG=cache``       print each hit, and each miss with its reason, to stderr
======================================  ==============================================================

The same messages go to the logger ``numba_cuda_autolink.cache``: hits and misses at the level ``DEBUG``, kernels that
cannot be cached at ``INFO``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from numba.cuda.cudadrv.external_code.cache.entry import StoredEntry
from numba.cuda.cudadrv.external_code.cache.key import differences
from numba.cuda.cudadrv.external_code.cache.settings import CacheWarning
from numba.cuda.cudadrv.external_code.cache.store import CacheMismatchError, current_store

from .reports import formatting

__all__ = ["CacheInfo", "CacheMismatchError", "CacheWarning", "History", "KindInfo", "StoredEntry"]
__all__ += ["clear", "info", "prune", "why"]


@dataclass(frozen=True)
class KindInfo:
    """The entries of one kind: ``"program"``, ``"link"``, ``"kernel"``, ...; ``"?"`` if they cannot be read."""

    kind: str
    entries: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.kind}: {self.entries} entries, {formatting.size(self.bytes)}"


@dataclass(frozen=True)
class CacheInfo:
    """The content of the cache on disk, and its settings. Sizes are in bytes."""

    directory: str
    enabled: bool
    verify: bool
    max_bytes: int
    entries: int
    bytes: int
    by_kind: tuple[KindInfo, ...]

    def __str__(self) -> str:
        state = "off" if not self.enabled else "on, verifying each hit" if self.verify else "on"
        directory = f"cache in {self.directory or '(no directory)'} ({state})"
        total = f"{self.entries} entries, {formatting.size(self.bytes)} of {formatting.size(self.max_bytes)}"
        return "\n  ".join([directory, total, *map(str, self.by_kind)])


@dataclass(frozen=True)
class History:
    """Cached entries, latest first. Printed, earliest first: their parts, and what changed from one to the next."""

    name: str
    entries: tuple[StoredEntry, ...]

    def __str__(self) -> str:
        if not self.entries:
            return f"nothing is cached under the name {self.name!r}"
        lines = []
        earlier: dict[tuple[str, str], StoredEntry] = {}
        for entry in reversed(self.entries):
            written = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.written))
            lines.append(f"{entry.kind} {entry.name!r}, {formatting.size(entry.size)}, written {written}")
            before = earlier.get((entry.kind, entry.name))
            parts = (
                differences(before.parts, entry.parts) if before else (f"{each[0]}: {each[1]}" for each in entry.parts)
            )
            lines += [f"  {part}" for part in parts]
            earlier[entry.kind, entry.name] = entry
        return "\n".join(lines)


def info() -> CacheInfo:
    """Return how much is in the cache on disk."""
    cache = current_store()
    sizes: dict[str, list[int]] = {}
    for entry in cache.disk.entries():
        sizes.setdefault(entry.kind, []).append(entry.size)
    kinds = tuple(KindInfo(kind, len(sizes[kind]), sum(sizes[kind])) for kind in sorted(sizes))
    count, size = sum(each.entries for each in kinds), sum(each.bytes for each in kinds)
    settings = cache.settings
    return CacheInfo(settings.directory, settings.on_disk, settings.verify, settings.max_bytes, count, size, kinds)


def clear() -> int:
    """Remove everything from the cache, on disk and in this process. Return how many entries were removed from disk.

    Raises `OSError` if the directory's files cannot be removed.
    """
    return current_store().clear()


def prune(max_bytes: int | None = None) -> int:
    """Remove the least recently used entries until the rest takes at most *max_bytes*, by default the size limit.
    Return how many were removed.

    Raises `ValueError` if *max_bytes* is negative, `OSError` if the directory's files cannot be removed.
    """
    cache = current_store()
    max_bytes = cache.settings.max_bytes if max_bytes is None else max_bytes
    if max_bytes < 0:
        raise ValueError(f"prune(max_bytes={max_bytes}): a size in bytes cannot be negative")
    return cache.disk.prune(max_bytes)


def why(name: str, kind: str | None = None) -> History:
    """Return the entries on disk whose name contains *name*, of one *kind* or all. Printed, they show what changed."""
    entries = current_store().disk.entries()
    found = [entry for entry in entries if name in entry.name and kind in (None, entry.kind)]
    return History(name, tuple(sorted(found, key=lambda entry: (entry.written, entry.digest), reverse=True)))
