# SPDX-License-Identifier: BSD-2-Clause
"""Structs by value, as arguments and as results: declared as NVRTC declares them, and inlined."""

import functools
import re
from collections import namedtuple

import numpy as np
import pytest
from autolink_support import build, ptx, symbols
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError
from numba.cuda.np.numpy_support import from_dtype

Point = namedtuple("Point", "x y")
PARTICLE = np.dtype([("mass", "f4"), ("position", "f8", (2, 2)), ("z", "c8"), ("ok", "?"), ("id", "u2")], align=True)
INNER = np.dtype([("a", "i2"), ("b", "f8")], align=True)
OUTER = np.dtype([("c", "i1"), ("inner", INNER), ("last", "i4")], align=True)
F32, F64, I8, I16, I32, C64 = types.float32, types.float64, types.int8, types.int16, types.int32, types.complex64
# A type by value, and the members of its struct.
STRUCTS = {
    "pair": (types.UniTuple(I32, 2), "int a, b;"),
    "three": (types.UniTuple(F32, 3), "float x, y, z;"),
    "named": (types.NamedUniTuple(F64, 2, Point), "double x, y;"),
    "one": (types.Tuple((types.boolean,)), "bool a;"),
    "padded": (types.Tuple((I8, F64)), "signed char a; double b;"),
    "padded_at_the_end": (types.Tuple((F64, I32)), "double a; int b;"),
    "short_at_the_end": (types.Tuple((I32, I16, I8)), "int a; short b; signed char c;"),
    "complex": (types.Tuple((I8, C64, I16)), "signed char a; float2 b; short c;"),
    "aligned": (types.Tuple((types.complex128, types.boolean)), "double2 a; bool b;"),
    "nested": (types.Tuple((types.Tuple((F64, I8)), I8)), "struct { double a; signed char b; } a; signed char b;"),
    "pointer": (types.Tuple((types.CPointer(F32), I32)), "float* a; int b;"),
    "record": (from_dtype(PARTICLE), "float mass; double position[2][2]; float2 z; bool ok; unsigned short id;"),
    "record_in_a_record": (
        from_dtype(OUTER),
        "signed char c; struct { short a; double b; } inner; int last;",
    ),
}


class Through(autolink.DeviceCallable):
    """Takes a struct and returns it."""

    def __init__(self, name):
        self.name, (self.numba_type, self.members) = name, STRUCTS[name]

    def __numba_cuda_call__(self, value):
        return autolink.Extern(self.name, returns=self.numba_type, args={"value": autolink.by_value})

    def __numba_cuda_link__(self, value):
        return autolink.CUDASource(f"{self.struct} {self.declaration} {{ ((char*)&s)[0] ^= 1; return s; }}")

    @property
    def struct(self):
        return f"struct S_{self.name} {{ {self.members} }};"

    @property
    def declaration(self):
        return f'extern "C" __device__ S_{self.name} {self.name}(S_{self.name} s)'


def through_all():
    """Return a kernel that passes each struct through a function of C++, twice."""
    scope = {f"through_{name}": Through(name) for name in STRUCTS}
    calls = "".join(f"    through_{name}(through_{name}({name}))\n" for name in STRUCTS)
    exec(f"def kernel({', '.join(STRUCTS)}):\n{calls}", scope)
    return scope["kernel"]


def declarations(text):
    return sorted(" ".join(found.split()) for found in re.findall(r"\.extern \.func[^;]*;", text))


@functools.cache
def nvrtc_declarations():
    objects = [Through(name) for name in STRUCTS]
    declared = "\n".join(f"{each.struct}\n{each.declaration};" for each in objects)
    calls = " ".join(f"*(S_{each.name}*)p = {each.name}(*(S_{each.name}*)p);" for each in objects)
    return declarations(ptx(f'{declared}\nextern "C" __global__ void kernel(char* p) {{ {calls} }}').decode())


ARGTYPES = tuple(numba_type for numba_type, _ in STRUCTS.values())


@pytest.mark.parametrize("cc", [(9, 0), (10, 0)])
def test_structs_are_declared_as_nvrtc_declares_them_and_inlined_under_lto(cc):
    text, _ = cuda.compile(through_all(), ARGTYPES, cc=cc, device=False, abi="numba", output="ptx")
    assert declarations(text) == nvrtc_declarations()
    assert "call" not in build(through_all(), ARGTYPES, output="ptx", cc=cc).code.decode()


