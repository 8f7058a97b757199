# SPDX-License-Identifier: BSD-2-Clause
"""Static libraries: archives of several members, and the toolkit's own device runtime."""

import numpy as np
import pytest
from autolink_support import adder, build, calling, from_nvcc, have_nvcc, symbols
from cuda import pathfinder
from numba import cuda, int32
from numba.cuda import autolink
from numba.cuda.autolink.testing import check_linkable
from numba.cuda.cudadrv.external_code import pipeline
from numba.cuda.cudadrv.external_code.link import checked_link
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError

CHILD = """
    static __global__ void child(int* x, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] = 10 * i;
    }
    extern "C" __device__ void fill_by_child(int* x, int n) {
        child<<<(n + 127) / 128, 128, 0, cudaStreamFireAndForget>>>(x, n);
    }
"""
GRID_SYNC = """
    #include <cooperative_groups.h>
    extern "C" __device__ void sync_the_grid() { cooperative_groups::this_grid().sync(); }
"""


class FillByChild(autolink.DeviceCallable):
    """``fill(x, n)``: launches a kernel from the device."""

    def __numba_cuda_call__(self, x, n):
        return autolink.Extern("fill_by_child", args={"x": None, "n": int32})

    def __numba_cuda_link__(self, x, n):
        return autolink.CUDASource(CHILD, name="child.cu")


class SyncTheGrid(autolink.DeviceCallable):
    """``sync()``: waits for all threads of the grid."""

    def __numba_cuda_call__(self):
        return autolink.Extern("sync_the_grid", cooperative=True)

    def __numba_cuda_link__(self):
        return autolink.CUDASource(GRID_SYNC, name="grid_sync.cu")


class FromArchive(autolink.DeviceCallable):
    """A function of an archive that nvcc makes."""

    def __init__(self, symbol, archive):
        self.symbol, self.archive = symbol, archive

    def __numba_cuda_call__(self, x):
        return autolink.Extern(self.symbol, returns=int32, args={"x": int32})

    def __numba_cuda_link__(self, x):
        return self.archive


fill, sync = FillByChild(), SyncTheGrid()


def filled(x, n):
    if cuda.grid(1) == 0:
        fill(x, n)


def neighbours(x, y):
    i = cuda.grid(1)
    x[i] = i
    sync()
    y[i] = x[(i + cuda.blockDim.x) % x.size]


def names(linked):
    return [linked_input.name.rpartition("/")[2] for linked_input in linked.report.builds[0].link.inputs]


needs_device_runtime = pytest.mark.skipif(
    pipeline.device_runtime() is None, reason="no libcudadevrt.a: the wheels of CUDA 12.8 lack it"
)


@pytest.mark.parametrize("lto", [True, False])
class TestDeviceRuntime:
    @needs_device_runtime
    def test_is_linked_when_something_calls_it(self, lto):
        linked = build(cuda.jit(filled, lto=lto), "void(int32[::1], int32)")
        assert names(linked)[-2:] == ["child.cu", "libcudadevrt.a"]
        assert any("child" in symbol for symbol in symbols(linked.code))

    @needs_device_runtime
    def test_a_second_build_links_nothing_again(self, lto, monkeypatch):
        kernel = cuda.jit(filled, lto=lto)
        first = build(kernel, "void(int32[::1], int32)")
        monkeypatch.setattr(checked_link, "link_here", None)
        assert build(kernel, "void(int32[::1], int32)").code == first.code

    def test_without_one_the_error_names_the_missing_function(self, lto, monkeypatch):
        monkeypatch.setattr(pipeline, "device_runtime", lambda: None)
        with pytest.raises(LinkError, match=r"'__cudaCDP2\w+' is called but nothing that is linked defines it"):
            build(cuda.jit(filled, lto=lto), "void(int32[::1], int32)")


@pytest.mark.parametrize("lto", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_the_device_runtime_is_linked_with_a_kernel_that_synchronises_the_grid(lto):
    linked = build(cuda.jit(neighbours, lto=lto), "void(int32[::1], int32[::1])")
    assert "libcudadevrt.a" in names(linked)


@needs_device_runtime
def test_the_device_runtime_is_found():
    assert pipeline.device_runtime().name == pathfinder.find_static_lib("cudadevrt")


def test_a_missing_function_of_the_user_whose_name_resembles_its_functions():
    missing = FromArchive("cudaMineAlone", autolink.CUDASource(adder("other")))

    with pytest.raises(LinkError, match="'cudaMineAlone' is called but nothing that is linked defines it"):
        build(calling(missing))


def test_objects_that_use_the_device_runtime_are_linkable():
    check_linkable(fill, "int32[::1]", "int32", lto=True)


@pytest.mark.thorough
def test_objects_that_use_cooperative_groups_are_linkable():
    check_linkable(sync)


@pytest.mark.skipif(not have_nvcc(), reason="nvcc makes archives, and is not here")
@pytest.mark.parametrize("lto", [True, False])
def test_of_several_members_the_needed_ones_are_linked(lto, tmp_path):
    sources = [
        f'extern "C" __device__ int {name}(int x) {{ return {body}; }}'
        for name, body in (("needed", "helper(x)"), ("helper", "x + 1"), ("unneeded", "x"))
    ]
    sources[0] = 'extern "C" __device__ int helper(int x);\n' + sources[0]
    path = tmp_path / "libseveral.a"
    path.write_bytes(from_nvcc(tuple(sources), "archive"))
    function = FromArchive("needed", path)

    linked = build(cuda.jit(calling(function), lto=lto))
    assert {"needed", "helper"} <= symbols(linked.code)
    assert "unneeded" not in symbols(linked.code)


@pytest.mark.gpu
@pytest.mark.parametrize("lto", [True, False])
class TestOnTheGPU:
    def test_a_kernel_launched_from_the_device(self, lto):
        x = cuda.to_device(np.zeros(1000, np.int32))
        cuda.jit(filled, lto=lto)[1, 32](x, 1000)
        cuda.synchronize()
        assert (x.copy_to_host() == 10 * np.arange(1000)).all()

    def test_blocks_see_what_others_wrote(self, lto):
        threads, blocks = 128, 64
        x = cuda.to_device(np.zeros(threads * blocks, np.int32))
        y = cuda.to_device(np.zeros_like(x.copy_to_host()))
        cuda.jit(neighbours, lto=lto)[blocks, threads](x, y)
        assert (y.copy_to_host() == (np.arange(x.size) + threads) % x.size).all()
