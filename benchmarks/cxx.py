# SPDX-License-Identifier: BSD-2-Clause
"""Measure what C++ by name costs, next to NVRTC's own compile of a binding written by hand.

Run it on any machine, with or without a GPU: ``python benchmarks/cxx.py``. Nothing is in the cache when a library is
asked the first time. Times are medians, and each baseline is measured in turn with what it is compared with. Those of
compiles in this process are CPU time, which other work on the machine hardly changes. Where there is a GPU, kernels are
launched too: ``python benchmarks/cxx.py --only running`` measures these alone.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from statistics import median

FUNCTIONS = ["hypot", "atan2", "fmod", "fmax", "fmin", "pow", "remainder", "copysign", "nextafter", "fdim"]
MORE = ["sin", "cos", "tan", "exp", "log", "sqrt", "cbrt", "erf", "tgamma", "floor"]
CMATH = "#include <cuda/std/cmath>"
CUB = "#include <cub/block/block_reduce.cuh>"
SUM = (
    "[](auto x) { using Reduce = cub::BlockReduce<decltype(x), 128>; __shared__ typename Reduce::TempStorage storage;"
    " return Reduce(storage).Sum(x); }"
)
BLOCK = ["discontinuity", "exchange", "histogram", "load", "merge_sort", "radix_sort", "reduce", "scan", "store"]
WARP = ["exchange", "load", "merge_sort", "reduce", "scan", "store"]
LIBCUDACXX = [f"std/{name}" for name in ("bit", "chrono", "complex", "mdspan", "numeric", "ranges", "variant")]
LIBCUDACXX += ["atomic", "barrier", "pipeline"]
# Headers for a compile server, and a call into them.
HEAVY = {
    "CUB's block reduction": (CUB, SUM.replace("128", "N")),
    "15 headers of CUB": (
        "".join(f"#include <cub/block/block_{name}.cuh>\n" for name in BLOCK)
        + "".join(f"#include <cub/warp/warp_{name}.cuh>\n" for name in WARP),
        SUM.replace("128", "N"),
    ),
    "cooperative groups": (
        "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>",
        "[](auto x) { return cooperative_groups::this_thread_block().thread_rank() * N + x; }",
    ),
    "10 headers of libcu++": (
        "".join(f"#include <cuda/{name}>\n" for name in LIBCUDACXX),
        "[](auto x) { return cuda::std::complex<decltype(x)>(x, N); }",
    ),
}
BY_HAND = {
    "cmath": CMATH + '\nextern "C" __device__ float f(float x, float y) { return cuda::std::hypot(x, y); }',
    "CUB": CUB
    + """
    extern "C" __device__ float f(float x) {
        using Reduce = cub::BlockReduce<float, 128>; __shared__ typename Reduce::TempStorage storage;
        return Reduce(storage).Sum(x);
    }""",
}
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


def cpu_seconds() -> float:
    """Return the seconds of CPU time of this process, its children and what they started, of which it counts ticks."""
    own, tick = time.process_time(), os.sysconf("SC_CLK_TCK")
    processes = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError), open(path) as file:
            name, numbers = file.read().rsplit(")", 1)
            processes[int(name.split()[0])] = [int(number) for number in numbers.split()[1:]]
    children = {pid for pid, (parent, *_) in processes.items() if parent == os.getpid()}
    used = 0
    for pid, (_, _, session, *fields) in processes.items():
        if session in children:  # which they lead
            used += sum(fields[7:11] if pid in children else fields[7:9])
    return own + used / tick


def measured_server(source: str, expression: str, repeats: int) -> dict[str, float]:
    """Return medians in seconds of calls by name with a server that has precompiled the headers of *source* and without
    one. Each call is of *expression* with another number in place of ``N``. CPU time is that of all processes."""
    from numba.cuda import autolink, types
    from numba.cuda.cudadrv.external_code.compile import header_server
    from numba.cuda.cudadrv.external_code.compile.programs import COMPILE_SERVER

    lib = autolink.cxx(f"{source} // {os.getpid()}")
    numbers = itertools.count(1)

    def seconds(with_server: str) -> tuple[float, float]:
        os.environ[COMPILE_SERVER] = with_server
        call = lib.expr(expression.replace("N", str(32 * next(numbers))))
        start, start_cpu = time.perf_counter(), cpu_seconds()
        call.signature(types.float32, cc=(9, 0))
        wall = time.perf_counter() - start
        time.sleep(0.2)  # until the server has freed the memory of that compile
        return wall, cpu_seconds() - start_cpu

    seconds("1")
    header_server.wait_for_servers()
    if not header_server.ready_servers():
        return {"servers that make the same code with this NVRTC": 0}
    times = [(*seconds("1"), *seconds("0")) for _ in range(repeats + 1)]
    header_server.close_servers()
    wall, cpu, plain_wall, plain_cpu = (median(each) for each in zip(*times[1:], strict=True))
    return {
        "with it, s": wall,
        "without, s": plain_wall,
        "ratio": wall / plain_wall,
        "with it, s of CPU time": cpu,
        "without, s of CPU time": plain_cpu,
        "ratio of CPU time": cpu / plain_cpu,
    }


def nvrtc_alone(source: str, *flags: str) -> float:
    """Return the seconds of CPU time that NVRTC alone takes to compile a source."""
    from cuda.bindings import nvrtc
    from numba.cuda.cudadrv.external_code.compile.translation_unit import toolkit_include_paths

    options = ["-arch=sm_90", "-dlto", "-rdc=true", "-std=c++17", *(f"-I{path}" for path in toolkit_include_paths())]
    encoded = [each.encode() for each in (*options, *flags)]
    start = time.process_time()
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"alone.cu", 0, [], [])
    (result,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
    seconds = time.process_time() - start
    nvrtc.nvrtcDestroyProgram(program)
    assert result == nvrtc.nvrtcResult.NVRTC_SUCCESS
    return seconds


def measured_precompiled(source: str, repeats: int) -> dict[str, float]:
    """Return medians of the CPU time that NVRTC alone takes for a unit with nothing but the headers in *source*: with
    precompiled headers, of which it walks through all that was declared, and without."""
    from cuda.bindings import nvrtc

    nvrtc.nvrtcSetPCHHeapSize(768 << 20)
    with tempfile.TemporaryDirectory() as folder:
        headers = os.path.join(folder, "headers.pch")
        text = f"{source}\n#pragma nv_hdrstop\n__device__ int number;"
        nvrtc_alone(text, f"--create-pch={headers}")
        times = [(nvrtc_alone(text, f"--use-pch={headers}"), nvrtc_alone(text)) for _ in range(repeats + 1)]
    ours, theirs = (median(each) for each in zip(*times[1:], strict=True))
    return {"with them, s": ours, "without, s": theirs, "ratio": ours / theirs}


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
    parser.add_argument("--only", choices=["compiling", "warm", "server", "running"])
    arguments = parser.parse_args()
    parts, repeats = (
        [arguments.only] if arguments.only else ["compiling", "warm", "server", "running"],
        arguments.repeats,
    )
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CUDA_AUTOLINK_CACHE_DIR"] = folder
        if "compiling" in parts:
            for title, times in measured(repeats).items():
                print(line(title, times))
        if "warm" in parts:
            print(line("in a fresh process, with everything in the cache", measured_warm(repeats)))
        if "server" in parts:
            for title, (source, expression) in HEAVY.items():
                print(line(f"a call into {title}, with a compile server", measured_server(source, expression, repeats)))
                print(
                    line(
                        "NVRTC alone, on these headers, precompiled, in CPU time", measured_precompiled(source, repeats)
                    )
                )
        if "running" in parts:
            has_gpu = cuda.is_available()
            print(line("a kernel", measured_running(repeats)) if has_gpu else "a kernel: there is no GPU to run it")


if __name__ == "__main__":
    main()
