# SPDX-License-Identifier: BSD-2-Clause
"""NVRTC runs once for all calls of a kernel, not at all where they are known, and again where a header has changed."""

from __future__ import annotations

import os
import textwrap
import threading

import numpy as np
import pytest
from autolink_support import CC, build
from kernel_cache_support import run_warm
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.autolink.reports.trace import totals
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


CHAINS = """
__device__ int over(int x) { return x; }
__device__ float over(float x) { return x; }
__device__ double over(double x) { return x; }
template <class T> __device__ T same(T x) { return x; }
template <class T> __device__ auto halved(T x) { static_assert(sizeof(T) == 4, "of four bytes"); return x / 2; }
__device__ auto hidden(float x) { return double(x); }
"""


def kernel_of(lib, names: str):
    """A kernel that calls functions one after the other, each with the result of the one before."""
    lines = "".join(f"    v = f{number}(v)\n" for number, _ in enumerate(names.split()))
    functions = {f"f{number}": lib[name] for number, name in enumerate(names.split())}
    exec(f"def kernel(x, r):\n    v = x[0]\n{lines}    r[0] = v", functions)
    return cuda.jit(functions["kernel"])


def called(built) -> list[str]:
    return sorted(each.prototype.returns.cxx for each in built.called_functions)


def test_a_chain_whose_types_change_takes_one_run(runs):
    built = build(kernel_of(library("levels"), "whole of_int of_double whole"), "void(float32[::1], float32[::1])")
    assert called(built) == ["double", "float", "int"]
    assert len(runs) == 1
    resolved, *_, front_end = [
        each for each in built.report.builds[0].timeline if each.kind in ("compile", "front end")
    ][:2]
    assert resolved.name == "whole(float32), of_int(int32), of_double(float64)" and resolved.origin == "built"
    seconds = {total.kind: total.seconds for total in totals(built.report.builds[0].timeline)}
    assert seconds["front end"] <= front_end.seconds - resolved.seconds + 1e-3


def test_a_mixed_kernel_takes_a_run_for_each_library(runs):
    tuples = """
        #include <cuda/std/tuple>
        __device__ cuda::std::tuple<float, float> both(float x) { return {x, x + 1}; }
        __device__ float of_both(cuda::std::tuple<float, float> x) { return cuda::std::get<0>(x); }
    """
    lib, other = autolink.cxx(CHAINS + tuples), library("mixed")
    both, of_both, over, same, f = lib.both, lib.of_both, lib.over, lib.same, other["n::f<1>"]

    @cuda.jit(device=True)
    def of_device(x):
        return f(same(x)) * 2

    @cuda.jit
    def kernel(x, r):
        v = x[0]
        for _ in range(3):
            v = over(v) * 2 + of_device(v)  # from float32 to float64
        if v > 1:
            pair = both(v)
            v = same(pair[0]) + of_both(pair)
        else:
            v = over(v)
        r[0] = f(v)

    build(kernel, "void(float32[::1], float32[::1])")
    assert len(runs) == 2


@pytest.mark.parametrize(
    ("names", "expected", "most"),
    [
        ("hidden over same", ["double", "double", "double"], 2),  # guessed as float
        ("hidden halved", None, 3),  # which C++ takes as guessed only
        ("whole of_int halved", None, 2),  # which C++ refuses as guessed
        ("hidden n::f<1> halved over", ["double", "float", "float", "float"], 2),
    ],
)
def test_a_wrong_guess_costs_a_run_and_never_a_type(runs, names, expected, most):
    kernel = kernel_of(autolink.cxx(f"{SOURCE}{CHAINS}// wrong {names}"), names)
    if expected is None:
        with pytest.raises(TypingError, match='halved\\(float64\\): static assertion failed with "of four bytes"'):
            build(kernel, "void(float32[::1], float64[::1])")
    else:
        assert called(build(kernel, "void(float32[::1], float64[::1])")) == expected
    assert len(runs) <= most


def strict_kernel_of(strict, single):
    @cuda.jit
    def kernel(x, r):
        r[0] = strict(single(x[0] * 2.5))

    return kernel


def test_what_cxx_refuses_is_not_guessed_again(runs):
    """Not by another process either: here, by another library object of the same text."""
    text = 'template <class T> __device__ auto strict(T x) { static_assert(sizeof(T) == 4, ""); return x; }'
    counts = []
    for _ in range(2):
        lib = autolink.cxx(text)
        kernel = strict_kernel_of(lib.strict, lib.expr("[](double x) { float y = x; return y; }"))
        built = build(kernel, "void(float32[::1], float32[::1])")
        number = len(runs)
        counts.append((number, [each.origin for each in built.report.builds[0].timeline if each.kind == "compile"]))
        runs.clear()  # a report compiles for the newest architecture
    assert [number for number, _ in counts] == [3, 0]
    assert counts[0][1] == ["refused", "built", "built", "memory"]
    assert "refused" not in counts[1][1]


