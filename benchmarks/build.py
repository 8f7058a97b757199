# SPDX-License-Identifier: BSD-2-Clause
"""Measure the cost of building kernels that call external code: with this project, and with numba-cuda alone.

Run it on a machine with a GPU: ``python benchmarks/build.py``. The kernel sums blocks with CUB. It is compared with the
same kernel without external code (shared-memory atomics in Python), and with numba-cuda alone, which gets the same CUDA
C++ through ``declare_device(..., link=)``. Times are medians over fresh processes, in turns. Each starts with the cache
directories in the state that its line names. Python's bytecode is there, as after an installation by pip.

``--parts first warm`` measures just these parts, in two minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

# A program that builds kernels and prints its measurements as JSON. Its arguments are variant, caching and kernels.
PROGRAM = r'''
import json, sys, time
started = time.perf_counter()
import numpy as np
from numba import cuda, types

variant, caching, kernels = sys.argv[1], sys.argv[2] == "True", int(sys.argv[3])

SOURCE = """
#include <cub/block/block_reduce.cuh>
extern "C" __device__ %s block_sum(%s int x) {
    using Reduce = cub::BlockReduce<int, 128>;
    __shared__ typename Reduce::TempStorage storage;
    %s
}"""

if variant == "autolink":
    from numba.cuda import autolink

    class BlockSum(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("block_sum", returns=x)

        def __numba_cuda_link__(self, x):
            return autolink.CUDASource(SOURCE % ("int", "", "return Reduce(storage).Sum(x);"), name="block_sum.cu")

    block_sum = BlockSum()
elif variant == "alone":
    code = SOURCE % ("int", "int *out,", "*out = Reduce(storage).Sum(x); return 0;")
    block_sum = cuda.declare_device("block_sum", types.int32(types.int32), link=cuda.CUSource(code))
else:

    @cuda.jit(device=True)
    def block_sum(x):
        total = cuda.shared.array(1, types.int32)
        if cuda.threadIdx.x == 0:
            total[0] = 0
        cuda.syncthreads()
        cuda.atomic.add(total, 0, x)
        cuda.syncthreads()
        return total[0]


FORMS = []
KERNEL_FORMS
imported = time.perf_counter()
x = cuda.to_device(np.arange(128, dtype=np.int32))
context = time.perf_counter()
times = []
for number, kernel in enumerate(FORMS[:kernels]):
    out = cuda.to_device(np.zeros(1, dtype=np.int32))
    start = time.perf_counter()
    kernel[1, 128](x, out)
    cuda.synchronize()
    times.append(time.perf_counter() - start)
    assert out.copy_to_host()[0] == 128 * 127 // 2 + number, (number, out.copy_to_host()[0])
total = time.perf_counter() - started
size = len(next(iter(next(iter(FORMS[0].overloads.values()))._codelibrary._cubin_cache.values())).code)
measured = {"times": times, "import": imported - started, "context": context - imported, "total": total, "cubin": size}
print(json.dumps(measured))
'''
# Each kernel has its own source, since equal source is compiled only once.
FORM = """
@cuda.jit(cache=caching)
def kernel{n}(x, out):
    total = block_sum(x[cuda.threadIdx.x])
    if cuda.threadIdx.x == 0:
        out[0] = total + {n}


FORMS.append(kernel{n})
"""
KERNELS = 4

NVMATH = r"""
import json, sys, time
import numpy as np
from numba import cuda

variant, examples = sys.argv[1:]
settings = dict(size=128, precision=np.float32, direction="forward", elements_per_thread=8, ffts_per_block=2)
if variant == "autolink":
    sys.path.insert(0, examples)
    from nvmath_fft import CuFFTDx

    fft = CuFFTDx(sm=cuda.get_current_device().compute_capability, **settings)
    dtype = np.complex64
else:
    from nvmath.device import FFT

    fft = FFT(fft_type="c2c", execution="Block", **settings)
    dtype = fft.value_type
storage, stride = fft.storage_size, fft.stride


def make(number):
    @cuda.jit
    def kernel(x):
        data = cuda.local.array(storage, dtype, alignment=16)
        shared = cuda.shared.array(0, dtype, alignment=16)
        row = cuda.threadIdx.y
        for i in range(storage):
            data[i] = x[row, cuda.threadIdx.x + i * stride]
        fft.execute(data, shared)
        for i in range(storage):
            x[row, cuda.threadIdx.x + i * stride] = data[i]
        if row == -1:  # make each kernel different
            x[0, 0] = number

    return kernel


