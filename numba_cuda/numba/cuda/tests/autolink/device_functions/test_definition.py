# SPDX-License-Identifier: BSD-2-Clause
"""Python functions that C++ calls."""

from __future__ import annotations

import re
import runpy
import sys

import numpy as np
import pytest
from autolink_support import build, calling, read_diagnosis
from kernel_cache_support import run_warm
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError

FLOATS = "void(float32[::1])"


class Apply(autolink.DeviceCallable):
    """``apply(function, a, b)``: C++ calls a Python function through its functor; with *state*, through state."""

    def __init__(self, make=autolink.device_function):
        self.made = []
        self._make = make

    def _function(self, function, args, state):
        found = self._make(function, *args, state=() if state == types.none else state)
        self.made.append(found)
        return found

    def __numba_cuda_call__(self, function, a, b, state=None):
        found = self._function(function, (a, b), state)
        args = {"a": None, "b": None}
        if state != types.none:
            args["state"] = autolink.state
        return autolink.Extern(f"apply_{found.symbol}", returns=found.returns, args=args)

    def __numba_cuda_link__(self, function, a, b, state=None):
        found = self._function(function, (a, b), state)
        yield found
        A, B, R = map(autolink.cxx_type, (a, b, found.returns))
        more, given = ("", "") if state == types.none else (", const void* state", "state")
        yield autolink.CUDASource(f"""
            {found.declaration}
            {found.declaration}
            template <class Functor, class A, class B> __device__ auto call(Functor functor, A a, B b) {{
                return functor(a, b);
            }}
            extern "C" __device__ {R} apply_{found.symbol}({A} a, {B} b{more}) {{
                return call({found.functor}{{{given}}}, a, b);
            }}""")


class Halve(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"halve_{x}", returns=x)

    def __numba_cuda_link__(self, x):
        T = autolink.cxx_type(x)
        return autolink.CUDASource(f'extern "C" __device__ {T} halve_{x}({T} x) {{ return x / 2; }}', name="halve.cu")


halve = Halve()


def calls_in(kernel, signature=FLOATS, **options):
    """Return the calls in the PTX of a kernel after link-time optimisation."""
    ptx = build(kernel, signature, output="ptx", **options).code.decode()
    return re.findall(r"\bcall\b.*", ptx)


def larger(a, b):
    return max(a, b)


def test_a_python_function_is_inlined():
    apply = Apply()

    @cuda.jit(device=True)
    def scaled(a, b):
        return a * 3 + b

    def kernel(x):
        x[0] = apply(scaled, x[1], x[2])

    ptx = build(kernel, FLOATS, output="ptx").code.decode()
    assert "call" not in ptx
    assert ".local" not in ptx
    assert "0f40400000" in ptx or "0d4008000000000000" in ptx  # the factor


def test_it_is_compiled_once_for_both_hooks():
    apply = Apply()
    function = cuda.jit(device=True)(larger)

    def kernel(x):
        x[0] = apply(function, x[1], x[2])

    build(kernel, FLOATS)
    assert len(apply.made) > 1
    assert len({id(found) for found in apply.made}) == 1


