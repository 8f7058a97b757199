# SPDX-License-Identifier: BSD-2-Clause
"""Multiply matrices by tiles, with cuBLASDx through nvmath-python: ``tile.execute(alpha, a, b, beta, c)``.

Each block of the kernel computes one tile of the product. It loads tiles of both factors into shared memory, and
cuBLASDx adds their product to the tile, on the tensor cores for half precision. `Tile` is the binding. It has the
attributes of `nvmath.device.Matmul`, so the kernel accepts either.

    pip install nvmath-python==1.0.0 nvidia-libmathdx-cu13==0.4.1.15 "cuda-toolkit<13.5"
    python examples/nvmath_gemm.py

This version of libmathdx can compile cuBLASDx with the headers of CUDA 13.4 and older.

Like `nvmath_fft.py`, it needs the NVIDIA driver library to import nvmath-python, and cannot run in the simulator.
"""

from __future__ import annotations

import sys

import numpy as np
from _frontend import cuda
from _nvmath import ComputeCapability, Matmul, code_type, compile_blas_execute, key_of
from _run import compare, show
from numba.cuda import autolink

ATTRIBUTES = "size", "block_size", "leading_dimension", "a_size", "b_size", "c_size"


class Tile(autolink.DeviceCallable):
    """``tile.execute(alpha, a, b, beta, c)``: ``c = alpha * a @ b + beta * c`` by the threads of a block.

    All matrices are in shared memory. Keywords are those of `nvmath.device.Matmul`; *precision* has the dtypes of a, b
    and c.
    """

    def __init__(self, size, precision, sm, **knobs):
        self.matmul = Matmul(size, precision, "real", sm=ComputeCapability(*sm), **knobs)
        self.key = key_of("gemm", size, [np.dtype(each).name for each in precision], *sm, *sorted(knobs.items()))
        self.dtypes = tuple(np.dtype(each) for each in precision)
        for name in ATTRIBUTES:
            value = getattr(self.matmul, name)
            setattr(self, name, tuple(value) if name == "leading_dimension" else value)

    @autolink.device_method
    def execute(self, alpha, a, b, beta, c):
        for name, array, dtype in zip("abc", (a, b, c), self.dtypes, strict=True):
            if str(getattr(array, "dtype", None)) != str(dtype):
                raise TypeError(f"{name}: got {array}, expected an array of {dtype}")
        by_reference = autolink.by_reference(self.dtypes[2])
        args = {"alpha": by_reference, "a": None, "b": None, "beta": by_reference, "c": None}
        return autolink.Extern(f"gemm_{self.key}", args=args)

    @execute.link_key
    def _(self, alpha, a, b, beta, c):  # the LTO-IR is generated once per machine
        return self.key

    @execute.link
    def _(self, alpha, a, b, beta, c):
        target = code_type(autolink.current_target())
        code, symbol = compile_blas_execute(self.matmul, target, "static_leading_dimensions")
        yield cuda.LTOIR(code.data)
        yield autolink.CUDASource(f"""
            extern "C" __device__ void {symbol}(const void*, void*, void*, const void*, void*);
            extern "C" __device__ void gemm_{self.key}(const void* s, void* a, void* b, const void* t, void* c) {{
                {symbol}(s, a, b, t, c);
            }}""")


def make_kernel(tile, dtypes):
    """Return a kernel for ``c = a @ b``, with row-major matrices whose sizes are multiples of the tile's.

    The grid has one block for each tile of c, ``(columns, rows)``. A block has `tile.block_size` threads.
    """
    (m, n, k), threads = tile.size, tile.block_size
    lda, ldb, ldc = tile.leading_dimension
    a_size, b_size, c_size = tile.a_size, tile.b_size, tile.c_size
    a_type, b_type, c_type = dtypes

    @cuda.jit
    def multiply(a, b, c):
        row, column, thread = cuda.blockIdx.y * m, cuda.blockIdx.x * n, cuda.threadIdx.x
        a_tile = cuda.shared.array(a_size, a_type, alignment=16)
        b_tile = cuda.shared.array(b_size, b_type, alignment=16)
        c_tile = cuda.shared.array(c_size, c_type, alignment=16)
        for i in range(thread, m * n, threads):
            c_tile[i // n * ldc + i % n] = 0
        for step in range(0, a.shape[1], k):
            for i in range(thread, m * k, threads):
                a_tile[i // k * lda + i % k] = a[row + i // k, step + i % k]
            for i in range(thread, k * n, threads):
                b_tile[i // n * ldb + i % n] = b[step + i // n, column + i % n]
            cuda.syncthreads()
            tile.execute(1, a_tile, b_tile, 1, c_tile)
            cuda.syncthreads()
        for i in range(thread, m * n, threads):
            c[row + i // n, column + i % n] = c_tile[i // n * ldc + i % n]

    return multiply


KNOBS = {"arrangement": ("row_major", "row_major", "row_major"), "execution": "Block", "block_size": 256}
CASES = [
    ((64, 64, 32), (np.float32, np.float32, np.float32), 1e-6),
    ((64, 64, 64), (np.float16, np.float16, np.float32), 1e-6),
    ((32, 32, 32), (np.float64, np.float64, np.float64), 1e-14),
]


def tiles(sm):
    return [(Tile(size, precision, sm, **KNOBS), tolerance) for size, precision, tolerance in CASES]


def check(tile, tolerance, size=512):
    rng = np.random.default_rng(size)
    a, b = (rng.standard_normal((size, size)).astype(dtype) for dtype in tile.dtypes[:2])
    c = cuda.device_array((size, size), tile.dtypes[2])
    m, n, _ = tile.size
    make_kernel(tile, tile.dtypes)[(size // n, size // m), tile.block_size](cuda.to_device(a), cuda.to_device(b), c)
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
    return compare(f"tiles of {tile.size}, {', '.join(map(str, tile.dtypes))}", c.copy_to_host(), exact, tolerance)


def main():
    if cuda.is_available():
        print("On the GPU, compared with NumPy:")
        sm = cuda.get_current_device().compute_capability
        sys.exit(0 if all([check(*case) for case in tiles(sm)]) else 1)
    print("No GPU was found, so the kernels are linked for sm_90:")
    for tile, _ in tiles((9, 0)):
        signature = f"void({', '.join(f'{dtype}[:, ::1]' for dtype in tile.dtypes)})"
        show(f"tiles of {tile.size}", autolink.build(make_kernel(tile, tile.dtypes), signature, cc=(9, 0)))


if __name__ == "__main__":
    main()
