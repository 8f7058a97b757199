# SPDX-License-Identifier: BSD-2-Clause
"""The walk over what a kernel is compiled from: which values differ, and which have no digest."""

from __future__ import annotations

import collections
import contextvars
import ctypes
import enum
import functools
import itertools
import random
import re
import threading
import types as pytypes
import weakref

import numpy as np
import pytest
from numba.cuda.autolink.kernel_cache.kernel_values import values_of_kernel
from numba.cuda.autolink.protocol.loaded_modules import UnknownValueError


def digest(value):
    """Return the digest of a kernel that has *value* in its closure."""

    def kernel(x):
        x[0] = value

    return values_of_kernel(kernel, {}, (), (), has_lines=False).digest


class Named:
    def __init__(self, size):
        self.size = size

    def method(self):
        return self.size


class Slots:
    __slots__ = ("size",)

    def __init__(self, size):
        self.size = size


class Big(int):
    def __new__(cls, size):
        self = super().__new__(cls, 1)
        self.size = size
        return self


class Structure(ctypes.Structure):
    _fields_ = [("n", ctypes.c_int)]


def twice_or_once(count):
    one, other = [1], [1]
    return [one, one, other] if count == 2 else [one, other, other]


def of_itself(size):
    values = [size]
    values.append(values)
    return values


def nested(size):
    def middle():
        return lambda x: x + size

    return middle()


def of_metaclass(size):
    meta = type("Meta", (type,), {"size": size})
    return meta("Class", (), {})


# What makes a value from 1 or 2.
VALUES = {
    "an attribute": Named,
    "an attribute in a slot": Slots,
    "a bound method": lambda n: Named(n).method,
    "a nested closure": nested,
    "a default": lambda n: lambda x, size=n: x + size,
    "an argument of a partial": lambda n: functools.partial(max, n),
    "an attribute of a metaclass": of_metaclass,
    "an element of a tuple": lambda n: (0, (n,)),
    "a field of a named tuple": lambda n: collections.namedtuple("Pair", "a b")(0, n),
    "the type of a number": lambda n: (1, True)[n - 1],
    "the type of a scalar": lambda n: (np.int8, np.int64)[n - 1](3),
    "the width of a float": lambda n: (np.float32, np.float64)[n - 1](0.5),
    "the sign of zero": lambda n: (0.0, -0.0)[n - 1],
    "the sign of a NaN": lambda n: (float("nan"), -float("nan"))[n - 1],
    "a large integer": lambda n: (1 << 70) + n,
    "the order of a mapping": lambda n: dict([("a", 1), ("b", 2)][:: 3 - 2 * n]),
    "an element of a frozen set": lambda n: frozenset([0, n]),
    "bytes that change": lambda n: bytearray([n]),
    "the length of a queue": lambda n: collections.deque([0], maxlen=n),
    "a mapping behind another one": lambda n: collections.ChainMap({}, {"size": n}),
    "a nested namespace": lambda n: pytypes.SimpleNamespace(inner=pytypes.SimpleNamespace(size=n)),
    "a member of an enum": lambda n: enum.IntEnum("Size", {"A": n}).A,
    "the strides of an array": lambda n: np.arange(8)[::n][:4],
    "the state of a generator of numbers": random.Random,
    "the state of an iterator": itertools.count,
    "text or bytes": lambda n: ("a", b"a")[n - 1],
    "the order of a counter": lambda n: collections.Counter(("aab", "baa")[n - 1]),
    "the type of a key": lambda n: {(1, True)[n - 1]: 1},
    "an element of a set": lambda n: {0, n},
    "a list or a tuple": lambda n: ([1], (1,))[n - 1],
    "which object is twice": twice_or_once,
    "a list that contains itself": of_itself,
    "an attribute of a number": Big,
    "the class of an object": lambda n: pytypes.SimpleNamespace(inner=(Named, Slots)[n - 1](1)),
    "the content of an array": lambda n: np.arange(n, n + 3),
    "the order of an array": lambda n: np.asarray([[1, 2], [3, 4]], order="CF"[n - 1]),
    "a broadcast array": lambda n: np.broadcast_to(np.int64(n), 3),
    "the mask of an array": lambda n: np.ma.array([1, 2], mask=[n - 1, 0]),
    "the offsets of fields": lambda n: np.dtype([("a", "i1"), ("b", "i4")], align=n == 2),
    "the flags of a pattern": lambda n: re.compile("a", (0, re.IGNORECASE)[n - 1]),
    "a structure of C": Structure,
}


@pytest.mark.parametrize("make", VALUES.values(), ids=VALUES)
def test_a_value_counts_by_its_content(make):
    assert digest(make(1)) == digest(make(1)) != digest(make(2))


def remembering():
    function = functools.lru_cache(len)
    function("text")
    return function


NO_DIGEST = {
    "a context variable": lambda: contextvars.ContextVar("size"),
    "what each thread has": threading.local,
    "a weak reference": lambda: weakref.ref(Named),
    "a function that remembers": remembering,
    "a pointer": ctypes.c_void_p,
    "a generator": lambda: (each for each in ()),
}


@pytest.mark.parametrize("make", NO_DIGEST.values(), ids=NO_DIGEST)
def test_what_pickle_refuses_has_no_digest(make):
    with pytest.raises(UnknownValueError):
        digest(make())
