# SPDX-License-Identifier: BSD-2-Clause
"""How long to wait for a shared cache: each build has a budget, and never waits longer than that for nothing.

Waiting that ends with an entry is free; all other waiting is taken from the budget of the build. A store that takes
longer to answer than a build may wait is not waited for. It is asked one question at a time all the same, while the
build goes on: what comes before it is built is used, and all else is kept for the next builds.
"""

from __future__ import annotations

import weakref

from .. import timeline
from ..fork_lock import fork_lock

PER_BUILD = 0.050  # seconds
_MARGIN = 1.2  # an answer may take so much longer than the last ones did, for anybody to wait for it
_WEIGHT = 0.3  # of a faster answer in what is expected; a slower one counts at once
_MOST_EXPECTED = 4  # times the budget: so that a store which stalled once is soon trusted to answer again


class Budget:
    """The seconds that one build may still wait in vain. Its threads may wait at the same time, which counts once."""

    def __init__(self, seconds: float):
        self.left = seconds
        self._waiting = 0
        self._since = 0.0  # what has been waited from then on is not taken from the budget yet

    def rest(self, now: float) -> float:
        """Return how long a question may wait that is asked *now*."""
        return self.left - (now - self._since if self._waiting else 0.0)

    def begin(self, now: float) -> None:
        """Note that a question begins to wait."""
        if not self._waiting:
            self._since = now
        self._waiting += 1

    def end(self, now: float, *, found: bool) -> None:
        """Note that a question waits no longer, and whether it *found* an entry."""
        if found:
            self._since = now
        self._waiting -= 1
        if not self._waiting:
            self.left = max(0.0, self.left - (now - self._since))


class Wait:
    """The *seconds* that one question may wait, from the *budget* of its build."""

    def __init__(self, budget: Budget, seconds: float):
        self.seconds = seconds
        self._budget = budget

    def end(self, now: float, *, found: bool) -> None:
        """Note that it waits no longer."""
        if self.seconds:
            with _lock:
                self._budget.end(now, found=found)


_lock = fork_lock()


class Patience:
    """The budgets of all builds of a process, each of *per_build* seconds, and what is known of the store."""

    def __init__(self, per_build: float = PER_BUILD):
        self.per_build = per_build
        self._budgets: weakref.WeakKeyDictionary[timeline.Timeline, Budget] = weakref.WeakKeyDictionary()
        self._expected = 0.0
        self.has_answered = False

    @property
    def is_too_slow(self) -> bool:
        """Whether the store's answers are expected to take longer than a build may wait."""
        return self._expected * _MARGIN > self.per_build

    def wait(self, now: float) -> Wait:
        """Begin to wait for a question of the build in progress; of none, the question counts as a build. The wait has
        0 seconds if it is not worth it."""
        with _lock:
            budget = self._budget()
            rest = budget.rest(now)
            if rest <= 0 or self._expected * _MARGIN > rest:
                return Wait(budget, 0.0)
            budget.begin(now)
            return Wait(budget, rest)

    def _budget(self) -> Budget:
        if (build := timeline.outermost()) is None:
            return Budget(self.per_build)
        return self._budgets.setdefault(build, Budget(self.per_build))

    def note_answer(self, seconds: float) -> None:
        """Note how long an answer took, whether or not anybody waited for it."""
        self.has_answered = True
        seconds = min(seconds, _MOST_EXPECTED * self.per_build)
        with _lock:
            weight = 1.0 if seconds > self._expected else _WEIGHT
            self._expected += (seconds - self._expected) * weight

    def note_no_answer(self, seconds: float) -> None:
        """Note that there was no answer after so many *seconds*."""
        with _lock:
            self._expected = max(self._expected, seconds)
