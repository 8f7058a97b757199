# SPDX-License-Identifier: BSD-2-Clause
"""Functions of CUDA C++ have the types that calls in Python pass and expect, or the unit does not compile."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numba.cuda import types
from numba.cuda.autolink import Target
from numba.cuda.autolink.c_abi.c_types import ctype
from numba.cuda.autolink.c_abi.structs import struct_ctype
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.compile.programs import compile_unit
from numba.cuda.cudadrv.external_code.compile.prototype_assertions import (
    PrototypeError,
    list_hidden,
    questions,
    raise_understood,
    with_assertions,
)
from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CalledFunction, CPrototype, prototype_of_llvm
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CompileOptions
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.np.numpy_support import from_dtype

TYPES = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
enum class Flag : bool { YES };
struct Bits { unsigned short bits; };
struct Short { short number; };
struct Holder { __half number; };
enum Color { RED };
enum class Small : short { ONE };
struct Pair { float a, b; };
struct alignas(8) Aligned { float a, b; };
struct Opaque;
union Either { int i; float f; };
"""
F4, F8, I1, I2, I4, I8 = types.float32, types.float64, types.int8, types.int16, types.int32, types.int64
B, C8, C16, HALF, VOID, ADDRESS = (
    types.boolean,
    types.complex64,
    types.complex128,
    types.float16,
    types.none,
    types.voidptr,
)
TUPLE = types.UniTuple(types.int32, 3)


def array(dtype):
    return types.Array(dtype, 1, "C")


def called(symbol, returns, *args, call="the call with (...) at example.py:7 in kernel"):
    return CalledFunction(symbol, CPrototype(ctype(returns), tuple(map(ctype, args))), call)


def unit_of(code, *, lto=True, defines=(), **options):
    options = CompileOptions(defines=tuple(defines), options=tuple(sorted(options.items())))
    return TranslationUnit.of(LinkInput(kinds.CUDA, code.encode(), options, "f.cu"), Target((9, 0), lto=lto))


def compiled(unit, *functions):
    """Compile *unit* with assertions; return None if only they do not compile."""
    try:
        return compile_unit(with_assertions(unit, functions))
    except CompileError as error:
        raise_understood(error, unit.name, functions)
    return None


def declared(cases):
    """C++ that declares the functions of *cases*, and the calls of them."""
    functions, calls = [TYPES], []
    for number, (declaration, *signature) in enumerate(cases):
        functions.append(f'extern "C" __device__ {declaration.replace("f(", f"f{number}(", 1)};')
        calls.append(called(f"f{number}", *signature))
    return "\n".join(functions), calls


