# SPDX-License-Identifier: BSD-2-Clause
"""Sums of the tiles of a large array: a Numba kernel that calls CUB (examples/cub), and the same in CUDA C++.

    python benchmarks/block_sum.py

`make_block_sums` makes the one, `native_block_sums` the other, which is native/block_sum.cu: the same CUB classes, tile
and launch bounds. Without a GPU the machine code of both is compared.
"""

from __future__ import annotations

import argparse
import io
import statistics
import sys
from pathlib import Path

import numpy as np
from cuda.core import Program, ProgramOptions
from cuda.pathfinder import find_nvidia_header_directory
from elftools.elf.elffile import ELFFile
from numba import cuda
from numba.cuda import autolink

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "examples"))
import cub  # noqa: E402

SIGNATURE = "void(float32[::1], float32[::1])"


def make_block_sums(threads=256, items_per_thread=16):
    """``block_sums[x.size // tile, threads](x, sums)``, for float32 arrays whose size is a multiple of the tile."""
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
    """The kernel in CUDA C++, as a `cuda.core.ObjectCode`: ``.get_kernel("block_sums")`` takes two device pointers."""
    options = ProgramOptions(
        arch=arch,
        include_path=[find_nvidia_header_directory(name) for name in ("cccl", "cudart")],
        define_macro=[("THREADS", str(threads)), ("ITEMS", str(items_per_thread))],
    )
    return Program((HERE / "native" / "block_sum.cu").read_text(), "c++", options=options).compile("cubin")


def measure(size, threads, items_per_thread, rounds=40, launches=20):
    """GB/s of both, and the ratio of their times: medians over rounds in which they take turns."""
    from cuda.core import Device, LaunchConfig, launch

    tile = threads * items_per_thread
    blocks = size // tile
    x = cuda.to_device(np.random.default_rng(0).random(blocks * tile, dtype=np.float32))
    sums = cuda.to_device(np.zeros((2, blocks), np.float32))
    ours = make_block_sums(threads, items_per_thread)[blocks, threads]
    device = Device()
    device.set_current()
    native = native_block_sums(threads, items_per_thread, f"sm_{device.arch}").get_kernel("block_sums")
    config, stream = LaunchConfig(grid=blocks, block=threads), device.default_stream
    mine, theirs = sums[0], sums[1]
    pointers = x.device_ctypes_pointer.value, theirs.device_ctypes_pointer.value

    def of_ours():
        ours(x, mine)

    def of_native():
        launch(stream, config, native, *pointers)

    start, stop = cuda.event(), cuda.event()

    def seconds(kernel):
        start.record()
        for _ in range(launches):
            kernel()
        stop.record()
        stop.synchronize()
        return cuda.event_elapsed_time(start, stop) / 1000 / launches

    for kernel in (of_ours, of_native) * 3:
        seconds(kernel)
    times = [
        (seconds(of_ours), seconds(of_native)) if number % 2 else (seconds(of_native), seconds(of_ours))[::-1]
        for number in range(rounds)
    ]
    assert (sums[0].copy_to_host() == sums[1].copy_to_host()).all(), "the sums differ"
    moved = 4 * blocks * tile / 1e9
    gbps = [moved / statistics.median(each) for each in zip(*times, strict=True)]
    return (*gbps, statistics.median(a / b for a, b in times))


def machine_code(cubin, entry):
    """Bytes of machine code of a kernel, and of its static shared memory."""
    elf = ELFFile(io.BytesIO(cubin))
    sections = {section.name: section["sh_size"] for section in elf.iter_sections()}
    return sections[f".text.{entry}"], sections.get(f".nv.shared.{entry}", 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1 << 28)
    size = parser.parse_args().size
    for threads, items in (128, 16), (256, 16), (256, 8), (512, 4):
        title = f"{threads} threads, {items} items"
        if cuda.is_available():
            ours, native, ratio = measure(size, threads, items)
            print(f"{title:25}{ours:8.0f} GB/s, in CUDA C++{native:8.0f} GB/s, time{(ratio - 1) * 100:+7.2f}%")
        else:
            kernel = autolink.build(make_block_sums(threads, items), SIGNATURE, cc=(9, 0))
            code, shared = machine_code(kernel.code, kernel.entry_name)
            native_code, native_shared = machine_code(bytes(native_block_sums(threads, items).code), "block_sums")
            print(f"{title:25}{code:6} bytes of code and {shared:4} of shared memory,", end=" ")
            print(f"in CUDA C++{native_code:6} and {native_shared:4}")


if __name__ == "__main__":
    main()
