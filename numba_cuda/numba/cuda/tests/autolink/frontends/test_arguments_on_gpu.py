# SPDX-License-Identifier: BSD-2-Clause
"""What C++ gets and writes in kernels of both front ends: views of arrays, state, and arguments by reference."""

from __future__ import annotations

import numpy as np
import pytest
from numba.cuda import autolink, types

pytestmark = pytest.mark.gpu


def test_references_are_written_to_variables_and_elements(cuda):
    split = autolink.cxx("""
        __device__ inline float split(float x, int& whole) { whole = int(x); return x - whole; }
    """).split

    @cuda.jit
    def kernel(x, n, r):
        r[0] = split(x[0], n[0])
        whole = np.int32(5)
        for step in range(3):
            r[1] += split(x[0] + step, whole)
        r[2] = whole

    x, n, r = np.array([3.25], np.float32), np.zeros(1, np.int32), np.zeros(3, np.float32)
    kernel[1, 1](x, n, r)
    assert (n.tolist(), r.tolist()) == ([3], [0.25, 0.75, 5])


def test_views_have_the_elements_of_the_array(cuda):
    class View(autolink.DeviceCallable):
        def __numba_cuda_call__(self, line, matrix, i):
            args = {"line": autolink.span, "matrix": autolink.mdspan, "i": types.int32}
            return autolink.Extern(f"of_{matrix.layout}", returns="float32", args=args)

        def __numba_cuda_link__(self, line, matrix, i):
            span, mdspan = autolink.cxx_type(line, autolink.span), autolink.cxx_type(matrix, autolink.mdspan)
            return autolink.CUDASource(f"""
                #include <cuda/std/mdspan>
                #include <cuda/std/span>
                extern "C" __device__ float of_{matrix.layout}({span} line, {mdspan} matrix, int i) {{
                    return line[line.size() - 1] + matrix(i, i + 1) + 100 * matrix.extent(0) + 1000 * matrix.extent(1);
                }}""")

    view = View()

    @cuda.jit
    def kernel(c_order, f_order, strided, r):
        local = cuda.local.array(3, np.float32)
        local[2] = 0.5
        r[0] = view(local, c_order, 1)
        r[1] = view(local, f_order, 1)
        r[2] = view(local, strided, 0)

    matrix, r = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(3, np.float32)
    c_order, f_order = cuda.to_device(matrix), cuda.to_device(np.asfortranarray(matrix))
    kernel[1, 1](c_order, f_order, c_order[1:, ::2], r)
    assert r.tolist() == [0.5 + 6 + 4300, 0.5 + 6 + 4300, 0.5 + 6 + 2200]


def test_state_has_the_values(cuda):
    class Apply(autolink.DeviceCallable):
        def __numba_cuda_call__(self, op, x, table, pair):
            args = {"x": None, "table": autolink.state, "pair": autolink.state}
            return autolink.Extern("apply", returns="float32", args=args)

        def __numba_cuda_link__(self, op, x, table, pair):
            op = autolink.device_function(op, x, state=(table, pair))
            source = f"""{op.declaration}
                extern "C" __device__ float apply(float x, const void* table, const void* pair) {{
                    return {op.functor}(table, pair)(x);
                }}"""
            return [op, autolink.CUDASource(source)]

    apply = Apply()

    @cuda.jit(device=True)
    def op(x, table, pair):
        return x + table[1, 1] + 100 * table.shape[0] + 1000 * table.shape[1] + 10000 * pair[0] + 100000 * pair[1].real

    @cuda.jit
    def kernel(table, n, r):
        r[0] = apply(op, np.float32(0.5), table, (n, np.complex64(2)))

    table, r = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(1, np.float32)
    kernel[1, 1](cuda.to_device(table)[1:, ::2], np.int8(3), r)
    assert r.tolist() == [0.5 + 10 + 200 + 2000 + 30000 + 200000]
