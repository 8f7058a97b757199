# SPDX-License-Identifier: BSD-2-Clause
"""Launches of finished kernels, with a driver that only remembers them."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import re
import struct
import sys
import threading
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from fake_driver import CUresult, DeviceArray
from finished_kernels_support import NUMBER, VECTOR, CupyArray, driver_of, image, signature

from numba_cuda_autolink import ArgumentError, KernelFileError, KernelLibrary, LaunchError
from numba_cuda_autolink.finished.kernel_file import CodeFor, Signature, best
from numba_cuda_autolink.plain_types import Parameter


def packed(fake):
    """The values of the last launch of ``scale``."""
    return struct.unpack("<7q f", fake.launches[-1].packed)


class TestTheLibrary:
    def test_kernels_by_name(self, library, fake):
        made = library(scale=[signature()], **{"for": [signature()]})
        assert made.scale is made["scale"] and list(made) == ["scale", "for"] and len(made) == 2
        assert "for" in made and "x" not in made and {"scale", "for"} <= set(dir(made))
        assert {"scale", "for"} <= set(made._ipython_key_completions_())
        assert repr(made.scale) == "<kernel scale(array(float32, 1d, C), float32)>"
        assert fake.loaded == []

    @pytest.mark.parametrize("name", ["scael", 3, ("scale",), ["scale"], None])
    def test_a_name_that_is_not_there(self, library, name):
        made = library()
        assert name not in made
        for look in (made.describe, made.__getitem__):
            with pytest.raises(KeyError, match="has no kernel") as caught:
                look(name)
            assert ("did you mean scale?" in str(caught.value)) == ("sca" in str(name))
        if isinstance(name, str):
            with pytest.raises(AttributeError, match=r"has no kernel 'scael'; did you mean scale\?"):
                getattr(made, name)

    @pytest.mark.parametrize("name", ["close", "describe", "_file", "__len__", "_private", "no name"])
    def test_any_name_is_found_in_brackets(self, library, fake, name):
        made = library(**{name: [signature()]})
        made[name][1, 32](DeviceArray(), 2.0)
        assert len(fake.launches) == 1 and made.describe(name) and list(made) == [name]
        if name == "_private":
            with pytest.raises(AttributeError, match=r"a kernel of this name is library\['_private'\]"):
                getattr(made, name)
        made.close()

    def test_libraries_and_kernels_are_not_pickled_or_copied(self, library):
        for value in (library(), library().scale):
            for make in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(TypeError, match=r"cannot be pickled or copied; load .* in each process"):
                    make(value)

    def test_what_a_kernel_is_made_of(self, library):
        made = library(scale=[signature(registers=12, report=b'{"format": "x"}')])
        (described,) = made.describe("scale")
        rows = re.findall(r"^``(\w+)`` ", inspect.getdoc(KernelLibrary.describe), re.MULTILINE)
        assert sorted(described) == sorted(rows)
        assert described["signature"] == "(array(float32, 1d, C), float32)" and described["runs_on"] == "sm_90"
        assert (described["registers"], described["report"]) == (12, {"format": "x"})
        assert made.made_by == {"numba-cuda": "1.2.3"}

    def test_code_is_loaded_by_the_first_launch_and_unloaded_by_close_or_with_the_last_one(self, library, fake):
        with library(scale=[signature()], other=[signature()]) as made:
            launch = made.scale[1, 32]
            for _ in range(3):
                launch(DeviceArray(), 2.0)
            assert fake.loaded == [b"code"]
        assert fake.unloaded == [1]
        with pytest.raises(LaunchError, match="scale was closed with its library"):
            launch(DeviceArray(), 2.0)
        launch = library().scale[1, 32]
        launch(DeviceArray(), 2.0)
        gc.collect()
        assert fake.unloaded == [1]
        del launch
        gc.collect()
        assert fake.unloaded == [1, 2]


class TestTheArchitecture:
    @pytest.mark.parametrize(
        ("device", "expected"),
        [
            ((8, 0), "sm_80"),
            ((8, 9), "sm_86"),
            ((9, 0), "sm_90a"),
            ((7, 5), None),
            ((10, 0), "sm_100f"),
            ((10, 3), "sm_100f"),
            ((12, 0), "compute_90"),
        ],
    )
    def test_the_best_for_a_device(self, device, expected):
        codes = [
            CodeFor(8, 0, "", "cubin"),
            CodeFor(8, 6, "", "cubin"),
            CodeFor(9, 0, "", "cubin"),
            CodeFor(9, 0, "a", "cubin"),
            CodeFor(10, 0, "f", "cubin"),
            CodeFor(9, 0, "", "ptx"),
            CodeFor(9, 0, "a", "ptx"),
        ]
        number = best(codes, device)
        assert (number if number is None else str(codes[number])) == expected

    def test_none_fits(self, library):
        with driver_of(capability=(8, 0)), pytest.raises(LaunchError) as caught:
            library().scale[1, 32](DeviceArray(), 2.0)
        message = str(caught.value)
        assert message.startswith("scale has no code for this GPU, of compute capability 8.0\n  called at: ")
        assert "it has: sm_90" in message and "cc=[..., (8, 0)]" in message


class TestTheConfiguration:
    def test_is_the_drivers(self, library, fake):
        library().scale[[np.int64(2), 3], (4, 5, 6), 7, 100](DeviceArray(), 2.0)
        config = fake.launches[-1].config
        assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (2, 3, 1)
        assert (config.blockDimX, config.blockDimY, config.blockDimZ) == (4, 5, 6)
        assert (config.hStream, config.sharedMemBytes, config.attrs) == (7, 100, [])

    @pytest.mark.parametrize(
        ("how", "message"),
        [
            ((0, 32), "grid 0"),
            ((-1, 32), "grid -1"),
            ((True, 32), "grid True"),
            (((1, True), 32), r"grid \(1, True\)"),
            ((1, 0), "block 0"),
            ((1.5, 32), "grid 1.5"),
            (("1", 32), "grid '1'"),
            (((1, 1, 1, 1), 32), r"grid \(1, 1, 1, 1\)"),
            (((), 32), r"grid \(\)"),
            ((2**31, 32), "grid 2147483648"),
            (((1, 65536), 32), r"grid \(1, 65536\)"),
            ((1, 1025), "block 1025"),
            ((1, (1, 1, 65)), r"block \(1, 1, 65\)"),
            ((1, (32, 33)), r"a block of \(32, 33, 1\)"),
            ((1, 32, 0, -1), "-1 as shared memory"),
            ((1, 32, 0, 1.5), "1.5 as shared memory"),
            ((1,), r"\[\(1,\)\]"),
            (1, r"\[1\]"),
            ((1, 2, 3, 4, 5), r"\[\(1, 2, 3, 4, 5\)\]"),
            (None, "no grid and block"),
        ],
    )
    def test_that_is_not_possible(self, library, fake, how, message):
        with pytest.raises(LaunchError, match=f"scale cannot be launched with {message}\n  called at: {__file__}"):
            library().scale[how] if how else library().scale(DeviceArray(), 2.0)

    def test_too_many_threads_for_the_kernel(self, library):
        with driver_of(max_threads=64), pytest.raises(LaunchError, match="with 65 threads in a block"):
            library().scale[1, 65](DeviceArray(), 2.0)

    def test_shared_memory_beyond_48_kb_is_asked_for_once(self, library):
        with driver_of(static_shared=1024) as fake:
            kernel = library().scale
            kernel[1, 32, 0, 47 << 10](DeviceArray(), 2.0)
            assert fake.attributes == []
            for size in (48 << 10, 100 << 10, 60 << 10):
                kernel[1, 32, 0, size](DeviceArray(), 2.0)
            asked = [(name, value) for _, name, value in fake.attributes]
            assert asked == [("MAX_DYNAMIC_SHARED_SIZE_BYTES", size << 10) for size in (48, 100)]
            with pytest.raises(LaunchError, match=r"dynamic shared memory\n(.*\n){3}  expected: at most 231424"):
                kernel[1, 32, 0, 227 << 10](DeviceArray(), 2.0)

    def test_options_and_what_the_kernel_says_are_launch_attributes(self, library, fake):
        kernel = library().scale
        launch = kernel.configure(8, 32, stream=5, shared=64, cooperative=True, cluster=(2, 1), programmatic=True)
        launch(DeviceArray(), 2.0)
        one, two, three = fake.launches[-1].config.attrs
        assert (one.id, one.value.cooperative) == ("CU_LAUNCH_ATTRIBUTE_COOPERATIVE", 1)
        assert two.id == "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"
        assert two.value.programmaticStreamSerializationAllowed == 1
        size = three.value.clusterDim
        assert (three.id, size.x, size.y, size.z) == ("CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION", 2, 1, 1)
        assert fake.launches[-1].config.numAttrs == 3 and fake.attributes == []
        kernel.configure(16, 32, cluster=16)(DeviceArray(), 2.0)
        assert [name for _, name, _ in fake.attributes] == ["NON_PORTABLE_CLUSTER_SIZE_ALLOWED"]
        with pytest.raises(LaunchError, match=r"a grid of \(3, 1, 1\) in clusters of \(2, 1, 1\)"):
            kernel.configure(3, 32, cluster=2)
        library(scale=[signature(cooperative=True, carveout=30)]).scale[1, 32](DeviceArray(), 2.0)
        assert fake.launches[-1].config.attrs[0].id == "CU_LAUNCH_ATTRIBUTE_COOPERATIVE"
        assert fake.attributes[-1][1:] == ("PREFERRED_SHARED_MEMORY_CARVEOUT", 30)

    def test_clusters_need_a_device_that_has_them(self, library):
        with driver_of(capability=(8, 0)):
            kernel = library(scale=[signature(runs_on=(8, 0, "", "cubin"))]).scale
            with pytest.raises(LaunchError, match=r"expected: compute capability 9\.0 or later"):
                kernel.configure(2, 32, cluster=2)(DeviceArray(), 2.0)


OF_ITSELF = SimpleNamespace()
OF_ITSELF.stream = OF_ITSELF


class TestStreams:
    @pytest.mark.parametrize(
        ("stream", "handle"),
        [
            (None, 0),
            (0, 0),
            (2, 2),
            (np.int64(77), 77),
            (SimpleNamespace(__cuda_stream__=lambda: (0, 11)), 11),
            (SimpleNamespace(__cuda_stream__=(0, 12)), 12),
            (SimpleNamespace(cuda_stream=13), 13),
            (SimpleNamespace(ptr=14), 14),
            (SimpleNamespace(handle=15), 15),
            (SimpleNamespace(stream=SimpleNamespace(ptr=16)), 16),
        ],
    )
    def test_of_each_library(self, library, fake, stream, handle):
        library().scale[1, 32, stream](DeviceArray(), 2.0)
        assert fake.launches[-1].config.hStream == handle

    @pytest.mark.parametrize(
        "stream",
        [
            -1,
            2**64,
            SimpleNamespace(__cuda_stream__=lambda: 5),
            SimpleNamespace(__cuda_stream__=lambda: (1, 5)),
            SimpleNamespace(__cuda_stream__=lambda: 1 / 0),
            SimpleNamespace(__cuda_stream__=lambda: (0, -3)),
            SimpleNamespace(ptr="x"),
            type("Stream", (), {"ptr": 3}),
            *(DeviceArray(), "0", 1.0, True, object(), OF_ITSELF),
        ],
    )
    def test_what_is_none(self, library, fake, stream):
        why = r"(.|\n)*it raised: RecursionError" if stream is OF_ITSELF else ""
        with pytest.raises(
            LaunchError, match=f"^a stream is needed, got {type(stream).__name__} .*\n  called at: {why}"
        ):
            library().scale[1, 32, stream]

    def test_objects_are_not_kept(self, library, fake):
        class Stream:
            ptr = 3

        stream, kernel = Stream(), library().scale
        kernel[1, 32, stream](DeviceArray(), 2.0)
        gone = weakref.ref(stream)
        del stream
        assert gone() is None
        assert kernel[1, 32] is kernel[1, 32]

    @pytest.mark.parametrize(
        ("stream", "producer", "waits"),
        [(0, None, []), (0, 1, []), (5, 5, []), (5, 6, [(5, 6)]), (5, 1, [(5, 1)]), (0, 2, [(0, 2)])],
    )
    def test_a_launch_waits_for_the_stream_of_an_array_interface(self, library, fake, stream, producer, waits):
        library().scale[1, 32, stream](DeviceArray(stream=producer), 2.0)
        assert fake.waits == waits


class TestArguments:
    @pytest.mark.parametrize(
        ("argument", "got"),
        [
            (DeviceArray(typestr="<f8"), "array(float64, 1d, C)"),
            (DeviceArray(shape=(2, 4)), "array(float32, 2d, C)"),
            (DeviceArray(strides=(8,)), "array(float32, 1d, A)"),
            (DeviceArray(data=(0x7000, True)), "read-only array(float32, 1d, C)"),
            (DeviceArray(pointer=0), "array(float32, 1d, C) whose memory was freed"),
            (DeviceArray(pointer=0x666), "array(float32, 1d, C) whose memory was freed, or is not the device's"),
            (DeviceArray(mask=DeviceArray()), "a masked array"),
            (np.zeros(8, "f4"), "ndarray in host memory"),
            (CupyArray(dtype="i4"), "array(int32, 1d, C)"),
            (CupyArray(shape=(2, 2)), "array(float32, 2d, C)"),
            ([1.0, 2.0], "list [1.0, 2.0]"),
            (None, "None"),
            (7, "int 7"),
        ],
    )
    def test_an_array_that_does_not_fit(self, library, fake, argument, got):
        fake.memory = {0x7000: 0}
        launch = library().scale[1, 32]
        for good in (DeviceArray(), CupyArray()):
            launch(good, 2.0)
            with pytest.raises(ArgumentError) as caught:
                launch(argument, 2.0)
            first, at, source, caret, *others = str(caught.value).splitlines()
            assert first == "scale: argument 1, 'x', does not fit"
            assert at.startswith(f"  called at: {__file__}:")
            assert [source, caret] == ["      launch(argument, 2.0)", "      ^^^^^^^^^^^^^^^^^^^^^"]
            assert others[:2] == ["  expected: array(float32, 1d, C)", f"  got: {got}"]
            converted = "  what to do: pass an array of float32, or build the kernel for its type, too"
            assert (converted in others) == (got in ("array(float64, 1d, C)", "array(int32, 1d, C)"))
        assert len(fake.launches) == 2

    @pytest.mark.parametrize(
        ("field", "values"),
        {
            "data": (None, 0x7000, (0x7000,), ("0x7000", False), (-1, False), (2**64, False)),
            "shape": (None, 8, (-1,), (1.5,), ("8",)),
            "strides": (4, (4, 4), (None,), (2**64,)),
            "typestr": (None, np.dtype("f4"), "", "f", "float32", "<fx"),
            "stream": ("1", -5, 2**64),
            "descr": ([("", "|V4"), 3],),
        }.items(),
    )
    def test_a_malformed_array_interface_is_an_error_of_its_argument(self, library, fake, field, values):
        launch = library().scale[1, 32]
        for value in values:
            array = DeviceArray(**({"typestr": "|V8"} if field == "descr" else {}))
            array.__cuda_array_interface__[field] = value
            with pytest.raises(ArgumentError, match=r"^scale: argument 1, 'x', does not fit\n") as caught:
                launch(array, 2.0)
            assert "got: DeviceArray that does not show its memory: " in str(caught.value)

    def test_an_argument_that_raises(self, library, fake):
        class Raises:
            @property
            def __cuda_array_interface__(self):
                raise RuntimeError("not computed\nyet")

        class RaisesLate:
            __dlpack_device__ = staticmethod(lambda: (2, 0))

            def __dlpack__(self, stream):
                raise BufferError("not exported")

        class HasNoRepr:
            def __repr__(self):
                raise ValueError("no")

        class Broken(float):
            def __float__(self):
                raise RuntimeError("no")

        for name, arguments, got in [
            ("x", (Raises(), 2.0), "Raises that does not show its memory: RuntimeError: not computed"),
            ("x", (RaisesLate(), 2.0), "RaisesLate that does not show its memory: BufferError: not exported"),
            ("x", (HasNoRepr(), 2.0), "HasNoRepr"),
            ("a", (DeviceArray(), Broken(1.0)), "Broken 1.0, whose value cannot be read: RuntimeError"),
        ]:
            for launch in (library().scale[1, 32], library(scale=[signature(), signature(VECTOR)]).scale[1, 32]):
                with pytest.raises(ArgumentError, match=rf"argument \d, '{name}', ") as caught:
                    launch(*arguments)
                assert caught.value.got == got

    def test_the_error_has_its_parts(self, library, fake):
        with pytest.raises(ArgumentError) as caught:
            library().scale[1, 32](np.zeros(8, "f4"), 2.0)
        error = caught.value
        assert (error.position, error.parameter, error.expected) == (1, "x", "array(float32, 1d, C)")
        assert (error.got, error.remedy[:4]) == ("ndarray in host memory", "copy")
        assert vars(pickle.loads(pickle.dumps(error))) == vars(error)

    @pytest.mark.parametrize("devices", [1, 2])
    @pytest.mark.parametrize("signatures", [[signature()], [signature(), signature(VECTOR)]])
    def test_keywords_are_refused(self, library, devices, signatures):
        with (
            driver_of(devices=devices),
            pytest.raises(ArgumentError, match=r"^scale takes its arguments by position, got a=, b="),
        ):
            library(scale=signatures).scale[1, 32](DeviceArray(), a=2.0, b=1)

    def test_an_empty_array_has_no_memory(self, library, fake):
        library().scale[1, 32](DeviceArray(pointer=0, shape=(0,)), 2.0)
        assert packed(fake) == (0, 0, 0, 4, 0, 0, 4, 2.0)

    def test_a_wrong_number_of_arguments(self, library, fake):
        for arguments in ((), (DeviceArray(),), (DeviceArray(), 1.0, 2.0)):
            with pytest.raises(ArgumentError, match=f"scale takes 2 arguments, got {len(arguments)}"):
                library().scale[1, 32](*arguments)

    def test_an_error_leaves_the_next_launch_right(self, library, fake):
        launch = library().scale[1, 32]
        one, two = CupyArray(0x100, (5,)), CupyArray(0x200, (6,))
        launch(one, 1.0)
        with pytest.raises(ArgumentError):
            launch(two, "x")
        launch(one, 1.0)
        assert packed(fake) == (0, 0, 5, 4, 0x100, 5, 4, 1.0)

    def test_the_number_that_was_passed_is_passed(self, library, fake):
        launch, array = library().scale[1, 32], CupyArray()
        for number in (1.0, 1.0, np.float32(2), 3, True, 0.0, -0.0, 5.0):
            launch(array, number)
            assert struct.pack("<f", packed(fake)[-1]) == struct.pack("<f", number)

    def test_a_buffer_of_cuda_core_is_bytes(self, library, fake):
        Buffer = type("Buffer", (SimpleNamespace,), {"__module__": "cuda.core._memory"})
        library().scale[1, 32](Buffer(handle=0x9000, size=40), 2.0)
        assert packed(fake) == (0, 0, 10, 4, 0x9000, 10, 4, 2.0)
        for size, handle, message in ((42, 0x9000, "42 bytes"), (0, 0, "a buffer that was closed")):
            with pytest.raises(ArgumentError, match=f"got: {message}"):
                library().scale[1, 32](Buffer(handle=handle, size=size), 2.0)

    def test_dlpack(self, library, fake):
        class Device:
            def __init__(self, array, kind=2):
                self._array, self._kind = array, kind

            def __dlpack__(self, stream):
                assert stream == 1
                return self._array.__dlpack__()

            def __dlpack_device__(self):
                return self._kind, 0

        array = np.zeros(6, "f4")
        with pytest.raises(ArgumentError, match="Device in host memory"):
            library().scale[1, 32](Device(array, kind=1), 2.0)
        library().scale[1, 32](Device(array), 2.0)
        assert packed(fake) == (0, 0, 6, 4, array.ctypes.data, 6, 4, 2.0)


class TestWhatIsWritten:
    def test_an_array_that_is_the_same_is_not_read_again_unless_it_changed_and_not_kept(self, library, fake):
        launch, one, two = library().scale[1, 32], CupyArray(0x100, (5,)), CupyArray(0x200, (6,))
        for array in (one, one, one, two, two, one):
            launch(array, 2.0)
            assert packed(fake) == (0, 0, array.size, 4, array.data._pointer, array.size, 4, 2.0)
        assert one.reads == 3 and two.reads == 1
        one.shape = (5, 1)
        with pytest.raises(ArgumentError, match=r"array\(float32, 2d, C\)"):
            launch(one, 2.0)
        launch(two, 2.0)
        gone = weakref.ref(two)
        del two, array
        assert gone() is None
        with pytest.raises(ArgumentError, match="got: None"):  # what a dead reference gives is no argument
            launch(None, 2.0)

    @pytest.mark.parametrize("layout", "CFA")
    def test_matrices(self, library, fake, layout):
        launch = library(scale=[signature(Parameter("array", "x", "<f4", 2, layout))]).scale[1, 32]
        base = np.zeros((4, 6), "f4")
        shapes = {"C": [base, base[:2], base], "F": [base.T, base.T[:, :2]], "A": [base, base[:, ::2], base.T, base]}
        for array in shapes[layout]:
            made = CupyArray(0x300, array.shape)
            made.strides, made.flags = array.strides, array.flags
            made._c_contiguous, made._f_contiguous = array.flags.c_contiguous, array.flags.f_contiguous
            for _ in range(2):
                launch(made)
                values = struct.unpack("<9q", fake.launches[-1].packed)
                assert values == (0, 0, array.size, 4, 0x300, *array.shape, *array.strides)


class TestDevices:
    def test_each_device_loads_its_own_code(self, library):
        with driver_of(devices=2) as fake:
            launch = library().scale[1, 32]
            for device in (0, 1, 1, 0):
                fake.context = 0x100 + device
                launch(CupyArray(device=device), 2.0)
                assert fake.launches[-1].function[2] == fake.context
            assert len(fake.loaded) == 2

    @pytest.mark.parametrize("make", [lambda: CupyArray(device=0), lambda: DeviceArray()])
    def test_an_array_of_another_device(self, library, make):
        with driver_of(devices=2) as fake:
            fake.memory = {0x7000: 0}
            launch, array = library().scale[1, 32], make()
            for _ in range(3):
                launch(array, 2.0)
            fake.context = 0x101
            with pytest.raises(ArgumentError, match="on device 0\n  what to do: copy it to device 1, or launch on its"):
                launch(array, 2.0)

    def test_a_thread_without_a_context_takes_the_primary_one(self, library, fake):
        launch = library().scale[1, 32]
        launch(CupyArray(), 2.0)
        fake.context = 0
        fake.errors = [CUresult.CUDA_ERROR_INVALID_CONTEXT]
        launch(CupyArray(), 2.0)
        assert fake.context == 0x100 and len(fake.launches) == 2
        fake.errors = [CUresult.CUDA_ERROR_INVALID_CONTEXT]
        with pytest.raises(LaunchError, match="CUDA_ERROR_INVALID_CONTEXT"):
            launch(CupyArray(), 2.0)


def test_cuda_bindings_that_is_not_installed(library, monkeypatch):
    from numba_cuda_autolink.launch import driver

    driver.bindings.cache_clear()
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(LaunchError, match=r"^cuda-bindings, .* cannot be imported: .*\n  what to do: pip install"):
        library().scale[1, 32](DeviceArray(), 2.0)


def test_a_launch_that_the_driver_refuses(library, fake):
    launch = library().scale[1, 32]
    launch(CupyArray(), 2.0)
    fake.errors = [CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES]
    with pytest.raises(LaunchError) as caught:
        launch(CupyArray(), 2.0)
    assert str(caught.value).startswith(
        "the launch of scale failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (what the driver says)\n"
        f"  called at: {__file__}"
    )
    assert pickle.loads(pickle.dumps(caught.value)).code == 701
    assert str(caught.value).endswith("\n  what to do: use fewer threads in a block, or build with max_registers=")
    launch(CupyArray(), 2.0)
    assert len(fake.launches) == 2


def test_threads_do_not_share_what_they_write(library, fake):
    launch = library().scale[1, 32]

    def work(number):
        array = CupyArray(number)
        for _ in range(200):
            launch(array, float(number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fake.launches) == 1600
    counted = [struct.unpack("<7q f", each.packed) for each in fake.launches]
    assert all(values[4] == values[7] for values in counted)


def test_callbacks_run_once_each(library, fake, monkeypatch, tmp_path):
    (tmp_path / "callbacks_of_kernels.py").write_text("calls = []\nset_up = tear_down = calls.append\n")
    monkeypatch.syspath_prepend(tmp_path)
    code = SimpleNamespace(handle=5)
    monkeypatch.setattr("cuda.core.ObjectCode", SimpleNamespace(from_cubin=lambda cubin: code))
    with pytest.raises(KernelFileError, match="needs the callback no_such_module:set_up"):
        library(scale=[signature(setup=("no_such_module:set_up",))]).scale[1, 32](DeviceArray(), 2.0)
    name = "callbacks_of_kernels:set_up"
    with library(scale=[signature(setup=(name,), teardown=(name,))]) as made:
        for _ in range(2):
            made.scale[1, 32](DeviceArray(), 2.0)
        import callbacks_of_kernels

        assert callbacks_of_kernels.calls == [code]
    assert callbacks_of_kernels.calls == [code, code] and fake.unloaded == []


def test_the_image_of_a_signature_is_of_that_signature(library, fake):
    """The offsets are those of the code, which may be others than C's."""
    parameters = (NUMBER, Parameter("number", "b", "<f8"))
    moved = image(parameters)._replace(layout=((0, 4), (16, 8)))
    library(k=[Signature("(float32, float64)", parameters, (moved,))]).k[1, 1](1.0, 2.0)
    assert fake.launches[-1].packed == struct.pack("<f12xd", 1.0, 2.0)
