# SPDX-License-Identifier: BSD-2-Clause
"""The record of the headers that a compile read, which shows whether it would read the same again.

A manifest holds every header with the state of its file and the digest of its content, and every place where a header
must not appear: where one was looked for and found further on (a new file would be read instead), or not found at all.
As in ccache's direct mode, nothing is read while all states are the same; where states differ, contents decide.
"""

from __future__ import annotations

import binascii
import dataclasses
import functools
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from .file_state import FileState, Header, all_unchanged, file_state, is_settled, path_state

if TYPE_CHECKING:
    from .scan import Found

# Raised when the meaning of a stored manifest changes.
MANIFEST_FORMAT = "2"


@dataclass(frozen=True)
class Absence:
    """No file with any of these *names* exists below *base* (``""``: the working directory).

    A new one would change the *states* of the directories *watched*, the deepest that exist on the way to it. A path
    that leads out of these through a dangling link is in *unwatched*.
    """

    base: str
    names: tuple[str, ...]
    watched: tuple[str, ...]
    states: tuple[FileState, ...]
    unwatched: tuple[str, ...] = ()

    @classmethod
    def of(cls, base: str, names: Iterable[str]) -> Absence | None:
        """Look for *names* below *base*; return ``None`` if one exists."""
        names = tuple(names)
        nearest: dict[str, tuple[str, bool]] = {}
        unwatched = []
        for name in names:
            path = os.path.join(base, name)
            folder = os.path.dirname(path)
            if folder not in nearest:
                nearest[folder] = _nearest_existing(folder)
            if nearest[folder][1] or os.path.islink(path):
                unwatched.append(path)
        watched = tuple(dict.fromkeys(folder for folder, _ in nearest.values()))
        states = tuple(map(path_state, watched))  # first, so that a file that appears meanwhile shows later
        if any(file_state(os.path.join(base, name)) is not None for name in names):
            return None
        return cls(base, names, watched, states, tuple(unwatched))

    def is_settled(self, recorded: int) -> bool:
        """Whether any change after *recorded* shows in the states."""
        return not self.unwatched and all(is_settled(state, recorded) for state in self.states)

    def refreshed(self, recorded: int) -> Absence | None:
        """Look again if a file may have appeared since *recorded*; return ``None`` if one has."""
        if self.is_settled(recorded) and all_unchanged(self.watched, self.states):
            return self
        return Absence.of(self.base, self.names)


def _nearest_existing(folder: str) -> tuple[str, bool]:
    """Return the deepest existing directory of a path, and whether a dangling link is on the way."""
    dangling = False
    while folder and not os.path.isdir(folder):
        dangling |= os.path.islink(folder)
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return folder or os.curdir, dangling


