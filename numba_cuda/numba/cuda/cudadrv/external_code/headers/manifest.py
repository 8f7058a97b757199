# SPDX-License-Identifier: BSD-2-Clause
"""The headers that a compile read, and whether it would read the same again.

A manifest holds every header with the state of its file and its content's digest, and where a header must not appear:
where one was looked for before it was found further on (a new file there would be read instead), or not found at all.
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
from typing import TYPE_CHECKING, Any

from .file_state import FileState, Header, file_state, is_settled

if TYPE_CHECKING:
    from .scan import Found

# Goes up when what a stored manifest means changes.
MANIFEST_FORMAT = "2"

# How long, in seconds, the headers of installed packages count as unchanged after a look at them.
PACKAGES_STAY = 1.0

_GONE: FileState = (-1, -1, -1, -1)


@dataclass(frozen=True)
class Absence:
    """No file of these *names* is below *base* (``""``: the working directory).

    One would show in the *states* of the directories *watched*, the deepest that exist on the way to it; where a
    dangling link leads out of these, the path is in *unwatched*.
    """

    base: str
    names: tuple[str, ...]
    watched: tuple[str, ...]
    states: tuple[FileState, ...]
    unwatched: tuple[str, ...] = ()

    @classmethod
    def of(cls, base: str, names: Iterable[str]) -> Absence | None:
        """Look for *names*; ``None`` if one is there."""
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
        states = tuple(map(_state, watched))  # first, so that what appears while we look shows later
        if any(file_state(os.path.join(base, name)) is not None for name in names):
            return None
        return cls(base, names, watched, states, tuple(unwatched))

    def is_settled(self, recorded: int) -> bool:
        """Whether any change after *recorded* shows in the states."""
        return not self.unwatched and all(is_settled(state, recorded) for state in self.states)

    def refreshed(self, recorded: int) -> Absence | None:
        """This absence, looked at again if it may have ended since *recorded*; ``None`` if it has."""
        if self.is_settled(recorded) and _are(self.watched, self.states):
            return self
        return Absence.of(self.base, self.names)


def _nearest_existing(folder: str) -> tuple[str, bool]:
    """The deepest existing directory of a path, and whether a dangling link is on the way."""
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
    """What a compile read, and where nothing may appear.

    Attributes
    ----------
    recorded:
        When the look at it all began, in nanoseconds.
    headers:
        What is read, sorted by path. More than what is really read does no harm.
    absences:
        What was looked for and not found.
    traced:
        Whether NVRTC reported headers that the texts do not tell.
    """

    recorded: int
    headers: Sequence[Header]
    absences: tuple[Absence, ...]
    traced: bool = False

    @classmethod
    def of(cls, found: Found, recorded: int, *, traced: bool = False) -> HeaderManifest | None:
        """What a scan found that began at *recorded*; ``None`` if files appeared meanwhile."""
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
        """Bytes of all headers."""
        return sum(size for size, *_ in self.states)

    @property
    def paths(self) -> Sequence[str]:
        """Those of all headers."""
        return self.headers.paths if isinstance(self.headers, _UnpackedHeaders) else [h.path for h in self.headers]

    @property
    def states(self) -> Sequence[FileState]:
        """Those of all headers."""
        return self.headers.states if isinstance(self.headers, _UnpackedHeaders) else [h.state for h in self.headers]

    @functools.cached_property
    def is_settled(self) -> bool:
        """Whether any change since it was recorded shows in a state. Not so for what was written just before."""
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
        """The same with the states of now, ``None`` if a header changed, is gone, or appeared where none was.

        What is neither touched nor too new is not read.
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
        """As JSON: paths split and shared, numbers and digests in one row each, to be read quickly."""
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
        """What was packed.

        Raises
        ------
        ValueError, KeyError, TypeError, IndexError
            If *data* is no packed manifest.
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
        vars(manifest).update(digest=content["digest"], is_settled=content["settled"])  # which are worked out once
        return manifest


class _UnpackedHeaders(Sequence[Header]):
    """Headers whose digests nobody has asked for yet."""

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

    def __getitem__(self, index: Any) -> Any:
        return self._headers[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._headers == tuple(other)

    __hash__ = None  # type: ignore[assignment]


class HeaderWatch:
    """A manifest, and what this process knows about it: `unchanged` takes about 1 ms for CUB's 400 headers, and next
    to nothing when it is asked again soon.

    Headers of installed packages (*packages*: their include directories, those of the CUDA toolkit above all) do not
    change under a running process but by hand: they are looked at again after `PACKAGES_STAY` seconds. All other
    headers are looked at each time.
    """

    def __init__(self, manifest: HeaderManifest, packages: Sequence[str] = ()):
        self._packages = tuple(os.path.join(folder, "") for folder in packages)
        self._package_folders = frozenset(packages)
        self._set(manifest)

    def unchanged(self) -> bool:
        """Whether a compile would read the same as when `manifest` was recorded; that then has the states of now."""
        if self.manifest.is_settled and _are(*self._own) and self._packages_are():
            return True
        refreshed = self.manifest.refreshed()
        if refreshed is None:
            return False
        self._set(refreshed)
        return True

    def _set(self, manifest: HeaderManifest) -> None:
        own: tuple[list[str], list[FileState]] = [], []
        packaged: tuple[list[str], list[FileState]] = [], []
        folders, prefixes = self._package_folders, self._packages
        for paths, states in (
            (manifest.paths, manifest.states),
            *((absence.watched, absence.states) for absence in manifest.absences),
        ):
            for path, state in zip(paths, states, strict=True):
                group = packaged if path.startswith(prefixes) or path in folders else own
                group[0].append(path)
                group[1].append(state)
        self.manifest = manifest
        self._own = own
        self._packaged = packaged
        self._packages_until = 0.0

    def _packages_are(self) -> bool:
        now = time.monotonic()
        if now < self._packages_until:
            return True
        until = later = now + PACKAGES_STAY
        for path, state in zip(*self._packaged, strict=True):
            seen = _seen_packaged.get(path)
            if seen is None or seen[0] <= now:
                seen = _seen_packaged[path] = later, _state(path)
            if seen[1] != state:
                return False
            if seen[0] < until:
                until = seen[0]
        self._packages_until = until
        return True


# Until when the states of installed packages' files count; manifests share most of these.
_seen_packaged: dict[str, tuple[float, FileState]] = {}


def _are(paths: Sequence[str], states: Sequence[FileState]) -> bool:
    return all(map(_is, paths, states))


def _is(path: str, state: FileState) -> bool:
    return _state(path) == state


def _state(path: str) -> FileState:
    """The state of a file or directory."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return _GONE
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


class _Table(dict[str, int]):
    """Numbers texts in order of their first use."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number


def _split(path: str) -> tuple[str, str]:
    """*path* in two parts that, put together, are exactly it."""
    start = max(path.rfind("/"), path.rfind(os.sep)) + 1
    return path[:start], path[start:]


def _flat(states: Iterable[FileState]) -> list[int]:
    return [number for state in states for number in state]


def _states(numbers: list[int]) -> Iterator[FileState]:
    fours = iter(numbers)
    return zip(fours, fours, fours, fours, strict=True)
