# SPDX-License-Identifier: BSD-2-Clause
"""Saving finished kernels: what a file gets from a build, what is refused, and how arguments are passed."""

from __future__ import annotations

import collections
import ctypes
import enum
import json
import os
import struct
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from autolink_support import adder, build, ptx
from fake_driver import DeviceArray
from finished_kernels_support import CupyArray, driver_of
from numba import cuda
from numba.cuda import autolink, dispatcher, types
from numba.cuda.cudadrv.external_code.formats.cubin import cubin_parameters, launch_bounds, ptx_parameters
from numba.cuda.np.numpy_support import from_dtype

import numba_cuda_autolink
from numba_cuda_autolink import ArgumentError, FinishedKernelError
from numba_cuda_autolink.errors import FormatError
from numba_cuda_autolink.finished.kernel_file import KernelFile
from numba_cuda_autolink.plain_types import leaves

RECORD = np.dtype([("a", "u1"), ("b", "f8"), ("c", "f4", (2,))], align=True)
Point = collections.namedtuple("Point", "x y")


class Color(enum.IntEnum):
    BLUE = 7


def scale(x, a):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= a


def nothing(x, y):
    pass


device_function = cuda.jit(device=True)(nothing)


def importable(module):
    """A callback."""


SCALE = "void(float32[::1], float32)"


@pytest.fixture(scope="module")
def scaling():
    return build(scale, SCALE)


class TestAFile:
    def test_has_what_was_built(self, tmp_path):
        path = tmp_path / "a.kernels"
        built = autolink.build(scale, SCALE, cc=[(8, 0), "9.0a"], launch_bounds=128)
        assert [each.cc.arch for each in built] == ["sm_80", "sm_90a"]
        autolink.save(path, [*built, build(scale, "void(float64[:], float64)"), build(nothing, "void(int32, int32)")])
        file = KernelFile(path)
        assert file.names == ("scale", "nothing")
        first, second = file.signatures("scale")
        assert [parameter.name for parameter in first.parameters] == ["x", "a"]
        assert [str(parameter) for parameter in first.parameters] == ["array(float32, 1d, C)", "float32"]
        assert second.text == "(array(float64, 1d, A), float64)"
        for image, linked in zip(first.images, built, strict=True):
            assert file.read(image.code) == linked.code and image.entry == linked.entry_name
            assert (str(image.runs_on), image.launch_bounds, image.shared) == (linked.cc.arch, 128, 0)
            assert image.registers > 0 and not image.cooperative
            assert autolink.Report.from_json(file.read(image.report).decode()) == linked.report
        assert {"numba-cuda", "numba-cuda-autolink", "nvJitLink"} <= set(file.made_by)

    def test_has_the_names_of_parameters_and_kernels_and_callbacks_and_what_calls_brought(self, tmp_path):
        code = cuda.PTXSource(ptx(adder("called")), setup_callback=importable, teardown_callback=importable)
        function = cuda.declare_device("called", "int32(int32)", link=code)

        def keyword_only(x, *, a):
            x[0] = function(a)

        linked = build(keyword_only, "void(int32[::1], int32)", entry_name="other")
        linked.save(tmp_path / "a.kernels")
        file = KernelFile(tmp_path / "a.kernels")
        (signature,) = file.signatures("other")
        (image,) = signature.images
        assert file.names == ("other",) and [parameter.name for parameter in signature.parameters] == ["x", "a"]
        assert image.setup == image.teardown == (f"{__name__}:importable",)
        assert "<unnamed-ptx>" in json.dumps(json.loads(file.read(image.report)))

    def test_of_one_kernel_or_any_number_has_equal_ones_once(self, scaling, tmp_path):
        for form in (scaling, [scaling], (scaling, scaling), iter([scaling])):
            autolink.save(tmp_path / "a.kernels", form)
            (signature,) = KernelFile(tmp_path / "a.kernels").signatures("scale")
            assert len(signature.images) == 1

    def test_has_ptx(self, tmp_path):
        build(scale, SCALE, output="ptx").save(tmp_path / "a.kernels")
        (signature,) = KernelFile(tmp_path / "a.kernels").signatures("scale")
        assert str(signature.images[0].runs_on) == "compute_90" and signature.images[0].registers is None

    def test_paths_as_bytes_and_wrong_ones(self, scaling, tmp_path):
        scaling.save(bytes(tmp_path / "a.kernels"))
        autolink.write_header(bytes(tmp_path / "a.h"), scaling)
        assert list(numba_cuda_autolink.load(bytes(tmp_path / "a.kernels"))) == ["scale"]
        for path in ("", bytes(tmp_path / "missing" / "a.kernels")):
            with pytest.raises(FileNotFoundError, match=f"'{os.fsdecode(path)}'"):
                scaling.save(path)
        for write in (autolink.save, autolink.write_header):
            with pytest.raises(TypeError):
                write(scaling, tmp_path / "in the wrong order")

    @pytest.mark.parametrize("write", [autolink.save, autolink.write_header])
    @pytest.mark.parametrize(
        ("make", "got", "todo"),
        [
            (lambda one: 3, "int 3", "pass a path, and then what"),
            (lambda one: None, "None", "pass a path"),
            (lambda one: "a.kernels", "str 'a.kernels'", "pass a path"),
            (lambda one: [one, 3], "int 3, item 2 of a list", "pass a path"),
            (lambda one: [one, "x"], "str 'x', item 2 of a list", "pass a path"),
            (lambda one: [[one]], "list [<LinkedKernel ", "build(..., cc=[...]) returns a list: join lists"),
            (lambda one: {"scale": one}, "str 'scale', item 1 of a list", "pass a path"),
            (lambda one: scale, "function <function scale", "build it first"),
            (lambda one: [cuda.jit(scale)], "CUDADispatcher ", "build it first"),
        ],
    )
    def test_what_was_not_built_is_a_type_error(self, scaling, write, make, got, todo, tmp_path):
        with pytest.raises(TypeError, match=rf"^{write.__name__}\(\) expects what build\(\) returned\n") as caught:
            write(tmp_path / "a", make(scaling))
        assert f"\n  got: {got}" in str(caught.value) and f"\n  what to do: {todo}" in str(caught.value)
        assert not list(tmp_path.iterdir())


