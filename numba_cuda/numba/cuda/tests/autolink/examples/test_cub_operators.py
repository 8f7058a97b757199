# SPDX-License-Identifier: BSD-2-Clause
"""Operators in Python for the primitives of examples/cub: with state, inlined, and as good as operators in C++."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from autolink_support import build
from cub_cases import cub
from numba import cuda
from numba.cuda import autolink
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.formats.cubin import resources
from repository import BENCHMARKS, EXAMPLES, module

THREADS = 64
SIGNATURE = "void(float32[::1], float32[:], float32[:, ::1])"


class Halve(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"halve_{x}", returns=x)

    def __numba_cuda_link__(self, x):
        T = autolink.cxx_type(x)
        return autolink.CUDASource(f'extern "C" __device__ {T} halve_{x}({T} x) {{ return x / 2; }}', unit="cub")

    def __call__(self, x):
        return x / 2


halve = Halve()


@cuda.jit(device=True)
def saturating(a, b, limit):
    return min(a + b, limit[limit.shape[0] - 1])


@cuda.jit(device=True)
def larger_half(a, b):
    return a if halve(a) >= halve(b) else b


@cuda.jit(device=True)
def nearer(a, b, point):
    return abs(a - point[0]) < abs(b - point[0])


def make_kernel():
    """Return a kernel with an operator in Python in every primitive that takes one: ``out[k]`` has the k-th results."""
    reduce, reduce_items, warp_reduce = cub.BlockReduce(THREADS), cub.BlockReduce(THREADS, 4), cub.WarpReduce(THREADS)
    scan, scan_items, warp_scan = cub.BlockScan(THREADS), cub.BlockScan(THREADS, 4), cub.WarpScan(THREADS)
    sort, warp_sort = cub.BlockMergeSort(THREADS, 4), cub.WarpMergeSort(THREADS, 32, 4)

    @cuda.jit
    def kernel(x, limit, out):
        t = cuda.threadIdx.x
        items = cuda.local.array(4, np.float32)
        scanned = cuda.local.array(4, np.float32)
        for i in range(4):
            items[i] = x[4 * t + i]
        out[0, t] = reduce.reduce(x[t], saturating, state=limit)
        out[1, t] = reduce_items.reduce(items, saturating, state=limit)
        out[2, t] = warp_reduce.reduce(x[t], saturating, state=limit)
        out[3, t] = scan.inclusive_scan(x[t], saturating, state=limit)
        out[4, t] = scan.exclusive_scan(x[t], saturating, x[0], state=limit)
        scan_items.inclusive_scan(items, saturating, scanned, state=limit)
        out[5, t] = scanned[3]
        out[6, t] = warp_scan.inclusive_scan(x[t], saturating, state=limit)
        out[7, t] = reduce.reduce(x[t], larger_half)
        for i in range(4):
            scanned[i] = items[i]
        sort.sort(scanned, before=nearer, state=(limit[0], 1))
        for i in range(4):
            out[8 + i, t] = scanned[i]
        warp_sort.sort(items, before=nearer, state=(limit[0], 1))
        for i in range(4):
            out[12 + i, t] = items[i]

    return kernel


def check():
    """Run the kernel, and compare its results with NumPy's; return what is wrong."""
    x = np.random.default_rng(0).integers(0, 100, 4 * THREADS).astype(np.float32)
    limits = np.array([40, -1, 900, -1], np.float32)
    out = np.zeros((16, THREADS), np.float32)
    make_kernel()[1, THREADS](x, limits[::2], out)

    def sums(values):
        return np.minimum(np.cumsum(values), 900)

    def by_distance(values):
        return values[np.argsort(np.abs(values - 40), kind="stable")]

    one = x[:THREADS]
    tiles = x.reshape(THREADS, 4)
    expected = {
        "reduce": (out[0, 0], sums(one)[-1]),
        "reduce items": (out[1, 0], sums(x)[-1]),
        "reduce of a warp": (out[2, ::32], [sums(one[:32])[-1], sums(one[32:])[-1]]),
        "inclusive scan": (out[3], sums(one)),
        "exclusive scan": (out[4], sums([one[0], *one[:-1]])),
        "scan of items": (out[5], sums(x)[3::4]),
        "scan of a warp": (out[6], [*sums(one[:32]), *sums(one[32:])]),
        "an operator that calls an object": (out[7, 0], one.max()),
        "sort": (out[8:12].T.ravel(), by_distance(x)),
        "sort of a warp": (out[12:].T.ravel(), np.concatenate([by_distance(t.ravel()) for t in (tiles[:32], tiles[32:])])),
    }
    return [f"{name}: got {got}, expected {right}" for name, (got, right) in expected.items() if not np.array_equal(got, right)]


