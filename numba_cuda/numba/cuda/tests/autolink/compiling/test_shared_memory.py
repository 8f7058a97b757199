# SPDX-License-Identifier: BSD-2-Clause
"""Kernels with external code may have all dynamic shared memory of the device: they are allowed it once, when they are
loaded. All other kernels are loaded and launched by numba-cuda alone."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from autolink_support import Linked, calling
from numba import cuda
from numba.cuda import dispatcher, types
from numba.cuda.autolink.compilation.context import without_device
from numba.cuda.autolink.frontends.numba_cuda import code_library
from numba.cuda.codegen import CUDACodeLibrary

CC = (9, 0, "a")
KB = 1 << 10


def calls(symbol):
    function = Linked(symbol).function

    return calling(function)


def plain(x):
    x[0] = x[1]


class LoadedOn:
    """A kernel as the driver of device *number* has it, with 1000 bytes of static shared memory."""

    def __init__(self, number, handle):
        self.attrs, self.handle = SimpleNamespace(shared=1000), handle
        self.device = SimpleNamespace(id=number, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=227 * KB)


@pytest.fixture
def allowed(monkeypatch):
    """What the driver is asked to allow: attribute, bytes, kernel, device."""
    allowed = []

    def set_attribute(attribute, *what):
        allowed.append((attribute.name.removeprefix("CU_FUNC_ATTRIBUTE_"), *what))

    monkeypatch.setattr(code_library, "driver", SimpleNamespace(cuKernelSetAttribute=set_attribute))
    return allowed


@pytest.fixture
def load(monkeypatch):
    """Loads a kernel as if *loaded* was what numba-cuda has on the current device."""

    def load(library, loaded):
        monkeypatch.setattr(CUDACodeLibrary, "get_cufunc", lambda library: loaded)
        return library.get_cufunc()

    return load


def library_of(function):
    with without_device(CC):
        return dispatcher._Kernel(function, (types.int32[::1],))._codelibrary


def test_a_kernel_with_external_code_is_allowed_what_the_device_has_once_on_each(load, allowed):
    library, first, second = library_of(calls("with_shared_memory")), LoadedOn(0, 7), LoadedOn(1, 8)
    for loaded in first, second, first, second:
        assert load(library, loaded) is loaded
    name, size = "MAX_DYNAMIC_SHARED_SIZE_BYTES", 227 * KB - 1000
    assert allowed == [(name, size, 7, 0), (name, size, 8, 1)]


def test_another_kernel_is_not(load, allowed):
    load(library_of(plain), LoadedOn(0, 7))
    assert allowed == []


def test_a_refusal_of_the_driver_is_an_error_each_time(load, monkeypatch):
    def refuse(*_):
        raise RuntimeError("refused")

    monkeypatch.setattr(code_library, "driver", SimpleNamespace(cuKernelSetAttribute=refuse))
    library, loaded = library_of(calls("refused_shared_memory")), LoadedOn(0, 7)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="refused"):
            load(library, loaded)


@pytest.mark.gpu
def test_more_than_48_kb_on_the_gpu():
    function = Linked("plus_one_in_shared").function

    @cuda.jit
    def kernel(r):
        shared = cuda.shared.array(0, np.int32)
        for i in range(cuda.threadIdx.x, 15_000, cuda.blockDim.x):
            shared[i] = i
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            r[cuda.blockIdx.x] = function(shared[14_999])

    r = cuda.to_device(np.zeros(2, np.int32))
    kernel[2, 128, 0, 60_000](r)
    assert r.copy_to_host().tolist() == [15_000] * 2
    with pytest.raises(Exception, match="INVALID_VALUE"):
        kernel[2, 128, 0, 1 << 20](r)