def calling_back():
    function = cuda.declare_device(
        "called", "int32(int32)", link=cuda.PTXSource(ptx(adder("called")), setup_callback=lambda module: None)
    )

    def kernel(x):
        x[0] = function(x[0])

    return build(kernel)


def with_nrt(linked):
    return replace(linked, launch_facts=replace(linked.launch_facts, needs_nrt=True))


class TestWhatCannotBeSaved:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda _: build(scale, SCALE, output="ltoir"), "it was built with output='ltoir'"),
            (lambda _: build(scale, SCALE, debug=True, opt=False), r"raises exceptions \(debug=True\)"),
            (lambda _: build(nothing, "void(int32, int32)", extensions=[object()]), "pass through extensions="),
            (
                lambda _: build(nothing, types.void(types.literal(3), types.int32)),
                "parameter 'x' cannot be passed: its value is part of the code\n  type: Literal",
            ),
            (
                lambda _: build(nothing, types.void(types.Dispatcher(device_function), types.int32)),
                "parameter 'x' cannot be passed: it has no value at run time",
            ),
            (lambda _: calling_back(), r"a callback .* be imported by a name\n  callback: <function .*lambda"),
            (with_nrt, r"reference counting \(NRT\)"),
            (
                lambda linked: replace(build(scale, "void(float64[::1], float64)"), launch_facts=linked.launch_facts),
                r"its code takes other parameters.*\n  expected: .* 4 \(bytes\)\n  got: .* 8 \(bytes\)",
            ),
            (
                lambda linked: replace(linked, entry_name="missing"),
                "the parameters cannot be read from its code: it has no notes on a kernel missing",
            ),
            (lambda _: [], "there are no kernels to save"),
        ],
    )
    def test_is_refused_with_the_reason(self, scaling, make, message, tmp_path):
        with pytest.raises(FinishedKernelError, match=message) as caught:
            autolink.save(tmp_path / "a.kernels", make(scaling))
        assert not list(tmp_path.iterdir())
        assert len(str(caught.value).splitlines()[0]) < 120


