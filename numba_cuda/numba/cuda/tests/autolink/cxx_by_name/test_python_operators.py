# SPDX-License-Identifier: BSD-2-Clause
"""C++ by name gets Python functions, which objects have compiled for the types of a call."""

from __future__ import annotations

import re

import numpy as np
import pytest
from autolink_support import build
from numba import cuda, from_dtype
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError

lib = autolink.cxx("""
    template <class T, class F> __device__ T twice(T x, F f) { return f(f(x, x), x); }
    template <class T, class F, class S> __device__ T with_state(T x, F f, S s) { return f(s)(x); }
    template <class F> __device__ float of_pairs(F f) {
        struct Pair { float x; int n; };
        return f(Pair{2.5f, 4});
    }
    template <class F> __device__ float of_three(float x, F f) { return f(x, x, x); }
""")
twice, with_state = lib.twice, lib.with_state.passing(None, None, "state")
PAIR = np.dtype([("x", np.float32), ("n", np.int32)], align=True)


class Twice(autolink.DeviceCallable):
    """``obj(x, f)``: a template gets the function that the kernel passes."""

    def __numba_cuda_call__(self, x, f):
        f = autolink.device_function(f, x, x)
        return lambda x, _: twice(x, f)


class WithState(autolink.DeviceCallable):
    """``obj(x, f, table)``: a template gets a function with state."""

    def __numba_cuda_call__(self, x, f, table):
        f = autolink.device_function(f, x, state=table)
        return lambda x, _, table: with_state(x, f, table)


apply, apply_with_state = Twice(), WithState()


@cuda.jit(device=True)
def scaled(a, b):
    return a * 3 + b


@cuda.jit(device=True)
def looked_up(i, table):
    return types.int32(table[i, 0] + table.shape[1])


def test_a_python_function_is_a_function_object_in_cxx_and_inlined():
    def kernel(x, y):
        x[0] = apply(x[1], scaled)
        y[0] = apply(y[1], lambda a, b: a - b)

    linked = build(kernel, "void(float32[::1], int64[::1])", output="ptx")
    assert "call" not in linked.code.decode()
    assert len(linked.call_sites) == 2


def test_it_may_have_state():
    def kernel(x, table):
        x[0] = apply_with_state(x[1], looked_up, table)

    ptx = build(kernel, "void(int32[::1], float64[:, :])", output="ptx").code.decode()
    assert "call" not in ptx and ".local" not in ptx


def test_an_array_that_is_not_passed_as_state_is_refused():
    not_passed = lib.with_state

    class Own(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x, f, table):
            f = autolink.device_function(f, x, state=table)
            return lambda x, _, table: not_passed(x, f, table)

    own = Own()

    def kernel(x, table):
        x[0] = own(x[1], looked_up, table)

    with pytest.raises(TypingError, match="cannot be called with the given argument list"):
        build(kernel, "void(int32[::1], float64[:, ::1])")


def test_structs_of_cxx_are_records_in_python():
    of_pairs = lib.of_pairs

    class Own(autolink.DeviceCallable):
        def __numba_cuda_call__(self):
            f = autolink.device_function(lambda p: p.x * p.n, from_dtype(PAIR))
            return lambda: of_pairs(f)

    own = Own()

    def kernel(x):
        x[0] = own()

    ptx = build(kernel, "void(float32[::1])", output="ptx").code.decode()
    assert "0f41200000" in ptx or str(0x41200000) in ptx  # 10


def test_python_may_use_it_too():
    """The body that an object returns may call the function itself."""

    class Own(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x, table):
            f = autolink.device_function(lambda a, t: a * t[1], x, state=table)
            return lambda x, table: f(x, table) + 1

    own = Own()

    def kernel(x):
        x[0] = own(x[1], x)

    assert "call" not in build(kernel, "void(float32[::1])", output="ptx").code.decode()


def test_a_function_that_is_compiled_for_no_types_is_refused():
    def kernel(x):
        x[0] = twice(x[1], scaled)

    with pytest.raises(TypingError) as raised:
        build(kernel, "void(float32[::1])")
    assert "argument 2: C++ cannot call a Python function that is compiled for no types yet" in str(raised.value)
    assert "what to do: let an object's __numba_cuda_call__ return a function that passes" in str(raised.value)


def test_a_call_with_other_arguments_is_refused_by_cxx():
    of_three = lib.of_three

    class Own(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x, f):
            f = autolink.device_function(f, x, x)
            return lambda x, _: of_three(x, f)

    own = Own()

    def kernel(x):
        x[0] = own(x[1], scaled)

    with pytest.raises(TypingError, match=r"of_three\(float32, scaled\)"):
        build(kernel, "void(float32[::1])")


@pytest.mark.counted
def test_an_equal_function_elsewhere_in_memory_gives_the_same_link():
    """Nothing in the kernel's code depends on where a Python function is, so another process finds the link."""

    def make():
        @cuda.jit(device=True)
        def tripled(a, b):
            return a * 3 - b

        def kernel(x):
            x[0] = apply(x[1], tripled)

        return kernel

    first, second = make(), make()
    build(first, "void(float32[::1])")
    assert re.search("link for sm_90: from (memory|disk)", str(build(second, "void(float32[::1])").report))


@pytest.mark.gpu
def test_results():
    @cuda.jit
    def kernel(x, y, table):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = apply(x[i], scaled) + apply_with_state(x[i], looked_up, table)

    x, table = np.arange(40, dtype=np.int32), np.arange(400.0).reshape(40, 10)
    y = np.zeros_like(x)
    kernel[1, 64](x, y, cuda.to_device(table)[:, ::2])
    np.testing.assert_array_equal(y, (x * 4) * 3 + x + table[x, 0].astype(np.int32) + 5)
