# SPDX-License-Identifier: BSD-2-Clause
"""Structs and classes of C++ whose objects are records in Python, and C++ that compares their layouts when it is
compiled: a header may have changed since Python was told."""

from __future__ import annotations

import functools
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Stands for the struct in conditions, and begins the message of an assertion.
_STRUCT = "@struct@"
_CHANGED = "the layout has changed of "
_FOUND = re.compile(rf'static assertion failed with "{_CHANGED}(.*?)"')


@dataclass(frozen=True)
class Struct:
    """What C++ calls a struct, and *conditions* in C++ that hold while it has the layout of its Numba type; whether
    the fields of this type are its members, and whether it *is_packed*, with numbers that are not aligned."""

    name: str
    conditions: tuple[str, ...]
    has_members: bool = False
    is_packed: bool = False

    @classmethod
    def of_size(cls, name: str, size: int, align: int) -> Struct:
        """Return the class *name*, of which only size and alignment are known, in bytes."""
        return cls(name, (f"sizeof({_STRUCT}) == {size}", f"alignof({_STRUCT}) == {align}"))

    @classmethod
    def of_dtype(cls, name: str, dtype: np.dtype[Any]) -> Struct:
        """Return the struct *name* with the fields of a NumPy dtype."""
        # __INTADDR__ is what NVRTC makes of offsetof: older versions have no __builtin_offsetof.
        offsets = (f"__INTADDR__(&(({_STRUCT}*)0)->{path}) == {offset}" for path, offset in _list_members(dtype))
        return cls(name, (f"sizeof({_STRUCT}) == {dtype.itemsize}", *offsets), True, _is_packed(dtype))

    @property
    def alias(self) -> str:
        """What it is called outside of all namespaces."""
        return name_record(self.name)

    def assertion(self, name: str) -> str:
        """Return C++ that compiles if the struct that is called *name* has the layout."""
        condition = " && ".join(self.conditions).replace(_STRUCT, name)
        message = f"{_CHANGED}{self.name}".replace("\\", "\\\\").replace('"', '\\"')
        return f'static_assert({condition}, "{message}");'


def _list_members(dtype: np.dtype[Any]) -> Iterator[tuple[str, int]]:
    """Yield the path and the offset of each member of a struct with the fields of *dtype*, and of the structs in it."""
    for name, (inner, offset, *_) in (dtype.fields or {}).items():
        yield name, offset
        first = "[0]" * len(inner.shape)
        yield from ((f"{name}{first}.{path}", offset + further) for path, further in _list_members(inner.base))


def _is_packed(dtype: np.dtype[Any], at: int = 0) -> bool:
    """Return whether a number of *dtype* is not aligned, if this is at a multiple of all alignments and *at* bytes."""
    if dtype.subdtype is not None:
        base, count = dtype.base, min(math.prod(dtype.shape), 16)  # after which the places repeat
        return any(_is_packed(base, at + number * base.itemsize) for number in range(count))
    if dtype.fields is None:
        return at % dtype.alignment != 0
    return any(_is_packed(inner, at + offset) for inner, offset, *_ in dtype.fields.values())


@functools.cache
def name_record(name: str) -> str:
    """Return what the C++ struct *name*, which a Numba type stands for, is called outside of all namespaces."""
    return f"nca_record_{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def select_newest(structs: Mapping[Any, Struct]) -> dict[str, Any]:
    """Return the Numba type of each struct by its name: the one that was registered last, if its header changed."""
    return {struct.name: numba_type for numba_type, struct in structs.items()}


def find_changed(log: str) -> Sequence[str]:
    """Return the name of a struct whose layout has changed, as NVRTC's *log* says."""
    return _FOUND.findall(log)[:1]
