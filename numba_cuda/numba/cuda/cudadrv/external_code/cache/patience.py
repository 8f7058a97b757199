# SPDX-License-Identifier: BSD-2-Clause
"""How long to wait for a shared cache: on average, at most 50 ms of each kernel's build are spent on waiting in vain.

Each build adds 50 ms to an account, which never holds more than half a second. Waiting that ends with an entry is free;
waiting that ends with nothing is paid. So a store that never answers costs 50 ms once. A store that has answered has
credit for half a second: it is used even if it answers slowly, as long as it has the entries; if it stops to answer,
that is paid by the next builds.
"""

from __future__ import annotations

import threading

PER_BUILD = 0.050  # seconds
MOST = 0.5
_MARGIN = 1.2  # an answer may take so much longer than the last ones did, for anybody to wait for it,
_MOST_TIMES, _LEAST = 4, 0.05  # and so many times as long, or so many seconds, until nobody waits any more
_FORGETTING = 0.99  # of what is expected, with each build: a store may become faster
_WEIGHT = 0.3  # of a faster answer in what is expected; a slower one counts at once


class Patience:
    """The account, of all threads of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._account = PER_BUILD
        self._expected = 0.0
        self._has_answered = False  # the last time

    def note_build(self) -> None:
        """Add what another kernel's build may cost."""
        with self._lock:
            self._account = min(MOST, self._account + PER_BUILD)
            self._expected *= _FORGETTING

    def longest_wait(self) -> float:
        """Return how many seconds to wait now; 0 if it is not worth it. They are taken from the account."""
        with self._lock:
            if self._account <= 0 or (self._expected * _MARGIN > self._account and not self._has_answered):
                return 0.0
            taken = min(MOST, max(_LEAST, self._expected * _MOST_TIMES)) if self._has_answered else self._account
            self._account -= taken
            return taken

    def waited(self, taken: float, seconds: float, *, found: bool) -> None:
        """Give back the rest of what was *taken*, after so many *seconds* of waiting; all of it if an entry was
        *found*."""
        with self._lock:
            rest = taken if found else max(0.0, taken - seconds)
            self._account = min(MOST, self._account + rest)

    def note_answer(self, seconds: float) -> None:
        """Note how long an answer took, whether or not anybody waited for it."""
        with self._lock:
            self._has_answered = True
            is_slower = seconds > self._expected
            self._expected += (seconds - self._expected) * (1.0 if is_slower else _WEIGHT)

    def note_no_answer(self, seconds: float) -> None:
        """Note that there was no answer after so many *seconds*."""
        with self._lock:
            self._has_answered = False
            self._expected = max(self._expected, seconds)
