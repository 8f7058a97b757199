# SPDX-License-Identifier: BSD-2-Clause
"""A call that passes other types than its C function has: what to do about each argument, done literally, works."""

import re
import subprocess
import sys

import numpy as np
import pytest
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError

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
    assert "pass an array of float64 as x, or declare float* in C++; convert what is passed: " in text


def test_a_function_without_a_result():
    source = "void f(float* x, long long n) { x[n - 1] = 2; }"
    assert refused(source, "x, x.size").endswith("leave out returns=, Extern('f'): it returns nothing")


class Given(autolink.DeviceCallable):
    def __init__(self, code):
        self.code = code

    def __numba_cuda_call__(self, x):
        return autolink.Extern("scale", returns=x)

    def __numba_cuda_link__(self, x):
        return self.code


def build_given(code):
    given = Given(code)

    def kernel(x):
        x[0] = given(x[0])

    return autolink.build(cuda.jit(kernel), SIGNATURE, cc=(9, 0))


PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .func (.param .b32 r) scale(.param .b32 x) {
.reg .f32 %f1; ld.param.f32 %f1, [x]; st.param.f32 [r], %f1; ret; }
"""


def test_ptx_that_is_given_as_cxx():
    with pytest.raises(autolink.LinkError) as caught:
        build_given(autolink.CUDASource(PTX))
    assert "what to do: return PTX as cuda.PTXSource(text.encode()), of numba.cuda" in str(caught.value)
    build_given(cuda.PTXSource(PTX.encode()))


def test_a_template_has_no_symbol():
    with pytest.raises(autolink.LinkError) as caught:
        build_given(autolink.CUDASource("template <class T> __device__ T scale(T x) { return x; }"))
    assert "\n  what to do: scale is a template, which has no symbol: define an extern" in str(caught.value)


def test_where_a_function_of_other_types_is_defined_is_shown():
    with pytest.raises(autolink.LinkError) as caught:
        build_given(autolink.CUDASource('extern "C" __device__ double scale(double x) { return 2 * x; }'))
    assert re.search(r"\n  in C\+\+: .*test_wrong_parameters\.py:\d+\n", str(caught.value))
    assert "Extern('scale', returns='float64'); convert what is passed: " in str(caught.value)


def test_an_architecture_is_an_option_of_another_name():
    with pytest.raises(TypeError, match=r"no option 'arch'\n  what to do: write cc=\(9, 0\) for sm_90"):
        autolink.build(cuda.jit(lambda x: None), SIGNATURE, arch="sm_90")


def test_an_attribute_that_is_misspelt():
    given = Given("")

    def kernel(x):
        x[0] = given.cod

    with pytest.raises(TypingError, match=r"has no attribute 'cod'(?s:.*)\n  what to do: did you mean code\?"):
        autolink.build(cuda.jit(kernel), SIGNATURE, cc=(9, 0))


def test_no_frame_of_numpy_is_printed():
    script = (
        "import numpy as np\nfrom numba import cuda\nfrom numba.cuda import autolink\n\n\ndef kernel(x):\n"
        "    x[0] = np.sqqrt(x[0])\n\n\nautolink.build(cuda.jit(kernel), 'void(float32[::1])', cc=(9, 0))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "has no attribute 'sqqrt'" in run.stderr and "__getattr__" not in run.stderr
