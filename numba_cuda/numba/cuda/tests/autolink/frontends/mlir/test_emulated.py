# SPDX-License-Identifier: BSD-2-Clause
"""Whole programs of numba-cuda-mlir in the emulator."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from front_ends import front_end_named
from repository import EXAMPLES

SCRIPT = """
import json
import sys
import numpy as np
from numba_cuda_mlir import cuda

facts = {}

@cuda.jit
def reversed_sum(x, factor):
    shared = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    shared[i] = x[i]
    cuda.syncthreads()
    cuda.atomic.add(x, 0, shared[31 - i] * factor)

x = cuda.to_device(np.arange(32, dtype=np.float32))
reversed_sum[1, 32](x, 2)
facts["no external code"] = float(x.copy_to_host()[0])

@cuda.jit
def reverse(x, y):
    i = cuda.grid(1)
    y[i] = x[i]
    cuda.cg.this_grid().sync()
    x[i] = y[y.size - 1 - i]

x = cuda.to_device(np.arange(64))
reverse[4, 16](x, cuda.device_array_like(x))
facts["grid"] = x.copy_to_host().tolist()
from numba.cuda import autolink

hypot = autolink.cxx("#include <cuda/std/cmath>", namespace="cuda::std").hypot

def lengths(x, y, r):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = hypot(x[i], y[i])

def beyond(x, y, r):
    r[cuda.threadIdx.x + 4] = hypot(x[0], y[0])

VECTORS = "void(float32[::1], float32[::1], float32[::1])"
x, y = np.float32([3, 5, 8]), np.float32([4, 12, 15])

def results(launch):
    r = cuda.to_device(np.zeros(3, np.float32))
    launch(cuda.to_device(x), cuda.to_device(y), r)
    return r.copy_to_host().tolist()

apply = autolink.cxx("template <class F> __device__ int apply(F f, int x) { return f(x); }").apply
FACTOR = 10

def make_kernel():
    summand = 3

    def kernel(r):
        r[0] = apply(lambda x: x * FACTOR, 2)
        r[1] = apply(lambda x: x + summand, 2)

    return kernel

r = cuda.to_device(np.zeros(2, np.int32))
cuda.jit(make_kernel())[1, 1](r)
facts["lambdas"] = r.copy_to_host().tolist()
facts["C++ by name"] = results(cuda.jit(lengths)[1, 32])
facts["without LTO"] = results(cuda.jit(lengths, lto=False)[1, 32])
facts["bind"] = results(autolink.bind(cuda.jit(lengths), VECTORS)[1, 32])
r = np.zeros(3, np.float32)
autolink.build(cuda.jit(lengths), VECTORS, cc="9.0").emulate[1, 32](x, y, r)
facts["build"] = r.tolist()
try:
    results(cuda.jit(beyond)[1, 1])
except Exception as error:
    facts["out of bounds"] = f"{type(error).__name__}: {error}"
declared = cuda.declare_device("nowhere", "int32(int32)")
text = 'extern "C" __device__ int nowhere(int); __device__ int calls(int x) { return nowhere(x); }'
for name, function in ("declared", declared), ("called by C++", autolink.cxx(text).calls):
    def kernel(x):
        x[0] = function(x[0])

    try:
        cuda.jit(kernel)[1, 1](np.zeros(1, np.int32))
    except Exception as error:
        facts[name] = f"{type(error).__name__}: {error}"
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def facts() -> dict:
    front_end_named("numba-cuda-mlir")
    environment = {**os.environ, "NUMBA_CUDA_AUTOLINK_EMULATE": "1", "NUMBA_ENABLE_CUDASIM": "0"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_kernels_run_with_and_without_external_code(facts):
    assert facts["no external code"] == 2 * sum(range(32))
    assert facts["grid"] == list(range(63, -1, -1))
    for way in ("C++ by name", "without LTO", "bind", "build"):
        assert facts[way] == [5, 13, 17], way


def test_lambdas_with_variables_of_functions_around_the_kernel_are_passed_to_cxx(facts):
    assert facts["lambdas"] == [20, 5]


def test_the_error_of_a_kernel_reaches_the_launch(facts):
    assert facts["out of bounds"].startswith("FaultError: A write of 4 bytes out of bounds")


def test_an_undefined_symbol_is_the_error_of_a_link(facts):
    assert facts["declared"].startswith("nvJitLinkError: ")
    assert "LinkError: 'nowhere' is called" in facts["called by C++"]


LATE = """
import numpy as np
from numba_cuda_mlir import cuda
from numba.cuda import autolink

@cuda.jit
def kernel(x):
    x[0] = 2

with autolink.emulated():
    kernel[1, 1](np.ones(1))
"""


@pytest.mark.parametrize(("instruction", "is_known"), [("mov.u32 %r1, %tid.x;", True), ("nonsense;", False)])
def test_where_a_thread_is_needs_no_second_link(instruction, is_known):
    """To read it, numba-cuda-mlir writes assembly, in which the linker alone could find mistakes."""
    from numba.cuda.autolink.function_code.emulated_texts import can_link

    assembly = f"\t// begin inline asm\n\t{instruction}\n\t// end inline asm\n"
    assert can_link([f".version 8.0\n.target sm_90\n{assembly}"]) is is_known


def test_a_launch_is_refused_where_the_front_end_was_there_before_the_emulator(tmp_path):
    """Its launcher looks for a driver once, when it is imported, and would call functions that it has not found."""
    front_end_named("numba-cuda-mlir")
    (script := tmp_path / "late.py").write_text(LATE)
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CUDA_AUTOLINK_EMULATE"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment)
    assert done.returncode == 1, done.returncode
    assert re.search("LaunchError: (?:numba-cuda-mlir was imported before|.* has loaded NVIDIA's driver)", done.stderr)


FREED = """
import types
import numpy as np
from numba_cuda_mlir import cuda

@cuda.jit
def kernel(x):
    x[0] += 1

array = cuda.to_device(np.zeros(4))
freed = types.SimpleNamespace(__cuda_array_interface__=array.__cuda_array_interface__)
del array
kernel[1, 1](cuda.as_cuda_array(freed))
"""


def test_an_error_names_its_line_and_dropped_arrays_are_freed_at_once_where_all_is_checked(tmp_path):
    front_end_named("numba-cuda-mlir")
    (script := tmp_path / "freed.py").write_text(FREED)
    environment = {**os.environ, "NUMBA_CUDA_AUTOLINK_EMULATE": "checks"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment)
    assert f"FaultError: A read of 8 bytes after the memory was freed\n  at: {script}:8\n" in done.stderr


LONG = ("cub_block_sum", "cub_by_name", "cub_unique", "curand_by_name", "curand_monte_carlo", "fft", "nufft_window")


@pytest.mark.parametrize(
    "name", ["own_cu_file", "finished_graph", *(pytest.param(each, marks=pytest.mark.thorough) for each in LONG)]
)
def test_examples(name):
    front_end_named("numba-cuda-mlir")
    command = [sys.executable, "-W", "ignore", str(EXAMPLES / f"{name}.py"), "--frontend", "numba-cuda-mlir"]
    environment = {**os.environ, "NUMBA_CUDA_AUTOLINK_EMULATE": "1", "NUMBA_ENABLE_CUDASIM": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok" in done.stdout or "All within" in done.stdout
