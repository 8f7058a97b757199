# SPDX-License-Identifier: BSD-2-Clause
"""How many jobs a worker gets at once: one, unless the parent cannot start tasks as fast as the workers end them."""

from __future__ import annotations

import math

_TASK = 0.001  # seconds of the parent and its scheduler for one task; Dask's takes about as long
_IDLE = 2  # chunks are so many times as long as the parent needs to start one on each worker
# Seconds of an attempt, before any has ended: one that stops, and one that compiles.
_STOPPED, _COMPILED = 0.025, 1.0
_WEIGHT = 0.1  # of an attempt in the average


class ChunkSizes:
    """The sizes of the next chunks, from the time that attempts took so far.

    Attempts that build what several jobs need take much longer than others, and so have an average of their own.
    """

    def __init__(self) -> None:
        self._averages: dict[bool, float] = {}

    def note(self, seconds: float, *, builds: bool) -> None:
        """Note that an attempt took so many *seconds*, and whether it was to build something for several jobs."""
        before = self._averages.get(builds, seconds)
        self._averages[builds] = before + _WEIGHT * (seconds - before)

    def next(self, ready: int, workers: int | None, *, builds: bool) -> int:
        """Return how many of the jobs that are *ready* make a chunk for one of so many *workers*; one if their number
        is not known."""
        if not workers:
            return 1
        average = max(_TASK, self._averages.get(builds, _COMPILED if builds else _STOPPED))
        # The time in which the parent starts all chunks, ready / size * _TASK, and that of one, size * average, are
        # shortest together where they are equal.
        best = round(math.sqrt(ready * _TASK / average))
        if builds not in self._averages:  # a wrong guess must not leave workers idle
            best = ready // workers
        return max(1, min(math.ceil(_IDLE * workers * _TASK / average), best))