# How arguments are passed

# By name: the type of a parameter, and a value as numba-cuda's own launch takes it.
PASSED = {
    "int8": (types.int8, -5),
    "uint16": (types.uint16, 65535),
    "int32": (types.int32, -7),
    "uint64": (types.uint64, 2**64 - 1),
    "float16": (types.float16, np.float16(0.3337)),
    "float16 that is too large": (types.float16, 1e30),
    "float32": (types.float32, 0.1),
    "float32 that is too large": (types.float32, 1e300),
    "float64": (types.float64, -1e300),
    "boolean": (types.boolean, True),
    "complex64": (types.complex64, 1.5 - 2.25j),
    "complex128": (types.complex128, 0.1 + 1e200j),
    "datetime64": (types.NPDatetime("ms"), np.datetime64(1234567, "ms")),
    "timedelta64": (types.NPTimedelta("ns"), np.timedelta64(-5, "ns")),
    "enum": (types.IntEnumMember(Color, types.int64), Color.BLUE),
    "pointer": (types.CPointer(types.float32), 0x1234567890),
    "tuple": (types.Tuple((types.int8, types.UniTuple(types.float64, 2))), (-3, (1.5, 2.5))),
    "named tuple": (types.NamedTuple((types.float32, types.int64), Point), Point(1.5, 9)),
    "empty tuple": (types.Tuple(()), ()),
    "tuple with an array": (types.Tuple((types.int32[::1], types.int8)), (np.zeros(5, "i4"), 3)),
    "vector": (types.float32[::1], np.zeros(7, "f4")),
    "matrix": (types.complex128[:, ::1], np.zeros((3, 5), "c16")),
    "matrix of Fortran": (types.int16[::1, :], np.zeros((5, 3), "i2").T),
    "strided": (types.float64[:, :, :], np.zeros((4, 6, 8))[:, ::2, 1:3]),
    "no dimension": (types.Array(types.uint8, 0, "C"), np.zeros((), "u1")),
    "empty": (types.float32[:, ::1], np.zeros((0, 3), "f4")),
    "array of bool": (types.boolean[::1], np.zeros(3, "?")),
    "array of datetime64": (types.Array(types.NPDatetime("D"), 1, "C"), np.zeros(3, "M8[D]")),
    "records": (from_dtype(RECORD)[::1], np.zeros(3, RECORD)),
    "record": (from_dtype(RECORD), np.zeros((), RECORD)),
}


def as_numba_cuda_passes(numba_type, value) -> list[bytes]:
    """The bytes of each parameter in numba-cuda's own launch."""

    def on_device(each):
        if not isinstance(each, np.ndarray):
            return tuple(map(on_device, each)) if isinstance(each, tuple) else each
        flags = SimpleNamespace(strides_in_bytes=each.strides, is_contiguous_c=True, is_contiguous_f=True)
        view = SimpleNamespace(ptr=0x7000, shape=each.shape, dtype=each.dtype, size=each.size, _layout=flags)
        return SimpleNamespace(__cuda_memory__=True, _strided_memory_view_shim=view)

    values: list[object] = []
    kernel = SimpleNamespace(extensions=[])
    kernel._prepare_args = lambda *args: dispatcher._Kernel._prepare_args(kernel, *args)
    kernel._prepare_args(numba_type, on_device(value), 0, [], values)
    return [_bytes(each) for each in values]


def _bytes(value) -> bytes:
    """What cuda.core's launch makes of a value."""
    if isinstance(value, bool):
        return struct.pack("<?", value)
    if isinstance(value, int):
        return struct.pack("<Q", value & (2**64 - 1))
    return bytes(value) if isinstance(value, ctypes._SimpleCData) else value.tobytes()


