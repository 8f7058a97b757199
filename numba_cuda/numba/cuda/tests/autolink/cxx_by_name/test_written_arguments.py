# SPDX-License-Identifier: BSD-2-Clause
"""What C++ writes through ``T&`` is written to the variable or the element of an array that was passed."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from autolink_support import build
from kernel_cache_support import run_warm
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError

lib = autolink.cxx("""
__device__ float split(float x, int& whole) { whole = int(x); return x - whole; }
__device__ void polar(double r, double angle, double& x, double& y) { x = r * angle; y = r - angle; }
__device__ void exchange(float& a, float& b) { float c = a; a = b; b = c; }
__device__ int reads(const int& x) { return x; }
template <class T> __device__ T forwards(T&& x) { return x; }
""")
split, polar, exchange = lib.split, lib.polar, lib.exchange


def kernel(x, n, r):
    i = cuda.grid(1)
    if i < x.size:
        rest = split(x[i], n[i])
        whole = np.int32(5)
        for _ in range(2):
            rest += split(x[i] + 10, whole)
        a, b = 0.0, 0.0
        polar(np.float64(x[i]), 2.0, a, b)
        r[i] = rest + whole + a + b
        exchange(x[0], x[1])


def test_a_kernel_passes_variables_and_elements_to_references():
    assert len(build(kernel, "void(float32[::1], int32[::1], float64[::1])").code) > 0


def test_a_closure_and_an_inlined_function_write_to_the_kernels_variables_and_elements():
    to_seven = autolink.cxx("__device__ void to_seven(int& x) { x = 7; }").to_seven

    @cuda.jit(device=True, inline="always")
    def set_first(values):
        to_seven(values[0])

    @cuda.jit
    def kernel(x):
        y = x[5]

        def set_at(values, i):
            to_seven(values[i])

        def set_y():
            to_seven(y)
            return y

        set_first(x)
        set_at(x, 1)
        x[2] = set_y()

    code = build(kernel, "void(int32[::1])", output="ptx").code.decode()
    stored = re.findall(r"st\.global\.u32 \t?\[%rd\d+(?:\+\d+)?\], (%r\d+|7);", code)
    assert len(stored) == 3
    (register,) = {*stored}
    assert re.search(rf"mov\.u32 \t{register}, 7;", code)


def test_a_function_that_was_unpickled_writes_to_variables_too(tmp_path, servers):
    """Nothing has imported the module of `autolink.cxx` there."""
    program = tmp_path / "program.py"
    program.write_text(
        "import pickle, sys\n"
        "from numba import cuda\n"
        "from numba.cuda import autolink\n"
        "split = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "assert 'numba.cuda.autolink.cxx_by_name.library' not in sys.modules\n"
        "@cuda.jit\n"
        "def kernel(x, n, r):\n"
        "    r[0] = split(x[0], n[0])\n"
        "print(len(autolink.build(kernel, 'void(float32[::1], int32[::1], float32[::1])', cc=(9, 0)).code) > 0)\n"
    )
    done = run_warm(servers, program, pickle.dumps(split).hex())
    assert done.stdout == "True\n", done.stderr


def test_what_is_not_written_is_passed_as_before():
    reads, forwards = lib.reads, lib.forwards

    @cuda.jit
    def kernel(x):
        x[0] = reads(x[0] + 1) + forwards(x[1])

    assert len(build(kernel, "void(int32[::1])").code) > 0


@pytest.mark.parametrize("argument", ["x[0] + x[1]", "np.int32(1)"])
def test_a_temporary_value_cannot_be_written(argument):
    names = {"split": split, "np": np}
    exec(f"def kernel(x, r):\n    r[0] = split(r[0], {argument})", names)
    with pytest.raises(TypingError, match=r"split\(float32, int\d+\)"):
        build(names["kernel"], "void(int32[::1], float32[::1])")


def test_outside_a_kernel_the_signature_is_an_error_that_says_so():
    with pytest.raises(autolink.CxxError, match=r"split\(float32, int32\) writes to argument 2"):
        split.signature(types.float32, types.int32)


def test_an_element_that_cannot_be_written_is_refused_at_the_call():
    constant = np.array([1], np.int32)
    constant.flags.writeable = False

    def read_only(x, r):
        r[0] = split(r[0], constant[0])

    def of_tuple(x, r):
        pair = x[0], x[1]
        r[0] = split(r[0], pair[0])

    for kernel in (read_only, of_tuple):
        with pytest.raises(TypingError, match=r"argument 2, which is neither a variable nor an element"):
            build(kernel, "void(int32[::1], float32[::1])")


loose = autolink.cxx("""
template <class T> __device__ int over(T& x) { x = 5; return 1; }
template <class T> __device__ int over(const T& x) { return 2; }
__device__ int of_float(float& x) { x = 5; return 1; }
__device__ int of_float(double x) { return 2; }
template <class T> __device__ int forward(T&& x) { x = 5; return 1; }
template <class... A> __device__ int each(A&&... x) { ((x = 5), ...); return 1; }
struct Functor { template <class T> __device__ int operator()(T&& x) const { x = 5; return 1; } };
__device__ int alias(int& x, int* p) { p[0] = 5; x += 1; return p[0]; }
__device__ int same(int& x, int& y) { x = 5; y += 1; return x; }
__device__ int next_of(int& x) { return (&x)[1]; }
__device__ void count(int& x) { atomicAdd(&x, 1); }
""")


def run(front_end, text: str):
    """Launch a kernel with a body of this *text*, with the functions of `loose`."""
    of_lambda = loose.expr("[](auto&& x) { x = 5; return 1; }")
    names = {"lib": loose, "np": np, "functor": loose["Functor{}"], "of_lambda": of_lambda}
    exec("def kernel(a, f, r):\n    " + text.replace("\n", "\n    "), names)
    a, f, r = np.arange(1, 5, dtype=np.int32), np.arange(1, 5, dtype=np.float32), np.zeros(4)
    front_end.cuda.jit(names["kernel"])[1, 4 if "count" in text else 1](a, f, r)
    return a.tolist(), f.tolist(), r.tolist()


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["lib.over", "lib.forward", "lib.each", "functor", "of_lambda"])
def test_where_a_temporary_is_taken_too_nothing_that_is_written_is_lost(name, front_end):
    text = "x = a[1]\ny = f[1]\nr[0] = {0}(a[0]) + {0}(f[0]) + {0}(x) + {0}(y)\nr[1] = x + y\nr[2] = {0}(a[0] + 1)"
    a, f, r = run(front_end, text.format(name))
    assert a[:2] == [5, 2] and f[:2] == [5, 2]
    assert r[:3] == [4, 10, 2 if name == "lib.over" else 1]


@pytest.mark.gpu
def test_elements_are_passed_where_they_are_and_a_variable_once(front_end):
    a, _, r = run(
        front_end, "r[0] = lib.alias(a[0], a)\nr[1] = lib.next_of(a[2])\nx = a[3]\nr[2] = lib.same(x, x)\nr[3] = x"
    )
    assert (a, r) == ([6, 2, 3, 4], [6, 4, 6, 6])
    a, f, r = run(front_end, "lib.count(a[1])\nif a[0] == 1:\n    r[1] = lib.of_float(f[3])")
    assert a == [1, 6, 3, 4] and f[3] == 5 and r[1] == 1


@pytest.mark.gpu
def test_a_variable_that_is_a_constant_stays_one(front_end):
    """Where C++ need not write to it."""
    _, _, r = run(front_end, "n = 2\nr[0] = lib.over(n)\nr[1] = (3, 4, 5)[n]")
    assert r[:2] == [2, 5]


@pytest.mark.parametrize(("name", "argument"), [("of_pointer", "x"), ("of_tuple", "(x[0], x[1])")])
def test_a_reference_to_what_is_a_value_in_python_is_refused(name, argument):
    lib = autolink.cxx("""
    #include <cuda/std/tuple>
    __device__ void of_pointer(const int*& p) { ++p; }
    __device__ void of_tuple(cuda::std::tuple<int, int>& t) { cuda::std::get<0>(t) = 9; }
    """)
    names = {"called": lib[name]}
    exec(f"def kernel(x):\n    called({argument})", names)
    with pytest.raises(TypingError, match="C\\+\\+ refers to a value of Python, and what it writes would be lost"):
        build(names["kernel"], "void(int32[::1])")


@pytest.mark.gpu
def test_a_loop_over_written_variables_ends_with_their_last_values():
    def one(x, n, r):
        rest = split(x[0], n[0])
        whole = np.int32(5)
        for step in range(3):
            rest += split(x[0] + step, whole)
        a, b = 0.0, 0.0
        polar(np.float64(x[0]), 2.0, a, b)
        r[0], r[1], r[2], r[3] = rest, whole, a, b
        exchange(x[0], x[1])

    x, n, r = np.array([3.25, 8], np.float32), np.zeros(1, np.int32), np.zeros(4)
    cuda.jit(one)[1, 1](x, n, r)
    assert n.tolist() == [3] and r.tolist() == [1.0, 5, 6.5, 1.25] and x.tolist() == [8, 3.25]
