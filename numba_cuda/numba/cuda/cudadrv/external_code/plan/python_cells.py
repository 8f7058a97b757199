# SPDX-License-Identifier: BSD-2-Clause
"""Python functions that are in cells of notebooks and of the shell of IPython, as the cache's history describes them.

The file that IPython has for a cell is in no folder, and another one after each edit. A kernel is one of its notebook,
whichever cell it is in; its lines are those of the cell.
"""

from __future__ import annotations

import dataclasses
import linecache
import os
import re

from numba_cuda_autolink.source_locations import cell_name

from ..cache.cells import CELL, LINES, lines_in_cell
from ..cache.entry import FILE, PLACE_OF, Facts, LineDigests, digests_of_lines
from .python_functions import PythonFunction, PythonKernel

_NUMBER_OF_CELL = re.compile(r"(?<=<ipython-input-)\d+-")
_UNKNOWN = "notebook cell"  # what `cell_name` says of a cell of another process


def notebook_of(filename: str) -> str | None:
    """Return the path that stands for the notebook, or the shell of IPython, that *filename* is a cell of: that of the
    notebook, where Jupyter tells it, or else ``notebook`` or ``ipython`` in the working directory. ``None`` for a file.
    """
    if cell_name(filename) is None:
        return None
    name = os.environ.get("JPY_SESSION_NAME") or ("ipython" if filename.startswith("<") else "notebook")
    return os.path.abspath(name)


def place_of_kernel(filename: str) -> str:
    """Return the path by which the last builds of a kernel in *filename* are found, in every process."""
    return notebook_of(filename) or os.path.abspath(filename)


def text_name(filename: str) -> str:
    """Return the name of a file, or of the text of a cell, whatever its number is."""
    return _NUMBER_OF_CELL.sub("", os.path.basename(filename))


def lines_of_cell(filename: str) -> LineDigests:
    """Return digests of the lines of a cell; nothing for a file, or if they are not known."""
    notebook, lines = notebook_of(filename), linecache.getlines(filename)
    return ((f"{FILE}{os.path.basename(notebook)}", digests_of_lines("".join(lines))),) if notebook and lines else ()


def as_in_notebook(kernel: PythonKernel) -> PythonKernel:
    """Return a *kernel* with those of its functions that are in cells as functions of their notebooks."""
    if all(notebook_of(each.path) is None for each in kernel.functions):
        return kernel
    known = {each.name: getattr(kernel, each.name) for each in dataclasses.fields(kernel)}
    return _NotebookKernel(**(known | {"functions": tuple(map(_as_of_cell, kernel.functions))}))


def _as_of_cell(function: PythonFunction) -> PythonFunction:
    if (notebook := notebook_of(function.path)) is None:
        return function
    known = {each.name: getattr(function, each.name) for each in dataclasses.fields(function)}
    return _CellFunction(**(known | {"path": notebook}), cell=function.path)


@dataclasses.dataclass(frozen=True)
class _CellFunction(PythonFunction):
    """A function whose *path* stands for a notebook, in the *cell* that IPython has this file name for."""

    cell: str = ""

    def facts(self, name: str, *, with_lines: bool) -> Facts:
        named = ((name, LINES, lines_in_cell(self.places, text_name(self.cell), self.cell)),) if with_lines else ()
        return (*super().facts(name, with_lines=False), *named)

    def _lines_of_file(self) -> list[str]:
        return linecache.getlines(self.cell)


class _NotebookKernel(PythonKernel):
    """A kernel with functions in cells."""

    @property
    def paths(self) -> list[str]:
        cells = {each.path for each in self.functions if isinstance(each, _CellFunction)}
        return [each for each in super().paths if each not in cells]

    def facts(self, *, with_lines: bool) -> Facts:
        own = self.functions[0]
        cell = (cell_name(own.cell) or _UNKNOWN) if isinstance(own, _CellFunction) else _UNKNOWN
        number = () if cell == _UNKNOWN else (("", CELL, cell.removeprefix("Cell ")),)
        # Where functions are that it closes over, of which the files of cells do not tell another process.
        facts = ((of, label, _in_notebook(label, value)) for of, label, value in super().facts(with_lines=with_lines))
        return (*facts, *number)

    def find_text(self, text: str) -> tuple[str, int] | None:
        for cell in _cells()[::-1]:  # the latest that ran
            before, *others = "".join(linecache.getlines(cell)).split(text)
            if len(others) == 1:
                return (cell_name(cell) or _UNKNOWN).removeprefix("Cell "), before.count("\n") + 1
        return super().find_text(text)

    def lines(self) -> LineDigests:
        own = self.functions[0]
        return (*super().lines(), *(lines_of_cell(own.cell) if isinstance(own, _CellFunction) else ()))


def _in_notebook(label: str, value: str) -> str:
    """Return the *value* of a fact, if it is a place in a cell without the name of the cell's file."""
    if not label.startswith(PLACE_OF):
        return value
    file, _, line = value.partition(":")
    return f"line {line}" if any(text_name(each) == text_name(file) for each in _cells()) else value


def _cells() -> list[str]:
    return [each for each in tuple(linecache.cache) if cell_name(each) is not None]
