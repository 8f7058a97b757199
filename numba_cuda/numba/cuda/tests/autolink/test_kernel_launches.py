# SPDX-License-Identifier: BSD-2-Clause
"""``kernel[grid, block](*args)`` of numba-cuda's kernels: which are packed, and that all others are as ever."""

from __future__ import annotations

import ctypes
import gc
import struct
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from fake_driver import CUresult
from finished_kernels_support import driver_of
from numba import cuda
from numba.cuda import dispatcher, types
from numba.cuda.autolink import kernel_launches
from numba.cuda.autolink.compilation import without_device
from numba.cuda.cudadrv.devicearray import DeviceNDArray
from numba.cuda.cudadrv.driver import CudaAPIError

CC = (9, 0, "a")


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(kernel_launches, "_BEFORE_PACKED", 2)
    with driver_of() as made:
        made.CUfunction = lambda handle: (handle,)
        yield made


class Launches:
    """A kernel without a GPU, and the launches that numba-cuda itself makes of it."""

    def __init__(self, function, *argtypes, **options):
        with without_device(CC):
            self.kernel = dispatcher._Kernel(function, argtypes, **options)
            self.kernel._codelibrary.get_cubin(CC)
        library = self.kernel._codelibrary
        library.get_cubin = lambda cubin=library._cubin_cache[CC]: cubin
        handle = SimpleNamespace(handle=7)
        device = SimpleNamespace(id=0)
        self.function = SimpleNamespace(
            name=library._entry_name,
            kernel=handle,
            handle=7,
            device=device,
            attrs=SimpleNamespace(shared=100, maxthreads=1024),
        )
        library.get_cufunc = lambda: self.function
        self.original = []

    def __call__(self, *args, grid=(2, 1, 1), block=(32, 1, 1), stream=0, shared=0, times=1):
        from numba.cuda.autolink.frontends.numba_cuda import SEAMS

        launch = SEAMS["numba.cuda.dispatcher:_Kernel.launch"]
        for _ in range(times):
            how = grid, block, SimpleNamespace(handle=stream), shared
            launch(lambda kernel, *given: self.original.append(given), self.kernel, args, *how)


def device_array(array, pointer=0x5000):
    """An array as numba-cuda allocates it."""
    memory = SimpleNamespace(device_ctypes_pointer=ctypes.c_size_t(pointer))
    return DeviceNDArray(array.shape, array.strides, array.dtype, gpu_data=memory)


class Freed:
    @property
    def device_ctypes_pointer(self):
        raise ReferenceError


def scale(x, a, n):
    i = cuda.grid(1)
    if i < n:
        x[i] *= a


ARGTYPES = types.float32[::1], types.float64, types.int32


@pytest.fixture(scope="module")
def compiled():
    return Launches(scale, *ARGTYPES)


@pytest.fixture
def launches(compiled):
    vars(compiled.kernel).pop("_autolink_launches", None)
    compiled.original.clear()
    return compiled


@pytest.fixture
def asked(monkeypatch):
    asked = []

    def set_attribute(attribute, size, handle, device):
        if size > 200_000:
            raise CudaAPIError(1, "too much")
        asked.append((attribute.name.removeprefix("CU_FUNC_ATTRIBUTE_"), size, handle, device))

    monkeypatch.setattr(kernel_launches, "driver", SimpleNamespace(cuKernelSetAttribute=set_attribute))
    return asked


def test_a_kernel_that_is_launched_often_is_launched_packed(launches, fake):
    x = device_array(np.zeros(8, np.float32))
    launches(x, 2.0, 3, times=2)
    assert len(launches.original) == 2 and not fake.launches
    launches(x, 2.5, -1, grid=(4, 5, 6), block=(7, 8, 1), stream=9, shared=10)
    (launched,) = fake.launches
    assert len(launches.original) == 2
    assert struct.unpack("<7q d i", launched.packed) == (0, 0, 8, 4, 0x5000, 8, 4, 2.5, -1)
    config = launched.config
    assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (4, 5, 6)
    assert (config.blockDimX, config.blockDimY, config.sharedMemBytes, config.hStream) == (7, 8, 10, 9)
    launches(device_array(np.zeros(3, np.float32), 0x6000), np.float64(1), np.int32(2))
    assert struct.unpack("<7q d i", fake.launches[-1].packed) == (0, 0, 3, 4, 0x6000, 3, 4, 1.0, 2)


# What numba-cuda copies, waits for, wraps around or reports.
NOT_PLAIN = {
    "an array of the host": (np.zeros(8, np.float32), 2.0, 3),
    "an array of another library": (SimpleNamespace(__cuda_array_interface__={}), 2.0, 3),
    "a hint": (cuda.In(np.zeros(8, np.float32)), 2.0, 3),
    "an integer out of range": (None, 2.0, 1 << 40),
    "a freed array": (SimpleNamespace, 2.0, 3),
}


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_numba_cuda_launches_all_others(launches, fake, name):
    x = device_array(np.zeros(8, np.float32))
    launches(x, 2.0, 3, times=3)
    first, *rest = NOT_PLAIN[name]
    if first is None:
        first = x
    elif first is SimpleNamespace:
        first = device_array(np.zeros(8, np.float32))
        first.gpu_data = Freed()
    launches.original.clear()
    launches(first, *rest)
    assert launches.original[0][0][1:] == tuple(rest) and len(fake.launches) == 1
    launches(x, 2.0, 3)
    assert len(launches.original) == 1 and len(fake.launches) == 2


