# SPDX-License-Identifier: BSD-2-Clause
"""Failures as users meet them, and the catalogue that shows them."""

from __future__ import annotations

import itertools
import os
import pickle
import re
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace

import pytest
from autolink_support import Linked, adder, build, calling, compiled, from_nvcc, have_nvcc
from code_samples import fatbin
from cuda.core import Linker, LinkerOptions, ObjectCode
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.cache.store import current_store
from numba.cuda.cudadrv.external_code.compile import nvrtc_log as compile_failure
from numba.cuda.cudadrv.external_code.explain import link_log, undefined_symbol
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import prototype_of_llvm
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CompileOptions
from numba.cuda.cudadrv.external_code.link import prototype_checks
from numba.cuda.cudadrv.external_code.link.linker_input import Part
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError
from numba.cuda.cudadrv.external_code.platform import cuda_libraries
from parameters import in_turn
from repository import DOCS, module

from numba_cuda_autolink import installed_packages, mangled_names
from numba_cuda_autolink.files import BESIDE

needs_nvcc = pytest.mark.skipif(not have_nvcc(), reason="nvcc makes fatbins, objects and archives, and is not here")
CONTAINERS = {"fatbin": cuda.Fatbin, "object": cuda.Object, "archive": cuda.Archive}


def kernel_calling(*functions):
    if len(functions) == 1:
        (only,) = functions

        def kernel(x):
            x[0] = only(x[1])
    else:
        first, second = functions

        def kernel(x):
            x[0] = first(x[1]) + second(x[2])

    return kernel


def failure_of(*spies, error=LinkError, **options):
    with pytest.raises(error) as caught:
        build(kernel_calling(*(spy.function for spy in spies)), **options)
    return caught.value


CATALOGUE = [DOCS / "errors.md", *sorted((DOCS / "errors").glob("*.md"))]


@pytest.mark.thorough
def test_the_catalogue_is_what_the_failures_say():
    errors = module(DOCS, "errors")
    said = {path: errors.comparable(text) for path, text in errors.pages().items()}
    assert said == errors.written(), "run python docs/errors.py"


def test_every_message_begins_with_a_short_diagnosis():
    messages = re.findall(r"^```text\n(\w+: .*?)\n", "".join(map(Path.read_text, CATALOGUE)), re.MULTILINE)
    assert len(messages) > 40
    for first in messages:
        _, diagnosis = first.split(": ", 1)
        assert len(diagnosis) < 180, first
        assert not diagnosis.startswith(("Failed in", "No implementation", "Untyped")), first


def test_the_catalogue_names_no_path_of_a_machine():
    text = "".join(map(Path.read_text, CATALOGUE))
    for path in (os.path.expanduser("~") + "/", "/tmp/", sys.prefix):
        assert path not in text


# C++ that does not compile


def test_source_that_does_not_compile_is_saved_and_shown():
    code = 'extern "C" __device__ int broken(int *out, int x) {\n    return SYNTAX;\n}\n'
    error = failure_of(Linked("broken", cuda.CUSource(code)))
    assert Path(error.source_path).read_text() == code
    assert f"at: {error.source_path}:2\n" in str(error)
    assert os.path.realpath(error.source_path).startswith(os.path.realpath(current_store().settings.directory))
    assert "      return SYNTAX;\n             ^^^^^^\n" in str(error)
    assert "SYNTAX" in error.log
    assert error.__cause__ is not None


def test_a_source_file_that_does_not_compile_is_named_where_it_is(tmp_path):
    file = tmp_path / "broken.cu"
    file.write_text("SYNTAX")
    error = failure_of(Linked("broken", file))
    assert error.source_path == str(file)


def test_an_unwritable_cache_does_not_hide_the_error(monkeypatch):
    def refuse(*args):
        raise OSError("full")

    monkeypatch.setattr(type(current_store().disk), "save", refuse)
    error = failure_of(Linked("broken", cuda.CUSource("SYNTAX")))
    assert error.source_path is None
    assert "source: could not be saved" in str(error)


def test_all_sources_that_were_found_not_to_compile_are_named(monkeypatch):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_JOBS", "2")
    code = '#include <cuda_fp16.h>\nextern "C" __device__ int {0}(int *out, int x) {{ return {0}_SYNTAX; }}'
    error = failure_of(*(Linked(name, autolink.CUDASource(code.format(name), name=f"{name}.cu")) for name in "fg"))
    first, *lines = str(error).splitlines()
    assert re.search(r"^'([fg]).cu' does not compile: line 2: identifier \"\1_SYNTAX\" is undefined$", first)
    if any("does not compile either" in line for line in lines):  # else the other was not begun
        assert "f_SYNTAX" in error.log and "g_SYNTAX" in error.log


