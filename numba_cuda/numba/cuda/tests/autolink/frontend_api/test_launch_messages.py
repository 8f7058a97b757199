# SPDX-License-Identifier: BSD-2-Clause
"""What a mistake in a launch prints: the kernel, the line of the launch and what to do, on both front ends."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import pytest
from emulator_support import run_emulated
from front_ends import MODULES, front_end_named
from numba.cuda.autolink.frontend_api.launch_messages import wrong_count

LAUNCHES = """
import sys
import numpy as np
from numba.cuda import autolink
from {package} import cuda
lib = autolink.cxx("__device__ float f(float x) {{ return x; }}")
class Scale(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("scale", returns=x)
obj = Scale()
@cuda.jit
def kernel(x):
    x[0] = lib.f(x[0])
@cuda.jit
def plain(x):
    pass
@cuda.jit
def returning(x):
    return x[0]
@cuda.jit
def writing(x):
    x[cuda.grid(1)] = 1
@cuda.jit
def pair(x):
    x[0][0] = x[1][0]
@cuda.jit(device=True)
def device(x):
    return x
x = np.ones(4, np.float32)
for statement in {statements!r}:
    print("===", statement, file=sys.stderr)
    try:
        exec(compile(statement, "launch", "exec"))
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
"""
HANDLED = """
import numpy as np
from {package} import cuda
@cuda.jit
def kernel(x, n):
    x[0] = n
for launch in (lambda: kernel[1, 32](np.ones(3)), lambda: kernel(np.ones(3), 1)):
    try:
        launch()
    except Exception as error:
        print("===", error)
"""
WITHOUT_GPU = """
import numpy as np
from numba.cuda import autolink
from {package} import cuda
@cuda.jit
def kernel(x):
    x[0] = 1
kernel[1, 32](np.ones(3, np.float32))
"""
SIZES = "kernel[blocks, threads](...), where each is a positive int, or a tuple of up to three"
BLOCKS = "launch at least one block of 1 to 1024 threads, and more blocks for more threads"
SHARED = "kernel[blocks, threads, stream, shared_bytes](...), with 0 or a stream, and an int that the GPU allows"
ARRAY = "pass an array, as np.array(x)"
VALUES = "pass numbers, and arrays, tuples and records of numbers"
CONSTANT = "use it as a global variable, or as a variable of the function that defines the kernel"
DEVICE = "call it in a kernel, or device.py_func(...)"
ORDER = "pass them in the order of the parameters"
STREAM = f"{ORDER}; the stream is in the brackets, kernel[blocks, threads, stream]"
COUNT = "pass one argument for each parameter"
CONTIGUOUS = (
    "pass a contiguous copy, x_copy = np.ascontiguousarray(x);"
    " if the kernel writes to it, copy back with x[...] = x_copy"
)
OPTION = "correct its name or value, or leave it out"
MISTAKES = {
    "kernel[x.size / 4, 4](x)": (
        "blocks must be a sequence of integers, got [1.0]",
        "divide with //, which makes an int",
    ),
    "kernel(x)": ("the launch configuration was not specified: kernel is called", "kernel[blocks, threads](...)"),
    "kernel[1](x)": ("kernel[...] needs the sizes of a grid and its blocks\n", SIZES),
    "kernel[1,](x)": ("kernel[...] needs the sizes of a grid and its blocks\n", SIZES),
    "kernel['a', 1](x)": ("its blocks: blocks must be a sequence of integers, got ['a']\n", SIZES),
    "kernel[1, 1.5](x)": ("its blocks: threads must be a sequence of integers, got [1.5]\n", "divide with //"),
    "kernel[(1, 1, 1, 1), 1](x)": ("blocks must be a sequence of 1, 2 or 3 integers, got [1, 1, 1, 1]\n", SIZES),
    "kernel[1, 1]()": ("TypeError: kernel(x) takes 1 argument, got 0\n", COUNT),
    "kernel[1, 1](x, 3)": ("TypeError: kernel(x) takes 1 argument, got 2\n", COUNT),
    "plain[1, 1](x, x)": ("TypeError: plain(x) takes 1 argument, got 2\n", COUNT),
    "kernel[1, 1]([1.0, 2.0])": (
        "TypeError: argument 'x' of kernel is of type list, which kernels do not take\n",
        ARRAY,
    ),
    "plain[1, 1]([1.0, 2.0])": ("argument 'x' of plain is of type list, which kernels do not take\n", ARRAY),
    "kernel[1, 1]('abc')": ("argument 'x' of kernel is of type str, which kernels do not take\n", VALUES),
    "kernel[1, 1](dict(a=1))": ("argument 'x' of kernel is of type dict, which kernels do not take\n", VALUES),
    "kernel[1, 1](object())": ("argument 'x' of kernel is of type object, which kernels do not take\n", VALUES),
    "kernel[1, 1](lib.f)": ("argument 'x' of kernel is of type CxxFunction, which kernels do not take", CONSTANT),
    "kernel[1, 1](lib)": ("argument 'x' of kernel is of type CxxLibrary, which kernels do not take", CONSTANT),
    "plain[1, 1](obj)": ("argument 'x' of plain is of type Scale, which kernels do not take", CONSTANT),
    "kernel[1, 1](x.astype(object))": (
        "argument 'x' of kernel is an array of objects of Python, which kernels do not take\n",
        "pass an array of numbers, such as x.astype(np.float32)",
    ),
    "returning[1, 1](x)": (
        "TypingError: kernels return nothing, and this one returns ",
        "write the result to an array",
    ),
    "writing[1, 64](x)": ("FaultError: A write of 4 bytes out of bounds\n", ""),
    "kernel[0, 1](x)": ("kernel", ""),
    "kernel[1, 0](x)": ("kernel", ""),
    "kernel[1, -2](x)": ("Error: kernel[...] needs the sizes of a grid and its blocks", SIZES),
    "kernel[1, 2048](x)": ("kernel cannot be launched with (1, 1, 1) blocks of (2048, 1, 1) threads\n", BLOCKS),
    "kernel[1, 1, 'a'](x)": ("TypeError: kernel[...] cannot be launched: stream ", SHARED),
    "kernel[1, 1, 0, 'a'](x)": ("TypeError: kernel[...] cannot be launched: shared_bytes ", SHARED),
    "kernel[1, 1, 0, 1 << 20](x)": ("kernel", ""),
    "cuda.jit(fastmaths=True)(kernel.py_func)[1, 1](x)": ("fastmaths", OPTION),
    "kernel[1, 1](x, stream=0)": ("TypeError: a launch takes its arguments by position, got stream=\n", STREAM),
    "kernel[1, 1](x=x)": ("TypeError: a launch takes its arguments by position, got x=\n", ORDER),
    "device(3)": ("ValueError: device is a device function, which only kernels can call\n", DEVICE),
    "device[1, 1](x)": ("RuntimeError: device is a device function, which only kernels can call\n", DEVICE),
    "lib.f(1.0)": ("NotImplementedError: f is device code", "call it in kernels"),
    "autolink.cxxx": ("AttributeError: module 'numba.cuda.autolink' has no attribute 'cxxx'", ""),
    "writing[1, 4](np.ones(8, np.float32)[::2])": ("ValueError: argument 'x' of writing is strided", CONTIGUOUS),
    "writing[1, 4](np.ones(8, np.float32)[::-1])": ("ValueError: argument 'x' of writing is strided", CONTIGUOUS),
    "writing[1, 1](np.ones((4, 4), np.float32)[:, :2])": ("argument 'x' of writing is strided", CONTIGUOUS),
    "pair[1, 1]((x, np.ones(8, np.float32)[::2]))": ("argument 'x[1]' of pair is strided", "pass a contiguous copy"),
    "x.flags.writeable = False; kernel[1, 1](x)": ("", "pass an array that can be written to"),
}


@pytest.fixture(params=list(MODULES))
def package(request):
    """The package of each front end in turn."""
    return front_end_named(request.param).cuda.__name__.partition(".")[0]


def test_an_error_that_is_handled_has_the_same_text(tmp_path, package):
    script = tmp_path / "handled.py"
    script.write_text(HANDLED.format(package=package))
    _, count, grid = run_emulated(script).stdout.split("=== ")
    assert count.startswith(f"kernel(x, n) takes 2 arguments, got 1\n  launched at: {script}:7\n")
    assert grid.startswith("the launch configuration was not specified: kernel is called without")
    assert "\n  what to do: kernel[blocks, threads](...)" in grid


def test_a_mistake_in_a_launch_is_a_diagnosis_a_place_and_a_remedy(tmp_path, package):
    script = tmp_path / "launches.py"
    script.write_text(LAUNCHES.format(package=package, statements=list(MISTAKES)))
    printed = dict(each.split("\n", 1) for each in run_emulated(script).stderr.split("=== ")[1:])
    assert list(printed) == list(MISTAKES)
    for statement, (diagnosis, remedy) in MISTAKES.items():
        text = printed[statement]
        assert diagnosis in text, text
        assert f"\n  what to do: {remedy}" in text or not remedy, text
        assert "what to do: " in text or "kernel[" not in statement, text
        assert "site-packages" not in text and "numba_cuda/numba" not in text, text
        assert len(text.splitlines()) <= 15, text
    assert "did you mean fastmath?" in printed["cuda.jit(fastmaths=True)(kernel.py_func)[1, 1](x)"]
    has_lines = f"\n  at: {script}:" in printed["writing[1, 64](x)"]
    assert has_lines != ("@cuda.jit(lineinfo=True, lto=False)" in printed["writing[1, 64](x)"])
    assert "Did you mean: 'cxx'?" in printed["autolink.cxxx"]


def test_a_launch_without_a_gpu_says_what_runs_without_one(tmp_path, package):
    script = tmp_path / "launch.py"
    script.write_text(WITHOUT_GPU.format(package=package))
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    env.pop("NUMBA_CUDA_AUTOLINK_EMULATE", None)
    text = subprocess.run([sys.executable, "-W", "ignore", script], env=env, capture_output=True, text=True).stderr
    assert f"\n  at: {script}:8\n      kernel[1, 32](np.ones(3, np.float32))\n      ^^^^" in text, text
    assert "\n  what to do: set NUMBA_CUDA_AUTOLINK_EMULATE=1, " in text
    assert text.count("CudaSupportError: ") == 1 and "another exception" not in text
    assert text.count("frames are hidden") == 1


@pytest.mark.parametrize(
    ("kernel", "right", "wrong"),
    [
        (lambda: None, [0], {1: "() takes 0 arguments, got 1"}),
        (
            lambda x, y=1: None,
            [1, 2],
            {0: "(x, y) takes 1 to 2 arguments, got 0", 3: "(x, y) takes 1 to 2 arguments, got 3"},
        ),
        (lambda x, *others: None, [1, 2, 7], {0: "(x, *others) takes at least 1 argument, got 0"}),
    ],
)
def test_defaults_may_be_left_out_and_others_may_be_any_number(kernel, right, wrong):
    assert not any(map(functools.partial(wrong_count, kernel), right))
    for count, message in wrong.items():
        assert wrong_count(kernel, count) == f"<lambda>{message}"


ONE_SIGNATURE = """
import sys, warnings
import numpy as np
from numba import cuda, from_dtype, types
from numba.cuda import autolink
RECORD = np.dtype([("a", np.float32), ("b", np.int32)])
def launch(signature, *args):
    @cuda.jit(signature)
    def kernel(x, y):
        pass
    kernel[1, 1](*args)
def first(signature, x):
    @cuda.jit(signature)
    def kernel(x):
        pass
    kernel[1, 1](x)
x = np.ones(8, np.float32)
records = np.ones(3, RECORD)
on_device = cuda.to_device(x)
for statement in {statements!r}:
    try:
        eval(compile(statement, "launch", "eval"))
        print("=== right")
    except Exception as error:
        print("===", type(error).__name__, error)
"""
RIGHT = [
    "launch('void(float32[::1], float32)', x, 1)",
    "launch('void(float32[::1], float32)', on_device, np.int64(1))",
    "launch('void(float32[::1], int32)', on_device[::2], np.uint64(1))",
    "launch('void(float32[:], boolean)', cuda.In(x), np.bool_(1))",
    "launch('void(float64[::1], complex64)', cuda.In([1.0, 2.0]), 1j)",
    "launch('void(int64[::1], complex64)', np.ones(3, np.uint64), 3)",
    "launch('void(boolean[::1], float16)', np.ones(3, np.uint8), 3)",
    "first('void(float32[:, ::1])', np.ones((4, 4), np.float32, order='F'))",
    "first((types.Array(from_dtype(RECORD), 1, 'C'),), records)",
    "first((types.Array(from_dtype(RECORD), 1, 'C'),), records.view(np.recarray))",
    "first((from_dtype(RECORD),), records[0])",
    "first((types.UniTuple(types.float32[::1], 2),), (x, on_device))",
    "first((types.Tuple((types.int32, types.float32)),), (1, 2))",
]
WRONG = {
    "launch('void(float32[::1], float32)', x)": "kernel(x, y) takes 2 arguments, got 1",
    "launch('void(float32[::1], float32)', x, 1.0, 3)": "kernel(x, y) takes 2 arguments, got 3",
    "first('void(float32[::1])', x.astype(float))": "argument 'x' of kernel: got float64[::1], expected float32[::1]",
    "first('void(float32[::1])', cuda.to_device(x.view(int)))": "got int64[::1], expected float32[::1]",
    "first('void(float32[::1])', cuda.In(x.view(np.int32)))": "got int32[::1], expected float32[::1]",
    "first('void(float32[::1])', x.reshape(2, 4))": "got float32[:, ::1], expected float32[::1]",
    "first('void(float32[:, ::1])', x)": "got float32[::1], expected float32[:, ::1]",
    "first('void(float32[::1])', 3)": "argument 'x' of kernel: got int64, expected float32[::1]",
    "first('void(float32[::1])', None)": "argument 'x' of kernel: got None, expected float32[::1]",
    "first('void(float32[::1])', [1.0])": "argument 'x' of kernel is of type list, which kernels do not take",
    "first('void(int32)', 3.0)": "argument 'x' of kernel: got float64, expected int32",
    "first('void(float32)', x)": "argument 'x' of kernel: got float32[::1], expected float32",
    "first('void(boolean)', 1.0)": "argument 'x' of kernel: got float64, expected bool",
    "first('void(complex64)', x)": "argument 'x' of kernel: got float32[::1], expected complex64",
    "first((from_dtype(RECORD),), 3)": "argument 'x' of kernel: got int64, expected Record(",
    "first((types.UniTuple(types.float32[::1], 2),), (x, records))": "argument 'x[1]' of kernel: got ",
    "first((types.UniTuple(types.float32[::1], 2),), (x,))": "argument 'x' of kernel: got UniTuple(",
    "first((types.UniTuple(types.float32[::1], 2),), x)": "got float32[::1], expected UniTuple(",
}


def test_a_kernel_with_one_signature_takes_what_it_reads_right_and_no_more(tmp_path):
    script = tmp_path / "launches.py"
    script.write_text(ONE_SIGNATURE.format(statements=[*RIGHT, *WRONG]))
    printed = run_emulated(script).stdout.split("=== ")[1:]
    assert printed[: len(RIGHT)] == ["right\n"] * len(RIGHT)
    for text, diagnosis in zip(printed[len(RIGHT) :], WRONG.values(), strict=True):
        first, *more = text.splitlines()
        assert first.startswith("TypeError ") and diagnosis in first, text
        assert more[0].startswith("  launched at: ") and "what to do: pass " in more[-1], text
