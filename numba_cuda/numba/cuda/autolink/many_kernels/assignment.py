# SPDX-License-Identifier: BSD-2-Clause
"""Which job builds what several jobs need, and which jobs wait for it.

Something is assigned to a job that was stopped at it, and such a job does nothing but build it next. No job is assigned
anything while it waits, so that no two wait for each other.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable


class Assignment:
    """The jobs that are ready for an attempt, by their numbers, and what each of them builds."""

    def __init__(self, count: int):
        self._ready = collections.deque(range(count))
        self._owners: dict[bytes, int] = {}
        self._finished: set[bytes] = set()
        self._waiting: dict[bytes, set[int]] = {}
        self._awaited: dict[int, set[bytes]] = {}  # by the job that waits
        self._assigned: dict[int, set[bytes]] = {}
        self._to_fetch: dict[int, set[bytes]] = {}

    def next(self) -> int | None:
        """Return the next job to attempt, or ``None`` while all wait or are attempted."""
        return self._ready.popleft() if self._ready else None

    def next_like(self, job: int) -> int | None:
        """Return the next job to attempt, if it builds something for others as *job* does, or nothing as that does."""
        if self._ready and bool(self._assigned.get(self._ready[0])) == bool(self._assigned.get(job)):
            return self._ready.popleft()
        return None

    @property
    def ready(self) -> int:
        """How many jobs can be attempted now."""
        return len(self._ready)

    def assigned(self, job: int) -> frozenset[bytes]:
        """Return the digests of what *job* builds."""
        return frozenset(self._assigned.get(job, ()))

    def to_fetch(self, job: int) -> frozenset[bytes]:
        """Return the digests of what others built for *job*."""
        return frozenset(self._to_fetch.get(job, ()))

    def built_before(self, digests: Iterable[bytes]) -> None:
        """Note that nobody has to build what has one of *digests*, unless somebody is to already."""
        self._finished.update(digest for digest in digests if digest not in self._owners)

    def stopped(self, job: int, left: Iterable[bytes], in_cache: bool) -> None:
        """Note that *job* was stopped at what is *left*.

        If something of it is finished, it is fetched for the job. If it was fetched before, or the job found nothing
        *in_cache*, the cache that all share, there is no entry of it, and the job builds it.
        """
        left = dict.fromkeys(left)
        self._finish(job, left)
        assigned, fetched = self._assigned.setdefault(job, set()), self._to_fetch.setdefault(job, set())
        awaited = set()
        for digest in left:
            is_finished = digest in self._finished
            owner = job if is_finished else self._owners.setdefault(digest, job)
            if is_finished and not in_cache and digest not in fetched:
                fetched.add(digest)
            elif owner == job:
                assigned.add(digest)
            else:
                awaited.add(digest)
                self._waiting.setdefault(digest, set()).add(job)
        if awaited and len(awaited) == len(left):
            self._awaited[job] = awaited
        else:
            for digest in awaited:
                self._waiting[digest].discard(job)
            self._ready.appendleft(job)

    def finished(self, job: int) -> None:
        """Note that *job* is built or has failed. What was assigned to it is built, or cannot be."""
        self._finish(job, ())
        self._assigned.pop(job, None)
        self._to_fetch.pop(job, None)

    def stop_waiting(self) -> bool:
        """Let the first job that waits build what it waits for; return whether there is one.

        That is needed only if a worker lacks what another one had, so that jobs wait for each other after all."""
        if not self._awaited:
            return False
        job = min(self._awaited)
        awaited = self._awaited.pop(job)
        for digest in awaited:
            self._waiting[digest].discard(job)
        self._assigned.setdefault(job, set()).update(awaited)
        self._ready.appendleft(job)
        return True

    def _finish(self, job: int, left: Iterable[bytes]) -> None:
        for digest in self._assigned.get(job, set()).difference(left) - self._finished:
            self._finished.add(digest)
            for waiting in sorted(self._waiting.pop(digest, ()), reverse=True):
                awaited = self._awaited[waiting]
                awaited.discard(digest)
                if not awaited:
                    del self._awaited[waiting]
                    self._ready.appendleft(waiting)
