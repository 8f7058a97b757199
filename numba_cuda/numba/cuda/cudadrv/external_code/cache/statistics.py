# SPDX-License-Identifier: BSD-2-Clause
"""How often things were found in the cache and where, and how long building them took: of this process, and of all.

Each process adds a line to a file of the cache directory when it ends. The numbers are for people; nothing depends on
them.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from numba_cuda_autolink.files import NO_LINK, open_regular

FILE_NAME = "statistics"
_LARGEST = 1 << 20  # bytes from which on the file is summed up


@dataclass
class Statistics:
    """How often something of each kind came from each level of the cache or was built, and the seconds that building
    took."""

    counts: collections.Counter[tuple[str, str]] = field(default_factory=collections.Counter)
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, kind: str, origin: str, seconds: float) -> None:
        self.counts[kind, origin] += 1
        if origin == "built":
            self.seconds[kind] = self.seconds.get(kind, 0.0) + seconds

    def saved(self, kind: str) -> float:
        """Return the seconds that hits of *kind* saved, if each had taken as long to build as those that were built."""
        built = self.counts[kind, "built"]
        hits = sum(count for (of_kind, origin), count in self.counts.items() if of_kind == kind and origin != "built")
        return hits * self.seconds.get(kind, 0.0) / built if built else 0.0

    def __add__(self, other: Statistics) -> Statistics:
        kinds = {**self.seconds, **other.seconds}
        seconds = {kind: self.seconds.get(kind, 0.0) + other.seconds.get(kind, 0.0) for kind in kinds}
        return Statistics(self.counts + other.counts, seconds)

    def packed(self) -> str:
        counts = [[*key, count] for key, count in sorted(self.counts.items())]
        return json.dumps({"counts": counts, "seconds": self.seconds}, separators=(",", ":")) + "\n"

    @classmethod
    def unpacked(cls, lines: Iterable[str]) -> Statistics:
        """Return the sum of *lines*; those that cannot be read count nothing."""
        total = cls()
        for line in lines:
            with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
                content = json.loads(line)
                counts = {(str(kind), str(origin)): int(count) for kind, origin, count in content["counts"]}
                seconds = {str(kind): float(each) for kind, each in content["seconds"].items()}
                total = total + cls(collections.Counter(counts), seconds)
        return total


def read(folder: str) -> Statistics:
    try:
        with open(os.path.join(folder, FILE_NAME), encoding="utf-8", errors="replace", opener=_opener) as file:
            return Statistics.unpacked(file.read(4 * _LARGEST).splitlines())
    except OSError:
        return Statistics()


def leave(folder: str, statistics: Statistics) -> None:
    if not statistics.counts:
        return
    with contextlib.suppress(OSError):
        path = os.path.join(folder, FILE_NAME)
        if os.path.exists(path) and os.path.getsize(path) > _LARGEST:
            statistics = read(folder) + statistics
            os.unlink(path)
        with open(path, "a", encoding="utf-8", opener=_opener) as file:
            file.write(statistics.packed())


def _opener(path: str, flags: int) -> int:
    return open_regular(path, flags | NO_LINK)
