# SPDX-License-Identifier: BSD-2-Clause
"""Test that kernels that call the functions link. No GPU is needed."""

import sample_library
from numba import cuda
from numba.cuda import autolink


def kernel(x, coefficients):
    i = cuda.grid(1)
    if i < x.size:
        smooth = sample_library.smooth_step(0, 1, x[i])
        x[i] = sample_library.polynomial(coefficients, coefficients.size, smooth)


def test_kernels_link_with_the_code_that_fits():
    for cc, kind in [((8, 0), "cubin"), ((9, 0), "cubin"), ((8, 7), "LTO-IR")]:
        linked = autolink.build(kernel, "void(float64[::1], float64[::1])", cc=cc)
        assert [planned.input.kind.name for planned in linked.inputs] == [kind]