times = []
for number in range(3):
    x = np.random.default_rng(number).standard_normal((2, 256)).astype(np.float32).view(np.complex64)
    device = cuda.to_device(x)
    kernel = make(number)
    start = time.perf_counter()
    kernel[1, tuple(fft.block_dim), 0, fft.shared_memory_size](device)
    cuda.synchronize()
    times.append(time.perf_counter() - start)
    expected = np.fft.fft(x, axis=-1)
    error = np.linalg.norm(device.copy_to_host() - expected) / np.linalg.norm(expected)
    assert error < 1e-6, error
print(json.dumps({"times": times}))
"""


class Bench:
    """Runs programs in fresh processes, with separate cache directories."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.program = folder / "program.py"
        forms = "".join(FORM.format(n=number) for number in range(KERNELS))
        self.program.write_text(PROGRAM.replace("KERNEL_FORMS", forms))

    def environment(self, variant: str) -> dict[str, str]:
        """Return the environment variables for a process of *variant*."""
        own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {
            **own,
            "PYTHONPYCACHEPREFIX": str(self.folder / "bytecode"),
            "NUMBA_CUDA_AUTOLINK": "1" if variant == "autolink" else "0",
            "NUMBA_CUDA_AUTOLINK_CACHE_DIR": str(self.folder / "autolink"),
            "NUMBA_CACHE_DIR": str(self.folder / f"numba-{variant}"),
            "PYTHONWARNINGS": "ignore",
        }

    def clear_caches(self) -> None:
        """Remove all cache directories."""
        for name in ("autolink", "numba-autolink", "numba-alone", "numba-plain"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def run(self, variant: str, caching: bool = False, kernels: int = KERNELS) -> dict:
        return self._run([str(self.program), variant, str(caching), str(kernels)], variant)

    def _run(self, arguments: list[str], variant: str) -> dict:
        done = subprocess.run(
            [sys.executable, *arguments], env=self.environment(variant), capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])

    def run_text(self, name: str, text: str, variant: str, *arguments: str):
        file = self.folder / name
        file.write_text(text)
        return self._run([str(file), *arguments], variant)


def line(name, ours, alone, plain, goal, *, against_alone=False):
    """Print one line of the table, with seconds or None in each column, and the ratio to a plain kernel or, with
    *against_alone*, to numba-cuda alone."""
    reference = alone if against_alone else plain

    def shown(value, unit="s"):
        return "-" if value is None else (f"{value:.3f} {unit}" if unit else str(value))

    ratio = "" if not (ours and reference) else f"{ours / reference:5.2f} x"
    print(f"{name:58}{shown(ours):>11}{shown(alone):>11}{shown(plain):>11}{ratio:>9}  {goal}")


def first_and_later(bench, rounds):
    results: dict[str, list[dict]] = {"autolink": [], "alone": [], "plain": []}
    for _ in range(rounds):
        for variant, runs in results.items():
            bench.clear_caches()
            runs.append(bench.run(variant))
    first = {variant: median([run["times"][0] for run in runs]) for variant, runs in results.items()}
    later = {variant: median([t for run in runs for t in run["times"][1:]]) for variant, runs in results.items()}
    name = "first kernel, nothing cached (ratio: to alone)"
    line(name, first["autolink"], first["alone"], first["plain"], "<= 1.05 x", against_alone=True)
    name = "a later kernel that uses the same CUB object"
    line(name, later["autolink"], later["alone"], later["plain"], "<= 1.2 x")
    sizes = {variant: runs[0]["cubin"] for variant, runs in results.items()}
    print(
        f"cubin: with us {sizes['autolink']} bytes, alone {sizes['alone']}, no external code {sizes['plain']}"
        " (<= 10 KB)"
    )


def other_process(bench, rounds):
    bench.clear_caches()
    bench.run("autolink")
    results: dict[str, list[float]] = {"autolink": [], "alone": [], "plain": []}
    for _ in range(rounds):
        for variant, times in results.items():
            times.append(bench.run(variant, kernels=1)["times"][0])
    name = "the same kernel in another process, warm disk, no cache=True"
    line(name, median(results["autolink"]), median(results["alone"]), median(results["plain"]), "<= 1.05 x")


