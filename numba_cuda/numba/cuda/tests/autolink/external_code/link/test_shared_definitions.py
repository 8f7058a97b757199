# SPDX-License-Identifier: BSD-2-Clause
"""What several parts of a link define for each other, as C++ allows of inline functions, templates and more."""

from __future__ import annotations

import re

import numpy as np
import pytest
from autolink_support import build, compiled
from numba import cuda
from numba.cuda import autolink

DIFFERENT = {
    "inline function": "inline __device__ int of(int x) { return x * N; }",
    "template": "template <class T> __device__ T of(T x) { T sum = 0; for (int i = 0; i < N; ++i) sum += x; return sum;"
    "}",
    "member": "struct S { int v; __device__ int times() { return v * N; } }; "
    "static __device__ int of(int x) { return S{x}.times(); }",
    "inline variable": "inline __device__ int factor = N; static __device__ int of(int x) { return x * factor; }",
    "constant table": "template <int> struct S { static constexpr int table[2] = {1, N}; }; "
    "static __device__ int of(int x) { return x * S<0>::table[x > 0]; }",
    "static function of an inline one": "static __device__ int part(int x) { return x * N; } "
    "inline __device__ int of(int x) { return part(x); }",
    "inline C function": 'extern "C" inline __device__ int of(int x) { return x * N; }',
    "function that calls itself": "inline __device__ int of(int x) { return x ? N + of(x - 1) : 0; }",
}
OWN = {
    "static function": "static __device__ int of(int x) { return x * N; }",
    "static C function": 'extern "C" { static __device__ int of(int x) { return x * N; } }',
    "unnamed namespace": "namespace { __device__ int of(int x) { return x * N; } }",
    "namespace": "namespace n##N { inline __device__ int of(int x) { return x * N; } } using namespace n##N;",
    "static variable": "static __device__ int factor = N; static __device__ int of(int x) { return x * factor; }",
    "constant": "constexpr int factor = N; static __device__ int of(int x) { return x * factor; }",
    "lambda": "static __device__ int of(int x) { return [](int y) { return y * N; }(x); }",
    "template of an own type": "namespace { struct S {}; } "
    "template <class T> __device__ int times(int x) { return x * N; } "
    "static __device__ int of(int x) { return times<S>(x); }",
}


KINDS = {"ltoir": cuda.LTOIR, "ptx": cuda.PTXSource, "cubin": cuda.Cubin}


def libraries(text: str, *archs: str, kind: str = "ltoir"):
    """Two objects whose functions, of the same *text* with other values of ``N``, multiply by 2 and by 3: sources, or
    code of a *kind* for *archs*."""

    class Times(autolink.DeviceCallable):
        def __init__(self, factor):
            self.factor = factor

        def __numba_cuda_call__(self, x):
            return autolink.Extern(f"times_{self.factor}", returns="int32")

        def __numba_cuda_link__(self, x):
            own = text.replace("n##N", f"n{self.factor}").replace("N", str(self.factor))
            source = f'{own}\nextern "C" __device__ int times_{self.factor}(int x) {{ return of(x); }}'
            if not archs:
                return autolink.CUDASource(source)
            return KINDS[kind](compiled(source, kind, archs[self.factor - 2]))

    return Times(2), Times(3)


def product(functions, **options):
    double, triple = functions

    def kernel(x):
        x[0] = double(x[0])
        x[1] = triple(x[1])

    x = np.array([5, 7], np.int32)
    build(kernel, **options).emulate[1, 1](x)
    return x.tolist()


@pytest.mark.parametrize("text", DIFFERENT.values(), ids=DIFFERENT)
def test_what_two_sources_define_differently_is_refused(text):
    with pytest.raises(autolink.LinkError, match="is defined in two different ways") as raised:
        product(libraries(text))
    message = str(raised.value)
    assert "first by: CUDA C++ source" in message and "times_2" not in message.split("\n")[0]
    assert "again by: CUDA C++ source" in message and "what to do: " in message


@pytest.mark.parametrize("text", OWN.values(), ids=OWN)
def test_what_is_of_one_source_alone_may_differ(text):
    assert product(libraries(text)) == [10, 21]


def test_what_two_ltoir_modules_define_differently_is_refused():
    with pytest.raises(autolink.LinkError, match=r"'of\(int\)' is defined in two different ways"):
        product(libraries(DIFFERENT["inline function"], "sm_90", "sm_90"))
    assert product(libraries(OWN["static function"], "sm_90", "sm_90")) == [10, 21]


def test_ltoir_for_other_architectures_is_not_refused_for_code_that_may_be_the_same():
    double, triple = libraries(DIFFERENT["inline function"], "sm_80", "sm_90")

    def kernel(x):
        x[0] = double(x[0]) + triple(x[1])

    report = " ".join(str(build(kernel).report).split())
    assert "made by other compilers or for other architectures, define of(int) differently" in report


def test_without_lto_what_is_not_inlined_is_refused():
    with pytest.raises(autolink.LinkError, match=r"'of\(int\)' is defined in two different ways"):
        product(libraries("inline __device__ __noinline__ int of(int x) { return x * N; }"), lto=False)
    assert product(libraries(DIFFERENT["inline function"]), lto=False) == [10, 21]
    same = "inline __device__ __noinline__ int same(int x) { return x + 1; } "
    same += "static __device__ int of(int x) { return same(x) * N; }"
    assert product(libraries(same), lto=False) == [12, 24]