READ_ONLY = types.Array(F4, 1, "C", readonly=True)
READ_ONLY_RECORDS = types.Array(from_dtype(np.dtype([("p", "f4"), ("q", "f4")])), 1, "C", readonly=True)
MIXED = types.Tuple((F4, I4))
FIT = [
    ("float f(float)", F4, F4),
    ("float f()", F4),
    ("void f(int)", VOID, I4),
    ("void f(int) noexcept", VOID, I4),
    ("void f(const int)", VOID, I4),
    ("unsigned f(unsigned, unsigned long long, unsigned char)", I4, I4, I8, I1),
    ("long f(long)", I8, I8),
    ("Color f(Color, Small)", I4, I4, I2),
    ("char16_t f(char32_t, wchar_t)", I2, I4, I4),
    ("bool f(bool)", B, B),
    ("Flag f(Flag*)", B, array(B)),
    ("__nv_bfloat16 f(__nv_bfloat16*)", types.bfloat16, types.CPointer(types.bfloat16)),
    ("Bits f(Holder, __half_raw, const Bits*)", HALF, HALF, HALF, array(HALF)),
    ("void f(Opaque*, Opaque*)", VOID, array(HALF), array(C8)),
    ("Pair* f(float (*)[2])", types.CPointer(C8), array(C8)),
    ("float f(long double)", F4, F8),
    ("float2 f(float2)", C8, C8),
    ("double2 f(double2)", C16, C16),
    ("Aligned f(Aligned)", C8, C8),
    ("__half f(__half)", HALF, HALF),
    ("void f(float*)", VOID, array(F4)),
    ("void f(const float* __restrict__)", VOID, array(F4)),
    ("void f(volatile float* const)", VOID, array(F4)),
    ("void f(float[])", VOID, array(F4)),
    ("void f(float (*)[4])", VOID, array(F4)),
    ("void f(float (&)[4])", VOID, array(F4)),
    ("void f(const float (&)[4], volatile float (*)[2][2])", VOID, array(F4), array(F4)),
    ("void f(float&)", VOID, array(F4)),
    ("void f(void*, const void*)", VOID, array(F4), array(I4)),
    ("void f(Opaque*, Pair*, Either*)", VOID, array(F4), array(I4), array(I8)),
    ("void f(unsigned*, Color*)", VOID, array(I4), array(I4)),
    ("void f(float2*, float*)", VOID, array(C8), array(C8)),
    ("void f(__half*, unsigned short*)", VOID, array(HALF), array(HALF)),
    ("void f(const int*, const Pair*)", VOID, TUPLE, types.Tuple((I4, F4))),
    ("void f(float*, unsigned long long)", VOID, ADDRESS, ADDRESS),
    ("void f(float**, float**)", VOID, types.CPointer(types.CPointer(F4)), array(types.uint64)),
    ("float* f()", types.CPointer(F4)),
    ("void f(const float*, const volatile float&, const void*)", VOID, READ_ONLY, READ_ONLY, READ_ONLY),
    ("void f(const float (&)[4], const Pair*)", VOID, READ_ONLY, READ_ONLY),
    ("void f(const Pair*, const Pair&, const void*, unsigned long long)", VOID, *[READ_ONLY_RECORDS] * 4),
    ("void f(const Pair*, const Pair&, const void*, unsigned long long)", VOID, *[MIXED] * 4),
]
DO_NOT_FIT = [
    ("float f(double)", F4, F4),
    ("float f(int)", F4, F4),
    ("float f(float)", F4, I4),
    ("float f()", F4, F4),
    ("float f(float, int)", F4, F4),
    ("int f(int&)", I4, I4),
    ("int f(const int&&)", I4, I4),
    ("int& f(int)", I4, I4),
    ("float f(float&)", F4, F4),
    ("void f(double&)", VOID, I4),
    ("int f(float)", F4, F4),
    ("double f(float)", F4, F4),
    ("void f(float)", F4, F4),
    ("float f(float)", VOID, F4),
    ("Pair f(float)", F4, F4),
    ("int f(Small)", I4, I4),
    ("int f(int)", B, B),
    ("unsigned char f(bool)", B, B),
    ("bool f(char)", B, B),
    ("bool f(bool)", B, I1),
    ("bool f(bool)", types.uint8, B),
    ("void f(bool*)", VOID, array(I1)),
    ("void f(signed char*)", VOID, array(B)),
    ("void f(Flag)", VOID, I1),
    ("void f(Short)", VOID, HALF),
    ("void f(Short*)", VOID, array(HALF)),
    ("void f(__nv_bfloat16)", VOID, HALF),
    ("void f(__nv_bfloat16*)", VOID, array(HALF)),
    ("__half f()", types.bfloat16),
    ("void f(int2)", VOID, C8),
    ("void f(int2*)", VOID, array(C8)),
    ("longlong2 f()", C16),
    ("double2 f(float2)", C16, C16),
    ("Pair f(Pair)", C8, C8),
    ("double f(double)", C8, C8),
    ("unsigned short f(__half)", HALF, HALF),
    ("void f(float*)", VOID, array(I4)),
    ("void f(double*)", VOID, array(F4)),
    ("void f(const double (&)[4])", VOID, array(F4)),
    ("void f(double*)", VOID, array(C8)),
    ("void f(float*)", VOID, array(HALF)),
    ("void f(const float*)", VOID, TUPLE),
    ("void f(float)", VOID, array(F4)),
    ("void f(unsigned long long)", VOID, array(F4)),
    ("void f(float*)", VOID, I4),
    ("void f(float**)", VOID, array(F4)),
    ("int* f()", types.CPointer(F4)),
    ("long long f(const long long&)", I8, I8),
    ("long long f(long long&&)", I8, I8),
    ("void f(unsigned long long&)", VOID, I8),
    ("void f(const float&)", VOID, I8),
    ("void f(double*)", VOID, I8),
    ("void f(void*)", VOID, I8),
    ("void* f()", I8),
    ("void f(float*)", VOID, READ_ONLY),
    ("void f(float (&)[4])", VOID, READ_ONLY),
    ("void f(float&&)", VOID, READ_ONLY),
    ("void f(void*)", VOID, READ_ONLY),
    ("void f(const double*)", VOID, READ_ONLY),
    ("void f(int*)", VOID, TUPLE),
    *[(f"void f({passed})", VOID, each) for passed in ("Pair*", "Pair&", "int") for each in (READ_ONLY_RECORDS, MIXED)],
]


