# SPDX-License-Identifier: BSD-2-Clause
"""What is particular to numba-cuda-mlir: its seams, what both front ends share, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from autolink_support import build
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.formats.elf import elf_symbols, read_elf

import numba_cuda_autolink

FLOATS = "void(float32[::1], float32[::1])"


class Scale(autolink.DeviceCallable):
    def __init__(self, factor):
        self.factor = factor

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"scale{self.factor}_{x}", returns=x)

    def __numba_cuda_link__(self, x):
        T = autolink.cxx_type(x)
        symbol = f"scale{self.factor}_{x}"
        return autolink.CUDASource(f'extern "C" __device__ {T} {symbol}({T} x) {{ return x * {self.factor}; }}')


def run(script, **variables):
    """Run *script* in a process of its own, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, **variables}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def kernel_of(cuda, obj, **options):
    @cuda.jit(**options)
    def kernel(r, x):
        r[0] = obj(x[0])

    return kernel


def test_kernels_of_numba_cuda_are_cached_beside_it(mlir):
    from numba import cuda
    from numba_cuda_mlir import cuda as other

    scale = Scale(3)
    build(kernel_of(other, scale), FLOATS)
    kernel = kernel_of(cuda, scale, cache=True)
    found = [autolink.testing.compile_cached(kernel, FLOATS, "9.0") for _ in range(2)]
    assert [how for _, how in found] == ["built", "loaded"]


@pytest.mark.parametrize("of_inner", [{}, {"inline": "never"}])
@pytest.mark.parametrize("of_outer", [{}, {"inline": "never"}])
def test_calls_are_in_the_functions_that_are_inlined(mlir, of_outer, of_inner):
    cuda, scale = mlir.cuda, Scale(3)

    @cuda.jit(device=True, **of_inner)
    def inner(x):
        return scale(x)

    @cuda.jit(device=True, **of_outer)
    def outer(x):
        y = inner(x)
        return y + scale(y)

    @cuda.jit
    def kernel(r, x):
        r[0] = outer(x[0]) + inner(x[1])
        r[1] = scale(x[1])

    first = {each.__name__: each.__code__.co_firstlineno for each in (inner.py_func, outer.py_func, kernel.py_func)}
    report = autolink.report(kernel, FLOATS, cc=(9, 0))
    found = {
        tuple(
            (frame.function.rpartition(".")[2], frame.line - first[frame.function.rpartition(".")[2]])
            for frame in call.chain
        )
        for call in report.builds[0].calls
    }
    assert found == {
        (("kernel", 2), ("inner", 2)),
        (("kernel", 2), ("outer", 3)),
        (("kernel", 3),),
    }
    assert {each.name.rpartition(".")[2] for each in report.graph.functions} == {"kernel", "outer", "inner"}
    assert sorted(each.name for each in report.builds[0].python) == ["inner", "kernel", "outer"]


class TestSeams:
    def test_each_is_listed_replaced_and_restored(self, mlir):
        from numba.cuda.autolink.frontend_api.seams import Seams

        located = [Seams("numba-cuda-mlir").locate(path) for path in mlir.seams.SEAMS]
        assert mlir.seams.active()
        replaced = [getattr(owner, name) for owner, name in located]
        mlir.seams.deactivate()
        try:
            originals = [getattr(owner, name) for owner, name in located]
            assert all(one is not other for one, other in zip(originals, replaced, strict=True))
        finally:
            mlir.seams.activate()
            mlir.seams.activate()
        mlir.seams.deactivate()
        assert [getattr(owner, name) for owner, name in located] == originals
        mlir.seams.activate()

    def test_a_missing_one_replaces_none_and_is_one_warning(self, mlir):
        script = """
import warnings
import numba_cuda_mlir.mlir_compiler as compiler
import numba_cuda_mlir.mlir_lowering as lowering
del lowering.MLIRLower._record_ltoirs_from_linker
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from numba.cuda import autolink
(warning,) = [each for each in caught if "autolink" in str(each.message)]
print(str(warning.message).splitlines()[0])
print(compiler.compile_mlir.__code__.co_filename.rpartition("/")[2])
"""
        said, original = run(script).splitlines()
        assert said.startswith("numba-cuda-autolink is not active: MissingSeamError: numba-cuda-autolink cannot attach")
        assert said.endswith("it has no numba_cuda_mlir.mlir_lowering:MLIRLower._record_ltoirs_from_linker")
        assert original == "compiler_lock.py"