@pytest.mark.parametrize(
    ("error", "first", "todo"),
    [
        ("lib/tables.h(7): error: invalid redeclaration", "tables.h:7: invalid redeclaration", "fix the source at"),
        (
            'a.cu(1): catastrophic error: #error directive: "Use <b.h> instead."',
            "line 1: Use <b.h> instead.",
            "do as this #error of the source or header says",
        ),
        (
            'a.cu(3): error: static assertion failed with "only four bytes"',
            'line 3: static assertion failed with "only four bytes"',
            "fix the source at that line",
        ),
        ("nvrtc: error: invalid value for --std", "invalid value for --std", "correct the options"),
    ],
)
def test_the_first_error_is_the_diagnosis(error, first, todo):
    assert compile_failure.first_error(error, "src/a.cu") == first
    assert compile_failure.remedy(compile_failure.list_errors(error)[0], CompileOptions()).startswith(todo)


def test_warnings_stay_in_the_log_and_out_of_the_message():
    warning = "x.h(3): warning #177-D: declared but never referenced\n  int y;\n      ^\n\n"
    errors = "".join(f'a.cu({line}): error: identifier "z" is undefined\n  z;\n  ^\n\n' for line in range(7))
    log = f"6: NVRTC_ERROR_COMPILATION, compilation log:\n\n{warning}{errors}7 errors detected in a.cu.\n"
    shown = compile_failure.errors_in(log)
    assert "warning #177" not in shown
    assert shown.count("is undefined") == 5
    assert "and 2 more errors" in shown
    assert compile_failure.errors_in("out of memory\n") == "out of memory"


# Symbols that do not meet


@pytest.mark.parametrize("kind", ["ptx", "cubin"])
def test_a_missing_extern_c_is_seen_in_compiled_code(kind):
    linkable = {"ptx": cuda.PTXSource, "cubin": cuda.Cubin}[kind]
    code = compiled("__device__ int f(int *out, int x) { *out = x; return 0; }", kind)
    error = failure_of(Linked("f", linkable(code)))
    assert "defines f(int*, int), as C++: _Z1fPii" in str(error)


@needs_nvcc
def test_definitions_of_a_compressed_object_are_shown():
    error = failure_of(Linked("nowhere", cuda.Object(from_nvcc((adder("add_one"),), "object"))))
    assert "which defines add_one" in str(error)


@pytest.mark.parametrize(
    ("symbol", "shown", "base"),
    [
        ("_Z5scaleif", "scale(int, float)", "scale"),
        ("_ZN2my5scaleEPKfy", "my::scale(float const*, unsigned long long)", "scale"),
        ("_Z1fv", "f()", "f"),
        ("_Z3addI6float2ET_S1_", "float2 add<float2>(float2)", "add"),
        ("_Z1f6float2d", "f(float2, double)", "f"),
        ("plain", "plain", "plain"),
        (
            "_ZN8__main__4axpyB2v1B4cw51E5ArrayIfLi1E1C7mutable7alignedE",
            "__main__::axpy(Array<float, 1, C, mutable, aligned>)",
            "axpy",
        ),
        ("_ZN13_3cdynamic_3e6kernelB2v1Ei", "<dynamic>::kernel(int)", "kernel"),
        *(
            (f"_ZN2nm{len(name)}{name}B2v1Ef", f"nm::{name}(float)", name)
            for name in ("vec_add", "load_data", "softmax_backward", "a_def", "conv_2d", "f_3c", "x_20_28", "b_c0_b0")
        ),
        ("_ZN2nm8_ce_bb_1B2v1Ef", "nm::λ_1(float)", "_ce_bb_1"),
        ("_ZN2nm20_e5_8a_a0_e6_b3_95_1B2v1Ef", "nm::加法_1(float)", "_e5_8a_a0_e6_b3_95_1"),
        (
            "_ZN2nm1fB2v1E28Tuple_28int64_2c_20vec_3d_2927omitted_28default_3dNone_29",
            "nm::f(Tuple(int64, vec_3d), omitted(default=None))",
            "f",
        ),
        ("_Z99f", "_Z99f", "_Z99f"),
    ],
)
def test_cxx_names_are_read(symbol, shown, base):
    assert mangled_names.readable(symbol) == shown
    assert mangled_names.base_name(symbol) == base


def test_without_the_runtime_library_simple_cxx_names_are_read(monkeypatch):
    monkeypatch.setattr(mangled_names, "_demangler", lambda: None)
    mangled_names.readable.cache_clear()
    try:
        assert mangled_names.readable("_ZN2my5scaleEPKfy") == "my::scale(...)"
    finally:
        mangled_names.readable.cache_clear()


