# SPDX-License-Identifier: BSD-2-Clause
"""Kernels of ``cache=True`` in the cells of IPython, which are in no file."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("IPython")
SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="NoColor")
for cell in sys.argv[1:]:
    shell.run_cell(cell, store_history=True).raise_error()
"""
SETUP = '''\
import numpy as np
from numba import cuda
from numba.cuda import autolink

lib = autolink.cxx("""
    __device__ float add_one(float x) { return x + 1; }
""")
'''
KERNEL = """\
@cuda.jit(cache=True)
def k(x):
    x[0] = lib.add_one(x[0]) + 3
"""
LAUNCH = "x = np.ones(4, np.float32); k[1, 1](x); print('x is', x[0])"


@pytest.fixture
def run(tmp_path, request):
    """Return what a new process of IPython prints that runs *cells*, or which ``cache why`` runs."""
    variables = getattr(request, "param", {})
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    environment |= variables | {
        "NUMBA_CUDA_AUTOLINK_CACHE_DIR": str(tmp_path / "cache"),
        "NUMBA_CACHE_DIR": str(tmp_path / "numba"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "NUMBA_CUDA_AUTOLINK_EMULATE": "1",
        "COLUMNS": "200",
    }

    def run(*arguments):
        command = [sys.executable, *arguments]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_a_kernel_of_a_cell_that_calls_cxx_by_name_is_built_and_cached(run):
    for _ in range(2):
        assert run("-c", SHELL, SETUP, KERNEL, LAUNCH) == "x is 5.0\n"
    assert run("-m", "numba_cuda_autolink", "cache", "why").count("first build") == 1


def why(run, *arguments):
    """Return the lines of ``cache why``, without times."""
    return [line[29:] for line in run("-m", "numba_cuda_autolink", "cache", "why", *arguments).splitlines()]


PLAIN = "@cuda.jit\ndef k(x):\n    x[0] = lib.add_one(x[0]) + 3\n"


@pytest.mark.parametrize(("kernel", "shown"), [(KERNEL, "k (cache=True)"), (PLAIN, "k")])
def test_a_cell_that_was_edited_and_ran_again_is_compared_with_the_last_one_of_that_name(run, kernel, shown):
    edited = kernel.replace("+ 3", "* 3")
    run("-c", SHELL, SETUP, kernel, LAUNCH, edited, LAUNCH)
    line = edited.splitlines().index("    x[0] = lib.add_one(x[0]) * 3") + 1
    expected = [f"In[4]:{shown} changed: line {line}", f"In[2]:{shown}: first build"]
    assert why(run) == expected
    assert why(run, "k") == expected and why(run, "In[4]:k") == expected[:1]
    run("-c", SHELL, "1", SETUP, edited, LAUNCH)  # another process, and another number of the same cell
    assert why(run) == [f"In[3]:{shown}: IPython has another name for its cell (line information)", *expected]
    run("-c", SHELL, SETUP, kernel, LAUNCH, kernel.replace("+ 3", "- 3"), LAUNCH)
    assert why(run)[0] == f"In[4]:{shown} changed: line {line}"
    (compared,) = [line for line in run("-m", "numba_cuda_autolink", "cache", "why", "-v", "In[4]").splitlines()][2:3]
    assert "compared with" in compared


def test_what_else_is_edited_in_cells_is_told_with_its_cell(run):
    device = "@cuda.jit\ndef half(x):\n    return x / 2\n"
    kernel = PLAIN.replace("+ 3", "+ half(N)")
    others = SETUP.replace("x + 1", "x - 1"), device.replace("x / 2", "x * 0.5"), "N = 4", f"# new\n{kernel}"
    cells = [each for other in others for each in (other, kernel, LAUNCH)]
    run("-c", SHELL, SETUP, device, "N = 3", kernel, LAUNCH, *cells[:-2], LAUNCH)
    assert why(run) == [
        "In[15]:k: In[15] changed: line 1 (line information)",
        "In[13]:k: value N: 3 -> 4",
        "In[10]:k: half changed: line 3",
        "In[7]:k: inline C++ changed: line 6 of In[6]",
        "In[4]:k: first build",
    ]


@pytest.mark.parametrize("run", [{"JPY_SESSION_NAME": "/nowhere/waves.ipynb"}], indirect=True)
def test_a_kernel_has_the_name_of_its_notebook_where_jupyter_tells_it(run):
    run("-c", SHELL, SETUP, KERNEL, LAUNCH)
    assert why(run) == ["waves.ipynb In[2]:k (cache=True): first build"]


def test_in_a_jupyter_kernel(run, tmp_path):
    pytest.importorskip("nbclient"), pytest.importorskip("ipykernel")
    script = (
        "import sys, nbformat, nbclient\n"
        "cells = [nbformat.v4.new_code_cell(each) for each in sys.argv[1:]]\n"
        "nbclient.NotebookClient(nbformat.v4.new_notebook(cells=cells), kernel_name='python3').execute()\n"
    )
    for _ in range(2):
        run("-c", script, SETUP, KERNEL, LAUNCH, KERNEL.replace("+ 3", "* 3"), LAUNCH)
    first = ["In[4]:k (cache=True) changed: line 3", "In[2]:k (cache=True): first build"]
    named = "k (cache=True): IPython has another name for its cell (line information)"
    assert why(run) == [first[0], f"In[2]:{named}", *first]
