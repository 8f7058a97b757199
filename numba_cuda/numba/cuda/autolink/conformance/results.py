# SPDX-License-Identifier: BSD-2-Clause
"""The parts of a call's result, numbers and records: how a kernel keeps them, and those of what Python returned."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.cuda import types

from .samples import array_of, dtype_of


@dataclass(frozen=True)
class Part:
    """A part of a result: its indices in nested tuples, none of a result that is no tuple, and its name in messages."""

    index: tuple[int, ...]
    name: str
    dtype: np.dtype


class Results:
    """The results of the Numba type *returns*: their parts, of a function that returns nothing none."""

    def __init__(self, returns: types.Type):
        """Raise `SkippedError` if some parts are neither numbers nor records."""
        self._returns = returns
        self.parts = () if isinstance(returns, types.NoneType) else tuple(_find_parts(returns))

    @property
    def dtype(self) -> np.dtype | None:
        """The dtype of what the kernel keeps of a call; None if that is nothing."""
        if self._is_tuple:
            return np.dtype([(f"part{k}", part.dtype) for k, part in enumerate(self.parts)], align=True)
        return self.parts[0].dtype if self.parts else None

    @property
    def _is_tuple(self) -> bool:
        return isinstance(self._returns, types.BaseTuple)

    def keep_call(self, call: int) -> str:
        """Return the statements of a kernel that make the call and keep its result in ``results[call, thread]``."""
        if not self._is_tuple:
            return f"    {f'results[{call}, thread] = ' if self.parts else ''}obj({{arguments}})\n"
        kept = (
            f"    results[{call}, thread].part{k} = result{''.join(f'[{each}]' for each in part.index)}\n"
            for k, part in enumerate(self.parts)
        )
        return "".join(["    result = obj({arguments})\n", *kept])

    def parts_of(self, kept: np.ndarray) -> list[np.ndarray]:
        """Return the array of each part of what the kernel kept."""
        return [kept[f"part{k}"] for k in range(len(self.parts))] if self._is_tuple else [kept]

    def describe(self, parts: Sequence[Any]) -> str:
        """Return the parts of a result as text: ``q = 1.0, r[0] = 2.0``."""
        named = zip(self.parts, parts, strict=True)
        return ", ".join(f"{part.name.removeprefix('.')} = {one!r}" if part.name else repr(one) for part, one in named)

    def split(self, returned: Any) -> list[Any] | None:
        """Return the parts of what a Python function returned; None if it has others."""
        try:
            return [*_split(self._returns, returned)]
        except _OtherPartsError:
            return None


class _OtherPartsError(Exception):
    """A value has other parts than a result."""


def _split(numba_type: types.Type, value: Any) -> Iterator[Any]:
    if not isinstance(numba_type, types.BaseTuple):
        if not _is_value(value, isinstance(numba_type, types.Record)):
            raise _OtherPartsError
        yield value
        return
    elements = elements_of(value)
    if elements is None or len(elements) != len(numba_type.types):
        raise _OtherPartsError
    for each, element in zip(numba_type.types, elements, strict=True):
        yield from _split(each, element)


def _find_parts(numba_type: types.Type, index: tuple[int, ...] = (), name: str = "") -> Iterator[Part]:
    if not isinstance(numba_type, types.BaseTuple):
        numba_type = numba_type.dtype if isinstance(numba_type, types.EnumMember) else numba_type
        yield Part(index, name, dtype_of(numba_type, "the check does not compare results"))
        return
    fields = numba_type.fields if isinstance(numba_type, types.BaseNamedTuple) else None
    for number, each in enumerate(numba_type.types):
        inner = f"{name}[{number}]" if fields is None else f"{name}.{fields[number]}"
        yield from _find_parts(each, (*index, number), inner)


def elements_of(value: Any) -> list[Any] | None:
    """Return the elements of a tuple, list, array, record or object of a dataclass; None for another value."""
    if isinstance(value, np.void) and value.dtype.names is not None:
        return [value[name] for name in value.dtype.names]
    if isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.ndim):
        return [*value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, each.name) for each in dataclasses.fields(value)]
    return None


def _is_value(value: Any, is_record: bool) -> bool:
    """Return whether *value* is a number, or what a record may be."""
    if is_record:
        return isinstance(value, (tuple, np.void))
    array = array_of(value)
    return array.ndim == 0 and array.dtype.kind in "biufc"