# Each container and each other kind once or more; all pairs are in the whole form.
SOME_PAIRS = [
    *[("fatbin", "ltoir", True), ("fatbin", "object", False), ("object", "fatbin", True), ("object", "cubin", False)],
    ("archive", "ptx", True),
]
PAIRS = [
    pytest.param(*pair, lto, marks=[] if (*pair, lto) in SOME_PAIRS else [pytest.mark.thorough])
    for pair in itertools.product(CONTAINERS, ["ptx", "cubin", "ltoir", "fatbin", "object"])
    for lto in (True, False)
]


@needs_nvcc
@pytest.mark.parametrize(("container", "other", "lto"), PAIRS)
def test_a_double_definition_in_a_container_names_both(container, other, lto, capfd):
    made = {"ptx": cuda.PTXSource, "cubin": cuda.Cubin, "ltoir": cuda.LTOIR, **CONTAINERS}[other]
    source = adder("add_one", 2 if other == container else 1)
    code = from_nvcc((source,), other) if other in CONTAINERS else compiled(source, other)
    one = Linked("add_one", CONTAINERS[container](from_nvcc((adder("add_one"),), container), name="one"))
    two = Linked("add_one", made(code, name="two"))
    error = failure_of(one, two, lto=lto)
    assert "'add_one' is defined twice" in str(error)
    assert "'one' of " in str(error)
    assert "'two' of " in str(error)
    assert str(error).count(f"called at: {__file__}:") == str(error).count(__file__) == 1  # both, in one line
    assert "Multiple definition" not in capfd.readouterr().err


@needs_nvcc
def test_containers_that_define_different_symbols_link():
    one = Linked("add_one", cuda.Object(from_nvcc((adder("add_one"),), "object")))
    two = Linked("f", cuda.Fatbin(fatbin()))
    build(kernel_calling(one.function, two.function))


# Signatures


@pytest.mark.parametrize(
    ("kind", "made", "lto"),
    [
        ("ptx", cuda.PTXSource, True),
        ("ptx", cuda.PTXSource, False),
        ("cubin", cuda.Cubin, True),
        ("cubin", cuda.Cubin, False),
        ("ltoir", cuda.LTOIR, True),
    ],
)
def test_a_function_with_another_signature_names_both(lto, kind, made, capfd):
    code = compiled('extern "C" __device__ int f(long long *out, int x, double y) { *out = x + y; return 0; }', kind)
    error = failure_of(Linked("f", made(code)), lto=lto)
    assert capfd.readouterr().err == ""
    assert "'f' is called with the wrong signature" in str(error)
    assert "takes 8 bytes, 4 bytes and returns 4 bytes" in str(error)
    assert "takes 8 bytes, 4 bytes, 8 bytes and returns 4 bytes" in str(error)
    assert f"{__file__}:" in str(error)


