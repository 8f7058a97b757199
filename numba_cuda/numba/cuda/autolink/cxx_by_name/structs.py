# SPDX-License-Identifier: BSD-2-Clause
"""Structs and classes of C++ whose objects are records in Python, and C++ that compares their layouts when it is
compiled: a header may have changed since Python was told."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Stands for the struct in conditions, and begins the message of an assertion.
_STRUCT = "@struct@"
_CHANGED = "the layout has changed of "
# What an assertion and an error say of a struct with another one in it, which C++ declares.
OTHER_LAYOUT = "has a struct in it that is packed, or aligned to more than its members"
RECORD_OF_WHOLE = "call lib.record(...) of the whole struct, and its values go in as records"
_FOUND = re.compile(rf'static assertion failed with "{_CHANGED}(.*?)"')


@dataclass(frozen=True)
class Struct:
    """What C++ calls a struct, and *conditions* in C++ that hold while it has the layout of its Numba type, and whether
    its members are the fields of the type."""

    name: str
    conditions: tuple[str, ...]
    has_members: bool = False

    @classmethod
    def of_size(cls, name: str, size: int, align: int) -> Struct:
        """Return the class *name*, of which only size and alignment are known, in bytes."""
        return cls(name, (f"sizeof({_STRUCT}) == {size}", f"alignof({_STRUCT}) == {align}"))

    @classmethod
    def of_dtype(cls, name: str, dtype: np.dtype[Any]) -> Struct:
        """Return the struct *name* with the fields of a NumPy dtype."""
        conditions = (offset_condition(_STRUCT, *each) for each in _list_members(dtype))
        return cls(name, (f"sizeof({_STRUCT}) == {dtype.itemsize}", *conditions), bool(dtype.fields))

    @property
    def alias(self) -> str:
        """What it is called outside of all namespaces."""
        return name_record(self.name)

    def assertion(self, name: str) -> str:
        """Return C++ that compiles if the struct that is called *name* has the layout."""
        condition = " && ".join(self.conditions).replace(_STRUCT, name)
        message = f"{_CHANGED}{self.name}".replace("\\", "\\\\").replace('"', '\\"')
        return f'static_assert({condition}, "{message}");'


def offset_condition(name: str, path: str, offset: int) -> str:
    """Return C++ that is true if the struct *name* has the member at *path* at this *offset*."""
    # __INTADDR__ is what NVRTC makes of offsetof: older versions have no __builtin_offsetof.
    return f"__INTADDR__(&(({name}*)0)->{path}) == {offset}"


def _list_members(dtype: np.dtype[Any]) -> Iterator[tuple[str, int]]:
    """Yield the path and the offset of each member of a struct with the fields of *dtype*, and of the structs in it."""
    for name, (inner, offset, *_) in (dtype.fields or {}).items():
        yield name, offset
        first = "[0]" * len(inner.shape)
        yield from ((f"{name}{first}.{path}", offset + further) for path, further in _list_members(inner.base))


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
