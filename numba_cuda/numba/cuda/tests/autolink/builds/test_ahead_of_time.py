# SPDX-License-Identifier: BSD-2-Clause
"""Building without a GPU, and reproducibility of what is built."""

import os
import re
import textwrap

import pytest
from autolink_support import CC, Linked, adder, build, elf, symbols
from kernel_cache_support import run_warm
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError

function = Linked("built").function


def kernel(x):
    x[0] = function(x[1])


@pytest.mark.parametrize(
    ("what", "signature"),
    [
        (kernel, "void(int32[::1])"),
        (cuda.jit(kernel), (types.int32[::1],)),
        (cuda.jit(lineinfo=True)(kernel), types.void(types.int32[::1])),
    ],
)
def test_a_function_or_kernel_and_every_form_of_signature(what, signature):
    built = build(what, signature)
    assert elf(built.code)["e_machine"] == "EM_CUDA"
    assert f".entry {built.entry_name}".encode() in build(what, signature, output="ptx").code
    assert build(what, signature, output="ltoir").code.startswith(b"\xed\x43\x4e\x7f")
    assert built.entry_name in symbols(built.code)
    assert built.cc == CC


def test_a_kernels_own_options_are_the_defaults():
    made = cuda.jit(kernel, lto=False)
    assert "built" in symbols(build(made).code)
    assert "built" not in symbols(build(made, lto=True).code)


def test_a_kernel_that_is_linked_with_lto_can_be_built_for_debugging():
    """Its own options have LTO by default, which excludes debug information."""
    kernel = cuda.jit(lambda x: None)
    assert cuda.jit(lambda x: None).targetoptions["lto"]
    debug = autolink.build(kernel, "void(float32[::1])", cc=(9, 0), debug=True, opt=False)
    assert b".debug_info" in debug.code
    again = autolink.build(cuda.jit(debug=True, opt=False)(lambda x: None), "void(int32)", cc=(9, 0), debug=False)
    assert b".debug_info" not in again.code


@pytest.mark.parametrize("cc", [(7, 5), (8, 0), (9, 0), (9, 0, "a"), (10, 0)])
def test_each_compute_capability(cc):
    built = build(kernel, cc=cc)
    assert built.cc == cc
    flags = elf(built.code)["e_flags"]
    # CUDA 12 keeps the architecture in the low byte of the flags, CUDA 13 in the second.
    assert cc[0] * 10 + cc[1] in (flags & 0xFF, flags >> 8 & 0xFF)


@pytest.mark.counted
def test_one_process_builds_device_functions_for_several_architectures():
    spy = Linked("for_several")
    called = spy.function

    @cuda.jit(device=True)
    def device_function(x):
        return called(x)

    def kernel(x):
        x[0] = device_function(x[1])

    for cc in ((8, 0), (9, 0), (8, 0)):
        build(kernel, cc=cc)
    assert [target.compute_capability for target in spy.targets] == [(8, 0), (9, 0)]
    assert not device_function.overloads


@pytest.mark.parametrize("lto", [True, False])
def test_line_information_of_both_sides_is_kept(lto):
    """Also of what ``link=`` names."""
    code = '#line 77 "theirs.cu"\n' + adder("with_lines")
    called = Linked("with_lines", autolink.CUDASource(code)).function
    declared = cuda.declare_device("declared_with_lines", "int32(int32)")

    def kernel(x):
        x[0] = called(x[1])
        x[1] = declared(x[2])

    named = cuda.CUSource('#line 99 "named.cu"\n' + adder("declared_with_lines"))
    lines = elf(build(kernel, lineinfo=True, lto=lto, link=[named]).code).get_section_by_name(".debug_line").data()
    assert b"theirs.cu" in lines and b"named.cu" in lines
    assert os.path.basename(__file__).encode() in lines


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"kernel": 3}, TypeError, "expects a Python function or a @cuda.jit kernel\n  got: int, 3"),
        ({"kernel": cuda.jit(device=True)(kernel)}, TypeError, "is a device function"),
        ({"signature": "int32(int32[::1])"}, TypeError, "a kernel returns nothing"),
        ({"cc": (1, 0)}, ValueError, r"1.0 is not known to this CUDA toolkit; did you mean 10.0\?\n  known: "),
        (
            {"cc": "3.1"},
            ValueError,
            r"3.1 is not known to this CUDA toolkit\n  known: .*\n  what to do: pass one of these",
        ),
        ({"cc": "9.9"}, ValueError, r"\n  what to do: pass 9.0, whose code runs on 9.9 too$"),
        ({"cc": 9.0}, TypeError, "float 9.0 is not a compute capability: expected"),
        ({"cc": (9, 0, "x")}, ValueError, "suffix"),
        ({"cc": []}, ValueError, r"^cc is an empty list: .*\n  what to do: pass compute capabilities"),
        *(({"entry_name": name}, ValueError, "^entry_name must be a C identifier") for name in ("", "two words", 3)),
        ({"output": "elf"}, ValueError, "'cubin', 'ptx', 'ltoir', not 'elf'"),
        ({"fast_math": True}, TypeError, "^build.. and cuda.jit have no option 'fast_math'"),
        ({"signature": "void(float31)"}, ValueError, r"^'void\(float31\)' is not a signature: name 'float31' is not"),
        ({"signature": (Linked("given").function,)}, TypeError, "^an object cannot be an argument of a kernel: "),
        ({"signature": "void(float32[::1])"}, TypingError, "Invalid use of|No implementation|cannot be|resolve"),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, message):
    called = Linked("picky", lambda: (_ for _ in ()).throw(ValueError("cannot be"))).function

    def picky(x):
        x[0] = called(x[1])

    arguments = {"kernel": picky, "signature": "void(int32[::1])", "cc": CC, **arguments}
    with pytest.raises(error, match=message):
        autolink.build(**arguments)


