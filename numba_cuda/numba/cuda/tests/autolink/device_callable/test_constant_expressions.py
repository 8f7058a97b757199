# SPDX-License-Identifier: BSD-2-Clause
"""``len(obj)``, ``obj[i]`` and comparisons of objects are constants of the kernels that use them."""

import functools
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from autolink_support import build, without_place
from numba import cuda
from numba.core import errors
from numba.cuda import autolink
from numba.cuda.core.errors import TypingError
from numba.cuda.misc.special import literal_unroll


@functools.total_ordering
class Shape(autolink.DeviceCallable):
    """A shape, or several."""

    __hash__ = None

    def __init__(self, *extents):
        self.extents = extents

    def __len__(self):
        return len(self.extents)

    def __getitem__(self, index):
        return self.extents[index]

    def __eq__(self, other):
        return self.extents == getattr(other, "extents", (other,))

    def __lt__(self, other):
        return self.extents < other.extents

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"add_{self.extents[0]}", returns="float32", args={"x": "float32"})

    def __numba_cuda_link__(self, x):
        n = self.extents[0]
        return autolink.CUDASource(f'extern "C" __device__ float add_{n}(float x) {{ return x + {n}; }}')


SMALL, SAME, LARGE, ONE = Shape(3, 4), Shape(3, 4), Shape(5, 6), Shape(7)
BOTH = Shape(SMALL, LARGE)


def stored(kernel):
    """Return the constants that the kernel stores, by index."""
    text = build(kernel, "void(float32[::1])", output="ptx").code.decode()
    bits = {
        name: int(digits.removeprefix("0f"), 16 if digits.startswith("0f") else 10)
        for name, digits in re.findall(r"mov\.\w+\s+(%\w+), (\w+);", text)
        if digits.removeprefix("0f").isalnum() and digits[0].isdigit()
    }
    found = re.findall(r"st\.global\.\w+\s+\[%rd\d+(?:\+(\d+))?\], (%\w+);", text)
    return {int(offset or 0) // 4: np.uint32(bits[name]).view("f4") for offset, name in found}


def test_are_constants_in_a_kernel():
    def kernel(x):
        numbers = cuda.local.array(len(SMALL), np.float32)
        for i in range(len(SMALL)):
            numbers[i] = i + 1
        x[0] = numbers[0] + numbers[len(SMALL) - 1]
        x[1] = SMALL[0] + SMALL[-1]
        x[2] = BOTH[1][1] + len(BOTH)
        x[3] = cuda.local.array(SMALL[1], np.float32).size

    assert stored(kernel) == {0: 3, 1: 7, 2: 8, 3: 4}


def test_branches_on_them_are_pruned():
    def kernel(x):
        x[0] = 1 if SMALL == SAME else "pruned"
        x[1] = "pruned" if SMALL != SAME else 2
        x[2] = 3 if SMALL < LARGE else "pruned"
        x[3] = 4 if LARGE >= SMALL else "pruned"
        x[4] = 5 if ONE == 7 else "pruned"
        x[5] = 6 if ONE == 7 else "pruned"
        x[6] = 7 if BOTH[1] > BOTH[0] else "pruned"
        x[7] = 8 if len(BOTH) == 2 else "pruned"

    assert stored(kernel) == {i: i + 1 for i in range(8)}


def test_elements_are_called():
    def kernel(x):
        x[0] = BOTH[1](x[0])

    assert "add_5" in {name for name in build(kernel, "void(float32[::1])").prototypes}


def test_of_objects_that_are_known_by_their_types():
    @cuda.jit(device=True)
    def describe(shape, x):
        numbers = cuda.local.array(len(shape), np.float32)
        numbers[0] = shape[1]
        x[len(shape) - 2] = numbers[0]
        if shape == LARGE:
            x[1] = 20

    def kernel(x):
        describe(LARGE, x)
        for shape in literal_unroll((SMALL, ONE)):
            x[1 + len(shape)] = shape[0]

    assert stored(kernel) == {0: 6, 1: 20, 3: 3, 2: 7}


class TestErrors:
    def error(self, kernel):
        with pytest.raises((TypingError, errors.TypingError)) as caught:  # numba-cuda raises either
            build(kernel, "void(float32[::1])")
        return str(caught.value)

    def test_an_index_that_is_not_a_constant(self):
        def kernel(x):
            x[0] = SMALL[int(x[1])]

        text = self.error(kernel)
        assert "an element of Shape needs a constant index\n  object: Shape(extents=(3, 4))" in without_place(text)
        assert "x[0] = SMALL[int(x[1])]" in text

    def test_an_index_that_does_not_exist(self):
        def kernel(x):
            x[0] = SMALL[2]

        assert "Shape[2] raised IndexError: tuple index out of range" in self.error(kernel)

    def test_an_element_that_cannot_be_a_constant(self):
        shape = Shape(object())

        def kernel(x):
            x[0] = shape[0]

        assert "Shape[0] is of type object, which cannot be a constant of a kernel" in self.error(kernel)

    def test_of_objects_that_do_not_define_them(self):
        class Plain(autolink.DeviceCallable):
            pass

        plain = Plain()

        def length(x):
            x[0] = len(plain)

        def element(x):
            x[0] = plain[0]

        def equal(x):
            x[0] = plain == plain

        for kernel, name in (length, "len"), (element, "getitem"), (equal, "eq"):
            assert self.error(kernel).startswith(f"No implementation of {name}(")


def test_in_the_simulator():
    script = """
import numpy as np
from numba import cuda
from numba.cuda import autolink

class Sized(autolink.DeviceCallable):
    def __len__(self):
        return 3
    def __getitem__(self, index):
        return 10 * index

sized = Sized()

@cuda.jit
def kernel(x):
    x[0] = len(sized) + sized[2]

x = np.zeros(1)
kernel[1, 1](x)
assert x[0] == 23
"""
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"})