def shown(value):
    """The argument for a launch without numba-cuda: arrays through the array interface."""
    if isinstance(value, tuple):
        return tuple(map(shown, value))
    if not isinstance(value, np.ndarray):
        return value
    descr = {"descr": value.dtype.descr} if value.dtype.names else {}
    return DeviceArray(0x7000, value.shape, value.dtype.str, strides=value.strides, **descr)


@pytest.fixture(scope="module")
def passing(tmp_path_factory):
    """A file with a kernel for each of `PASSED`, and the builds."""
    path = tmp_path_factory.mktemp("passed") / "a.kernels"
    built = {
        name: build(nothing, types.void(types.int8, numba_type), entry_name=f"k{number}")
        for number, (name, (numba_type, _)) in enumerate(PASSED.items())
    }
    autolink.save(path, built.values())
    return path, built


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("name", PASSED)
def test_arguments_are_passed_as_numba_cuda_passes_them(passing, name):
    path, built = passing
    numba_type, value = PASSED[name]
    layout = cubin_parameters(built[name].code, built[name].entry_name)
    parameters = KernelFile(path).signatures(built[name].entry_name)[0].parameters
    assert layout == tuple((leaf.offset, leaf.size) for leaf in leaves(parameters)), "that of C"
    with driver_of() as fake:
        kernel = numba_cuda_autolink.load(path)[built[name].entry_name]
        for _ in range(2):
            kernel[1, 1](1, shown(value))
        (first, second) = fake.launches
    expected = [b"\x01", *as_numba_cuda_passes(numba_type, value)]
    got = [first.packed[offset : offset + size] for offset, size in layout]
    assert [len(each) for each in got] == [len(each) for each in expected]
    assert got == expected
    assert second.packed == first.packed


@pytest.mark.parametrize("name", ["vector", "tuple", "complex64", "record", "none of them"])
def test_the_layout_of_ptx_is_that_of_the_cubin(name):
    numba_type = PASSED[name][0] if name in PASSED else types.none
    signature = types.void(types.int8, numba_type)
    cubin, text = build(nothing, signature), build(nothing, signature, output="ptx")
    assert ptx_parameters(text.code, text.entry_name) == cubin_parameters(cubin.code, cubin.entry_name)


def test_more_than_4_kb_of_parameters():
    linked = build(nothing, types.void(types.int8, types.UniTuple(types.int64, 600)), launch_bounds=(96, 2))
    layout = cubin_parameters(linked.code, linked.entry_name)
    assert layout == ((0, 1), *((8 * number, 8) for number in range(1, 601)))
    assert launch_bounds(linked.code, linked.entry_name) == 96


def test_code_that_has_no_such_kernel():
    with pytest.raises(FormatError, match="it has no kernel missing"):
        ptx_parameters(ptx(adder("f")), "missing")


