# SPDX-License-Identifier: BSD-2-Clause
"""Arguments that are no numbers of C++ are named with what to pass in their place; CUDA's own functions of a name, such
as ``norm``, are no candidates where the library has one."""

from __future__ import annotations

import pytest
from autolink_support import build
from numba import cuda
from numba.cuda import autolink
from numba.cuda.core.errors import TypingError

SOURCE = """
__device__ float scaled(float x, int n) { return x * n; }
__device__ float over(float x) { return x; }
__device__ double over(double x) { return x; }
template <class T> __device__ T square(T x) { return x * x; }
template <class T> __device__ T first(const T* p) { return *p; }
template <class T> __device__ T added(T* p, T v) { return *p + v; }
__device__ float norm(const float* p, int n) { return p[n]; }
namespace vectors { __device__ float rnorm(float x, float y) { return x + y; } }
"""
POINTER = "pass an array, or one element of it as a slice, x[i : i + 1]; or name the template arguments"


def refusal_of(call: str, source: str = SOURCE) -> str:
    kernel = eval(f"lambda x: {call}", {"lib": autolink.cxx(source)})
    with pytest.raises(TypingError) as caught:
        build(cuda.jit(kernel), "void(float32[::1])")
    return str(caught.value).partition("\n\n")[0]


@pytest.mark.parametrize(
    ("call", "diagnosis", "remedy"),
    [
        ("lib.scaled(None, 1)", "argument 1 is None, where C++ takes a number", "pass a number, not None"),
        ("lib.scaled(2.0, (1, 2))", "argument 2 is a tuple, where C++ takes a number", "pass one element of it"),
        ("lib.over(None)", "argument 1 is None, where C++ takes a number", "pass a number, not None"),
        ("lib.over((1, 2))", "argument 1 is a tuple, where C++ takes a number", "pass one element of it"),
        ("lib['square<float>'](None)", "argument 1 is None, where C++ takes a number", "pass a number, not None"),
        ("lib['square<float>'](x)", "argument 1 is an array, where C++ takes a number", "such as x[i]"),
        ("lib.square(None)", "", "pass a number, not None: argument 1 is a null pointer, nullptr in C++"),
        ("lib.square((1, 2))", "", "pass one element of it, such as value[0]: argument 1 is a cuda::std::tuple in C++"),
        ("lib.first(None)", "argument 1 is None, where C++ takes a pointer, T*", POINTER),
        ("lib.first(x[0])", "argument 1 is float32, where C++ takes a pointer, T*", POINTER),
        ("lib.first((1, 2))", "argument 1 is a tuple, where C++ takes a pointer, T*", POINTER),
        ("lib.added(x, None)", "T is float32 in argument 1 and None in argument 2", "pass a number, not None"),
        (
            "lib['first<int>'](x)",
            "argument 1 is an array of float32, and first<int> takes const int*",
            "pass an array of np.int32; or call another one than first<int>",
        ),
        (
            "lib['added<int>'](x[0], 1)",
            "argument 1 is a float32, and added<int> takes int*",
            "pass an array, or one element of it as a slice",
        ),
    ],
)
def test_an_argument_that_c_plus_plus_does_not_take_is_named(call, diagnosis, remedy):
    said = refusal_of(call)
    assert diagnosis in said.partition("\n")[0]
    assert remedy in said.partition("\n  what to do: ")[2]


def test_candidates_of_cuda_are_left_out_where_the_library_has_one():
    assert "double *" not in refusal_of("lib.norm(x)")


def test_a_function_in_a_namespace_is_named_where_cuda_has_one_of_its_name():
    assert "what to do: write its namespace, lib['vectors::rnorm']" in refusal_of("lib.rnorm(x[0], x[1])")


def test_a_function_that_cuda_has_with_these_parameters_gets_another_name():
    source = "__device__ float norm(int n, const double* p) { return *p; }"
    assert "what to do: give it another name, or put it into a namespace" in refusal_of("lib.norm(1, x)", source)


@pytest.mark.parametrize(
    ("call", "numbers"),
    [("lib.norm(1, x)", "1 and 2"), ("lib.added(x[0], x)", "1 and 2"), ("lib.three(2.0, 1, x)", "1 and 3")],
)
def test_arguments_in_another_order_are_named_where_c_plus_plus_takes_them_so(call, numbers):
    said = refusal_of(call, f"{SOURCE} __device__ float three(float* p, int n, float v) {{ return p[n] * v; }}")
    assert f"what to do: exchange arguments {numbers}: C++ takes them in that order" in said


def test_arguments_that_no_order_lets_c_plus_plus_take_are_not_exchanged():
    assert "exchange" not in refusal_of("lib.norm(x, x)") + refusal_of("lib.norm(1, 2)")


@pytest.mark.parametrize(
    ("call", "diagnosis", "remedy"),
    [
        ("lib.over(lib.M)", "C++ has no 'M'", "declare it in the source"),
        ("lib.scaled(lib.ovr, 1)", "C++ has no 'ovr'", "did you mean over?"),
        ("lib.scaled(lib.LANES, 1)", "'LANES' is a constant of C++", 'LANES = lib.eval("LANES")'),
        ("lib.scaled(lib.table, 1)", "table is a variable of C++", "call a function of C++ that reads it"),
        ("lib.missing(lib.M)", 'identifier "missing" is undefined', "declare it in the source"),
    ],
)
def test_a_name_that_is_passed_is_unknown_or_a_constant(call, diagnosis, remedy):
    said = refusal_of(call, f"{SOURCE} constexpr int LANES = 32; __device__ float table[3];")
    assert diagnosis in said.partition("\n")[0]
    assert remedy in said.partition("\n  what to do: ")[2]
