# SPDX-License-Identifier: BSD-2-Clause
"""The arguments of the calls that run: random ones, small and wide, and those that the caller of the check gives."""

from __future__ import annotations

import contextlib
import copy
import math
import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numba.cuda import types
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr
from numba.cuda.np.numpy_support import as_dtype

from numba_cuda_autolink.printable_texts import number_of

from ..cxx_by_name.classes import is_of_class
from .records import SkippedError
from .subject import Argument

_MOST_THREADS = 1024
_SEED = 20260101
_WIDE_SAMPLES = 4
Block: TypeAlias = "int | tuple[int] | tuple[int, int] | tuple[int, int, int]"


@dataclass(frozen=True)
class _Ranges:
    """The random numbers of a sample. A quarter of the floats of scalars are *exact* ones, if there are any."""

    floats: tuple[float, float]
    integers: tuple[int, int]
    exact: tuple[float, ...] = ()


_SMALL = _Ranges((0.05, 0.95), (1, 8))
_WIDE = _Ranges((-8.0, 8.0), (-8, 9), (0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5))
_WIDE_WITH_ARRAYS = _Ranges(_WIDE.floats, _SMALL.integers)  # integers may be indices; equal elements make ties


@dataclass(frozen=True)
class RunOptions:
    """How the code runs, as `testing.check_linkable` describes it. Raises `TypeError` or `ValueError` for others."""

    length: int
    threads: Block | None
    samples: Sequence[tuple[Any, ...]] | None
    rtol: float | None

    def __post_init__(self) -> None:
        if self.threads is not None and not _is_block(self.threads):
            _refuse("threads", self.threads, int, f"1 to {_MOST_THREADS}, or sizes (x, y, z) of such a block")
        if not _is_positive(self.length):
            _refuse("length", self.length, int, "the number of elements of each axis of arrays, 1 or more")
        if self.rtol is not None and not (isinstance(self.rtol, (int, float)) and 0 <= self.rtol < 1):
            _refuse("rtol", self.rtol, (int, float), "a relative tolerance from 0 to 1, as rtol=1e-6")
        if self.samples is not None and not (self.samples and all(isinstance(each, tuple) for each in self.samples)):
            wrong = next((each for each in self.samples if not isinstance(each, tuple)), self.samples)
            example = "samples=[(-1.5, 2), (0.0, 3)]"
            _refuse("samples", wrong, type(self.samples), f"a tuple of arguments for each call, as {example}")


def _is_block(given: Any) -> bool:
    sizes = given if isinstance(given, tuple) else (given,)
    return 1 <= len(sizes) <= 3 and all(map(_is_positive, sizes)) and math.prod(sizes) <= _MOST_THREADS


