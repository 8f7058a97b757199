# SPDX-License-Identifier: BSD-2-Clause
"""Why C++ cannot deduce a template parameter: two arguments give it different types."""

from __future__ import annotations

import numpy as np
import pytest
from autolink_support import build, calling
from numba import cuda
from numba.cuda import autolink
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError

SOURCE = """
template <class T>
__device__ T sum(const T* a,  // the first
                 T* b) { return a[0] + b[0]; }
template <typename V, int N = 3> __device__ V product(V a, const V& b) { return a * b * N; }
"""


@pytest.mark.parametrize(
    ("call", "diagnosis"),
    [
        ("sum(x, y)", "T is float32 in argument 1 and float64 in argument 2"),
        ("product(x[0], y[0])", "V is float32 in argument 1 and float64 in argument 2"),
    ],
)
def test_a_call_by_name(call, diagnosis):
    kernel = eval(f"lambda x, y: lib.{call}", {"lib": autolink.cxx(SOURCE)})
    with pytest.raises(TypingError) as caught:
        build(cuda.jit(kernel), "void(float32[::1], float64[::1])")
    message = str(caught.value)
    assert diagnosis in message.partition("\n")[0]
    assert "\n  what to do: convert one of the two, so that both have one type; or give each a template par" in message


@pytest.mark.parametrize(
    ("body", "remedy"),
    [
        ("return sum(&x, &d);", "T is float in argument 1 and double in argument 2: convert one of the two"),
        ("return forwarded(x, 1.0f);", "T&& takes a variable and a value, for which T is two types: take const T&"),
        ("return sum(x, d);", "argument 1 is float, where C++ takes a pointer, T*: pass a pointer"),
    ],
)
def test_a_source_of_a_library(body, remedy):
    forwarded = "template <class T> __device__ float forwarded(T&& a, T&& b) { return a + b; }"
    code = f'{SOURCE}{forwarded}extern "C" __device__ float scale(float x) {{ double d = x; {body} }}'

    class Scale(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("scale", returns=x)

        def __numba_cuda_link__(self, x):
            return autolink.CUDASource(code)

    with pytest.raises(LinkError) as caught:
        autolink.build(calling(Scale()), "void(float32[::1])", cc=(9, 0))
    assert f"\n  what to do: {remedy}" in str(caught.value)


LERP = "template <class T> __device__ T lerp(T a, T b, T t) { return a + t * (b - a); }"


@pytest.mark.parametrize("include", ["", "#include <cuda/std/cmath>\n"])  # which has a lerp of its own
def test_which_argument_to_convert_is_said_and_converting_it_works(include):
    lib = autolink.cxx(f"{include}namespace own {{ {LERP} }}", namespace="own")
    with pytest.raises(TypingError) as caught:
        build(cuda.jit(lambda x, y: lib.lerp(x[0], x[1], 0.5)), "void(float32[::1], float64[::1])")
    message = str(caught.value)
    assert "T is float32 in arguments 1 and 2 and float64 in argument 3" in message.partition("\n")[0]
    assert "\n  what to do: convert argument 3 in the kernel, np.float32(...); or give each a template" in message

    def converted(x, y):
        x[0] = lib.lerp(x[0], x[1], np.float32(0.5))

    build(cuda.jit(converted), "void(float32[::1], float64[::1])")


def test_a_parameter_that_no_argument_tells_is_named():
    lib = autolink.cxx("template <int N, class T> __device__ T power(T x) { return N * x; }")
    with pytest.raises(TypingError) as caught:
        build(cuda.jit(lambda x, y: lib.power(x[0])), "void(float32[::1], float64[::1])")
    message = str(caught.value)
    assert "no argument tells N of template <int N, class T>" in message.partition("\n")[0]
    assert message.endswith('deduce: lib["power<N>"], with a value or type for N')
    power = lib["power<2>"]

    def named(x, y):
        x[0] = power(x[0])

    build(cuda.jit(named), "void(float32[::1], float64[::1])")
