# SPDX-License-Identifier: BSD-2-Clause
"""The package examples/cub: each primitive linked, simulated, refused what it cannot do, and right on a GPU."""

from __future__ import annotations

import operator
import os
import re
import subprocess
import sys

import cub_cases
import numpy as np
import pytest
from autolink_support import build, calling, elf, read_diagnosis
from cub_cases import cub
from numba import cuda
from numba.cuda import autolink
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.driver import LinkerError
from numba.cuda.cudadrv.external_code.formats.cubin import resources
from repository import BENCHMARKS, EXAMPLES, SUPPORT, module


def functions_of(linked):
    return module(EXAMPLES, "_run").function_sizes(linked.code)


def shared_memory(linked):
    """Bytes of static shared memory of a kernel, without what the driver reserves."""
    sizes = [section["sh_size"] for section in elf(linked.code).iter_sections() if ".nv.shared._Z" in section.name]
    return sum(sizes) - 1024 * bool(sizes)  # of compute capability 9.0


def sizes_of(cubin, entry):
    """Bytes of machine code of a kernel, and of its static shared memory."""
    sizes = {section.name: section["sh_size"] for section in elf(cubin).iter_sections()}
    return sizes[f".text.{entry}"], sizes.get(f".nv.shared.{entry}", 0)


def kernel_calling(*calls, items=4, dtype=np.float32):
    """A kernel that makes calls of ``call(keys, ranks)`` or ``call(keys)``, a method each and how many arrays."""
    lines = "".join(f"    call{i}({'keys, ranks' if count == 2 else 'keys'})\n" for i, (_, count) in enumerate(calls))
    scope = {f"call{i}": call for i, (call, _) in enumerate(calls)}
    scope.update(cuda=cuda, items=items, dtype=dtype, np=np)
    code = "    keys = cuda.local.array(items, dtype)\n    ranks = cuda.local.array(items, np.int32)\n"
    code += "    for i in range(items):\n        keys[i] = x[i]\n        ranks[i] = i\n"
    exec(f"def kernel(x):\n{code}{lines}    for i in range(items):\n        x[i] = keys[i] + ranks[i]\n", scope)
    return scope["kernel"]


