# SPDX-License-Identifier: BSD-2-Clause
"""Measure what a launch costs the CPU: finished kernels, and beside them a packed ``cuLaunchKernel``, CuPy, Triton and
numba-cuda.

Run it with ``python benchmarks/launch.py`` on a machine with a GPU. Each figure is the median over rounds in which all
take turns; a round launches many times and then waits for the GPU. The last lines are the table.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib.util
import statistics
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import driver
from numba import cuda
from numba.cuda import autolink

import numba_cuda_autolink

SIZE = 32
VECTOR = "float32[::1]"


def axpy(r, a, x, y):
    """Run ``r = a * x + y``."""
    i = cuda.grid(1)
    if i < r.size:
        r[i] = a * x[i] + y[i]


def four(a, b, c, d):
    """Take 4 arrays."""
    a[0] = b[0] + c[0] + d[0]


def sixteen(a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q):
    """Take 16 arrays."""
    a[0] = b[0] + c[0] + d[0] + e[0] + f[0] + g[0] + h[0] + i[0] + j[0] + k[0] + m[0] + n[0] + o[0] + p[0] + q[0]


def measured(calls: dict[str, Callable[[], Any]], rounds: int, count: int) -> dict[str, float]:
    """Return the microseconds of each call: the median over rounds of *count* launches each."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(200):
            call()
    cuda.synchronize()
    gc.disable()
    for number in range(rounds):
        names = list(calls)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            call = calls[name]
            start = time.perf_counter()
            for _ in range(count):
                call()
            times[name].append((time.perf_counter() - start) / count * 1e6)
            cuda.synchronize()
    gc.enable()
    return {name: statistics.median(each) for name, each in times.items()}


def packed_launch(linked: Any, arrays: list[Any], scalar: float) -> Callable[[], Any]:
    """Return a launch of axpy whose arguments were packed before: the least that cuda.bindings can do."""
    library = driver.cuLibraryLoadData(linked.code, [], [], 0, [], [], 0)[1]
    function = driver.cuKernelGetFunction(driver.cuLibraryGetKernel(library, linked.entry_name.encode())[1])[1]
    views = [(0, 0, SIZE, 4, array.__cuda_array_interface__["data"][0], SIZE, 4) for array in arrays]
    buffer = ctypes.create_string_buffer(struct.pack("<7q f4x 14q", *views[0], scalar, *views[1], *views[2]))
    base = ctypes.addressof(buffer)
    pointers = (ctypes.c_void_p * 22)(*[base + 8 * number for number in range(22)])
    address, stream, launch = ctypes.addressof(pointers), driver.CUstream(0), driver.cuLaunchKernel

    def call(kept=(buffer, pointers, library)):
        launch(function, 1, 1, 1, SIZE, 1, 1, 0, stream, address, 0)

    return call


def cycle(items: list[Any]) -> Callable[[], Any]:
    """Return a function that returns the next of *items*, for ever."""

    def endless() -> Iterator[Any]:
        while True:
            yield from items

    return endless().__next__


def cupy_launch(kernel: str, arguments: Callable[[], tuple[Any, ...]]) -> Callable[[], None]:
    """Return a launch of the CUDA C++ *kernel*, called axpy, by CuPy."""
    import cupy

    raw = cupy.RawKernel(kernel, "axpy")
    return lambda: raw((1,), (SIZE,), arguments())


AXPY = """extern "C" __global__ void axpy(float* r, float a, const float* x, const float* y, long long n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) r[i] = a * x[i] + y[i]; }"""


