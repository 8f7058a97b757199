# SPDX-License-Identifier: BSD-2-Clause
"""Variables of device code in loaded modules, with a driver that only remembers what is copied."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from finished_kernels_support import CupyArray, driver_of, signature, write

import numba_cuda_autolink
from numba_cuda_autolink import LaunchError, Variable
from numba_cuda_autolink.plain_types import VariableType, element_type, variable_from_json, variable_to_json

RECORD = np.dtype([("a", "u1"), ("b", "f8"), ("c", "f4", (2,))], align=True)


def variable(dtype="f4", shape=(4,), space="constant", name="table"):
    return Variable(VariableType(name, element_type(np.dtype(dtype)), shape, space))


class Module:
    """Code that is loaded, as numba-cuda hands it to callbacks."""

    def __init__(self, handle):
        self.handle = handle


@pytest.fixture
def fake():
    with driver_of(devices=2) as made:
        made.sizes["table"] = 16
        yield made


def floats(fake, library, context=0x100):
    return np.frombuffer(fake.globals[library, context, "table"], "f4").tolist()


class TestModules:
    def test_a_value_reaches_modules_that_are_loaded_and_those_that_will_be(self, fake):
        table, first, second = variable(), Module(1), Module(2)
        table._load(first)
        assert fake.globals == {}  # zeros already
        table.set(np.arange(4, dtype="f4"))
        table._load(second)
        assert floats(fake, 1) == floats(fake, 2) == [0, 1, 2, 3]
        assert table.get().tolist() == [0, 1, 2, 3]

    def test_a_module_is_set_in_each_context_and_forgotten_when_it_is_unloaded(self, fake):
        table, module = variable(), Module(1)
        table._load(module)
        fake.context = 0x101
        table._load(module)
        table._load(module)
        table.set([5, 6, 7, 8])
        assert fake.copies == [("table", 0)] * 2 and fake.context == 0x101
        assert floats(fake, 1, 0x100) == floats(fake, 1, 0x101) == [5, 6, 7, 8]
        table._unload(module)
        table.set([1, 1, 1, 1])
        assert len(fake.copies) == 2 and table.get().tolist() == [1, 1, 1, 1]

    def test_a_module_is_not_kept(self, fake):
        table, module = variable(), Module(1)
        table._load(module)
        gone = weakref.ref(module)
        del module
        gc.collect()
        table.set([1, 1, 1, 1])
        assert gone() is None and fake.copies == []

    def test_one_device_alone(self, fake):
        table, module = variable(), Module(1)
        table._load(module)
        table.set([1, 2, 3, 4])
        table.set([9, 9, 9, 9], device=1)
        fake.context = 0x101
        table._load(module)
        assert floats(fake, 1, 0x101) == [9, 9, 9, 9] and floats(fake, 1, 0x100) == [1, 2, 3, 4]
        assert table.get().tolist() == [9, 9, 9, 9] and table.get(device=0).tolist() == [1, 2, 3, 4]
        table.set([0, 0, 0, 0])
        assert floats(fake, 1, 0x101) == [0, 0, 0, 0]

    def test_managed_memory_is_one_for_all_devices(self, fake):
        table, module = variable(space="managed"), Module(1)
        table._load(module)
        table.set([1, 2, 3, 4])
        fake.context = 0x101
        table._load(module)
        assert floats(fake, 1, 0) == table.get().tolist() == [1, 2, 3, 4]

    def test_kernels_may_have_changed_their_copies(self, fake):
        table, first, second = variable(), Module(1), Module(2)
        table._load(first)
        table._load(second)
        assert table.get().tolist() == [0, 0, 0, 0]
        fake.globals[2, 0x100, "table"][:4] = np.float32(7).tobytes()
        with pytest.raises(ValueError, match="'table' has different values in 2 loaded kernels") as caught:
            table.get()
        assert "what to do: read the copy of one kernel, by get(kernel)" in str(caught.value)
        assert table._get_from([first]).tolist() == [0, 0, 0, 0] and table._get_from([second]).tolist() == [7, 0, 0, 0]

    def test_a_context_that_was_destroyed_does_not_count(self, fake):
        table, module = variable(), Module(1)
        fake.context = 0x102  # of a device that is not there
        table._load(module)
        fake.context = 0x100
        table.set([1, 2, 3, 4])
        assert fake.copies == []

    def test_a_module_may_lack_it_and_may_not_have_another_size(self, fake):
        table, module = variable(), Module(1)
        table.set([1, 2, 3, 4])
        del fake.sizes["table"]
        table._load(module)
        assert fake.copies == [] and table.get().tolist() == [1, 2, 3, 4]
        fake.sizes["table"] = 8
        with pytest.raises(LaunchError, match="'table' has 8 bytes in its module, expected 16: float32"):
            table.set([1, 2, 3, 4])

    def test_loading_copies_in_a_stream_of_its_own_and_setting_waits_for_kernels(self, fake):
        table, module = variable(), Module(1)
        table.set([1, 2, 3, 4])
        fake.capturing = True  # code may be loaded then
        table._load(module)
        with pytest.raises(LaunchError, match="'table' cannot be set while a stream is captured into a graph"):
            table.set([0, 0, 0, 0])
        with pytest.raises(LaunchError, match="'table' cannot be read while a stream is captured"):
            table.get()
        fake.capturing = False
        assert table.get().tolist() == [1, 2, 3, 4]  # a value that was refused is not kept
        table.set([0, 0, 0, 0])
        assert [stream for _, stream in fake.copies] == ["CU_STREAM_NON_BLOCKING", 0]

    def test_threads_set_and_load_it(self, fake):
        table = variable()
        modules = [Module(number) for number in range(1, 200)]

        def set_often():
            for number in range(200):
                table.set([number] * 4)

        threads = [threading.Thread(target=set_often), threading.Thread(target=lambda: list(map(table._load, modules)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {tuple(floats(fake, module.handle)) for module in modules} == {(199,) * 4}


class TestValues:
    @pytest.mark.parametrize(
        ("dtype", "value"),
        [
            ("i1", -3),
            ("u8", 1 << 63),
            ("f4", 1),
            ("f8", 2.5),
            ("c8", 1 + 2j),
            ("?", True),
            ("f2", 0.5),
            ("u1", np.uint8(4)),
        ],
    )
    def test_numbers_that_the_dtype_holds(self, dtype, value):
        number = variable(dtype, ())
        number.set(value)
        assert (number.get(), number.get().dtype, number.get().shape) == (value, np.dtype(dtype), ())

    @pytest.mark.parametrize(
        ("dtype", "value"),
        [("i1", 300), ("i4", 2.5), ("f4", 1j), ("u8", -1), ("f4", "1"), ("f4", np.float64(1)), ("i4", np.int64(1))],
    )
    def test_other_values_are_refused(self, dtype, value):
        with pytest.raises(TypeError, match=r"'table' holds \w+, and the value is not of that type"):
            variable(dtype, ()).set(value)

    def test_arrays_have_the_dtype_and_the_shape(self):
        table = variable("i4", (2, 3))
        table.set(np.arange(6, dtype="i4").reshape(3, 2).T)
        assert table.get().tolist() == [[0, 2, 4], [1, 3, 5]]
        with pytest.raises(ValueError, match=r"another shape than the value\n  got: \(6,\)\n  expected: \(2, 3\)"):
            table.set(np.arange(6, dtype="i4"))
        with pytest.raises(
            TypeError, match=r"holds int32, and the value is not of that type\n  got: int64\n  what to do"
        ):
            table.set(np.zeros((2, 3), "i8"))

    def test_records(self):
        table = variable(RECORD, (2,))
        value = np.array([(1, 2.5, (3, 4)), (5, 6.5, (7, 8))], RECORD)
        table.set(value)
        assert (table.get() == value).all() and table.dtype == RECORD

    def test_an_array_on_a_device_is_copied_by_the_user(self):
        array = CupyArray()
        array.__cuda_array_interface__ = {}
        with pytest.raises(TypeError, match=r"set from host memory, got ndarray on a device\n  what to do: copy it"):
            variable().set(array)


class TestFiles:
    @pytest.mark.parametrize("dtype", ["f4", "?", "c16", RECORD])
    def test_the_type_as_data(self, dtype):
        described = VariableType("t", element_type(np.dtype(dtype)), (2, 3), "device")
        assert variable_from_json(variable_to_json(described)) == described

    def test_kernels_of_a_file_are_set_together(self, tmp_path, fake):
        table = VariableType("table", "<f4", (4,), "constant")
        first = np.arange(4, dtype="f4").tobytes()
        write(
            tmp_path / "a.kernels",
            one=[signature(variables=((table, first),))],
            two=[signature(code=b"other", variables=((table, first),))],
        )
        library = numba_cuda_autolink.load(tmp_path / "a.kernels")
        variables = library.variables
        assert list(variables) == ["table"] and variables["table"].get().tolist() == [0, 1, 2, 3]
        assert repr(variables["table"]) == "<variable table: float32[4] in constant memory>"
        library.one[1, 1](CupyArray(), 1)
        assert floats(fake, 1) == [0, 1, 2, 3]
        variables["table"].set([4, 4, 4, 4])
        library.two[1, 1](CupyArray(), 1)
        assert floats(fake, 1) == floats(fake, 2) == [4, 4, 4, 4]
        fake.globals[2, 0x100, "table"][:] = bytes(16)
        assert variables["table"].get(library.one).tolist() == [4] * 4
        assert variables["table"].get(library.two).tolist() == [0] * 4
        (described,) = library.describe("one")
        assert described["variables"] == {"table": "float32[4] in constant memory"}
        library.close()
        variables["table"].set([5, 5, 5, 5])  # nothing is loaded
        assert floats(fake, 1) == [4, 4, 4, 4]