def test_every_primitive_inlines_an_operator_with_state():
    built = build(make_kernel(), SIGNATURE, output="ptx")
    assert re.findall(r"\tcall\b.*", built.code.decode()) == []
    names = [planned.input.name for planned in built.inputs]
    assert len([name for name in names if name.startswith("saturating(")]) == 1
    assert len([name for name in names if name.startswith("nearer(")]) == 1


@pytest.mark.parametrize("dtype", ["float16", "complex64"])
def test_operators_of_other_numbers(dtype):
    @cuda.jit(device=True)
    def scaled(a, b, factor):
        return a * factor[0] * b

    reduce = cub.WarpReduce(THREADS)

    def kernel(x, factor):
        x[0] = reduce.reduce(x[0], scaled, state=factor)

    built = build(kernel, f"void({dtype}[::1], {dtype}[::1])", output="ptx")
    assert re.findall(r"\tcall\b.*", built.code.decode()) == []


@pytest.mark.parametrize(
    ("primitive", "call", "message"),
    [
        (cub.BlockReduce(64), "f.reduce(x[0], min, state=x)", "state: got array.*expected None: min has none"),
        (cub.BlockReduce(64), "f.reduce(x[0], compared)", r"op: got compared, which returns .*, expected float32"),
        (cub.BlockMergeSort(64), "f.sort(x[:1], None, min)", "before: got Function.*expected a function decorated"),
        (cub.BlockMergeSort(64), "f.sort(x[:1], state=x)", "state: got array.*without before, expected both"),
    ],
)
def test_what_is_refused(primitive, call, message):
    @cuda.jit(device=True)
    def compared(a, b):
        return a, b

    scope = {"f": primitive, "compared": compared}
    exec(f"def kernel(x):\n    {call}\n", scope)
    with pytest.raises(TypingError, match=message):
        build(scope["kernel"], "void(float32[::1])")


def test_sorts_by_merging_need_a_power_of_two():
    with pytest.raises(ValueError, match="block: got 96 threads, expected a power of two"):
        cub.BlockMergeSort(96)


def registers_of(kernel, signature):
    built = build(kernel, signature)
    return resources(built.code, built.entry_name, "")["registers"]


def test_registers_are_those_of_hand_written_cxx(monkeypatch):
    """Registers are allocated in units of 8 for each thread: as many blocks run at a time. The same kernel with the
    operator in C++ takes exactly as many."""
    monkeypatch.setattr("shutil.which", lambda name: None)  # NVRTC is of the linker's version; nvcc may not be
    operators = module(BENCHMARKS, "contests.operators")
    native, _ = operators.native_operators(256, 8)

    def native_registers(entry):
        return resources(bytes(native.code), entry, "")["registers"]

    sums = registers_of(operators.make_saturating_sums(256, 8), operators.SUMS_SIGNATURE)
    assert sums <= native_registers("saturating_sums") * 1.02
    sort = registers_of(operators.make_sorted_tiles(256, 8), operators.SORT_SIGNATURE)
    assert -(-sort // 8) == -(-native_registers("sorted_tiles") // 8)
    in_cxx = module(EXAMPLES, "cub.operators").Operator(
        "in_cxx",
        "Smaller()",
        "struct Smaller { __device__ bool operator()(float a, float b) const { return fabsf(a) < fabsf(b); } };",
    )
    monkeypatch.setattr(sys.modules["cub.sort"], "comparison_of", lambda *_: in_cxx)
    assert sort == registers_of(operators.make_sorted_tiles(256, 8), operators.SORT_SIGNATURE)


def test_the_simulator_runs_operators_with_state():
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.gpu
def test_results_are_those_of_numpy():
    assert check() == []


if __name__ == "__main__":
    sys.exit("\n".join(check()))
