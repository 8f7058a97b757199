# SPDX-License-Identifier: BSD-2-Clause
"""Finished kernels of numba-cuda-mlir: a launch passes the bytes that its own launcher passes, or is refused."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import pickle
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from autolink_support import build
from fake_driver import DeviceArray
from finished_kernels_support import driver_of
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.formats.cubin import cubin_parameters
from repository import SUPPORT

import numba_cuda_autolink
from numba_cuda_autolink import ArgumentError, FinishedKernelError
from numba_cuda_autolink.plain_types import Parameter, place_leaves

RECORD = [("a", "i4"), ("b", "f8")]
# By name: the type, in terms of `types` and `record`; the argument, in terms of `array` and `numpy`.
CASES = {
    **{f"int{bits}": (f"types.int{bits}", f"{-(2 ** (bits - 1)) + 3}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (f"types.uint{bits}", f"numpy.uint{bits}({2**bits - 3})") for bits in (8, 16, 32, 64)},
    "boolean": ("types.boolean", "True"),
    "float16": ("types.float16", "numpy.float16(1.5)"),
    "float32": ("types.float32", "numpy.float32(2.5)"),
    "float64": ("types.float64", "-2.5"),
    "complex64": ("types.complex64", "numpy.complex64(1 - 2j)"),
    "complex128": ("types.complex128", "3 + 4j"),
    "datetime64": ("types.NPDatetime('s')", "numpy.datetime64(5, 's')"),
    "timedelta64": ("types.NPTimedelta('ns')", "numpy.timedelta64(-7, 'ns')"),
    "pointer": ("types.CPointer(types.float32)", "0x12345678"),
    "c_array": ("types.float32[:, ::1]", "array((5, 3), 'f4')"),
    "f_array": ("types.float64[::1, :]", "array((5, 3), 'f8', (8, 40))"),
    "complex_array": ("types.complex64[:, ::1]", "array((5, 3), 'c8')"),
    "strided_array": ("types.int16[:, :, :]", "array((2, 3, 4), 'i2', (-48, 16, 4))"),
    "zero_dimensions": ("types.Array(types.float64, 0, 'C')", "array((), 'f8')"),
    "empty_array": ("types.float32[::1]", "array((0,), 'f4')"),
    "read_only_array": ("types.Array(types.float32, 1, 'C', readonly=True)", "array((5,), 'f4')"),
    "records": ("record[::1]", "array((5,), RECORD, (16,))"),
    "booleans": ("types.boolean[::1]", "array((5,), '?')"),
    "tuple": ("types.Tuple((types.int8, types.UniTuple(types.float64, 2)))", "(-3, (1.5, 2.5))"),
    "tuple_of_arrays": (
        "types.Tuple((types.int8, types.Tuple((types.float32[::1], types.complex64)), types.int8))",
        "(-3, (array((5,), 'f4'), numpy.complex64(1j)), 7)",
    ),
    "empty_tuple": ("types.Tuple(())", "()"),
}
THEIRS = """
import ctypes, json, sys
import numpy
from numba_cuda_mlir import _cext
from numba_cuda_mlir.descriptor import LaunchConfiguration, _ArgMarshaller
RECORD = numpy.dtype([tuple(each) for each in json.loads(sys.argv[2])], align=True)
class array:
    def __init__(self, shape, dtype, strides=None):
        self.shape, self.dtype, self.ndim = shape, numpy.dtype(dtype), len(shape)
        data = 0x7f0000001000, False
        self.__cuda_array_interface__ = {
            "data": data, "shape": shape, "typestr": self.dtype.str, "strides": strides, "version": 3}
driver, found, kept = ctypes.CDLL("libcuda.so.1"), {}, []
for name, (code, entry, sizes, argument) in json.load(open(sys.argv[1])).items():
    driver.expect_parameters(ctypes.c_size_t(len(sizes)), (ctypes.c_size_t * len(sizes))(*sizes))
    made = bytes.fromhex(code), entry, False
    dispatcher = _cext.KernelDispatcher(lambda args: made, (False, False), lambda: None, debug=False)
    launch = _ArgMarshaller(LaunchConfiguration(dispatcher, (1, 1, 1), (1, 1, 1), 0, 0, None))
    kept.append((dispatcher, launch))
    launch._call_impl(eval(argument), 77)
    out = ctypes.create_string_buffer(1 << 16)
    size = driver.last_parameters(out)
    found[name] = out.raw[:size].hex()
