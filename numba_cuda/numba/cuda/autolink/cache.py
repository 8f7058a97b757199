# SPDX-License-Identifier: BSD-2-Clause
"""The cache, for users: how large it is, how often it hits, how to empty it and to move it to another machine, and why
something was built again.

The environment variables that it follows are read when the cache is first used:

======================================  ==============================================================
``NUMBA_CUDA_AUTOLINK_CACHE_DIR``       its directory; by default in the user's cache folder
``NUMBA_CUDA_AUTOLINK_CACHE``           ``0``: nothing on disk; ``verify``: rebuild what is found, and
                                        raise an error if the two differ
``NUMBA_CUDA_AUTOLINK_CACHE_SIZE``      how large it may grow, such as ``500M`` or ``2G``; 1 GiB
``NUMBA_CUDA_AUTOLINK_CACHE_READONLY``  other cache directories, which are only read
``NUMBA_CUDA_AUTOLINK_CACHE_REMOTE``    the cache that machines share; see the guide
``NUMBA_CUDA_AUTOLINK_LOG=cache``       print each hit, and each miss with its reason, to stderr
======================================  ==============================================================

The same messages go to the logger ``numba_cuda_autolink.cache``: hits and misses at the level ``DEBUG``, kernels that
cannot be cached at ``INFO``.
"""

from __future__ import annotations

import dataclasses
import numbers
import os
from dataclasses import dataclass, field
from typing import Any

from numba.cuda.cudadrv.external_code.cache import entry_files, statistics
from numba.cuda.cudadrv.external_code.cache.disk import EMULATOR, DiskEntries
from numba.cuda.cudadrv.external_code.cache.entry import StoredEntry
from numba.cuda.cudadrv.external_code.cache.settings import REMOTE_KEY, CacheWarning, read_keys
from numba.cuda.cudadrv.external_code.cache.store import CacheMismatchError, CacheStore, current_store
from numba.cuda.cudadrv.external_code.diagnostics import messages

from numba_cuda_autolink.errors import of_type
from numba_cuda_autolink.files import missing_file
from numba_cuda_autolink.printable_texts import number_of

from .reports import cache_history, formatting

__all__ = ["CacheInfo", "CacheMismatchError", "CacheWarning", "History", "KindInfo", "KindUsage", "StoredEntry"]
__all__ += ["clear", "export_file", "flush", "import_file", "info", "prune", "why"]


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})


_MEANINGS = {
    "answer": "of objects with a link key",
    "declarations": "names in libraries of C++",
    "definitions": "what code defines",
    "guesses": "calls of C++ that it refuses",
    "headers": "which files a compile read, on this machine",
    "kernel": "the compiled Python of cache=True",
    "link": "finished kernels",
    "mark": "of build_many",
    "names": "of C++ in compiled code",
    "not cached": "notes for cache why",
    "program": "compiled C++",
    "prototype": "checked types of calls",
    "source": "what a compile read, on any machine",
    "survival": "code that links without a crash",
    "symbols": "what bitcode defines",
}
_LEVELS = ("memory", "disk", "image", "remote")


@dataclass(frozen=True)
class KindInfo:
    """The entries of one kind: ``"program"``, ``"link"``, ``"kernel"``, ...; ``"?"`` if they cannot be read."""

    kind: str
    entries: int
    bytes: int

    def __str__(self) -> str:
        meaning = f" ({_MEANINGS[self.kind]})" if self.kind in _MEANINGS else ""
        return f"{self.kind}: {number_of(self.entries, 'entry')}, {formatting.size(self.bytes)}{meaning}"


@dataclass(frozen=True)
class KindUsage:
    """How often something of one kind was found, by the level of the cache that had it, and how often it was built; and
    the seconds that the hits saved, if each had taken as long to build as those that were built."""

    kind: str
    found: tuple[tuple[str, int], ...]
    built: int
    seconds_saved: float

    @property
    def hits(self) -> int:
        """How often it was found."""
        return sum(count for _, count in self.found)

    @property
    def hit_rate(self) -> float:
        """The part of all questions that found it, from 0 to 1."""
        return self.hits / (self.hits + self.built)

    def __str__(self) -> str:
        where = ", ".join(f"{level} {count}" for level, count in self.found)
        saved = f", about {formatting.time(self.seconds_saved)} saved" if self.seconds_saved else ""
        text = f"{self.kind}: {self.hit_rate:.0%} of {self.hits + self.built} found"
        return text + (f" ({where})" if where else "") + saved