class OfStructs(autolink.DeviceCallable):
    """Calls a C function, which *code* defines, with a struct of 8 bytes; it returns two integers."""

    def __init__(self, code):
        self.code = code

    def __numba_cuda_call__(self, x):
        return autolink.Extern("f", returns=types.UniTuple(types.int32, 2))

    def __numba_cuda_link__(self, x):
        return self.code


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("ptx", cuda.PTXSource),
        pytest.param("cubin", cuda.Cubin, marks=pytest.mark.thorough),
        pytest.param("ltoir", cuda.LTOIR, marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize(
    ("member", "parameter", "message"),
    [
        ("int", "float2", None),
        ("int", "double2", "a caller whose 'f' takes a struct of 8 bytes aligned to 8"),
        ("long long", "float2", "and returns a struct of 8 bytes aligned to 4"),
    ],
)
def test_structs_of_another_size_are_named(kind, made, member, parameter, message):
    source = f'struct S {{ {member} a, b; }}; extern "C" __device__ S f({parameter} x) {{ return {{}}; }}'
    call = OfStructs(made(compiled(source, kind)))

    def kernel(x):
        call(x[0])

    if message is None:
        build(kernel, "void(complex64[::1])")
    else:
        with pytest.raises(LinkError, match="'f' is called with the wrong signature") as caught:
            build(kernel, "void(complex64[::1])")
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("caller", "callee"), in_turn([("ptx",), ("cubin",), ("ltoir",)], [("ltoir",), ("ptx",), ("cubin",)])
)
def test_linked_code_that_calls_with_another_signature_is_named(caller, callee, capfd):
    made = {"ptx": cuda.PTXSource, "cubin": cuda.Cubin, "ltoir": cuda.LTOIR}
    calls = compiled('extern "C" __device__ int g(int); ' + adder("f", "g(x)"), caller)
    code = compiled('extern "C" __device__ int g(int x, double y) { return x + int(y); }', callee)
    one = Linked("f", [made[caller](calls, name="caller"), made[callee](code, name="callee")])
    with pytest.raises(LinkError) as caught:
        build(kernel_calling(one.function, one.function))
    assert "'g' is called with the wrong signature" in str(caught.value)
    assert "'caller'" in str(caught.value) and "'callee'" in str(caught.value)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "option", ["-compress=false", pytest.param("-compress-all", marks=pytest.mark.thorough)], ids=str
)
def test_a_function_in_ltoir_in_a_fatbin_is_compared_too(option):
    nvfatbin = pytest.importorskip("cuda.bindings.nvfatbin")
    code = compiled('extern "C" __device__ int f(int *out, double x) { return *out = x; }', "ltoir")
    handle = nvfatbin.create(["-64", option], 2)
    nvfatbin.add_ltoir(handle, code, len(code), "90", "f", "")
    made = bytearray(nvfatbin.size(handle))
    nvfatbin.get(handle, made)
    nvfatbin.destroy(handle)
    failure = failure_of(Linked("f", cuda.Fatbin(bytes(made))))
    assert "'f' is called with the wrong signature" in str(failure)
    assert "the function takes 8 bytes, 8 bytes and returns 4 bytes" in str(failure)
    right = Linked("f", cuda.Fatbin(bytes(made)), "int32(float64)")
    build(kernel_calling(right.function, right.function), "void(float64[::1])")


@pytest.mark.skipif(not have_nvcc(), reason="nvcc makes objects and archives")
@pytest.mark.parametrize(
    ("kind", "made"), [("object", cuda.Object), pytest.param("archive", cuda.Archive, marks=pytest.mark.thorough)]
)
def test_a_function_in_compressed_code_is_compared_too(kind, made, capfd):
    source = 'extern "C" __device__ int f(int *out, {} x) {{ return *out = x; }}'
    one, other = (from_nvcc((source.format(x),), kind) for x in ("int", "double"))
    assert prototype_checks.prototypes_of(kind, one) == ({}, {})  # they are compressed
    failure = failure_of(Linked("f", made(other)), lto=False)
    if cuda_libraries.nvjitlink_version() < (
        13,
        0,
    ):  # which makes no relocatable code, but compares machine code itself
        assert "Prototype doesn't match for 'f'" in str(failure)
    else:
        assert "'f' is called with the wrong signature" in str(failure)
        assert "the function takes 8 bytes, 8 bytes and returns 4 bytes" in str(failure)
    assert capfd.readouterr().err == ""
    built = build(kernel_calling(Linked("f", made(one)).function), lto=False)
    is_noted = "not checked: the parameters of functions in input 2" in str(built.report)
    assert is_noted == (cuda_libraries.nvjitlink_version() < (13, 0))


@pytest.mark.skipif(not have_nvcc(), reason="nvcc makes objects")
def test_the_report_names_code_whose_functions_cannot_be_compared(monkeypatch):
    code = from_nvcc((adder("f", 77),), "object")
    monkeypatch.setattr(prototype_checks, "relocatable_cubin", lambda *_: None)  # as with nvJitLink 12
    built = build(kernel_calling(Linked("f", cuda.Object(code)).function), lto=False)
    assert "not checked: the parameters of functions in input 2, which cannot be read" in str(built.report)


def test_functions_of_ltoir_that_other_ltoir_declares_the_same_way_are_linked():
    """Whether or not the kernel calls them too."""
    calls = compiled('extern "C" __device__ int g(short, float2); ' + adder("f", "g(x, {})"), "ltoir")
    code = compiled('extern "C" __device__ int g(short x, float2 y) { return x + int(y.x); }', "ltoir")
    one = Linked("f", [cuda.LTOIR(calls, name="caller"), cuda.LTOIR(code, name="callee")])
    build(kernel_calling(one.function, one.function))


