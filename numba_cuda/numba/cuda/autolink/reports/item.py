# SPDX-License-Identifier: BSD-2-Clause
"""`Item`: a line of the outline of a report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """A line: a label that may be highlighted, the text after it, and the items below it. *facts* is whether the text
    is facts with commas between them, of which none is broken."""

    label: str
    text: str = ""
    below: tuple[Item, ...] = ()
    facts: bool = False
