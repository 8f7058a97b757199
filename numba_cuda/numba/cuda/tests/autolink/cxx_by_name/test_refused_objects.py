# SPDX-License-Identifier: BSD-2-Clause
"""Arguments that are no objects of the classes that C++ takes: the error says how one is made."""

from __future__ import annotations

import numpy as np
import pytest
from autolink_support import CC, build
from front_ends import front_end_named
from numba.cuda import autolink
from numba.cuda.core.errors import TypingError

from numba_cuda_autolink.short_tracebacks import message_of

OBJECTS = autolink.cxx("""
    struct Max { __device__ float operator()(float a, float b) const { return a > b ? a : b; } };
    struct Scale { float k; __device__ float operator()(float a) const { return k * a; } };
    struct Point { float x, y; };
    enum class Color { red, green };
    __device__ float best(float& a, Max f) { a += 1; return f(a, 4); }
    __device__ float scaled(float a, Scale f) { return f(a); }
    template <class F> __device__ float apply(float a, F f) { return f(a, 4.0f); }
    __device__ float norm(Point p) { return p.x * p.x + p.y * p.y; }
    __device__ float norm_of(const Point& p) { return norm(p); }
    __device__ float shade(Color c, float) { return 1; }
    __device__ float shade(float, float, float);
    __device__ int hash(const char* s) { return s[0]; }
    __device__ int change(char* s) { return s[0]; }
    template <int N, class T> __device__ T power(T x) { return N * x; }
    struct Far { __device__ float operator()(float* a, float b) const { return b; } };
    struct Any { template <class T> __device__ T operator()(T a, T* b) const { return a; } };
    struct Changing { __device__ float operator()(float a, float b) { return a; } };
    template <class F> __device__ float apply_const(float a, const F& f) { return f(a, 4.0f); }
""")
NAMES = ("Max", "best", "scaled", "apply", "norm", "norm_of", "hash", "change", "power", "shade")


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
@pytest.mark.parametrize(
    ("written", "diagnosis", "remedy"),
    [
        ("best(r[0], lambda a, b: a)", "argument 2 is a lambda, and best takes Max", "return best(a, Max{}); }')"),
        ("best(r[0], Max)", "argument 2 is Max, the name of a class, and best takes an object", "Max{}); }')"),
        (
            "apply(r[0], Max)",
            "argument 2 is Max, the name of a class, and apply takes an object",
            "apply(a, Max{}); }')",
        ),
        ("best(r[0], Max())", "Max() returns an object that only C++ knows", "return f(Max()); }')"),
        ("scaled(r[0], lambda a: a)", "argument 2 is a lambda, and scaled takes Scale", "scaled(a, Scale{x...}); }')"),
        ("scaled(r[0], r[1])", "argument 2 is a float32, and scaled takes Scale", "scaled(a, Scale{x...}); }')"),
        ("norm((r[0], r[1]))", "argument 1 is a tuple, and norm takes Point", "return norm(Point{x...}); }')"),
        ("norm_of((r[0], r[1]))", "argument 1 is a tuple, and norm_of takes Point", "norm_of(Point{x...}); }')"),
        ("norm_of(r[0], r[1])", "argument 1 is a float32, and norm_of takes Point", "(auto... x) { return norm_of("),
        ("shade(1, r[0])", "argument 1 is an int64, and shade takes Color", "lib['Color'](x)"),
        ("norm(r)", "argument 1 is an array of float32, and norm takes Point", "an array of lib.record('Point')"),
        ("hash(7)", 'incompatible with parameter of type "const char *"', "pass a constant string, such as 'text'"),
        ("hash(b'a')", "has no counterpart in C", "to C++ by name, a constant string, which is a const char*"),
        ("change('a')", "C++ takes a string to which it can write", "let C++ take a const char *"),
        ("power(3, r[0])", "no instance of function template", 'lib["power<N>"], with a value or type for N'),
        ("best(r, Max)", "argument 1 is an array of float32, and C++ refers to one float", "such as x[i]"),
        ("best(np.float32(r[0]), r[0])", "argument 2 is a float32, and best takes Max", "best(a, Max{}); }')"),
    ],
)
def test_an_object_of_cxx_is_made_by_a_lambda(front_end, written, diagnosis, remedy):
    pytest.importorskip(front_end.replace("-", "_"))
    names = {"np": np, **{each: getattr(OBJECTS, each) for each in NAMES}}
    exec(compile(f"def kernel(r):\n    r[2] = {written}\n", "objects.py", "exec"), names)
    kernel = front_end_named(front_end).cuda.jit(names["kernel"])
    with pytest.raises(Exception, match="what to do: ") as caught:
        autolink.build(kernel, "void(float32[::1])", cc=CC)
    text = message_of(caught.value)
    assert diagnosis in text
    todo = text.partition("what to do: ")[2]
    assert remedy in todo and "enumeration" not in todo


@pytest.mark.parametrize(
    ("functor", "diagnosis", "remedy"),
    [
        ("apply(a, Far{})", "C++ calls Far with (float, float)", "let operator() of Far take (float, float)"),
        ("apply(a, Any{})", "C++ calls Any with (float, float)", "let operator() of Any take (float, float)"),
        (
            "apply(a, [](auto x, int* y) { return x; })",
            "C++ calls the lambda with (float, float)",
            "let the lambda take (",
        ),
        (
            "apply(a, [](float x) { return x; })",
            "C++ calls the lambda with (float, float)",
            "let the lambda take (float, f",
        ),
        (
            "apply_const(a, Changing{})",
            "C++ calls a const Changing, whose operator() is not",
            "operator()(float, float) const",
        ),
    ],
)
def test_a_functor_that_cxx_calls_with_others_is_told_with_what(functor, diagnosis, remedy):
    with pytest.raises(autolink.CxxError) as caught:
        OBJECTS.expr(f"[](auto a) {{ return {functor}; }}").signature("float32", cc=CC)
    text = str(caught.value)
    assert diagnosis in text.splitlines()[0] and remedy in text.partition("what to do: ")[2]


def test_a_python_function_that_returns_a_tuple_is_told_to_return_one_value():
    apply = OBJECTS.apply

    def kernel(r):
        r[0] = apply(r[0], lambda a, b: (a, b))

    with pytest.raises(TypingError, match="the Python function lambda returns a tuple, and C") as caught:
        build(kernel, "void(float32[::1])")
    assert "what to do: let lambda return one value" in message_of(caught.value)


def test_a_lambda_of_a_remedy_makes_an_object_and_lets_cxx_write():
    best = OBJECTS.expr("[](auto&& a) { return best(a, Max{}); }")
    scaled = OBJECTS.expr("[](auto&& a, auto... x) { return scaled(a, Scale{x...}); }")

    def kernel(r):
        r[1] = best(r[0])
        r[2] = scaled(r[0], r[1])

    r = np.float32([1, 0, 0])
    build(kernel, "void(float32[::1])").emulate[1, 1](r)
    assert r.tolist() == [2, 4, 8]
