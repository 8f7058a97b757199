# SPDX-License-Identifier: BSD-2-Clause
"""The args of an `Extern` convert numbers and pointers, and refuse what would lose a value."""

import enum
import functools
import re

import numpy as np
import pytest
from autolink_support import build, without_place
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError
from numba.cuda.np.numpy_support import from_dtype

Color = enum.IntEnum("Color", "RED BLUE")
PAIR = from_dtype(np.dtype([("a", "f4"), ("b", "i4")], align=True))


class Takes(autolink.DeviceCallable):
    """A function of one argument, which is passed as *asked_for*."""

    def __init__(self, asked_for, cxx):
        self.asked_for, self.cxx = asked_for, cxx

    def __numba_cuda_call__(self, n):
        return autolink.Extern("takes", args={"n": self.asked_for})

    def __numba_cuda_link__(self, n):
        return autolink.CUDASource(f'extern "C" __device__ void takes({self.cxx} n) {{}}')


def compile_call(asked_for, cxx, given, output="ltoir"):
    """Compile a call with an argument of the type *given*, or with a constant."""
    takes = Takes(asked_for, cxx)
    if isinstance(given, types.Type):

        def kernel(n):
            takes(n)

        argtypes = (given,)
    else:

        def kernel():
            takes(given)

        argtypes = ()
    return build(kernel, argtypes, output=output)


class TestExact:
    @pytest.mark.parametrize(
        "target, given",
        [
            ("int8", types.int8),
            ("int8", 127),
            ("int8", -128),
            ("int8", types.boolean),
            ("int32", types.uint16),
            ("uint64", 2**64 - 1),
            ("float32", types.int16),
            ("float32", 2**24),
            ("float64", types.int32),
            ("float64", types.float32),
            ("complex64", types.float32),
            ("complex128", types.complex64),
            ("float16", types.uint8),
            ("boolean", types.boolean),
            ("int64", Color.BLUE),
        ],
    )
    def test_passes_what_the_type_holds(self, target, given):
        compile_call(autolink.exact(target), autolink.cxx_type(target), given)

    @pytest.mark.parametrize(
        "target, given, message",
        [
            ("int32", 2.7, "not every float64 is a value of int32"),
            ("int32", types.float32, "not every float32 is a value of int32"),
            ("int32", types.int64, "not every int64 is a value of int32"),
            ("int32", types.uint32, "not every uint32 is a value of int32"),
            ("uint32", types.int8, "not every int8 is a value of uint32"),
            ("int8", 300, "the constant 300 is not a value of int8"),
            ("uint8", -1, "the constant -1 is not a value of uint8"),
            ("float32", types.int32, "not every int32 is a value of float32"),
            ("float32", 2**24 + 1, "the constant 16777217 is not a value of float32"),
            ("float32", 0.1, "not every float64 is a value of float32"),
            ("float64", types.int64, "not every int64 is a value of float64"),
            ("float64", types.complex64, "complex64 cannot be converted to float64"),
            ("boolean", 1, "the constant 1 is not a value of bool"),
        ],
    )
    def test_refuses_other_values_at_the_calls_line(self, target, given, message):
        with pytest.raises(TypingError) as caught:
            compile_call(autolink.exact(target), autolink.cxx_type(target), given)
        text = str(caught.value)
        assert re.search(rf"argument 'n'(: | is passed exactly, and ){re.escape(message)}", text)
        assert "takes(" in text

    def test_constants_are_told_apart_in_one_kernel(self):
        takes = Takes(autolink.exact("int8"), "signed char")

        def kernel():
            takes(3)
            takes(300)  # the wrong one

        with pytest.raises(TypingError, match=r"the constant 300(?s:.*)takes\(300\)  # the wrong one"):
            build(kernel, (), output="ltoir")

    def test_defaults_and_keywords_and_star_arguments(self):
        class Many(autolink.DeviceCallable):
            def __numba_cuda_call__(self, a, *rest, b=3):
                names = ["a", *(f"rest_{i}" for i in range(len(rest))), "b"]
                return autolink.Extern("many", args=dict.fromkeys(names, autolink.exact("int8")))

            def __numba_cuda_link__(self, *argtypes):
                return autolink.CUDASource('extern "C" __device__ void many(char, char, char, char) {}')

        many = Many()

        def fits():
            many(1, 2, 3)

        def does_not():
            many(1, 2, 400, b=4)

        build(fits, (), output="ltoir")
        with pytest.raises(TypingError, match="argument 'rest_1' is passed exactly, and the constant 400"):
            build(does_not, (), output="ltoir")

    @pytest.mark.parametrize("function", [autolink.exact, autolink.by_reference])
    @pytest.mark.parametrize("wrong", [types.float32[::1], types.voidptr, "float33", 3, float, None])
    def test_takes_the_type_of_a_number(self, function, wrong):
        with pytest.raises(TypeError):
            function(wrong)

    def test_has_a_repr(self):
        assert repr(autolink.exact("int32")) == "autolink.exact(int32)"
        assert repr(autolink.by_reference(np.float32)) == "autolink.by_reference(float32)"


