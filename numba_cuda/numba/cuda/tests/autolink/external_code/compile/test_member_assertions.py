# SPDX-License-Identifier: BSD-2-Clause
"""Members of a C++ struct are where a record has its fields of these names, or the unit does not compile."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest
from numba import from_dtype
from numba.cuda import types
from numba.cuda.autolink import Target
from numba.cuda.autolink.c_abi.c_types import ctype
from numba.cuda.autolink.c_abi.structs import struct_ctype
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.compile.programs import compile_unit
from numba.cuda.cudadrv.external_code.compile.prototype_assertions import (
    PrototypeError,
    raise_understood,
    with_assertions,
)
from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CalledFunction, CPrototype
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CompileOptions
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput


def record(*fields):
    return from_dtype(np.dtype([*fields], align=True))


VOID = ctype(types.none)
XV = record(("x", "f4"), ("v", "f4"))
XVN = record(("x", "f4"), ("v", "f4"), ("n", "i4"))
INNER = np.dtype([("x", "f4"), ("v", "f4")], align=True)
NESTED = record(("n", "i8"), ("inner", INNER))
Point = namedtuple("Point", "x v")


def by_pointer(*records):
    """The call of a function f that gets pointers to *records*."""
    return CalledFunction("f", CPrototype(VOID, tuple(map(ctype, records))), "the call at example.py:7")


def by_value(returns, *records):
    prototype = CPrototype(struct_ctype(returns), tuple(map(struct_ctype, records)))
    return CalledFunction("f", prototype, "the call at example.py:7")


def compiled(code, *called, **options):
    """Compile *code* with assertions; return None if only they do not compile."""
    options = CompileOptions(options=tuple(sorted(options.items())))
    unit = TranslationUnit.of(LinkInput(kinds.CUDA, code.encode(), options, "f.cu"), Target((9, 0), lto=True))
    try:
        return compile_unit(with_assertions(unit, called)), compile_unit(unit)
    except CompileError as error:
        raise_understood(error, unit.name, called)


def wrong_in(code, *called, **options):
    with pytest.raises(PrototypeError) as caught:
        compiled(code, *called, **options)
    return [f"{member}, not {member.expected}" for each in caught.value.wrong for member in each.members]


# A struct S in C++, and the record to which f gets a pointer. None may be refused.
RIGHT = {
    "the same": ("struct S { float x, v; };", XV),
    "a class with functions": ("class S { public: float x, v; __device__ float sum() { return x + v; } };", XV),
    "other names": ("struct S { float velocity, place; };", XV),
    "one of the names": ("struct S { float v, place; };", XV),
    "names of functions": ("struct S { float a, b; __device__ float x(); __device__ float v() const; };", XV),
    "names of overloads and templates": (
        "struct S { float a, b; __device__ float x(); __device__ float x(int); template <class T> __device__ T v(); };",
        XV,
    ),
    "names of types and enumerators": ("struct S { float a, b; struct x {}; enum { v }; };", XV),
    "names of static members": ("struct S { float a, b; static const float x; static const int v = 1; };", XV),
    "private members": ("class S { float v, x; };", XV),
    "protected members": ("struct S { protected: float v, x; };", XV),
    "bit-fields": ("struct S { int v : 3, x : 3; };", XV),
    "references": ("struct S { float &v, &x; };", XV),
    "a base class": ("struct B { float x; }; struct S : B { float v; };", XV),
    "two base classes": ("struct A { float x; }; struct B { float v; }; struct S : A, B {};", XV),
    "a private base class": ("struct B { float v, x; }; struct S : private B {};", XV),
    "a virtual base class": ("struct B { float v, x; }; struct S : virtual B { float a; };", XV),
    "an ambiguous member": ("struct A { float v, x; }; struct B : A {}; struct C : A {}; struct S : B, C {};", XV),
    "a union in a struct": ("struct S { union { float x, r; }; union { float v, g; }; };", XV),
    "a struct in a union": ("union S { float all[2]; struct { float x, v; }; };", XV),
    "const and volatile members": ("struct S { const float x; volatile float v; };", XV),
    "arrays of const members": (
        "struct S { const float x[2]; const volatile float v[2][2]; };",
        record(("x", "f4", 2), ("v", "f4", (2, 2))),
    ),
    "atomic-like members": ("template <class T> struct A { T value; }; struct S { A<float> x, v; };", XV),
    "a template": ("template <class T> struct P { T x, v; }; typedef P<float> S;", XV),
    "a struct of its own alignment": ("struct alignas(16) S { float x, v; };", XV),
    "a packed struct": ("#pragma pack(1)\nstruct S { float x, v; };", XV),
    "a longer struct": ("struct S { float x, v, more[6]; };", XV),
    "a struct that is not complete": ("struct S;", XV),
    "members with operator &": (
        "struct A { float a; __device__ constexpr A* operator&() const { return nullptr; } }; struct S { A x, v; };",
        XV,
    ),
    "enumerations, signs, pointers": (
        "enum E : short { ONE }; struct S { unsigned n; E e; bool b; void* p; long long q; };",
        record(("n", "i4"), ("e", "i2"), ("b", "?"), ("p", "u8"), ("q", "u8")),
    ),
    "numbers that are classes": (
        "#include <cuda_fp16.h>\nstruct C { float re, im; };"
        "struct S { C c; float2 d; float e[2]; __half h; short i; int j; };",
        record(("c", "c8"), ("d", "c8"), ("e", "c8"), ("h", "f2"), ("i", "f2"), ("j", "i4")),
    ),
    "arrays": (
        "struct V { float x, y, z; }; struct S { float a[3]; V b; float c[4]; int d[2][3]; };",
        record(("a", "f4", 3), ("b", "f4", (3,)), ("c", "f4", (2, 2)), ("d", "i4", (2, 3))),
    ),
    "bytes for an object": (
        "struct T { int a; double b; }; struct S { int n; alignas(8) T t; };",
        record(("n", "i4"), ("t", "u8", 2)),
    ),
    "a nested struct": ("struct I { float x, v; }; struct S { long long n; I inner; };", NESTED),
    "a nested struct with other names": ("struct I { float v, place; }; struct S { long long n; I inner; };", NESTED),
    "a member instead of a nested record": ("struct S { long long n; double inner; };", NESTED),
    "memory for another struct": ("struct S { unsigned n, data[5]; };", record(("data", "u4", 6))),
    "names of macros": ("struct S { float x, v; };\n#define x y\n#define v 1 +\n", XV),
    "names that are macros in the struct": ("#define x y\n#define v x\nstruct S { float v, place; };", XV),
    "names that C++ does not allow": (
        "struct S { float a, b; };",
        record(("class", "f4"), ("d\N{LATIN SMALL LETTER E WITH ACUTE}but", "f4"), ("defined", "i4")),
    ),
}


def test_right_programs_compile_in_one_unit():
    code, calls = [], []
    for number, (text, expected) in enumerate(RIGHT.values()):
        if "#" not in text:
            code.append(f"namespace n{number} {{ {text} }}")
            code.append(f'extern "C" __device__ void f{number}(n{number}::S*) {{}}')
            calls.append(CalledFunction(f"f{number}", CPrototype(VOID, (ctype(expected),)), ""))
    checked, plain = compiled("\n".join(code), *calls)
    assert (checked.code, checked.log) == (plain.code, plain.log)
    assert len(calls) > 30


def some(names):
    """Mark those as thorough that are not among *names*, or are of a later C++."""
    thorough = pytest.mark.thorough
    cases = [(name, std) for name in RIGHT for std in ("c++11", "c++20")]
    return [each if each[0] in names and each[1] == "c++11" else pytest.param(*each, marks=thorough) for each in cases]


@pytest.mark.parametrize(
    ("name", "std"), some(["names of macros", "names that are macros in the struct", "numbers that are classes"])
)
def test_right_programs_compile_to_the_same_code(name, std):
    text, expected = RIGHT[name]
    checked, plain = compiled(f'{text}\nextern "C" __device__ void f(S*) {{}}', by_pointer(expected), std=std)
    assert (checked.code, checked.log) == (plain.code, plain.log)


AT = "float {} at byte {} of S, not float {} at byte {}"
# A struct S in C++, a record, and what is said.
WRONG = {
    "swapped": ("struct S { float v, x; };", XV, [AT.format("x", 4, "x", 0), AT.format("v", 0, "v", 4)]),
    "another alignment": (
        "struct S { float x; alignas(8) float v; };",
        XV,
        ["float v at byte 8 of S, not float v at byte 4"],
    ),
    "in a base class": (
        "struct B { float v; }; struct S : B { float x; };",
        XV,
        [AT.format("x", 4, "x", 0), AT.format("v", 0, "v", 4)],
    ),
    "another type": (
        "struct S { float x, v; float n; };",
        XVN,
        ["float n at byte 8 of S, not int n at byte 8"],
    ),
    "an array of another type": (
        "struct S { int n; double a[3]; };",
        record(("n", "i4"), ("a", "i8", 3)),
        ["double [3] a at byte 8 of S, not long long a at byte 8"],
    ),
    "nested": (
        "struct I { float v, x; }; struct S { long long n; I inner; };",
        NESTED,
        [each.replace("S", "I") for each in (AT.format("x", 4, "x", 0), AT.format("v", 0, "v", 4))],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_members_are_named(name):
    text, expected, said = WRONG[name]
    code = f'{text}\nextern "C" __device__ void f({"S*" if len(said) > 1 else "const S&"}) {{}}'
    assert wrong_in(code, by_pointer(expected)) == said


@pytest.mark.parametrize("returns", [XV, types.NamedTuple((types.float32, types.float32), Point)], ids=str)
def test_structs_by_value_and_results_are_compared(returns):
    function = 'extern "C" __device__ S f(S s) { return s; }'
    assert compiled(f"struct S {{ float x, v; }}; {function}", by_value(returns, XV)) is not None
    said = wrong_in(f"struct S {{ float v, x; }}; {function}", by_value(returns, XV))
    assert said == [AT.format("x", 4, "x", 0), AT.format("v", 0, "v", 4)]


def test_arrays_of_records_and_each_of_several_functions_are_compared():
    code = """
        struct S { float v, x; }; struct R { float x, v; }; extern "C" __device__ void f(const S*) {}
        extern "C" { __device__ void g(R*, const S*) {} __device__ void h(R*, const R*) {} }"""
    pointers = ctype(XV), ctype(types.Array(XV, 1, "C", readonly=True))
    calls = [CalledFunction(name, CPrototype(VOID, pointers[-n:]), name) for name, n in (("f", 1), ("g", 2), ("h", 2))]
    with pytest.raises(PrototypeError) as caught:
        compiled(code, *calls)
    assert [each.called.symbol for each in caught.value.wrong] == ["f", "g"]
    assert {len(each.members) for each in caught.value.wrong} == {2}


def test_other_types_of_the_function_come_first():
    with pytest.raises(PrototypeError) as caught:
        compiled('struct S { float v, x; }; extern "C" __device__ void f(S*, int) {}', by_pointer(XV))
    (wrong,) = caught.value.wrong
    assert wrong.declaration == "void f(S*, int)" and wrong.members == ()


def test_a_template_that_cannot_be_instantiated_is_compiled_without():
    template = 'template <class T> struct S { static_assert(sizeof(T) == 0, "never"); float v, x; };'
    assert compiled(f'{template} extern "C" __device__ void f(S<int>*) {{}}', by_pointer(XV)) is None


def test_a_tuple_without_names_is_any_struct():
    pair = types.UniTuple(types.float32, 2)
    code = 'struct S { float _1, _0; }; extern "C" __device__ S f(S s) { return s; }'
    assert compiled(code, by_value(pair, pair)) is not None
