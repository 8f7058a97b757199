# SPDX-License-Identifier: BSD-2-Clause
"""Assertions of `prototype_assertions` that the members of a C++ struct are where a record of Python has its fields.

Members and fields belong together by their names. Where fewer than two of them agree, nothing is compared: the members
may have names of their own, or the record is memory for an object that only C++ knows. Nor are members compared whose
offset is not a constant that others may know: private ones, bit-fields, references, those of virtual bases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..inputs.c_prototypes import CalledFunction, CField, CPrototype, CType

OTHER_MEMBERS = "a struct has its members elsewhere than a record of a call in Python has its fields"
# What finds a member by its name, if a class has it at a constant offset. NVRTC 12 and 13.0 have no __builtin_offsetof;
# "&" may be an operator of the member's class, and __builtin_addressof is not found constant in a signature.
_FINDER = """
#undef {name}
namespace {space} {{
struct $name_{name} {{
    template <class $t> struct $offset {{ enum {{ $is = __INTADDR__(__builtin_addressof((($t*)0)->{name})) }}; }};
    template <class $t>
    static __device__ $place<int(__INTADDR__(&(($t*)0)->{name})), decltype(&$t::{name})> $find(int);
    template <class $t> static __device__ $nowhere $find(...);
}};
}}""".replace("$", "nca_")
_WRONG = re.compile(
    r"\[with nca_struct=(?P<struct>.*), nca_name=\S*nca_name_(?P<name>\w+), nca_type=(?P<type>.*),"
    r" nca_offset=(?P<offset>\d+), nca_in_record=(?P<in_record>\d+), nca_same=\w+, nca_number=(?P<number>\d+)\]"
)


@dataclass(frozen=True)
class WrongMember:
    """The member *name* of the C++ class *struct*, whose type or offset in bytes is not that of the *field*."""

    struct: str
    name: str
    type: str
    offset: int
    field: CField

    def __str__(self) -> str:
        return f"{self.type} {self.name} at byte {self.offset} of {self.struct}"

    @property
    def expected(self) -> str:
        return f"{self.field.type.cxx} {self.name} at byte {self.field.offset}"


def finders(called: Iterable[CalledFunction], space: str) -> Iterator[str]:
    """Yield what finds the members that have names of fields of records in the prototypes *called*, in C++."""
    names = dict.fromkeys(field.name for each in called for field in _fields_of(each.prototype))
    return (_FINDER.format(name=name, space=space) for name in names)


def _fields_of(prototype: CPrototype) -> Iterator[CField]:
    for c_type in (prototype.returns, *prototype.parameters):
        yield from _all_fields(c_type)


def _all_fields(c_type: CType) -> Iterator[CField]:
    for field in c_type.fields:
        yield field
        yield from _all_fields(field.type)


def wrong_member(message: str, called: Sequence[CalledFunction]) -> tuple[CalledFunction, WrongMember] | None:
    """Return the function that an assertion in NVRTC's *message* is about, and the member; None if it is about none."""
    if (found := _WRONG.search(message)) is None:
        return None
    function, name, offset = called[int(found["number"])], found["name"], int(found["in_record"])
    field = next(each for each in _fields_of(function.prototype) if (each.name, each.offset) == (name, offset))
    return function, WrongMember(found["struct"], name, found["type"], int(found["offset"]), field)