@pytest.mark.parametrize("body", ["-> double { return x; }", "{ return (double)x; }", "{ return double(x) * 2; }"])
def test_a_lambda_that_names_the_type_of_its_result_is_guessed_right(runs, body):
    text = 'template <class T> __device__ auto strict(T x) { static_assert(sizeof(T) == 8, ""); return x; }'
    lib = autolink.cxx(f"{text}// {body}")
    strict, single = lib.strict, lib.expr(f"[](float x) {body}")

    def kernel(x, r):
        r[0] = strict(single(x[0]))

    build(kernel, "void(float32[::1], float32[::1])")
    assert len(runs) == 1


def test_no_hook_is_asked_and_nothing_is_kept_under_a_guess(runs):
    lib = autolink.cxx(CHAINS + "// hooks")
    hidden, over = lib.hidden, lib.over
    asked = []

    class Same(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            asked.append(x)
            return autolink.Extern(f"same_{x}", returns=x, args={"x": x})

        def __numba_cuda_link__(self, x):
            T = autolink.cxx_type(x)
            return autolink.CUDASource(f'extern "C" __device__ {T} same_{x}({T} x) {{ return x; }}')

    same = Same()

    @cuda.jit(device=True)
    def of_device(x):
        return x + 1

    @cuda.jit
    def kernel(x, r):
        r[0] = over(of_device(same(hidden(x[0]))))

    build(kernel, "void(float32[::1], float64[::1])")
    assert asked == [types.float64]
    assert {signature[0] for signature in of_device.overloads} <= {types.float64}


def test_two_signatures_choose_their_overloads(runs):
    kernel = kernel_of(autolink.cxx(CHAINS + "// signatures"), "over same over")
    for given, expected in [("float32", "float"), ("float64", "double"), ("int32", "int")]:
        assert {*called(build(kernel, f"void({given}[::1], float64[::1])"))} == {expected}
    assert len(runs) == 3


def test_kernels_in_threads_do_not_share_guesses():
    lib = autolink.cxx(CHAINS + "// threads")
    kernels = [kernel_of(lib, names) for names in ("over same hidden over", "hidden same over over")]
    found = {}

    def run(number):
        found[number] = called(build(kernels[number], "void(float32[::1], float64[::1])"))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: ["double", "double", "float", "float"], 1: ["double", "double", "double"]}


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
    assert len(runs) == 1  # which asks for the type with int64 too


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


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_call_that_cxx_only_warns_of_is_not_refused():
    """C++ refuses a tuple for a struct until it is known that the tuple is one."""
    lib = autolink.cxx("""
        struct Step { float length; int count; };
        __device__ float total(Step step) { return step.length * step.count; }
    """)
    make = lib.expr("[](auto... members) { return Step{members...}; }")  # which narrows a double and a long long

    def kernel(x):
        x[0] = lib.total(make(0.5, 4))

    x = np.zeros(1, np.float32)
    build(kernel, types.void(f32[::1])).emulate[1, 1](x)
    assert x[0] == 2


def test_a_call_whose_name_is_part_of_a_refused_one_is_not_refused():
    lib = autolink.cxx("__device__ float f(float x) { return x; } namespace n { __device__ float f(float) = delete; }")
    good, bad = lib.f, lib["n::f"]

    @cuda.jit
    def kernel(x, r):
        r[0] = good(x[0]) + bad(x[0])

    with pytest.raises(TypingError) as caught:
        build(kernel, "void(float32[::1], float32[::1])")
    assert str(caught.value).startswith("n::f(float32): ") and "\nf(float32)" not in str(caught.value)
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


def test_a_fresh_process_with_a_warm_cache_runs_no_nvrtc(tmp_path, servers):
    script = textwrap.dedent("""
        import sys
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
        text = "#define TEXT(x) #x\\n#define HEADER(x) TEXT(x.h)\\n#include HEADER(own)"  # which only NVRTC reads
        autolink.cxx(text, include_paths=[sys.argv[1]]).own.signature(types.int32)
        print(len(runs))
    """)
    header = tmp_path / "own.h"
    header.write_text("inline __device__ int own(int x) { return x; }")
    os.utime(header, (1e9, 1e9))  # so old that it was not edited meanwhile
    variables = {"NUMBA_CUDA_AUTOLINK_CACHE_DIR": str(tmp_path), "NUMBA_CUDA_AUTOLINK_CACHE": "1"}
    counts = []
    for _ in range(2):
        done = run_warm(servers, "-c", script, tmp_path, **variables)
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