@pytest.mark.parametrize(
    ("source", "prototype"),
    [
        ("int f(int *p, int x)", "i32 (i32*, i32)"),
        ("int f(void *p, bool x)", "i32 (i8*, i8)"),
        ("void f(float x, double y)", "void (float, double)"),
        ("float2 f(float2 x)", "%c64 (%c64)"),
        ("short f(unsigned char x, long long y)", "i16 (i8, i64)"),
        ("int f()", "i32 ()"),
    ],
)
def test_signatures_that_are_the_same_match(source, prototype):
    body = "{ return " + ("}" if source.startswith("void") else "{}; }")
    code = compiled(f'extern "C" __device__ {source} {body.replace("return }", "}")}', "ptx")
    cubin = compiled(f'extern "C" __device__ {source} {body.replace("return }", "}")}', "cubin")
    for defined in (
        prototype_checks.prototypes_of("PTX", code)[0]["f"],
        prototype_checks.prototypes_of("cubin", cubin)[0]["f"],
    ):
        fitting, other = map(prototype_of_llvm, (prototype, "i64 (i64, i64, i64)"))
        assert not prototype_checks.differ(prototype_checks.prototype_of_call(fitting), defined)
        assert prototype_checks.differ(prototype_checks.prototype_of_call(other), defined)


# Hooks


def test_an_explicit_input_that_does_not_fit_is_a_link_error():
    function = cuda.declare_device("f", "int32(int32)")
    link = [cuda.Cubin(compiled(adder("f"), "cubin", "sm_80"), name="f.cubin")]
    with pytest.raises(LinkError, match=r"at fault: cubin 'f.cubin' of link="):
        build(kernel_calling(function), link=link)


# Inputs that the linker refuses


