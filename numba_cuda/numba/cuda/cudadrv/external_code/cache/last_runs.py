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


class _Run(NamedTuple):
    """What a run used of a kernel's entries, their keys in hexadecimal, the latest last; by these keys, the lines that
    it read, where files were edited and that needed no build, and what it knew, where that is not what the entries say;
    of those that it used, the states; and those that it and earlier runs used, the latest last."""

    run: str = ""
    used: tuple[str, ...] = ()
    lines: tuple[tuple[str, LineDigests], ...] = ()
    facts: tuple[tuple[str, Facts], ...] = ()
    states: tuple[tuple[str, str], ...] = ()
    recent: tuple[str, ...] = ()


class _Noted(NamedTuple):
    last: _Run = _Run()
    before: _Run = _Run()  # the run before it


class LastRuns:
    """What runs used of the entries on *disk*, where the *guard* lets one process at a time write."""

    def __init__(self, disk: DiskEntries, guard: BuildGuard[Any]):
        self._disk, self._guard = disk, guard
        self._known: dict[tuple[str, ...], _Noted] = {}  # as this run read it, or noted it since

    def note(self, key: CacheKey, *, has_built: bool) -> None:
        """Note that this run, which *has built* something, uses the entry under *key*, which has a subject; and its
        lines and facts, if these may have been edited since the last run."""
        subject, digest = key.subject, key.digest.hex()
        known, state = self._read(subject), key.state()
        if known == (noted := _with_use(known, digest, state)):
            return
        is_edited = has_built or dict(known.last.states).get(digest) != state
        if not is_edited and noted.last.used == known.last.used:  # of the last run: the next one reads the same
            self._known[subject] = noted
            return
        with self._guard.turn(_name(subject), self._disk.private_folder(LOCKS), lambda: None):
            found = self._read_file(subject)  # a worker of the same run may have written it since
            noted = _with_use(found if found.last.run == _run else known, digest, state)
            if is_edited:
                own = noted.last
                lines = dict(own.lines) | {digest: key.lines()}
                facts = dict(own.facts) | {digest: key.facts()}
                entry = self._disk.entry(key.digest)
                if entry is None or entry.lines == lines[digest]:
                    del lines[digest]
                if entry is None or entry.facts == facts[digest]:
                    del facts[digest]
                noted = noted._replace(last=own._replace(lines=tuple(lines.items()), facts=tuple(facts.items())))
            self._known[subject] = noted
            self._write(subject, noted)

    def earlier(self, subject: tuple[str, ...]) -> tuple[list[bytes], list[bytes]]:
        """Return the digests of what the run before this one used of *subject*, and of what this one used so far."""
        last = self._read(subject).last
        own = last.used if last.run == _run else ()
        return [*map(bytes.fromhex, self._before(subject).used)], [*map(bytes.fromhex, own)]

    def recent(self, subject: tuple[str, ...]) -> list[bytes]:
        """Return the digests of what runs before this one used of *subject*, the latest last."""
        return [*map(bytes.fromhex, self._before(subject).recent)]

    def known_before(self, subject: tuple[str, ...], digest: bytes) -> tuple[Facts, LineDigests]:
        """Return what the run before this one knew of the entry with *digest*, and digests of the lines that it read of
        texts that were edited since the build; nothing if that is what the entry says."""
        before = self._before(subject)
        return dict(before.facts).get(digest.hex(), ()), dict(before.lines).get(digest.hex(), ())

    def _before(self, subject: tuple[str, ...]) -> _Run:
        found = self._read(subject)
        return found.before if found.last.run == _run else found.last

    def _read(self, subject: tuple[str, ...]) -> _Noted:
        if subject not in self._known:
            self._known[subject] = self._read_file(subject)
        return self._known[subject]

    def _read_file(self, subject: tuple[str, ...]) -> _Noted:
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            if (path := self._path(subject)) is not None:
                with open(path, "rb") as file:
                    read = json.loads(file.read(_LONGEST))
                return _Noted(*(_read_run(read[name]) for name in _Noted._fields))
        return _Noted()

    def _write(self, subject: tuple[str, ...], noted: _Noted) -> None:
        with contextlib.suppress(OSError):
            if (path := self._path(subject)) is not None:
                text = _text(noted)
                if len(text) > _LONGEST:
                    text = _text(_Noted(*(each._replace(lines=(), facts=()) for each in noted)))
                write_file(path, text.encode(), os.path.dirname(path))

    def _path(self, subject: tuple[str, ...]) -> str | None:
        folder = self._disk.private_folder(RUNS)
        return None if folder is None else os.path.join(folder, _name(subject).hex()[:32])


def _read_run(read: Any) -> _Run:
    used = tuple(bytes.fromhex(each).hex() for each in read["used"])
    facts = tuple((str(digest), read_facts(each)) for digest, each in read["facts"])
    states = tuple((str(digest), str(state)) for digest, state in read["states"])
    lines = tuple((str(digest), read_lines(each)) for digest, each in read["lines"])
    recent = tuple(bytes.fromhex(each).hex() for each in read["recent"])
    return _Run(str(read["run"]), used, lines, facts, states, recent)


def _text(noted: _Noted) -> str:
    return json.dumps({name: each._asdict() for name, each in noted._asdict().items()})


def _with_use(found: _Noted, digest: str, state: str) -> _Noted:
    last, before = found
    if last.run != _run:
        lines = tuple(each for each in last.lines if each[0] in last.used)
        facts = tuple(each for each in last.facts if each[0] in last.used)
        before = last._replace(lines=lines, facts=facts)
        last = before._replace(run=_run, used=())
    used, recent = (
        (*(each for each in some if each != digest), digest)[-_MOST_USED:] for some in (last.used, last.recent)
    )
    states = dict(last.states) | {digest: state}
    kept = tuple(each for each in states.items() if each[0] in (*used, *before.used))
    return _Noted(last._replace(used=used, states=kept, recent=recent), before)


def _name(subject: tuple[str, ...]) -> bytes:
    return hashlib.sha256(repr(subject).encode()).digest()
