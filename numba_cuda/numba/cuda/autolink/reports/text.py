# SPDX-License-Identifier: BSD-2-Clause
"""A report as plain text."""

from __future__ import annotations

from collections.abc import Iterator

from .outline import Item, outline
from .records import KernelReport


def to_text(report: KernelReport) -> str:
    """Return the report as indented lines."""
    return "\n".join(_lines(outline(report), 0))


def _lines(item: Item, depth: int) -> Iterator[str]:
    separator = "" if item.text.startswith("(") and depth else ": " if item.label and item.text else ""
    yield f"{'  ' * depth}{item.label}{separator}{item.text}"
    for below in item.below:
        yield from _lines(below, depth + 1)