def cached_start(bench, rounds):
    bench.clear_caches()
    for variant in ("autolink", "plain"):
        bench.run(variant, caching=True, kernels=1)
    runs: dict[str, list[dict]] = {"autolink": [], "plain": [], "alone": []}
    for _ in range(rounds):
        runs["alone"].append(bench.run("alone", kernels=1))
        for variant in ("plain", "autolink"):
            runs[variant].append(bench.run(variant, caching=True, kernels=1))
    total = {variant: median([run["total"] for run in some]) for variant, some in runs.items()}
    name = "fresh process to first result, cache=True (alone: without)"
    line(name, total["autolink"], total["alone"], total["plain"], "<= 1.0 x")
    for variant in ("plain", "autolink"):
        parts = {part: median([run[part] for run in runs[variant]]) for part in ("import", "context")}
        launch = median([run["times"][0] for run in runs[variant]])
        print(
            f"    of it, {variant}: imports {parts['import']:.3f} s, context {parts['context']:.3f} s,"
            f" kernel {launch:.3f} s"
        )


def import_with_many_entries(bench, rounds, entries):
    from numba.cuda.cudadrv.external_code.cache.entry import CacheKey
    from numba.cuda.cudadrv.external_code.cache.store import current_store

    bench.clear_caches()
    os.environ["NUMBA_CUDA_AUTOLINK_CACHE_DIR"] = str(bench.folder / "autolink")
    times = {}
    for label, count in (("empty", 0), ("full", entries)):
        for number in range(count):
            current_store().put(CacheKey("program", f"entry{number}", (("number", str(number)),)), b"x" * 1000)
        text = (
            "import time, json; t = time.perf_counter(); import numba.cuda; print(json.dumps(time.perf_counter() - t))"
        )
        times[label] = median([bench.run_text("import.py", text, "autolink") for _ in range(rounds)])
    line(f"import numba.cuda with {entries} entries in the cache", times["full"], None, times["empty"], "1 x")


HITS = r"""
import json, time
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.compile import programs
from numba.cuda.cudadrv.external_code.inputs.link_input import from_item

CODE = (
    "#include <cub/block/block_reduce.cuh>\n"
    'extern "C" __device__ int block_sum(int x) {'
    " using R = cub::BlockReduce<int, %d>; __shared__ R::TempStorage s; return R(s).Sum(x); }"
)
found = []
for round in range(20):
    for threads in (32, 64, 128, 256, 512):
        source = from_item(autolink.CUDASource(CODE % threads, name=f"hit{threads}.cu"))
        start = time.perf_counter()
        program = programs.compiled(source, autolink.Target((9, 0), lto=True))
        found.append((program.origin, time.perf_counter() - start))
print(json.dumps(found))
"""


def program_hits(bench):
    bench.run_text("hits.py", HITS, "autolink")
    found = bench.run_text("hits.py", HITS, "autolink")
    disk = [seconds * 1e3 for origin, seconds in found if origin == "disk"]
    memory = [seconds * 1e6 for origin, seconds in found if origin == "memory"]
    print(f"disk hit for one CUB program, headers checked: {median(disk[1:]):.2f} ms (<= 2; the process's first one:")
    print(f"    {disk[0]:.2f} ms, including loading NVRTC); memory hit: {median(memory):.0f} us (<= 100)")


