# SPDX-License-Identifier: BSD-2-Clause
"""Fingerprints of values: what differs, and what is the same."""

from __future__ import annotations

import abc
import array
import collections
import contextvars
import ctypes
import dataclasses
import datetime
import decimal
import enum
import functools
import operator
import os
import re
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from numba import cuda
from numba.cuda import types
from numba.cuda.autolink import cxx
from numba.cuda.autolink.value_encoders import UnknownValueError
from numba.cuda.autolink.value_fingerprint import fingerprint, fingerprint_of_code, fingerprint_of_link_key


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def member(weight):
    class Shape(enum.Enum):
        ROUND = 1

    Shape.ROUND.weight = weight
    return Shape.ROUND


class Point:
    unit = "m"

    def __init__(self, x=0, **others):
        self.x = x
        vars(self).update(others)

    @functools.cached_property
    def double(self):
        return 2 * self.x


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


class Number(int):
    pass


def Named(*fields):
    return collections.namedtuple("Named", fields)


class Names(list):
    def __init__(self, values, **attributes):
        super().__init__(values)
        vars(self).update(attributes)


def types_of(**attributes):
    return type("Made", (), attributes)


def read_only(values):
    values.flags.writeable = False
    return values


def adder(amount):
    return lambda x: x + amount


def enumeration(base=enum.Enum, **attributes):
    members = {name: value for name, value in attributes.items() if name.isupper()}
    made = base("Made", members, **({"boundary": attributes.pop("boundary")} if "boundary" in attributes else {}))
    for name, value in attributes.items():
        if not name.isupper():
            type.__setattr__(made, name, value)
    return made


def dataclass_of(**options):
    return dataclasses.make_dataclass("Made", [("a", int, dataclasses.field(**options))])


def abstract(*classes):
    made = abc.ABCMeta("Made", (), {})
    for each in classes:
        made.register(each)
    return made


def with_attributes(value, **attributes):
    vars(value).update(attributes)
    return value


def structure(*names):
    return type("Made", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_int) for name in names]})


class Integer(ctypes.c_int):
    pass


class Weight(np.float64):
    pass


