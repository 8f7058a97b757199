# SPDX-License-Identifier: BSD-2-Clause
"""The choice among a kernel's signatures, and the error where none fits."""

from __future__ import annotations

import enum
from types import SimpleNamespace

import numpy as np
import pytest
from fake_driver import DeviceArray
from finished_kernels_support import NUMBER, VECTOR, CupyArray, signature

from numba_cuda_autolink import ArgumentError
from numba_cuda_autolink.plain_types import Parameter


@pytest.mark.parametrize(
    ("value", "chosen"),
    [
        (3, "<i8"),
        (3.0, "<f8"),
        (3j, "<c16"),
        (np.float32(3), "<f4"),
        (np.int32(3), "<i4"),
        (True, "|b1"),
        (np.uint8(3), "<i8"),
        (np.float16(3), "<f8"),
        (None, None),
        ((1, 2.0), "tuple"),
    ],
)
def test_numbers_choose_as_numba_does(library, fake, value, chosen):
    kinds = {
        **{dtype: Parameter("number", "a", dtype) for dtype in ("<i4", "<i8", "<f4", "<f8")},
        "<c16": Parameter("complex", "a", "<c16"),
        "|b1": Parameter("bool", "a", "|b1"),
        None: Parameter("none", "a"),
        "tuple": Parameter("tuple", "a", items=(Parameter("number", "0", "<i8"), Parameter("number", "1", "<f8"))),
    }
    kernel = library(k=[signature(each, code=str(name).encode()) for name, each in kinds.items()]).k
    kernel[1, 1](value)
    assert fake.loaded == [str(chosen).encode()]


class Level(enum.Enum):
    LOW = 3


def numbers(*dtypes):
    """Signatures of one number each, whose code is the name of the type."""
    kinds = {"b": "bool", "c": "complex", "m": "datetime"}
    return [signature(Parameter(kinds.get(each[1], "number"), "a", each), code=each.encode()) for each in dtypes]


@pytest.mark.parametrize(
    ("dtypes", "values", "chosen"),
    [
        (["<i4", "<f4"], [3, 2**40, 3], ["<i4", "<f4", "<i4"]),
        (["<f4", "<i4"], [2**40, 3, -(2**31), -(2**31) - 1], ["<f4", "<i4", "<i4", "<f4"]),
        (["<f4", "|u1"], [256, 255, -1, 0], ["<f4", "|u1", "<f4", "|u1"]),
        (["<c8", "|i1"], [-129, -128, 128, 127], ["<c8", "|i1", "<c8", "|i1"]),
        (["<f8", "<i2"], [np.int64(2**20), np.int64(5), np.int64(2**20)], ["<f8", "<i2", "<f8"]),
    ],
)
def test_the_choice_does_not_depend_on_earlier_launches(library, fake, dtypes, values, chosen):
    kernel = library(k=numbers(*dtypes)).k
    for value, expected in zip(values, chosen, strict=True):
        kernel[1, 1](value)
        assert fake.loaded[fake.launches[-1].function[0] - 1].decode() == expected


@pytest.mark.parametrize("make", [lambda **how: DeviceArray(**how), lambda strides=None: strided(strides)])
def test_neither_does_the_choice_of_a_layout(library, fake, make):
    layouts = [signature(VECTOR._replace(layout=layout), code=layout.encode()) for layout in "AC"]
    kernel = library(k=layouts).k
    for strides, expected in [((8,), "A"), (None, "C"), ((8,), "A"), (None, "C")]:
        kernel[1, 1](make(strides=strides))
        assert fake.loaded[fake.launches[-1].function[0] - 1].decode() == expected


def strided(strides):
    array = CupyArray()
    if strides:
        array.strides = strides
        array.flags = SimpleNamespace(c_contiguous=False, f_contiguous=False)
        array._c_contiguous = array._f_contiguous = False
    return array


def test_the_items_of_tuples_choose(library, fake):
    items = [Parameter("tuple", "t", items=(Parameter("number", "0", dtype),)) for dtype in ("<f8", "<i8")]
    kernel = library(k=[signature(each, code=each.items[0].dtype.encode()) for each in items]).k
    for value, expected in [((1.5,), "<f8"), ((1,), "<i8"), ((1.5,), "<f8"), ((1,), "<i8")]:
        kernel[1, 1](value)
        assert fake.loaded[fake.launches[-1].function[0] - 1].decode() == expected


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        (Parameter("number", "a", "<i4"), True),
        (Parameter("bool", "a", "|b1"), 1),
        (Parameter("datetime", "a", "<m8[ns]"), 5),
        (Parameter("number", "a", "<i8"), Level.LOW),
        (Parameter("number", "a", "<f4"), 10**30),
    ],
)
def test_what_one_signature_takes_is_taken_beside_others(library, fake, parameter, value):
    kernel = library(one=[signature(parameter)], k=[signature(VECTOR), signature(parameter)])
    kernel.one[1, 1](value)
    kernel.k[1, 1](value)
    assert fake.launches[0].packed == fake.launches[1].packed


