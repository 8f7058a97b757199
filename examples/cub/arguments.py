# SPDX-License-Identifier: BSD-2-Clause
"""Check the types of a call's arguments. A wrong type is an error at the line of the call."""

from __future__ import annotations

from numba.cuda import types

INTEGERS = (
    *(types.int8, types.int16, types.int32, types.int64),
    *(types.uint8, types.uint16, types.uint32, types.uint64),
)
REALS = (*INTEGERS, types.float16, types.float32, types.float64)
COMPLEX = (types.complex64, types.complex128)
NUMBERS = (*REALS, *COMPLEX)


def given(argument):
    """Return whether an optional argument (None by default) is given."""
    return argument is not None and argument != types.none


def is_array(argument):
    """Return whether *argument* is a type of several items."""
    return isinstance(argument, (types.Array, types.BaseTuple))


def number(name, argument, allowed=NUMBERS):
    """Return *argument* if it is an allowed type of a number. Raises `TypeError` otherwise."""
    if argument not in allowed:
        raise TypeError(f"{name}: got {argument}, expected {_describe(allowed)}")
    return argument


def integer(name, argument):
    """Return *argument* if it is the type of an integer. Raises `TypeError` otherwise."""
    return number(name, argument, INTEGERS)


def items(name, argument, count, allowed=NUMBERS, written=False):
    """Return the item type of *argument*, which must be the type of an array or a tuple of *count* items."""
    expected = f"expected a contiguous 1-dimensional array of {_items(count)} of {_describe(allowed)}"
    if isinstance(argument, types.UniTuple) and argument.dtype in allowed and not written:
        if argument.count != count:
            raise TypeError(f"{name}: got a tuple of {_items(argument.count)}, expected {count}, the items per thread")
        return argument.dtype
    if not isinstance(argument, types.Array):
        raise TypeError(f"{name}: got {argument}, {expected}")
    if argument.ndim != 1 or argument.layout not in "CF" or argument.dtype not in allowed:
        raise TypeError(f"{name}: got {argument}, {expected}")
    if written and not argument.mutable:
        raise TypeError(f"{name}: got {argument}, which is read-only, {expected} that can be written")
    return argument.dtype


def memory(name, argument, dtype, written=False):
    """Check that *argument* is the type of an array of *dtype* that a block loads from or stores to."""
    expected = f"expected a contiguous array of {dtype}, as the items are"
    if not isinstance(argument, types.Array) or argument.layout not in "CF" or argument.dtype != dtype:
        raise TypeError(f"{name}: got {argument}, {expected}")
    if written and not argument.mutable:
        raise TypeError(f"{name}: got {argument}, which is read-only, {expected}")


def same(name, dtype, expected, as_what):
    """Check that two arguments have items of one type."""
    if dtype != expected:
        raise TypeError(f"{name}: got items of {dtype}, expected {expected}, as {as_what} has")


def check_length(name, array, count):
    """Check the length of an array, in the simulator."""
    if len(array) != count:
        raise ValueError(f"{name}: got {_items(len(array))}, expected {count}, the items per thread")


def _items(count):
    return f"{count} item{'s' if count != 1 else ''}"


def _describe(allowed):
    if allowed == NUMBERS:
        return "integers, floats or complex numbers"
    if allowed == REALS:
        return "integers or floats"
    return "integers" if allowed == INTEGERS else " or ".join(map(str, allowed))
