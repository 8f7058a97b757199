# SPDX-License-Identifier: BSD-2-Clause
"""Finished kernels on a GPU, from a process without Numba and in this one: results, libraries, streams, options."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.np.numpy_support import from_dtype

import numba_cuda_autolink
from numba_cuda_autolink import ArgumentError, LaunchError

pytestmark = pytest.mark.gpu

RECORD = np.dtype([("a", "u1"), ("b", "f8"), ("c", "f4", (2,))], align=True)


def every_kind(out, small, half, z, flag, when, pair, record, records, cube, columns, strided, empty, scalar):
    out[0] = small
    out[1] = half
    out[2] = z.real + 10 * z.imag
    out[3] = 1 if flag else 2
    out[4] = pair[0] + 10 * pair[1][1]
    out[5] = record.a + record.b + record.c[1]
    out[6] = records[1].a + records[1].b + records[1].c[1] + records.shape[0]
    out[7] = cube[1, 2, 3] + 1000 * cube.strides[0]
    out[8] = columns[1, 2] + 1000 * columns.strides[0]
    out[9] = strided[1, 1] + 1000 * strided.strides[0]
    out[10] = empty.size
    out[11] = scalar[()]
    out[12] = 1 if when == when else 2


EVERY_KIND = types.void(
    *(types.float64[::1], types.int8, types.float16, types.complex128, types.boolean, types.NPDatetime("ms")),
    *(types.Tuple((types.int8, types.UniTuple(types.float64, 2))), from_dtype(RECORD), from_dtype(RECORD)[::1]),
    *(types.float32[:, :, ::1], types.float32[::1, :], types.float32[:, :], types.float32[::1]),
    types.Array(types.float64, 0, "C"),
)
LAUNCH = """
import sys
import cupy, numpy
import numba_cuda_autolink
RECORD = numpy.dtype([("a", "u1"), ("b", "f8"), ("c", "f4", (2,))], align=True)
records = numpy.zeros(3, RECORD)
records["a"], records["b"], records["c"] = [1, 2, 3], [0.5, 1.5, 2.5], [[1, 2], [3, 4], [5, 6]]
class Records:
    def __init__(self, values):
        self.kept = cupy.asarray(numpy.frombuffer(values.tobytes(), "u1"))
        descr = [("a", "|u1"), ("", "|V7"), ("b", "<f8"), ("c", "<f4", (2,))]
        how = {"shape": values.shape, "typestr": "|V24", "descr": descr, "version": 2}
        self.__cuda_array_interface__ = {"data": (self.kept.data.ptr, False), **how}
cube = cupy.arange(24, dtype="f4").reshape(2, 3, 4)
out = cupy.zeros(13)
numba_cuda_autolink.load(sys.argv[1]).every_kind[1, 1](
    out, -128, numpy.float16(0.3337), 0.5 + 1e200j, True, numpy.datetime64(1234567, "ms"), (-3, (1.5, 2.5)),
    cupy.asarray(numpy.frombuffer(records[1:2].tobytes(), "u1")), Records(records), cube,
    cupy.asfortranarray(cube[1]), cube[1, ::2, 1:3], cupy.zeros(0, "f4"), cupy.array(2.5))