PLAIN = """
import sys
from numba_cuda_mlir import cuda, tools

tools._cached_cc = (9, 0)
SIGNATURE = "void(float32[::1], float32[::1])"

def loaded(*packages):
    return sorted(name for name in sys.modules if name.partition(".")[0] in packages)

def compile(called):
    @cuda.jit(device=True, inline="never")
    def inner(x):
        return called(x)

    @cuda.jit
    def kernel(r, x):
        r[0] = inner(x[0])

    return kernel.compile(SIGNATURE)

compile(abs)
assert loaded("numba", "llvmlite", "numba_cuda") == [], loaded("numba", "llvmlite", "numba_cuda")
print(loaded("numba_cuda_autolink"))
"""


class TestUntilAnObjectHasAHook:
    def test_nothing_of_numba_and_of_this_project_is_imported(self, mlir):
        """Of this project Python's start imports the finder, and no program that does not need it more."""
        assert run(PLAIN) == "['numba_cuda_autolink', 'numba_cuda_autolink.import_hook']\n"
        assert run(PLAIN, NUMBA_CUDA_AUTOLINK="0") == "['numba_cuda_autolink', 'numba_cuda_autolink.import_hook']\n"

    def test_the_kernel_that_uses_the_first_one_is_compiled_again(self, mlir):
        script = f"""{PLAIN}
import numba_cuda_mlir.mlir_compiler as compiler

half = cuda.declare_device("half", "float32(float32)")
asked = []

def link(*argtypes):
    asked.append(argtypes)
    return cuda.CUSource('extern "C" __device__ int half(float* r, float x) {{ *r = x / 2; return 0; }}')

half.__numba_cuda_link__ = link
watched = compiler.compile_mlir
compiled = compile(half)
print(asked, "numba.cuda.autolink" in sys.modules, compiler.compile_mlir is watched)
print(b"half" in compiled.metadata["cubin"], compiled.metadata["targetoptions"]["chip"])
compile(abs)
"""
        _, activated, built = run(script).splitlines()
        assert activated == "[(float32,)] True False"
        assert built == "False sm_90"

    def test_a_program_that_imports_autolink_before_or_after_is_active(self, mlir):
        modules = "numba.cuda.autolink", "numba_cuda_mlir.mlir_compiler"
        for first, second in (modules, modules[::-1]):
            script = f"""
import {first}
import {second}
from numba.cuda.autolink.frontends.mlir import activation
import numba_cuda_mlir.numba_cuda.typing.context as context
from numba_cuda_mlir.descriptor import MLIRTypingContext
print(activation.active(), MLIRTypingContext.resolve_function_type is context.BaseContext.resolve_function_type)
"""
            assert run(script) == "True True\n"


class TestShared:
    @pytest.mark.counted
    def test_a_program_is_compiled_once_for_both_front_ends(self, mlir):
        from numba import cuda

        scale = Scale(1234)
        own = build(kernel_of(cuda, scale), FLOATS).report.builds[0].link
        other = build(kernel_of(mlir.cuda, scale), FLOATS).report.builds[0].link
        origins = [[each.compiled.origin for each in link.inputs if each.compiled] for link in (own, other)]
        assert origins == [["built"], ["memory"]]

    def test_link_items_of_either_front_end(self, mlir):
        class Both(Scale):
            def __numba_cuda_link__(self, x):
                yield super().__numba_cuda_link__(x)
                yield mlir.cuda.CUSource('extern "C" __device__ int theirs() { return 1; }', name="theirs.cu")
                yield mlir.cuda.PTXSource(b".version 8.0\n.target sm_90\n.address_size 64\n", name="theirs.ptx")

        inputs = build(kernel_of(mlir.cuda, Both(2)), FLOATS).inputs
        assert [planned.input.name for planned in inputs] == ["Both.cu", "theirs.cu", "theirs.ptx"]


