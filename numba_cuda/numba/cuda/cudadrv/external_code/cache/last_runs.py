# SPDX-License-Identifier: BSD-2-Clause
"""What the last run of a kernel used of the cache, with which its next build is compared.

Of each kernel, with its file, types and target, a small file has the keys that the last run used, and those of the run
before it. A run is a process, with its forks and the workers that build for it. Only ``cache why`` and the log read
them: nothing that is built depends on them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import Any, NamedTuple

from .build_locks import BuildGuard
from .disk import LOCKS, RUNS, DiskEntries, write_file
from .entry import CacheKey, Facts, LineDigests, read_facts, read_lines

_run = os.urandom(8).hex()
_MOST_USED = 64
_LONGEST = 1 << 20  # bytes


def current_run() -> str:
    """Return what tells the run of this process from others."""
    return _run


def join_run(run: str) -> None:
    """Have this process, a worker, take part in the *run* of the process that it builds for."""
    global _run
    _run = run


class _Used(NamedTuple):
    run: str
    used: tuple[str, ...]  # in hexadecimal; by this run, the latest last
    before: tuple[str, ...]  # by the run before it
    # The lines that both read, where files were edited and that needed no build.
    lines: LineDigests = ()
    lines_before: LineDigests = ()
    # What both knew of entries, by their digests, where that is not what the entries say.
    facts: tuple[tuple[str, Facts], ...] = ()
    facts_before: tuple[tuple[str, Facts], ...] = ()


class LastRuns:
    """What runs used of the entries on *disk*, where the *guard* lets one process at a time write."""

    def __init__(self, disk: DiskEntries, guard: BuildGuard[Any]):
        self._disk, self._guard = disk, guard
        self._known: dict[tuple[str, ...], _Used] = {}  # as this run read it, or noted it since

    def note(self, key: CacheKey, *, has_built: bool) -> None:
        """Note that this run, which *has built* something, uses the entry under *key*, which has a subject; and its
        lines and facts, if these may have been edited since the last run."""
        subject, digest = key.subject, key.digest.hex()
        known = self._read(subject)
        if known == (noted := _with_use(known, digest)):
            return
        is_edited = has_built or self._is_edited(subject)
        if not is_edited and noted.used == known.used:  # of the last run: the next one reads the same
            self._known[subject] = noted
            return
        with self._guard.turn(_name(subject), self._disk.private_folder(LOCKS), lambda: None):
            found = self._read_file(subject)  # a worker of the same run may have written it since
            noted = _with_use(found if found.run == _run else known, digest)
            if is_edited:
                lines, facts = dict(noted.lines) | dict(key.lines()), dict(noted.facts) | {digest: key.facts()}
                entry = self._disk.entry(key.digest)
                if entry is None or entry.facts == facts[digest]:
                    del facts[digest]
                noted = noted._replace(lines=tuple(lines.items()), facts=tuple(facts.items()))
            self._known[subject] = noted
            self._write(subject, noted)

    def earlier(self, subject: tuple[str, ...]) -> tuple[list[bytes], list[bytes]]:
        """Return the digests of what the run before this one used of *subject*, and of what this one used so far."""
        found = self._read(subject)
        before, own = (found.before, found.used) if found.run == _run else (found.used, ())
        return [*map(bytes.fromhex, before)], [*map(bytes.fromhex, own)]

    def lines_before(self, subject: tuple[str, ...]) -> LineDigests:
        """Return digests of the lines that the run before this one read, of texts that were edited since a build."""
        found = self._read(subject)
        return found.lines_before if found.run == _run else found.lines

    def facts_before(self, subject: tuple[str, ...], digest: bytes) -> Facts:
        """Return what the run before this one knew of the entry with *digest*; nothing if that is what it says."""
        found = self._read(subject)
        return dict(found.facts_before if found.run == _run else found.facts).get(digest.hex(), ())

    def _is_edited(self, subject: tuple[str, ...]) -> bool:
        """Whether the file of the kernel was written since the last use was noted."""
        with contextlib.suppress(OSError):
            path = self._path(subject)
            return path is not None and os.stat(subject[1]).st_mtime > os.stat(path).st_mtime
        return False

    def _read(self, subject: tuple[str, ...]) -> _Used:
        if subject not in self._known:
            self._known[subject] = self._read_file(subject)
        return self._known[subject]

    def _read_file(self, subject: tuple[str, ...]) -> _Used:
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            if (path := self._path(subject)) is not None:
                with open(path, "rb") as file:
                    read = json.loads(file.read(_LONGEST))
                used, before = ([bytes.fromhex(each).hex() for each in read[name]] for name in ("used", "before"))
                lines, lines_before = (read_lines(read[name]) for name in ("lines", "lines_before"))
                facts, facts_before = (
                    tuple((str(digest), read_facts(each)) for digest, each in read[name])
                    for name in ("facts", "facts_before")
                )
                known = lines, lines_before, facts, facts_before
                return _Used(str(read["run"]), tuple(used), tuple(before), *known)
        return _Used("", (), ())

    def _write(self, subject: tuple[str, ...], used: _Used) -> None:
        with contextlib.suppress(OSError):
            if (path := self._path(subject)) is not None:
                text = json.dumps(used._asdict())
                if len(text) > _LONGEST:
                    text = json.dumps(used._replace(lines=(), lines_before=(), facts=(), facts_before=())._asdict())
                write_file(path, text.encode(), os.path.dirname(path))

    def _path(self, subject: tuple[str, ...]) -> str | None:
        folder = self._disk.private_folder(RUNS)
        return None if folder is None else os.path.join(folder, _name(subject).hex()[:32])


def _with_use(found: _Used, digest: str) -> _Used:
    if found.run != _run:
        facts = tuple((each, known) for each, known in found.facts if each in found.used)
        found = _Used(_run, (), found.used, found.lines, found.lines, facts, facts)
    return found._replace(used=(*(each for each in found.used if each != digest), digest)[-_MOST_USED:])


def _name(subject: tuple[str, ...]) -> bytes:
    return hashlib.sha256(repr(subject).encode()).digest()