@pytest.mark.parametrize(
    "function",
    [
        larger,
        cuda.jit(device=True)(larger),
        lambda a, b: max(a, b),
        (lambda c: lambda a, b: max(a, b + c))(np.float32(1)),
    ],
    ids=["function", "device function", "lambda", "closure"],
)
def test_what_can_be_compiled(function):
    class Own(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            found = autolink.device_function(function, x, x)
            assert found.returns == x
            return autolink.Extern("own", returns=x)

        def __numba_cuda_link__(self, x):
            found = autolink.device_function(function, "float32", np.float32)
            return found, autolink.CUDASource(
                f'{found.declaration} extern "C" __device__ float own(float x) {{ return {found.symbol}(x, x); }}'
            )

    own = Own()

    assert calls_in(calling(own)) == []


@pytest.mark.parametrize("lto", [True, False])
def test_objects_that_it_calls_are_asked_and_linked_once(lto):
    apply = Apply()

    @cuda.jit(device=True)
    def deeper(a):
        return halve(a)

    @cuda.jit(device=True)
    def function(a, b):
        return deeper(a) + halve(b)

    def kernel(x):
        x[0] = apply(function, x[1], x[2]) + halve(x[3])

    built = build(cuda.jit(kernel, lto=lto), FLOATS)
    assert [each.input.name for each in built.inputs].count("halve.cu") == 1
    calls = built.report.calls if hasattr(built.report, "calls") else built.report.builds[0].calls
    chains = {
        tuple(frame.function.split(".")[-1] for frame in call.chain) for call in calls if call.object == "Halve()"
    }
    assert chains == {("kernel",), ("kernel", "function"), ("kernel", "function", "deeper")}


def test_a_missing_function_is_named_with_the_call_in_python():
    class Missing(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("nowhere_defined", returns=x)

    apply, missing = Apply(), Missing()

    @cuda.jit(device=True)
    def function(a, b):
        return missing(a) + b

    def kernel(x):
        x[0] = apply(function, x[1], x[2])

    with pytest.raises(autolink.LinkError, match="'nowhere_defined' is called but nothing") as failure:
        build(kernel, FLOATS)
    assert "the call with (float32)" in str(failure.value)
    assert "in test_a_missing_function_is_named_with_the_call_in_python.<locals>.function" in str(failure.value)


def test_an_array_as_state_has_its_shape_and_its_strides():
    apply = Apply()

    @cuda.jit(device=True)
    def function(a, b, table):
        return a * table[1, 2] + b * table.shape[0] + table.strides[1]

    def kernel(x, table):
        x[0] = apply(function, x[1], x[2], table)

    signature = "void(float32[::1], float32[:, :])"
    assert calls_in(kernel, signature) == []
    ptx = build(kernel, signature, output="ptx").code.decode()
    assert ".local" not in ptx


def test_records_and_several_values_may_be_state():
    record = types.Record.make_c_struct([("scale", types.float32), ("bias", types.int32)])

    class Own(autolink.DeviceCallable):
        def function(self):
            return autolink.device_function(
                lambda a, p, t: a * p.scale + p["bias"] + t[0], "float32", state=(record, types.float32[::1])
            )

        def __numba_cuda_call__(self, x, p, t):
            args = {"x": None, "p": autolink.state, "t": autolink.state}
            return autolink.Extern("own", returns=x, args=args)

        def __numba_cuda_link__(self, x, p, t):
            f = self.function()
            yield f
            yield autolink.CUDASource(f"""{f.declaration}
                extern "C" __device__ float own(float x, const void* p, const void* t) {{
                    const {f.functor} functor(p, t);
                    return functor(x);
                }}""")

    own = Own()

    def kernel(x, records, t):
        x[0] = own(x[1], records[0], t)

    assert calls_in(kernel, (types.float32[::1], types.Array(record, 1, "C"), types.float32[::1])) == []


@pytest.mark.parametrize("options", [{}, {"lto": False}, {"debug": True, "opt": False}, {"lineinfo": True}])
def test_an_exception_ends_the_kernel_as_an_assertion_in_cxx(options):
    apply = Apply()

    names = {}
    exec("def checked(a):\n    assert a > 0\n    return a", names)  # pytest rewrites assertions of this file
    checked = cuda.jit(device=True)(names["checked"])

    @cuda.jit(device=True)
    def function(a, b):
        if b == 0:
            raise ZeroDivisionError("b")
        return checked(a) / b

    def kernel(x):
        x[0] = apply(function, x[1], x[2])

    built = build(cuda.jit(kernel, **options), FLOATS)
    assert b"__assertfail" in built.code
    assert b"a Python exception, which cannot pass through C++" in built.code


def test_a_function_that_cannot_raise_asserts_nothing():
    apply = Apply()
    function = cuda.jit(device=True)(larger)

    def kernel(x):
        x[0] = apply(function, x[1], x[2])

    assert b"__assertfail" not in build(kernel, FLOATS).code


SYMBOLS = """
import sys
from numba import cuda
from numba.cuda import autolink, types
table = tuple(range(4))
def make(c):
    def function(a, b):
        return inner(a, c) + b * table[1]
    return function
@cuda.jit(device=True)
def inner(a, c):
    return a * c
@cuda.jit(device=True)
def other(a):
    return -a
class Show(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        for c in map(int, sys.argv[2:]):
            print(c, autolink.device_function(make(c), x, x).symbol)
        return autolink.Extern("show")
show = Show()
def kernel(x):
    if sys_first:
        x[0] = other(x[0]) + inner(x[1], 3)
    show(x[1])
sys_first = bool(int(sys.argv[1]))
autolink.build(kernel, "void(float32[::1])", cc=(9, 0), output="ltoir")
"""


def test_symbols_are_the_same_in_every_process_and_order_of_compilation(tmp_path, capsys, monkeypatch, servers):
    script = tmp_path / "symbols.py"
    script.write_text(SYMBOLS)
    monkeypatch.setattr(sys, "argv", ["symbols.py", "0", "2", "3"])
    runpy.run_path(str(script))
    here = capsys.readouterr().out
    done = run_warm(servers, script, "1", "3", "2")
    assert done.returncode == 0, done.stderr
    assert sorted(set(here.splitlines())) == sorted(set(done.stdout.splitlines()))
    assert len({line.split()[1] for line in here.splitlines()}) == 2


def test_the_order_of_compilation_changes_nothing_in_the_cubin():
    def times_and_half(c):
        return lambda a, b: a * c + halve(b)

    apply = Apply()
    functions = [cuda.jit(device=True)(times_and_half(c)) for c in (2, 3)]

    def make(function):
        def kernel(x):
            x[0] = apply(function, x[1], x[2])

        return kernel

    first = [build(make(function), FLOATS).code for function in functions]
    functions = [cuda.jit(device=True)(function.py_func) for function in functions]
    again = [build(make(function), FLOATS).code for function in reversed(functions)]
    assert first == again[::-1]
    assert first[0] != first[1]


def with_try(a):
    try:
        return a
    except Exception:
        return a + 1


def with_import(a):
    import math

    return math.sin(a)


@pytest.mark.parametrize(
    ("function", "argtypes", "state", "message"),
    [
        (max, ("float32",), (), r"device_function\(\) takes a Python function, got builtin_function_or_method"),
        (cuda.jit(lambda a: None), ("float32",), (), r"takes a device function, got the kernel '<lambda>'"),
        (
            lambda a: a,
            ("float32[::1]",),
            (),
            r"device_function\(\) cannot compile <lambda>\(.*\): argument 1 is array\(float32, 1d, C\), which",
        ),
        (
            lambda a, b: a,
            ("float32",),
            (),
            r"device_function\(\) cannot compile <lambda>\(float32\): it has 2 parameters, not 1",
        ),
        (lambda a, b=1: a, ("float32",), (), r"cannot compile <lambda>\(float32\): it has 2 parameters, not 1"),
        (lambda *a: a[0], ("float32",), (), r"cannot compile <lambda>\(float32\): it has \*, \*\* or keywords"),
        (lambda a: (yield a), ("float32",), (), r"cannot compile <lambda>\(float32\): it is a generator"),
        (with_try, ("float32",), (), r"device_function\(\) cannot compile with_try\(float32\)"),
        (with_import, ("float32",), (), r"device_function\(\) cannot compile with_import\(float32\)"),
        (lambda a: a.undefined, ("float32",), (), r"device_function\(\) cannot compile <lambda>\(float32\)"),
        (lambda a, s: s, ("float32",), "float32[::1]", r"the result is array\(float32, 1d, C\), which C\+\+ cannot"),
        (lambda a: None if a else a, ("float32",), (), r"the result is (OptionalType|\?float|Option)"),
        (lambda a: a, ("float31",), (), r"'float31' is not the name of a Numba type"),
    ],
)
def test_what_is_refused(function, argtypes, state, message):
    class Own(autolink.DeviceCallable):
        def __numba_cuda_call__(self):
            autolink.device_function(function, *argtypes, state=state)

    own = Own()

    def kernel():
        own()

    with pytest.raises(TypingError) as failure:
        autolink.build(kernel, "void()", cc=(9, 0))
    assert re.search(message, read_diagnosis(failure.value))
    assert __file__ in str(failure.value)


def test_a_lambda_of_the_kernel_and_a_function_in_it():
    apply = Apply()

    def kernel(x):
        def product(a, b):
            return a * b

        x[0] = apply(lambda a, b: a + 3 * b, x[1], x[2])
        x[0] += apply(lambda a, b: a - b, x[1], x[2])
        x[0] += apply(product, x[1], x[2])

    text = build(kernel, FLOATS, output="ptx").code.decode()
    assert "mul" in text or "fma" in text
    assert "call" not in text
    assert len({each.symbol for each in apply.made}) == 3


def test_it_needs_an_object_that_is_asked():
    with pytest.raises(RuntimeError, match=r"device_function\(\) compiles for a kernel, and none is"):
        autolink.device_function(larger, "float32", "float32")


def test_a_function_that_leads_to_itself_is_refused():
    class Own(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            autolink.device_function(function, x)
            return autolink.Extern("own", returns=x)

    own = Own()

    @cuda.jit(device=True)
    def function(x):
        return own(x)

    with pytest.raises(TypingError) as caught:
        build(calling(own), FLOATS)
    assert "is called with the same types while it says what that call means" in read_diagnosis(caught.value)


def test_a_function_that_another_object_asks_for_while_it_is_compiled_is_refused():
    class Own(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            autolink.device_function(function, types.float32)
            return autolink.Extern("own", returns=x)

    own, other = Own(), Own()

    @cuda.jit(device=True)
    def function(x):
        return other(x)

    kernel = calling(own)
    with pytest.raises(TypingError, match="is asked for 'function' while it compiles 'function'"):
        build(kernel, FLOATS)


class Applied(autolink.DeviceCallable):
    """``applied(x)``: a Python function of x, called by C++."""

    def __init__(self, function):
        self.function = function

    def __numba_cuda_call__(self, x):
        function = autolink.device_function(self.function, x)
        return autolink.Extern(f"applied_{function.symbol}", returns=x)

    def __numba_cuda_link__(self, x):
        function = autolink.device_function(self.function, x)
        T = autolink.cxx_type(x)
        return function, autolink.CUDASource(f"""
            {function.declaration}
            extern "C" __device__ {T} applied_{function.symbol}({T} x) {{ return {function.functor}()(x); }}""")


def _ptx_of_applied(function):
    applied = Applied(function)

    return autolink.build(calling(applied), "void(int32[::1])", cc=(9, 0), output="ptx").code.decode()


def test_a_function_whose_variables_have_changed_is_compiled_again():
    step = 1234567

    def add(x):
        return x + step

    before = _ptx_of_applied(add)
    step = 7654321
    after = _ptx_of_applied(add)
    assert "1234567" in before
    assert "7654321" in after and "1234567" not in after


def test_a_function_may_return_a_constant():
    assert "1234567" in _ptx_of_applied(lambda x: 1234567)
