# SPDX-License-Identifier: BSD-2-Clause
"""How the ``args`` of an `Extern` ask for arguments to be passed, besides plain Numba types; arrays as views of C++."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.cuda import types
from numba.cuda.np import numpy_support

from .c_types import CABIError, CType, ctype, element_ctype, numba_type_of, pointer_to
from .structs import CStruct

_NUMBERS = (types.Number, types.Boolean)
_ADDRESSES = (types.int64, types.uint64)


@dataclass(frozen=True)
class Exact:
    """A number, as ``numba_type``, which has every value that is given."""

    numba_type: Any

    def __repr__(self) -> str:
        return f"autolink.exact({self.numba_type})"


@dataclass(frozen=True)
class ByReference:
    """A number, converted to ``numba_type``, as the address of a copy."""

    numba_type: Any

    def __repr__(self) -> str:
        return f"autolink.by_reference({self.numba_type})"


@dataclass(frozen=True)
class _Named:
    name: str

    def __repr__(self) -> str:
        return f"autolink.{self.name}"


class ByValue(_Named):
    """Pass a record or a tuple as a struct by value, for the ``args`` of an `Extern`."""


by_value = ByValue("by_value")
"""Passes a record or a tuple as a struct by value, in the ``args`` of an `Extern`: ``args={"p": autolink.by_value}``.
The C++ struct is trivially copyable and has the same layout. Numbers are passed by value in any case."""


class State(_Named):
    """Pass the address of a value of any type, for the ``args`` of an `Extern` whose C++ calls a Python function."""


state = State("state")
"""Passes a value as state of a `device_function`, in the ``args`` of an `Extern`: ``args={"x": None, "table":
autolink.state}``. The parameter in C++ is a ``const void*``, from which the function's ``functor`` is made. It is the
address of the value as kernels have it, of an array with its shape and strides, and is valid during the call."""


def exact(numba_type: Any) -> Exact:
    """Convert a number only to a type that has its value, for the ``args`` of an `Extern`.

    ``args={"n": autolink.exact(types.int32)}`` passes ``int32``, smaller integers, and constants in the range of
    ``int32``. A floating-point number, an ``int64`` that is not a constant, and the constant ``2**31`` are errors at
    the line of the call. With ``args={"n": types.int32}`` they are converted as by a cast in C.

    Raises `TypeError` if *numba_type* is not the type of a number, its name, or a NumPy dtype or scalar class.
    """
    return Exact(_number("exact", numba_type))


def by_reference(numba_type: Any) -> ByReference:
    """Pass a number as the address of a copy, for the ``args`` of an `Extern`.

    The function takes a ``const T*`` or ``const T&``, where ``T`` is *numba_type*, to which the number is converted.
    What C++ writes there is lost: for results, pass an array.

    Raises `TypeError` if *numba_type* is not the type of a number, its name, or a NumPy dtype or scalar class.
    """
    return ByReference(_number("by_reference", numba_type))


def _number(function: str, given: Any) -> Any:
    numba_type = numba_type_of(given)
    if not isinstance(numba_type, _NUMBERS):
        raise CABIError(f"{function}() takes the type of a number, got {numba_type}")
    ctype(numba_type)
    return numba_type


def reference(name: str, given: Any, target: ByReference) -> tuple[Any, CType]:
    """Return the Numba type and the C type that a number, the argument *name*, is passed as by reference."""
    if not isinstance(types.unliteral(given), _NUMBERS):
        raise CABIError(f"argument {name!r}: {given} is not a number, and cannot be passed as {target}")
    return target.numba_type, pointer_to(f"const {ctype(target.numba_type).cxx}")


def check_pointee(name: str, given: Any, target: Any) -> None:
    """Raise `CABIError` if *given*, a type with an address or that of a number, is not what a *target* pointer points
    to. A ``voidptr`` may point to anything, and a record or a tuple of several types is what C++ declares it to be; an
    integer of 64 bits may be the address itself."""
    if isinstance(target, types.RawPointer) and isinstance(given, _NUMBERS) and given not in _ADDRESSES:
        raise CABIError(
            f"argument {name!r}: {given} is not an address\n"
            f"  what to do: pass an array, a pointer or an int64; or, if C reads a number through the pointer,"
            f" args={{{name!r}: autolink.by_reference(types.{given})}}"
        )
    if not isinstance(target, types.CPointer):
        return
    if isinstance(given, _NUMBERS):
        raise CABIError(
            f"argument {name!r}: a {given} cannot be passed as {ctype(target).cxx}: what C writes there would be lost\n"
            "  what to do: pass an array of one element; or, if C only reads it,"
            f" args={{{name!r}: autolink.by_reference(types.{target.dtype})}}"
        )
    has_elements = isinstance(given, (types.Array, types.CPointer, types.UniTuple, types.NamedUniTuple))
    if has_elements and _memory(given.dtype) != _memory(target.dtype):
        raise CABIError(
            f"argument {name!r}: {given} cannot be passed as {ctype(target).cxx}: its elements are {given.dtype}\n"
            "  what to do: let C take a pointer to those; or, if it reads the same bytes as other numbers,"
            f" args={{{name!r}: types.voidptr}}"
        )


def _memory(numba_type: Any) -> Any:
    """Return what is the same for types that C cannot tell apart in memory."""
    try:
        return element_ctype(numba_type)
    except CABIError:
        return numba_type


def check_exact(name: str, given: Any, target: Exact) -> None:
    """Raise `CABIError` if an argument *name* of type *given*, literal if it is a constant, may have a value that the
    target type does not have."""
    goal = target.numba_type
    if isinstance(given, types.IntegerLiteral):
        if _holds(goal, given.literal_value):
            return
        diagnosis = f"the constant {given.literal_value} is not a value of {goal}"
    elif _has_all_of(goal, types.unliteral(given)):
        return
    else:
        diagnosis = f"not every {types.unliteral(given)} is a value of {goal}"
    raise CABIError(
        f"argument {name!r} is passed exactly, and {diagnosis}\n"
        f"  what to do: where the value is known to fit, convert it in the kernel: types.{goal}(...)"
    )


_DIGITS = {types.float16: 11, types.bfloat16: 8, types.float32: 24, types.float64: 53}  # binary, of the significand


def _holds(goal: Any, value: int) -> bool:
    if isinstance(goal, types.Integer):
        return bool(goal.minval <= value <= goal.maxval)
    return not isinstance(goal, types.Boolean) and abs(value) <= 2 ** _DIGITS[_real(goal)]


def _has_all_of(goal: Any, source: Any) -> bool:
    if isinstance(source, types.EnumMember):
        source = source.dtype
    if source == goal or not isinstance(source, _NUMBERS) or isinstance(goal, types.Boolean):
        return bool(source == goal)
    real = _real(goal)
    if isinstance(source, types.Integer) and real in _DIGITS:
        return bool(source.bitwidth - source.signed <= _DIGITS[real])
    if types.bfloat16 in (real, source):
        return isinstance(source, types.Boolean) or real in (types.float32, types.float64)
    return bool(np.can_cast(numpy_support.as_dtype(source), numpy_support.as_dtype(goal), "safe"))


def _real(numba_type: Any) -> Any:
    return getattr(numba_type, "underlying_float", numba_type)


_LAYOUTS = {"C": "layout_right", "F": "layout_left"}
_SIZE = CType("unsigned long long", "uint", 8, 8)


class ArrayView(_Named):
    """Pass an array as a ``cuda::std::span`` or ``cuda::std::mdspan``, for the ``args`` of an `Extern`."""

    def ctype(self, array: Any) -> CType:
        """Return the C++ type of a parameter that takes an *array* of this Numba type, or raise `CABIError`."""
        if not isinstance(array, types.Array) or array.ndim == 0:
            raise CABIError(f"{array} has no {self.name}: it is not an array with elements")
        if isinstance(array.dtype, types.Record):
            raise CABIError(f"an array of records has no {self.name}: only C++ knows their struct\n  got: {array}")
        element = ("" if array.mutable else "const ") + element_ctype(array.dtype).cxx
        if self.name == "span":
            if array.layout not in _LAYOUTS:
                raise CABIError(f"{array} has no span: it may be strided\n  what to do: pass it as autolink.mdspan")
            members = pointer_to(element), _SIZE
            return CStruct(f"cuda::std::span<{element}>", "struct", 16, 8, None, members, (0, 8))
        extents = f"cuda::std::dextents<long long, {array.ndim}>"
        layout = _LAYOUTS.get(array.layout, "layout_stride")
        mdspan = f"cuda::std::mdspan<{element}, {extents}, cuda::std::{layout}>"
        return CType(f"const {mdspan}&", "pointer", 8, 8)


span = ArrayView("span")
"""Passes a contiguous array as a ``cuda::std::span<T>`` of all its elements, in the ``args`` of an `Extern`."""

mdspan = ArrayView("mdspan")
"""Passes an array as a ``const cuda::std::mdspan<T, cuda::std::dextents<long long, ndim>, layout>&``, in the ``args``
of an `Extern`. The layout is that of the array's type: ``cuda::std::layout_right`` in C order, ``layout_left`` in
Fortran order, and ``layout_stride`` otherwise. Strides are multiples of the size of an element."""