NOT_INLINED = {
    "other function": "inline __device__ __noinline__ int of(int x) { return x * N; }",
    "same function": "inline __device__ __noinline__ int same(int x) { return x + 1; } "
    "static __device__ int of(int x) { return same(x) * N; }",
}


def test_ptx_from_elsewhere_is_compared():
    with pytest.raises(autolink.LinkError, match=r"'of\(int\)' is defined in two different ways") as raised:
        product(libraries(NOT_INLINED["other function"], "sm_90", "sm_90", kind="ptx"), lto=False)
    assert "or link with LTO" in str(raised.value)
    assert product(libraries(NOT_INLINED["same function"], "sm_90", "sm_90", kind="ptx"), lto=False) == [12, 24]


@pytest.mark.parametrize("text", NOT_INLINED.values(), ids=NOT_INLINED)
def test_cubins_from_elsewhere_are_compared(text):
    double, triple = libraries(text, "sm_90", "sm_90", kind="cubin")

    def kernel(x):
        x[0] = double(x[0]) + triple(x[1])

    if text == NOT_INLINED["same function"]:
        assert build(kernel, lto=False).code
        return
    with pytest.raises(autolink.LinkError, match=r"'of\(int\)' is defined in two different ways"):
        build(kernel, lto=False)


def test_ptx_of_other_compilers_is_not_refused_for_code_that_may_be_the_same():
    double, triple = libraries(NOT_INLINED["other function"], "sm_80", "sm_90", kind="ptx")

    def kernel(x):
        x[0] = double(x[0]) + triple(x[1])

    report = " ".join(str(build(kernel, lto=False).report).split())
    assert "made by other compilers or for other architectures, define of(int) differently" in report


def test_the_function_that_differs_is_named_and_not_its_callers():
    text = (
        "inline __device__ int inner(int x) { return x * N; } inline __device__ int outer(int x) { return inner(x); }"
        "inline __device__ int of(int x) { return outer(x); }"
    )
    with pytest.raises(autolink.LinkError, match=r"'inner\(int\)' is defined in two different ways"):
        product(libraries(text))


def test_libraries_by_name_that_differ_in_macros_are_refused_with_them():
    text = "template <class T> __device__ T power(T x) { T r = 1; for (int i = 0; i < N; ++i) r *= x; return r; }"
    square, cube = autolink.cxx(text, defines={"N": 2}), autolink.cxx(text, defines={"N": 3})

    def kernel(x):
        x[0] = square.power(x[0])
        x[1] = cube.power(x[1])

    with pytest.raises(autolink.LinkError, match="is defined in two different ways") as raised:
        build(kernel)
    assert "defines: {'N': '2'} and {'N': '3'}" in str(raised.value)


def test_libraries_by_name_that_differ_in_text_are_refused_with_both_lines(tmp_path):
    double = autolink.cxx("""
        struct H { __device__ float get(float x) { return 2 * x; } };
        __device__ float f(float x) { return H().get(x); }
    """)
    tmp_path.joinpath("triple.cuh").write_text(
        "#pragma once\nstruct H {\n  __device__ float get(float x) { return 3 * x; }\n};"
    )
    triple = autolink.cxx(
        '#include "triple.cuh"\n__device__ float g(float x) { return H().get(x); }', include_paths=[tmp_path]
    )

    def kernel(x):
        x[0] = double.f(x[0]) + triple.g(x[0])

    with pytest.raises(autolink.LinkError, match=r"'H::get\(float\)' is defined in two different ways") as raised:
        build(kernel, "void(float32[::1])")
    message = str(raised.value)
    first, again = (next(line for line in message.split("\n") if word in line) for word in ("first by: ", "again by: "))
    assert re.search(r" at \S*test_shared_definitions.py:\d+$", first) and again.endswith("triple.cuh:3")
    assert "what to do: " in message and "__location__" not in message and "prologue" not in message
    assert ".log" not in message


COMPLEX = """#include <cuda/std/complex>
#include <cuda/atomic>
static __device__ float part(float x) { return x + 1; }
inline __device__ float size(float x, int* n) {
    cuda::std::complex<float> z(x, 1);
    cuda::atomic_ref<int> counter(*n);
    counter.fetch_add(1);
    z = cuda::std::exp(z) / cuda::std::complex<float>(part(x), 2);
    return cuda::std::abs(z) + float(lgamma(double(x)));
}
"""


@pytest.mark.parametrize(
    "options",
    [{}, {"options": {"std": "c++20"}}, {"options": {"lineinfo": True}}],
    ids=["alike", "C++20", "lines"],
)
def test_headers_that_both_include_may_be_compiled_with_options_that_change_no_code(options):
    first, second = autolink.cxx(COMPLEX), autolink.cxx(COMPLEX + "// again", **options)

    def kernel(x, n):
        x[0] = first.size(x[0], n)
        x[1] = second.size(x[1], n)

    x, n = np.array([2, 2], np.float32), np.zeros(1, np.int32)
    build(kernel, "void(float32[::1], int32[::1])").emulate[1, 1](x, n)
    assert x[0] == x[1] != 2 and n[0] == 2