print(json.dumps(found), flush=True)
import os
os._exit(0)  # without the driver's end
"""


@pytest.fixture
def fake(mlir):
    """A driver that only remembers launches. What numba-cuda-mlir reads of the real module is read before."""
    importlib.import_module("numba_cuda_mlir.typing.cuda")
    with driver_of() as made:
        yield made


@pytest.fixture(scope="module")
def kernels():
    """A kernel for each case."""
    pytest.importorskip("numba_cuda_mlir")
    from numba_cuda_mlir import cuda, types
    from numba_cuda_mlir.numba_cuda.np.numpy_support import from_dtype

    def kernel(x, last):
        pass

    names = {"types": types, "record": from_dtype(np.dtype(RECORD, align=True))}
    return {name: build(cuda.jit(kernel), (eval(text, names), types.int64)) for name, (text, _) in CASES.items()}


@pytest.fixture(scope="module")
def theirs(kernels, tmp_path_factory):
    """The bytes of the parameters that numba-cuda-mlir passes in each case, one after the other."""
    if sys.platform != "linux" or shutil.which("gcc") is None:
        pytest.skip("needs GCC, for a driver that remembers what is launched")
    folder = tmp_path_factory.mktemp("driver")
    source = SUPPORT / "recording_driver.c"
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", folder / "libcuda.so.1"], check=True)
    given = {}
    for name, linked in kernels.items():
        sizes = [size for _, size in cubin_parameters(linked.code, linked.entry_name)]
        given[name] = linked.code.hex(), linked.entry_name, sizes, CASES[name][1]
    (folder / "cases.json").write_text(json.dumps(given))
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]))
    command = [sys.executable, "-c", THEIRS, folder / "cases.json", json.dumps(RECORD)]
    environment = {**os.environ, "LD_LIBRARY_PATH": path}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CASES)
def test_a_launch_passes_the_bytes_of_their_launcher(kernels, theirs, fake, tmp_path, name):
    kernels[name].save(tmp_path / "a.kernels")
    kernel = numba_cuda_autolink.load(tmp_path / "a.kernels").kernel
    names = {"numpy": np, "RECORD": np.dtype(RECORD, align=True), "array": array}
    kernel[1, 1](eval(CASES[name][1], names), 77)
    packed = fake.launches[-1].packed
    layout = cubin_parameters(kernels[name].code, kernels[name].entry_name)
    own = [packed[offset : offset + size] for offset, size in layout]
    assert own[-1] == (77).to_bytes(8, "little")
    assert b"".join(own).hex() == theirs[name]


def array(shape, dtype, strides=None):
    """An array on the device of these strides in bytes."""
    dtype = np.dtype(dtype)
    descr = {} if dtype.names is None else {"descr": dtype.descr}
    return DeviceArray(0x7F0000001000, shape, dtype.str, strides=strides, **descr)


@pytest.fixture
def loaded(mlir, fake, tmp_path):
    """Builds a kernel of this signature for *function*, and loads it from a file."""

    def load(function, *signature):
        build(mlir.cuda.jit(function), signature).save(tmp_path / "a.kernels")
        return numba_cuda_autolink.load(tmp_path / "a.kernels")[function.__name__]

    return load


def passed(fake):
    """The values of 8 bytes that the last launch passed."""
    return np.frombuffer(fake.launches[-1].packed, np.int64).tolist()


def test_strides_are_in_what_the_kernel_reads(mlir, fake, loaded):
    """Their launcher counts the strides of complex numbers in numbers half their size, and those of records, which are
    bytes in the kernel, in records where the array does not name its strides."""
    from numba_cuda_mlir.numba_cuda.np.numpy_support import from_dtype

    record = np.dtype(RECORD, align=True)
    kernel = loaded(lambda x, records: None, mlir.types.complex64[::1, :], from_dtype(record)[::1])
    kernel[1, 1](array((5, 3), "c8", (8, 40)), array((5,), record))
    assert passed(fake)[3:7] == [5, 3, 1, 5] and passed(fake)[10:] == [5, record.itemsize]


def test_its_own_arrays_of_records_have_their_fields(fake, loaded):
    """Their array interface does not name them."""
    from numba_cuda_mlir.numba_cuda.cudadrv.devicearray import DeviceNDArray
    from numba_cuda_mlir.numba_cuda.np.numpy_support import from_dtype

    record = np.dtype(RECORD, align=True)
    kernel = loaded(lambda records: None, from_dtype(record)[::1])
    memory = SimpleNamespace(device_ctypes_pointer=ctypes.c_size_t(0x5000))
    kernel[1, 1](DeviceNDArray((3,), (16,), record, gpu_data=memory))
    assert passed(fake) == [0x5000, 0x5000, 0, 3, 16]
    with pytest.raises(ArgumentError, match="'records', does not fit"):
        kernel[1, 1](DeviceNDArray((3,), (16,), np.dtype([("a", "i8"), ("b", "f8")]), gpu_data=memory))


def test_strides_that_are_not_multiples_of_an_item_are_refused(mlir, fake, loaded):
    kernel = loaded(lambda x: None, mlir.types.int32[:])
    with pytest.raises(ArgumentError, match=r"got: array\(int32, 1d, A\) with strides of 6 bytes"):
        kernel[1, 1](array((3,), "i4", (6,)))
    kernel[1, 1](array((1,), "i4", (6,)))
    assert len(fake.launches) == 1


NOT_TAKEN = "parameter 'x' .*: finished kernels do not take it"
NO_STRIDES = "parameter 'x' .*: kernels of numba-cuda-mlir do not use the strides of arrays of records"


@pytest.mark.parametrize(
    ("numba_type", "why"),
    [
        ("types.none", "parameter 'x' .*: a kernel of numba-cuda-mlir has no parameter for it"),
        ("types.Optional(types.int32)", NOT_TAKEN),
        ("types.bfloat16", NOT_TAKEN),
        ("types.literal(3)", "parameter 'x' .*: its value is part of the code"),
        ("types.unicode_type", NOT_TAKEN),
        ("types.CharSeq(4)", NOT_TAKEN),
        ("types.CharSeq(4)[::1]", NOT_TAKEN),
        ("types.NPTimedelta('ns')[::1]", NOT_TAKEN),
        ("types.Array(record, 1, 'A')", NO_STRIDES),
        ("types.Array(record, 2, 'C')", NO_STRIDES),
        # An array for Numba, which is passed as an address.
        ("types.NestedArray(types.float32, (3,))", r"its code takes other parameters than \(nestedarray"),
    ],
)
def test_what_is_not_known_to_be_passed_right_is_refused(loaded, numba_type, why):
    from numba_cuda_mlir.numba_cuda import types
    from numba_cuda_mlir.numba_cuda.np.numpy_support import from_dtype

    names = {"types": types, "record": from_dtype(np.dtype(RECORD, align=True))}
    with pytest.raises(FinishedKernelError, match=f"kernel '<lambda>' cannot be saved: {why}"):
        loaded(lambda x: None, eval(numba_type, names))


def test_a_complex_number_is_two_values_or_one_and_two_floats_are_two():
    number, pair = Parameter("complex", "x", "<c8"), Parameter("number", "x", "<f4")
    assert place_leaves([number], [(8, 8)]) == place_leaves([number], [(8, 4), (12, 4)])
    assert place_leaves([pair, pair], [(8, 8)]) is None
    assert (
        place_leaves([number], [(8, 4)])
        is place_leaves([number], [(8, 8), (16, 8)])
        is place_leaves([number], [])
        is None
    )


def test_what_is_pickled_is_saved_where_numba_cuda_mlir_is_not(mlir, tmp_path):
    hypot = autolink.cxx("__device__ inline float hypot3(float x, float y) { return x * x + y * y; }").hypot3

    @mlir.cuda.jit
    def kernel(r, x):
        r[0] = hypot(r[0], x)

    linked = build(kernel, "void(float32[::1], float32)")
    (tmp_path / "linked").write_bytes(pickle.dumps(linked.launch_facts))
    script = """
