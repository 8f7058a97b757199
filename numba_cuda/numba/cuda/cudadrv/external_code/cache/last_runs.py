# SPDX-License-Identifier: BSD-2-Clause
"""What the last run of a kernel used of the cache, with which its next build is compared.

Of each kernel, with its file, types and target, a small file has the keys that the last process used, and those of the
process before it. Only ``cache why`` and the log read them: nothing that is built depends on them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import NamedTuple

from .disk import RUNS, DiskEntries, write_file

RUN = os.urandom(8).hex()  # of this process, and of its forks
_MOST_USED = 64
_LONGEST = 1 << 16  # bytes


class _Used(NamedTuple):
    run: str
    used: tuple[str, ...]  # in hexadecimal; by this run, the latest last
    before: tuple[str, ...]  # by the run before it


class LastRuns:
    """What runs used of the entries on *disk*."""

    def __init__(self, disk: DiskEntries):
        self._disk = disk
        self._known: dict[tuple[str, ...], _Used] = {}  # as this run read it, or noted it since

    def note(self, subject: tuple[str, ...], digest: bytes) -> None:
        """Note that this run uses the entry with *digest*, which is a build of *subject*."""
        found, text = self._read(subject), digest.hex()
        before = found.before if found.run == RUN else found.used
        own = found.used if found.run == RUN else ()
        noted = _Used(RUN, (*(each for each in own if each != text), text)[-_MOST_USED:], before)
        self._known[subject] = noted
        if noted.used != found.used:  # else the next run reads the same
            self._write(subject, noted)

    def earlier(self, subject: tuple[str, ...]) -> tuple[list[bytes], list[bytes]]:
        """Return the digests of what the run before this one used of *subject*, and of what this one used so far."""
        found = self._read(subject)
        before, own = (found.before, found.used) if found.run == RUN else (found.used, ())
        return [*map(bytes.fromhex, before)], [*map(bytes.fromhex, own)]

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
                return _Used(str(read["run"]), tuple(used), tuple(before))
        return _Used("", (), ())

    def _write(self, subject: tuple[str, ...], used: _Used) -> None:
        with contextlib.suppress(OSError):
            if (path := self._path(subject)) is not None:
                write_file(path, json.dumps(used._asdict()).encode(), os.path.dirname(path))

    def _path(self, subject: tuple[str, ...]) -> str | None:
        folder = self._disk.private_folder(RUNS)
        return None if folder is None else os.path.join(folder, hashlib.sha256(repr(subject).encode()).hexdigest()[:32])