def test_without_a_gpu_the_compute_capability_must_be_given(monkeypatch):
    def no_gpu():
        raise cuda.CudaSupportError("no GPU")

    monkeypatch.setattr(cuda, "get_current_device", no_gpu)
    with pytest.raises(ValueError, match=r"no GPU to build for by default\n  what to do: pass cc=, for example"):
        autolink.build(kernel, "void(int32[::1])")


@pytest.mark.parametrize("lto", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_two_processes_build_the_same_bytes(lto, tmp_path, servers):
    """Device functions in a diamond, several sources, ``link=``, declared links and string constants: every order and
    name is fixed."""
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import hashlib, sys
            from numba import cuda
            from numba.cuda import autolink

            def adder(symbol, amount, unit=None):
                code = f'extern "C" __device__ int {symbol}(int *out, int x) {{ *out = x + {amount}; return 0; }}'
                return autolink.CUDASource(code, unit=unit)

            def linked(number):
                function = cuda.declare_device(f"f{number}", "int32(int32)")
                function.__numba_cuda_link__ = lambda x: adder(f"f{number}", number, "unit")
                return function

            a, b, c, d, e = map(linked, range(5))
            declared = cuda.declare_device("g", "int32(int32)", link=[adder("g", 1), adder("h", 2)])

            @cuda.jit(device=True)
            def bottom(x):
                print("bottom", x)
                return a(x) + b(x) + declared(x)

            @cuda.jit(device=True)
            def left(x):
                return bottom(x) * c(x)

            @cuda.jit(device=True)
            def right(x):
                return d(x) - bottom(x)

            def kernel(x):
                x[0] = left(x[1]) + right(x[2]) + e(x[3])

            built = autolink.build(
                kernel, "void(int32[::1])", cc=(9, 0), lto=sys.argv[1] == "True",
                link=[adder("j", 4)],
            )
            print(hashlib.sha256(built.code).hexdigest())
            """
        )
    )
    one, other = (run_warm(servers, program, lto, NUMBA_CUDA_AUTOLINK_CACHE="0").stdout for _ in range(2))
    assert one == other and len(one.splitlines()) > 0


@pytest.mark.parametrize("lto", [True, False])
def test_what_was_compiled_before_makes_no_difference(lto):
    @cuda.jit(device=True)
    def device_function(x):
        return function(x) + 1

    def kernel(x):
        x[0] = device_function(x[1])

    def other(x):
        x[0] = device_function(x[1]) + 1

    first = build(kernel, lto=lto)
    build(other, lto=lto)
    again = build(kernel, lto=lto)
    assert (again.code, again.entry_name) == (first.code, first.entry_name)
    assert first.entry_name in symbols(first.code)


def test_shared_device_functions_are_compiled_once_however_deep():
    """A call graph that shares callees has 2**n paths; each module is linked once."""
    level = cuda.jit(device=True)(lambda x: function(x))
    for _ in range(12):
        level = (lambda below: cuda.jit(device=True)(lambda x: below(x) + below(x + 1)))(level)
    top = level

    def deep(x):
        x[0] = top(x[1])

    assert len(build(deep).inputs) == 1


def test_arrays_are_aligned_for_cxx_where_a_device_function_makes_the_call():
    class Read(autolink.DeviceCallable):
        def __numba_cuda_call__(self, values):
            return autolink.Extern("read_second", returns=values.dtype)

        def __numba_cuda_link__(self, values):
            code = 'extern "C" __device__ __noinline__ float2 read_second(float2 *x) { return x[1]; }'
            return autolink.CUDASource(code)

    read = Read()

    @cuda.jit(device=True)
    def second(values):
        return read(values)

    def kernel(x):
        shared = cuda.shared.array(4, types.complex64)
        for i in range(4):
            shared[i] = x[i]
        x[0] = second(shared)

    ptx = build(kernel, "void(complex64[::1])", output="ptx").code.decode()
    assert re.search(r"\.shared \.align (8|16) \.b8 \w+\[32\]", ptx)
