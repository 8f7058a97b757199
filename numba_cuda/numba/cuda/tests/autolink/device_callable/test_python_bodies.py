# SPDX-License-Identifier: BSD-2-Clause
"""Calls that stand for a Python function, which may call the C functions of the object."""

from __future__ import annotations

import numpy as np
import pytest
from autolink_support import build, calling
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError

FLOATS = "void(float32[::1])"


class Norm(autolink.DeviceCallable):
    """``norm(x, y, weight=2)``, whose squares are computed in C++."""

    def __init__(self, shift=0):
        self.shift = shift

    def __numba_cuda_call__(self, x, y, weight=2):
        def norm(x, y, weight):
            return self.square(x) + weight * self.square(y) + self.shift

        return norm

    @autolink.device_method
    def square(self, x):
        return autolink.Extern(f"square_{x}", returns=x)

    @square.link
    def square(self, x):
        T = autolink.cxx_type(x)
        return autolink.CUDASource(f'extern "C" __device__ {T} square_{x}({T} x) {{ return x * x; }}', name="square.cu")


def test_the_function_is_inlined_and_the_code_that_it_calls_is_linked():
    norm = Norm(3)

    def kernel(x):
        x[0] = norm(x[1], y=x[2])

    built = build(kernel, FLOATS, output="ptx")
    assert [each.input.name for each in built.inputs] == ["square.cu"]
    assert b"\tcall" not in built.code
    assert "kernel" in str(built.report)
    assert "norm" in str(built.report)


def test_it_may_be_a_device_function_a_lambda_or_that_of_a_method():
    @cuda.jit(device=True)
    def twice(x):
        return 2 * x

    class Several(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return twice

        @autolink.device_method
        def plus(self, x, y=1):
            return lambda x, y: x + y

    several = Several()

    def kernel(x):
        x[0] = several(x[1]) + several.plus(x[2]) + several.plus(x[2], y=x[3])

    assert build(kernel, FLOATS, output="ptx").inputs == ()


def test_it_may_depend_on_types_and_literals():
    class Power(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x, exponent: types.Literal):
            if isinstance(x, types.Integer):
                return lambda x, exponent: 0
            return (lambda x, exponent: x) if exponent.literal_value == 1 else (lambda x, exponent: x * x)

    power = Power()

    def kernel(x, n):
        x[0] = power(x[1], 2) + power(n[0], 1)

    ptx = build(kernel, "void(float32[::1], int64[::1])", output="ptx").code.decode()
    assert "fma.rn.f32" in ptx
    assert ".s64" not in ptx


def test_an_object_has_both_a_function_in_python_and_code():
    class Both(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return lambda x: declared(x) + 1

        def __numba_cuda_link__(self, x):
            return cuda.CUSource('extern "C" __device__ int both(float* out, float x) { *out = x; return 0; }')

    declared = cuda.declare_device("both", "float32(float32)")
    both = Both()

    assert b"\tcall" not in build(calling(both), FLOATS, output="ptx").code


@pytest.mark.parametrize(
    ("returned", "has", "todo"),
    [(lambda x: x, "1 parameter", "2 parameters"), (lambda x, y, z=0: x, "3 parameters", "2 parameters")],
)
def test_a_function_with_other_parameters_is_an_error_at_the_call(returned, has, todo):
    class Wrong(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x, y):
            return returned

    wrong = Wrong()

    def kernel(x):
        x[0] = wrong(x[1], x[2])

    with pytest.raises(TypingError) as failure:
        build(kernel, FLOATS)
    first, at, source, *_, last = str(failure.value).splitlines()
    assert first.endswith(f"Wrong.__numba_cuda_call__ returned has {has}, not 2")
    assert at.startswith(f"  at: {__file__}:") and source.strip() == "x[0] = wrong(x[1], x[2])"
    assert last == f"  what to do: write the function with {todo}"


def test_an_error_in_a_function_is_at_its_own_line_and_names_the_call():
    class Wrong(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return lambda x: x.foo

    wrong = Wrong()

    def kernel(x):
        x[0] = wrong(x[1])

    with pytest.raises(TypingError) as failure:
        build(kernel, FLOATS)
    first, at, source, *others = str(failure.value).splitlines()
    assert first == "Unknown attribute 'foo' of type float32"
    assert at.startswith(f"  at: {__file__}:") and source.strip() == "return lambda x: x.foo"
    assert any(line.startswith("  in: the function that ") for line in others)
    assert others[-2].startswith(f"  called from: {__file__}:") and others[-1].startswith("  what to do: ")


def test_what_to_do_about_an_error_in_a_function_is_last():
    class Wrong(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            def body(x):
                values = cuda.local.array(4, "float32")
                return values[x]

            return body

    with pytest.raises(TypingError) as failure:
        build(calling(Wrong()), FLOATS)
    first, *_, last = str(failure.value).splitlines()
    assert first.startswith("Unsupported array index type float32")
    assert "\n  in: the function that " in str(failure.value)
    assert last == "  what to do: convert the index with int(...)"


def test_a_function_that_makes_the_same_call_is_an_error():
    class Circle(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return lambda x: circle(x)

    circle = Circle()

    with pytest.raises(TypingError, match="Circle is called with the same types while it says what that call means"):
        build(calling(circle), FLOATS)


@pytest.mark.gpu
def test_the_result_is_that_of_python():
    norm = Norm(3)

    @cuda.jit
    def kernel(x):
        x[0] = norm(x[1], x[2]) + norm(x[1], x[2], weight=x[3])

    x = np.arange(4, dtype=np.float32) + 1
    expected = (4 + 2 * 9 + 3) + (4 + 4 * 9 + 3)
    found = cuda.to_device(x)
    kernel[1, 1](found)
    assert found.copy_to_host()[0] == expected
