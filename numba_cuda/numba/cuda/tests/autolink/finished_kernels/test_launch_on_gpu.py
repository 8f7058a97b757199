# SPDX-License-Identifier: BSD-2-Clause
"""Finished kernels on a GPU, from a process without Numba and in this one: results, libraries, streams, options."""

from __future__ import annotations

import collections
import enum
import json
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
DURATION = "numpy.timedelta64(-5, 'ns')"
PLACES = "numpy.arange(24, dtype='f4').reshape(2, 3, 4)"


class Color(enum.IntEnum):
    RED = 1
    BLUE = 7


Point = collections.namedtuple("Point", "x y")


def store(out, x):
    out[0] = x


def store_parts(out, x):
    out[0] = x[0]
    out[1] = x[1][0]
    out[2] = x[1][1]


def store_point(out, x):
    out[0] = x.x
    out[1] = x.y


def store_none(out, x):
    out[0] = 3 if x is None else 4


def store_record(out, x):
    out[0] = x.a + x.b + x.c[1]


def store_records(out, x):
    out[0] = x[1].a + x[1].b + x[1].c[1] + x.shape[0]


def store_cube(out, x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                out[(i * x.shape[1] + j) * x.shape[2] + k] = x[i, j, k] + x.strides[0] * 1000


def store_empty(out, x):
    out[0] = x.size + 5


def store_scalar_array(out, x):
    out[0] = x[()]


# By name: kernel, type of the argument, dtype of the result, the argument for numba-cuda, and for a process without it.
CASES = {
    **{
        name: (store, getattr(types, name), name, f"numpy.{name}({value})", value)
        for name, value in {
            **{f"int{bits}": str(-(2 ** (bits - 1))) for bits in (8, 16, 32, 64)},
            **{f"uint{bits}": str(2**bits - 1) for bits in (8, 16, 32, 64)},
            "float16": "0.3337",
            "float32": "0.1",
            "float64": "-1e300",
            "complex64": "(1.5-2.25j)",
            "complex128": "(0.1+1e200j)",
        }.items()
    },
    "boolean": (store, types.boolean, "bool", "True", "True"),
    "datetime64": (store, types.NPDatetime("ms"), "M8[ms]", "numpy.datetime64(1234567, 'ms')", "1234567"),
    "timedelta64": (
        store,
        types.NPTimedelta("ns"),
        "m8[ns]",
        "numpy.timedelta64(-5, 'ns')",
        "numpy.timedelta64(-5, 'ns')",
    ),
    "enum": (store, types.IntEnumMember(Color, types.int64), "i8", "Color.BLUE", "7"),
    "none": (store_none, types.none, "i4", "None", "None"),
    "tuple": (
        store_parts,
        types.Tuple((types.int8, types.UniTuple(types.float64, 2))),
        "f8",
        "(numpy.int8(-3), (1.5, 2.5))",
        "(-3, (1.5, 2.5))",
    ),
    "named_tuple": (
        store_point,
        types.NamedTuple((types.float32, types.int64), Point),
        "f8",
        "Point(numpy.float32(1.5), 9)",
        "(1.5, 9)",
    ),
    "record": (
        store_record,
        from_dtype(RECORD),
        "f8",
        "records()[1]",
        "Memory(records()[1:2].tobytes(), (24,), '|u1')",
    ),
    "records": (
        store_records,
        from_dtype(RECORD)[::1],
        "f8",
        "records()",
        "Memory(records().tobytes(), (3,), '|V24', descr=DESCR)",
    ),
    "c_array": (store_cube, types.float32[:, :, ::1], "f8", PLACES, f"cupy.asarray({PLACES})"),
    "f_array": (
        store_cube,
        types.float32[::1, :, :],
        "f8",
        f"numpy.asfortranarray({PLACES})",
        f"cupy.asarray(numpy.asfortranarray({PLACES}), order='F')",
    ),
    "strided_array": (
        store_cube,
        types.float32[:, :, :],
        "f8",
        f"cuda.to_device({PLACES})[:, ::2, 1:3]",
        f"cupy.asarray({PLACES})[:, ::2, 1:3]",
    ),
    "empty_array": (
        store_empty,
        types.float32[::1],
        "i8",
        "cuda.to_device(numpy.zeros(0, 'f4'))",
        "cupy.zeros(0, 'f4')",
    ),
    "zero_dimensions": (
        store_scalar_array,
        types.Array(types.float64, 0, "C"),
        "f8",
        "numpy.array(2.5)",
        "cupy.array(2.5)",
    ),
}
COUNT = 32
LAUNCH = """
import json, sys
import numpy
import cupy
import numba_cuda_autolink
class Memory:
    def __init__(self, content, shape, typestr, **more):
        self.kept = cupy.asarray(numpy.frombuffer(content, "u1"))
        data = self.kept.data.ptr, False
        self.__cuda_array_interface__ = {"data": data, "shape": shape, "typestr": typestr, "version": 2, **more}
def records():
    made = numpy.zeros(3, RECORD)
    made["a"], made["b"], made["c"] = [1, 2, 3], [0.5, 1.5, 2.5], [[1, 2], [3, 4], [5, 6]]
    return made
RECORD = numpy.dtype([("a", "u1"), ("b", "f8"), ("c", "f4", (2,))], align=True)
DESCR = [("a", "|u1"), ("", "|V7"), ("b", "<f8"), ("c", "<f4", (2,))]
library = numba_cuda_autolink.load(sys.argv[1])
results = {}
for name, (dtype, argument) in json.loads(sys.argv[2]).items():
    dtype = numpy.dtype(dtype)
    out = Memory(bytes(COUNT * dtype.itemsize), (COUNT,), dtype.str)
    library[name][1, 1](out, eval(argument))
    results[name] = out.kept.get().tobytes().hex()
assert not [name for name in sys.modules if name.split(".")[0] in ("numba", "llvmlite", "numba_cuda")]
print(json.dumps(results))
""".replace("COUNT", str(COUNT))


def records():
    made = np.zeros(3, RECORD)
    made["a"], made["b"], made["c"] = [1, 2, 3], [0.5, 1.5, 2.5], [[1, 2], [3, 4], [5, 6]]
    return made


@pytest.fixture(scope="module")
def of_another_process(tmp_path_factory):
    """The bytes that each case gives in a process without Numba."""
    pytest.importorskip("cupy")
    path = tmp_path_factory.mktemp("finished") / "cases.kernels"
    built = []
    for name, (kernel, numba_type, dtype, _, _) in CASES.items():
        signature = types.void(from_dtype(np.dtype(dtype))[::1], numba_type)
        built.append(autolink.build(kernel, signature, entry_name=name))
    autolink.save(path, built)
    cases = json.dumps({name: (dtype, argument) for name, (_, _, dtype, _, argument) in CASES.items()})
    done = subprocess.run([sys.executable, "-c", LAUNCH, path, cases], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CASES)
def test_another_process_gets_the_bytes_of_the_jit_kernel(of_another_process, name):
    kernel, numba_type, dtype, argument, _ = CASES[name]
    out = np.zeros(COUNT, dtype)
    if name == "none":  # numba-cuda compiles such a kernel, but does not launch it
        out[0] = 3
        assert of_another_process[name] == out.tobytes().hex()
        return
    value = eval(argument, {**globals(), "numpy": np})
    cuda.jit(types.void(from_dtype(out.dtype)[::1], numba_type))(kernel)[1, 1](out, value)
    assert of_another_process[name] == out.tobytes().hex()


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

    def test_cupy_that_changes_its_shape_in_place(self, kernels):
        cupy = pytest.importorskip("cupy")
        r, x, y = cupy_arrays(cupy)
        launch = kernels.axpy[2, 64]
        for _ in range(3):
            launch(r, 2.0, x, y)
        r.shape = (10, 10)
        with pytest.raises(ArgumentError, match=r"argument 1, 'r', does not fit"):
            launch(r, 2.0, x, y)

    def test_pytorch(self, kernels):
        torch = pytest.importorskip("torch")
        x = torch.arange(100, dtype=torch.float32, device="cuda")
        for _ in range(3):
            r, y = torch.zeros(100, device="cuda"), torch.ones(100, device="cuda")
            kernels.axpy[2, 64](r, 2.0, x, y)
            assert (r.cpu().numpy() == EXPECTED).all()

    def test_pytorch_that_is_freed_resized_or_moved(self, kernels):
        torch = pytest.importorskip("torch")
        x, y = torch.arange(100, dtype=torch.float32, device="cuda"), torch.ones(100, device="cuda")
        r, launch = torch.zeros(100, device="cuda"), kernels.axpy[2, 64]
        launch(r, 2.0, x, y)
        launch(r, 2.0, x, y)
        r.data = torch.zeros(50, device="cuda")
        launch(r, 2.0, x, y)
        assert (r.cpu().numpy() == EXPECTED[:50]).all()
        r.untyped_storage().resize_(0)
        with pytest.raises(ArgumentError, match="was freed"):
            launch(r, 2.0, x, y)
        with pytest.raises(ArgumentError, match="host memory"):
            launch(torch.zeros(50), 2.0, x, y)

    def test_pytorch_that_is_not_computed(self, kernels):
        torch = pytest.importorskip("torch")
        x = torch.ones(8, dtype=torch.complex64, device="cuda")
        kernels.scale[1, 8](x, 2j)
        assert (x.cpu().numpy() == 2j).all()
        with pytest.raises(ArgumentError, match="resolve_conj"):
            autolink.bind(cuda.jit(scale), "void(complex64[:], complex64)")[1, 8](x.conj(), 2j)

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


class TestSignatures:
    @pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "c8"])
    def test_the_arguments_choose(self, kernels, dtype):
        cupy = pytest.importorskip("cupy")
        for x in (cupy.arange(10).astype(dtype), cupy.arange(10, 20).astype(dtype)):
            expected = x.get() * 3
            kernels.scale[1, 32](x, 3)
            assert (x.get() == expected).all()

    def test_none_fits(self, kernels):
        cupy = pytest.importorskip("cupy")
        with pytest.raises(ArgumentError, match="argument 1, 'x', fits none of its signatures"):
            kernels.scale[1, 32](cupy.zeros(3, "u1"), 3)


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

    def test_too_many_threads_for_launch_bounds(self):
        cupy = pytest.importorskip("cupy")
        bound = autolink.bind(cuda.jit(scale, launch_bounds=64), "void(float32[::1], float32)")
        with pytest.raises(LaunchError, match=r"128 threads in a block"):
            bound[1, 128](cupy.ones(4, "f4"), 2.0)