import pickle, sys
facts = pickle.load(open(sys.argv[1], "rb"))
print(*(each.kind for each in facts.parameters), any(name.startswith("numba_cuda_mlir") for name in sys.modules))
"""
    command = [sys.executable, "-c", script, tmp_path / "linked"]
    assert subprocess.check_output(command, text=True).split() == ["memref", "number", "False"]


def test_kernels_of_both_are_in_one_file(mlir, fake, tmp_path):
    from numba import cuda

    def one(x):
        x[0] = 1

    def other(x):
        x[0] = 2

    def built(*functions):
        return [build(each, "void(float32[::1])") for each in functions]

    autolink.save(tmp_path / "a.kernels", built(cuda.jit(one), mlir.cuda.jit(other)))
    kernels = numba_cuda_autolink.load(tmp_path / "a.kernels")
    for name, size in (("one", 56), ("other", 40)):
        kernels[name][1, 1](array((5,), "f4"))
        assert len(fake.launches[-1].packed) == size
    with pytest.raises(FinishedKernelError, match=r"two kernels are called 'one', with signature"):
        autolink.save(tmp_path / "b.kernels", built(cuda.jit(one), mlir.cuda.jit(one)))


def test_a_bound_kernel_is_loaded_with_its_callbacks(mlir, fake):
    events = []

    class Counted(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("counted", returns=x)

        def __numba_cuda_link__(self, x):
            source = 'extern "C" __device__ float counted(float x) { return x; }'
            yield mlir.cuda.CUSource(
                source,
                setup_callback=lambda module: events.append(("set up", module.handle)),
                teardown_callback=lambda module: events.append(("torn down", module.handle)),
            )

    counted = Counted()

    @mlir.cuda.jit
    def kernel(r, x):
        r[0] = counted(x)

    from numba.cuda.autolink.compilation.context import instead_of_device

    with instead_of_device((9, 0, "")):
        bound = autolink.bind(kernel, "void(float32[::1], float32)")
    for _ in range(2):
        bound[1, 1](array((5,), "f4"), 2.5)
    assert events == [("set up", 1)] and len(fake.launches) == 2
    assert np.frombuffer(fake.launches[0].packed[40:], np.float32) == 2.5
    del bound
    assert events[1:] == [("torn down", 1)] and fake.unloaded == [1]
