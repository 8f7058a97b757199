# SPDX-License-Identifier: BSD-2-Clause
"""What kernel authors meet most says what to do, at the line of the mistake."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from autolink_support import build
from front_ends import front_end_named
from numba import cuda


def failing(function):
    with pytest.raises(Exception) as caught:
        build(cuda.jit(function), "void(float32[:, ::1])")
    return caught.value


def printed(error, capsys):
    sys.excepthook(type(error), error, error.__traceback__)
    return capsys.readouterr().err


def test_a_function_of_math_that_is_not_imported(capsys):
    def kernel(x):
        x[0, 0] = sqrt(x[0, 0])  # noqa: F821

    assert "\n  what to do: import math, and call math.sqrt" in printed(failing(kernel), capsys)


def test_linear_algebra_of_numpy(capsys):
    def kernel(x):
        x[0, 0] = np.linalg.norm(x)

    text = printed(failing(kernel), capsys)
    assert "Error: kernels have no linear algebra of NumPy\n  at: " in text
    assert "what to do: write it with loops" in text


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
@pytest.mark.parametrize("statement", ["x[0] = 1", "y = x[0]"])
def test_a_number_in_place_of_an_array(front_end, capsys, statement):
    names = {}
    exec(f"def kernel(x):\n    {statement}", names)
    with pytest.raises(Exception) as caught:
        build(front_end_named(front_end).cuda.jit(names["kernel"]), "void(int64)")
    assert "what to do: pass an array: numbers and None have no elements" in printed(caught.value, capsys)


@pytest.mark.parametrize(
    ("statement", "first", "todo"),
    [
        ("y = [1.0, 2.0]", "kernels have no lists", "make an array, with cuda.local.array or before the kernel"),
        (
            "y = (1, 2) == (1, x[0, 0])",
            "numba-cuda-mlir cannot compile a statement: ",
            "write that statement in another way",
        ),
    ],
)
def test_what_numba_cuda_mlir_calls_a_bug_is_at_its_statement(tmp_path, capsys, statement, first, todo):
    mlir = front_end_named("numba-cuda-mlir").cuda
    script = tmp_path / "kernel.py"
    script.write_text(f"def kernel(x):\n    {statement}\n    x[0, 0] = 1 if y else 2\n")
    names = {}
    exec(compile(script.read_text(), str(script), "exec"), names)
    with pytest.raises(Exception) as caught:
        build(mlir.jit(names["kernel"]), "void(float32[:, ::1])")
    text = printed(caught.value, capsys)
    assert first in text
    assert f"\n  at: {script}:2" in text and f"\n      {statement}\n      ^^^" in text
    assert f"\n  what to do: {todo}\n" in text
