# SPDX-License-Identifier: BSD-2-Clause
"""What the checks of an object have found so far."""

from __future__ import annotations

from .records import Check, FailedCheck, NotLinkableError


class Findings:
    """The checks that passed or were skipped, and those that failed, in order."""

    def __init__(self, call: str):
        self.call = call
        self._checks: list[Check] = []
        self._failed: list[FailedCheck] = []

    def ok(self, name: str) -> bool:
        """Add a check that passed. Return True."""
        self._checks.append(Check(name))
        return True

    def skip(self, name: str, why: str) -> bool:
        """Add a check that could not be made. Return True."""
        self._checks.append(Check(name, why))
        return True

    def fail(self, name: str, got: str, expected: str, todo: str) -> bool:
        """Add a check that failed. Return False."""
        self._failed.append(FailedCheck(name, got, expected, todo))
        return False

    def error(self) -> NotLinkableError:
        """Return the error that lists the checks that failed."""
        return NotLinkableError(self.call, tuple(self._failed), tuple(self._checks))

    def checks(self) -> tuple[Check, ...]:
        """Return the checks that passed or were skipped.

        Raises
        ------
        NotLinkableError
            If a check failed.
        """
        if self._failed:
            raise self.error()
        return tuple(self._checks)