def test_a_missing_symbol_is_found_where_the_log_does_not_name_it(monkeypatch):
    """As nvJitLink 12.8's does not for machine code."""
    monkeypatch.setattr(undefined_symbol, "_UNDEFINED", re.compile("(?!)"))

    class Misspelt(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("add_won", returns=x)

        def __numba_cuda_link__(self, x):
            yield autolink.CUDASource('extern "C" __device__ float add_one(float x) { printf("%f", x); return x + 1; }')

    with pytest.raises(LinkError) as failure:
        autolink.build(kernel_calling(Misspelt()), "void(float32[::1])", cc=(9, 0), lto=False)
    message = str(failure.value)
    assert "'add_won' is called but nothing that is linked defines it" in message
    assert "defines 'add_one'" in message and "referenced by: the call with (float32)" in message


def test_a_source_of_link_that_does_not_compile_is_numba_cudas_error_too():
    from cuda.core._utils.cuda_utils import NVRTCError

    source = cuda.CUSource('extern "C" __device__ int broken(int* r) { WRONG; return 0; }', name="broken.cu")
    with pytest.raises(NVRTCError) as caught:
        build(kernel_calling(cuda.declare_device("broken", "int32(int32)")), link=[source])
    assert isinstance(caught.value, LinkError)
    for text in (
        "what to do: ",
        "NVRTC_ERROR_COMPILATION",
        '"WRONG" is undefined',
        'in the compilation of "broken.cu"',
    ):
        assert text in caught.value.args[0]


def test_an_undefined_symbol_is_found_after_a_failed_link_of_other_code():
    """Even where no call brings code, so that numba-cuda would link alone."""
    code = compiled(adder("f"), "ptx").replace(b".version ", b".version 9")
    with pytest.raises(Exception, match=r"Unsupported \.version"):
        Linker(ObjectCode.from_ptx(code, name="new"), options=LinkerOptions(arch="sm_90")).link("cubin")
    test_an_object_without_code_is_named(lto=False)


@pytest.mark.parametrize("lto", [True, False])
def test_an_object_without_code_is_named(lto):
    class NoHook(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("defined_nowhere", returns=x)

    with pytest.raises(LinkError) as failure:
        autolink.build(kernel_calling(NoHook()), "void(float32[::1])", cc=(9, 0), lto=lto)
    message = str(failure.value)
    assert "'defined_nowhere' is called but nothing that is linked defines it" in message
    assert re.search(
        r"\n  called at: .*test_errors\.py:\d+ in .*kernel(.|\n)*referenced by: the call with \(float32\)\n", message
    )
    assert "return the code that defines it from the object's __numba_cuda_link__" in message


# Resources

_TILE = 'extern "C" __device__ int f(int *out, int x) {{ {} a[x] = x; __syncthreads(); *out = a[x ^ 1]; return 0; }}'


@pytest.mark.parametrize("kind", ["cuda", "ptx", "ltoir", "cubin"])
def test_too_much_static_shared_memory_is_the_diagnosis(kind):
    source = _TILE.format("__shared__ int a[33792];")
    made = {"ptx": cuda.PTXSource, "ltoir": cuda.LTOIR, "cubin": cuda.Cubin}
    item = cuda.CUSource(source) if kind == "cuda" else made[kind](compiled(source, kind))
    first, *rest = str(failure_of(Linked("f", item))).splitlines()
    assert first.endswith("needs 135168 bytes of static shared memory, and has at most 49152")
    assert ("  variables: f::a of 135168 bytes" in rest) == (kind != "cubin")
    assert "  what to do: use dynamic shared memory, whose size a launch gives, or fewer threads or items" in rest


@pytest.mark.parametrize("lto", [True, False])
def test_too_much_shared_memory_of_a_kernel_without_external_code_shows_the_array(lto):
    @cuda.jit(lto=lto)
    def kernel(x):
        shared = cuda.shared.array(10000, types.float64)
        i = cuda.threadIdx.x
        shared[i] = x[i]
        cuda.syncthreads()
        x[i] = shared[i + 1]

    with pytest.raises(LinkError) as failure:
        autolink.build(kernel, "void(float64[::1])", cc=(9, 0))
    first, place, source, caret, *_ = str(failure.value).splitlines()
    assert first.endswith("needs 80000 bytes of static shared memory, and has at most 49152")
    assert place == f"  at: {__file__}:{kernel.py_func.__code__.co_firstlineno + 2}"
    assert source[caret.index("^") :] == "cuda.shared.array(10000, types.float64)"


def test_a_file_that_link_names_and_that_does_not_exist(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    @cuda.jit(link=["nosuch.cu"])
    def kernel(x):
        x[0] = 1

    with pytest.raises(LinkError) as failure:
        autolink.build(kernel, "void(float64[::1])", cc=(9, 0))
    line = kernel.py_func.__code__.co_firstlineno
    assert str(failure.value).splitlines() == [
        "link= of kernel 'kernel': nosuch.cu not found",
        f"  defined at: {__file__}:{line}",
        '      @cuda.jit(link=["nosuch.cu"])',
        "      " + "^" * len('@cuda.jit(link=["nosuch.cu"])'),
        f"  where relative paths begin: {tmp_path}",
        f"  what to do: {BESIDE}",
    ]


@pytest.mark.parametrize("answer", ["x", ["x"], ["x.cub"]])
def test_a_file_of_an_unknown_kind_from_a_hook_has_the_advice_of_hooks(answer):
    class Scale(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("scale", returns=x)

        def __numba_cuda_link__(self, x):
            return answer

    with pytest.raises(autolink.CallError) as failure:
        build(cuda.jit(calling(Scale())), "void(float32[::1])")
    assert "what to do: name a file of a known kind" in str(failure.value) and "link=" not in str(failure.value)


@pytest.mark.parametrize("symbol", ["scale", "other"])
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("bad;", "Not a name of any known instruction: 'bad'"),
        ("mov.u32 %r1, 3;", "Arguments mismatch for instruction 'mov'"),
        (".reg .b32 a; mov.u32 a 3;", "Parsing error near '3': syntax error"),
    ],
)
def test_what_ptxas_refuses_in_given_ptx_is_the_diagnosis(symbol, body, why):
    line = f".visible .func (.param .b32 r) {symbol}(.param .b32 x) {{ {body} }}"

    class Scale(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("scale", returns=x)

        def __numba_cuda_link__(self, x):
            return cuda.PTXSource(f".version 8.0\n.target sm_90\n.address_size 64\n{line}".encode())

    with pytest.raises(LinkError) as failure:
        build(cuda.jit(calling(Scale())), "void(float32[::1])")
    first, *details = str(failure.value).split("\n")
    assert first == why
    assert "  at fault: PTX 'Scale.ptx' of " in "\n".join(details)
    assert f"  its line 4: {line}" in details and "  what to do: correct that PTX" in details


def test_a_folder_given_as_a_file_is_called_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="is a directory\n  what to do: name a file: this is a folder"):
        autolink.cxx(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "todo"),
    [
        ("scales.cu", "did you mean scale.cu?"),
        ("{folder}/scales.cu", "did you mean scale.cu?"),
        ("{folder}/other.cu", "correct the path: no such file is in {folder}"),
        ("{folder}/nowhere/other.cu", "correct the path: there is no folder {folder}/nowhere"),
        ("nowhere/other.cu", BESIDE),
        ("scale.txt", "name a file of a known kind"),
    ],
)
def test_what_to_do_about_a_missing_file_is_true(tmp_path, monkeypatch, name, todo):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scale.cu").write_text("")
    path, todo = name.format(folder=tmp_path), f"\n  what to do: {todo.format(folder=tmp_path)}"

    class Scale(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("scale", returns=x)

        def __numba_cuda_link__(self, x):
            return autolink.CUDASource.from_file(path) if path.endswith(".cu") else path

    scale = Scale()
    with pytest.raises(autolink.CallError) as failure:
        build(cuda.jit(calling(scale)), "void(float32[::1])")
    assert todo in str(failure.value)
    with pytest.raises(LinkError) as failure:
        autolink.build(lambda x: None, "void(float32[::1])", cc=(9, 0), link=[path])
    assert str(failure.value).endswith(todo)
    with pytest.raises(FileNotFoundError) as missing:
        autolink.cxx(path)
    assert path.endswith(".txt") or str(missing.value).endswith(todo)


@pytest.mark.parametrize("returned", [None, []])
def test_a_hook_that_returns_nothing_is_named_where_its_symbol_is_undefined(returned):
    class Scale(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("scale", returns=x)

        def __numba_cuda_link__(self, x):
            return returned

    scale = Scale()
    with pytest.raises(LinkError) as failure:
        build(cuda.jit(calling(scale)), "void(float32[::1])")
    text = str(failure.value)
    assert re.search(r"\n  got: nothing from __numba_cuda_link__ of \S*Scale\(\)\(float32\)\n", text)
    assert "\n  what to do: return the code that defines it from that __numba_cuda_link__: " in text


def link_error_of(function):
    def kernel(x):
        x[0] = function(x[1])

    with pytest.raises(LinkError) as failure:
        build(cuda.jit(kernel), "void(float32[::1])")
    return failure.value


class TestDeclaredFunctions:
    """The faults of what ``declare_device`` brings are at its line, and no hook is involved."""

    def test_a_missing_file(self):
        function = cuda.declare_device("f", "float32(float32)", link="nosuch.cu")
        line = sys._getframe().f_lineno - 1
        text = str(link_error_of(function))
        assert text.startswith("link= of declare_device('f'): nosuch.cu not found\n")
        assert f"\n  declared at: {__file__}:{line}\n" in text
        assert f"what to do: {BESIDE}" in text

    def test_a_source_that_does_not_compile(self):
        function = cuda.declare_device("f", "float32(float32)", link=cuda.CUSource("int f() { retrn 0; }"))
        line = sys._getframe().f_lineno - 1
        error = link_error_of(function)
        assert f"\n  at: {__file__}:{line}\n" in str(error)
        assert "of link= of declare_device('f')" in str(error)
        assert traceback.format_exception_only(error)[0].startswith("numba.cuda.autolink.LinkError: ")
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), copy.log) == (type(error), str(error), error.log)

    @pytest.mark.parametrize("result", ["double*", "int*", "float*", "void*", "float2*"])
    def test_what_the_result_pointer_points_to_is_compared(self, result):
        code = cuda.CUSource(f'extern "C" __device__ int to_result({result} r, float x) {{ return 0; }}')
        function = cuda.declare_device("to_result", "float32(float32)", link=code)
        if result in ("double*", "int*"):
            text = str(link_error_of(function))
            assert "\n  got: int to_result(float*, float) " in text
            assert f"\n  expected: int to_result({result}, float), as it is defined" in text
        else:
            build(kernel_calling(function))

    @pytest.mark.parametrize(
        ("returned", "result"),
        [("boolean", "char*"), ("int8", "bool*"), ("int64", "size_t*"), ("complex64", "float*")],
    )
    def test_what_cxx_may_write_to_the_result_pointer(self, returned, result):
        code = cuda.CUSource(f'extern "C" __device__ int small({result} r, float x) {{ return 0; }}')
        function = cuda.declare_device("small", f"{returned}(float32)", link=code)

        def kernel(x):
            if function(x[0]) == 1:
                x[0] = 2

        build(kernel, "void(float32[::1])")

    @pytest.mark.parametrize("has_code", [True, False])
    def test_a_symbol_that_nothing_defines(self, has_code):
        code = [cuda.CUSource('extern "C" __device__ int g(float* r, float x) { *r = x; return 0; }')] * has_code
        function = cuda.declare_device("f", "float32(float32)", link=code)
        line = sys._getframe().f_lineno - 1
        text = str(link_error_of(function))
        assert f"\n  declared at: {__file__}:{line}\n" in text
        others = "declare 'g', which the linked code defines; or " if has_code else ""
        assert f"\n  what to do: {others}define 'f' in code that link= names" in text
        assert "__numba_cuda_link__" not in text


@pytest.mark.parametrize("specifier", ["static", 'extern "C" inline'])
def test_a_function_that_the_compiler_leaves_out_is_shown(specifier):
    f = Linked("left_out", autolink.CUDASource(f"{specifier} __device__ int left_out(int x) {{ return x; }}")).function
    line = sys._getframe().f_lineno - 1
    text = str(link_error_of(f))
    assert f"\n  in C++: {__file__}:{line}\n" in text
    assert '\n  what to do: define it as extern "C" __device__, without static and inline' in text


def test_a_cxx_function_that_is_declared_only_is_shown():
    lib = autolink.cxx("""
        __device__ float elsewhere(float);
        __device__ float calls_it(float x) { return elsewhere(x); }
    """)
    line = sys._getframe().f_lineno - 3
    text = str(link_error_of(lib.calls_it))
    assert f"\n  in C++: {__file__}:{line}\n" in text and "referenced by" not in text
    assert "\n  what to do: define elsewhere(float) in that source, or in another one that is linked\n" in text


@pytest.mark.parametrize("kind", ["ptx", "ltoir"])
def test_too_much_constant_memory_is_the_diagnosis(kind):
    source = '__constant__ int a[20000]; extern "C" __device__ int f(int *out, int x) { *out = a[x]; return 0; }'
    made = {"ptx": cuda.PTXSource, "ltoir": cuda.LTOIR}
    first, *_ = str(failure_of(Linked("f", made[kind](compiled(source, kind))))).splitlines()
    assert first.endswith("needs 80000 bytes of constant memory, and has at most 65536")


class Hidden(autolink.DeviceCallable):
    """Returns a struct that C++ does not take apart."""

    def __numba_cuda_call__(self):
        return autolink.Extern("hidden", returns=types.UniTuple(types.int32, 2))

    def __numba_cuda_link__(self):
        struct = "struct Fields { int a : 31; int b : 31; };"
        return cuda.CUSource(f'{struct} extern "C" __device__ Fields hidden() {{ return Fields(); }}')


def test_the_report_names_functions_whose_structs_cannot_be_compared():
    """Also where the program is found in the cache, and the link is not."""
    hidden = Hidden()

    def use(r):
        r[0] = hidden()[0]

    def use_twice(r):
        r[0] = hidden()[0] + hidden()[1]

    for number, function in enumerate((use, use_twice)):
        report = autolink.build(cuda.jit(function), "void(int32[::1])", cc=(9, 0)).report
        assert str(report).count("not checked: the members of structs by value of hidden, which C++ does not") == 1
        (compiled_here,) = (each.compiled for each in report.builds[0].link.inputs if each.compiled is not None)
        assert (compiled_here.origin == "built") == (number == 0)


def test_shared_arrays_of_python_have_the_names_of_their_variables_and_the_linker_none_of_its_stages():
    halve = autolink.cxx("__device__ float halve(float x) { return x / 2; }").halve

    def kernel(d):
        tile = cuda.shared.array((200, 200), types.float32)
        tile[cuda.threadIdx.x, 0] = halve(d[0])
        cuda.syncthreads()
        d[0] = tile[0, cuda.threadIdx.x]

    with pytest.raises(LinkError) as caught:
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
    assert "\n  variables: tile of 160000 bytes\n" in str(caught.value)
    assert "PTX_COMPILE" not in str(caught.value) and "PTX_COMPILE" in caught.value.log


@pytest.mark.parametrize("expression", ["typeid(*base) == typeid(Base)", "dynamic_cast<Derived *>(base) != nullptr"])
def test_device_code_has_no_types_at_run_time(expression):
    lib = autolink.cxx(f"""
        struct Base {{ virtual __device__ ~Base() {{}} }}; struct Derived : Base {{}};
        __device__ float f(float x) {{ Base object; Base *base = &object; return {expression} ? 1 : x; }}
    """)

    def kernel(d):
        d[0] = lib.f(d[0])

    with pytest.raises((LinkError, TypingError), match="device code has no typeid and no dynamic_cast"):
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))


def test_an_nvjitlink_older_than_nvrtc_has_the_command_that_updates_it(monkeypatch):
    """Of which the kernel's own C++ code is too new for the linker, and nothing that an object brought."""
    monkeypatch.setattr(link_log, "link_error", lambda plan, why, *details, log: (why, *details))
    monkeypatch.setattr(installed_packages, "version_of", {"nvidia-nvjitlink": "13.0.88"}.get)
    target = SimpleNamespace(nvrtc_version=(13, 5), nvjitlink_version=(13, 0))
    job = SimpleNamespace(parts=[Part(kinds.PTX, b"", "kernel")], plan=SimpleNamespace(target=target))
    assert link_log.explain_failure(job, "ERROR 4 in nvvmAddNVVMContainerToProgram") == (
        "NVRTC 13.5 is newer than nvJitLink 13.0, which rejects its LTO-IR",
        "what to do: pip install 'nvidia-nvjitlink==13.5.*'",
    )
