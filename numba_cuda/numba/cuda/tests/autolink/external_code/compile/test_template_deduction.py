# SPDX-License-Identifier: BSD-2-Clause
"""Why C++ cannot deduce a template parameter: two arguments give it different types."""

from __future__ import annotations

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
        ("return sum(x, d);", "fix the source at that line"),  # another reason, which is not known
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
