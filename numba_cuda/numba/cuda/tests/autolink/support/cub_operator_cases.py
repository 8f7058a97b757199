# SPDX-License-Identifier: BSD-2-Clause
"""A kernel with an operator in Python in every CUB primitive of examples/cub that takes one, compared with NumPy.

    python cub_operator_cases.py

runs it in the simulator and prints what is wrong.
"""

from __future__ import annotations

import sys

import numpy as np
from cub_cases import cub
from numba import cuda
from numba.cuda import autolink

THREADS = 64
SIGNATURE = "void(float32[::1], float32[:, ::1], float32[:, ::1])"


class Halve(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"halve_{x}", returns=x)

    def __numba_cuda_link__(self, x):
        T = autolink.cxx_type(x)
        return autolink.CUDASource(f'extern "C" __device__ {T} halve_{x}({T} x) {{ return x / 2; }}', unit="cub")

    def __call__(self, x):
        return x / 2


halve = Halve()


@cuda.jit(device=True)
def saturating(a, b, limit):
    return min(a + b, limit[limit.shape[0] - 1])


@cuda.jit(device=True)
def larger_half(a, b):
    return a if halve(a) >= halve(b) else b


@cuda.jit(device=True)
def nearer(a, b, point):
    return abs(a - point[0]) < abs(b - point[0])


def make_kernel():
    """Return a kernel with an operator in Python in every primitive that takes one: ``out[k]`` has the k-th results."""
    reduce, reduce_items, warp_reduce = cub.BlockReduce(THREADS), cub.BlockReduce(THREADS, 4), cub.WarpReduce(THREADS)
    scan, scan_items, warp_scan = cub.BlockScan(THREADS), cub.BlockScan(THREADS, 4), cub.WarpScan(THREADS)
    sort, warp_sort = cub.BlockMergeSort(THREADS, 4), cub.WarpMergeSort(THREADS, 32, 4)

    @cuda.jit
    def kernel(x, limits, out):
        limit = limits[:, 0]  # not contiguous
        t = cuda.threadIdx.x
        items = cuda.local.array(4, np.float32)
        scanned = cuda.local.array(4, np.float32)
        for i in range(4):
            items[i] = x[4 * t + i]
        out[0, t] = reduce.reduce(x[t], saturating, state=limit)
        out[1, t] = reduce_items.reduce(items, saturating, state=limit)
        out[2, t] = warp_reduce.reduce(x[t], saturating, state=limit)
        out[3, t] = scan.inclusive_scan(x[t], saturating, state=limit)
        out[4, t] = scan.exclusive_scan(x[t], saturating, x[0], state=limit)
        scan_items.inclusive_scan(items, saturating, scanned, state=limit)
        out[5, t] = scanned[3]
        out[6, t] = warp_scan.inclusive_scan(x[t], saturating, state=limit)
        out[7, t] = reduce.reduce(x[t], larger_half)
        for i in range(4):
            scanned[i] = items[i]
        sort.sort(scanned, before=nearer, state=(limit[0], 1))
        for i in range(4):
            out[8 + i, t] = scanned[i]
        warp_sort.sort(items, before=nearer, state=(limit[0], 1))
        for i in range(4):
            out[12 + i, t] = items[i]

    return kernel


def check():
    """Run the kernel, and compare its results with NumPy's; return what is wrong."""
    x = np.random.default_rng(0).integers(0, 100, 4 * THREADS).astype(np.float32)
    limits = np.array([[40, -1], [900, -1]], np.float32)
    out = np.zeros((16, THREADS), np.float32)
    make_kernel()[1, THREADS](x, limits, out)

    def sums(values):
        return np.minimum(np.cumsum(values), 900)

    def by_distance(values):
        return values[np.argsort(np.abs(values - 40), kind="stable")]

    one = x[:THREADS]
    tiles = x.reshape(THREADS, 4)
    expected = {
        "reduce": (out[0, 0], sums(one)[-1]),
        "reduce items": (out[1, 0], sums(x)[-1]),
        "reduce of a warp": (out[2, ::32], [sums(one[:32])[-1], sums(one[32:])[-1]]),
        "inclusive scan": (out[3], sums(one)),
        "exclusive scan": (out[4], sums([one[0], *one[:-1]])),
        "scan of items": (out[5], sums(x)[3::4]),
        "scan of a warp": (out[6], [*sums(one[:32]), *sums(one[32:])]),
        "an operator that calls an object": (out[7, 0], one.max()),
        "sort": (out[8:12].T.ravel(), by_distance(x)),
        "sort of a warp": (
            out[12:].T.ravel(),
            np.concatenate([by_distance(t.ravel()) for t in (tiles[:32], tiles[32:])]),
        ),
    }
    return [
        f"{name}: got {got}, expected {right}"
        for name, (got, right) in expected.items()
        if not np.array_equal(got, right)
    ]


if __name__ == "__main__":
    sys.exit("\n".join(check()) or None)
