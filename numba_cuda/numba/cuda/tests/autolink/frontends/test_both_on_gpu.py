# SPDX-License-Identifier: BSD-2-Clause
"""Kernels of both front ends on a GPU, in one process: the results of ``benchmarks/second_front_end.py``."""

from __future__ import annotations

import subprocess
import sys

import pytest
from repository import BENCHMARKS

SCRIPT = BENCHMARKS / "second_front_end.py"


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["numba first", "mlir first"])
def test_the_same_objects_give_right_results_in_kernels_of_both(mlir, order):
    done = subprocess.run([sys.executable, str(SCRIPT), "--order", order], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-8000:]}"
