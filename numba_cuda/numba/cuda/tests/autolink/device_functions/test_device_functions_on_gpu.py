# SPDX-License-Identifier: BSD-2-Clause
"""Python functions that C++ calls, where kernels launch: their results are those of Python."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from numba import cuda
from numba.cuda import autolink, types

pytestmark = pytest.mark.gpu


class Map(autolink.DeviceCallable):
    """``apply(x, function, state)``: C++ calls a Python function of a number and of state."""

    def _function(self, x, function, state):
        return autolink.device_function(function, x, state=state)

    def __numba_cuda_call__(self, x, function, state=None):
        found = self._function(x, function, state)
        return autolink.Extern(f"map_{found.symbol}", returns=found.returns, args={"x": None, "state": autolink.state})

    def __numba_cuda_link__(self, x, function, state=None):
        found = self._function(x, function, state)
        T, R = autolink.cxx_type(x), autolink.cxx_type(found.returns)
        yield found
        yield autolink.CUDASource(f"""
            {found.declaration}
            template <class Functor> __device__ {R} called(Functor functor, {T} x) {{ return functor(x); }}
            extern "C" __device__ {R} map_{found.symbol}({T} x, const void* state) {{
                return called({found.functor}(state), x);
            }}""")


apply = Map()


class Halve(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"halve_{x}", returns=x)

    def __numba_cuda_link__(self, x):
        T = autolink.cxx_type(x)
        return autolink.CUDASource(f'extern "C" __device__ {T} halve_{x}({T} x) {{ return x / 2; }}')


halve = Halve()


def results(function, x, *state, lto=True, dtype=None):
    """Return what a kernel gets for each element of *x*."""
    function = cuda.jit(device=True)(function)

    if state:

        @cuda.jit(lto=lto)
        def kernel(out, x, state):
            i = cuda.grid(1)
            if i < x.size:
                out[i] = apply(x[i], function, state)

    else:

        @cuda.jit(lto=lto)
        def kernel(out, x):
            i = cuda.grid(1)
            if i < x.size:
                out[i] = apply(x[i], function)

    out = cuda.device_array(x.shape, dtype or x.dtype)
    kernel[1, 64](out, cuda.to_device(x), *state)
    return out.copy_to_host()


@pytest.mark.parametrize("lto", [True, False])
def test_numbers(lto):
    names = ("int8", "uint16", "int32", "int64", "float16", "float32", "complex64", "complex128", "bool_")
    scope = {"apply": apply, "twice": cuda.jit(device=True)(lambda x: x + x)}
    scope["opposite"] = cuda.jit(device=True)(lambda x: not x)
    lines = (f"    {each}[0] = apply({each}[1], {'opposite' if each == 'bool_' else 'twice'})" for each in names)
    exec("\n".join([f"def kernel({', '.join(names)}):", *lines]), scope)
    arrays = [np.array([0, 3 + 4j if name.startswith("c") else 3]).astype(name) for name in names[:-1]]
    cuda.jit(scope["kernel"], lto=lto)[1, 1](*arrays, flags := np.zeros(2, bool))
    assert [found for found, _ in arrays] == [2 * given for _, given in arrays] and flags[0]


@pytest.mark.parametrize("lto", [True, False])
def test_an_array_as_state(lto):
    x, table = np.arange(40, dtype=np.int32), np.arange(80, dtype=np.int32).reshape(2, 40) ** 2
    transposed = cuda.to_device(table).T[::2]
    expected = table.T[::2][x % 20, 1] + 20 * 2 + transposed.strides[0]

    def function(x, table):
        return table[x % table.shape[0], 1] + table.shape[0] * table.shape[1] + table.strides[0]

    assert np.array_equal(results(function, x, transposed, lto=lto), expected)


@pytest.mark.parametrize("lto", [True, False])
def test_tuples_numbers_and_constants(lto):
    x, table, c = np.arange(40, dtype=np.float64), np.array([3.0, 4.0]), 7
    constants = np.array([1.0, 2.0])

    def function(x, state):
        return x * state[0] + state[1][1] + c + constants[1]

    state = 2.5, cuda.to_device(table)
    assert np.array_equal(results(function, x, state, lto=lto), x * 2.5 + 4 + 7 + 2)


@pytest.mark.parametrize("lto", [True, False])
def test_lambdas_that_are_written_in_the_kernel(lto):
    @cuda.jit(lto=lto)
    def kernel(x, table):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = apply(x[i], lambda a: 2 * a) + apply(x[i], lambda a, t: t[a], table)

    x, table = np.arange(4, dtype=np.int64), np.array([5, 6, 7, 8], np.int64)
    kernel[1, 32](x, table)
    np.testing.assert_array_equal(x, 2 * np.arange(4) + table)


def test_a_record_as_state():
    dtype = np.dtype([("scale", np.float32), ("bias", np.int32)], align=True)
    records, x = np.array([(2, 3), (4, 5)], dtype), np.arange(40, dtype=np.float32)
    function = cuda.jit(device=True)(lambda x, record: x * record.scale + record["bias"])

    @cuda.jit
    def kernel(out, x, records):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = apply(x[i], function, records[1])

    out = cuda.device_array(x.shape, np.float32)
    kernel[1, 64](out, cuda.to_device(x), cuda.to_device(records))
    assert np.array_equal(out.copy_to_host(), x * 4 + 5)


@pytest.mark.parametrize("lto", [True, False])
def test_a_function_that_calls_an_object(lto):
    x = np.arange(40, dtype=np.float32)
    assert np.array_equal(results(lambda x: halve(x) + 1, x, lto=lto), x / 2 + 1)


def test_structs_by_value():
    class Best(autolink.DeviceCallable):
        def function(self):
            pair = types.Tuple((types.float32, types.int64))
            record = types.Record.make_c_struct([("value", types.float32), ("index", types.int64)])
            return autolink.device_function(lambda a, b: a if a[0] >= b.value else (b.value, b.index), pair, record)

        def __numba_cuda_call__(self, a, b):
            return autolink.Extern("best", returns=types.int64, args={"a": types.float32, "b": types.float32})

        def __numba_cuda_link__(self, a, b):
            found = self.function()
            return found, autolink.CUDASource(f"""{found.declaration}
                struct Own {{ float value; long long index; }};
                extern "C" __device__ long long best(float a, float b) {{
                    Own own = {found.functor}()(Own{{a, 10}}, Own{{b, 20}});
                    return own.index;
                }}""")

    best = Best()

    @cuda.jit
    def kernel(out):
        out[0], out[1] = best(1, 2), best(2, 1)

    out = cuda.to_device(np.zeros(2, np.int64))
    kernel[1, 1](out)
    assert out.copy_to_host().tolist() == [20, 10]


RAISING = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from test_device_functions_on_gpu import apply
from numba import cuda

def checked(x):
    if x < 0:
        raise ValueError("negative")
    return x

function = cuda.jit(device=True)(checked)

@cuda.jit(lto=sys.argv[2] == "True")
def kernel(x):
    x[0] = apply(x[0], function)

x = cuda.to_device(np.array([5], np.int32))
kernel[1, 1](x)
print(x.copy_to_host()[0])
x = cuda.to_device(np.array([-5], np.int32))
kernel[1, 1](x)
try:
    print(x.copy_to_host()[0])
except Exception as error:
    print(type(error).__name__, str(error))
"""


@pytest.mark.parametrize("lto", [True, False])
def test_an_exception_is_an_assertion_that_fails(lto, tmp_path):
    script = tmp_path / "raising.py"
    script.write_text(RAISING)
    command = [sys.executable, str(script), __file__.rpartition("/")[0], str(lto)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("5\n")
    assert "-5" not in done.stdout
    printed = done.stdout + done.stderr
    assert re.search(r"Assertion `a Python exception, which cannot pass through C\+\+` failed", printed)
    assert re.search(r"raising\.py:8\b(?s:.*)\bchecked\b", printed)
