# SPDX-License-Identifier: BSD-2-Clause
"""One thing that ``doctor`` finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """*what* is wrong, how to *fix* it, and its *consequences*: what trials failed with.

    It is *about* packages by their names, parts of the toolkit by the names of the trials that look for them, `DRIVER`
    or `VARIABLES`. An error that has one of the *signs* in its text says the same.
    """

    what: str
    fix: str
    about: frozenset[str] = frozenset()
    signs: tuple[str, ...] = ()
    consequences: tuple[str, ...] = ()


DRIVER, VARIABLES = "driver", "variables"
