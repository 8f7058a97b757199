# SPDX-License-Identifier: BSD-2-Clause
"""Measure what C++ by name costs, next to NVRTC's own compile of a binding written by hand.

Run it on any machine, with or without a GPU: ``python benchmarks/cxx.py``. Nothing is in the cache when a library is
asked the first time. Times are medians, and each baseline is measured in turn with what it is compared with. Those of
compiles in this process are CPU time, which other work on the machine hardly changes. Where there is a GPU, kernels are
launched too: ``python benchmarks/cxx.py --only running`` measures these alone.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from statistics import median

FUNCTIONS = ["hypot", "atan2", "fmod", "fmax", "fmin", "pow", "remainder", "copysign", "nextafter", "fdim"]
CHAINED = ["sin", "exp", "cos", "tan", "sqrt", "log", "cbrt", "erf", "floor", "tanh"]
MORE = ["sin", "cos", "tan", "exp", "log", "sqrt", "cbrt", "erf", "tgamma", "floor"]
CMATH = "#include <cuda/std/cmath>"
CUB = "#include <cub/block/block_reduce.cuh>"
SUM = (
    "[](auto x) { using Reduce = cub::BlockReduce<decltype(x), 128>; __shared__ typename Reduce::TempStorage storage;"
    " return Reduce(storage).Sum(x); }"
)
BY_HAND = {
    "cmath": CMATH + '\nextern "C" __device__ float f(float x, float y) { return cuda::std::hypot(x, y); }',
    "CUB": CUB
    + """
    extern "C" __device__ float f(float x) {
        using Reduce = cub::BlockReduce<float, 128>; __shared__ typename Reduce::TempStorage storage;
        return Reduce(storage).Sum(x);
    }""",
}
CHAIN = """
import json, sys, time
from numba import cuda
from numba.cuda import autolink
source, namespace, names = sys.argv[1], sys.argv[2], sys.argv[3].split()
if sys.argv[4] == "link":
    text = source.replace("__device__", 'extern "C" __device__')
    functions = [cuda.declare_device(name, "float32(float32)", abi="c") for name in names]
    options = {"link": [autolink.CUDASource(text)]}
else:
    lib = autolink.cxx(source, namespace=namespace)
    functions, options = [lib[name] for name in names], {}
lines = "".join(f"    v = f{n}(v)\\n" for n in range(len(names)))
called = {f"f{n}": function for n, function in enumerate(functions)}
exec(f"def kernel(x, r):\\n    v = x[0]\\n{lines}    r[0] = v", called)
kernel = cuda.jit(**options)(called["kernel"])
start = time.perf_counter()
built = autolink.build(kernel, "void(float32[::1], float32[::1])", cc=(9, 0))
seconds = time.perf_counter() - start
runs = sum(each.kind == "compile" and each.origin == "built" for each in built.report.builds[0].timeline)
print(json.dumps([seconds, runs, len(built.code)]))
"""
WARM = """
import json, sys, time
from numba import cuda
from numba.cuda import autolink, types
lib = autolink.cxx("#include <cuda/std/cmath>", namespace="cuda::std")
names = sys.argv[1].split()
def kernel_of(functions):
    lines = [f"    r[{n}] = f{n}(x[0], x[1])" for n in range(len(functions))]
    names = {f"f{n}": function for n, function in enumerate(functions)}
    exec("def kernel(x, r):\\n" + "\\n".join(lines), names)
    return names["kernel"]
def seconds(functions):
    start = time.perf_counter()
    autolink.build(kernel_of(functions), "void(float32[::1], float32[::1])", cc=(9, 0), output="ltoir")
    return time.perf_counter() - start
plain = [cuda.jit(device=True)(eval(f"lambda x, y: x + {n} * y")) for n in range(len(names))]
seconds(plain[:1])
def signatures(names):
    start = time.perf_counter()
    for name in names:
        getattr(lib, name).signature(types.float32, types.float32, cc=(9, 0))
    return (time.perf_counter() - start) / len(names)
