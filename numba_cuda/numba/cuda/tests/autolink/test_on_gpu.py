# SPDX-License-Identifier: BSD-2-Clause
"""What can only be seen where kernels launch."""

import gc

import numpy as np
import pytest
from autolink_support import Linked, adder, compiled, unload
from numba import cuda
from numba.cuda import autolink, cg, types

pytestmark = pytest.mark.gpu


def result_of(kernel, values=(0, 10, 20, 30), config=(1, 1)):
    x = cuda.to_device(np.array(values, dtype=np.int32))
    kernel[config](x)
    return x.copy_to_host().tolist()


@pytest.mark.parametrize("lto", [True, False])
def test_a_kernel_runs_with_the_code_of_a_called_object(lto):
    spy = Linked("plus_seven", amount=7)
    function = spy.function

    def kernel(x):
        x[0] = function(x[1])

    assert result_of(cuda.jit(kernel, lto=lto))[0] == 17
    (target,) = spy.targets
    major, minor = cuda.get_current_device().compute_capability
    assert (target.compute_capability, target.lto) == ((major, minor), lto)
    assert target.suffix == ("a" if (major, minor) >= (9, 0) else "")


@pytest.mark.parametrize("kind", ["ltoir", "cubin", "ptx"])
def test_precompiled_code_runs(kind):
    linkable = {"ltoir": cuda.LTOIR, "cubin": cuda.Cubin, "ptx": cuda.PTXSource}[kind]

    def answer():
        arch = autolink.current_target().arch
        return linkable(compiled(adder("precompiled", 5), kind, arch))

    function = Linked("precompiled", answer).function

    @cuda.jit
    def kernel(x):
        x[0] = function(x[1])

    assert result_of(kernel)[0] == 15


def test_all_ways_of_linking_work_in_one_kernel():
    asked_for = Linked("asked_for", amount=1).function
    declared = cuda.declare_device("declared", "int32(int32)", link=cuda.CUSource(adder("declared", 2)))
    named = cuda.declare_device("named", "int32(int32)")

    @cuda.jit(link=[cuda.CUSource(adder("named", 3))])
    def kernel(x):
        x[0] = asked_for(x[1]) * 10000 + declared(x[2]) * 100 + named(x[3])

    assert result_of(kernel)[0] == 11 * 10000 + 22 * 100 + 33


def test_device_code_reaches_all_memory_of_the_context():
    """An array that the kernel is not given."""
    code = """extern "C" __device__ int reaches(int* result, long long address) {
        int* there = (int*)address; *result = *there; *there = 7; return 0; }"""
    reaches = cuda.declare_device("reaches", "int32(int64)", link=cuda.CUSource(code))
    other = cuda.to_device(np.array([5], np.int32))
    address = other.device_ctypes_pointer.value

    def kernel(x):
        x[0] = reaches(address)

    assert result_of(cuda.jit(kernel))[0] == 5
    assert other.copy_to_host().tolist() == [7]


def test_callbacks_run_once_for_a_module_however_many_paths_lead_to_them():
    events = []
    source = autolink.CUDASource(
        adder("with_callbacks"),
        setup_callback=lambda module: events.append(("setup", module)),
        teardown_callback=lambda module: events.append(("teardown", module)),
    )
    function = Linked("with_callbacks", source).function
    other = Linked("other_function", [source, autolink.CUDASource(adder("other_function"))]).function

    @cuda.jit(device=True)
    def left(x):
        return function(x) + other(x)

    @cuda.jit(device=True)
    def right(x):
        return function(x)

    @cuda.jit
    def kernel(x):
        x[0] = left(x[1]) + right(x[2]) + function(x[3])

    @cuda.jit
    def without(x):
        x[0] = x[1]

    result_of(without)
    assert events == []
    assert result_of(kernel)[0] == 11 + 11 + 21 + 31
    assert [event for event, _ in events] == ["setup"]
    result_of(kernel)
    assert len(events) == 1
    handle = events[0][1].handle
    assert handle
    events[0] = ("setup", None)
    unload(kernel)
    del kernel
    gc.collect()
    assert [event for event, _ in events] == ["setup", "teardown"]


