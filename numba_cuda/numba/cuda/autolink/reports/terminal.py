# SPDX-License-Identifier: BSD-2-Clause
"""A report in colour, for terminals, by means of rich."""

from __future__ import annotations

from rich.text import Text
from rich.tree import Tree

from .outline import Item, outline
from .records import KernelReport

_LABELS = ("bold", "bold cyan", "green", "blue", "magenta", "magenta")


def to_tree(report: KernelReport) -> Tree:
    """Return the report as a tree that rich prints."""
    whole = outline(report)
    tree = Tree(_line(whole, 0), guide_style="dim")
    for item in whole.below:
        _add(tree, item, 1)
    return tree


def _add(tree: Tree, item: Item, depth: int) -> None:
    branch = tree.add(_line(item, depth))
    for below in item.below:
        _add(branch, below, depth + 1)


def _line(item: Item, depth: int) -> Text:
    # Without markup and highlighting: names contain brackets and numbers.
    line = Text(item.label, style=_LABELS[min(depth, len(_LABELS) - 1)])
    if item.text:
        line.append("" if item.text.startswith("(") and depth else "  ", style="not bold")
        line.append(item.text, style="default not bold")
    return line
