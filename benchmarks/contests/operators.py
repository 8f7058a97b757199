# SPDX-License-Identifier: BSD-2-Clause
"""Reduce and sort the tiles of a large array with operators in Python, through examples/cub, and with CUDA C++.

`make_saturating_sums` and `make_sorted_tiles` return the Numba kernels, `native_operators` those of
native/operators.cu. Both use the same CUB classes, tile and launch bounds.
"""

from __future__ import annotations

import functools

import cub
import numpy as np
from cuda.core import Device, LaunchConfig, launch
from numba import cuda

from contests.block_sums import compiled_native
from contests.timing import in_turn, line

SUMS_SIGNATURE = "void(float32[::1], float32[::1], float32[::1])"
SORT_SIGNATURE = "void(float32[::1], float32[::1])"
SIZE = 1 << 27


@cuda.jit(device=True)
def saturating(a, b, limit):
    return min(a + b, limit[0])


@cuda.jit(device=True)
def smaller(a, b):
    return abs(a) < abs(b)


def make_saturating_sums(threads=256, items_per_thread=16):
    """Return a kernel that sums tiles up to a limit: ``saturating_sums[x.size // tile, threads](x, limit, sums)``."""
    load = cub.BlockLoad(threads, items_per_thread, "vectorize")
    reduce = cub.BlockReduce(threads, items_per_thread)

    @cuda.jit(launch_bounds=threads)
    def saturating_sums(x, limit, sums):
        items = cuda.local.array(items_per_thread, np.float32)
        load.load(x, items, cuda.blockIdx.x * load.tile)
        total = reduce.reduce(items, saturating, state=limit)
        if cuda.threadIdx.x == 0:
            sums[cuda.blockIdx.x] = total

    return saturating_sums


def make_sorted_tiles(threads=256, items_per_thread=8):
    """Return a kernel that sorts each tile by absolute values: ``sorted_tiles[x.size // tile, threads](x, result)``."""
    load = cub.BlockLoad(threads, items_per_thread, "vectorize")
    sort = cub.BlockMergeSort(threads, items_per_thread)
    store = cub.BlockStore(threads, items_per_thread, "vectorize")

    @cuda.jit(launch_bounds=threads)
    def sorted_tiles(x, result):
        items = cuda.local.array(items_per_thread, np.float32)
        first = cuda.blockIdx.x * load.tile
        load.load(x, items, first)
        sort.sort(items, before=smaller)
        store.store(result, items, first)

    return sorted_tiles


def native_operators(threads, items, arch="sm_90"):
    """Return the code of the kernels ``saturating_sums`` and ``sorted_tiles`` in CUDA C++, which take device pointers,
    and the name of its compiler."""
    return compiled_native("operators.cu", threads, items, arch)


def run():
    device = Device()
    device.set_current()
    host = np.random.default_rng(0).random(SIZE, dtype=np.float32) - 0.25
    x, limit = cuda.to_device(np.abs(host)), cuda.to_device(np.array([1e4], np.float32))
    for threads, items in (128, 16), (256, 16), (512, 4):
        blocks = SIZE // (threads * items)
        results = {name: cuda.device_array(blocks, np.float32) for name in ("ours", "native")}
        ours = functools.partial(make_saturating_sums(threads, items)[blocks, threads], x, limit, results["ours"])
        expected = np.minimum(np.abs(host).astype(np.longdouble).reshape(blocks, -1).sum(axis=1), 1e4)
        _measure(device, f"saturating sums, {threads} x {items}", ours, (x, limit), results, expected, (threads, items))
    x = cuda.to_device(host)
    for threads, items in (128, 8), (256, 8), (512, 4):
        blocks = SIZE // (threads * items)
        results = {name: cuda.device_array(SIZE, np.float32) for name in ("ours", "native")}
        ours = functools.partial(make_sorted_tiles(threads, items)[blocks, threads], x, results["ours"])
        tiles = host.reshape(blocks, -1)
        expected = np.take_along_axis(tiles, np.argsort(np.abs(tiles), axis=1, kind="stable"), axis=1).ravel()
        _measure(device, f"sorted tiles, {threads} x {items}", ours, (x,), results, expected, (threads, items))


def _measure(device, title, ours, arguments, results, expected, shape):
    """Measure a kernel of each sort, and print their line."""
    threads, items = shape
    code, compiler = native_operators(threads, items, f"sm_{device.arch}")
    pointers = [each.device_ctypes_pointer.value for each in (*arguments, results["native"])]
    config = LaunchConfig(grid=SIZE // (threads * items), block=threads)
    kernel = code.get_kernel("saturating_sums" if len(arguments) == 2 else "sorted_tiles")
    launches = {
        "ours": ours,
        "native": functools.partial(launch, device.default_stream, config, kernel, *pointers),
    }
    rates = {name: 4 * SIZE / seconds / 1e9 for name, seconds in in_turn(launches, rounds=30).items()}
    scale = np.maximum(np.abs(expected), 1e-6)
    error, own = (float((np.abs(each.copy_to_host() - expected) / scale).max()) for each in results.values())
    line(title, "GB/s", rates["ours"], rates["native"], error, own, f"CUB in CUDA C++ by {compiler}")
