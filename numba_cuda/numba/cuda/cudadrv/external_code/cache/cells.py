# SPDX-License-Identifier: BSD-2-Clause
"""What entries know of the notebook's cells that their kernels are in."""

from __future__ import annotations

from .entry import PLACE_OF, Facts

CELL = f"{PLACE_OF}kernel"  # the label of the name of the cell, such as ``In[4]``
LINES = "lines"  # the label of the lines of a function, and of the name that IPython has for its cell


def lines_in_cell(places: str, text: str, filename: str) -> str:
    """Return the fact for `LINES` of a function with instructions at these *places* in a cell with this *text*. Code
    with lines has the *filename* of the cell, which is another one in each process."""
    return f"{places}:{text} {filename}"


def is_named_otherwise(before: Facts, after: Facts) -> bool:
    """Return whether functions in cells are in cells with the text that they had, which IPython names otherwise."""
    old, new = ({of: value.split(" ") for of, label, value in facts if label == LINES} for facts in (before, after))
    changed = [(old[each], new[each]) for each in old.keys() & new.keys() if old[each] != new[each]]
    return bool(changed) and all(old[0] == new[0] and len(old) == len(new) == 2 for old, new in changed)
