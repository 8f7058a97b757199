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


callers = autolink.cxx("""
    struct Point { float a; int n; };
    enum class Kind { One };
    template <class T, class F> __device__ T fold(const T* x, int n, F f) {
        T r = x[0];
        for (int i = 1; i < n; ++i) r = f(r, x[i]);
        return r;
    }
    template <class F> __device__ double newton(F f, double x) {
        for (int i = 0; i < 20; ++i) { auto y = f(x); auto d = (f(x + 1e-6) - y) / 1e-6; x -= y / d; }
        return x;
    }
    template <class F> __device__ auto of_its_own_result(F f, long x) { return f(f(x)); }
    template <class F> __device__ auto of_its_type(F f, float x) -> decltype(f(x)) { return f(x); }
    template <class F> __device__ float of_structs(F f, Point p) { return f(p, 'c'); }
    template <class F> __device__ float to_a_pointer(F f) { float y = 0; f(&y, 3); return y; }
    template <class F> __device__ float of_a_constant(F f) { const float y[] = {2, 5}; return f(y); }
    template <class F, class G> __device__ auto composed(F f, G g, float x) { return g(f(x)); }
    template <class F> __device__ int never(F, int x) { return x; }
    template <class F> __device__ float of_an_enumerator(F f) { return f(Kind::One); }
    __device__ int by_pointer(int (*f)(int)) { return f(1); }
    template <class F> __device__ float apply(F f, float x) { return f(x); }
    template <class F> __device__ auto over(F f) { return apply(f, 1) + f(2.5); }
""")


@cuda.jit(device=True)
def added(a, b):
    return a + b


def set_first(p, value):
    p[0] = value


SHIFT = 2


class TestFunctionsWhoseTypesCxxDecides:
    """A kernel passes Python functions to templates, which call them with types of their choice."""

    def test_results(self):
        point = callers.record("Point", cc="9.0")
        limit, set_first_of = 9.0, cuda.jit(device=True)(set_first)

        def kernel(x, r):
            offset = 2.5
            p = cuda.local.array(1, point)
            p[0].a, p[0].n = 1.5, 3
            r[0] = callers.fold(x, x.size, added)
            r[1] = callers.fold(x, 3, lambda a, b: max(a, b))
            r[2] = callers.newton(lambda v: v * v - limit, 1.0)
            r[3] = callers.of_its_own_result(lambda v: v * limit + SHIFT, 3)
            r[4] = callers.of_its_type(lambda v: v / 2, 3)
            r[5] = callers.of_structs(lambda p, c: p.a * c + p.n, p[0])
            r[6] = callers.to_a_pointer(set_first_of)
            r[7] = callers.composed(lambda v: v + 1j, lambda z: z.imag * offset + z.real, 3.0)
            r[8] = callers.never(lambda v: v.no_such_attribute, 7)
            r[9] = callers.over(lambda v: v * v)
            r[10] = callers.of_a_constant(lambda p: p[0] * p[1])

        linked = build(kernel, "void(float32[::1], float64[::1])")
        x, r = np.arange(5, dtype=np.float32), np.zeros(11)
        linked.emulate[1, 1](x, r)
        expected = [10, 2, 3, (3 * 9.0 + 2) * 9 + 2, 1.5, 1.5 * ord("c") + 3, 3, 5.5, 7, 7.25, 10]
        np.testing.assert_allclose(r, expected, rtol=1e-6)
        code = build(kernel, "void(float32[::1], float64[::1])", output="ptx").code.decode()
        assert "call" not in code

    @pytest.mark.counted
    def test_what_cxx_calls_it_with_is_remembered(self, monkeypatch):
        """Only the first build asks NVRTC, though functions of two kernels are two objects."""
        from numba.cuda.cudadrv.external_code.compile import nvrtc_processes

        def make():
            def kernel(x):
                x[0] = callers.apply(lambda v: v * 3 - 1, x[0])

            return kernel

        runs, run = [], nvrtc_processes.run_in_child
        monkeypatch.setattr(nvrtc_processes, "run_in_child", lambda *args: runs.append(args) or run(*args))
        build(make(), "void(float32[::1])")
        assert len(runs) == 2
        build(make(), "void(float32[::1])")
        assert len(runs) == 2

    @pytest.mark.parametrize(
        ("name", "function", "expected"),
        [
            ("apply", lambda v: v.real.no_such, "lambda>(float32): Unknown attribute 'no_such' of type float32\n"),
            ("apply", lambda v: np.lnalg(v), "has no attribute 'lnalg'; did you mean linalg?"),
            ("apply", lambda v: np.lnalg(v), f"\n  in the function: {__file__}:"),
            ("apply", lambda v: v.real.no_such, f"\n  in the function: {__file__}:"),
            ("apply", lambda v: (v, v), "the Python function lambda returns a tuple, and C++ takes float there"),
            ("apply", lambda v, w: v, "expected: those of the function's parameters, (v, w)"),
            ("of_an_enumerator", lambda v: v, "an argument that Python does not know: Kind"),
            ("by_pointer", lambda v: v, "a Python function cannot be passed as int (*)(int), but as a template"),
        ],
    )  # fmt: skip
    def test_what_is_refused(self, name, function, expected):
        called, passed = callers[name], cuda.jit(device=True)(function)

        def kernel(x):
            x[0] = called(passed, 1) if name == "apply" else called(passed)

        with pytest.raises(TypingError) as raised:
            build(kernel, "void(float32[::1])")
        assert expected in str(raised.value)


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