asked = signatures(names[:1]), signatures(names[1:])
print(json.dumps([*asked, seconds([getattr(lib, name) for name in names]), seconds(plain)]))
"""


def compiled_by_hand(source: str) -> float:
    """Return the seconds of CPU time that NVRTC takes for a binding."""
    from cuda.core import Program, ProgramOptions
    from numba.cuda.cudadrv.external_code.compile.translation_unit import toolkit_include_paths

    options = ProgramOptions(
        name="by_hand.cu",
        arch="sm_90",
        relocatable_device_code=True,
        link_time_optimization=True,
        include_path=list(toolkit_include_paths()),
    )
    start = time.process_time()
    Program(source, "c++", options=options).compile("ltoir")
    return time.process_time() - start


def measured(repeats: int) -> dict[str, dict[str, float]]:
    """Return medians in seconds of CPU time: by name, by hand and their ratio."""
    from numba.cuda import autolink, types

    numbers = itertools.count()
    f32 = types.float32

    def library(source: str, namespace: str = ""):
        return autolink.cxx(f"{source} // {os.getpid()} {next(numbers)}", namespace=namespace)

    def one_of_cmath() -> None:
        library(CMATH, "cuda::std").hypot.signature(f32, f32, cc=(9, 0))

    def twenty_of_cmath() -> None:
        calls = [(name, (f32, f32)) for name in FUNCTIONS] + [(name, (f32,)) for name in MORE]
        library(CMATH, "cuda::std").declare(calls, cc=(9, 0))

    def sum_of_cub() -> None:
        library(CUB).expr(SUM).signature(f32, cc=(9, 0))

    found = {}
    for title, by_name, source in [
        ("first call into <cuda/std/cmath>", one_of_cmath, BY_HAND["cmath"]),
        ("20 functions of <cuda/std/cmath>, against one by hand", twenty_of_cmath, BY_HAND["cmath"]),
        ("first call into CUB", sum_of_cub, BY_HAND["CUB"]),
    ]:
        times: list[tuple[float, float]] = []
        for _ in range(repeats + 1):
            by_hand = compiled_by_hand(source)
            start = time.process_time()
            by_name()
            times.append((time.process_time() - start, by_hand))
        ours, theirs = (median(each) for each in zip(*times[1:], strict=True))  # the first one warms up
        found[title] = {"by name, s": ours, "by hand, s": theirs, "ratio": ours / theirs}
    return found


def measured_warm(repeats: int) -> dict[str, float]:
    """Return medians in milliseconds in fresh processes whose cache has everything."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CUDA_AUTOLINK_CACHE_DIR": folder}
        runs = []
        for _ in range(repeats + 1):
            command = [sys.executable, "-c", WARM, " ".join(FUNCTIONS)]
            runs.append(json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout))
    first, signature, by_name, plain = (median(each) * 1e3 for each in zip(*runs[1:], strict=True))
    count = len(FUNCTIONS)
    return {
        "the first signature, ms": first,
        "each other signature, ms": signature,
        "a call in a kernel of ten, ms": by_name / count,
        "a call of a Python device function, which is compiled, ms": plain / count,
    }