def test_a_setup_callback_finds_the_symbols_of_its_code():
    """What a callback looks up by name must be in the module."""
    import ctypes

    from cuda.bindings import driver

    code = '__device__ int amount; extern "C" __device__ int plus_set(int *out, int x) { *out = x + amount; return 0; }'

    def setup(module):
        error, pointer, size = driver.cuLibraryGetGlobal(driver.CUlibrary(int(module.handle)), b"amount")
        assert error == driver.CUresult.CUDA_SUCCESS
        value = ctypes.c_int(42)
        (error,) = driver.cuMemcpyHtoD(pointer, ctypes.addressof(value), size)
        assert error == driver.CUresult.CUDA_SUCCESS

    function = Linked("plus_set", autolink.CUDASource(code, setup_callback=setup)).function

    @cuda.jit
    def kernel(x):
        x[0] = function(x[1])

    assert result_of(kernel)[0] == 52


def test_cooperative_launch():
    function = Linked("cooperating").function

    @cuda.jit
    def kernel(x):
        grid = cg.this_grid()
        i = cuda.grid(1)
        x[i] = function(x[i])
        grid.sync()
        if i == 0:
            x[0] += x[x.size - 1]

    values = np.arange(256, dtype=np.int32)
    assert result_of(kernel, values, (8, 32))[0] == 1 + 256


def test_vectorize():
    function = Linked("vectorized").function

    @cuda.jit(device=True)
    def add(x):
        return function(x)

    from numba.cuda import vectorize

    @vectorize(["int32(int32)"], target="cuda")
    def ufunc(x):
        return function(x) + add(x)

    values = np.arange(100, dtype=np.int32)
    np.testing.assert_array_equal(ufunc(values), 2 * (values + 1))


def test_guvectorize():
    function = Linked("guvectorized").function

    from numba.cuda import guvectorize

    @guvectorize(["void(int32[:], int32[:])"], "(n)->(n)", target="cuda")
    def gufunc(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    values = np.arange(100, dtype=np.int32).reshape(10, 10)
    np.testing.assert_array_equal(gufunc(values), values + 1)


def test_reduce():
    function = Linked("reduced", amount=0).function

    total = cuda.reduce(lambda a, b: function(a) + b)
    values = np.arange(1000, dtype=np.int32)
    assert total(values) == values.sum()


def test_a_device_function_compiled_for_its_signature_alone():
    spy = Linked("eager")
    function = spy.function

    @cuda.jit("int32(int32)", device=True)
    def device_function(x):
        return function(x)

    @cuda.jit
    def kernel(x):
        x[0] = device_function(x[1])

    assert result_of(kernel)[0] == 11
    assert len(spy.asked) == 1


def test_a_built_cubin_runs():
    from cuda.core import Device, LaunchConfig, ObjectCode, launch

    function = Linked("built_ahead", amount=3).function

    def kernel(n, x):
        x[0] = function(n)

    built = autolink.build(kernel, types.void(types.int32, types.CPointer(types.int32)))
    device = Device()
    device.set_current()
    loaded = ObjectCode.from_cubin(built.code).get_kernel(built.entry_name)
    x = cuda.to_device(np.zeros(1, np.int32))
    stream = device.create_stream()
    launch(stream, LaunchConfig(grid=1, block=1), loaded, np.int32(4), x.device_ctypes_pointer.value)
    stream.sync()
    assert x.copy_to_host().tolist() == [7]


def test_numba_cudas_runtime_comes_with_code_that_needs_it(monkeypatch):
    from numba.cuda.core import config
    from numba.cuda.memory_management.nrt import rtsys

    monkeypatch.setattr(config, "CUDA_ENABLE_NRT", True, raising=False)
    code = (
        'extern "C" __device__ void *NRT_Allocate(size_t);\nextern "C" __device__ void NRT_Free(void *);\n'
        'extern "C" __device__ int allocates(int *out, int x)'
        " { int *p = (int *)NRT_Allocate(4); *p = x + 1; *out = *p; NRT_Free(p); return 0; }"
    )
    function = Linked("allocates", cuda.CUSource(code, nrt=True)).function
    rtsys.ensure_initialized()

    @cuda.jit
    def kernel(x):
        x[0] = function(x[1])

    assert result_of(kernel)[0] == 11
