# SPDX-License-Identifier: BSD-2-Clause
"""A call that passes other types than its C function has: what to do about each argument, done literally, works."""

import re

import numpy as np
import pytest
from numba import cuda
from numba.cuda import autolink, types

SIGNATURE = "void(float32[::1])"


def build(cxx, call, **extern):
    class Called(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x, n):
            return autolink.Extern("f", **({"returns": "float32"} | extern))

        def __numba_cuda_link__(self, x, n):
            return autolink.CUDASource(f'extern "C" __device__ {cxx}')

    obj = Called()
    namespace = {"obj": obj, "np": np}
    exec(f"def kernel(x):\n    x[0] = obj({call})", namespace)
    return autolink.build(cuda.jit(namespace["kernel"]), SIGNATURE, cc=(9, 0))


def refused(*args, **extern):
    with pytest.raises(autolink.LinkError) as caught:
        build(*args, **extern)
    return str(caught.value)


@pytest.mark.parametrize(
    "cxx, call, said",
    [
        ("float f(float* x, int n) { return x[n - 1]; }", "x, x.size", "n: got long long, expected int"),
        ("float f(long long n, float* x) { return x[n - 1]; }", "x, x.size", ""),
        ("float f(float* x) { return x[0]; }", "x, x.size", "the call passes 2, and f takes 1"),
        ("float f(float x, int n) { return x * n; }", "x[0], 2", "n: got long long, expected int"),
        ("float f(float x, const float& n) { return x * n; }", "x[0], x[1]", "n: got float, expected const float&"),
        ("double f(float* x, long long n) { return x[n - 1]; }", "x, x.size", ""),
    ],
)
def test_what_the_error_says_to_write_in_extern_works(cxx, call, said):
    text = refused(cxx, call)
    assert f"  {said}" in text
    written = re.search(r"Extern\('f', (?:\.\.\., )?(.*)\)$", text)[1]
    build(cxx, call, **eval(f"dict({written})", {"autolink": autolink, "types": types}))


def test_an_array_of_another_type():
    text = refused("float f(double* x, long long n) { return x[n - 1]; }", "x, x.size")
    assert "\n  x: got float*, expected double*\n" in text
    assert text.endswith("what to do: pass an array of float64 as x, or declare float* in C++")
    assert "by_reference" not in text and "voidptr" not in text


@pytest.mark.parametrize("cxx", ["float&", "float*"])
def test_a_number_where_cxx_writes(cxx):
    source = f"float f(float x, {cxx} n) {{ return x; }}"
    text = refused(source, "x[0], x[1]")
    assert f"\n  n: got float, expected {cxx}\n" in text
    assert text.endswith("what to do: pass memory for n, to which C++ writes: a slice of an array, such as x[i:i + 1]")
    build(source, "x[0], x[1:2]")


def test_an_array_where_cxx_takes_a_number():
    source = "float f(float x, long long n) { return x; }"
    assert refused(source, "x, 1").endswith("pass a number as x: one element of the array, such as x[i]")
    build(source, "x[0], 1")


def test_each_argument_has_its_remedy():
    text = refused("float f(double* x, int n) { return x[n - 1]; }", "x, x.size")
    assert "x: got float*, expected double*\n  n: got long long, expected int\n" in text
    assert "pass an array of float64 as x, or declare float* in C++;\n    convert what is passed: " in text


def test_a_function_without_a_result():
    source = "void f(float* x, long long n) { x[n - 1] = 2; }"
    assert refused(source, "x, x.size").endswith("leave out returns=, Extern('f'): it returns nothing")