class TestArraysOfRecords:
    """numba-cuda-mlir alone has no local and shared arrays of records."""

    @pytest.mark.parametrize("memory", ["local", "shared"])
    def test_hold_objects_of_cxx_with_their_alignment(self, mlir, memory):
        lib = autolink.cxx("""
            struct alignas(32) Wide { double x; __device__ explicit Wide(double x) : x(x) {} };
            __device__ inline double first(const Wide* wide) { return wide[0].x; }""")
        Wide, first = lib.type("Wide"), lib.first
        where = getattr(mlir.cuda, memory)

        @mlir.cuda.jit(device=True, inline="never")
        def fill(wide, i):
            Wide(wide[i], i)
            return first(wide[i:])

        @mlir.cuda.jit
        def kernel(r, x):
            wide = where.array(shape=3, dtype=Wide.dtype, alignment=Wide.alignment)
            for i in range(wide.size):
                r[i] = fill(wide, int(x[i])) + first(wide[1:])

        result = build(kernel, FLOATS).report.builds[0].result
        assert (result.stack >= 3 * 32, result.shared) == ((True, 0) if memory == "local" else (False, 3 * 32))

    def test_with_an_alignment_that_memory_cannot_have(self, mlir):
        record = np.dtype([("a", "i4")])

        @mlir.cuda.jit
        def kernel(r, x):
            records = mlir_cuda.local.array(1, record, alignment=24)  # here
            r[0] = records[0].a

        mlir_cuda = mlir.cuda
        with pytest.raises(Exception, match="alignment: got 24, expected a power of two") as raised:
            build(kernel, FLOATS)
        assert "# here" in str(raised.value)

    def test_of_records_alone_need_no_external_code(self, mlir):
        record = np.dtype([("a", "i4"), ("b", "f8")], align=True)

        @mlir.cuda.jit
        def kernel(r, x):
            records = mlir_cuda.local.array(2, record)
            records[1].b = x[0]
            r[0] = records[1:][0].b

        mlir_cuda = mlir.cuda
        assert build(kernel, FLOATS).code


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "passed"),
        [
            ({"opt": False}, "-O0"),
            ({"ptxas_options": "--maxrregcount=16"}, "-Xptxas=--maxrregcount=16"),
            ({"opt": False, "debug": True}, "-g"),
            ({"max_registers": 16}, "-maxrregcount=16"),
        ],
    )
    def test_of_a_kernel_reach_the_link(self, mlir, options, passed):
        kernel = kernel_of(mlir.cuda, Scale(9), **options)
        assert passed in build(kernel, FLOATS).report.builds[0].link.options


class TestSignatures:
    def test_with_types_of_either_front_end(self, mlir):
        from numba.cuda import types

        kernel = kernel_of(mlir.cuda, abs)
        given = (types.float32[::1], types.float32[::1]), types.void(types.float32[::1], mlir.types.float32[::1])
        assert {build(kernel, signature).signature for signature in given} == {build(kernel, FLOATS).signature}
        with pytest.raises(TypeError, match="a kernel returns nothing, but the signature returns float32"):
            build(kernel, types.float32(types.float32[::1], types.float32[::1]))


