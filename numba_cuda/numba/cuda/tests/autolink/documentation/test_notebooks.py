# SPDX-License-Identifier: BSD-2-Clause
"""The notebooks of the documentation run, and show what their cells print and return."""

import ast
import importlib.util
import json
import sys

import pytest
from repository import DOCS, module

NOTEBOOKS = sorted(DOCS.glob("*.ipynb"))


def named(path):
    return path.stem


@pytest.mark.thorough
@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
def test_cells_print_and_return_what_the_notebook_shows(path, monkeypatch):
    if importlib.util.find_spec("nbclient") is None:
        pytest.skip('needs nbclient: pip install ".[docs]"')
    notebooks = module(DOCS, "notebooks")
    shown = {cell.id: notebooks.comparable(cell) for cell in notebooks.nbformat.read(path, as_version=4).cells}
    printed = {cell.id: notebooks.comparable(cell) for cell in notebooks.run(path).cells}
    assert printed == shown, "run python docs/notebooks.py"
    assert sum(map(bool, shown.values())) > 5


@pytest.mark.thorough
@pytest.mark.gpu(emulated=True)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
def test_cells_that_launch_return_what_the_notebook_shows(path, tmp_path, monkeypatch):
    """Without Jupyter, which a machine with a GPU may lack."""
    names = {"__name__": "__main__"}
    compared = 0
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        tags = cell["metadata"].get("tags", ())
        if cell["cell_type"] != "code" or "raises-exception" in tags or "plot" in tags:
            continue
        source = tmp_path / f"cell_{number}.py"  # cuda.jit reads the source
        source.write_text("".join(cell["source"]))
        tree = ast.parse(source.read_text())
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, source, "exec"), names)
        value = eval(compile(ast.Expression(last.value), source, "eval"), names) if last else None
        if "gpu" in tags:
            assert repr(value) == "".join(cell["outputs"][0]["data"]["text/plain"]), f"cell {number} of {path.name}"
            compared += 1
    assert compared


@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
def test_notebooks_are_stored_with_their_outputs_and_without_paths(path):
    text = path.read_text()
    for path_of_a_machine in ("ipykernel_", "/tmp/", "/home/", str(DOCS), sys.prefix):
        assert path_of_a_machine not in text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert any(cell["outputs"] for cell in cells)
    assert [cell["execution_count"] for cell in cells] == [None] * len(cells)
    assert all(cell["outputs"] for cell in cells if "gpu" in cell["metadata"].get("tags", ()))
