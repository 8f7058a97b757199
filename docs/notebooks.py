# SPDX-License-Identifier: BSD-2-Clause
"""Run the notebooks of the documentation, docs/*.ipynb, and store what their cells print and show.

python docs/notebooks.py            # needs pip install ".[docs]"
"""

from __future__ import annotations

import copy
import os
import re
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

DOCS = Path(__file__).resolve().parent
NOTEBOOKS = sorted(DOCS.glob("*.ipynb"))

# Numba's warnings of small launches and of copies, which a first launch need not read.
_QUIET = ("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "NUMBA_CUDA_WARN_ON_IMPLICIT_COPY")
_SECONDS = 300  # that a cell may take
# The files in which IPython keeps cells, and what else differs from run to run: colours, times, sizes, the machine.
_CELL_FILE = re.compile(r"(?:file://)?[\w./-]*ipykernel_\d+/\d+\.py")
_VARYING = re.compile(r"\x1b\[[\d;]*m|\b[\d.]+ (?:µs|ms|s|KiB|bytes)\b|^no GPU: .*\n", re.MULTILINE)


def main() -> None:
    """Run all notebooks, each with an empty cache, and write them."""
    for path in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["NUMBA_CUDA_AUTOLINK_CACHE_DIR"] = folder
            nbformat.write(run(path), path)


def run(path: Path) -> nbformat.NotebookNode:
    """Return the notebook of *path* with new outputs.

    Raises nbclient's `CellExecutionError` if a cell fails that has no tag ``raises-exception``.
    """
    os.environ.update(dict.fromkeys((*_QUIET, "NUMBA_CUDA_AUTOLINK_PROGRESS"), "0"))
    notebook = nbformat.read(path, as_version=4)
    executed = copy.deepcopy(notebook)
    NotebookClient(executed, timeout=_SECONDS, kernel_name="python3", coalesce_streams=True).execute()
    for cell, ran in zip(notebook.cells, executed.cells, strict=True):
        if cell.cell_type == "code":
            cell.outputs = [_portable(output) for output in ran.outputs]
    return notebook


def comparable(cell: nbformat.NotebookNode) -> list[str]:
    """Return the outputs of a cell as texts, without what differs from run to run."""
    texts = (_VARYING.sub("", _text(output)) for output in cell.get("outputs", ()))
    return [text for text in texts if text]


def _text(output: nbformat.NotebookNode) -> str:
    if output.output_type == "stream":
        return str(output.text)
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    return str(output.data["text/plain"])


def _portable(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return an output without the paths of this machine and without the number of its execution."""
    if output.output_type == "error":
        output.evalue, *output.traceback = (
            _CELL_FILE.sub("cell.py", text) for text in (output.evalue, *output.traceback)
        )
    elif output.output_type == "execute_result":
        output.execution_count = None
        output.data = {kind: _CELL_FILE.sub("cell.py", text) for kind, text in output.data.items()}
    return output


if __name__ == "__main__":
    main()