class TestNamesInTheCode:
    def test_are_the_same_whatever_types_of_records_were_made_before(self, mlir):
        from numba_cuda_mlir.numba_cuda.np.numpy_support import from_dtype

        scale = Scale(63)

        def code(padding):
            @mlir.cuda.jit(device=True, inline="never")
            def first(records):
                return scale(records[0].a)

            @mlir.cuda.jit
            def kernel(r, records):
                r[0] = first(records)

            record = from_dtype(np.dtype({"names": ["a"], "formats": ["f4"], "itemsize": padding}))
            return build(kernel, (mlir.types.float32[::1], record[::1]))

        one, other = code(48), code(52)  # two types, with one code that is the same for both
        assert one.entry_name == other.entry_name and one.code == other.code

    def test_a_launch_gets_the_name_of_a_kernel_with_an_argument_that_is_none(self, mlir):
        scale = Scale(64)

        @mlir.cuda.jit
        def kernel(r, x, n):
            r[0] = scale(x[0])

        code = build(kernel, (mlir.types.float32[::1], mlir.types.float32[::1], mlir.types.none))
        assert code.entry_name in {each.name for each in elf_symbols(code.code, read_elf(code.code))}


class TestManyKernels:
    @pytest.fixture
    def on_gpu(self, mlir, monkeypatch):
        """Compile as for a launch on a GPU of compute capability 9.0."""
        from numba_cuda_mlir import tools

        monkeypatch.setattr(tools, "_cached_cc", (9, 0))

    @pytest.mark.counted
    def test_a_job_of_a_kernel_that_was_launched_is_what_the_launch_linked(self, mlir, on_gpu, monkeypatch):
        from numba.cuda.autolink.compilation import context
        from numba.cuda.autolink.many_kernels.job_list import JobList, describe_job

        kernel = kernel_of(mlir.cuda, Scale(77))
        events = []
        monkeypatch.setattr(context, "listeners", [events.append])
        kernel.compile(FLOATS)
        kernel.compile(FLOATS)
        (event,) = events
        job = autolink.Job(**{**vars(event), "cc": (9, 0)})
        listed = describe_job(job)
        (loaded,) = JobList((listed,)).loaded()
        assert (listed["signature"], loaded.for_launch) == ("void(float32[::1], float32[::1])", True)
        (built,) = autolink.build_many([loaded], executor=ThreadPoolExecutor(1))
        assert built.report.builds[0].link.origin in ("memory", "disk")

    def test_a_kernel_is_saved_with_its_carveout(self, mlir):
        kernel = kernel_of(mlir.cuda, Scale(78), shared_memory_carveout="maxshared")
        assert build(kernel, FLOATS).launch_facts.carveout == 100
        assert build(kernel, FLOATS, shared_memory_carveout=30).launch_facts.carveout == 30

    def test_jobs_with_kernels_of_both_are_built(self, mlir):
        from numba import cuda

        jobs = [autolink.Job(kernel_of(each, Scale(7)), FLOATS, (9, 0)) for each in (cuda, mlir.cuda)]
        one, other = autolink.build_many(jobs, executor=ThreadPoolExecutor(1))
        assert [one.launch_facts.front_end, other.launch_facts.front_end] == ["numba-cuda", "numba-cuda-mlir"]


class TestTheCommandLine:
    FILE = """
from numba.cuda import autolink
from numba_cuda_mlir import cuda

square = autolink.cxx("__device__ inline float square(float x) { return x * x; }").square

@cuda.jit("void(float32[::1])")
def kernel(r):
    r[0] = square(r[0])
"""

    def test_kernels_of_files_are_listed_explained_and_built(self, mlir, tmp_path, capsys):
        from numba_cuda_autolink.commands.main_command import main

        file = tmp_path / "file_of_mlir.py"
        file.write_text(self.FILE)
        assert main(["explain", str(file), "--cc", "9.0"]) == 0
        assert "kernel(r)" in capsys.readouterr().out
        assert main(["explain", f"{file}:kernel", "--cc", "9.0"]) == 0
        assert "square(float32)" in capsys.readouterr().out
        out = tmp_path / "out.kernels"
        header = tmp_path / "out.h"
        command = ["build", f"{file}:kernel", "--cc", "8.0,9.0", "-o", str(out), "--header", str(header)]
        assert main(command) == 0
        assert list(numba_cuda_autolink.load(out)) == ["kernel"]
        assert "kernel_launch" in header.read_text()