@pytest.mark.parametrize(
    ("name", "value", "got"),
    [
        ("int8", 128, "int 128, which is not between -128 and 127"),
        ("int8", 1.0, "float 1.0"),
        ("uint64", -1, "int -1, which is not between 0 and 18446744073709551615"),
        ("float32", "1", "str '1'"),
        ("float32", 1j, "complex 1j"),
        ("float32", 10**400, "int 1000000000"),
        ("float64", -(10**400), "int -100000000"),
        ("complex64", 10**400, "int 1000000000"),
        ("float64", DeviceArray(), "DeviceArray <"),
        ("boolean", 2, "int 2"),
        ("complex64", "x", "str 'x'"),
        ("datetime64", np.datetime64(1, "s"), "datetime64 "),
        ("datetime64", True, "bool True"),
        ("timedelta64", np.timedelta64(1, "s"), "timedelta64 "),
        ("int32", np.timedelta64(5, "s"), "timedelta64 "),
        ("float64", np.timedelta64(5, "s"), "timedelta64 "),
        ("complex64", np.timedelta64(5, "s"), "timedelta64 "),
        ("pointer", np.timedelta64(5, "s"), "timedelta64 "),
        ("boolean", np.timedelta64(1, "s"), "timedelta64 "),
        ("vector", DeviceArray(typestr=">f4"), "array(big-endian float32, 1d, C)"),
        ("array of datetime64", DeviceArray(typestr="<M8[ns]"), "array(datetime64[ns], 1d, C)"),
        ("tuple", (1,), "a tuple of 1"),
        ("tuple", [1, (2.0, 3.0)], "list [1, (2.0, 3.0)]"),
        ("tuple", (1, (2.0, "x")), "str 'x'"),
        ("record", np.zeros((), RECORD), "ndarray in host memory"),
        ("record", np.zeros(1, RECORD)[0], "void in host memory"),
        ("record", DeviceArray(typestr="<f8"), "array(float64, 1d, C)"),
        ("record", DeviceArray(typestr="|u1", shape=(23,)), "array(uint8, 1d, C)"),
        ("records", DeviceArray(typestr="|V24", shape=(3,)), "array(|V24, 1d, C)"),
        ("pointer", 1.5, "float 1.5"),
        ("pointer", -1, "int -1, which is not an address"),
        ("pointer", 2**64, "int 18446744073709551616, which is not an address"),
        ("matrix of Fortran", DeviceArray(typestr="<i2", shape=(3, 5)), "array(int16, 2d, C)"),
    ],
)
def test_a_value_that_does_not_fit(passing, name, value, got):
    path, built = passing
    with driver_of(), pytest.raises(ArgumentError, match="argument 2, 'y") as caught:
        numba_cuda_autolink.load(path)[built[name].entry_name][1, 1](1, value)
    assert f"\n  got: {got}" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "packed"),
    [
        ("boolean", np.True_, b"\x01"),
        ("boolean", 0, b"\x00"),
        ("float32", 3, struct.pack("<f", 3)),
        ("float32", np.float64(0.5), struct.pack("<f", 0.5)),
        ("int32", True, struct.pack("<i", 1)),
        ("int32", np.uint8(200), struct.pack("<i", 200)),
        ("complex64", 3, struct.pack("<ff", 3, 0)),
        ("datetime64", 5, struct.pack("<q", 5)),
        ("datetime64", np.int32(5), struct.pack("<q", 5)),
        ("pointer", CupyArray(0x300), struct.pack("<q", 0x300)),
        ("record", DeviceArray(0x400, (24,), "|u1"), struct.pack("<q", 0x400)),
        ("record", DeviceArray(0x400, (), "|V24", descr=RECORD.descr), struct.pack("<q", 0x400)),
        ("enum", 7, struct.pack("<q", 7)),
    ],
)
def test_values_of_other_types_that_fit(passing, name, value, packed):
    path, built = passing
    with driver_of() as fake:
        numba_cuda_autolink.load(path)[built[name].entry_name][1, 1](1, value)
        assert fake.launches[0].packed.endswith(packed)


def test_loading_and_launching_imports_neither_numba_nor_a_compiler(tmp_path, passing):
    path, built = passing
    support = next(each for each in sys.path if each.endswith("support"))
    code = f"""
import sys
sys.path.insert(0, {support!r})
import numba_cuda_autolink
library = numba_cuda_autolink.load({str(path)!r})
from fake_driver import DeviceArray, FakeDriver
import cuda.bindings
cuda.bindings.driver = FakeDriver()
library[{built["vector"].entry_name!r}][1, 1](1, DeviceArray())
assert len(cuda.bindings.driver.launches) == 1
print(*sorted(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"numba", "numba_cuda", "llvmlite", "numpy", "cupy", "torch", "dataclasses"})
    modules = set(done.stdout.split())
    assert modules.isdisjoint({"cuda.core", "cuda.bindings.nvrtc", "cuda.bindings.nvjitlink", "cuda.bindings.nvvm"})
