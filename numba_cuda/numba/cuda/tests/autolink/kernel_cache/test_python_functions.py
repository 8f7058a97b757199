# SPDX-License-Identifier: BSD-2-Clause
"""Cached kernels with Python functions that objects compile for C++, or that calls stand for."""

from __future__ import annotations

import pytest
from kernel_cache_support import Program

APPLY = """
class Apply(autolink.DeviceCallable):
    def __init__(self, function, **others):
        self.function = function
        vars(self).update(others)
    def __numba_cuda_call__(self, x):
        found = autolink.device_function(self.function, x)
        return autolink.Extern("apply_" + found.symbol, returns=found.returns)
    def __numba_cuda_link__(self, x):
        found = autolink.device_function(self.function, x)
        T = autolink.cxx_type(found.returns)
        yield found
        head = f'{found.declaration} extern "C" __device__ {T} apply_{found.symbol}(int x)'
        yield autolink.CUDASource(f"{head} {{ return {found.functor}()(x); }}")
class Keyed(Apply):
    def __numba_cuda_link_key__(self, x):
        return 0
class Typed(autolink.DeviceCallable):
    "Code that depends on the type of a function's result alone."
    def __init__(self, function):
        self.function = function
    def __numba_cuda_call__(self, x):
        return autolink.Extern("typed", returns=types.int32)
    def __numba_cuda_link__(self, x):
        found = autolink.device_function(self.function, x)
        return autolink.CUDASource(code("typed", f"sizeof({autolink.cxx_type(found.returns)})"))
    def __numba_cuda_link_key__(self, x):
        return 0
def make(amount):
    def function(x):
        return x + amount
    return function
"""


@pytest.fixture
def program(tmp_path, servers):
    return Program(tmp_path, servers)


# What depends on N, a value of the environment: the text of the program stays the same.
SUBJECTS = {
    "a closure variable": "Apply(make(N))",
    "a closure variable, under a link key": "Keyed(make(N))",
    "a global": "Apply(lambda x: x + N)",
    "a global array": "Apply(lambda x: x + ARRAY[x])",
    "a device function that it calls": "Apply(lambda x: deeper(x))",
    "an object that it calls": "Apply(lambda x: inner(x))",
    "an object that it calls, under a link key": "Keyed(lambda x: inner(x))",
    "its type, on which code under a link key depends": "Typed(lambda x: TYPE(x))",
    "a Python function for which a call stands": "Stands(lambda x: x + N)",
    "the object of such a function": "Own(N)",
    "what such a function calls": "Stands(lambda x: inner(x))",
}
OF_N = """
N = int(os.environ.get("N", "1"))
ARRAY, TYPE = np.array([1, N]), (types.int32, types.int8)[N - 1]
@cuda.jit(device=True)
def deeper(x):
    return x + N
inner = Add(N)
class Stands(autolink.DeviceCallable):
    def __init__(self, function):
        self.function = function
    def __numba_cuda_call__(self, x):
        return self.function
class Own(autolink.DeviceCallable):
    def __init__(self, n):
        self.n = n
    def __numba_cuda_call__(self, x):
        return lambda x: inner(x) + self.n
"""


def test_a_change_is_seen(program):
    names = [f"kernel{number}" for number in range(len(SUBJECTS))]
    objects = "".join(f"add{number} = {text}\n" for number, text in enumerate(SUBJECTS.values()))
    kernels = (f"@cuda.jit(cache=True)\ndef {name}(x): x[0] = add{number}(x[1])" for number, name in enumerate(names))
    program.write(APPLY + OF_N + objects, "\n".join(["from parts import *", *kernels]))
    one, two = (f"os.environ['N'] = '{n}'" for n in "12")
    first, reordered = program.runs(*names, before=one), program.runs(*reversed(names), before=one)
    again, changed = reordered[::-1], program.runs(*names, before=two)
    assert {each.status for each in first} == {"built"}
    assert {each.status for each in again} == {"loaded"}, again[0].log
    for subject, before, loaded, after in zip(SUBJECTS, first, again, changed, strict=True):
        assert before.cubin == loaded.cubin != after.cubin, subject
        assert after.status in ("built", "linked again")


def test_a_function_that_changed_after_it_was_compiled_is_not_cached(program):
    """The kernel has the code of the function as it was, and a fresh process would take it for the new one."""
    parts = """
class Own(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return lambda x: inner(x) + amount
inner, add, amount = Add(5), Own(), 1
"""
    kernels = """
from numba import cuda
from parts import *
@cuda.jit(cache=True)
def first(x):
    x[0] = add(x[1])
@cuda.jit(cache=True)
def kernel(x):
    x[0] = add(x[1])
"""
    then_change = """
original = kernel_of
def kernel_of(*arguments):
    result = original(*arguments)
    sys.modules["parts"].amount = 2
    return result
"""
    program.write(parts, kernels).runs("first", "kernel", before=then_change)
    again = program.write(parts.replace("Own(), 1", "Own(), 2"), kernels).run()
    assert again.status == "built"
