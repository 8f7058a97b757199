# SPDX-License-Identifier: BSD-2-Clause
"""What a device function names may change after it was compiled, and before the next kernel that calls it."""

from __future__ import annotations

import logging

import pytest
from numba import cuda
from numba.cuda import autolink
from numba.cuda.autolink.frontends.numba_cuda import activation as seams
from numba.cuda.autolink.testing import compile_cached
from numba.cuda.core import config

COUNT, PAIR = 1, (1, 2)


class Twice(autolink.DeviceCallable):
    def __init__(self):
        self.size = 4

    def __numba_cuda_call__(self, x):
        return autolink.Extern("twice", returns=x)

    def __numba_cuda_link__(self, x):
        return autolink.CUDASource('extern "C" __device__ long long twice(long long x) { return 2 * x; }')

    @autolink.device_method
    def again(self, x):
        return autolink.Extern("twice", returns=x)


twice = Twice()
MORE = twice


def from_global(x):
    return x + COUNT


def from_tuple(x):
    return x + PAIR[1]


def from_attribute(x):
    return x + twice.size


def from_alias(x):
    return x + MORE.size


def from_method(x):
    return twice.again(x) + 1


def changed_global():
    global COUNT
    COUNT += 1


def changed_tuple():
    global PAIR
    PAIR = PAIR[0], PAIR[1] + 1


def changed_attribute():
    twice.size += 1


def changed_alias():
    global MORE
    MORE = Twice()


@pytest.fixture
def as_launched(monkeypatch, tmp_path):
    """Kernels of one process share what their device functions were compiled to, as they do where they are launched."""
    monkeypatch.setattr(seams, "isolate", lambda dispatcher: None)
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path))


def two_kernels(function, between):
    """Compile two kernels that call *function*, with *between* called in between, and return the log of the second."""
    shared = cuda.jit(device=True)(function)

    def first(x):
        x[0] = twice(shared(x[0]))

    def second(x):
        x[1] = twice(shared(x[1]))

    compile_cached(cuda.jit(cache=True)(first), "void(int64[::1])", (9, 0))
    between()
    return compile_cached(cuda.jit(cache=True)(second), "void(int64[::1])", (9, 0))


CASES = {
    "global": (from_global, changed_global),
    "tuple": (from_tuple, changed_tuple),
    "attribute": (from_attribute, changed_attribute),
    "alias": (from_alias, changed_alias),
}


@pytest.mark.parametrize("case", CASES)
def test_a_kernel_with_old_code_is_not_cached(case, as_launched, caplog):
    caplog.set_level(logging.INFO, "numba_cuda_autolink.cache")
    two_kernels(*CASES[case])
    function = CASES[case][0].__name__
    assert f"which {function} uses, has changed since that was compiled" in caplog.text
    assert caplog.text.count("is not cached") == 1


@pytest.mark.parametrize("function", [from_global, from_tuple, from_attribute, from_alias, from_method])
def test_a_kernel_whose_device_function_is_as_it_was_is_cached(function, as_launched, caplog):
    caplog.set_level(logging.INFO, "numba_cuda_autolink.cache")
    two_kernels(function, lambda: None)
    assert "is not cached" not in caplog.text
