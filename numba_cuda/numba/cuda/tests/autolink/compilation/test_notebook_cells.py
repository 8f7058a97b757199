# SPDX-License-Identifier: BSD-2-Clause
"""Reports and errors name the cells of notebooks as IPython does."""

import sys
import types

import pytest
from autolink_support import Linked, build
from numba.cuda import autolink

from numba_cuda_autolink.emulator.diagnosis import source_lines
from numba_cuda_autolink.emulator.parser import Location, Text
from numba_cuda_autolink.source_locations import with_lines

CELL, SHELL = "/tmp/ipykernel_4711/3251308860.py", "<ipython-input-5-ab>"


@pytest.fixture
def notebook(monkeypatch):
    """IPython, as reports and errors see it in the process of a notebook."""
    numbers = {CELL: 3, SHELL: 5}
    named = types.SimpleNamespace(
        format_code_name=lambda name: ("Cell", f"In[{numbers[name]}]") if name in numbers else None
    )
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(compile=named, showtraceback=None)
    monkeypatch.setitem(sys.modules, "IPython", ipython)


def run_in_cell(source, **names):
    exec(compile(source, CELL, "exec"), names)
    return names["kernel"]


def test_a_report_names_the_cell_of_a_call_and_links_to_no_file(notebook):
    report = build(run_in_cell("def kernel(x):\n    x[0] = f(x[0])\n", f=Linked("in_a_cell").function)).report
    assert "at: Cell In[3]:2" in str(report)
    page = report.to_html()
    assert ">Cell In[3]:2<" in page
    assert "ipykernel" not in page


def test_an_error_names_the_cell(notebook):
    class Missing(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("nowhere", returns=x)

        def __numba_cuda_link__(self, x):
            return []

    kernel = run_in_cell("def kernel(x):\n    x[0] = f(x[0])\n", f=Missing())
    with pytest.raises(autolink.LinkError, match=r"called at: Cell In\[3\]:2 in kernel"):
        build(kernel)


@pytest.mark.parametrize("prefix", ["", "/folder/"])
def test_a_fault_and_what_it_is_inlined_at_name_the_cell(notebook, prefix):
    text = Text("", 0)
    text.files[1] = f"{prefix}{SHELL}"
    (line,) = source_lines(text, Location(1, 2, 3))
    assert with_lines("A fault", (line, f"{CELL}:7")) == "A fault\n  at: Cell In[5]:2\n  inlined at: Cell In[3]:7"


def test_a_cell_of_another_process_is_still_known_as_one():
    report = build(run_in_cell("def kernel(x):\n    x[0] = f(x[0])\n", f=Linked("in_another_cell").function)).report
    assert "at: notebook cell:2" in str(report)
