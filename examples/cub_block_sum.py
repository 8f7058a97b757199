# SPDX-License-Identifier: BSD-2-Clause
"""Call CUB's block reduction and block scan from a Numba kernel, with any arithmetic type and block size.

CUB is a C++ template library. Each object here generates the one instantiation that a call needs: the type comes from
the call, the block size from the object. The package ``cub`` in this folder has CUB's block and warp primitives.

    python examples/cub_block_sum.py
"""

from __future__ import annotations

import numpy as np
from _frontend import cuda
from _run import compare, run
from numba.cuda import autolink


class BlockSum(autolink.DeviceCallable):
    """``total = block_sum(x)``: the sum of ``x`` over the threads of a block, returned to thread 0."""

    def __init__(self, threads):
        self.threads = threads

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"block_sum_{self.threads}_{x}", returns=x)

    def __numba_cuda_link__(self, x):
        T = autolink.cxx_type(x)
        code = f"""
            #include <cub/block/block_reduce.cuh>
            extern "C" __device__ {T} block_sum_{self.threads}_{x}({T} x) {{
                using Reduce = cub::BlockReduce<{T}, {self.threads}>;
                __shared__ typename Reduce::TempStorage storage;
                __syncthreads();  // an earlier call may still be reading the storage
                return Reduce(storage).Sum(x);
            }}"""
        return autolink.CUDASource(code, name="block_sum.cu")

    def __call__(self, x):
        return values_of_the_block(self, x).sum(dtype=x.dtype)


class BlockScan(autolink.DeviceCallable):
    """``y = block_scan(x)``: the sum of ``x`` over this thread and those before it."""

    def __init__(self, threads):
        self.threads = threads

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"block_scan_{self.threads}_{x}", returns=x)

    def __numba_cuda_link__(self, x):
        T = autolink.cxx_type(x)
        code = f"""
            #include <cub/block/block_scan.cuh>
            extern "C" __device__ {T} block_scan_{self.threads}_{x}({T} x) {{
                using Scan = cub::BlockScan<{T}, {self.threads}>;
                __shared__ typename Scan::TempStorage storage;
                __syncthreads();
                Scan(storage).InclusiveSum(x, x);
                return x;
            }}"""
        return autolink.CUDASource(code, name="block_scan.cu")

    def __call__(self, x):
        return values_of_the_block(self, x)[: cuda.threadIdx.x + 1].sum(dtype=x.dtype)


def values_of_the_block(collective, x):
    """Return the values of all threads of a block, in the simulator. The object keeps the list that they share."""
    values = collective.__dict__.setdefault("values", [None] * collective.threads)
    cuda.syncthreads()
    values[cuda.threadIdx.x] = x
    cuda.syncthreads()
    return np.array(values)


def make_kernel(threads):
    """Return a kernel for blocks of `threads` threads that computes each block's sum and running sums."""
    block_sum, block_scan = BlockSum(threads), BlockScan(threads)

    @cuda.jit
    def sums(x, totals, running):
        i = cuda.grid(1)
        total = block_sum(x[i])
        running[i] = block_scan(x[i])
        if cuda.threadIdx.x == 0:
            totals[cuda.blockIdx.x] = total

    return sums


CASES = [("int32", 128), ("uint64", 32), ("float32", 256), ("float64", 96)]


def check(dtype, threads, blocks=3):
    x = np.random.default_rng(threads).integers(0, 100, (blocks, threads)).astype(dtype)
    totals, running = np.zeros(blocks, dtype), np.zeros(x.size, dtype)
    make_kernel(threads)[blocks, threads](x.ravel(), totals, running)
    expected = x.cumsum(axis=1, dtype=dtype)
    title = f"of {threads} threads, {dtype}"
    return all(
        [
            compare(f"sums {title}", totals, expected[:, -1], 0),
            compare(f"scans {title}", running.reshape(x.shape), expected, 0),
        ]
    )


def launch():
    return all([check(dtype, threads) for dtype, threads in CASES])


def link():
    for dtype, threads in CASES[:2]:
        signature = f"void({dtype}[::1], {dtype}[::1], {dtype}[::1])"
        yield (
            f"block sum and scan of {threads} threads, {dtype}",
            autolink.build(make_kernel(threads), signature, cc=(9, 0)),
        )


if __name__ == "__main__":
    run(launch, link)