class TestPointers:
    @pytest.mark.parametrize(
        "given, element",
        [
            (types.float32[::1], "float32"),
            (types.int64[:, :], "int64"),
            (types.UniTuple(types.uint32, 2), "uint32"),
            (types.CPointer(types.float64), "float64"),
            (PAIR[::1], "Record"),
        ],
    )
    def test_of_another_dtype_are_refused(self, given, element):
        found = rf"cannot be passed as (?s:.*)int\*: its elements are {element}(?s:.*)types\.voidptr"
        with pytest.raises(TypingError, match=rf"argument 'n': (?s:.*) {found}"):
            compile_call(types.CPointer(types.int32), "int*", given)

    @pytest.mark.parametrize(
        "target, given",
        [
            (types.CPointer(types.int32), types.int32[:, ::1]),
            (types.CPointer(types.int32), types.int32[:]),
            (types.CPointer(types.int32), types.none),
            (types.CPointer(PAIR), PAIR[::1]),
            (types.CPointer(types.float32), PAIR),
            (types.voidptr, types.float64[:]),
        ],
    )
    def test_of_the_same_dtype_are_passed(self, target, given):
        compile_call(target, autolink.cxx_type(target), given)

    @pytest.mark.parametrize(
        "given",
        [types.Array(types.float32, 1, "C", readonly=True), types.UniTuple(types.float32, 2)],
    )
    def test_to_what_c_may_not_write_are_pointers_to_const(self, given):
        target = types.CPointer(types.float32)
        compile_call(target, "const float*", given, output="cubin")
        compile_call(types.voidptr, "float*", given, output="cubin")  # as the binding says
        with pytest.raises(autolink.LinkError, match="'takes' is called with other types than it has"):
            compile_call(target, "float*", given, output="cubin")

    @pytest.mark.parametrize("given", [types.int64, types.uint64, 3])
    @pytest.mark.parametrize("cxx", ["const long long&", "long long&&", "unsigned long long&", "double*", "void*"])
    def test_an_integer_is_not_an_address(self, given, cxx):
        with pytest.raises(autolink.LinkError) as caught:
            compile_call(None, cxx, given, output="cubin")
        lines = without_place(caught.value).splitlines()
        assert lines[0].endswith("'takes' is called with other types than it has")
        assert re.search(r"got: void takes\((unsigned )?long long\) for the call with \(", lines[2])
        assert lines[3].endswith(f"expected: void takes({cxx}), as it is defined")
        assert lines.pop(4).startswith("  in C++: ")
        assert lines[4] == f"  n: got {'unsigned ' if given == types.uint64 else ''}long long, expected {cxx}"
        assert lines[5].startswith("  linking kernel ")
        assert "where the integer n is an address, Extern's args={..., 'n': types.voidptr}" in "".join(lines[6:])
        is_read = cxx.startswith("const ") or "&&" in cxx
        assert ("'n': autolink.by_reference('int64')" in lines[-1]) == is_read

    @pytest.mark.parametrize("given", [types.int64, types.uint64, 0])
    @pytest.mark.parametrize("cxx", ["double*", "const float&", "void*", "unsigned long long"])
    def test_an_integer_that_is_declared_as_an_address_is_passed_as_one(self, given, cxx):
        compile_call(types.voidptr, cxx, given, output="cubin")

    @pytest.mark.parametrize("given", [types.int32, types.boolean, types.float64, 2.5])
    def test_other_numbers_are_no_addresses(self, given):
        with pytest.raises(
            TypingError, match=r"argument 'n': \w+ is not an address(?s:.*)autolink\.by_reference\(types"
        ):
            compile_call(types.voidptr, "void*", given)

    def test_only_numbers_are_passed_by_reference(self):
        with pytest.raises(TypingError, match=r"array\(float32, 1d, C\) is not a number, and cannot be passed as"):
            compile_call(autolink.by_reference("float32"), "const float*", types.float32[::1])


@pytest.mark.gpu
@pytest.mark.parametrize("lto", [True, False])
def test_exact_numbers_have_their_values(lto):
    class Add(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x, y):
            return autolink.Extern("add", returns="float64", args=dict.fromkeys("xy", autolink.exact("float64")))

        def __numba_cuda_link__(self, x, y):
            return autolink.CUDASource('extern "C" __device__ double add(double x, double y) { return x + y; }')

    add = Add()

    @functools.partial(cuda.jit, lto=lto)
    def kernel(x, y, z):
        z[0] = add(x[0], y[0]) + add(2**50, np.int8(-1))

    z = np.zeros(1)
    kernel[1, 1](np.array([-7], np.int32), np.array([0.25], np.float32), z)
    assert z[0] == -6.75 + 2**50 - 1
