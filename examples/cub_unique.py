# SPDX-License-Identifier: BSD-2-Clause
"""Find the distinct values of each row of an array and their counts, with one block per row.

The result is that of ``numpy.unique(row, return_counts=True)``. The kernel uses CUB's primitives from the package
``cub`` in this folder: a block loads a row, sorts it, marks where a new value begins, and numbers these positions with
a scan. The primitives manage the shared memory of the sort and the scans, and the barriers between them. The operator
of one scan is a device function in Python.

    python examples/cub_unique.py
"""

from __future__ import annotations

import numpy as np
from _frontend import cuda
from _run import run
from cub import BlockLoad, BlockRadixSort, BlockScan
from numba.cuda import autolink


@cuda.jit(device=True)
def second(a, b):
    return b


def make_kernel(dtype, threads=128, items_per_thread=8):
    """Return a kernel for rows of at most ``threads * items_per_thread`` elements of `dtype`."""
    dtype = np.dtype(dtype)
    load = BlockLoad(threads, items_per_thread, "transpose")
    sort = BlockRadixSort(threads, items_per_thread)
    scan = BlockScan(threads)
    count = BlockScan(threads, items_per_thread)
    places = load.tile + 1
    largest = np.inf if dtype.kind == "f" else int(np.iinfo(dtype).max)

    @cuda.jit
    def unique_rows(x, values, counts, found):
        row, length, first = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x * items_per_thread
        keys = cuda.local.array(items_per_thread, dtype)
        begins = cuda.local.array(items_per_thread, np.int32)
        place = cuda.local.array(items_per_thread, np.int32)
        starts = cuda.shared.array(places, np.int32)

        load.load(x, keys, row * length, length, largest)
        sort.sort(keys)
        previous = scan.exclusive_scan(keys[items_per_thread - 1], second, keys[0])  # the previous thread's last key
        for i in range(items_per_thread):
            begins[i] = first + i < length and (first + i == 0 or keys[i] != previous)
            previous = keys[i]
        distinct = count.exclusive_sum(begins, place)
        for i in range(items_per_thread):
            if begins[i]:
                values[row, place[i]] = keys[i]
                starts[place[i]] = first + i
        starts[distinct] = length
        cuda.syncthreads()
        for i in range(cuda.threadIdx.x, distinct, threads):
            counts[row, i] = starts[i + 1] - starts[i]
        found[row] = distinct

    return unique_rows


CASES = [("int32", 64, 4), ("uint8", 32, 7), ("float32", 96, 3), ("float64", 64, 1)]


def check(dtype, threads, items_per_thread, rows=3):
    """Return whether the kernel's results equal NumPy's, for rows that do not fill a block."""
    length = threads * items_per_thread - 5
    x = np.random.default_rng(length).integers(0, 50, (rows, length)).astype(dtype)
    values, counts, found = np.zeros_like(x), np.zeros(x.shape, np.int32), np.zeros(rows, np.int32)
    make_kernel(dtype, threads, items_per_thread)[rows, threads](x, values, counts, found)
    right = True
    for row in range(rows):
        expected = np.unique(x[row], return_counts=True)
        own = values[row, : found[row]], counts[row, : found[row]]
        right = right and all(map(np.array_equal, own, expected))
    title = f"rows of {length}, {dtype}, by {threads} threads"
    print(f"  {title:<45} {found.min()} to {found.max()} distinct  {'ok' if right else 'WRONG'}")
    return right


def launch():
    return all([check(*case) for case in CASES])


def link():
    for dtype in "int32", "float64":
        signature = f"void({dtype}[:, ::1], {dtype}[:, ::1], int32[:, ::1], int32[::1])"
        yield f"distinct values, {dtype}", autolink.build(make_kernel(dtype), signature, cc=(9, 0))


if __name__ == "__main__":
    run(launch, link)
