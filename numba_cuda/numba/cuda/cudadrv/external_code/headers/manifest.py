# SPDX-License-Identifier: BSD-2-Clause
"""The record of the headers that a compile read, which shows whether it would read the same again.

A manifest holds every header with the state of its file and the digest of its content, and every place where a header
must not appear: where one was looked for and found further on (a new file would be read instead), or not found at all.
As in ccache's direct mode, nothing is read while all states are the same; where states differ, contents decide.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from numba_cuda_autolink.files import read_with_status

from .file_state import Absences, FileState, Header, all_unchanged, is_settled, state_in, state_of, this_machine
from .search_roots import Alternative, SearchRoots

# Raised when the meaning of a stored manifest changes.
MANIFEST_FORMAT = "10"

# How long, in seconds, the headers of installed packages count as unchanged after a look at them.
PACKAGES_INTERVAL = 1.0

# The states of installed packages' files, and until when they count; manifests share most of these files.
_seen_packaged: dict[str, tuple[float, FileState]] = {}


@dataclass(frozen=True)
class HeaderManifest:
    """The headers that a compile read, and where none may appear."""

    recorded: int  # when recording began, in nanoseconds
    # SHA-256 of the names of all that was looked up, in the directories where that is done, and of the headers'
    # contents, as hexadecimal digits.
    digest: str
    headers: tuple[Header, ...]  # sorted by path; others than those that are really read do no harm
    absences: Absences  # what was looked for and not found

    @classmethod
    def of(
        cls, headers: Iterable[Header], absent: Mapping[str, str], roots: SearchRoots, recorded: int
    ) -> HeaderManifest | None:
        """Record the *headers* that a compile that began at *recorded* has read, and the names *absent*, joined by
        zeros, by folder, that it did not find; return ``None`` if files appeared there meanwhile."""
        if (absences := Absences.of(absent)) is None:
            return None
        headers = tuple(sorted(headers))
        named = sorted((os.fsencode(roots.name(header.path)), header) for header in headers)
        digest = hashlib.sha256(repr(roots.layout).encode("utf-8", "surrogatepass"))
        same = _same_files([header for _, header in named])
        for (spelled, header), first in zip(named, same, strict=True):
            digest.update(b"%d %s %d %s" % (len(spelled), spelled, first, bytes.fromhex(header.sha256)))
        for where, names in sorted((roots.name(f"{folder}/"), names) for folder, names in absent.items()):
            digest.update(os.fsencode("\0".join((" absent", where, names, "\0"))))
        return cls(recorded, digest.hexdigest(), headers, absences)

    @classmethod
    def of_alternative(cls, known: Alternative, roots: SearchRoots) -> HeaderManifest | None:
        """Return the manifest of what *known* names, found in *roots*; ``None`` if a file has another content, is not
        there, or is there and was not."""
        now = time.time_ns()
        try:
            # The user's own files differ most often.
            files = sorted(
                ((roots.path(name), sha256) for name, sha256 in known.files),
                key=lambda each: roots.is_packaged(each[0]),
            )
            headers = []
            for path, sha256 in files:
                header = read_header(path)
                if header.sha256 != sha256:
                    return None
                headers.append(header)
            absent = {roots.path(folder).removesuffix("/"): names for folder, names in known.absent}
            return cls.of(headers, absent, roots, now)
        except (OSError, ValueError):
            return None

    def alternative(self, roots: SearchRoots, places: str) -> Alternative:
        """Return what the manifest has for other machines, where *places* stands for its paths."""
        files = tuple((roots.name(header.path), header.sha256) for header in self.headers)
        absent = tuple((roots.name(f"{folder}/"), names) for folder, names in self.absences.names)
        return Alternative(files, absent, places)

    @property
    def size(self) -> int:
        """The size of all headers, in bytes."""
        return sum(header.state[0] for header in self.headers)

    @functools.cached_property
    def is_settled(self) -> bool:
        """Whether any later change shows in a state. A change of a file written just before the record may not."""
        recorded = self.recorded
        headers = all([is_settled(header.state, recorded) for header in self.headers])
        return headers and self.absences.is_settled(recorded)

    def refreshed(self) -> HeaderManifest | None:
        """Return the same headers with their current states; ``None`` if one changed, is gone or has appeared.

        Files that were neither touched nor too new are not read.
        """
        now = time.time_ns()
        headers = []
        for header in self.headers:
            if state_of(header.path) != header.state or not is_settled(header.state, self.recorded):
                try:
                    again = read_header(header.path)
                except (OSError, ValueError):
                    return None
                if again.sha256 != header.sha256:
                    return None
                header = again
            headers.append(header)
        if _same_files(headers) != _same_files(self.headers):
            return None
        if (absences := self.absences.refreshed(self.recorded)) is None:
            return None
        return dataclasses.replace(self, recorded=now, headers=tuple(headers), absences=absences)

    @functools.cached_property
    def packed(self) -> bytes:
        """The manifest as two lines of JSON: the files, which many manifests share, and the rest."""
        rest = (self.recorded, self.digest, self.is_settled, this_machine())
        texts: dict[str, int] = {}  # many folders are searched for the same names
        absent = [(folder, texts.setdefault(names, len(texts))) for folder, names in self.absences.names]
        files = (self.headers, list(texts), absent, self.absences.watched, self.absences.has_links)
        lines = [json.dumps(part, separators=(",", ":")) for part in (files, rest)]
        return "\n".join(lines).encode()

    @classmethod
    def unpacked(cls, data: bytes) -> HeaderManifest:
        """Return the manifest that was packed. Raise `ValueError`, `TypeError` or `LookupError` if *data* is not
        one.

        The states of another machine's files say nothing of those here: then nothing is settled, and all is read.
        """
        files, _, rest = data.partition(b"\n")
        recorded, digest, settled, machine = json.loads(rest)
        is_ours = machine == this_machine()
        headers, absences = _unpacked_files(files)
        manifest = cls(recorded if is_ours else 0, digest, headers, absences)
        vars(manifest)["is_settled"] = settled and is_ours  # as if computed before
        return manifest


@functools.lru_cache(32)  # the units of one library have the same files
def _unpacked_files(data: bytes) -> tuple[tuple[Header, ...], Absences]:
    headers, texts, absent, watched, has_links = json.loads(data)
    names = tuple((folder, texts[number]) for folder, number in absent)
    return (
        tuple([Header(path, tuple(state), sha256) for path, state, sha256 in headers]),
        Absences(names, tuple((path, tuple(state)) for path, state in watched), has_links),
    )


def _same_files(headers: Sequence[Header]) -> list[int]:
    """Return, for each header, the number of the first that is the same file: ``#pragma once`` takes links for one."""
    first: dict[tuple[int, str], int] = {}
    return [first.setdefault((header.state[3], header.sha256), number) for number, header in enumerate(headers)]