DIFFERENT = [
    (1, 2),
    (1, 1.0),
    (float("nan"), -float("nan")),
    (complex(0.0, 0.0), complex(-0.0, 0.0)),
    (decimal.Decimal("1.5"), decimal.Decimal("1.50")),
    (datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)),
    (array.array("i", [1]), array.array("i", [2])),
    (collections.deque([1]), collections.deque([2])),
    (collections.deque([1], 2), collections.deque([1], 3)),
    (re.compile("a"), re.compile("b")),
    (operator.itemgetter(1), operator.itemgetter(2)),
    (ctypes.c_int(1), ctypes.c_int(2)),
    (Named("a", "b")(1, 2), Named("b", "a")(1, 2)),
    (Names([1], unit="m"), Names([1], unit="s")),
    (types_of(unit=1), types_of(unit=2)),
    (types_of(units=[1]), types_of(units=[2])),
    (types_of(unit=1)(), types_of(unit=2)()),
    (np.dtype("i4", metadata={"a": 1}), np.dtype("i4", metadata={"a": 2})),
    (np.dtype([("x", np.dtype("i4", metadata={"a": 1}))]), np.dtype([("x", np.dtype("i4", metadata={"a": 2}))])),
    (np.arange(3), read_only(np.arange(3))),
    (lambda x, /: x, lambda x: x),
    (lambda *x: x, lambda x: x),
    (lambda *, x=1: x, lambda *, x=2: x),
    (str.upper, str.lower),
    (1, True),
    (10**5000, 10**5000 + 1),
    (1, "1"),
    ("1", b"1"),
    (0.0, -0.0),
    (1, np.int32(1)),
    (np.int32(1), np.int64(1)),
    (Number(1), Number(2)),
    (Number(1), 1),
    (None, 0),
    ("ab", "ba"),
    (("ab", "c"), ("a", "bc")),
    ((1, (2, 3)), (1, 2, 3)),
    ((1, 2), [1, 2]),
    ((), ((),)),
    ({1: 2}, {1: 3}),
    ({1: 2}, {2: 1}),
    ({1, 2}, {1, 3}),
    (Color.RED, Color.BLUE),
    (member(1), member(2)),
    (np.zeros(3), np.zeros(4)),
    (np.zeros(3), np.zeros(3, np.float32)),
    (np.zeros((2, 3)), np.zeros((3, 2))),
    (np.arange(3), np.arange(3)[::-1]),
    (np.dtype([("a", "i4")]), np.dtype([("b", "i4")])),
    (np.dtype([("a", "i1"), ("b", "i4")]), np.dtype([("a", "i1"), ("b", "i4")], align=True)),
    (types.int32, types.int64),
    (types.int32[:], types.int32[::1]),
    (int, float),
    (Point(1), Point(2)),
    (Point(1), Slotted(1)),
    (Slotted(1), Slotted(2)),
    (Point(Point(1)), Point(Point(2))),
    (Point(adder(1)), Point(adder(2))),
    (Point(len), Point(max)),
    (functools.partial(max, 1), functools.partial(max, 2)),
    (memoryview(b"a"), memoryview(bytearray(b"a"))),
    (memoryview(b"ab")[1:], memoryview(b"cb")[1:]),
    (np.arange(3)[1:], np.array([5, 1, 2])[1:]),
    (np.frombuffer(b"ab", "u1", offset=1), np.frombuffer(b"cb", "u1", offset=1)),
    (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 3], mask=[0, 1])),
    (with_attributes(Weight(1), unit="m"), with_attributes(Weight(1), unit="s")),
    (Weight(1), np.float64(1)),
    (time.gmtime(0), time.struct_time(time.gmtime(0)[:], {"tm_zone": "A", "tm_gmtoff": 1})),
    (os.stat_result(range(10), {"st_mtime": 1.0}), os.stat_result(range(10), {"st_mtime": 2.0})),
    (with_attributes(Integer(1), unit="m"), with_attributes(Integer(1), unit="s")),
    (structure("a", "b")(1, 2), structure("b", "a")(1, 2)),
    (ctypes.CFUNCTYPE(ctypes.c_int), ctypes.CFUNCTYPE(ctypes.c_long)),
    (enumeration(A=1, B=1), enumeration(A=1, C=1)),
    (enumeration(A=1, _missing_=len), enumeration(A=1, _missing_=max)),
    (enumeration(A=1, __len__=len), enumeration(A=1, __len__=max)),
    (dataclass_of(metadata={"a": 1}), dataclass_of(metadata={"a": 2})),
    (dataclass_of(default_factory=int), dataclass_of(default_factory=float)),
    (abstract(int), abstract(float)),
    (property(len, doc="a"), property(len, doc="b")),
    (with_attributes(staticmethod(len), unit="m"), with_attributes(staticmethod(len), unit="s")),
    (functools.lru_cache(1)(len), functools.lru_cache(2)(len)),
    (range(3), range(4)),
    (slice(3), slice(4)),
    (cuda.CUSource("a"), cuda.CUSource("b")),
    (cuda.CUSource("a"), cuda.PTXSource("a")),
    (cuda.CUSource("a"), cuda.CUSource("a", setup_callback=print)),
]


@pytest.mark.parametrize("one, other", DIFFERENT, ids=lambda value: type(value).__name__)
def test_different_values_have_different_fingerprints(one, other):
    assert fingerprint(one) != fingerprint(other)


def used(point):
    assert point.double
    return point


