# SPDX-License-Identifier: BSD-2-Clause
"""Hooks compile Python functions with ``cuda.compile_all``: the kernel and other objects may use the same functions."""

from __future__ import annotations

import re

import numpy as np
import pytest
from autolink_support import CC, build
from numba import cuda
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError
from numba.cuda.cudadrv.linkable_code import LinkableCode

FLOATS = "void(float32[::1])"


class Compiled(autolink.DeviceCallable):
    """``obj(x)``: C++ calls a Python function that the hook has compiled under the name *symbol*."""

    def __init__(self, name, function, symbol, output="ltoir"):
        self.name, self.function, self.symbol, self.output = name, function, symbol, output

    def __numba_cuda_call__(self, x):
        return autolink.Extern(self.name, returns=x)

    def __numba_cuda_link__(self, x):
        names = {"abi": "c", "abi_info": {"abi_name": self.symbol}}
        codes, _ = cuda.compile_all(self.function.py_func, (x,), device=True, output=self.output, cc=CC, **names)
        for code in codes:
            if isinstance(code, LinkableCode):
                yield code
            elif self.output == "ltoir":
                yield cuda.LTOIR(code)
            else:
                yield cuda.PTXSource(code.encode())
        yield autolink.CUDASource(f"""
            extern "C" __device__ float {self.symbol}(float);
            extern "C" __device__ float {self.name}(float x) {{ return {self.symbol}(x); }}""")


class Halve(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("halve_in_hooks", returns=x)

    def __numba_cuda_link__(self, x):
        code = 'extern "C" __device__ float halve_in_hooks(float x) { return x * FACTOR; }'
        return autolink.CUDASource(code, defines={"FACTOR": "0.5f"})


halve = Halve()


@cuda.jit(device=True)
def inner(x):
    return x * np.float32(3)


@cuda.jit(device=True)
def plain(x):
    return inner(x) + np.float32(1)


@cuda.jit(device=True)
def with_object(x):
    return halve(x) + inner(x)


def factors_in(kernel):
    """Return the constants by which floats are multiplied in the PTX of a kernel."""
    ptx = build(kernel, FLOATS, output="ptx").code.decode()
    found = re.findall(r"(?:mul|fma)\S*f32\b.*0f([0-9A-F]{8})", ptx)
    return sorted(float(np.frombuffer(bytes.fromhex(each), ">f4")[0]) for each in found)


@pytest.mark.parametrize("function", [plain, with_object], ids=["plain", "with an object"])
def test_two_objects_and_the_kernel_use_one_function(function):
    """Equal definitions are one, although each is compiled by itself."""
    first, second = Compiled("first", function, "shared"), Compiled("second", function, "shared")

    def kernel(x):
        x[0] = first(x[0]) + second(x[1]) + function(x[2])

    linked = build(kernel, FLOATS)
    assert [each.input.name for each in linked.inputs].count("Compiled.ltoir") == 1


def test_functions_of_one_name_keep_their_own_code():
    """Closures that one function makes have one name in Python."""

    def make(c):
        @cuda.jit(device=True)
        def closure(x):
            return halve(x) * c

        return closure

    def outer(function):
        @cuda.jit(device=True)
        def call(x):
            return function(x)

        return call

    functions = [outer(make(np.float32(c))) for c in (11, 22, 33)]
    first, second = Compiled("first_c", functions[0], "closure_1"), Compiled("second_c", functions[1], "closure_2")
    third = functions[2]

    def kernel(x):
        x[0] = first(x[0])
        x[1] = second(x[1])
        x[2] = third(x[2])

    factors = [each for each in factors_in(kernel) if each > 1]
    assert factors in ([11, 22, 33], [5.5, 11, 16.5])  # the compiler may halve them


def test_sources_of_called_objects_are_compiled_with_their_own_options():
    codes, _ = cuda.compile_all(lambda x: halve(x), "float32(float32)", cc=CC, output="ltoir")
    again, _ = cuda.compile_all(lambda x: halve(x), "float32(float32)", cc=CC, output="ltoir")
    assert [type(each) for each in codes[1:]] == [cuda.LTOIR]
    assert codes[1].data == again[1].data


def test_other_code_for_one_symbol_is_an_error_that_names_device_function():
    """Machine code of a function that the kernel's calls bring as source is not recognised as the same."""
    first = Compiled("first", with_object, "shared", output="ptx")

    def kernel(x):
        x[0] = first(x[0]) + with_object(x[1])

    with pytest.raises(LinkError, match="'halve_in_hooks' is defined twice") as raised:
        build(kernel, FLOATS)
    assert "for a Python function, autolink.device_function(f, *argtypes)" in str(raised.value)