@dataclass(frozen=True)
class CacheInfo:
    """The content of the cache on disk, and its settings; the levels behind it, with their addresses; how all levels
    were used, by this process and earlier ones; whether its directory can be written; and how much code of the emulator
    is in it, which is no entry and not limited. Sizes are in bytes."""

    directory: str
    enabled: bool
    verify: bool
    max_bytes: int
    entries: int
    bytes: int
    by_kind: tuple[KindInfo, ...]
    levels: tuple[tuple[str, str], ...] = ()
    usage: tuple[KindUsage, ...] = ()
    writable: bool = True
    emulator_bytes: int = 0

    def __str__(self) -> str:
        on = "cannot be used" if not self.writable else "on, verifying each hit" if self.verify else "on"
        state = on if self.enabled else "off: what is in it is not used"
        directory = f"cache in {self.directory or '(no directory)'} ({state})"
        filled = f"{formatting.size(self.bytes)} of {formatting.size(self.max_bytes)}"
        total = f"{number_of(self.entries, 'entry')}, {filled}"
        if self.writable and not os.path.isdir(self.directory):
            total += "; the first build creates the folder"
        lines = ["\n  ".join([directory, total, *map(str, self.by_kind)]) if self.enabled else directory]
        if self.emulator_bytes:
            lines.append(f"  besides, code of the emulator: {formatting.size(self.emulator_bytes)}")
        for name, where in self.levels:
            is_missing = name == "image" and not os.path.isdir(where)
            lines.append(f"behind it: {name} {where}" + (" (there is no such folder)" if is_missing else ""))
        if self.usage:
            seconds = sum(each.seconds_saved for each in self.usage)
            saved = f", about {formatting.time(seconds)} saved" if seconds else ""
            lines.append("\n  ".join([f"used so far{saved}", *map(str, self.usage)]))
        return "\n".join(lines)


@dataclass(frozen=True)
class History:
    """Cached entries, latest first. Printed: a line for each build of a kernel, with what changed since the last run of
    it; where no kernel has the name, for each compile. All entries are shown if a kind was asked for."""

    name: str
    entries: tuple[StoredEntry, ...]
    kind: str | None = None
    near: str = field(default="", repr=False)  # ``; did you mean NAME?`` if there are none, and there is such a name
    _known: tuple[StoredEntry, ...] = field(default=(), repr=False, compare=False)  # with which they are compared

    @property
    def details(self) -> str:
        """The same lines, each with its place, what it was compared with and the lines that changed in short texts, or
        all that is known of a first build."""
        return "\n".join(cache_history.details(self.entries, self._known, every_kind=self.kind is not None)) or str(
            self
        )

    @property
    def builds(self) -> list[dict[str, Any]]:
        """The same as plain data, of each build its ``name``, ``kind``, ``architecture``, ``types``, ``path``, when it
        was ``built`` and when the one that it is ``compared_with``, in seconds since the epoch, its ``causes``, and the
        lines of Python files that were ``edited``."""
        return cache_history.as_data(self.entries, self._known, every_kind=self.kind is not None)

    def __str__(self) -> str:
        if not self.entries:
            named = f" under the name {self.name!r}" if self.name else ""
            if not (named or self.kind):
                return "nothing is cached yet"
            return f"nothing{f' of the kind {self.kind!r}' if self.kind else ''} is cached{named}{self.near}"
        return "\n".join(cache_history.builds(self.entries, self._known, every_kind=self.kind is not None))