@dataclass(frozen=True)
class HeaderManifest:
    """The headers that a compile read, and where none may appear.

    Attributes
    ----------
    recorded:
        When recording began, in nanoseconds.
    headers:
        The headers, sorted by path; others than those that are really read do no harm.
    absences:
        What was looked for and not found.
    traced:
        Whether NVRTC reported headers that the texts do not show.
    """

    recorded: int
    headers: Sequence[Header]
    absences: tuple[Absence, ...]
    traced: bool = False

    @classmethod
    def of(cls, found: Found, recorded: int, *, traced: bool = False) -> HeaderManifest | None:
        """Record what was *found* by a scan that began at *recorded*; return ``None`` if files appeared meanwhile."""
        absences = []
        for base, names in found.absent.items():
            absence = Absence.of(base, names)
            if absence is None:
                return None
            absences.append(absence)
        headers = tuple(found.headers[path] for path in sorted(found.headers))
        return cls(recorded, headers, tuple(absences), traced)

    @property
    def size(self) -> int:
        """The size of all headers in bytes."""
        return sum(size for size, *_ in self.states)

    @property
    def paths(self) -> Sequence[str]:
        """The paths of all headers."""
        return self.headers.paths if isinstance(self.headers, _UnpackedHeaders) else [h.path for h in self.headers]

    @property
    def states(self) -> Sequence[FileState]:
        """The states of all headers."""
        return self.headers.states if isinstance(self.headers, _UnpackedHeaders) else [h.state for h in self.headers]

    @functools.cached_property
    def is_settled(self) -> bool:
        """Whether any later change shows in a state. A change of a file written just before the record may not."""
        recorded = self.recorded
        return all([is_settled(header.state, recorded) for header in self.headers]) and all(
            absence.is_settled(recorded) for absence in self.absences
        )

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the headers' paths and contents, as hexadecimal digits."""
        digest = hashlib.sha256()
        for header in self.headers:
            path = os.fsencode(header.path)
            digest.update(b"%d %s %s" % (len(path), path, header.sha256))
        return digest.hexdigest()

    def refreshed(self) -> HeaderManifest | None:
        """Return the same headers with their current states; ``None`` if one changed, is gone or has appeared.

        Files that were neither touched nor too new are not read.
        """
        from .scan import read_header

        now = time.time_ns()
        headers = []
        for header in self.headers:
            state = file_state(header.path)
            if state != header.state or not is_settled(header.state, self.recorded):
                try:
                    again, _ = read_header(header.path)
                except (OSError, ValueError):
                    return None
                if again.sha256 != header.sha256:
                    return None
                header = again
            headers.append(header)
        absences = []
        for absence in self.absences:
            still = absence.refreshed(self.recorded)
            if still is None:
                return None
            absences.append(still)
        return dataclasses.replace(self, recorded=now, headers=tuple(headers), absences=tuple(absences))

    def packed(self) -> bytes:
        """Return the manifest as JSON that is read quickly: paths split and shared, numbers and digests in one row."""
        folders, names = _Table(), _Table()
        split = [_split(header.path) for header in self.headers]
        content = {
            "digest": self.digest,
            "settled": self.is_settled,
            "recorded": self.recorded,
            "traced": self.traced,
            "in": [folders[folder] for folder, _ in split],
            "headers": [name for _, name in split],
            "states": _flat(header.state for header in self.headers),
            "sha256": binascii.b2a_base64(b"".join(header.sha256 for header in self.headers), newline=False).decode(),
            "absent": [
                [a.base, [names[name] for name in a.names], a.watched, _flat(a.states), a.unwatched]
                for a in self.absences
            ],
            "folders": list(folders),
            "names": list(names),
        }
        return json.dumps(content, separators=(",", ":")).encode()

    @classmethod
    def unpacked(cls, data: bytes) -> HeaderManifest:
        """Return the manifest that was packed.

        Raises
        ------
        ValueError, KeyError, TypeError, IndexError
            If *data* is not a packed manifest.
        """
        content = json.loads(data)
        folders, names = content["folders"], content["names"]
        paths = [folders[number] + name for number, name in zip(content["in"], content["headers"], strict=True)]
        headers = _UnpackedHeaders(paths, list(_states(content["states"])), content["sha256"])
        absences = [
            Absence(base, tuple([names[n] for n in numbers]), tuple(watched), tuple(_states(states)), tuple(unwatched))
            for base, numbers, watched, states, unwatched in content["absent"]
        ]
        manifest = cls(content["recorded"], headers, tuple(absences), content["traced"])
        vars(manifest).update(digest=content["digest"], is_settled=content["settled"])  # as if computed before
        return manifest


class _UnpackedHeaders(Sequence[Header]):
    """Headers whose digests are decoded when they are needed."""

    def __init__(self, paths: list[str], states: list[FileState], sha256: str):
        if len(paths) != len(states):
            raise ValueError("a manifest has as many paths as states")
        self.paths = paths
        self.states = states
        self._sha256 = sha256

    @functools.cached_property
    def _headers(self) -> tuple[Header, ...]:
        rows = binascii.a2b_base64(self._sha256)
        digests = [rows[start : start + 32] for start in range(0, len(rows), 32)]
        return tuple(map(Header._make, zip(self.paths, self.states, digests, strict=True)))

    def __len__(self) -> int:
        return len(self.paths)

    @overload
    def __getitem__(self, index: int) -> Header: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Header]: ...
    def __getitem__(self, index: int | slice) -> Header | Sequence[Header]:
        return self._headers[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._headers == tuple(other)

    __hash__ = None  # type: ignore[assignment]


class _Table(dict[str, int]):
    """Numbers for texts, in order of their first use."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number


def _split(path: str) -> tuple[str, str]:
    """Return directory and name, which together are exactly *path*."""
    start = max(path.rfind("/"), path.rfind(os.sep)) + 1
    return path[:start], path[start:]


def _flat(states: Iterable[FileState]) -> list[int]:
    return [number for state in states for number in state]


def _states(numbers: list[int]) -> Iterator[FileState]:
    fours = iter(numbers)
    return zip(fours, fours, fours, fours, strict=True)