CHECKS = r"""
import dataclasses, json, time
from numba import cuda
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CalledFunction, prototype_of_llvm
from numba.cuda.cudadrv.external_code.compile.prototype_assertions import with_assertions
from numba.cuda.cudadrv.external_code.compile.programs import compile_unit
from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit
from numba.cuda.cudadrv.external_code.inputs.link_input import from_item
from numba.cuda.cudadrv.external_code.link import nvjitlink as trial

SMALL = 'extern "C" __device__ int block_sum(int x) { return x; }'
CUB = (
    "#include <cub/block/block_reduce.cuh>\n"
    'extern "C" __device__ int block_sum(int x) {'
    " using R = cub::BlockReduce<int, 128>; __shared__ R::TempStorage s; return R(s).Sum(x); }"
)
called = CalledFunction("block_sum", prototype_of_llvm("i32 (i32)"))


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


measured = {}
for name, code, rounds in (("small", SMALL, 100), ("CUB", CUB, 10)):
    unit = TranslationUnit.of(from_item(autolink.CUDASource(code)), autolink.Target((9, 0), lto=True))
    checked = with_assertions(unit, [called])
    pairs = [(seconds(lambda: compile_unit(unit)), seconds(lambda: compile_unit(checked))) for _ in range(rounds)]
    measured[name] = [min(times) for times in zip(*pairs)]


class BlockSum(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("block_sum", returns=x)

    def __numba_cuda_link__(self, x):
        return cuda.LTOIR(self.code, name="block_sum.ltoir")


def build(code, number):
    block_sum = BlockSum()
    block_sum.code = code

    def kernel(x):
        x[0] = block_sum(x[1]) + number

    return seconds(lambda: autolink.build(kernel, "void(int32[::1])", cc=(9, 0)))


target = autolink.Target((9, 0), lto=True)
codes = [compile_unit(TranslationUnit.of(from_item(autolink.CUDASource(text)), target)).code for text in (SMALL, CUB)]
build(codes[0], 0)  # what a process does once, such as importing the linker
trial.helpers.close()
started = []
start = trial.ChildProcess
trial.ChildProcess = lambda script, **how: started.append(script) or start(script, **how)
first = build(codes[1], 1)
here = min(build(codes[1], number) for number in range(2, 7))
measured["helper"] = [first, here, len(started)]
print(json.dumps(measured))
"""


def checks(bench):
    """Measure what the checks of external code cost: assertions in CUDA C++, and the process that links first."""
    bench.clear_caches()
    measured = bench.run_text("checks.py", CHECKS, "autolink")
    for name in ("small", "CUB"):
        plain, checked = measured[name]
        extra = f"+{(checked - plain) * 1e3:.1f} ms, {(checked / plain - 1) * 100:.1f} %"
        print(
            f"assertions on types, {name} source: {plain:.4f} s without, {checked:.4f} s with ({extra}; <= 2 % of CUB)"
        )
    first, here, processes = measured["helper"]
    print(
        f"first kernel with LTO-IR from outside: {first:.3f} s, later ones {here:.3f} s: {first - here:.3f} s for"
        f" {processes} process (<= 0.4 s, 5 % of a first nvmath-python kernel)"
    )


def nvmath_kernels(bench, rounds):
    examples = str(Path(__file__).resolve().parent.parent / "examples")
    times = {}
    for variant in ("autolink", "alone"):
        bench.clear_caches()
        times[variant] = [
            bench.run_text(f"nvmath_{variant}.py", NVMATH, variant, variant, examples)["times"] for _ in range(rounds)
        ]
    for number, name in enumerate(("first kernel on an nvmath FFT object", "second kernel on the same object")):
        values = {variant: median([run[number] for run in some]) for variant, some in times.items()}
        line(name, values["autolink"], values["alone"], None, "<= 0.5 s" if number else "")


def nvmath(bench, rounds):
    try:
        import nvmath.device  # noqa: F401
    except ImportError as error:
        print(f"nvmath-python is not measured: {error}")
    else:
        nvmath_kernels(bench, max(1, rounds // 2))


# What is measured, by name: each with the rounds and the entries of the command line.
PARTS = {
    "first": lambda bench, rounds, entries: first_and_later(bench, rounds),
    "warm": lambda bench, rounds, entries: other_process(bench, rounds),
    "start": lambda bench, rounds, entries: cached_start(bench, rounds),
    "hits": lambda bench, rounds, entries: program_hits(bench),
    "checks": lambda bench, rounds, entries: checks(bench),
    "import": import_with_many_entries,
    "nvmath": lambda bench, rounds, entries: nvmath(bench, rounds),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for variant in ("autolink", "alone", "plain"):  # so that Python's bytecode is there
            bench.run(variant, caching=variant != "alone", kernels=1)
        print(f"{'measure':58}{'with us':>11}{'alone':>11}{'no ext.':>11}{'ratio':>9}  goal")
        for part in arguments.parts:
            PARTS[part](bench, arguments.rounds, arguments.entries)


if __name__ == "__main__":
    main()