def test_numba_cuda_raises_the_errors(launches, fake, asked):
    x = device_array(np.zeros(8, np.float32))
    launches(x, 2.0, 3, times=3)
    launches.original.clear()
    fake.errors.append(CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    launches(x, 2.0, 3)  # the driver refuses it
    launches(x, 2.0, 3, block=(2048, 1, 1))
    launches(x, 2.0, 3, shared=1 << 20)
    assert len(launches.original) == 3 and len(fake.launches) == 1


def test_what_is_refused_again_and_again_is_not_tried_for_ever(launches, fake, monkeypatch):
    x = device_array(np.zeros(8, np.float32))
    launches(x, 2.0, 3, times=2)
    launches(x, 2.0, 1 << 40, times=100)
    launches(x, 2.0, 3)
    assert not fake.launches and len(launches.original) == 103


def test_code_that_is_loaded_again_is_found(launches, fake):
    x = device_array(np.zeros(8, np.float32))
    launches(x, 2.0, 3, times=3)
    launches.function = SimpleNamespace(**{**vars(launches.function), "kernel": SimpleNamespace(handle=8)})
    launches(x, 2.0, 3)
    assert [launched.function[0] for launched in fake.launches] == [7, 8]


@pytest.mark.parametrize("option", [{"debug": True, "opt": False}, {"extensions": [object()]}])
def test_a_kernel_that_needs_numba_cudas_launch_is_never_packed(fake, option):
    made = Launches(scale, *ARGTYPES, **option)
    made(device_array(np.zeros(8, np.float32)), 2.0, 3, times=5)
    assert len(made.original) == 5 and not fake.launches


def test_a_cooperative_kernel_is_never_packed(fake):
    def meets(x):
        cuda.cg.this_grid().sync()
        x[0] = 1

    made = Launches(meets, types.int8[::1])
    made(device_array(np.zeros(8, np.int8)), times=5)
    assert len(made.original) == 5 and not fake.launches


class TestSharedMemory:
    def test_more_than_48_kb_is_asked_of_the_driver_once(self, launches, fake, asked, monkeypatch):
        monkeypatch.setattr(kernel_launches, "_BEFORE_PACKED", 100)
        x = device_array(np.zeros(8, np.float32))
        launches(x, 2.0, 3, shared=(48 << 10) - 100)
        assert not asked
        launches(x, 2.0, 3, shared=(48 << 10) - 99, times=3)
        launches(x, 2.0, 3, shared=60_000)
        launches(x, 2.0, 3, shared=50_000)
        name = "MAX_DYNAMIC_SHARED_SIZE_BYTES"
        assert asked == [(name, (48 << 10) - 99, 7, 0), (name, 60_000, 7, 0)]
        assert len(launches.original) == 6

    def test_more_than_the_device_has_is_numba_cudas_error(self, launches, fake, asked):
        launches(device_array(np.zeros(8, np.float32)), 2.0, 3, shared=300_000)
        assert not asked and len(launches.original) == 1


def test_a_kernel_is_not_kept_alive(fake):
    made = Launches(scale, *ARGTYPES)
    made(device_array(np.zeros(8, np.float32)), 2.0, 3, times=4)
    assert fake.launches
    kernel = weakref.ref(made.kernel)
    del made
    gc.collect()
    assert kernel() is None


@pytest.mark.gpu
class TestOnTheGPU:
    def test_results_are_the_same(self):
        @cuda.jit
        def kernel(r, a, flag, z, pair, x):
            i = cuda.grid(1)
            if i < r.size and flag:
                r[i] = a * x[i, 0] + z.real + pair[0]

        x = np.arange(200, dtype=np.float32).reshape(100, 2)
        on_device = cuda.to_device(x)
        for n in range(120):
            r = cuda.to_device(np.zeros(100, np.float64))
            given = on_device if n % 3 else x
            kernel[4, 32](r, np.float32(n), n % 2 == 0, complex(n, 1), (n, 1.5), given)
            expected = np.float32(n) * x[:, 0] + 2 * n if n % 2 == 0 else np.zeros(100)
            np.testing.assert_array_equal(r.copy_to_host(), expected)

    def test_more_shared_memory_than_48_kb(self):
        @cuda.jit
        def kernel(r):
            shared = cuda.shared.array(0, np.float32)
            for i in range(cuda.threadIdx.x, 15_000, cuda.blockDim.x):
                shared[i] = i
            cuda.syncthreads()
            if cuda.threadIdx.x == 0:
                r[cuda.blockIdx.x] = shared[14_999]

        r = cuda.to_device(np.zeros(2, np.float32))
        for _ in range(60):
            kernel[2, 128, 0, 60_000](r)
        assert r.copy_to_host().tolist() == [14_999] * 2
        with pytest.raises(Exception, match="INVALID_VALUE"):
            kernel[2, 128, 0, 1 << 20](r)

    def test_a_launch_that_is_refused_raises_what_it_did_before(self):
        @cuda.jit
        def kernel(r):
            r[0] = 1

        r = cuda.to_device(np.zeros(2, np.float32))
        errors = []
        for _ in range(60):
            kernel[1, 32](r)
            with pytest.raises(Exception) as raised:
                kernel[1, 2048](r)
            errors.append((type(raised.value), str(raised.value)))
        assert len(set(errors)) == 1
