# SPDX-License-Identifier: BSD-2-Clause
"""`autolink.Variable`: what it is in a link, in a cached, pickled and saved kernel, and on a GPU."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import weakref
from io import BytesIO

import numpy as np
import pytest
from autolink_support import build, unload
from elftools.elf.elffile import ELFFile
from emulator_support import run_emulated
from front_ends import MODULES, front_end_named
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.autolink.testing import check_linkable

import numba_cuda_autolink
from numba_cuda_autolink import FinishedKernelError

LOOK = '{}\nextern "C" __device__ float look(int i) {{ return table[i]; }}'
RECORD = np.dtype([("a", "u1"), ("b", "f8")], align=True)


class Look(autolink.DeviceCallable):
    """Reads a variable in C++, which declares it with a text."""

    def __init__(self, table, declaration=None):
        self.table = table
        self.declaration = table.declaration if declaration is None else declaration

    def __numba_cuda_call__(self, i):
        return autolink.Extern("look", returns="float32", args={"i": "int32"})

    def __numba_cuda_link__(self, i):
        return self.table, autolink.CUDASource(LOOK.format(self.declaration), name="look.cu")


def table_of(count=4, dtype=np.float32, space="constant", **more):
    return autolink.Variable("table", dtype, count, space=space, **more)


def linked(look, **options):
    def kernel(r, i):
        r[0] = look(i)

    return build(kernel, "void(float32[::1], int32)", **options)


@pytest.mark.parametrize("space", ["device", "constant", "managed"])
def test_a_build_prints_nothing(space, capfd):
    name = f"printing_nothing_{space}"
    table = autolink.Variable(name, np.float32, 3, space=space)

    class Reads(autolink.DeviceCallable):
        def __numba_cuda_call__(self, i):
            return autolink.Extern(f"reads_{name}", returns="float32")

        def __numba_cuda_link__(self, i):
            source = f'extern "C" __device__ float reads_{name}(int i) {{ return {name}[i]; }}'
            return table, autolink.CUDASource(f"{table.declaration}\n{source}")

    linked(Reads())
    assert capfd.readouterr() == ("", "")


class TestDeclaring:
    @pytest.mark.parametrize(
        ("dtype", "shape", "declaration"),
        [
            (np.float32, 4, 'extern "C" __device__ float v[4];'),
            ("int64", (2, 3), 'extern "C" __device__ long long v[2][3];'),
            (types.complex64, (), 'extern "C" __device__ float2 v;'),
            (np.bool_, (), 'extern "C" __device__ bool v;'),
        ],
    )
    def test_the_declaration_in_cxx(self, dtype, shape, declaration):
        variable = autolink.Variable("v", dtype, shape)
        assert variable.declaration == declaration
        assert variable.get().shape == variable.shape and variable.get().dtype == variable.dtype

    def test_only_cxx_knows_the_struct_of_records(self):
        variable = autolink.Variable("v", RECORD, 4, value=np.ones(4, RECORD))
        assert variable.dtype == RECORD and variable.get()["b"].sum() == 4
        with pytest.raises(autolink.CABIError, match="'v' is of records, whose struct only C"):
            variable.declaration  # noqa: B018

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            (("1v", "f4"), ValueError, "takes a C identifier as the name, got '1v'"),
            (("v", np.longdouble), TypeError, "cannot have elements of <class 'numpy.longdouble'>"),
            (("v", types.voidptr), TypeError, r"cannot have elements of void\*"),
            (("v", "U4"), TypeError, "the variable 'v' cannot have elements of 'U4'"),
            (("v", np.dtype("U4")), TypeError, "the variable 'v' cannot have elements of"),
            (("v", float), TypeError, "C and Python mean different types by float"),
            (("v", types.float32[::1]), TypeError, "the variable 'v' cannot have elements of"),
            (("v", np.float32, "4"), TypeError, "the shape of the variable 'v' is '4', expected integers"),
            (("v", np.float32, (4, 0)), ValueError, r"the variable 'v' of shape \(4, 0\) has no elements"),
            (("v", np.float32, -1), ValueError, "has no elements"),
        ],
    )
    def test_what_cxx_has_not_is_refused(self, arguments, error, message):
        with pytest.raises(error, match=message):
            autolink.Variable(*arguments)

    def test_its_memory_is_one_of_three(self):
        with pytest.raises(ValueError, match="the space of the variable 'v' is 'texture'\n  expected: 'constant', "):
            autolink.Variable("v", np.float32, space="texture")

    def test_too_much_constant_memory(self):
        with pytest.raises(ValueError, match=r"'v' is too large for constant memory: 64\.0 KiB of 64 KiB"):
            autolink.Variable("v", np.int8, (1 << 16) + 1, space="constant")
        assert autolink.Variable("v", np.int8, 1 << 16, space="constant").shape == (1 << 16,)

    def test_a_copy_in_one_process_is_the_same_variable(self):
        table = table_of(value=[1, 2, 3, 4])
        assert pickle.loads(pickle.dumps(table)) is table and copy.deepcopy(table) is table

    def test_a_pickle_has_the_value(self):
        pickled = pickle.dumps(table_of(value=[1, 2, 3, 4]))  # the variable is gone then
        gc.collect()
        table = pickle.loads(pickled)
        assert table.get().tolist() == [1, 2, 3, 4] and pickle.loads(pickled) is table

    def test_in_the_simulator_it_has_its_value(self):
        script = """
