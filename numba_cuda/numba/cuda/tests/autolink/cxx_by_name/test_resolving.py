# SPDX-License-Identifier: BSD-2-Clause
"""NVRTC runs once for all calls of a kernel, not at all where they are known, and again where a header has changed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from autolink_support import CC, build
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.compile import nvrtc_processes

f32, i32 = types.float32, types.int32
SOURCE = """
namespace n { template <int N> __device__ float f(float x) { return x + N; } }
__device__ int whole(float x) { return x; }
__device__ double of_int(int x) { return x; }
__device__ float of_double(double x) { return x; }
"""


@pytest.fixture
def runs(monkeypatch):
    """The units that NVRTC compiles, by name."""
    names = []
    run = nvrtc_processes.run_in_child

    def counted(child, unit, *others):
        names.append(unit.name)
        return run(child, unit, *others)

    monkeypatch.setattr(nvrtc_processes, "run_in_child", counted)
    return names


def library(text: str):
    """A library that no other test has asked about."""
    return autolink.cxx(f"{SOURCE}// {text}")


pytestmark = pytest.mark.counted


def test_calls_that_do_not_depend_on_each_other_take_one_run(runs):
    lib = library("independent")
    one, two, three = lib["n::f<1>"], lib["n::f<2>"], lib.whole

    @cuda.jit
    def kernel(x, r):
        r[0] = one(x[0]) + two(x[1])
        r[1] = three(x[0])

    build(kernel, "void(float32[::1], float32[::1])")
    assert len(runs) == 1


def test_calls_on_results_take_a_run_for_each_level(runs):
    lib = library("levels")
    whole, of_int, of_double = lib.whole, lib.of_int, lib.of_double

    @cuda.jit
    def kernel(x, r):
        r[0] = of_double(of_int(whole(x[0]))) + of_double(1.5)
        r[1] = whole(x[1])

    build(kernel, "void(float32[::1], float32[::1])")
    assert len(runs) == 3


def test_a_call_in_a_loop_is_typed_with_its_final_types(runs):
    lib = library("loop")
    add = lib.expr("[](auto a, auto b) { return a + b; }")

    @cuda.jit
    def kernel(x, r):
        total = 0
        for i in range(3):
            total = add(total, x[i])
        r[0] = total

    build(kernel, "void(float32[::1], float32[::1])")


def test_declared_calls_take_one_run_which_kernels_use(runs):
    lib = library("declared")
    names = [f"n::f<{n}>" for n in range(20)]
    lib.declare([(name, (f32,)) for name in names], cc=CC)
    first, last = lib[names[0]], lib[names[19]]

    @cuda.jit
    def kernel(x):
        x[0] = first(last(x[0]))

    build(kernel, "void(float32[::1])")
    assert len(runs) == 1


def test_a_second_kernel_asks_nothing_again(runs):
    lib = library("second")
    whole = lib.whole
    for _ in range(2):

        @cuda.jit
        def kernel(x):
            x[0] = whole(x[0])

        build(kernel, "void(float32[::1])")
    assert len(runs) == 1


def test_a_call_that_is_refused_does_not_hide_the_others(runs):
    lib = library("refused")
    whole = lib.whole

    @cuda.jit
    def kernel(x, y):
        x[0] = whole(x[0])
        x[1] = whole(y)

    with pytest.raises(cuda.core.errors.TypingError, match=r"whole\(array\(complex64, 1d, C\)\)"):
        build(kernel, "void(float32[::1], complex64[::1])")
    assert len(runs) <= 2


def test_a_call_whose_name_is_part_of_a_refused_one_is_not_refused():
    lib = autolink.cxx("__device__ float f(float x) { return x; } namespace n { __device__ float f(float) = delete; }")
    good, bad = lib.f, lib["n::f"]

    @cuda.jit
    def kernel(x, r):
        r[0] = good(x[0]) + bad(x[0])

    with pytest.raises(TypingError) as caught:
        build(kernel, "void(float32[::1], float32[::1])")
    assert "call: n::f(float32)\n" in str(caught.value) and "\nf(float32)" not in str(caught.value)
    assert good.signature(f32, cc=CC).return_type == f32


def test_a_changed_header_is_noticed_by_the_next_kernel(tmp_path):
    """Its result type, too."""
    header = tmp_path / "own.h"
    header.write_text("__device__ int f(int x) { return x; }\n")
    f = autolink.cxx("#include <own.h>", include_paths=tmp_path).f

    def result():
        @cuda.jit
        def kernel(x):
            x[0] = f(1)

        (called,) = build(kernel, "void(float64[::1])").called_functions
        return called.prototype.returns.cxx, f.signature(i32, cc=CC).return_type

    assert result() == ("int", i32)
    header.write_text("__device__ double f(int x) { return x; }\n")
    assert result() == ("double", types.float64)


def test_an_edited_cu_file_is_noticed_by_the_next_kernel(tmp_path):
    file = tmp_path / "own.cu"
    codes = []
    file.write_text("__device__ int f(int x) { return x + 1; }\n")
    f = autolink.cxx(file).f
    for number in (1, 2):
        file.write_text(f"__device__ int f(int x) {{ return x + {number}; }}\n")

        @cuda.jit
        def kernel(x):
            x[0] = f(x[0])

        codes.append(build(kernel, "void(int32[::1])").code)
    assert codes[0] != codes[1]


def test_a_fresh_process_with_a_warm_cache_runs_no_nvrtc(tmp_path):
    script = textwrap.dedent("""
        from numba import cuda
        from numba.cuda import autolink, types
        from numba.cuda.cudadrv.external_code.compile import nvrtc_processes
        runs, run = [], nvrtc_processes.run_in_child
        def counted(*args, **options):
            runs.append(args)
            return run(*args, **options)
        nvrtc_processes.run_in_child = counted
        lib = autolink.cxx("template <class T> __device__ T f(T x) { return x; } struct P { int a; };")
        f, g = lib.f, lib.expr("[](auto x) { return x + 1; }")
        size, kind = lib.eval("sizeof(P)"), lib.type("P")
        @cuda.jit
        def kernel(x):
            x[0] = f(x[0]) + g(x[1]) + size
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        f.signature(types.int32)
        print(len(runs))
    """)
    environment = {**os.environ, "NUMBA_CUDA_AUTOLINK_CACHE_DIR": str(tmp_path), "NUMBA_CUDA_AUTOLINK_CACHE": "1"}
    counts = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        counts.append(int(done.stdout))
    assert counts[0] > 0 and counts[1] == 0


class TestCompiled:
    """`autolink.compiled`: the public function on which C++ by name stands."""

    class Doubled(autolink.DeviceCallable):
        """Doubles a number; C++ tells the type of the result."""

        def source(self, x):
            T = autolink.cxx_type(x)
            return autolink.CUDASource(f"""
                template <class T> extern __device__ char told;
                __device__ auto twice({T} x) {{ return x + x; }}
                extern "C" __device__ decltype(twice({T}())) doubled_{x}({T} x) {{ return twice(x); }}""")

        def __numba_cuda_call__(self, x):
            T = autolink.cxx_type(x)
            expression = f"&told<decltype(twice({T}()))>"
            lowered = autolink.compiled(self.source(x), [expression]).names[expression]
            returns = {"f": types.float32, "i": types.int32}[lowered.partition("toldI")[2][0]]
            return autolink.Extern(f"doubled_{x}", returns=returns)

        def __numba_cuda_link__(self, x):
            return autolink.compiled(self.source(x)).code

    @pytest.mark.parametrize(("given", "expected"), [("int16", "int"), ("float32", "float")])
    def test_a_third_party_asks_cxx_for_a_type(self, given, expected):
        doubled = self.Doubled()

        @cuda.jit
        def kernel(x, r):
            r[0] = doubled(x[0])

        (called,) = build(kernel, f"void({given}[::1], float64[::1])").called_functions
        assert called.prototype.returns.cxx == expected

    def test_it_works_while_a_kernel_is_compiled(self):
        with pytest.raises(RuntimeError, match="only while a kernel is being compiled"):
            autolink.compiled(autolink.CUDASource(""))

    def test_what_is_not_cxx_is_refused(self):
        source = autolink.CUDASource("")

        class Wrong(autolink.DeviceCallable):
            def __init__(self, *arguments):
                self.arguments = arguments

            def __numba_cuda_call__(self, x):
                return autolink.compiled(*self.arguments)

        for arguments, message in [
            ((source, "&f"), "compiled() takes several names, got the str '&f'"),
            (([source, source],), "compiled() takes several sources only of the same unit"),
            (([],), "compiled() takes CUDA C++"),
            ((source, ["&f"]), 'identifier "f" is undefined'),
        ]:
            wrong = Wrong(*arguments)

            def kernel(x):
                wrong(x)  # noqa: B023

            with pytest.raises(cuda.core.errors.TypingError) as caught:
                build(kernel, "void(int32)")
            assert message in str(caught.value)
