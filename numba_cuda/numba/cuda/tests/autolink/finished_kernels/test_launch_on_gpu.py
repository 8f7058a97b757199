# SPDX-License-Identifier: BSD-2-Clause
"""Finished kernels on a GPU: results, libraries, streams, options."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numba import cuda
from numba.cuda import autolink, types

import numba_cuda_autolink
from numba_cuda_autolink import ArgumentError, LaunchError

pytestmark = pytest.mark.gpu


def axpy(r, a, x, y):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = a * x[i] + y[i]


def fill(out, value):
    shared = cuda.shared.array(0, dtype=types.float32)
    i = cuda.threadIdx.x
    for k in range(i, out.size, cuda.blockDim.x):
        shared[k] = value
    cuda.syncthreads()
    for k in range(i, out.size, cuda.blockDim.x):
        out[k] = shared[out.size - 1 - k]


def scale(x, a):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = x[i] * a


AXPY = "void(float32[::1], float32, float32[::1], float32[::1])"


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    path = tmp_path_factory.mktemp("finished") / "several.kernels"
    built = [
        autolink.build(axpy, AXPY),
        autolink.build(fill, "void(float32[::1], float32)"),
        *(autolink.build(scale, f"void({t}[::1], {t})") for t in ("float32", "float64", "int32")),
        autolink.build(scale, "void(complex64[:], complex64)"),
    ]
    autolink.save(path, built)
    return numba_cuda_autolink.load(path)


def cupy_arrays(cupy, size=100):
    return cupy.zeros(size, "f4"), cupy.arange(size, dtype="f4"), cupy.ones(size, "f4")


EXPECTED = 2 * np.arange(100, dtype="f4") + 1


class TestLibraries:
    def test_pytorch_also_freed_resized_moved_or_not_computed(self, kernels):
        torch = pytest.importorskip("torch")
        z = torch.ones(8, dtype=torch.complex64, device="cuda")
        kernels.scale[1, 8](z, 2j)
        assert (z.cpu().numpy() == 2j).all()
        with pytest.raises(ArgumentError, match="resolve_conj"):
            autolink.bind(cuda.jit(scale), "void(complex64[:], complex64)")[1, 8](z.conj(), 2j)
        x, launch = torch.arange(100, dtype=torch.float32, device="cuda"), kernels.axpy[2, 64]
        for _ in range(3):
            r, y = torch.zeros(100, device="cuda"), torch.ones(100, device="cuda")
            launch(r, 2.0, x, y)
            assert (r.cpu().numpy() == EXPECTED).all()
        r.data = torch.zeros(50, device="cuda")
        launch(r, 2.0, x, y)
        assert (r.cpu().numpy() == EXPECTED[:50]).all()
        r.untyped_storage().resize_(0)
        with pytest.raises(ArgumentError, match="was freed"):
            launch(r, 2.0, x, y)
        with pytest.raises(ArgumentError, match="host memory"):
            launch(torch.zeros(50), 2.0, x, y)

    def test_numba_cuda(self, kernels):
        arrays = [
            cuda.to_device(each) for each in (np.zeros(100, "f4"), np.arange(100, dtype="f4"), np.ones(100, "f4"))
        ]
        launch = kernels.axpy[2, 64]
        for _ in range(3):
            launch(arrays[0], 2.0, *arrays[1:])
        assert (arrays[0].copy_to_host() == EXPECTED).all()
        arrays[2].gpu_data.free()
        with pytest.raises(ArgumentError, match="was freed"):
            kernels.fill[1, 32](arrays[2], 2.0)
        arrays[2] = cuda.to_device(np.ones(100, "f4"))
        half = arrays[0][:50]
        launch(half, 0.0, *arrays[1:])
        assert (arrays[0].copy_to_host() == [1] * 50 + list(EXPECTED[50:])).all()

    def test_cuda_core_buffers_and_dlpack(self, kernels):
        cupy = pytest.importorskip("cupy")
        from cuda.core import Device

        class OnlyDlpack:
            def __init__(self, array):
                self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

        device = Device()
        device.set_current()
        _, x, y = cupy_arrays(cupy)
        buffer = device.allocate(400, stream=device.default_stream)
        kernels.axpy[2, 64](buffer, 2.0, OnlyDlpack(x), y)
        view = cupy.from_dlpack(buffer).view("f4")
        assert (view.get() == EXPECTED).all()


class TestStreams:
    def test_of_each_library(self, kernels):
        cupy = pytest.importorskip("cupy")
        from cuda.core import Device

        device = Device()
        device.set_current()
        streams = [None, 0, cuda.stream(), cupy.cuda.Stream(non_blocking=True), device.create_stream(), 2]
        if torch := sys.modules.get("torch"):
            streams.append(torch.cuda.Stream())
        for stream in streams:
            r, x, y = cupy_arrays(cupy)
            cuda.synchronize()
            kernels.axpy[2, 64, stream](r, 2.0, x, y)
            cuda.synchronize()
            assert (r.get() == EXPECTED).all()

    def test_a_graph_captures_launches(self, kernels):
        cupy = pytest.importorskip("cupy")
        r, x, y = cupy_arrays(cupy)
        stream = cupy.cuda.Stream(non_blocking=True)
        fresh = autolink.bind(cuda.jit(scale), "void(float32[::1], float32)")
        with stream:
            stream.begin_capture()
            kernels.axpy[2, 64, stream](r, 2.0, x, y)
            for _ in range(9):
                kernels.axpy[2, 64, stream](r, 1.0, r, y)
            graph = stream.end_capture()
        assert (r.get() == 0).all()
        graph.launch(stream)
        stream.synchronize()
        assert (r.get() == EXPECTED + 9).all()
        assert fresh.signatures


class TestOptions:
    def test_more_than_48_kb_of_shared_memory(self, kernels):
        cupy = pytest.importorskip("cupy")
        out = cupy.zeros(20000, "f4")
        kernels.fill[1, 256, 0, 80000](out, 2.5)
        assert (out.get() == 2.5).all()
        with pytest.raises(LaunchError, match="bytes of dynamic shared memory"):
            kernels.fill[1, 256, 0, 1 << 20](out, 2.5)

    def test_clusters_and_programmatic_launch(self, kernels):
        cupy = pytest.importorskip("cupy")
        if cuda.get_current_device().compute_capability < (9, 0):
            pytest.skip("needs compute capability 9.0")
        for options in ({"cluster": 2}, {"cluster": (2, 1, 1), "programmatic": True}, {"cluster": 16}):
            r, x, y = cupy_arrays(cupy)
            kernels.axpy.configure(16, 64, **options)(r, 2.0, x, y)
            assert (r.get() == EXPECTED).all()


def test_a_bound_kernel_has_a_signature_or_that_of_arguments():
    cupy = pytest.importorskip("cupy")
    r, x, y = cupy_arrays(cupy)
    jit = cuda.jit(axpy)
    for bound in (autolink.bind(jit, AXPY), autolink.bind(jit, r, np.float32(2), x, y)):
        r[:] = 0
        bound[2, 64](r, 2.0, x, y)
        assert (r.get() == EXPECTED).all()


def test_ptx_is_finished_by_the_driver(tmp_path):
    cupy = pytest.importorskip("cupy")
    autolink.build(axpy, AXPY, cc=(7, 5), output="ptx").save(tmp_path / "a.kernels")
    r, x, y = cupy_arrays(cupy)
    numba_cuda_autolink.load(tmp_path / "a.kernels").axpy[2, 64](r, 2.0, x, y)
    assert (r.get() == EXPECTED).all()


def test_callbacks_run_once_of_a_bound_kernel_and_again_after_loading(tmp_path, monkeypatch):
    cupy = pytest.importorskip("cupy")
    (tmp_path / "module_of_callbacks.py").write_text(
        "calls = []\ndef set_up(module):\n    calls.append(('set up', type(module).__name__))\n"
        "def tear_down(module):\n    calls.append(('torn down', type(module).__name__))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import module_of_callbacks

    code = cuda.CUSource(
        'extern "C" __device__ int saved_callback(float* out, float x) { *out = 2 * x; return 0; }',
        setup_callback=module_of_callbacks.set_up,
        teardown_callback=module_of_callbacks.tear_down,
    )
    twice = cuda.declare_device("saved_callback", types.float32(types.float32), link=code)

    def kernel(x):
        x[0] = twice(x[0])

    autolink.build(kernel, "void(float32[::1])").save(tmp_path / "a.kernels")
    x = cupy.ones(1, "f4")
    bound = autolink.bind(cuda.jit(kernel), "void(float32[::1])")[1, 1]
    bound(x)
    bound(x)
    assert x.get().tolist() == [4] and module_of_callbacks.calls.pop()[0] == "set up" and not module_of_callbacks.calls
    x = cupy.ones(1, "f4")
    with numba_cuda_autolink.load(tmp_path / "a.kernels") as library:
        library.kernel[1, 1](x)
        library.kernel[1, 1](x)
        assert x.get().tolist() == [4]
    assert module_of_callbacks.calls == [("set up", "ObjectCode"), ("torn down", "ObjectCode")]