def test_arrays_whose_dtype_cannot_be_hashed_choose_too(library, fake):
    array = DeviceArray()
    array.dtype, array.ndim = [], 1
    library(k=[signature(), signature(NUMBER)]).k[1, 1](array, 2.0)
    assert len(fake.launches) == 1


def test_choosing_waits_for_no_stream(library, fake):
    kernel = library(k=[signature(VECTOR._replace(layout=layout)) for layout in "AC"]).k
    kernel[1, 1, 5](DeviceArray(stream=6))
    kernel[1, 1, 5](DeviceArray(stream=6))
    assert fake.waits == [(5, 6), (5, 6)]


def refused(kernel, *args):
    with pytest.raises(ArgumentError) as caught:
        kernel[1, 1](*args)
    first, at, _source, _caret, *rest = str(caught.value).splitlines()
    assert len(first) < 120 and at.startswith(f"  called at: {__file__}:")
    return caught.value, [first, *rest]


class TestNoneFits:
    def test_an_argument_that_fits_nowhere_is_named_with_the_reason_for_each_signature(self, library, fake):
        both = [signature(VECTOR._replace(dtype=dtype), NUMBER._replace(dtype=dtype)) for dtype in ("<f4", "<f8")]
        error, lines = refused(library(scale=both).scale, DeviceArray(typestr="|u1"), 3)
        assert lines == [
            "scale: argument 1, 'x', fits none of its signatures",
            "  signatures:",
            "    (array(float32, 1d, C), float32)",
            "      argument 1, 'x': expected array(float32, 1d, C), got array(uint8, 1d, C)",
            "    (array(float64, 1d, C), float64)",
            "      argument 1, 'x': expected array(float64, 1d, C), got array(uint8, 1d, C)",
            "  got: (array(uint8, 1d, C), int 3)",
            "  what to do: pass an array of float32, or build the kernel for its type, too",
        ]
        assert (error.position, error.parameter, error.got) == (1, "x", "array(uint8, 1d, C)")
        assert error.expected == "array(float32, 1d, C) or array(float64, 1d, C)"

    def test_arguments_that_fit_but_not_together(self, library, fake):
        both = [
            signature(VECTOR._replace(dtype=one), Parameter("number", "a", other), Parameter("number", "b", "<i4"))
            for one, other in (("<f4", "<i4"), ("<i4", "<f4"))
        ]
        error, lines = refused(library(k=both).k, DeviceArray(), 1.5, 2)
        assert lines[0] == "k: argument 2, 'a', does not fit the closest signature"
        assert "      argument 2, 'a': expected int32, got float 1.5" in lines
        assert "      argument 1, 'x': expected array(int32, 1d, C), got array(float32, 1d, C)" in lines
        assert error.parameter == "a"

    def test_a_part_of_a_tuple_is_named(self, library, fake):
        items = [Parameter("tuple", "t", items=(Parameter("number", "0", "<i4"), each)) for each in (VECTOR, NUMBER)]
        _, lines = refused(library(k=[signature(each) for each in items]).k, (1, "x"))
        assert lines[0].startswith("k: argument 1, 't[")
        assert lines[-2:] == [
            "  got: ((int 1, str 'x'))",
            "  what to do: pass an array, as cuda.to_device(np.array(...))",
        ]

    def test_the_number_of_arguments(self, library, fake):
        kernel = library(k=[signature(NUMBER), signature(), signature(VECTOR, NUMBER, NUMBER)]).k
        _, lines = refused(kernel)
        assert lines[0] == "k takes 1 or 2 or 3 arguments, got 0"
        _, lines = refused(kernel, "x")
        assert lines[:4] == [
            "k: argument 1, 'a', fits none of its signatures",
            "  signatures:",
            "    (float32)",
            "      argument 1, 'a': expected float32, got str 'x'",
        ]
        assert "      takes 2 arguments" in lines

    def test_of_many_signatures_the_closest_are_shown(self, library, fake):
        many = [signature(VECTOR._replace(dtype=f"<M8[{n}s]"), NUMBER) for n in range(1, 40)] + [signature()]
        _, lines = refused(library(k=many).k, DeviceArray(), "x")
        assert lines[2] == "    (array(float32, 1d, C), float32)" and "    and 32 more" in lines
