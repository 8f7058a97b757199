# SPDX-License-Identifier: BSD-2-Clause
"""What kernel authors meet most says what to do, at the line of the mistake."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from autolink_support import build
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