class TestWhatItRefuses:
    def test_an_object_as_an_argument_of_a_kernel(self, mlir):
        from numba_cuda_mlir.numba_cuda.typing.typeof import typeof

        @mlir.cuda.jit
        def kernel(r, f):
            r[0] = f(r[0])

        signature = mlir.types.float32[::1], typeof(Scale(3))
        with pytest.raises(TypeError, match="a called object cannot be an argument of kernel 'kernel'"):
            build(kernel, signature)

    def test_state_of_a_type_that_compiled_functions_do_not_have(self, mlir):
        class Stateful(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x, state):
                return autolink.Extern("stateful", returns="float32", args={"state": autolink.state})

            def __numba_cuda_link__(self, x, state):
                return None

        @mlir.cuda.jit
        def kernel(r, x):
            r[0] = stateful(x[0], abs)  # here

        stateful = Stateful()
        with pytest.raises(Exception, match=r"cannot be passed as autolink\.state in a kernel") as raised:
            build(kernel, FLOATS)
        assert "# here" in str(raised.value)

    @pytest.mark.parametrize("size", [(2, 3), 0])
    def test_arrays_of_records_that_it_has_no_form_for(self, mlir, size):
        """Arrays of records are bytes there, of which it uses one dimension."""
        Counter = autolink.cxx("struct Counter { int n; __device__ Counter() : n(0) {} };").type("Counter")

        @mlir.cuda.jit
        def kernel(r, x):
            counters = mlir_cuda.shared.array(size, Counter.dtype)  # here
            r[0] = counters.size

        mlir_cuda = mlir.cuda
        with pytest.raises(Exception, match="array of records has one dimension and a constant size") as raised:
            build(kernel, FLOATS)
        assert "# here" in str(raised.value)

    def test_an_entry_name(self, mlir):
        with pytest.raises(ValueError, match="entry_name cannot be set for kernels of numba-cuda-mlir"):
            build(kernel_of(mlir.cuda, Scale(5)), FLOATS, entry_name="mine")

    def test_its_cache_keeps_no_kernel_that_uses_called_objects(self, mlir, caplog):
        from numba_cuda_mlir.caching import MLIRCacheImpl

        scale = Scale(6)

        @mlir.cuda.jit(device=True, inline="never")
        def factor():
            return scale.factor

        @mlir.cuda.jit
        def reads(r, x):
            r[0] = scale.factor

        @mlir.cuda.jit
        def reads_in_a_device_function(r, x):
            r[0] = factor()

        caplog.set_level("INFO", "numba_cuda_autolink.cache")
        implementation = object.__new__(MLIRCacheImpl)
        kernels = kernel_of(mlir.cuda, scale), reads, reads_in_a_device_function, kernel_of(mlir.cuda, abs)
        answers = []
        for kernel in kernels:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answers.append(implementation.check_cachable(compiled(kernel)))
        assert answers == [False, False, False, True]
        logged = [message for message in caplog.messages if "is not cached" in message]
        assert len(logged) == 3
        reason = "the cache of numba-cuda-mlir does not know what its called objects provide"
        assert reason in logged[0]
        assert f"reads (cache=True) is not cached: {reason}" in str(autolink.cache.why("test_numba_cuda_mlir.py:"))


def compiled(kernel):
    """What numba-cuda-mlir compiles *kernel* to."""
    from numba.cuda.autolink.compilation.context import without_device

    with without_device((9, 0, "")):
        return kernel.compile(FLOATS)