def _is_positive(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and bool(value >= 1)


def _refuse(name: str, given: Any, expected_type: Any, expected: str) -> None:
    kind = ValueError if isinstance(given, (expected_type, tuple)) else TypeError
    raise kind(f"{name}: got {safe_repr(given)}, expected {expected}")


def as_items(name: str, given: Any, expected: str) -> tuple[Any, ...]:
    """Return the items of *given*, the argument *name*. Raise `TypeError` if it has none."""
    try:
        return tuple(given)
    except TypeError:
        raise TypeError(f"{name}: got {safe_repr(given)}, expected {expected}") from None


def block_size(block: Block) -> int:
    return math.prod(block) if isinstance(block, tuple) else block


@dataclass(frozen=True)
class Sample:
    """Arguments of *calls* in Python: an array for each argument with a type; of a scalar, the values of all calls.

    ``is_wide`` says that the arguments may be others than the code is for; ``name``, which of the given samples it is.
    """

    args: Sequence[Argument]
    values: Sequence[Any]
    calls: int
    is_wide: bool = False
    name: str = ""

    def make_values(self, block: Block) -> list[Any]:
        """Return the values for the threads of a block, which can write to them."""
        return [
            np.resize(value, block_size(block)) if arg.is_scalar else copy.deepcopy(value)
            for arg, value in zip(self.args, self.values, strict=True)
        ]

    def of_calls(self, numbers: Sequence[int]) -> Sample:
        """Return the sample of some of the calls."""
        values = [
            value[list(numbers)] if arg.is_scalar else value for arg, value in zip(self.args, self.values, strict=True)
        ]
        return Sample(self.args, values, len(numbers), self.is_wide, self.name)

    @property
    def integers_differ(self) -> bool:
        values = (value for arg, value in zip(self.args, self.values, strict=True) if arg.is_scalar)
        return any(value.dtype.kind in "iu" and np.any(value != value[0]) for value in values)

    @property
    def largest(self) -> float:
        """The largest magnitude of its numbers; of records and without numbers, 1."""
        return max((largest_of(value) for value in self.values if value is not None), default=1.0)

    def describe(self, call: int) -> str:
        shown = (
            repr(value[call].item()) if arg.is_scalar else str(arg)
            for arg, value in zip(self.args, self.values, strict=True)
        )
        return f"({', '.join(shown)}){f' of {self.name}' if self.name else ''}"

    def call_of(self, thread: tuple[int, int, int] | None, block: Block) -> int:
        """Return which call a *thread* of a block makes."""
        x, y, z = thread or (0, 0, 0)
        across, along, *_ = (*block, 1, 1) if isinstance(block, tuple) else (block, 1)
        return (x + across * (y + along * z)) % self.calls


def largest_of(values: Any) -> float:
    """Return the largest finite magnitude of numbers, and 1 of anything else."""
    array = array_of(values)
    if array.dtype.kind not in "iufc":
        return 1.0
    sizes = np.abs(array.astype(complex))
    return float(np.max(sizes, where=np.isfinite(sizes), initial=0.0))


def array_of(value: Any) -> np.ndarray:
    """Return *value* as an array; one of objects, if it is a nest of lists of several lengths. A fraction and the like,
    which NumPy has not, is a float."""
    try:
        array = np.asarray(value)
    except ValueError:
        return np.asarray(value, object)
    if array.dtype.kind == "O" and isinstance(value, numbers.Number):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return np.asarray(float(value))  # type: ignore[arg-type]
    return array


def random_samples(args: Sequence[Argument], calls: int, length: int) -> Iterator[Sample]:
    """Yield the arguments of several launches. In all but the last one, all integers are equal: to 1, to 2, and so on;
    all else is random."""
    random = np.random.default_rng(_SEED)
    for equal in (*range(*_SMALL.integers), None):
        yield Sample(args, _random_values(random, args, calls, length, _SMALL, equal), calls)


def wide_samples(args: Sequence[Argument], calls: int, length: int) -> Iterator[Sample]:
    """Yield arguments that are negative, zero and larger too; of calls with arrays, only floats are."""
    random = np.random.default_rng(_SEED)
    ranges = _WIDE_WITH_ARRAYS if any(isinstance(arg.type, types.Array) for arg in args) else _WIDE
    for _ in range(_WIDE_SAMPLES):
        yield Sample(args, _random_values(random, args, calls, length, ranges), calls, is_wide=True)


def given_samples(args: Sequence[Argument], samples: Sequence[tuple[Any, ...]]) -> Iterator[Sample]:
    """Yield a sample of one call for each of *samples*. Raise `TypeError` or `ValueError` for wrong ones."""
    typed = [arg for arg in args if arg.type is not None]
    for number, given in enumerate(samples):
        name = f"samples[{number}]"
        if len(given) != len(typed):
            expected = f"{number_of(len(typed), 'argument')}, without constants: ({', '.join(map(str, typed))})"
            raise TypeError(f"{name}: got {safe_repr(given)}, expected {expected}")
        left = iter(given)
        values = [None if arg.type is None else _given_value(name, arg, next(left)) for arg in args]
        yield Sample(args, values, 1, name=name)


def _given_value(name: str, arg: Argument, given: Any) -> np.ndarray:
    """Return what was given for an argument as an array: of a scalar, with one element."""
    dtype = dtype_of(arg.type if arg.is_scalar else arg.type.dtype)
    try:
        array = np.array(given, dtype)
        is_exact = dtype.kind not in "biu" or np.array_equal(array, given)
    except (TypeError, ValueError, OverflowError):
        is_exact = False
    if not is_exact or array.ndim != (0 if arg.is_scalar else arg.type.ndim):
        raise TypeError(f"{name}: got {safe_repr(given)}, expected a value for {arg}")
    return array.reshape(1) if arg.is_scalar else _laid_out(arg, array)


def _laid_out(arg: Argument, array: np.ndarray) -> np.ndarray:
    return np.asfortranarray(array) if arg.type.layout == "F" else np.ascontiguousarray(array)


def _random_values(
    random: np.random.Generator,
    args: Sequence[Argument],
    calls: int,
    length: int,
    ranges: _Ranges,
    equal: int | None = None,
) -> list[Any]:
    values: list[Any] = []
    for arg in args:
        if arg.type is None:
            values.append(None)
        elif arg.is_scalar:
            array = _random_array(random, dtype_of(arg.type), (calls,), ranges)
            if equal is not None and array.dtype.kind in "iu":
                array[:] = equal
            values.append(array)
        else:
            array = _random_array(random, dtype_of(arg.type.dtype), (length,) * arg.type.ndim, ranges)
            values.append(_laid_out(arg, array))
    return values


def _random_array(random: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...], ranges: _Ranges) -> np.ndarray:
    if dtype.names is not None:
        array = np.zeros(shape, dtype)
        for name in () if is_of_class(dtype) else dtype.names:
            base, inner = dtype[name].subdtype or (dtype[name], ())
            array[name] = _random_array(random, base, (*shape, *inner), ranges)
        return array
    if dtype.kind == "c":
        return (random.uniform(*ranges.floats, shape) + 1j * random.uniform(*ranges.floats, shape)).astype(dtype)
    if dtype.kind == "f":
        values = random.uniform(*ranges.floats, shape)
        if ranges.exact:
            values = np.where(random.random(shape) < 0.25, random.choice(ranges.exact, shape), values)
        return values.astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    low, high = ranges.integers
    return random.integers(max(low, 0) if dtype.kind == "u" else low, high, shape).astype(dtype)


def dtype_of(type: types.Type, otherwise: str = "it does not make up arguments") -> np.dtype:
    """Return the dtype of numbers and records. Raise `SkippedError` for another *type*, of which the check does what
    *otherwise* says."""
    if isinstance(type, (types.Number, types.Boolean, types.Record)):
        return as_dtype(type)
    raise SkippedError(f"{otherwise} of the type {type}, which is neither a number nor a record")