import numpy as np
from numba import cuda
from numba.cuda import autolink
class Look(autolink.DeviceCallable):
    table = autolink.Variable("table", np.float32, 4)
    def __call__(self, i): return self.table.get()[i]
look = Look()
@cuda.jit
def kernel(r): r[0] = look(2)
look.table.set([1, 2, 3, 4])
r = np.zeros(1, np.float32)
kernel[1, 1](r)
print(r[0])
"""
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
            capture_output=True,
            text=True,
        )
        assert (done.stdout.strip(), done.returncode) == ("3.0", 0), done.stderr


class TestLinking:
    def test_a_finished_kernel_has_no_other_unused_variables(self):
        class Headers(Look):
            def __numba_cuda_link__(self, i):
                *others, source = super().__numba_cuda_link__(i)
                unused = autolink.Variable("unused", "f4", 4)
                more = autolink.CUDASource(
                    "#include <cuda/std/cmath>\n__device__ int left_out[9];"
                    ' extern "C" __device__ int more() { return 1; }'
                )
                return [*others, source, unused, more]

        code = linked(Headers(table_of()), lto=True).code
        assert b"table\0" in code and b"unused\0" in code and b"left_out" not in code
        assert len(code) <= 8192  # 100 KB with the variables of headers

    @pytest.mark.parametrize("space", ["constant", "device", "managed"])
    @pytest.mark.parametrize("lto", [True, False])
    def test_it_is_in_the_code_with_its_size(self, space, lto):
        made = linked(Look(table_of(space=space)), lto=lto)
        with ELFFile(BytesIO(made.code)) as elf:
            (symbol,) = elf.get_section_by_name(".symtab").get_symbol_by_name("table")
            section = elf.get_section(symbol["st_shndx"]).name
        assert symbol["st_size"] == 16 and section.startswith(".nv.constant3" if space == "constant" else ".nv.global")

    @pytest.mark.parametrize("declared", ["float table[]", "const float table[4]", "float unused, table[4]"])
    def test_other_declarations_of_the_same_memory(self, declared):
        assert linked(Look(table_of(), f"/* extern float* table; */ extern __constant__ {declared};")).code

    @pytest.mark.parametrize("lto", [True, False])
    @pytest.mark.parametrize("declared", ["float* table", "float table[8]"])
    def test_a_declaration_of_another_size_is_refused(self, declared, lto):
        with pytest.raises(autolink.LinkError) as caught:
            linked(Look(table_of(), f"\nextern __constant__ {declared};"), lto=lto)
        first, place, *details = str(caught.value).splitlines()
        assert first.endswith("'table' is declared with another size than it has") and len(first) < 120
        assert place.startswith("  called at: ")
        assert any("'look.cu'" in line and line.endswith(", line 2") for line in details)
        assert "  expected: float32[4] in constant memory, 16 bytes" in details
        assert f"  got: extern __constant__ {declared};" in details

    @pytest.mark.parametrize("lto", [True, False])
    @pytest.mark.parametrize(
        ("space", "declared"), [("constant", "device"), ("device", "managed"), ("managed", "device")]
    )
    def test_a_declaration_in_another_memory_is_refused(self, space, declared, lto):
        """The linker would read from wrong addresses, or crash."""
        with pytest.raises(autolink.LinkError) as caught:
            linked(Look(table_of(space=space), f"extern __{declared}__ float table[4];"), lto=lto)
        assert "'table' is declared in another memory than it is in" in str(caught.value)
        assert f"got: __{declared}__\n  expected: __{space}__, of the variable float32[4]" in str(caught.value)

    @pytest.mark.parametrize(
        ("dtype", "declared"),
        [
            ("f4", "const int table[4]"),
            ("f8", "float table[2][4]"),
            ("i4", "volatile float table[]"),
            ("u8", "double table[4]"),
        ],
    )
    def test_a_declaration_of_another_type_of_number_is_refused(self, dtype, declared):
        with pytest.raises(autolink.LinkError, match="'table' is declared with another type than it has") as caught:
            linked(Look(table_of(dtype=np.dtype(dtype)), f"extern __constant__ {declared};"))
        assert f"expected: {np.dtype(dtype).name}[4] in constant memory\n" in str(caught.value)

    @pytest.mark.parametrize(
        ("dtype", "declared"),
        [
            ("u1", "const float table[1]"),
            ("u2", "__half table[4]"),
            ("u8", "float* table[4]"),
            ("i4", "Color table[4]"),
            ("f4", "float2 table[2]"),
            ("c8", "float table[4][2]"),
        ],
    )
    def test_other_types_may_be_in_the_memory(self, dtype, declared):
        class Cast(Look):
            def __numba_cuda_link__(self, i):
                head = f"#include <cuda_fp16.h>\nenum Color {{ RED }};\nextern __constant__ {declared};"
                function = "float look(int i) { return reinterpret_cast<const float*>(table)[i]; }"
                return self.table, autolink.CUDASource(f'{head}\nextern "C" __device__ {function}')

        assert linked(Cast(table_of(dtype=np.dtype(dtype)))).code

    @pytest.mark.parametrize("lto", [True, False])
    def test_one_that_no_object_returns_is_refused(self, lto):
        """With LTO the linker would define it, as zeros."""

        class Forgets(Look):
            def __numba_cuda_link__(self, i):
                return list(super().__numba_cuda_link__(i))[1:]

        with pytest.raises(autolink.LinkError) as caught:
            linked(Forgets(table_of()), lto=lto)
        first, place, *details = str(caught.value).splitlines()
        assert first.endswith("'table' is read but nothing that is linked defines it") and len(first) < 120
        assert place.startswith("  called at: ")
        declared = next(line for line in details if line.startswith("  declared by: CUDA C++ source 'look.cu' of "))
        assert declared.endswith(", line 1")
        assert "what to do: return the autolink.Variable that is called so" in str(caught.value)

    @pytest.mark.parametrize(
        ("source", "name", "todo"),
        [
            (
                "extern __device__ float table[4];\n__device__ float at(int i) { return table[i]; }",
                "table",
                "if the host sets it, link an autolink.Variable that is called so, cuda.jit(link=[variable])",
            ),
            (
                "namespace n { extern __device__ float table[4]; }\n__device__ float at(int i) { return n::table[i]; }",
                "n::table",
                "define n::table in that source, or in another one that is linked",
            ),
        ],
    )
    def test_one_that_cxx_by_name_declares_is_at_its_line(self, source, name, todo):
        lib = autolink.cxx(source)
        with pytest.raises(autolink.LinkError) as caught:
            linked(lib["at"])
        first, *details = str(caught.value).splitlines()
        assert first == f"{name!r} is read but nothing that is linked defines it"
        places = [each for each in details if each.startswith("  in C++: ")]
        assert len(places) == 1 and "referenced by: " not in str(caught.value)
        assert any(each.startswith("  what to do: ") and each.endswith(todo) for each in details)

    def test_one_of_a_similar_name_is_named_and_a_function_is_not(self):
        code = "extern __constant__ float tables[4]; __device__ float tables_of(int i) { return tables[i]; }\n"
        with pytest.raises(autolink.LinkError) as caught:
            linked(Look(table_of(), f"{code}#define table tables"))
        near = [line for line in str(caught.value).splitlines() if line.startswith("  near miss: ")]
        assert len(near) == 1 and near[0].endswith(" defines 'table'")
        assert "what to do: give the autolink.Variable the name that it has in C++" in str(caught.value)

    def test_one_that_cxx_does_not_declare_is_named(self):
        with pytest.raises(autolink.LinkError, match=r"declare 'table' in the source: Variable\.declaration is"):
            linked(Look(table_of(), ""))

    def test_shared_memory_of_the_launch_is_not_a_variable(self):
        assert linked(Look(table_of(), table_of().declaration + "extern __shared__ float dynamic[];")).code

    def test_what_only_has_its_name_is_not_compared(self):
        other = "namespace a { extern __device__ int table; } __device__ int f(int table) { return table; }"
        look, shadow = Look(table_of()), autolink.CUDASource(other)

        class Both(Look):
            def __numba_cuda_link__(self, i):
                return *look.__numba_cuda_link__(i), shadow

        assert linked(Both(look.table)).code

    def test_several_objects_share_one(self):
        table = table_of()
        one, two = Look(table), Look(table)

        def kernel(r, i):
            r[0] = one(i) + two(i)

        made = build(kernel, "void(float32[::1], int32)")
        assert [planned.input.name for planned in made.inputs] == ["variable table", "look.cu"]

    def test_too_much_constant_memory_in_one_kernel(self):
        tables = [autolink.Variable(name, np.int8, 1 << 15, space="constant") for name in ("table", "b", "c")]

        class Three(Look):
            def __numba_cuda_link__(self, i):
                return *tables, autolink.CUDASource(LOOK.format("extern __constant__ signed char table[];"))

        with pytest.raises(autolink.LinkError, match="needs 98304 bytes of constant memory, and has at most 65536"):
            linked(Three(tables[0]))

    def test_it_may_be_named_with_link(self):
        look = cuda.declare_device("look", "float32(int32)", abi="c")
        table = table_of()

        def kernel(r, i):
            r[0] = look(i)

        made = build(kernel, "void(float32[::1], int32)", link=[table, cuda.CUSource(LOOK.format(table.declaration))])
        assert made.launch_facts.variables == (table,)

    def test_an_object_that_returns_one_passes_the_conformance_check(self):
        check_linkable(Look(table_of(8)), types.int32)


class TestSaving:
    def test_a_file_has_the_value_and_sets_it_without_numba(self, tmp_path):
        table = table_of(value=[1, 2, 3, 4])
        made = linked(Look(table))
        made.save(tmp_path / "look.kernels")
        table.set([0, 0, 0, 0])
        library = numba_cuda_autolink.load(tmp_path / "look.kernels")
        assert library.variables["table"].get().tolist() == [1, 2, 3, 4]
        script = f"""