def test_structs_link_without_lto():
    assert set(STRUCTS) <= symbols(build(through_all(), ARGTYPES, lto=False).code)


def test_a_struct_costs_what_its_members_cost():
    """The same loads, stores and computations as in C++, and no local memory."""

    class Step(autolink.DeviceCallable):
        def __numba_cuda_call__(self, p):
            return autolink.Extern("step", returns=from_dtype(PARTICLE), args={"p": autolink.by_value})

        def __numba_cuda_link__(self, p):
            return autolink.CUDASource(
                "struct P { float mass; double position[2][2]; float2 z; bool ok; unsigned short id; };"
                'extern "C" __device__ P step(P p) { p.position[1][0] += p.z.y; return p; }'
            )

    step = Step()

    def kernel(x):
        i = cuda.grid(1)
        x[i] = step(x[i])

    text = build(kernel, types.void(from_dtype(PARTICLE)[::1]), output="ptx").code.decode()
    assert "call" not in text
    assert ".local" not in text
    assert text.count("st.global") <= 9  # one for each number
    assert "st.global.u8" not in text.replace("st.global.u8", "", 1)  # the bool alone
    assert not re.search(r"(ld|st)\.[fubv]\d", text)  # no generic addresses


def test_results_are_tuples_with_the_fields_of_the_record():
    class Make(autolink.DeviceCallable):
        @autolink.device_method
        def particle(self, x):
            return autolink.Extern("particle", returns=PARTICLE, args={"x": F32})

        @autolink.device_method
        def divided(self, a, b):
            return autolink.Extern("divided", returns="UniTuple(int32, 2)", args={"a": I32, "b": I32})

        def __numba_cuda_link__(self, *argtypes):
            return autolink.CUDASource(
                "struct P { float mass; double position[2][2]; float2 z; bool ok; unsigned short id; };"
                'extern "C" __device__ P particle(float x) { return {x, {{1, 2}, {3, 4}}, {5, 6}, true, 7}; }'
                "struct Division { int quotient, remainder; };"
                'extern "C" __device__ Division divided(int a, int b) { return {a / b, a % b}; }'
            )

    make = Make()

    @cuda.jit(device=True)
    def total(p, i):
        return p.mass + p.position[1][i] + p.z.imag + p[4]

    def kernel(x):
        best = make.particle(np.float32(0))
        for i in range(3):
            p = make.particle(np.float32(i))
            if p.mass > best.mass and p.ok:
                best = p
        x[0] = total(best, 1)
        quotient, remainder = make.divided(17, 5)
        x[1] = quotient * 10 + remainder

    text = build(kernel, "void(float64[::1])", output="ptx").code.decode()
    assert "call" not in text
    # 2 + 4 + 6 + 7, and 32
    assert {np.float64(19).view("u8"), np.float64(32).view("u8")} <= {
        np.uint64(int(digits, 16 if prefix else 10))
        for prefix, digits in re.findall(r"mov\.\w64\s+%\w+, (0d)?(\w+);", text)
        if digits.isalnum() and digits[0].isdigit()
    }


class TestErrors:
    @pytest.mark.parametrize(
        "argtype, message",
        [
            (
                types.float32[::1],
                r"array\(float32, 1d, C\) cannot be passed by value: it is not a record, tuple or number",
            ),
            (types.none, "none cannot be passed by value"),
            (from_dtype(np.dtype([("a", "i1"), ("b", "f8")])), r"'b' \(float64\) of a record is at byte 1"),
            (from_dtype(np.dtype([("a", "S4")])), "a string in a record, cannot be passed or returned by value"),
            (types.Tuple((types.float32[::1], I8)), "inside an array or tuple has no counterpart in C"),
        ],
    )
    def test_what_is_not_passed_by_value(self, argtype, message):
        class Takes(autolink.DeviceCallable):
            def __numba_cuda_call__(self, value):
                return autolink.Extern("takes", args={"value": autolink.by_value})

        takes = Takes()

        def kernel(value):
            takes(value)

        with pytest.raises(TypingError, match=f"argument 'value': (?s:.*){message}"):
            build(kernel, (argtype,))

    def test_a_number_is_passed_by_value_in_any_case(self):
        assert str(autolink.Extern("f", args={"x": autolink.by_value})) == (
            "Extern('f', returns=none, args={'x': autolink.by_value})"
        )