@pytest.mark.parametrize("std", ["c++11", "c++17", "c++20"])
def test_types_that_fit(std):
    code, calls = declared(FIT)
    assert compiled(unit_of(code, std=std), *calls).log == ""


def test_types_that_do_not_fit():
    code, calls = declared(DO_NOT_FIT)
    with pytest.raises(PrototypeError) as caught:
        compiled(unit_of(code), *calls)
    found = {wrong.called: wrong.declaration for wrong in caught.value.wrong}
    for (declaration, *_), call in zip(DO_NOT_FIT, calls, strict=True):
        assert found[call] == declaration.replace("f(", f"{call.symbol}(", 1)
    assert "example.py:7 in kernel" in caught.value.log


def test_the_types_that_llvm_knows():
    fitting = CalledFunction("f", prototype_of_llvm("i32 (float*, i8, {float, float}, double, i64, i64)"))
    wrong = CalledFunction("g", prototype_of_llvm("i32 (i8*, float)"))
    declarations = 'extern "C" __device__ int f(double*, bool, float2, double, long, int&), g(void*, int);'
    assert compiled(unit_of(declarations), fitting)
    with pytest.raises(PrototypeError) as caught:
        compiled(unit_of(declarations), fitting, wrong)
    assert [each.called for each in caught.value.wrong] == [wrong]
    assert wrong.declaration == "int g(void*, float)"


