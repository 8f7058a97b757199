# SPDX-License-Identifier: BSD-2-Clause
"""What an emulated launch says to do keeps the results of the kernel: copies are copied back, and arrays of another
number of dimensions share their memory."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda
from numba.cuda import autolink

import numba_cuda_autolink


def doubling(signature):
    @cuda.jit
    def kernel(x):
        i = cuda.grid(1)
        if i < x.size:
            x.flat[i] = 2 * x.flat[i]

    return autolink.build(kernel, signature, cc=(9, 0)).emulate


def remedy_of(launch, *args) -> str:
    with pytest.raises(numba_cuda_autolink.FinishedKernelError) as caught:
        launch(*args)
    return str(caught.value).partition("\n  what to do: ")[2]


BACK = "and if the kernel writes to it, copy back with x[...] = x_copy"


@pytest.mark.parametrize(
    ("signature", "x", "remedy"),
    [
        ("void(float32[::1])", np.ones(6, np.float32)[::2], f"x_copy = np.ascontiguousarray(x), {BACK}"),
        ("void(float32[::1, :])", np.ones((2, 3), np.float32), f"x_copy = np.asfortranarray(x), {BACK}"),
        ("void(float32[::1])", np.ones(3), f"pass x_copy = x.astype(np.float32), {BACK}"),
    ],
)
def test_a_copy_is_copied_back(signature, x, remedy):
    launch = doubling(signature)[1, 32]
    said = remedy_of(launch, x)
    assert remedy in said
    names = {"np": np, "x": x}
    exec(said[said.index("x_copy = ") :].partition(",")[0], names)
    launch(names["x_copy"])
    x[...] = names["x_copy"]
    assert (x == 2).all()


@pytest.mark.parametrize(
    ("signature", "shape", "written", "passed"),
    [
        ("void(float32[::1])", (2, 3), "x.reshape(-1)", "x.reshape(-1)"),
        ("void(float32[:, ::1])", (6,), "x.reshape(rows, columns)", "x.reshape(2, 3)"),
    ],
)
def test_an_array_of_another_number_of_dimensions_is_reshaped(signature, shape, written, passed):
    launch, x = doubling(signature)[1, 32], np.ones(shape, np.float32)
    assert remedy_of(launch, x).startswith(f"pass {written}, which is the same memory")
    launch(eval(passed))
    assert (x == 2).all()


def test_a_grid_of_no_blocks_and_a_launch_without_sizes_say_what_to_write():
    emulate = doubling("void(float32[::1])")
    assert "launch kernel only where there is work" in remedy_of(lambda: emulate[0, 32])
    with pytest.raises(
        numba_cuda_autolink.LaunchError, match=r"\n  expected: linked\.emulate\[grid, block\]\(\.\.\.\)"
    ):
        emulate(np.ones(3, np.float32))


def test_a_null_pointer_is_named():
    lib = autolink.cxx("__device__ float third(const float* p) { return p[2]; }")

    @cuda.jit
    def kernel(x):
        x[0] = lib.third(None)

    with pytest.raises(numba_cuda_autolink.FaultError) as caught:
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0)).emulate[1, 1](np.ones(1, np.float32))
    assert str(caught.value).startswith("A read of 4 bytes through a null pointer\n")
    assert "\n  address: 0x8, 8 bytes after null\n" in str(caught.value)
    assert "\n  what to do: pass an array, which None is not" in str(caught.value)