import sys, numba_cuda_autolink
table = numba_cuda_autolink.load({str(tmp_path / "look.kernels")!r}).variables["table"]
table.set([4, 5, 6, 7])
print(table.get().tolist(), "numba" in sys.modules)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[4.0, 5.0, 6.0, 7.0] False"

    def test_two_variables_of_one_name_in_a_file_are_refused(self, tmp_path):
        one, two = linked(Look(table_of())), linked(Look(table_of(value=[1, 1, 1, 1])), entry_name="other")
        three = linked(Look(table_of(count=5)), entry_name="other")
        with pytest.raises(FinishedKernelError, match="variables of the kernels are called 'table': the values differ"):
            autolink.save(tmp_path / "a.kernels", [one, two])
        with pytest.raises(FinishedKernelError, match=r"'table': float32\[4\] in constant memory, and float32\[5\]"):
            autolink.save(tmp_path / "a.kernels", [one, three])

    def test_a_header_for_c_is_refused(self, tmp_path):
        with pytest.raises(FinishedKernelError, match="cannot be in a header: Python sets its variables 'table'"):
            autolink.write_header(tmp_path / "a.h", [linked(Look(table_of()), entry_name="look_up")])


@pytest.mark.gpu
class TestOnGPU:
    @staticmethod
    def values(kernel, count=4):
        r = cuda.device_array(count, np.float32)
        kernel[1, count](r)
        return r.copy_to_host().tolist()

    @staticmethod
    def kernel_of(look, **options):
        @cuda.jit(**options)
        def kernel(r):
            i = cuda.threadIdx.x
            r[i] = look(i)

        return kernel

    @pytest.mark.parametrize("lto", [True, False])
    @pytest.mark.parametrize("space", ["constant", "device", "managed"])
    def test_kernels_see_what_is_set_before_and_after_they_are_loaded(self, space, lto):
        table = table_of(space=space)
        one, two = (self.kernel_of(Look(table), lto=lto) for _ in range(2))
        assert self.values(one) == [0, 0, 0, 0]
        table.set(np.arange(4, dtype=np.float32))
        assert self.values(one) == self.values(two) == [0, 1, 2, 3]
        table.set([9, 9, 9, 9])
        assert self.values(one) == self.values(two) == table.get().tolist() == [9, 9, 9, 9]

    def test_a_kernel_changes_its_own_copy(self):
        table = autolink.Variable("counter", np.int32)

        class Count(autolink.DeviceCallable):
            def __numba_cuda_call__(self):
                return autolink.Extern("count")

            def __numba_cuda_link__(self):
                yield table
                source = 'extern "C" __device__ void count() { atomicAdd(&counter, 1); }'
                yield autolink.CUDASource(f"{table.declaration}\n{source}")

        count = Count()

        @cuda.jit
        def one():
            count()

        @cuda.jit
        def two():
            count()

        one[2, 32]()
        assert table.get() == table.get(one) == 64
        two[1, 32]()
        with pytest.raises(ValueError, match="'counter' has different values in 2 loaded kernels"):
            table.get()
        assert (table.get(one), table.get(two)) == (64, 32)
        bound = autolink.bind(two, "()")  # the same module
        bound[1, 32]()
        assert table.get(bound) == table.get(two) == 64
        table.set(0)
        one[1, 1]()
        assert (table.get(one), table.get(two)) == (1, 0)

    def test_a_captured_graph_uses_the_value_of_its_launch(self):
        cupy = pytest.importorskip("cupy")
        table = table_of(value=[1, 2, 3, 4])
        kernel = autolink.bind(self.kernel_of(Look(table)), "(float32[::1],)")
        r = cupy.zeros(4, "f4")
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            kernel[1, 4, stream](r)  # is loaded, and set, in the capture
            graph = stream.end_capture()
        for value in ([1, 2, 3, 4], [5, 6, 7, 8]):
            table.set(value)
            graph.launch(stream)
            stream.synchronize()
            assert r.get().tolist() == value

    def test_setting_in_a_capture_is_refused_and_the_capture_goes_on(self):
        cupy = pytest.importorskip("cupy")
        table = table_of(value=[1, 2, 3, 4])
        kernel = autolink.bind(self.kernel_of(Look(table)), "(float32[::1],)")
        r = cupy.zeros(4, "f4")
        kernel[1, 4](r)
        stream = cupy.cuda.Stream()
        with stream:
            stream.begin_capture()
            kernel[1, 4, stream](r)
            with pytest.raises(RuntimeError, match="'table' cannot be set while a stream is captured into a graph"):
                table.set([0, 0, 0, 0])
            graph = stream.end_capture()
        r[:] = 0
        graph.launch(stream)
        stream.synchronize()
        assert r.get().tolist() == [1, 2, 3, 4]

    def test_setting_waits_for_the_kernels_before(self):
        table = table_of()
        look = Look(table)

        @cuda.jit
        def slow(r):
            for _ in range(200):
                cuda.nanosleep(np.uint32(1_000_000))
            r[cuda.threadIdx.x] = look(cuda.threadIdx.x)

        table.set([1, 1, 1, 1])
        r = cuda.device_array(4, np.float32)
        slow[1, 4](r)
        cuda.synchronize()
        slow[1, 4](r)
        table.set([2, 2, 2, 2])
        assert r.copy_to_host().tolist() == [1, 1, 1, 1]

    def test_finished_kernels(self, tmp_path):
        table = table_of(value=[1, 2, 3, 4])

        def kernel(r):
            i = cuda.threadIdx.x
            r[i] = look(i)

        look = Look(table)
        autolink.build(kernel, "(float32[::1],)").save(tmp_path / "a.kernels")
        r = cuda.device_array(4, np.float32)
        with numba_cuda_autolink.load(tmp_path / "a.kernels") as library:
            library.kernel[1, 4](r)
            assert r.copy_to_host().tolist() == [1, 2, 3, 4]
            library.variables["table"].set([5, 6, 7, 8])
            library.kernel[1, 4](r)
            assert r.copy_to_host().tolist() == library.variables["table"].get().tolist() == [5, 6, 7, 8]

    def test_a_pickled_kernel_is_set_by_the_same_variable(self):
        table = table_of(value=[1, 2, 3, 4])
        kernel = pickle.loads(pickle.dumps(self.kernel_of(Look(table))))
        assert self.values(kernel) == [1, 2, 3, 4]
        table.set([5, 6, 7, 8])
        assert self.values(kernel) == [5, 6, 7, 8]

    def test_kernels_are_not_kept_for_their_variables(self):
        @cuda.jit
        def plain(r):
            r[cuda.threadIdx.x] = 0

        table = table_of()
        look = Look(table)
        kernel = self.kernel_of(look)
        self.values(kernel)
        self.values(plain)
        codes = [weakref.ref(next(iter(each.overloads.values()))._codelibrary) for each in (kernel, plain)]
        del kernel, plain
        gc.collect()
        assert (codes[0]() is None) == (codes[1]() is None)

    def test_a_module_that_numba_cuda_unloads_is_forgotten(self):
        table = table_of()
        kernel = self.kernel_of(Look(table))
        self.values(kernel)
        unload(kernel)
        table.set([1, 2, 3, 4])
        assert table.get().tolist() == [1, 2, 3, 4]
        assert self.values(self.kernel_of(Look(table))) == [1, 2, 3, 4]

    def test_each_device_has_a_copy(self):
        if len(cuda.gpus) < 2:
            pytest.skip("needs two GPUs")
        table = table_of(value=[1, 2, 3, 4])
        kernel = self.kernel_of(Look(table))
        for number in (0, 1):
            with cuda.gpus[number]:
                assert self.values(kernel) == [1, 2, 3, 4]
        table.set([5, 6, 7, 8])
        table.set([9, 9, 9, 9], device=1)
        for number, value in ((0, [5, 6, 7, 8]), (1, [9, 9, 9, 9])):
            with cuda.gpus[number]:
                assert self.values(kernel) == table.get().tolist() == value


