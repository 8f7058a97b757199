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
from numba.cuda.cudadrv.external_code.platform import cuda_libraries

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


CONSTRAINED = """
#include <cuda/std/concepts>
#include <cuda/std/type_traits>
namespace std_ = cuda::std;
template <class T, std_::enable_if_t<std_::is_integral_v<T>, int> = 0> __device__ T by_value(T a, T b) { return a + b; }
template <class T, class = std_::enable_if_t<(sizeof(T) > 8)>> __device__ T by_type(const T* a) { return *a; }
template <class T> __device__ auto result(T a) -> std_::enable_if_t<std_::is_integral<T>::value, T> { return a; }
template <class T> __device__ typename std_::enable_if<std_::is_integral_v<T>, T>::type before(T a) { return a; }
template <class T> __device__ auto sized(const T& c) -> decltype(c.size()) { return c.size(); }
template <class T, std_::enable_if_t<std_::is_integral_v<T>, int> = 0> __device__ T two(T a) { return a; }
template <class T, std_::enable_if_t<std_::is_pointer_v<T>, int> = 0> __device__ T two(T a) { return a; }
template <std_::integral T> __device__ T whole(T a) { return a; }
template <class T> requires requires(T t) { t.size(); } __device__ auto needs(T c) { return c.size(); }
struct Box {
    template <class T, class = std_::enable_if_t<std_::is_integral_v<T>>> __device__ T put(T a) { return a; }
};
template <class T> struct Of { T x; };
template <class T> __device__ T open(Of<T> a) { return a.x; }
"""
constrained = autolink.cxx(CONSTRAINED, options={"std": "c++20"})
INTEGRAL = "std_::is_integral_v<T>"
TELLS_CONCEPTS = pytest.mark.skipif(
    cuda_libraries.nvrtc_version() < (13, 0), reason="NVRTC 12 does not tell a concept from what it does not deduce"
)


@pytest.mark.parametrize(
    ("call", "diagnosis"),
    [
        ("by_value(x[0], x[1])", f"a constraint of by_value does not hold with T = float32: {INTEGRAL}"),
        ("by_type(x)", "a constraint of by_type does not hold with T = float32: (sizeof(T) > 8)"),
        ("result(x[0])", "a constraint of result does not hold with T = float32: std_::is_integral<T>::value"),
        ("before(x[0])", f"a constraint of before does not hold with T = float32: {INTEGRAL}"),
        ("sized(x[0])", "a constraint of sized does not hold with T = float32: c.size()"),
        ("two(x[0])", f"constraints of two do not hold: {INTEGRAL}; std_::is_pointer_v<T>"),
        pytest.param("whole(x[0])", "float does not satisfy the concept cuda::std::integral", marks=TELLS_CONCEPTS),
        pytest.param("needs(x[0])", "float does not satisfy what needs requires", marks=TELLS_CONCEPTS),
        ("named(x[0], x[1])", f"a constraint of by_value does not hold: {INTEGRAL}"),
        ("put(box[0], x[0])", f"a constraint of put does not hold with T = float32: {INTEGRAL}"),
    ],
)
def test_a_constraint_that_does_not_hold_is_told(call, diagnosis):
    """And not to name template arguments, which C++ knows."""
    box = constrained.type("Box")
    names = {"lib": constrained, "cuda": cuda, "box_dtype": box.dtype, "put": box.method("put")}
    names |= {"named": constrained["by_value<double>"]}
    function = call if call.startswith(("named", "put")) else f"lib.{call}"
    made = "    box = cuda.local.array(1, box_dtype)\n" if "box" in call else ""
    exec(f"def kernel(x):\n{made}    {function}", names)
    with pytest.raises(TypingError) as caught:
        build(cuda.jit(names["kernel"]), "void(float32[::1])")
    message = str(caught.value).partition("\n\n")[0]
    assert message.partition("\n")[0].endswith(f": {diagnosis}")
    assert message.endswith(
        "what to do: pass arguments for which it holds: numbers are converted in the kernel, as by np.int32(x)"
    )


def test_a_constraint_in_a_source_of_a_library_is_told():
    with pytest.raises(TypingError) as caught:
        lib = autolink.cxx(
            f"{CONSTRAINED}__device__ float f(float x) {{ return result(x); }}", options={"std": "c++20"}
        )
        build(cuda.jit(eval("lambda x: lib.f(x[0])", {"lib": lib})), "void(float32[::1])")
    assert "what to do: a constraint of result does not hold with T = float: std_::is_integral<T>::value: " in str(
        caught.value
    )


def test_what_a_template_takes_is_told_where_that_is_made_of_its_parameters():
    with pytest.raises(TypingError, match=r"C\+\+ takes \(Of<T> a\), which the arguments are not"):
        build(cuda.jit(eval("lambda x: lib.open(x[0])", {"lib": constrained})), "void(float32[::1])")