WRONG = called("f", F4, I4)
FUNCTION = 'extern "C" __device__ float f(float x) { return x; }'


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ('extern "C" { __device__ float f(float); } ' + FUNCTION, {}),
        (f"namespace mine {{ {FUNCTION} }} using namespace mine;", {}),
        (f"namespace {{ {FUNCTION} }}", {}),
        ('#define DEFINE(T) extern "C" __device__ T f(T x) { return x; }\nDEFINE(float)', {}),
        ('extern "C" __device__ float NAME(float x) { return x; }', {"defines": [("NAME", "f")]}),
        (f"#define T int\n#define is 3\n#define fits(x)\n#define type\n{FUNCTION}", {}),
        ("static __device__ float f(float x) { return x; }", {}),
        (f"{FUNCTION} // the end \\", {}),
        (f"{FUNCTION}\0", {}),
        (f"#pragma pack(1)\n{FUNCTION}", {}),
        (FUNCTION.replace("__device__", ""), {"device_as_default_execution_space": True}),
        (FUNCTION.replace("float f", "__noinline__ float f"), {"lto": False}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_functions_that_are_found(code, options):
    with pytest.raises(PrototypeError) as caught:
        compiled(unit_of(code, **options), WRONG)
    assert caught.value.wrong[0].declaration == "float f(float)"


@pytest.mark.parametrize(
    "code",
    [
        "",
        f"namespace mine {{ {FUNCTION} }}",
        f"{FUNCTION} __device__ int f(int x) {{ return x; }}",
        "template <class T> __device__ T f(T x) { return x; }",
        'extern "C" __device__ int f;',
        "#define f other\n" + FUNCTION,
    ],
)
def test_nothing_is_said_of_what_cannot_be_told(code):
    assert compiled(unit_of(code), WRONG)


@pytest.mark.parametrize(
    "code", ["struct f {};", "namespace f {}", "enum { f };", 'struct S; extern "C" __device__ S f(S);']
)
def test_what_cannot_be_asked_is_compiled_without(code):
    assert compiled(unit_of(code), called("f", C8, C8)) is None


@pytest.mark.parametrize("parameters", ["...", "float x, ...", "float x, ...) noexcept (true"])
def test_a_function_with_variable_parameters_fits_no_call(parameters):
    """It finds them in memory, where no call puts them."""
    with pytest.raises(PrototypeError):
        compiled(unit_of(f'extern "C" __device__ float f({parameters}) {{ return 0; }}'), called("f", F4, F4))


@pytest.mark.parametrize("parameter", ["float (*x)(float)", "float (*x)(float, ...)", "float (&x)(float) noexcept"])
def test_a_pointer_to_a_function_is_not_one_to_data(parameter):
    code = f'extern "C" __device__ float f({parameter}) {{ return 0; }}'
    with pytest.raises(PrototypeError):
        compiled(unit_of(code), called("f", F4, array(F4)))


def test_before_cxx_11_nothing_is_checked():
    assert compiled(unit_of(FUNCTION, std="c++03"), WRONG)


@pytest.mark.parametrize(
    "options", [{}, {"lto": False}, {"lto": False, "lineinfo": True}, {"lto": False, "debug": True}]
)
def test_the_code_is_the_same_with_and_without(options):
    code = (
        f"namespace {{ __device__ int n; }} static __device__ int m;\n{FUNCTION.replace('return', 'n += ++m; return')}"
    )
    unit = unit_of(code, **options)
    right = [called("f", F4, F4), called("g", F4, F4)]
    assert compiled(unit, *right).code == compile_unit(unit).code


def test_the_users_own_errors_come_alone_and_at_their_lines():
    with pytest.raises(CompileError) as caught:
        compiled(unit_of(f"{FUNCTION}\n\n__device__ int g() {{ return SYNTAX; }}"), WRONG)
    assert not isinstance(caught.value, PrototypeError)
    assert "f.cu(3): error" in caught.value.log
    assert "numba-cuda-autolink" not in caught.value.log


def test_names_that_cxx_cannot_spell_are_left_out():
    unit = unit_of("")
    assert with_assertions(unit, [called("f.x", F4), called("é", F4)]).code == with_assertions(unit, []).code


PAIR = types.Tuple((F4, I4))
NESTED = types.Tuple((PAIR, types.UniTuple(I2, 3), C8))
POINTING = types.Tuple((types.Tuple((I1, ADDRESS)), I4))
# Declarations of S, and a tuple of its size and alignment that it is returned as.
SAME_PARTS = [
    ("struct S { float x; unsigned n; };", PAIR),
    ("enum E { A }; struct S { float x; E n; };", PAIR),
    ("struct I { float x; int n; }; struct S { I i; };", PAIR),
    ("struct S { struct { float x; int n; } i; short s[3]; float2 c; };", NESTED),
    ("struct alignas(8) S { float x; int n; short s[1][3]; float a, b; };", NESTED),
    ("struct S { int* p; const float* q; };", types.Tuple((ADDRESS, types.uint64))),
    ("struct S { __half h; unsigned short n; };", types.UniTuple(HALF, 2)),
    ("struct S { bool b; Flag f; __nv_bfloat16 n; };", types.Tuple((B, B, types.bfloat16))),
    ("struct S { bool b[2]; short n; };", from_dtype(np.dtype([("b", "u1", (2,)), ("n", "i2")]))),
    ("struct S { char a; alignas(4) short b; int n; };", types.Tuple((I1, types.Tuple((I2, I4))))),
    ("struct I { const char a; float* const p; }; struct S { I i; int n; };", POINTING),
]
OTHER_PARTS = [
    ("struct S { int n; float x; };", PAIR),
    ("struct S { bool b; int n; };", types.Tuple((types.uint8, I4))),
    ("struct S { char c; int n; };", types.Tuple((B, I4))),
    ("struct S { __nv_bfloat16 h; int n; };", types.Tuple((HALF, I4))),
    ("struct S { float x[2]; };", PAIR),
    ("struct S { float x; short s; };", PAIR),
    ("struct alignas(4) S { float x; char c[4]; };", PAIR),
    ("struct S { struct { int n; float x; } i; short s[3]; float2 c; };", NESTED),
    ("struct S { float x; int n; float2 c; short s[3]; };", NESTED),
    ("struct S { double x; float* q; };", types.Tuple((ADDRESS, types.uint64))),
    ("struct S { char a; alignas(2) char b; int n; };", types.Tuple((I1, I1, I4))),
    ("struct __attribute__((packed, aligned(4))) S { char a; int n; };", types.Tuple((I1, I4))),
    ("struct S { float m[200]; };", types.Tuple((I4, types.UniTuple(F4, 199)))),
    ("struct __attribute__((packed, aligned(8))) S { char a; float* p; };", types.Tuple((I1, ADDRESS))),
    ("struct __attribute__((packed, aligned(8))) I { char a; float* p; }; struct S { I i; int n; };", POINTING),
]
# Those that C++ does not take apart.
HIDDEN_PARTS = [
    ("class S { float n; int x; };", PAIR),
    ("struct B { float x; }; struct S : B { int n; };", PAIR),
    ("struct S { int a : 31; int b : 31; };", types.UniTuple(I4, 2)),
    ("union U { int a; float b; }; struct S { U u; U v; };", PAIR),
    ("class P { float x; int n; }; struct S { P p; int* q; };", types.Tuple((F4, I4, ADDRESS))),
    ("struct S { float m[300]; };", types.UniTuple(F4, 300)),
]
UNNAMED_UNION = ("struct S { union { int a; float b; }; float y; };", PAIR)


def declare_structs(cases):
    """C++ that declares functions of the structs of *cases*, and the calls of them."""
    code, calls = [TYPES], []
    for number, (declared, returns) in enumerate(cases):
        declared = re.sub(r"\b([A-Z])\b", rf"\g<1>{number}", declared)
        code.append(f'{declared} extern "C" __device__ S{number} f{number}(S{number});')
        calls.append(CalledFunction(f"f{number}", CPrototype(struct_ctype(returns), (struct_ctype(returns),))))
    return "\n".join(code), calls


def test_parts_of_structs_are_compared():
    code, calls = declare_structs([*SAME_PARTS, *HIDDEN_PARTS, *OTHER_PARTS])
    with pytest.raises(PrototypeError) as caught:
        compiled(unit_of(code), *calls)
    assert [each.called for each in caught.value.wrong] == calls[-len(OTHER_PARTS) :]


def test_structs_that_are_not_taken_apart_are_told():
    code, calls = declare_structs([*SAME_PARTS, *HIDDEN_PARTS])
    asked = questions(calls)
    told = compile_unit(with_assertions(unit_of(code), calls), asked).names
    assert list_hidden(calls, [told[each] for each in asked]) == tuple(calls[len(SAME_PARTS) :])


@pytest.mark.parametrize(("std", "last"), [("c++17", [UNNAMED_UNION]), ("c++11", [])])
def test_where_structs_cannot_be_compared_other_types_are(std, last):
    code, calls = declare_structs([*SAME_PARTS, *last])
    unit = unit_of(code, std=std)
    assert compiled(unit, *calls) is None
    assert compile_unit(with_assertions(unit, calls, of_structs=False))
    assert list_hidden(calls, []) == tuple(calls)
