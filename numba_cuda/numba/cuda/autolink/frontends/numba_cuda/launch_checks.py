# SPDX-License-Identifier: BSD-2-Clause
"""The checks of a launch of a kernel with one signature, which numba-cuda launches with whatever it is given.

What such a kernel would read as other numbers than those in it is refused: arguments of another number, arrays with
other dimensions or of other elements. Numbers are converted, integers of either sign have the same bits, and the layout
of an array is its caller's to choose, as without these checks.
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Iterator
from numbers import Number
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numba.core.errors import NumbaError
from numba.cuda import types
from numba.cuda.args import ArgHint
from numba.cuda.np.numpy_support import as_dtype
from numba.cuda.typing.typeof import Purpose, typeof

from numba_cuda_autolink.errors import at_call
from numba_cuda_autolink.printable_texts import number_of
from numba_cuda_autolink.short_tracebacks import place_of_user

from ...frontend_api.launch_messages import pass_all, refused_kind, wrong_count
from ...protocol.kernel_signatures import type_text

_INTEGERS = "iub"  # kinds of dtypes whose elements are whole numbers


class _Memory(NamedTuple):
    """What a parameter takes that is in memory, an array or a record."""

    number: int  # of the parameter
    dtype: np.dtype
    ndim: int


class _Parameters(NamedTuple):
    """What the parameters of a kernel take, for the quick checks of a launch."""

    total: int
    memory: list[_Memory]
    others: list[tuple[int, tuple[type, ...]]]  # numbers of parameters, and types that they take without a look


_known: WeakKeyDictionary[Any, _Parameters] = WeakKeyDictionary()


def check_launch(dispatcher: Any, args: tuple[Any, ...]) -> None:
    """Raise `TypeError` if the one kernel of *dispatcher* does not take *args*."""
    if (parameters := _known.get(dispatcher)) is None:
        parameters = _known[dispatcher] = _parameters_of(dispatcher)
    if len(args) != parameters.total:
        function = dispatcher.py_func
        takes = f"{function.__name__} takes {number_of(parameters.total, 'argument')}, got {len(args)}"
        raise _error(wrong_count(function, len(args)) or takes, pass_all(function, len(args)))
    for number, dtype, ndim in parameters.memory:
        value = args[number]
        if getattr(value, "dtype", None) != dtype or getattr(value, "ndim", None) != ndim:
            _check(dispatcher, number, value)
    for number, quick in parameters.others:
        if type(args[number]) not in quick:
            _check(dispatcher, number, args[number])


def _parameters_of(dispatcher: Any) -> _Parameters:
    argtypes = next(iter(dispatcher.overloads))
    memory: list[_Memory] = []
    others: list[tuple[int, tuple[type, ...]]] = []
    for number, each in enumerate(() if dispatcher.extensions else argtypes):  # which make other arguments of these
        if found := _memory_of(each):
            memory.append(_Memory(number, *found))
        elif isinstance(each, types.Integer | types.Boolean):
            others.append((number, (int, bool)))
        elif isinstance(each, types.Float | types.Complex):
            others.append((number, (int, float)))
        elif isinstance(each, types.BaseTuple):
            others.append((number, ()))
    return _Parameters(len(argtypes), memory, others)


def _memory_of(numba_type: Any) -> tuple[np.dtype, int] | None:
    """Return the dtype and the number of dimensions of what is in memory, ``None`` for all else."""
    if isinstance(numba_type, types.Array):
        return as_dtype(numba_type.dtype), numba_type.ndim
    return (as_dtype(numba_type), 0) if isinstance(numba_type, types.Record) else None


def _check(dispatcher: Any, number: int, value: Any) -> None:
    expected, function = next(iter(dispatcher.overloads))[number], dispatcher.py_func
    name = [*inspect.signature(function).parameters][number]
    for where, wrong, numba_type in _mismatches(name, value, expected):
        if refused := refused_kind(function, where, type(wrong)):
            raise _error(*refused)
        wanted = type_text(numba_type)
        raise _error(
            f"argument {where!r} of {function.__name__}: got {_text_of(wrong)}, expected {wanted}",
            f"pass what the signature has, {wanted}; or leave the signature out, and the kernel is compiled for it",
        )


def _mismatches(name: str, value: Any, expected: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name of each argument, or of what is in it, that is not as *expected*, with it and that type."""
    value = value.value if isinstance(value, ArgHint) else value
    if isinstance(expected, types.BaseTuple):
        if not hasattr(value, "__len__") or len(value) != len(expected):
            yield name, value, expected
            return
        for number, (each, numba_type) in enumerate(zip(value, expected, strict=True)):
            yield from _mismatches(f"{name}[{number}]", each, numba_type)
    elif (memory := _memory_of(expected)) is not None:
        found = _memory_of(_type_of(value)) or _memory_of_other(value, memory[0])
        if not _reads_as(found, memory):
            yield name, value, expected
    elif isinstance(expected, types.Number | types.Boolean) and not _is_number(value, expected):
        yield name, value, expected


def _memory_of_other(value: Any, expected: np.dtype) -> tuple[np.dtype, int]:
    """Return the dtype and the number of dimensions of a *value* that Numba has no type for: of an array of another
    library, whose elements are taken to be as *expected* where NumPy does not know them, and of what NumPy makes of all
    else, as numba-cuda does."""
    if not (hasattr(value, "shape") and hasattr(value, "dtype")):
        value = np.asanyarray(value)
    try:
        return np.dtype(value.dtype), len(value.shape)
    except TypeError:
        return expected, len(value.shape)


def _reads_as(given: tuple[np.dtype, int], expected: tuple[np.dtype, int]) -> bool:
    """Whether a kernel that reads memory as *expected* reads the numbers that are in what is *given*."""
    (dtype, ndim), (wanted, dimensions) = given, expected
    are_integers = dtype.kind in _INTEGERS and wanted.kind in _INTEGERS
    are_records = dtype.kind == wanted.kind == "V"
    is_same_size = dtype.itemsize == wanted.itemsize and ndim == dimensions
    return is_same_size and (dtype == wanted or are_integers or are_records)


def _is_number(value: Any, expected: Any) -> bool:
    """Whether numba-cuda makes a number of the *expected* type of a *value*; a boolean, of whole numbers."""
    if isinstance(expected, types.Boolean):
        return not isinstance(value, float | np.floating | np.ndarray | str | None)
    try:
        if isinstance(expected, types.Integer):
            ctypes.c_int64(value)
        else:
            ctypes.c_double(value.real if isinstance(expected, types.Complex) else value)
    except (TypeError, AttributeError):
        return False
    return True


def _type_of(value: Any) -> Any:
    try:
        return typeof(value, Purpose.argument)
    except (TypeError, ValueError, NumbaError):  # it has no type
        return None


def _text_of(value: Any) -> str:
    is_value = isinstance(value, tuple | Number | np.generic) or hasattr(value, "dtype")
    found = _type_of(value) if is_value else None
    return f"{value if value is None else type(value).__name__}" if found is None else type_text(found)


def _error(diagnosis: str, remedy: str) -> TypeError:
    return TypeError(at_call(f"{diagnosis}\n  what to do: {remedy}", "launched at", place_of_user()))
