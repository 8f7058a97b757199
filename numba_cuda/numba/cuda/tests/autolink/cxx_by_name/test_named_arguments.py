# SPDX-License-Identifier: BSD-2-Clause
"""Errors name the argument that is wrong, and names that exist: those of the user's own source first."""

import numpy as np
import pytest
from autolink_support import build
from numba import cuda
from numba.cuda import autolink
from numba.cuda.core.errors import TypingError

SOURCE = """#include <cuda/std/cmath>
namespace own {
enum class Method { euler = 0, heun = 1 };
struct Params { float dt; int steps; };
__device__ float step(float x, float dt, Method m) { return m == Method::heun ? x : dt; }
__device__ void saxpy(float a, const float* x, float* y, int n) { y[0] += a * x[0]; }
__device__ float split(float x, float& part) { part = x; return x; }
template <class T> __device__ T lerp(T a, T b, T t) { return a + t * (b - a); }
template <int N, class T> __device__ T integrate(T x, const Params& p) { return x * N; }
}
"""


@pytest.fixture(scope="module")
def lib(tmp_path_factory):
    path = tmp_path_factory.mktemp("named") / "solver.cu"
    path.write_text(SOURCE)
    return autolink.cxx(path, namespace="own")


def refused(call, lib, **values):
    kernel = eval(f"lambda x, y: {call}", {"lib": lib, "np": np} | values)
    with pytest.raises(TypingError) as caught:
        build(cuda.jit(kernel), "void(float32[::1], float64[::1])")
    return str(caught.value)


def accepted(call, **values):
    exec(f"def kernel(x, y):\n    x[0] = {call}", values)
    build(cuda.jit(values["kernel"]), "void(float32[::1], float64[::1])")


@pytest.mark.parametrize(
    "misspelt, meant",
    [("setp", "step"), ("lrep", "lerp"), ("Lerp", "lerp"), ("saxpi", "saxpy"), ("axpy", "saxpy"), ("Methd", "Method")],
)
def test_a_name_of_the_own_source_is_meant(lib, misspelt, meant):
    assert refused(f"lib.{misspelt}(x[0])", lib).endswith(f"\n  what to do: did you mean {meant}?")


@pytest.mark.parametrize("unknown", ["set", "hostf", "devicef", "inlin", "tread"])
def test_only_names_that_can_be_called_are_proposed(lib, unknown):
    text = refused(f"lib.{unknown}(x[0])", lib)
    assert "did you mean" not in text
    assert "; the source has Method, Params, integrate, lerp, saxpy, split, step" in text


def test_a_type_in_a_name_is_meant(lib):
    assert refused("lib['lerp<flaot>'](x[0], x[0], x[0])", lib).endswith("did you mean float?")


def test_arrays_of_another_type_are_numbered(lib):
    assert refused("lib.saxpy(2, y, y, 1)", lib).endswith("pass an array of np.float32 as arguments 2 and 3")
    assert refused("lib.saxpy(2, x, y, 1)", lib).endswith("pass an array of np.float32 as argument 3")


@pytest.mark.parametrize(
    "text, call, said",
    [
        (
            "[](float a, float b, float c) { return own::lerp(a, b, c); }",
            "f(x[0], x, x[2])",
            "argument 2 is an array, where C++ takes a number",
        ),
        ("[](float a, auto* b) { return a + *b; }", "f(x[0], None)", "pass an array, not None: argument 2 is a null"),
        (
            "[](float a, auto* p) { return a + static_cast<float>(*p) + (a < 2, 1); }",
            "f(x[0], None)",
            "pass an array, not None: argument 2 is a null",
        ),
        ("[](float a, char b) { return b == ')' ? a : 1; }", "f(x[0], x)", "argument 2 is an array, where C++ takes"),
    ],
)
def test_arguments_of_lambdas_are_counted(lib, text, call, said):
    assert said in refused(call, lib, f=lib.expr(text))


def test_a_variable_of_python_in_a_lambda(lib):
    text = refused("f(x[0])", lib, f=lib.expr("[](float x) { return n * x; }"))
    assert "for a variable of Python, give the lambda a parameter: [](..., auto n)" in text
    f = lib.expr("[](float x, auto n) { return n * x; }")
    accepted("f(x[0], 3)", f=f)


def test_none_where_cxx_refers(lib):
    text = refused("lib.split(x[0], None)", lib)
    assert "argument 2 is None, and C++ refers to a variable there" in text.partition("\n")[0]
    accepted("lib.split(x[0], x[1])", lib=lib)


def test_a_string_where_cxx_takes_an_enumerator(lib):
    text = refused("lib.step(x[0], x[0], 'heun')", lib)
    assert "argument 3 is a string, and C++ takes own::Method" in text.partition("\n")[0]
    assert "heun = lib.eval(\"own::Method::heun\"), and pass lib['own::Method'](heun) in it" in text
    heun, method, step = lib.eval("own::Method::heun"), lib["own::Method"], lib.step
    accepted("step(x[0], x[0], method(heun))", step=step, method=method, heun=heun)


def test_a_tuple_where_cxx_takes_a_struct(lib):
    text = refused("lib['integrate<2>'](x[0], (0.1, 3))", lib)
    assert "\n  declared: template <int N, class T> __device__ T integrate(T x, const Params& p)" in text
    assert text.endswith(
        "pass argument 2 of the type that C++ takes, not a tuple: for a struct T, an element of an array with the dtype"
        " lib.record('T')"
    )


def test_a_function_is_not_a_constant(lib):
    with pytest.raises(autolink.CxxError) as caught:
        lib.eval("step", cc=(9, 0))
    assert "step is a function of C++, float (float, float, own::Method), and not a value" in str(caught.value)
    assert "what to do: call it in a kernel; or, if it is constexpr" in str(caught.value)


def test_several_errors_of_a_source_are_listed():
    lib = autolink.cxx("__device__ float f(float x) { a(); b(); c(); d(); return x; }")
    text = refused("lib.f(x[0])", lib)
    assert 'identifier "a" is undefined' in text.partition("\n")[0]
    assert text.count("\n  also at: ") == 3 and "see the exception" not in text
