# SPDX-License-Identifier: BSD-2-Clause
"""Structs by value: how C sees records and tuples that a function takes or returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numba.cuda import types
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CType

from .c_types import CABIError, as_element, c_fields, element_ctype, memory_layout


@dataclass(frozen=True)
class CStruct(CType):
    """A struct with ``members`` at ``offsets``. A record with one field *is_memory*, which may be for anything."""

    members: tuple[CType, ...] = ()
    offsets: tuple[int, ...] = ()
    is_memory: bool = False

    @property
    def has_parts(self) -> bool:
        return not self.is_memory

    def list_leaves(self, offset: int = 0) -> Iterator[tuple[int, CType]]:
        for member, at in zip(self.members, self.offsets, strict=True):
            yield from member.list_leaves(offset + at)


@dataclass(frozen=True)
class CArray(CType):
    """An array of ``count`` elements, as a member of a struct."""

    element: CType = field(default_factory=lambda: CType("void", "void", 0, 1))
    count: int = 0

    def list_leaves(self, offset: int = 0) -> Iterator[tuple[int, CType]]:
        for number in range(self.count):
            yield from self.element.list_leaves(offset + number * self.element.size)


def is_struct(numba_type: Any) -> bool:
    return isinstance(numba_type, types.Record) or (isinstance(numba_type, types.BaseTuple) and len(numba_type) > 0)


def struct_ctype(numba_type: Any) -> CStruct:
    """Return the struct that C sees for a record or a tuple by value. Raise `CABIError` if C has none."""
    numba_type = getattr(numba_type, "of_record", numba_type)  # the value of a record that a function returned
    layout = memory_layout(numba_type)
    members = tuple(_member(each) for each in field_types(numba_type))
    names = field_names(numba_type)
    declared = " ".join(f"{_declared(c, name)};" for c, name in zip(members, names, strict=True))
    has_names = not isinstance(numba_type, types.BaseTuple) or isinstance(numba_type, types.BaseNamedTuple)
    named = zip(names, layout.offsets, field_types(numba_type), strict=True) if has_names else ()
    is_memory = len(members) == 1 and (isinstance(numba_type, types.Record) or getattr(members[0], "is_memory", False))
    struct = CStruct(
        f"struct {{ {declared} }}", "struct", layout.size, layout.align, None, members, layout.offsets, is_memory
    )
    return replace(struct, fields=c_fields(named))


def _member(numba_type: Any) -> CType:
    if is_struct(numba_type):
        return struct_ctype(numba_type)
    if isinstance(numba_type, types.NestedArray):
        found = as_element(_member(numba_type.dtype))
        for count in reversed(numba_type.shape):
            found = CArray(found.cxx, "array", found.size * count, found.align, None, found, count)
        return found
    if isinstance(numba_type, types.CharSeq):
        raise CABIError(f"{numba_type}, a string in a record, cannot be passed or returned by value")
    return element_ctype(numba_type)


def _declared(c_type: CType, name: str) -> str:
    while isinstance(c_type, CArray):
        name, c_type = f"{name}[{c_type.count}]", c_type.element
    return f"{c_type.cxx} {name}"


def _fields(record: Any) -> list[tuple[str, Any]]:
    return sorted(record.members, key=lambda member: record.offset(member[0]))


def field_types(numba_type: Any) -> Sequence[Any]:
    """Return the types of the elements of a tuple, or of the fields of a record in their order in memory."""
    if isinstance(numba_type, types.Record):
        return [field_type for _, field_type in _fields(numba_type)]
    return tuple(numba_type.types)


def field_names(numba_type: Any) -> Sequence[str]:
    if isinstance(numba_type, types.Record):
        return [name for name, _ in _fields(numba_type)]
    return getattr(numba_type, "fields", None) or [f"_{number}" for number in range(len(numba_type))]