def info() -> CacheInfo:
    """Return how much is in the cache on disk."""
    cache = current_store()
    sizes: dict[str, list[int]] = {}
    for entry in cache.disk.entries():
        sizes.setdefault(entry.kind, []).append(entry.size)
    kinds = tuple(KindInfo(kind, len(sizes[kind]), sum(sizes[kind])) for kind in sorted(sizes))
    count, size = sum(each.entries for each in kinds), sum(each.bytes for each in kinds)
    settings = cache.settings
    levels = [("image", folder) for folder in settings.read_only]
    if settings.remote is not None:
        levels.append(("remote", str(settings.remote)))
    state = settings.directory, settings.on_disk, settings.verify, settings.max_bytes
    writable = not settings.on_disk or not cache.disk.why_unusable()
    emulator = cache.disk.bytes_in(EMULATOR)
    return CacheInfo(*state, count, size, kinds, tuple(levels), _usage(cache), writable, emulator)


def _usage(store: CacheStore) -> tuple[KindUsage, ...]:
    total = statistics.read(store.settings.directory) + store.statistics
    found: dict[str, dict[str, int]] = {}
    for (kind, origin), count in sorted(total.counts.items()):
        found.setdefault(kind, {})[origin] = count
    return tuple(
        KindUsage(
            kind,
            tuple((level, levels[level]) for level in _LEVELS if level in levels),
            levels.get("built", 0) + levels.get("missing", 0),
            total.saved(kind),
        )
        for kind, levels in found.items()
    )


@messages.suggest_names
def export_file(path: str | os.PathLike[str]) -> int:
    """Write all entries that other machines can use to a file, for `import_file`. Return how many.

    They are signed with the key in ``NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY``, if it is set. Raises `OSError` if the file
    cannot be written.
    """
    return entry_files.write_entries(messages.path("export_file()", path), current_store().disk, read_keys(os.environ))


@messages.suggest_names
def import_file(path: str | os.PathLike[str], *, trust: bool = False) -> int:
    """Put all entries of a file that `export_file` wrote into the cache. Return how many.

    They must be signed with the key in ``NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY``; with *trust*, anybody may have made
    the file, who then decides what runs in your kernels. Raises `ValueError` if the file is not one of entries or is
    not trusted, or not all entries can be written to the cache, and `OSError` if the file cannot be read.
    """
    path = messages.path("import_file()", path)
    if not os.path.exists(path):  # which is not one without a key
        raise missing_file("import_file()", path)
    entry_files.check_file(path)
    keys = None if trust else read_keys(os.environ)
    if keys == ():
        raise ValueError(
            f"{path} is not used: there is no key to tell who made it\n"
            f"  what to do: set {REMOTE_KEY} on both machines; or pass trust=True if you trust whoever made it"
        )
    return entry_files.read_entries(path, current_store(), keys)


def flush(timeout: float = 600.0) -> int:
    """Wait until all that was built is in the shared cache, at most *timeout* seconds. Return how many entries this
    process built and could not write there. A process that ends does not wait for a slow store."""
    of_type("timeout= of flush()", timeout, numbers.Real, "a number of seconds")
    if (remote := current_store().remote) is None:
        return 0
    unstored = remote.flush(timeout)
    remote.warn_of_writes()
    return unstored


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
    of_type("max_bytes= of prune()", max_bytes, numbers.Real, "a number of bytes")
    if max_bytes < 0:
        raise ValueError(f"prune(max_bytes={max_bytes}): a size in bytes cannot be negative")
    return cache.disk.prune(max_bytes)


def why(name: str, kind: str | None = None) -> History:
    """Return the entries on disk whose name contains *name*, of one *kind* or all. Printed, they show what changed.

    Names are as they are printed, of what is in a file also with its whole path: ``/project/kernels.py:scale``. A
    *name* that no entry has may be that of a file, function, module or value: the entries are of what contains it. Else
    it may be any part of a printed line."""
    of_type("name= of why()", name, str, "text")
    settings = current_store().settings
    levels = [current_store().disk]  # and those that are only read
    levels += (DiskEntries(dataclasses.replace(settings, directory=folder)) for folder in settings.read_only)
    entries = {entry.digest: entry for level in reversed(levels) for entry in level.entries()}
    known = cache_history.with_bases(entries.values())
    of_kind = [each for each in known if kind in (None, each.kind)]
    found = cache_history.find(of_kind, known, name, every_kind=kind is not None)
    near = cache_history.names_like(of_kind, name) if name and not found else ""
    latest = sorted(found, key=lambda entry: (entry.written, entry.digest), reverse=True)
    return History(name, tuple(latest), kind, near, tuple(known))
