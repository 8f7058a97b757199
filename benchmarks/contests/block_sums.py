# SPDX-License-Identifier: BSD-2-Clause
"""Sum the tiles of a large array, with a Numba kernel that calls CUB (examples/cub), and with CUDA C++.

`make_block_sums` returns the Numba kernel, and `native_block_sums` the kernel of native/block_sum.cu. Both use the same
CUB classes, tile and launch bounds.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import cub
import numpy as np
from cuda.core import Device, LaunchConfig, ObjectCode, Program, ProgramOptions, launch
from cuda.pathfinder import find_nvidia_header_directory
from numba import cuda

from contests.timing import in_turn, line

NATIVE = Path(__file__).resolve().parent.parent / "native"
SIGNATURE = "void(float32[::1], float32[::1])"
SIZE = 1 << 28


def make_block_sums(threads=256, items_per_thread=16):
    """Return a kernel for float32 arrays whose size is a multiple of the tile.

    Launch it as ``block_sums[x.size // tile, threads](x, sums)``.
    """
    load = cub.BlockLoad(threads, items_per_thread, "vectorize")
    reduce = cub.BlockReduce(threads, items_per_thread)

    @cuda.jit(launch_bounds=threads)
    def block_sums(x, sums):
        items = cuda.local.array(items_per_thread, np.float32)
        load.load(x, items, cuda.blockIdx.x * load.tile)
        total = reduce.sum(items)
        if cuda.threadIdx.x == 0:
            sums[cuda.blockIdx.x] = total

    return block_sums


def native_block_sums(threads=256, items_per_thread=16, arch="sm_90"):
    """Return the code of the kernel in CUDA C++, and the name of its compiler: nvcc, or NVRTC if there is no nvcc.

    ``.get_kernel("block_sums")`` of the code takes two device pointers.
    """
    return compiled_native("block_sum.cu", threads, items_per_thread, arch)


def compiled_native(file, threads, items_per_thread, arch):
    """Return the code of a *file* of CUDA C++ with CUB, and its compiler's name: nvcc, or NVRTC if there is none."""
    defines = {"THREADS": str(threads), "ITEMS": str(items_per_thread)}
    if shutil.which("nvcc") is not None:
        with tempfile.TemporaryDirectory() as folder:
            flags = [f"-arch={arch}", "-std=c++17", *(f"-D{name}={value}" for name, value in defines.items())]
            output = Path(folder, "native.cubin")
            command = ["nvcc", "-cubin", *flags, "-o", str(output), str(NATIVE / file)]
            if subprocess.run(command, capture_output=True).returncode == 0:
                return ObjectCode.from_cubin(output.read_bytes()), "nvcc"
    options = ProgramOptions(
        arch=arch,
        include_path=[find_nvidia_header_directory(name) for name in ("cccl", "cudart")],
        define_macro=list(defines.items()),
    )
    return Program((NATIVE / file).read_text(), "c++", options=options).compile("cubin"), "NVRTC"


def run():
    device = Device()
    device.set_current()
    x = cuda.to_device(np.random.default_rng(0).random(SIZE, dtype=np.float32))
    exact = x.copy_to_host().astype(np.longdouble)
    for threads, items in (128, 16), (256, 16), (256, 8), (512, 4):
        blocks = SIZE // (threads * items)
        sums = {name: cuda.device_array(blocks, np.float32) for name in ("ours", "native")}
        code, compiler = native_block_sums(threads, items, f"sm_{device.arch}")
        pointers = x.device_ctypes_pointer.value, sums["native"].device_ctypes_pointer.value
        config = LaunchConfig(grid=blocks, block=threads)
        kernel = code.get_kernel("block_sums")
        launches = {
            "ours": functools.partial(make_block_sums(threads, items)[blocks, threads], x, sums["ours"]),
            "native": functools.partial(launch, device.default_stream, config, kernel, *pointers),
        }
        rates = {name: 4 * SIZE / seconds / 1e9 for name, seconds in in_turn(launches, rounds=30).items()}
        expected = exact.reshape(blocks, -1).sum(axis=1)
        error, own_error = (float(abs(each.copy_to_host() / expected - 1).max()) for each in sums.values())
        title = f"block sums, {threads} threads, {items} items"
        line(title, "GB/s", rates["ours"], rates["native"], error, own_error, f"CUB in CUDA C++ by {compiler}")
