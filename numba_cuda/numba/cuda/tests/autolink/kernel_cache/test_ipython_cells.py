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
SETUP = '''
import numpy as np
from numba import cuda
from numba.cuda import autolink

lib = autolink.cxx("""
    __device__ float add_one(float x) { return x + 1; }
""")
'''
KERNEL = """
@cuda.jit(cache=True)
def k(x):
    x[0] = lib.add_one(x[0]) + 3
"""
LAUNCH = "x = np.ones(4, np.float32); k[1, 1](x); print('x is', x[0])"


@pytest.fixture
def run(tmp_path):
    """Return what a new process of IPython prints that runs *cells*, or which ``cache why`` runs."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    environment |= {
        "NUMBA_CUDA_AUTOLINK_CACHE_DIR": str(tmp_path / "cache"),
        "NUMBA_CACHE_DIR": str(tmp_path / "numba"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "NUMBA_CUDA_AUTOLINK_EMULATE": "1",
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
