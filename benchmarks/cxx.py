# SPDX-License-Identifier: BSD-2-Clause
"""Measure what C++ by name costs, next to NVRTC's own compile of a binding written by hand.

Run it on any machine, with or without a GPU: ``python benchmarks/cxx.py``. Nothing is in the cache when a library is
asked the first time. Times are medians, and each baseline is measured in turn with what it is compared with. Those of
compiles in this process are CPU time, which other work on the machine hardly changes. Where there is a GPU, kernels are
launched too: ``python benchmarks/cxx.py --only running`` measures these alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from statistics import median

PARTS = ["compiling", "chains", "counts", "precompiled", "warm", "running"]
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
runs = sum(each.kind == "compile" and each.origin in ("built", "refused") for each in built.report.builds[0].timeline)
print(json.dumps([seconds, runs, len(built.code)]))
"""
# A kernel with a loop, a branch, arithmetic, a tuple, a device function and two libraries; and that of the README.
COUNTED = """
import importlib, json, sys
cuda = importlib.import_module(sys.argv[2] + ".cuda")
from numba.cuda import autolink
math = autolink.cxx("#include <cuda/std/cmath>", namespace="cuda::std")
own = autolink.cxx("#include <cuda/std/tuple>\\n"
    "__device__ cuda::std::tuple<float, float> both(float x) { return {x, x + 1}; }\\n"
    "template <class T> __device__ T same(T x) { return x; }")
sin, hypot, both, same = math.sin, math.hypot, own.both, own.same
@cuda.jit(device=True)
def doubled(x):
    return same(sin(x)) * 2
@cuda.jit
def mixed(x, y, r):
    v = x[0]
    for _ in range(3):
        v = sin(v) * 2 + doubled(v)
    if v > 1:
        least, most = both(v)
        v = same(least) + most
    r[0] = hypot(v, y[0])
@cuda.jit
def readme(x, y, r):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = hypot(x[i], y[i])
built = autolink.build(globals()[sys.argv[1]], "void(float32[::1], float32[::1], float32[::1])", cc=(9, 0))
runs = sum(each.kind == "compile" and each.origin in ("built", "refused") for each in built.report.builds[0].timeline)
print(json.dumps([runs, len(built.code)]))
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

# Four instantiations of CUB in one process: wall-clock times, how long the headers took, and digests of the code.
INSTANTIATIONS = """
import hashlib, json, os, time
from numba import cuda
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.compile import nvrtc_processes
def build(threads):
    source = autolink.CUDASource(SOURCE.replace("128", str(threads)), name="sum.cu")
    class Sum(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("f", returns=x)
        def __numba_cuda_link__(self, x):
            return source
    block_sum = Sum()
    def kernel(x):
        x[0] = block_sum(x[1])
    start = time.perf_counter()
    linked = autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
    return time.perf_counter() - start, hashlib.sha256(linked.code).hexdigest()
autolink.build(lambda x: None, "void(float32[::1])", cc=(9, 0))
found = [build(32), build(64)]
start = time.perf_counter()
if os.environ.get("NUMBA_CUDA_AUTOLINK_PCH") != "0":
    folder = nvrtc_processes.processes.kept.folder
    while not any(name.endswith(".pch") for name in os.listdir(folder)) and time.perf_counter() - start < 120:
        time.sleep(0.01)
waited = time.perf_counter() - start
found += [build(128), build(256)]
print(json.dumps([[seconds for seconds, _ in found], waited, [digest for _, digest in found]]))
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
        (found,) = run_at_once(folder, CHAIN, source, namespace, " ".join(names), how)
        return found


def run_at_once(folder: str, script: str, *arguments: str, processes: int = 1) -> list[list[float]]:
    """Return what processes print that start together with one cache *folder*."""
    environment = {**os.environ, "NUMBA_CUDA_AUTOLINK_CACHE_DIR": folder}
    command = [sys.executable, "-c", script, *arguments]
    started = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(processes)]
    return [json.loads(each.communicate()[0]) for each in started]


def counted() -> Iterator[str]:
    """Yield lines on what is counted: runs of NVRTC, and bytes."""
    for front_end in ("numba", "numba_cuda_mlir"):
        if importlib.util.find_spec(front_end) is not None:
            with tempfile.TemporaryDirectory() as folder:
                ((runs, _),) = run_at_once(folder, COUNTED, "mixed", front_end)
            yield line(f"a mixed kernel with two libraries, {front_end}", {"NVRTC runs": runs})
    with tempfile.TemporaryDirectory() as folder:
        found = run_at_once(folder, COUNTED, "readme", "numba", processes=8)
    values = {"NVRTC runs": sum(runs for runs, _ in found), "bytes of the cubin": found[0][1]}
    yield line("the README's kernel in 8 processes at once", values)