def test_eight_threads(kernels):
    cupy = pytest.importorskip("cupy")
    results, errors = {}, []

    def work(number):
        try:
            with cupy.cuda.Device(0), cupy.cuda.Stream(non_blocking=True) as stream:
                r, x, y = cupy_arrays(cupy)
                launch = kernels.axpy[2, 64, stream]
                for k in range(500):
                    launch(r, float(number + k), x, y)
                stream.synchronize()
                results[number] = r.get()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for number in range(8):
        assert (results[number] == (number + 499) * np.arange(100, dtype="f4") + 1).all()


def test_a_thread_without_a_context(kernels):
    cupy = pytest.importorskip("cupy")
    r, x, y = cupy_arrays(cupy)
    kernels.axpy[2, 64](r, 1.0, x, y)
    thread = threading.Thread(target=lambda: kernels.axpy[2, 64](r, 2.0, x, y))
    thread.start()
    thread.join()
    assert (r.get() == EXPECTED).all()


class TestBind:
    def test_with_a_signature_and_with_arguments(self):
        cupy = pytest.importorskip("cupy")
        r, x, y = cupy_arrays(cupy)
        jit = cuda.jit(axpy)
        for bound in (autolink.bind(jit, AXPY), autolink.bind(jit, r, np.float32(2), x, y)):
            r[:] = 0
            bound[2, 64](r, 2.0, x, y)
            assert (r.get() == EXPECTED).all()

    def test_callbacks_run_once(self):
        cupy = pytest.importorskip("cupy")
        calls = []
        code = cuda.CUSource(
            'extern "C" __device__ int with_callback(float* out, float x) { *out = 2 * x; return 0; }',
            setup_callback=lambda module: calls.append(module),
        )
        twice = cuda.declare_device("with_callback", types.float32(types.float32), link=code)

        def kernel(x):
            x[0] = twice(x[0])

        bound = autolink.bind(cuda.jit(kernel), "void(float32[::1])")
        x = cupy.ones(1, "f4")
        bound[1, 1](x)
        bound[1, 1](x)
        assert x.get().tolist() == [4] and len(calls) == 1


def test_ptx_is_finished_by_the_driver(tmp_path):
    cupy = pytest.importorskip("cupy")
    autolink.build(axpy, AXPY, cc=(7, 5), output="ptx").save(tmp_path / "a.kernels")
    r, x, y = cupy_arrays(cupy)
    numba_cuda_autolink.load(tmp_path / "a.kernels").axpy[2, 64](r, 2.0, x, y)
    assert (r.get() == EXPECTED).all()


def test_callbacks_run_again_after_loading(tmp_path, monkeypatch):
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
    with numba_cuda_autolink.load(tmp_path / "a.kernels") as library:
        library.kernel[1, 1](x)
        library.kernel[1, 1](x)
        assert x.get().tolist() == [4]
    assert module_of_callbacks.calls == [("set up", "ObjectCode"), ("torn down", "ObjectCode")]
