# SPDX-License-Identifier: BSD-2-Clause
"""Measure the emulator: thread-instructions per second, beside Numba's simulator and Numba's CPU target.

Run it on any machine: ``python benchmarks/emulator.py``. No GPU is needed. One kernel iterates a polynomial map in each
thread, without external code; it is emulated with 32, 1,024, 32,768 and 1,048,576 threads on one and on two cores, with
and without the checks. The simulator runs the same Python function with fewer iterations, and the time is scaled; the
CPU target runs the same loop over an array. A second kernel sums blocks with CUB.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

ITERATIONS = 100
PER_ITERATION = 6  # instructions: two products and additions, a comparison and a branch
THREADS = (32, 1_024, 32_768, 1_048_576)
SIMULATED = """
import os, sys, time
os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
import numpy as np
from numba import cuda
iterations, threads = int(sys.argv[1]), int(sys.argv[2])

@cuda.jit
def iterate(x, n):
    i = cuda.grid(1)
    y = x[i]
    for _ in range(n):
        y = y * y * 0.5 - y + 0.25
    x[i] = y

x = np.full(threads, 0.3, np.float32)
best = 1e9
for _ in range(2):
    started = time.perf_counter()
    iterate[max(1, threads // 256), min(256, threads)](x, iterations)
    best = min(best, time.perf_counter() - started)
print(best)
"""


def best_of(run: Callable[[], Any], repetitions: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the shortest time of *run* in seconds, after one run that is not counted."""
    run()
    times = []
    for _ in range(repetitions):
        started = clock()
        run()
        times.append(clock() - started)
    return min(times)


def pack_array(x: np.ndarray) -> bytes:
    """Return *x* as numba-cuda passes an array of one dimension."""
    return np.array([0, 0, x.size, x.itemsize, x.ctypes.data, x.size, x.itemsize], np.int64).tobytes()


def kinds_of_checks() -> list[tuple[str, Any]]:
    """Return names and values of the checks to compare."""
    from numba_cuda_autolink.emulator import Checks

    return [("none", Checks(bounds=False, alignment=False)), ("default", Checks()), ("all", Checks.all())]


def measure_kernels() -> None:
    """Print the table."""
    from numba import cuda, float32, int32, njit
    from numba.cuda import autolink

    from numba_cuda_autolink.emulator import Module, memory

    @cuda.jit
    def iterate(x, n):
        i = cuda.grid(1)
        y = x[i]
        for _ in range(n):
            y = y * y * float32(0.5) - y + float32(0.25)
        x[i] = y

    @njit
    def iterate_on_cpu(x, n):
        for i in range(x.size):
            y = x[i]
            for _ in range(n):
                y = y * y * np.float32(0.5) - y + np.float32(0.25)
            x[i] = y

    ptx = autolink.build(iterate, (float32[::1], int32), cc=(9, 0), output="ptx").code
    text = ptx.decode() if isinstance(ptx, bytes) else ptx
    print(f"{'threads':>9} {'cores':>5} {'checks':>8} {'ms':>9} {'G/s':>7} {'simulator':>10} {'CPU target':>10}")
    for threads in THREADS:
        x = np.full(threads, 0.3, np.float32)
        memory.register(x.ctypes.data, x.nbytes, "x")
        arguments = pack_array(x) + np.int32(ITERATIONS).tobytes()
        grid, block = (max(1, threads // 256), 1, 1), (min(256, threads), 1, 1)
        on_cpu = best_of(lambda x=x: iterate_on_cpu(x, ITERATIONS))  # type: ignore[misc]
        simulated = _simulate(threads)
        for name, checks in kinds_of_checks():
            (kernel,) = Module([text], checks=checks).kernels.values()
            for cores in (1, 2):
                with_cores(cores)
                seconds = best_of(lambda k=kernel, g=grid, b=block, a=arguments: k.launch(g, b, a))  # type: ignore[misc]
                rate = threads * ITERATIONS * PER_ITERATION / seconds / 1e9
                beside = f"{simulated / seconds:9.0f}x {on_cpu / seconds:9.2f}x"
                print(f"{threads:9,} {cores:5} {name:>8} {seconds * 1e3:9.3f} {rate:7.2f} {beside}", flush=True)
        memory.unregister(x.ctypes.data)


def _simulate(threads: int) -> float:
    """Return the simulator's time: of at most 256 threads and 10 iterations, scaled."""
    count, iterations = min(threads, 256), 10
    command = [sys.executable, "-c", SIMULATED, str(iterations), str(count)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(found.stdout) * (threads / count) * (ITERATIONS / iterations)


def with_cores(count: int) -> None:
    """Let this process, and the threads it has, run on *count* cores."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(_CORES)[:count]
        for task in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(task), cores)


_CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def measure_cub() -> None:
    """Print how long 1,048,576 elements take through a block sum of CUB, and what it costs to compile."""
    from numba import cuda, float32
    from numba.cuda import autolink

    from numba_cuda_autolink.emulator import Module, memory

    lib = autolink.cxx(
        """
        #include <cub/block/block_reduce.cuh>
        __device__ float block_sum(float x) {
            __shared__ typename cub::BlockReduce<float, 256>::TempStorage storage;
            return cub::BlockReduce<float, 256>(storage).Sum(x);
        }
        """
    )

    @cuda.jit
    def sums(x, r):
        total = lib.block_sum(x[cuda.grid(1)])
        if cuda.threadIdx.x == 0:
            r[cuda.blockIdx.x] = total

    ptx = autolink.build(sums, (float32[::1], float32[::1]), cc=(9, 0), output="ptx").code
    text = ptx.decode() if isinstance(ptx, bytes) else ptx
    x = np.random.default_rng(0).random(1 << 20, np.float32)
    r = np.zeros(x.size // 256, np.float32)
    for array in (x, r):
        memory.register(array.ctypes.data, array.nbytes, "")
    with_cores(2)
    for name, checks in kinds_of_checks():
        started = time.perf_counter()
        (kernel,) = Module([text], checks=checks).kernels.values()
        kernel.launch((1, 1, 1), (256, 1, 1), pack_array(x) + pack_array(r))
        first = time.perf_counter() - started

        def run(k: Any = kernel) -> None:
            k.launch((r.size, 1, 1), (256, 1, 1), pack_array(x) + pack_array(r))

        seconds, of_cores = best_of(run), best_of(run, clock=time.process_time)
        times = f"{seconds * 1e3:.0f} ms, {of_cores * 1e3:.0f} ms of all cores; first block {first * 1e3:.0f} ms"
        print(f"CUB's block sum of {x.size:,} elements, checks {name:8}: {times}")
    np.testing.assert_allclose(r, x.reshape(-1, 256).sum(1), rtol=1e-5)


if __name__ == "__main__":
    measure_kernels()
    measure_cub()
