# SPDX-License-Identifier: BSD-2-Clause
"""C++20 in a source that is compiled as C++17, and what device code does not have of it."""

from __future__ import annotations

import pytest
from autolink_support import CC, calling
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError

AS_20 = 'compile it as C++20: options={"std": "c++20"}'


@pytest.mark.parametrize(
    "source",
    [
        "template <class T> concept Num = true;\ntemplate <Num T> __device__ T f(T v) { return v; }",
        "template <class T> requires (sizeof(T) == 4) __device__ T f(T v) { return v; }",
        "template <class T> __device__ T f(T v) requires (sizeof(T) == 4) { return v; }",
        "#include <cuda/std/concepts>\ntemplate <cuda::std::floating_point T> __device__ T f(T v) { return v; }",
        "consteval int n() { return 3; }\n__device__ float f(float x) { return x * n(); }",
        "__device__ constinit int n = 3;\n__device__ float f(float x) { return x * n; }",
        "__device__ float f(auto x) { return x; }",
        "__device__ float f(float x) { return []<class T>(T v) { return v; }(x); }",
        "struct A { float a, b; };\n__device__ float f(float x) { A a{.a = x, .b = 1}; return a.a; }",
        "enum class E { a };\n__device__ float f(float x) { using enum E; return x + int(a); }",
    ],
)
def test_words_of_cxx20(source):
    with pytest.raises(autolink.CxxError) as caught:
        autolink.cxx(source).f.signature("float32", cc=CC)
    assert str(caught.value).endswith(f"\n  what to do: {AS_20}")
    returns = autolink.cxx(source, options={"std": "c++20"}).f.signature("float32", cc=CC).return_type
    assert str(returns) == "float32"


def test_a_lambda_and_a_source_of_a_hook():
    lib = autolink.cxx("")
    with pytest.raises(autolink.CxxError) as caught:
        lib.expr("[]<class T>(T x) { return x; }").signature("float32", cc=CC)
    assert str(caught.value).endswith(f"\n  what to do: {AS_20}")

    class Scale(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("scale", returns=x)

        def __numba_cuda_link__(self, x):
            code = 'consteval int n() { return 3; }\nextern "C" __device__ float scale(float x) { return n() * x; }'
            return autolink.CUDASource(code)

    with pytest.raises(LinkError) as caught:
        autolink.build(calling(Scale()), "void(float32[::1])", cc=CC)
    assert f"\n  what to do: {AS_20}" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "todo"),
    [
        ("return (x <=> 1.0f) < 0;", "write < and == for <=>"),
        ("co_return x;", "write a loop, or an object that keeps the state"),
        ("return x + concept_of;", "declare"),
    ],
)
def test_what_device_code_has_in_no_standard(body, todo):
    for options in ({}, {"std": "c++20"}):
        with pytest.raises(autolink.CxxError, match=f"\n  what to do: {todo}"):
            source = f"__device__ float f(float x) {{ {body} }}"
            autolink.cxx(source, options=options).f.signature("float32", cc=CC)
