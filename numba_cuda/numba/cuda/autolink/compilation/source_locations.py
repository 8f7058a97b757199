# SPDX-License-Identifier: BSD-2-Clause
"""The names of notebook cells, for reports and errors: IPython keeps each cell as a file with a number for a name."""

from __future__ import annotations

import re
import sys

_CELL = re.compile(r"(?:.*[/\\])?ipykernel_\d+[/\\]\d+\.py|<ipython-input-.*>")


def cell_name(filename: str) -> str | None:
    """Return the name of the cell that *filename* stands for, as IPython's own messages have it: ``Cell In[3]``. In
    another process, or for a cell that ran before, it is ``notebook cell``. ``None`` for every other file."""
    if not _CELL.fullmatch(filename):
        return None
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda filename: None)(filename)
    return " ".join(named) if named else "notebook cell"


def shown_file(filename: str) -> str:
    """Return *filename*, or the name of the cell that it stands for."""
    return cell_name(filename) or filename