def build_chain(source: str, namespace: str, names: Sequence[str], how: str = "by name") -> list[float]:
    """Return the seconds, NVRTC's runs and the bytes of the first build of a chain of calls, in a process with an empty
    cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CUDA_AUTOLINK_CACHE_DIR": folder}
        command = [sys.executable, "-c", CHAIN, source, namespace, " ".join(names), how]
        done = subprocess.run(command, env=environment, check=True, capture_output=True)
        found: list[float] = json.loads(done.stdout)
        return found


def measured_chains(repeats: int) -> dict[str, dict[str, float]]:
    """Return medians of first builds: of ten chained calls against one, and of a hundred against ``link=``."""
    own = "".join(f"__device__ float g{n}(float x) {{ return x * {n}.5f; }}\n" for n in range(100))
    hundred = [f"g{n}" for n in range(100)]
    rows = {
        "10 chained calls of <cuda/std/cmath>, against one": [
            (CMATH, "cuda::std", CHAINED, "by name"),
            (CMATH, "cuda::std", CHAINED[:1], "by name"),
        ],
        "the same with CUB's headers": [
            (f"{CMATH}\n{CUB}", "cuda::std", CHAINED, "by name"),
            (f"{CMATH}\n{CUB}", "cuda::std", CHAINED[:1], "by name"),
        ],
        "100 chained functions of one's own source, against link=": [
            (own, "", hundred, "by name"),
            (own, "", hundred, "link"),
        ],
    }
    found = {}
    for title, (ours, theirs) in rows.items():
        pairs = [(build_chain(*ours), build_chain(*theirs)) for _ in range(repeats)]
        first, second = (median(pair[n][0] for pair in pairs) for n in range(2))
        runs, size = pairs[0][0][1], pairs[0][0][2]
        found[title] = {"s": first, "baseline, s": second, "ratio": first / second, "NVRTC runs": runs, "bytes": size}
    return found


def measured_running(repeats: int, size: int = 1 << 26) -> dict[str, float]:
    """Return medians in milliseconds of a kernel that calls ``hypot`` of libcu++ by name, and through a binding."""
    import numpy as np
    from numba import cuda
    from numba.cuda import autolink, float32

    by_name = autolink.cxx(CMATH, namespace="cuda::std").hypot
    code = cuda.CUSource(BY_HAND["cmath"].replace(" f(", " hypot_by_hand("))
    by_hand = cuda.declare_device("hypot_by_hand", float32(float32, float32), link=code, abi="c")

    def kernel_of(hypot):
        @cuda.jit(lto=True)
        def kernel(x, y, r):
            i = cuda.grid(1)
            if i < r.size:
                r[i] = hypot(x[i], y[i])

        return kernel

    x, y, r = (cuda.to_device(np.full(size, value, np.float32)) for value in (3, 4, 0))
    kernels = [kernel_of(by_name), kernel_of(by_hand)]
    times: list[list[float]] = [[], []]
    for _ in range(20 * repeats):
        for kernel, found in zip(kernels, times, strict=True):
            begin, end = cuda.event(), cuda.event()
            begin.record()
            kernel[size // 256, 256](x, y, r)
            end.record()
            end.synchronize()
            found.append(cuda.event_elapsed_time(begin, end))
        assert r[:1].copy_to_host()[0] == 5
    ours, theirs = (median(each[5:]) for each in times)
    return {"by name, ms": ours, "by hand, ms": theirs, "ratio": ours / theirs}


def line(title: str, values: dict[str, float]) -> str:
    """Return a line of the table."""
    return f"{title}: " + ", ".join(f"{name} {value:.2f}" for name, value in values.items())


def main() -> None:
    """Measure and print."""
    from numba import cuda

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=["compiling", "chains", "warm", "running"])
    arguments = parser.parse_args()
    parts, repeats = (
        [arguments.only] if arguments.only else ["compiling", "chains", "warm", "running"],
        arguments.repeats,
    )
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CUDA_AUTOLINK_CACHE_DIR"] = folder
        if "compiling" in parts:
            for title, times in measured(repeats).items():
                print(line(title, times))
        if "chains" in parts:
            for title, values in measured_chains(repeats).items():
                print(line(title, values))
        if "warm" in parts:
            print(line("in a fresh process, with everything in the cache", measured_warm(repeats)))
        if "running" in parts:
            has_gpu = cuda.is_available()
            print(line("a kernel", measured_running(repeats)) if has_gpu else "a kernel: there is no GPU to run it")


if __name__ == "__main__":
    main()
