# SPDX-License-Identifier: BSD-2-Clause
"""Calls of C++ are rewritten: they get elements of read-only arrays as ``const``, and flags of Python as numbers."""

from __future__ import annotations

import enum
import importlib

import numpy as np
import pytest
from autolink_support import CC
from front_ends import FrontEndUnderTest, front_end_named
from numba.cuda import autolink

STRUCT = "struct Point { int n; float v[3]; };"
lib = autolink.cxx(f"""{STRUCT}
    __device__ int which(Point& p) {{ return p.n++; }}
    __device__ int which(const Point& p) {{ return 10 * p.n; }}
    __device__ void write(Point& p) {{ p.n = 7; }}
    __device__ void write_first(float* v) {{ v[0] = 7; }}
    enum Flags {{ A = 1, B = 2, C = 4 }};
    __device__ int number(int flags) {{ return 10 * flags; }}
    __device__ int number_of(Flags flags) {{ return 10 * flags; }}
    template <class F> __device__ float apply(F f, float x) {{ return f(x); }}
""")
make_flags = lib["Flags"]


class Flags(enum.IntFlag):
    A, B, C = 1, 2, 4


class Function(autolink.DeviceCallable):
    """A function of C that takes a point."""

    def __init__(self, parameter: str):
        self.parameter = parameter

    def __numba_cuda_call__(self, p):
        return autolink.Extern("of_point", returns="int32")

    def __numba_cuda_link__(self, p):
        code = f'{STRUCT} extern "C" __device__ int of_point({self.parameter} p) {{ return p.n; }}'
        return autolink.CUDASource(code)


reader, writer = Function("const Point&"), Function("Point&")


def emulate(front_end: FrontEndUnderTest, kernel, *arrays: np.ndarray) -> None:
    """Run a *kernel* of one thread. Arrays that are read-only are so in the kernel."""
    typing = importlib.import_module(f"{front_end.types.Type.__module__.rpartition('.types')[0]}.typing.typeof")
    signature = tuple(typing.typeof(each, typing.Purpose.argument) for each in arrays)
    autolink.build(front_end.cuda.jit(kernel), signature, cc=CC).emulate[1, 1](*arrays)


def points(front_end: FrontEndUnderTest) -> tuple[np.ndarray, np.ndarray]:
    """Return an array of points that is read-only, and one that is not."""
    dtype = lib.record("Point", cc=CC)
    given = np.zeros(2, dtype), np.zeros(2, dtype)
    given[0]["n"] = given[1]["n"] = 3, 4
    given[0].flags.writeable = False
    return given


def test_cxx_chooses_the_overload_for_elements_of_read_only_arrays(front_end):
    def kernel(constant, others, r):
        r[0] = lib.which(constant[0])
        p = constant[1]
        r[1] = lib.which(p)
        r[2] = lib.which(others[1])

    constant, others = points(front_end)
    emulate(front_end, kernel, constant, others, r := np.zeros(3, np.int32))
    assert r.tolist() == [30, 40, 4]
    assert others["n"].tolist() == [3, 5]


def write_element(constant):
    lib.write(constant[1])


def write_variable(constant):
    p = constant[1]
    lib.write(p)


def write_in_loop(constant):
    for p in constant:
        lib.write(p)


def write_member(constant):
    lib.write_first(constant[0].v)


@pytest.mark.parametrize("kernel", [write_element, write_variable, write_in_loop, write_member])
def test_cxx_that_writes_to_one_is_refused(front_end, kernel):
    with pytest.raises(Exception, match="const ") as caught:
        emulate(front_end, kernel, points(front_end)[0])
    assert "that is not read-only; or, where C++ only reads it, take a const " in str(caught.value)


def test_functions_of_c_read_them_and_do_not_write(front_end):
    def kernel(constant, others, r):
        r[0] = reader(constant[0]) + reader(others[1])

    def writing(constant, others, r):
        r[0] = writer(others[0]) + writer(constant[1])

    constant, others = points(front_end)
    emulate(front_end, kernel, constant, others, r := np.zeros(1, np.int32))
    assert r[0] == 7
    with pytest.raises(autolink.LinkError, match=r"got: int of_point\(const void\*\)"):
        emulate(front_end, writing, constant, others, r)


def test_flags_are_numbers_in_operators(front_end):
    def kernel(r):
        r[0] = lib.number(Flags.A | Flags.B)
        flags = Flags.A | Flags.B
        flags |= Flags.C
        flags &= ~Flags.A
        if flags & Flags.C:
            r[1] = lib.number(flags)
        r[2] = lib.number_of(make_flags(Flags.A | 4))
        r[3] = lib.number(Flags.B)

    emulate(front_end, kernel, r := np.zeros(4, np.int32))
    assert r.tolist() == [30, 60, 50, 20]


def test_a_function_with_a_variable_of_the_kernel_is_refused_with_a_remedy(front_end):
    def kernel(r):
        scale = r[0] * 2
        r[1] = lib.apply(lambda x: x * scale, r[0])

    with pytest.raises(Exception, match="uses 'scale', a variable of the kernel, which is not a constant") as caught:
        emulate(front_end, kernel, np.zeros(2, np.float32))
    assert "r[1] = lib.apply(lambda x: x * scale, r[0])" in str(caught.value)
    assert "what to do: pass scale to C++ as an argument" in str(caught.value)


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
def test_the_elements_of_a_tuple_are_arguments(front_end):
    own = front_end_named(front_end).cuda
    lib = autolink.cxx(
        "struct P { float a, b; }; __device__ P both(float a, int b) { return {a, float(b)}; }"
        " __device__ float add(float a, float b) { return a + b; }"
    )

    @own.jit
    def kernel(x, t):
        pair = (x[0], 3)
        x[0] = lib.both(*pair).b + lib.both(x[1], *(4,)).b
        x[1] = lib.add(*t)

    x = np.ones(2, np.float32)
    linked = autolink.build(kernel, "void(float32[::1], UniTuple(float32, 2))", cc=(9, 0))
    linked.emulate[1, 1](x, (np.float32(2), np.float32(5)))
    assert list(x) == [7, 7]
