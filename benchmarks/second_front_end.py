# SPDX-License-Identifier: BSD-2-Clause
"""Run the same objects in kernels of numba-cuda and of numba-cuda-mlir, in one process, on a GPU.

    python benchmarks/second_front_end.py

Prints whether the results are right on both, the time of kernels with CUB and with an FFT on both, how many programs
and links were built and how many were shared, and what the front ends take to import. Needs CuPy. Exits with 1 if a
result is wrong, or a kernel takes more than 2 % longer with numba-cuda-mlir.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples"
FRONT_ENDS = {"numba-cuda": "numba.cuda", "numba-cuda-mlir": "numba_cuda_mlir.cuda"}
ORDERS = {"numba first": ["numba-cuda", "numba-cuda-mlir"], "mlir first": ["numba-cuda-mlir", "numba-cuda"]}


def objects() -> dict[str, Any]:
    """Return the called objects, which both front ends share."""
    from numba.cuda import autolink

    class Axpy(autolink.DeviceCallable):
        """Numbers by value, of several types in one kernel."""

        def __numba_cuda_call__(self, a, x, y=1.0):
            return autolink.Extern(f"axpy_{x}", returns=x, args={"a": x, "x": x, "y": x})

        def __numba_cuda_link__(self, a, x, y):
            T = autolink.cxx_type(x)
            return autolink.CUDASource(
                f'extern "C" __device__ {T} axpy_{x}({T} a, {T} x, {T} y) {{ return a * x + y; }}'
            )

    class Odd(autolink.DeviceCallable):
        """Values that C++ passes as structs, and short integers."""

        def __numba_cuda_call__(self, z, h, b, s):
            return autolink.Extern("odd", returns=z)

        def __numba_cuda_link__(self, z, h, b, s):
            return autolink.CUDASource("""
                #include <cuda_fp16.h>
                extern "C" __device__ float2 odd(float2 z, __half h, bool b, signed char s) {
                    float scale = __half2float(h) + s;
                    return make_float2(z.x * scale, b ? z.y : -z.y);
                }""")

    class Pair(autolink.DeviceCallable):
        """A tuple and a struct by value, an array by its address, and a method."""

        def __numba_cuda_call__(self, pair, out):
            return autolink.Extern("pair", returns=pair, args={"pair": autolink.by_value, "out": None})

        def __numba_cuda_link__(self, pair, out):
            return autolink.CUDASource(
                f"struct Pair {{ {autolink.cxx_type(pair[0])} n; double x; }};"
                """
                extern "C" __device__ Pair pair(Pair p, float* out) {
                    out[0] = p.n + p.x;
                    return {p.n + 1, p.x * 2};
                }"""
            )

        @autolink.device_method
        def first(self, array):
            return autolink.Extern(f"first_{array.dtype}", returns=array.dtype)

        @first.link
        def first(self, array):
            T = autolink.cxx_type(array.dtype)
            return autolink.CUDASource(f'extern "C" __device__ {T} first_{array.dtype}({T}* a) {{ return a[0]; }}')

    class Halves(autolink.DeviceCallable):
        """The sum of a local or shared array of 16-bit numbers, which C++ reads as one vector."""

        def __init__(self, kind):
            self.kind = kind
            self.include, self.type, self.to_float = {
                "float16": ("cuda_fp16.h", "__half", "__half2float"),
                "bfloat16": ("cuda_bf16.h", "__nv_bfloat16", "__bfloat162float"),
            }[kind]

        def __numba_cuda_call__(self, a):
            return autolink.Extern(f"sum4_{self.kind}", returns="float32")

        def __numba_cuda_link__(self, a):
            return autolink.CUDASource(f"""
                #include <{self.include}>
                extern "C" __device__ float sum4_{self.kind}({self.type}* a) {{
                    uint2 both = *reinterpret_cast<uint2*>(a);
                    {self.type} v[4];
                    memcpy(v, &both, 8);
                    for (int i = 0; i < 4; i++) a[i] = v[3 - i];
                    return {self.to_float}(v[0]) + 10 * {self.to_float}(v[1]) + 100 * {self.to_float}(v[2])
                         + 1000 * {self.to_float}(v[3]);
                }}""")

        @autolink.device_method
        def make(self, x):
            return autolink.Extern(f"make_{self.kind}", returns=self.kind, args={"x": "float32"})

        @make.link
        def make(self, x):
            return autolink.CUDASource(f"""
                #include <{self.include}>
                extern "C" __device__ {self.type} make_{self.kind}(float x) {{ return {self.type}(x); }}""")

    class Body(autolink.DeviceCallable):
        """A call that stands for a function in Python, which calls another object."""

        def __init__(self, inner):
            self.inner = inner

        def __numba_cuda_call__(self, x):
            inner = self.inner
            return lambda x: inner(x, x) * 2

    loaded: list[Any] = []
    source = 'extern "C" __device__ float with_callback(float x) { return x + 5; }'
    counted = autolink.CUDASource(source, setup_callback=loaded.append)

    class Callback(autolink.DeviceCallable):
        """Code with a callback that runs when the module is loaded."""

        def __numba_cuda_call__(self, x):
            return autolink.Extern("with_callback", returns=x)

        def __numba_cuda_link__(self, x):
            return counted

    axpy = Axpy()
    classes = autolink.cxx("""
        struct alignas(16) Counter {
            int n;
            double sum;
            __device__ explicit Counter(int n) : n(n), sum(0) {}
            __device__ double add(double x) { n += 1; sum += x; return sum; }
        };
        __device__ inline double total(const Counter* counters, int size) {
            double found = 0;
            for (int i = 0; i < size; i++) found += counters[i].sum + 1000 * counters[i].n;
            return found;
        }""")
    by_name = autolink.cxx("#include <cuda/std/cmath>", namespace="cuda::std").hypot
    made = {"axpy": axpy, "odd": Odd(), "pair": Pair(), "float16": Halves("float16"), "bfloat16": Halves("bfloat16")}
    return made | {"body": Body(axpy), "callback": Callback(), "hypot": by_name, "loaded": loaded, "classes": classes}


# Results


def check_numbers(cuda: Any, objs: dict[str, Any]) -> None:
    axpy, hypot = objs["axpy"], objs["hypot"]
    both = (axpy, axpy)

    @cuda.jit(device=True)
    def twice(f, x):
        return f(2.0, x) + f(1, x, x)

    @cuda.jit
    def kernel(r, d, x, y):
        i = cuda.grid(1)
        if i < r.size:
            r[i] = axpy(3, x[i], y[i]) + both[1](1.0, x[i]) + twice(axpy, x[i])
            d[i] = axpy(0.5, d[i]) + hypot(x[i], y[i])

    x, y = np.random.default_rng(1).random((2, 1000)).astype(np.float32)
    r, d = np.zeros_like(x), x.astype(np.float64)
    kernel[8, 128](r, d, x, y)
    np.testing.assert_allclose(r, (3 * x + y) + (x + 1) + (2 * x + 1) + (x + x), rtol=1e-6)
    np.testing.assert_allclose(d, 0.5 * x.astype(np.float64) + 1 + np.hypot(x, y), rtol=1e-6)


def check_structs(cuda: Any, objs: dict[str, Any]) -> None:
    odd, pair = objs["odd"], objs["pair"]

    @cuda.jit
    def kernel(z, h, b, s, out, p):
        i = cuda.grid(1)
        if i < z.size:
            z[i] = odd(z[i], h[i], b[i], s[i])
            returned = pair((i, p[i]), out[i : i + 1])
            p[i] = returned[0] + returned[1] + pair.first(out[i : i + 1])

    n, rng = 300, np.random.default_rng(2)
    z = (rng.random(n) + 1j * rng.random(n)).astype(np.complex64)
    h, b, s = rng.random(n).astype(np.float16), rng.random(n) < 0.5, rng.integers(-100, 100, n).astype(np.int8)
    p, out, i = rng.random(n), np.zeros(n, np.float32), np.arange(n)
    expected_p = (i + 1) + 2 * p + (i + p).astype(np.float32)
    scale = h.astype(np.float32) + s
    expected_z = z.real * scale + 1j * np.where(b, z.imag, -z.imag)
    kernel[3, 128](z, h, b, s, out, p)
    np.testing.assert_allclose(z, expected_z, rtol=1e-6)
    np.testing.assert_allclose(p, expected_p, rtol=1e-6)


def check_body(cuda: Any, objs: dict[str, Any]) -> None:
    body = objs["body"]

    @cuda.jit
    def kernel(r, x):
        i = cuda.grid(1)
        if i < r.size:
            r[i] = body(x[i])

    x = np.arange(100, dtype=np.float32)
    r = np.zeros_like(x)
    kernel[1, 128](r, x)
    np.testing.assert_allclose(r, 2 * (x * x + 1))


def check_callback(cuda: Any, objs: dict[str, Any]) -> None:
    callback, loaded = objs["callback"], objs["loaded"]

    @cuda.jit(device=True)
    def between(x):
        return callback(x)

    @cuda.jit
    def kernel(r):
        r[0] = callback(r[0]) + between(r[0])

    before, r = len(loaded), np.ones(1, np.float32)
    kernel[1, 1](r)
    kernel[1, 1](r)
    assert r[0] == 34, r
    assert len(loaded) - before == 1, f"the callback ran {len(loaded) - before} times"


def check_classes(cuda: Any, objs: dict[str, Any]) -> None:
    """Objects of C++ in local and in shared arrays, passed whole, as slices and as elements, and copied."""
    Counter, total = objs["classes"].type("Counter"), objs["classes"].total
    add = Counter.method("add")

    @cuda.jit
    def kernel(r, kept):
        i = cuda.threadIdx.x
        own = cuda.local.array(3, Counter.dtype, alignment=Counter.alignment)
        shared = cuda.shared.array(32, Counter.dtype, alignment=Counter.alignment)
        for k in range(3):
            Counter(own[k], k)
            add(own[k], 0.5 * k + i)
        own[0] = own[2]
        Counter(shared[i], i)
        cuda.syncthreads()
        add(shared[31 - i], i)
        cuda.syncthreads()
        r[i, 0] = total(own, 3)
        r[i, 1] = total(own[1:], 2)
        r[i, 2] = total(shared[i:], shared.size - i)
        kept[i] = own[1]

    i = np.arange(32)
    r, kept = np.zeros((32, 3)), np.zeros(32, Counter.dtype)
    kernel[1, 32](r, kept)
    last_two = (0.5 + i + 2000) + (1 + i + 3000)
    in_shared = 31 - i + 1000.0 * (i + 1)
    expected = last_two + (1 + i + 3000), last_two, np.cumsum(in_shared[::-1])[::-1]
    np.testing.assert_allclose(r, np.stack(expected, axis=1))
    np.testing.assert_allclose(kept.view(np.float64).reshape(32, -1)[:, 1], 0.5 + i)


def check_16_bit(cuda: Any, objs: dict[str, Any], kind: str, memory: str) -> None:
    """Stores of 16-bit numbers around a call that reads and writes the array: none may be lost."""
    halves = objs[kind]
    own = cuda.__name__.replace("numba_cuda_mlir.cuda", "numba_cuda_mlir.numba_cuda")
    dtype = getattr(importlib.import_module(f"{own}.types"), kind)

    @cuda.jit
    def in_local(r):
        a = cuda.local.array(4, dtype, alignment=8)
        for i in range(4):
            a[i] = halves.make(i + 1)
        r[0] = halves(a)
        a[0] = halves.make(7)
        r[1] = halves(a)

    @cuda.jit
    def in_shared(r):
        a = cuda.shared.array(4, dtype, alignment=8)
        for i in range(4):
            a[i] = halves.make(i + 1)
        r[0] = halves(a)
        a[0] = halves.make(7)
        r[1] = halves(a)

    r = np.zeros(2, np.float32)
    (in_local if memory == "local" else in_shared)[1, 1](r)
    # The call reverses 1 2 3 4; then the first is set to 7.
    assert list(r) == [4321, 1237], f"{r} instead of [4321, 1237]"


CHECKS: dict[str, Any] = {
    "numbers, tuples, device functions, C++ by name": check_numbers,
    "structs, half, bool, arrays, methods": check_structs,
    "a body in Python": check_body,
    "callbacks, once for each module": check_callback,
    "objects of C++ in local and shared arrays": check_classes,
    **{
        f"{kind} in {memory} memory around a call": functools.partial(check_16_bit, kind=kind, memory=memory)
        for kind in ("float16", "bfloat16")
        for memory in ("local", "shared")
    },
}


def results(order: str) -> bool:
    front_ends = {name: importlib.import_module(FRONT_ENDS[name]) for name in ORDERS[order]}
    objs, right = objects(), True
    for title, check in CHECKS.items():
        for name, cuda in front_ends.items():
            if title.startswith("bfloat16") and name == "numba-cuda":  # which has no arrays of these numbers
                continue
            try:
                check(cuda, objs)
                told = "right"
            except Exception as error:
                told, right = f"WRONG: {type(error).__name__}: {error}", False
                traceback.print_exc()
            print(f"  {title:<52} {name:<16} {told[:300]}", flush=True)
    return right


# Times


def example(name: str, cuda: Any) -> Any:
    """Return a module of the examples, whose kernels *cuda* compiles."""
    sys.path.insert(0, str(EXAMPLES))
    import _frontend

    _frontend.cuda = cuda
    sys.modules.pop(name, None)
    return importlib.import_module(name)


def timed(kernels: dict[str, Any], rounds: int = 60) -> dict[str, float]:
    """Return the median time in ms of each of *kernels*, called in turn."""
    import cupy

    times: dict[str, list[float]] = {name: [] for name in kernels}
    for turn in range(rounds + 5):
        for name, call in kernels.items():
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            call()
            end.record()
            end.synchronize()
            if turn >= 5:
                times[name].append(cupy.cuda.get_elapsed_time(begin, end))
    return {name: statistics.median(each) for name, each in times.items()}


def running_times() -> bool:
    import cupy

    front_ends = {name: importlib.import_module(module) for name, module in FRONT_ENDS.items()}
    fine = True
    threads, n = 256, 1 << 26
    x, totals = cupy.random.rand(n, dtype=cupy.float32), cupy.zeros(n // threads, cupy.float32)
    running = cupy.zeros_like(x)
    cub = {name: example("cub_block_sum", cuda).make_kernel(threads) for name, cuda in front_ends.items()}
    calls: dict[str, dict[str, Any]] = {
        "CUB block sum and scan, float32": {
            name: lambda k=k: k[n // threads, threads](x, totals, running) for name, k in cub.items()
        }
    }
    for size, precision in ((128, np.float32), (1024, np.float32), (1024, np.float64)):
        modules = {name: example("fft", cuda) for name, cuda in front_ends.items()}
        rows = (1 << 24) // size
        fft = modules["numba-cuda"].FFT(size, precision)
        data = cupy.ones((rows, size), fft.value_type)
        blocks = -(-rows // fft.ffts_per_block)
        kernels = {name: module.make_kernel(fft) for name, module in modules.items()}
        calls[f"FFT of {size}, {fft.value_type}"] = {
            name: lambda k=k, fft=fft, blocks=blocks, data=data: k[blocks, fft.block_dim, 0, fft.shared_memory_size](
                data
            )
            for name, k in kernels.items()
        }
    for title, each in calls.items():
        ms = timed(each)
        ratio = ms["numba-cuda-mlir"] / ms["numba-cuda"]
        fine = fine and ratio <= 1.02
        told = "  ".join(f"{name} {value:.3f} ms" for name, value in ms.items())
        print(f"  {title:<34} {told}  ratio {ratio:.3f}", flush=True)
    return fine


# What is shared, and what importing takes


def shared() -> bool:
    from numba.cuda import autolink

    fft = example("fft", importlib.import_module("numba.cuda")).FFT(256)
    reports = {}
    for name, module in FRONT_ENDS.items():
        kernel = example("fft", importlib.import_module(module)).make_kernel(fft)
        start = time.perf_counter()
        reports[name] = autolink.build(kernel, "void(complex64[:, ::1])", cc=(9, 0)).report.builds[0]
        seconds = time.perf_counter() - start
        origins = [each.compiled.origin for each in reports[name].link.inputs if each.compiled]
        print(f"  {name:<16} built in {seconds:.2f} s, programs: {', '.join(origins)}")
    return True


def imports() -> bool:
    scripts = {
        "numba_cuda_mlir without this project": ("from numba_cuda_mlir import cuda", "0"),
        "numba_cuda_mlir with it": ("from numba_cuda_mlir import cuda", "1"),
        "and its compiler, without": ("from numba_cuda_mlir import cuda, mlir_compiler", "0"),
        "and its compiler, with (and numba.cuda)": ("from numba_cuda_mlir import cuda, mlir_compiler", "1"),
    }
    for title, (script, active) in scripts.items():
        times = []
        for _ in range(5):
            start = time.perf_counter()
            environment = {**os.environ, "NUMBA_CUDA_AUTOLINK": active}
            subprocess.run([sys.executable, "-c", script], check=True, env=environment)
            times.append(time.perf_counter() - start)
        print(f"  {title:<42} {min(times):.2f} s (best of 5)")
    return True


SECTIONS: dict[str, Any] = {
    "results": None,
    "times": running_times,
    "shared": shared,
    "imports": imports,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", default=list(SECTIONS), help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--order", choices=ORDERS, help="run the checks of results in this process, in this order")
    arguments = parser.parse_args()
    if arguments.order:
        sys.exit(not results(arguments.order))
    os.environ.setdefault("NUMBA_CUDA_AUTOLINK_CACHE_DIR", tempfile.mkdtemp())
    fine = True
    for section in arguments.sections:
        commands = [[section]] if SECTIONS[section] else [["--order", order] for order in ORDERS]
        for command in commands:
            print(f"{section}{f' ({command[1]})' if len(command) > 1 else ''}:", flush=True)
            if SECTIONS[section] and len(arguments.sections) == 1:
                fine = bool(SECTIONS[section]()) and fine
            else:
                fine = subprocess.run([sys.executable, __file__, *command]).returncode == 0 and fine
    sys.exit(not fine)


if __name__ == "__main__":
    main()
