# SPDX-License-Identifier: BSD-2-Clause
"""What the checks come to: a record, or an error that lists what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Check:
    """One check that was passed, or ``skipped`` for the reason that this tells."""

    name: str
    skipped: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {f'not checked: {self.skipped}' if self.skipped else 'yes'}"


@dataclass(frozen=True)
class LinkedCode:
    """One piece of code that the object returned: its kind, name, size in bytes, and SHA-256 of all that it is."""

    kind: str
    name: str
    size: int
    digest: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} ({self.size} bytes, SHA-256 {self.digest[:12]})"


@dataclass(frozen=True)
class Linkable:
    """An object that is linkable as it was called.

    Attributes
    ----------
    call:
        The call, as text.
    argtypes:
        The types that the object was asked with: the call's, defaults included.
    symbols:
        What the call wants defined.
    code:
        What the object returned, for each of the links that were tried, without what is the same.
    checks:
        What was checked, in order.
    """

    call: str
    argtypes: tuple[Any, ...]
    symbols: tuple[str, ...]
    code: tuple[LinkedCode, ...]
    checks: tuple[Check, ...]

    def __str__(self) -> str:
        lines = [f"{self.call} is linkable", *(f"  {check}" for check in self.checks)]
        return "\n".join([*lines, *(f"  links {code}" for code in self.code)])


@dataclass(frozen=True)
class Wrong:
    """A check that was not passed."""

    name: str
    got: str
    expected: str
    todo: str

    def __str__(self) -> str:
        parts = ("got", self.got), ("expected", self.expected), ("what to do", self.todo)
        return "\n".join([self.name, *(f"  {label}: {_indented(text)}" for label, text in parts)])


def _indented(text: str) -> str:
    return text.strip().replace("\n", "\n    ")


class NotLinkableError(AssertionError):
    """An object is not linkable as it was called; ``wrong`` are the checks that it did not pass."""

    def __init__(self, call: str, wrong: tuple[Wrong, ...], checks: tuple[Check, ...]):
        self.wrong = wrong
        self.checks = checks
        passed = sum(not check.skipped for check in checks)
        count = f"{len(wrong)} of {len(wrong) + passed} checks failed"
        text = [f"{call} is not linkable: {count}"]
        for number, each in enumerate(wrong, 1):
            first, *rest = str(each).splitlines()
            text += [f"  {number}. {first}", *(f"     {line}" for line in rest)]
        not_checked = [f"  {check}" for check in checks if check.skipped]
        super().__init__("\n".join([*text, *not_checked]))