LINKED_WITH_A_KERNEL = """
import numpy as np
from numba import cuda as numba_cuda
from numba.cuda import autolink
from {package} import cuda
table = autolink.Variable("table", "float32", 4, value=[1, 2, 3, 4])
text = 'extern "C" __device__ int unused() {{ return 0; }}'
code = numba_cuda.CUSource(text, setup_callback=lambda module: print("set up"))
lib = autolink.cxx("extern __device__ float table[4]; __device__ float at(int i) {{ return table[i]; }}")
@cuda.jit(link=[table, code])
def kernel(x):
    i = cuda.grid(1)
    x[i] = lib.at(i)
x = np.ones(4, np.float32)
kernel[1, 4](x)
print(x)
table.set([5, 6, 7, 8])
kernel[1, 4](x)
print(x)
"""


@pytest.mark.parametrize("front_end", list(MODULES))
def test_one_that_link_names_is_set_and_callbacks_run_once(front_end, tmp_path):
    script = tmp_path / "linked.py"
    package = front_end_named(front_end).cuda.__name__.removesuffix(".cuda")
    script.write_text(LINKED_WITH_A_KERNEL.format(package=package))
    assert run_emulated("-W", "ignore", script).stdout.splitlines() == ["set up", "[1. 2. 3. 4.]", "[5. 6. 7. 8.]"]