assert not [name for name in sys.modules if name.split(".")[0] in ("numba", "llvmlite", "numba_cuda")]
print(out.get().tobytes().hex())
"""


def test_another_process_gets_the_bytes_of_the_jit_kernel(tmp_path):
    pytest.importorskip("cupy")
    autolink.build(every_kind, EVERY_KIND).save(tmp_path / "a.kernels")
    done = subprocess.run([sys.executable, "-c", LAUNCH, tmp_path / "a.kernels"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    records = np.zeros(3, RECORD)
    records["a"], records["b"], records["c"] = [1, 2, 3], [0.5, 1.5, 2.5], [[1, 2], [3, 4], [5, 6]]
    cube, out = np.arange(24, dtype="f4").reshape(2, 3, 4), np.zeros(13)
    strided = cuda.to_device(cube)[1, ::2, 1:3]
    numbers = np.int8(-128), np.float16(0.3337), 0.5 + 1e200j, True, np.datetime64(1234567, "ms")
    arrays = records[1], records, cube, np.asfortranarray(cube[1]), strided, np.zeros(0, "f4"), np.array(2.5)
    cuda.jit(EVERY_KIND)(every_kind)[1, 1](out, *numbers, (np.int8(-3), (1.5, 2.5)), *arrays)
    assert out[12] == 1 and done.stdout.strip() == out.tobytes().hex()


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


def grid_sum(out, x):
    cuda.atomic.add(out, 0, x[cuda.grid(1)])
    cuda.cg.this_grid().sync()
    if cuda.grid(1) == 0:
        out[1] = out[0]


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
        autolink.build(grid_sum, "void(float32[::1], float32[::1])"),
        *(autolink.build(scale, f"void({t}[::1], {t})") for t in ("float32", "float64", "int32")),
        autolink.build(scale, "void(complex64[:], complex64)"),
    ]
    autolink.save(path, built)
    return numba_cuda_autolink.load(path)


def cupy_arrays(cupy, size=100):
    return cupy.zeros(size, "f4"), cupy.arange(size, dtype="f4"), cupy.ones(size, "f4")


EXPECTED = 2 * np.arange(100, dtype="f4") + 1


class TestLibraries:
    def test_cupy(self, kernels):
        cupy = pytest.importorskip("cupy")
        for size in (100, 100, 77, 100):
            r, x, y = cupy_arrays(cupy, size)
            kernels.axpy[2, 64](r, 2.0, x, y)
            assert (r.get() == EXPECTED[:size]).all()

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

    def test_freed_memory_and_host_memory(self, kernels):
        cupy = pytest.importorskip("cupy")
        r, x, y = cupy_arrays(cupy)

        class Foreign:
            def __init__(self):
                freed = {"data": (0xDEAD0000, False), "stream": None}
                self.__cuda_array_interface__ = {**r.__cuda_array_interface__, **freed}

        with pytest.raises(ArgumentError, match="was freed, or is not the device's"):
            kernels.axpy[2, 64](Foreign(), 2.0, x, y)
        with pytest.raises(ArgumentError, match="host memory"):
            kernels.axpy[2, 64](r, 2.0, np.zeros(100, "f4"), y)


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

    def test_an_array_interface_with_a_stream_is_waited_for(self, kernels):
        cupy = pytest.importorskip("cupy")
        r, x, y = cupy_arrays(cupy, 1 << 22)
        producer, consumer = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)

        class Produced:
            def __init__(self, array):
                self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": producer.ptr}

        cuda.synchronize()
        with producer:
            for _ in range(50):
                y *= 2
        kernels.axpy[1 << 14, 256, consumer](r, 0.0, x, Produced(y))
        consumer.synchronize()
        assert (r.get() == 2.0**50).all()

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

    def test_cooperative_launch(self, kernels):
        cupy = pytest.importorskip("cupy")
        out, x = cupy.zeros(2, "f4"), cupy.ones(512, "f4")
        kernels.grid_sum[4, 128](out, x)
        assert out.get().tolist() == [512, 512]

    def test_clusters_and_programmatic_launch(self, kernels):
        cupy = pytest.importorskip("cupy")
        if cuda.get_current_device().compute_capability < (9, 0):
            pytest.skip("needs compute capability 9.0")
        for options in ({"cluster": 2}, {"cluster": (2, 1, 1), "programmatic": True}, {"cluster": 16}):
            r, x, y = cupy_arrays(cupy)
            kernels.axpy.configure(16, 64, **options)(r, 2.0, x, y)
            assert (r.get() == EXPECTED).all()


def test_a_thread_without_a_context(kernels):
    cupy = pytest.importorskip("cupy")
    r, x, y = cupy_arrays(cupy)
    kernels.axpy[2, 64](r, 1.0, x, y)
    thread = threading.Thread(target=lambda: kernels.axpy[2, 64](r, 2.0, x, y))
    thread.start()
    thread.join()
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