class TestLinked:
    def test_primitives_of_warps_share_an_operator_and_need_no_memory(self):
        reduce, scan, plus_one = cub.WarpReduce(64), cub.WarpScan(64), cub_cases.plus_one

        def kernel(x):
            x[0] = reduce.reduce(x[0], plus_one) + scan.inclusive_scan(x[1], plus_one)

        linked = build(kernel)
        assert list(functions_of(linked)) == [linked.entry_name]
        assert len([planned for planned in linked.inputs if planned.input.name.startswith("plus_one(")]) == 1
        assert shared_memory(linked) == 0

    def test_a_kernel_takes_the_shared_memory_of_the_largest(self):
        exchange, scan = cub.BlockExchange(256, 4), cub.BlockScan(256, 4)
        calls = [(exchange.striped_to_blocked, 1), (scan.inclusive_sum, 1)]
        items = 256 * 4 * 4
        assert items <= shared_memory(build(kernel_calling(*calls), "void(float32[::1])")) <= items * 1.1

    @pytest.mark.thorough
    def test_warps_have_shared_memory_of_their_own(self):
        exchange = (cub.WarpExchange(96, 16, 4).blocked_to_striped, 1)
        of_warps = shared_memory(build(kernel_calling(exchange), "void(float32[::1])"))
        assert 96 * 4 * 4 <= of_warps <= 96 * 4 * 4 * 1.5
        sort = (cub.BlockRadixSort(96, 4).sort, 1)
        of_block = shared_memory(build(kernel_calling(sort), "void(float32[::1])"))
        assert shared_memory(build(kernel_calling(exchange, sort), "void(float32[::1])")) == of_warps + of_block

    @pytest.mark.thorough
    @pytest.mark.parametrize("calls", [1023, 1024])
    def test_a_kernel_has_many_calls(self, calls):
        """Slots are counted, the largest is found wherever it is, and too many are refused."""
        needs = [4000 if number == 700 else 100 + number for number in range(calls)]
        reserved = [cub.primitive.reservation(f"call_{number}", f"{each}, 0, 1") for number, each in enumerate(needs)]
        code = "\n".join(['#include "cub_storage.cuh"', *reserved])
        code += '\nextern "C" __device__ int many(int x) { return autolink_cub::from_first_thread(x, threadIdx.x); }'

        class Many(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("many", returns=x)

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource(code, include_paths=[EXAMPLES / "cub" / "cxx"])

        many = Many()

        kernel = calling(many)
        if calls < 1024:
            assert shared_memory(build(kernel)) == 4000
        else:
            with pytest.raises(LinkerError, match="a kernel can have 1023 different calls of CUB primitives"):
                build(kernel)

    @pytest.mark.thorough
    def test_operators_with_state_are_inlined_in_every_primitive(self):
        built = build(cub_cases.more_kernel(**cub_cases.MORE), cub_cases.MORE_SIGNATURE, output="ptx")
        assert re.findall(r"\tcall\b.*", built.code.decode()) == []
        names = [planned.input.name.partition("(")[0] for planned in built.inputs]
        assert [names.count(each) for each in ("affine", "plus_one", "nearer")] == [1, 1, 1]

    @pytest.mark.thorough
    def test_operators_take_the_registers_of_hand_written_cxx(self, monkeypatch):
        monkeypatch.setattr("shutil.which", lambda name: None)  # NVRTC is of the linker's version; nvcc may not be
        operators = module(BENCHMARKS, "contests.operators")
        native, _ = operators.native_operators(256, 8)
        for make, signature, entry in (
            (operators.make_saturating_sums, operators.SUMS_SIGNATURE, "saturating_sums"),
            (operators.make_sorted_tiles, operators.SORT_SIGNATURE, "sorted_tiles"),
        ):
            built = build(make(256, 8), signature)
            codes = (built.code, built.entry_name), (bytes(native.code), entry)
            registers, of_native = (resources(*each, "")["registers"] for each in codes)
            assert registers <= of_native * 1.02

    def test_too_much_shared_memory_is_refused(self):
        sort = cub.BlockRadixSort(1024, 16)
        with pytest.raises(LinkerError, match="needs more than 48 KB of shared memory: use fewer items per thread"):
            build(kernel_calling((sort.sort, 1), items=16, dtype=np.float64), "void(float64[::1])")

    @pytest.mark.thorough
    def test_the_benchmark_is_the_native_kernel(self):
        benchmark = module(BENCHMARKS, "contests.block_sums")
        linked = build(benchmark.make_block_sums(256, 16), benchmark.SIGNATURE)
        native, _ = benchmark.native_block_sums(256, 16)
        code, shared = sizes_of(linked.code, linked.entry_name)
        native_code, native_shared = sizes_of(bytes(native.code), "block_sums")
        assert shared == native_shared
        assert code <= 1.2 * native_code


class TestInTheSimulator:
    def test_as_numpy_has_it(self, thorough):
        cases = ["int32:8x4:4:0", *(["uint8:32:1:1", "float16:32:7:2", "complex64:8x4:1:3"] if thorough else [])]
        environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
        command = [sys.executable, str(SUPPORT / "cub_cases.py"), *cases]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"{len(cases) + 1} cases are right" in done.stdout

    def test_finds_faults_that_only_a_run_shows(self):
        faults = {
            "cub.BlockReduce(32), lambda f, x: f.sum(1)": r"blocks of \(64, 1, 1\) threads, expected \(32, 1, 1\)",
            "cub.BlockReduce(64, 2), lambda f, x: f.sum(np.ones(3))": "x: got 3 items, expected 2, the items per",
            "cub.BlockLoad(64), lambda f, x: f.load(x, np.ones(1), 3)": (
                "got an array of 66 items, expected at least 67: offset 3"
            ),
        }
        script = (
            f"import sys; sys.path.insert(0, {str(EXAMPLES)!r})\n"
            "import cub, numpy as np\nfrom numba import cuda\n"
            f"for primitive, call in {', '.join(f'({fault})' for fault in faults)}:\n"
            "    @cuda.jit\n    def kernel(x):\n        call(primitive, x)\n"
            "    try:\n        kernel[1, 64](np.zeros(66))\n"
            "    except Exception as error:\n        print(str(error).splitlines())\n"
        )
        environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        for printed, message in zip(done.stdout.splitlines(), faults.values(), strict=True):
            assert re.search(message, printed)


class TestConstructors:
    def test_attributes_that_kernels_use(self):
        load = cub.BlockLoad((16, np.int64(8)), np.int32(4))
        assert (load.block_dim, load.threads, load.items_per_thread, load.tile) == ((16, 8, 1), 128, 4, 512)
        assert repr(load) == "BlockLoad(block=(16, 8, 1), items_per_thread=4, algorithm='direct')"
        with pytest.raises(ValueError, match="block: got 96 threads, expected a power of two"):
            cub.BlockMergeSort(96)
        assert repr(cub.WarpScan(64, 8)) == "WarpScan(block=64, threads_in_warp=8)"


class TestArguments:
    """Arguments that do not fit are an error at the call's line."""

    @pytest.mark.parametrize(
        ("primitive", "call", "message"),
        [
            (cub.BlockReduce(64), "f.sum(x)", r"x: got array\(float32, 2d, C\), expected .* 1-dimensional array"),
            (cub.BlockReduce(64), "f.sum(True)", "x: got bool, expected integers, floats or complex numbers"),
            (cub.BlockReduce(64, 4), "f.sum(x[0, 0])", "x: got float32, expected a contiguous .* array of 4 items"),
            (cub.BlockReduce(64, 4), "f.sum((1, 2, 3))", "x: got a tuple of 3 items, expected 4, the items per thread"),
            (cub.BlockReduce(64, 4), "f.sum(x[0, ::2])", r"got array\(float32, 1d, A\), expected a contiguous"),
            (cub.BlockReduce(64, 4), "f.sum(items, 3)", "valid: got int64 with array.*expected None"),
            (cub.BlockReduce(64), "f.sum(x[0, 0], 0.5)", "valid: got float64, expected integers"),
            (cub.BlockReduce(64), "f.max(1j)", "op: got max, which complex128 does not have"),
            (cub.BlockReduce(64), "f.reduce(1.5, operator.xor)", "op: got xor, which float64 does not have"),
            (cub.BlockReduce(64), "f.reduce(1, abs)", "op: got Function.*expected one of min, max, operator.add"),
            (cub.BlockReduce(64), "f.reduce(1, pair)", "op: got pair, which returns .*expected int64"),
            (cub.BlockReduce(64), "f.reduce(x[0, 0], min, state=x)", "state: got array.*expected None: min has none"),
            (cub.BlockMergeSort(64), "f.sort(x[0, :1], None, min)", "before: got Function.*expected a function"),
            (cub.BlockMergeSort(64), "f.sort(x[0, :1], state=x)", "state: got array.*without before, expected both"),
            (cub.BlockScan(64, 4), "f.inclusive_sum((1, 2, 3, 4))", r"x: got \(int64, .*, expected a contiguous"),
            (cub.BlockScan(64, 4), "f.inclusive_sum(items, ranks)", "out: got items of int32, expected float32, as x"),
            (cub.BlockScan(64), "f.inclusive_sum(1.0, items)", "out: got array.*, expected None"),
            (cub.WarpScan(64), "f.inclusive_sum(items)", "x: got array.*, expected integers, floats or complex"),
            (cub.BlockRadixSort(64), "f.sort(wide)", r"keys: got array\(complex64, .* integers or floats"),
            (cub.BlockRadixSort(64), "f.sort(items, None, 0.5)", "begin_bit: got float64, expected integers"),
            (cub.BlockExchange(64), "f.scatter_to_striped(items, items)", "ranks: got .*, expected .* of integers"),
            (cub.BlockLoad(64), "f.load(x, ranks)", r"source: got array\(float32, 2d, C\), expected .* array of int32"),
            (cub.BlockLoad(64), "f.load(x, items, 0, None, 1)", "default: got int64 without valid, expected both"),
            (cub.BlockStore(64), "f.store(constant, items)", "target: got .*read-only, expected a contiguous array"),
        ],
    )
    def test_refused(self, primitive, call, message):
        constant = np.zeros(4, np.float32)

        @cuda.jit(device=True)
        def pair(a, b):
            return a, b

        scope = dict(f=primitive, cuda=cuda, np=np, operator=operator, constant=constant, pair=pair)
        arrays = {"items": "float32", "ranks": "int32", "wide": "complex64"}
        lines = "".join(f"    {name} = cuda.local.array(4, np.{dtype})\n" for name, dtype in arrays.items())
        exec(f"def kernel(x):\n{lines}    {call}\n", scope)
        with pytest.raises(TypingError) as caught:
            build(scope["kernel"], "void(float32[:, ::1])")
        assert re.search(message, read_diagnosis(caught.value))


# Of the cases: every number of items, and blocks, algorithms, sizes of warps and types of three kinds.
SHORT = (0, 14, 21)


@pytest.mark.gpu
class TestOnTheGPU:
    @pytest.mark.parametrize(
        "case",
        [
            pytest.param(case, id=str(case), marks=[] if case.number in SHORT else [pytest.mark.thorough])
            for case in cub_cases.matrix()
        ],
    )
    def test_every_primitive(self, case):
        wrong = cub_cases.check(case)
        assert not wrong, "\n".join(wrong)

    def test_what_the_matrix_leaves_out(self):
        wrong = cub_cases.check_more()
        assert not wrong, "\n".join(wrong)

    @pytest.mark.parametrize("dtype", ["uint8", "float64"])
    def test_distinct_values(self, dtype):
        assert module(EXAMPLES, "cub_unique").check(dtype, 128, 8, rows=500)