def measured_again(repeats: int) -> dict[str, float]:
    """Return medians in seconds of a chain of ten whose parts are all cached, in new processes, by name and with
    ``link=``."""
    own = "".join(f"__device__ float g{n}(float x) {{ return x * {n}.5f; }}\n" for n in range(10))
    names = " ".join(f"g{n}" for n in range(10))
    times: dict[str, list[float]] = {"by name": [], "link": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeats + 1):
            for how, each in times.items():
                each.append(run_at_once(folder, CHAIN, own, "", names, how)[0][0])
    ours, theirs = (median(each[1:]) for each in times.values())  # the first ones fill the cache
    return {"s": ours, "link=, s": theirs, "ratio": ours / theirs}


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


def cpu_of_first(script: str, in_child: bool) -> float:
    """Return the seconds of CPU time of a process that builds one CUB kernel, with its children."""
    embedded = "" if in_child else "import sys; sys.executable = ''\n"  # which compiles in the process itself
    text = embedded + script.partition("found =")[0] + "build(32)\n"
    with tempfile.TemporaryDirectory() as folder:
        own = {"NUMBA_CUDA_AUTOLINK_CACHE_DIR": folder, "NUMBA_CUDA_AUTOLINK_PCH": "0"}
        before = os.times()
        subprocess.run([sys.executable, "-c", text], env={**os.environ, **own}, check=True, capture_output=True)
        after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def measured_precompiled(repeats: int) -> list[str]:
    """Return lines on a process's instantiations of CUB with precompiled headers, each next to the same without, and on
    NVRTC's child process: medians of seconds, in new processes with empty caches."""
    script = INSTANTIATIONS.replace("SOURCE", repr(BY_HAND["CUB"]), 1)
    runs: dict[str, list[tuple[list[float], float, list[str]]]] = {"1": [], "0": []}
    for _ in range(repeats):
        for setting, results in runs.items():
            with tempfile.TemporaryDirectory() as folder:
                own = {"NUMBA_CUDA_AUTOLINK_CACHE_DIR": folder, "NUMBA_CUDA_AUTOLINK_PCH": setting}
                command = [sys.executable, "-c", script]
                done = subprocess.run(command, env={**os.environ, **own}, check=True, capture_output=True)
            results.append(json.loads(done.stdout))
    digests = {tuple(each) for results in runs.values() for _, _, each in results}
    times = {
        setting: [median(each) for each in zip(*(times for times, _, _ in results), strict=True)]
        for setting, results in runs.items()
    }
    lines = [
        line(f"{which} instantiation of CUB", {"with, s": ours, "without, s": plain, "ratio": ours / plain})
        for which, ours, plain in zip(("first", "second", "third", "fourth"), times["1"], times["0"], strict=True)
    ]
    waited = median(waited for _, waited, _ in runs["1"])
    same = "the same bytes" if len(digests) == 1 else "DIFFERENT CODE"
    cpu = [cpu_of_first(script, child) for _ in range(repeats) for child in (True, False)]
    ours, plain = median(cpu[::2]), median(cpu[1::2])
    times_of = {"in a child, s of CPU": ours, "in this process, s of CPU": plain, "ratio": ours / plain}
    lines.append(line("a process with one CUB kernel, NVRTC", times_of))
    return [*lines, f"with and without: {same}; the headers were ready {waited:.2f} s after the second kernel"]


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
    parser.add_argument("--only", choices=PARTS)
    arguments = parser.parse_args()
    parts, repeats = (
        [arguments.only] if arguments.only else PARTS,
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
        if "counts" in parts:
            print("\n".join(counted()))
        if "precompiled" in parts:
            print("\n".join(measured_precompiled(repeats)))
        if "warm" in parts:
            print(line("in a fresh process, with everything in the cache", measured_warm(repeats)))
            print(line("10 chained calls in a fresh process, with everything in the cache", measured_again(repeats)))
        if "running" in parts:
            has_gpu = cuda.is_available()
            print(line("a kernel", measured_running(repeats)) if has_gpu else "a kernel: there is no GPU to run it")


if __name__ == "__main__":
    main()