def triton_launch(arrays: list[Any]) -> Callable[[], None]:
    """Return the launch of axpy by Triton, with tensors of PyTorch."""
    import torch
    import triton
    import triton.language as tl

    source = Path(tempfile.mkdtemp()) / "axpy_of_triton.py"
    source.write_text(
        "import triton\nimport triton.language as tl\n@triton.jit\ndef axpy(r, a, x, y, n, SIZE: tl.constexpr):\n"
        "    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)\n"
        "    tl.store(r + i, a * tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)\n"
    )
    spec = importlib.util.spec_from_file_location("axpy_of_triton", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    r, x, y = (torch.as_tensor(array, device="cuda") for array in arrays)
    assert triton and tl
    return lambda: module.axpy[(1,)](r, 2.0, x, y, SIZE, SIZE)


def from_threads(call: Callable[[], None], threads: int, count: int) -> float:
    """Return the microseconds per launch when *threads* launch at a time."""
    barrier = threading.Barrier(threads + 1)

    def work() -> None:
        barrier.wait()
        for _ in range(count):
            call()
        barrier.wait()

    started = [threading.Thread(target=work) for _ in range(threads)]
    for thread in started:
        thread.start()
    barrier.wait()
    start = time.perf_counter()
    barrier.wait()
    seconds = time.perf_counter() - start
    for thread in started:
        thread.join()
    cuda.synchronize()
    return seconds / count / threads * 1e6


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--count", type=int, default=2000, help="launches in a round")
    options = parser.parse_args()
    import cupy as cp

    folder = Path(tempfile.mkdtemp())
    linked = autolink.build(axpy, f"void({VECTOR}, float32, {VECTOR}, {VECTOR})")
    many = [
        autolink.build(axpy, f"void({VECTOR}, float32, {VECTOR}, {VECTOR})", entry_name=f"k{n}") for n in range(100)
    ]
    arity = [autolink.build(each, f"void({', '.join([VECTOR] * count)})") for each, count in ((four, 4), (sixteen, 16))]
    autolink.save(folder / "all.kernels", [linked, *many, *arity])
    kernels = numba_cuda_autolink.load(folder / "all.kernels")

    sets = [[cp.full(SIZE, value, cp.float32) for value in (0, 1, 1)] for _ in range(4)]
    (r, x, y), jit = sets[0], cuda.jit(axpy)
    launch, number, length = kernels.axpy[1, SIZE], np.float32(2), np.int64(SIZE)
    bound = autolink.bind(jit, r, np.float32(2), x, y)[1, SIZE]
    turn, turn_of_cupy = cycle(sets), cycle(sets)
    hundred = cycle([kernels[f"k{n}"][1, SIZE] for n in range(100)])
    vectors = [cp.zeros(SIZE, cp.float32) for _ in range(32)]
    fours, sixteens = cycle([vectors[:4], vectors[4:8]]), cycle([vectors[:16], vectors[16:]])
    launch_four, launch_sixteen = kernels.four[1, SIZE], kernels.sixteen[1, SIZE]

    def other_arrays() -> None:
        r, x, y = turn()
        launch(r, 2.0, x, y)

    def other_arrays_of_cupy() -> tuple[Any, ...]:
        r, x, y = turn_of_cupy()
        return r, number, x, y, length

    calls: dict[str, Callable[[], Any]] = {
        "a packed cuLaunchKernel": packed_launch(linked, [r, x, y], 2.0),
        "CuPy RawKernel, the same arrays": cupy_launch(AXPY, lambda: (r, number, x, y, length)),
        "CuPy RawKernel, other arrays each time": cupy_launch(AXPY, other_arrays_of_cupy),
        "ours, nothing changed": lambda: launch(r, 2.0, x, y),
        "ours, nothing changed, kernel[...] each time": lambda: kernels.axpy[1, SIZE](r, 2.0, x, y),
        "ours, other arrays each time": other_arrays,
        "ours, bound": lambda: bound(r, 2.0, x, y),
        "ours, 100 kernels in turn": lambda: hundred()(r, 2.0, x, y),
        "ours, 4 arrays, others each time": lambda: launch_four(*fours()),
        "ours, 16 arrays, others each time": lambda: launch_sixteen(*sixteens()),
        "numba-cuda": lambda: jit[1, SIZE](r, number, x, y),
    }
    with_torch = importlib.util.find_spec("torch") is not None
    if with_torch:
        import torch

        tensors = [torch.ones(SIZE, device="cuda") for _ in range(3)]
        calls["ours, PyTorch"] = lambda: launch(tensors[0], 2.0, tensors[1], tensors[2])
        if importlib.util.find_spec("triton") is not None:
            calls["Triton"] = triton_launch([r, x, y])
    own = [cuda.to_device(np.ones(SIZE, np.float32)) for _ in range(3)]
    calls["ours, arrays of numba-cuda"] = lambda: launch(own[0], 2.0, own[1], own[2])
    for call in calls.values():
        call()
    cuda.synchronize()
    assert float(r[0]) == 3, r
    times = measured(calls, options.rounds, options.count)
    for name, value in times.items():
        print(f"{name:46s} {value:7.2f} us")
    threads = from_threads(lambda: launch(r, 2.0, x, y), 8, options.count)
    print(f"{'ours, 8 threads at a time':46s} {threads:7.2f} us")
    for name in ("kernel[...] of numba-cuda, its own arrays", "the same without this project"):
        (value,) = measured(
            {name: lambda: jit[1, SIZE](own[0], number, *own[1:])}, options.rounds, options.count
        ).values()
        print(f"{name:46s} {value:7.2f} us")
        autolink.deactivate()
    autolink.activate()

    packed, cupy = times["a packed cuLaunchKernel"], times["CuPy RawKernel, other arrays each time"]
    checked, still = times["ours, other arrays each time"], times["ours, nothing changed"]
    arrays = [times[f"ours, {count} arrays, others each time"] for count in (4, 16)]
    print("\nmeasure                                            ratio  to reach")
    for name, ratio, goal in (
        ("3 arrays and 1 number, checked : CuPy", checked / cupy, 1.2),
        ("3 arrays and 1 number, checked : packed", checked / packed, 1.5),
        ("3 arrays and 1 number, checked : numba-cuda", checked / times["numba-cuda"], 0.2),
        ("nothing changed : packed", still / packed, 1.1),
        ("16 arrays : 4 arrays", arrays[1] / arrays[0], 2),
        ("100 kernels in turn : one", times["ours, 100 kernels in turn"] / still, 1.2),
    ):
        print(f"{name:50s} {ratio:5.2f}  <= {goal}")


if __name__ == "__main__":
    main()
