# SPDX-License-Identifier: BSD-2-Clause
"""Fingerprints of values: what differs, and what is the same."""

from __future__ import annotations

import array
import collections
import contextvars
import ctypes
import datetime
import decimal
import enum
import functools
import operator
import re
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from numba import cuda
from numba.cuda import types
from numba.cuda.autolink.value_fingerprint import UnknownValueError, fingerprint, fingerprint_of_link_key


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
