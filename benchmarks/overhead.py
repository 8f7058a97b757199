# SPDX-License-Identifier: BSD-2-Clause
"""Measure the overhead of calling external code over plain numba-cuda: compiling, asking, launching and running.

Run it with ``python benchmarks/overhead.py``. Each figure is the median over rounds in which both sides take turns, and
its spread is the interquartile range. Without a GPU, the first two are measured up to LTO-IR, and the others are left
out.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time

import numpy as np
from numba import cuda
from numba.cuda import autolink, compiler, types
from numba.cuda.core import sigutils

CC = (9, 0)
SIGNATURE = "void(float32[::1], float32[::1], float32)"


def plain(x, y, a):
    """Run a kernel without external code."""
    i = cuda.grid(1)
    if i < x.size:
        total = float32_zero
        for k in range(8):
            total += y[i] * a - x[(i + k) % x.size]
        y[i] = total


float32_zero = np.float32(0)


def compile_once(kernel, signature=SIGNATURE):
    """Return the seconds to compile *kernel* from scratch: to a loaded kernel if there is a GPU, else to LTO-IR."""
    start = time.perf_counter()
    if cuda.is_available():
        cuda.jit(kernel).compile(sigutils.normalize_signature(signature)[0])
    else:
        cuda.compile(kernel, signature, cc=CC, device=False, abi="numba", output="ltoir")
    return time.perf_counter() - start


def in_turn(one, other, rounds):
    """Return the times of *one* and *other*, which take turns. Which of them goes first alternates."""
    times: tuple[list[float], list[float]] = ([], [])
    gc.disable()
    try:
        for number in range(rounds):
            order = (0, 1) if number % 2 else (1, 0)
            for which in order:
                times[which].append((one, other)[which]())
            gc.collect()
    finally:
        gc.enable()
    return times


def spread(values):
    """Return the interquartile range."""
    first, _, third = statistics.quantiles(values, n=4)
    return third - first


def compile_overhead(rounds):
    """Measure compiling a kernel that uses no external code, with this project active and inactive."""

    def with_us():
        autolink.activate()
        return compile_once(plain)

    def without_us():
        autolink.deactivate()
        return compile_once(plain)

    with_us(), without_us()
    active, inactive = in_turn(with_us, without_us, rounds)
    autolink.activate()
    ratios = [a / b for a, b in zip(active, inactive, strict=True)]
    return statistics.median(active), statistics.median(inactive), statistics.median(ratios), spread(ratios)


def make_calling(functions):
    """Return a kernel that calls each of *functions*."""
    names = {f"f{number}": function for number, function in enumerate(functions)}
    body = "\n".join(f"    x[{number}] = {name}(x[{number}])" for number, name in enumerate(names))
    namespace = dict(names)
    exec(f"def kernel(x):\n{body}\n", namespace)
    return namespace["kernel"]


def ask_overhead(rounds, calls):
    """Measure asking an object at each of *calls* call sites, against the same calls without a hook.

    The hooks return nothing to link, so that only asking differs. The compilation ends with LLVM IR, because NVVM's
    time would hide the difference.
    """
    argtypes = (types.int32[::1],)

    def lowered(hook):
        functions = [cuda.declare_device(f"f{number}", "int32(int32)") for number in range(calls)]
        for function in functions if hook else ():
            function.__numba_cuda_link__ = lambda x: None
        kernel = make_calling(functions)
        start = time.perf_counter()
        compiler.compile_cuda(kernel, types.void, argtypes, cc=CC, lto=True)
        return time.perf_counter() - start

    lowered(True), lowered(False)
    with_hooks, without_hooks = in_turn(lambda: lowered(True), lambda: lowered(False), rounds)
    differences = [(a - b) / calls for a, b in zip(with_hooks, without_hooks, strict=True)]
    return (
        statistics.median(with_hooks),
        statistics.median(without_hooks),
        statistics.median(differences),
        spread(differences),
    )


AXPY = autolink.CUDASource(
    'extern "C" __device__ int axpy(float *out, float a, float x, float y) { *out = a * x + y; return 0; }'
)


def axpy_kernels():
    """Return a memory-bound kernel that calls external C++, and the same kernel written in Python."""
    axpy = cuda.declare_device("axpy", "float32(float32, float32, float32)")
    axpy.__numba_cuda_link__ = lambda *argtypes: AXPY

    @cuda.jit
    def external(x, y, a):
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            y[i] = axpy(a, x[i], y[i])

    @cuda.jit
    def inline(x, y, a):
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            y[i] = a * x[i] + y[i]

    return external, inline


def run_overhead(rounds):
    """Measure GB/s of the two kernels, with 1 GiB of data in each array."""
    external, inline = axpy_kernels()
    size = 1 << 28
    x = cuda.to_device(np.random.default_rng(0).random(size, dtype=np.float32))
    y = cuda.to_device(np.ones(size, dtype=np.float32))
    start, stop = cuda.event(), cuda.event()

    def timed(kernel):
        def once():
            start.record()
            for _ in range(20):  # a single launch would run at the clock rate left by the pause before it
                kernel[132 * 16, 256](x, y, np.float32(1e-3))
            stop.record()
            stop.synchronize()
            return cuda.event_elapsed_time(start, stop) / 1000 / 20

        return once

    for _ in range(3):
        timed(external)(), timed(inline)()
    ours, theirs = in_turn(timed(external), timed(inline), rounds)
    moved = 3 * 4 * size / 1e9
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return moved / statistics.median(ours), moved / statistics.median(theirs), statistics.median(ratios), spread(ratios)


def launch_overhead(rounds, launches):
    """Measure the seconds per launch of a four-argument kernel.

    One kernel links external code; the other is compiled by numba-cuda with this project inactive.
    """
    axpy = cuda.declare_device("axpy", "float32(float32, float32, float32)")
    axpy.__numba_cuda_link__ = lambda *argtypes: AXPY
    x, y = cuda.to_device(np.ones(32, np.float32)), cuda.to_device(np.ones(32, np.float32))

    @cuda.jit
    def external(x, y, a, n):
        i = cuda.grid(1)
        if i < n:
            y[i] = axpy(a, x[i], y[i])

    @cuda.jit
    def inline(x, y, a, n):
        i = cuda.grid(1)
        if i < n:
            y[i] = a * x[i] + y[i]

    def launched(kernel):
        configured = kernel[1, 32]

        def loop():
            start = time.perf_counter()
            for _ in range(launches):
                configured(x, y, 1.0, 32)
            elapsed = (time.perf_counter() - start) / launches
            cuda.synchronize()
            return elapsed

        return loop

    autolink.deactivate()
    launched(inline)()
    autolink.activate()
    launched(external)()
    ours, theirs = in_turn(launched(external), launched(inline), rounds)
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return statistics.median(ours), statistics.median(theirs), statistics.median(ratios), spread(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    print(f"{'measure':44}{'with':>12}{'without':>12}{'added':>14}{'spread':>12}")

    with_us, without_us, ratio, width = compile_overhead(rounds)
    name = "compile, no external code" + (" (ms)" if cuda.is_available() else ", to LTO-IR (ms)")
    print(f"{name:44}{with_us * 1e3:12.2f}{without_us * 1e3:12.2f}{(ratio - 1) * 100:13.2f}%{width * 100:11.2f}%")

    calls = 64
    with_hooks, without_hooks, each, width = ask_overhead(rounds, calls)
    print(f"{f'type and lower {calls} call sites (ms)':44}{with_hooks * 1e3:12.2f}{without_hooks * 1e3:12.2f}", end="")
    print(f"{each * 1e6:9.1f} us/call{width * 1e6:7.1f} us")

    if not cuda.is_available():
        print("no GPU: launch and run times are not measured")
        return
    ours, theirs, ratio, width = launch_overhead(rounds, 2000)
    print(f"{'launch, 4 arguments (us)':44}{ours * 1e6:12.2f}{theirs * 1e6:12.2f}", end="")
    print(f"{(ratio - 1) * 100:13.2f}%{width * 100:11.2f}%")
    ours, theirs, ratio, width = run_overhead(rounds)
    print(f"{'memory-bound kernel, external C++ (GB/s)':44}{ours:12.0f}{theirs:12.0f}", end="")
    print(f"{(ratio - 1) * 100:13.2f}%{width * 100:11.2f}%")


if __name__ == "__main__":
    main()
