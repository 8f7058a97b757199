# SPDX-License-Identifier: BSD-2-Clause
"""Numba types from the numbers with which a lowered name describes C++ types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numba.cuda import types

from .prelude import ARRAY, COMPLEX, OBJECT, PLAIN, POINTER, RECORD, TUPLE

_TYPES = {
    "void": types.none,
    "bool": types.boolean,
    "signed char": types.int8,
    "unsigned char": types.uint8,
    "short": types.int16,
    "unsigned short": types.uint16,
    "int": types.int32,
    "unsigned int": types.uint32,
    "long long": types.int64,
    "unsigned long long": types.uint64,
    "__half": types.float16,
    "__nv_bfloat16": types.bfloat16,
    "float": types.float32,
    "double": types.float64,
}
_PLAIN = {PLAIN[name]: numba_type for name, numba_type in _TYPES.items()}
_COMPLEX = {types.float32: types.complex64, types.float64: types.complex128}
_NUMBER = re.compile(r"L[a-z](\d+)E")


@dataclass(frozen=True)
class CxxObject:
    """A value that C cannot return: its size and alignment in bytes."""

    size: int
    align: int


def numbers_in(lowered: str) -> list[int]:
    """Return the numbers that a lowered name spells."""
    return [int(number) for number in _NUMBER.findall(lowered)]


def coded_type(code: Iterator[int], records: Sequence[Any]) -> Any:
    """Return the Numba type that the next numbers of *code* describe, or a `CxxObject`; *records* are the types of
    known structs."""
    first = next(code)
    if first == POINTER:
        pointee = _PLAIN[next(code)]
        return types.voidptr if pointee == types.none else types.CPointer(pointee)
    if first == COMPLEX:
        return _COMPLEX[_PLAIN[next(code)]]
    if first == OBJECT:
        return CxxObject(next(code), next(code))
    if first == RECORD:
        return records[next(code)]
    if first == ARRAY:
        count = next(code)
        return types.UniTuple(coded_type(code, records), count)
    if first == TUPLE:
        elements = [coded_type(code, records) for _ in range(next(code))]
        return types.BaseTuple.from_types(elements)
    return _PLAIN[first]
