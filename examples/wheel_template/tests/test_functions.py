# SPDX-License-Identifier: BSD-2-Clause
"""Test that kernels that call the functions link. No GPU is needed."""

import numpy as np
import sample_library
from numba import cuda
from numba.cuda import autolink


def kernel(x, coefficients):
    i = cuda.grid(1)
    if i < x.size:
        smooth = sample_library.smooth_step(0, 1, x[i])
        x[i] = sample_library.polynomial(coefficients, coefficients.size, smooth)


def test_kernels_link_with_the_code_that_fits():
    for cc, lto, kind in [((8, 0), True, "LTO-IR"), ((9, 0), False, "cubin"), ((8, 7), False, "PTX")]:
        linked = autolink.build(kernel, "void(float64[::1], float64[::1])", cc=cc, lto=lto)
        assert [planned.input.kind.name for planned in linked.inputs] == [kind]


def test_the_emulator_computes_them():
    x = np.full(1, 0.5)
    linked = autolink.build(kernel, "void(float64[::1], float64[::1])", cc=(9, 0))
    linked.emulate[1, 1](x, np.array([2.0, 1.0]))
    assert x[0] == 2.0