SAME = [
    (np.arange(3), np.arange(3)),
    ({1: 2, 3: 4}, {3: 4, 1: 2}),
    (Point(1), Point(1)),
    (Point(1), used(Point(1))),
    (Point(1, a=threading.Lock()), Point(1, a=threading.Lock())),
    (Point(1, a=ctypes.c_void_p()), Point(1, a=ctypes.c_void_p())),
    (adder(1), adder(1)),
    (cuda.CUSource("a", name="one"), cuda.CUSource("a", name="two")),
]


@pytest.mark.parametrize("one, other", SAME, ids=lambda value: type(value).__name__)
def test_equal_values_have_the_same_fingerprint(one, other):
    assert one is not other
    assert fingerprint(one) == fingerprint(other)


def test_an_attribute_of_the_class_counts(monkeypatch):
    before = fingerprint(Point(1))
    monkeypatch.setattr(Point, "unit", "km")
    assert fingerprint(Point(1)) != before


def test_an_object_says_with_getstate_what_counts():
    class Named(Point):
        def __getstate__(self):
            return self.x

    assert fingerprint(Named(1, name="a")) == fingerprint(Named(1, name="b"))
    assert fingerprint(Named(1)) != fingerprint(Named(2))


def test_what_getstate_leaves_out_counts_in_a_link_key():
    class Named(Point):
        def __getstate__(self):
            return {}

    one, other = Named(1, name="a"), Named(1, name="b")
    assert fingerprint([one]) == fingerprint([other])
    assert fingerprint_of_link_key([one]) != fingerprint_of_link_key([other])
    assert fingerprint_of_link_key([one]) == fingerprint_of_link_key([Named(1, name="a")])


def test_values_may_refer_to_themselves_and_to_too_much():
    point = Point(1)
    point.me = [point]
    first = fingerprint(point)
    point.x = 2
    assert fingerprint(point) != first
    chain = None
    for _ in range(100_000):
        chain = [chain]
    for too_much in chain, [Point(i) for i in range(100_000)]:
        with pytest.raises(UnknownValueError, match="it leads to more than 10000 values, or is nested deeper than 120"):
            fingerprint(too_much)


class OnDevice:
    __cuda_array_interface__ = None


class Unpicklable:
    def __getstate__(self):
        raise TypeError


UNKNOWN = [
    (each for each in ()),
    weakref.ref(Point),
    contextvars.ContextVar("v"),
    OnDevice(),
    Unpicklable(),
    ctypes.c_void_p(1),
]


@pytest.mark.parametrize("value", UNKNOWN, ids=lambda value: type(value).__name__)
def test_a_value_that_cannot_be_fingerprinted_is_never_equal(value):
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    with pytest.raises(UnknownValueError, match=f"a value of type {name} cannot be fingerprinted"):
        fingerprint(Point(value))


def test_code_that_asks_a_library_of_cxx_has_no_fingerprint():
    """What it is told depends on headers. Its functions are compared where they are called."""
    library = cxx("enum { N = 1 };")
    function = library.f
    assert fingerprint_of_code(lambda x: function(x)) == fingerprint_of_code(lambda x: function(x))
    for code in (lambda: library.eval("N")), (lambda x: function.signature(x, library)):
        assert fingerprint(code) == fingerprint(code)
        with pytest.raises(UnknownValueError, match="does not show what the files are that it reads"):
            fingerprint_of_code(code)
    with pytest.raises(UnknownValueError, match="does not show what the files are that it reads"):
        fingerprint_of_link_key(function)


def test_fingerprints_are_the_same_in_every_process():
    program = """
import numpy as np
from numba.cuda import types
from numba.cuda.autolink.value_fingerprint import fingerprint
class Thing: pass
thing = Thing()
thing.names = {"a", "b", "c", "d"}
thing.by_name = {"b": 1, "a": [2.5, None]}
thing.function = lambda x: x + 1
print(fingerprint(thing, np.arange(3), types.float32[:, ::1], int).hex())
"""
    printed = {subprocess.check_output([sys.executable, "-c", program]) for _ in range(2)}
    assert len(printed) == 1
