# SPDX-License-Identifier: BSD-2-Clause
"""The outline of a report as plain text, and in colour for terminals."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .item import Item
from .outline import outline
from .records import KernelReport

if TYPE_CHECKING:
    from rich.tree import Tree

# The spaces in a number with its unit, and in facts with commas between them.
_IN_AMOUNT, _IN_FACT = re.compile(r"(?<=\d) (?=(?:µs|ms|s|bytes?|[KMG]iB)\b)"), re.compile(r"(?<![,:]) ")
_NO_BREAK = "\0"
WIDTH = 80  # characters of a line, unless a name is longer
_INDENT, _GUIDE = 2, 4  # characters before what is below an item, in text and in a tree
_LABELS = ("bold", "bold cyan", "green", "blue", "magenta")


def to_text(report: KernelReport, width: int = WIDTH) -> str:
    """Return the text of *report*, in lines of *width* characters unless a name is longer."""
    return "\n".join(_lines(outline(report, width - _INDENT), 0, width))


def _lines(item: Item, depth: int, width: int) -> Iterator[str]:
    indent, line = " " * _INDENT * depth, f"{item.label}{_separator(item, depth)}{item.text}"
    whole_names = textwrap.TextWrapper(width, indent, f"{indent}    ", break_long_words=False, break_on_hyphens=False)
    whole = _IN_FACT if item.facts else _IN_AMOUNT
    yield from (each.replace(_NO_BREAK, " ") for each in whole_names.wrap(whole.sub(_NO_BREAK, line)))
    for below in item.below:
        yield from _lines(below, depth + 1, width)


def _separator(item: Item, depth: int) -> str:
    if item.text.startswith("(") and depth:
        return ""
    if item.text.startswith("at "):
        return " "
    return ": " if item.label and item.text else ""


def to_tree(report: KernelReport, width: int = WIDTH) -> Tree:
    return _tree(outline(report, width - _GUIDE), 0)


def _tree(item: Item, depth: int) -> Tree:
    from rich.text import Text  # rich is only needed on terminals
    from rich.tree import Tree

    # Without markup and highlighting: names contain brackets and numbers.
    line = Text(item.label, style=_LABELS[min(depth, len(_LABELS) - 1)])
    if item.text:
        line.append("" if item.text.startswith("(") and depth else "  ", style="not bold")
        line.append(item.text, style="default not bold")
    tree = Tree(line, guide_style="dim")
    tree.children += [_tree(below, depth + 1) for below in item.below]
    return tree