# The headers that this process has read or has a record of, most of them the toolkit's, and when each was read.
_read_before: dict[str, tuple[int, Header]] = {}
_MOST_REMEMBERED = 20_000
_LARGEST = 256 << 20  # bytes of a header


def read_header(path: str, state: FileState | None = None) -> Header:
    """Return the header at *path*, read now unless this process knows it and it is unchanged: its state, or the *state*
    that it has had, is the same. Raise `OSError` if it is not a regular file that can be read, or is too large."""
    known = _read_before.get(path)
    if known is not None and is_settled(known[1].state, known[0]) and known[1].state == (state or state_of(path)):
        return known[1]
    return read_text(path)[0]


def read_text(path: str) -> tuple[Header, bytes]:
    """Return the header at *path*, read now, and its content. Raise `OSError` as `read_header`."""
    now = time.time_ns()
    content, status = read_with_status(path, _LARGEST)  # from before reading, so that a change during it shows later
    header = Header(path, state_in(status), hashlib.sha256(content).hexdigest())
    remember(now, (header,))
    return header, content


def remember(at: int, headers: Iterable[Header]) -> None:
    """Remember *headers* that were read at the time *at*, for `read_header`."""
    if len(_read_before) >= _MOST_REMEMBERED:
        _read_before.clear()
    _read_before.update((header.path, (at, header)) for header in headers)


class HeaderWatch:
    """A manifest, and when its headers were last looked at in this process.

    Headers below *packages*, the include directories of the CUDA toolkit and of other installed packages, rarely change
    while a process runs: they are looked at again after `PACKAGES_INTERVAL` seconds. All other headers are looked at
    each time. *seen* is when those of packages were looked at, in seconds of the clock `time.monotonic`.
    """

    def __init__(self, manifest: HeaderManifest, packages: Sequence[str], seen: float = -PACKAGES_INTERVAL):
        self._packages = tuple(os.path.join(folder, "") for folder in packages)
        self._set(manifest)
        self._files.until = max(self._files.until, seen + PACKAGES_INTERVAL)

    def unchanged(self) -> bool:
        """Whether a compile would read the same as when `manifest` was recorded, which then has the current states.

        It takes about 1 ms for CUB's 400 headers, and next to nothing when it is asked again soon.
        """
        manifest = self.manifest
        if not (manifest.is_settled and all_unchanged(self._files.own) and self._files.packaged_unchanged()):
            refreshed = manifest.refreshed()
            if refreshed is None:
                return False
            self._set(refreshed)
        return True

    def _set(self, manifest: HeaderManifest) -> None:
        self.manifest = manifest
        self._files = _watched_files(manifest.headers, manifest.absences, self._packages)


@dataclass
class _WatchedFiles:
    """The paths and states of *own* files, and of *packaged* ones, which count as unchanged *until* a time."""

    own: list[tuple[str, FileState]]
    packaged: list[tuple[str, FileState]]
    until: float = 0.0

    def packaged_unchanged(self) -> bool:
        now = time.monotonic()
        if now < self.until:
            return True
        until = later = now + PACKAGES_INTERVAL
        for path, state in self.packaged:
            seen = _seen_packaged.get(path)
            if seen is None or seen[0] <= now:
                seen = _seen_packaged[path] = later, state_of(path)
            if seen[1] != state:
                return False
            if seen[0] < until:
                until = seen[0]
        self.until = until
        return True


@functools.lru_cache(32)  # the units of one library have the same files
def _watched_files(headers: tuple[Header, ...], absences: Absences, packages: tuple[str, ...]) -> _WatchedFiles:
    known = [*((header.path, header.state) for header in headers), *absences.watched]
    files = _WatchedFiles([], [])
    for each in known:
        (files.packaged if (each[0] + os.sep).startswith(packages) else files.own).append(each)
    return files
