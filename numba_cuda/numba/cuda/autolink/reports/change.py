# SPDX-License-Identifier: BSD-2-Clause
"""`Change`: one difference between two reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

DEFAULT = "default"  # an option that is not given
NOT_KNOWN = "not known"


@dataclasses.dataclass(frozen=True)
class Change:
    """One difference: for which architecture, or ``"all"``, of what, before and now; ``None`` for what is only in one
    of the reports. Of an edit, and of a call that was added or removed, *what* is a sentence, and both are ``None``."""

    arch: str
    what: str
    before: str | None = None
    now: str | None = None

    @property
    def is_edit(self) -> bool:
        return self.before is None and self.now is None

    def __str__(self) -> str:
        before, now = ("nothing" if each is None else each for each in (self.before, self.now))
        return f"{self.arch}: {self.what}" if self.is_edit else f"{self.arch}: {self.what}: {before} → {now}"


def differing(arch: str, what: str, before: str | None, now: str | None) -> Iterator[Change]:
    if before != now:
        yield Change(arch, what, before, now)


def plain_option(text: str) -> str:
    """Return the *text* of an option, the same for one that is off and one that is not given."""
    return DEFAULT if text in ("False", "None") else text
