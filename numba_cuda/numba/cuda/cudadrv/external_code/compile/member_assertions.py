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
# "$" stands for "nca_". $with_members is the pattern of a struct, or of a pointer to it.
MEMBER_TEMPLATES = """
template <int $anywhere, class $p> struct $place;
template <int $anywhere, class $m, class $c> struct $place<$anywhere, $m $c::*> {
    enum { $found = 1 };
    typedef $m $type;
};
struct $nowhere { enum { $found = 0 }; };
template <class $n, int $o, class $p> struct $field {};
template <class $p, class... $f> struct $with_members {
    template <class $t> struct $fits : $p::template $fits<$t> {};
    template <class $t> struct $holds : $constant<1> {};
};
template <class $t> struct $target : $bare<$t> {};
template <class $t> struct $target<$t*> : $bare<$t> {};
template <class $t> struct $target<$t&> : $bare<$t> {};
template <class $t> struct $target<$t&&> : $bare<$t> {};

// Types differ if both are numbers. Anything else may have the bytes of anything.
template <class $p, class $e, int $k = int($kind<$e>::$is)> struct $same_type : $constant<1> {};
template <class $p, class $e> struct $same_type<$p, $e, $integer> {
    enum { $is = $p::template $holds<$e>::$is };
};
template <class $p, class $e> struct $same_type<$p, $e, $floating> {
    enum { $is = $p::template $holds<$e>::$is };
};
template <class $struct, class $name, class $type, int $offset, int $in_record, bool $same, int $number>
struct $member : $constant<1> {
    static_assert($offset == $in_record && $same, "OTHER_MEMBERS");
};

template <class $t, int $n, class $p, bool = int($kind<$t>::$is) == $class> struct $members_of : $constant<1> {};
template <class $t, int $n, class $f, class $found, bool> struct $one : $constant<1> {};
template <class $t, int $n, class $name, int $o, class $p, class $found>
struct $one<$t, $n, $field<$name, $o, $p>, $found, true> {
    typedef typename $found::$type $type;
    typedef typename $bare<$type>::$type $e;
    enum {
        $at = $name::template $offset<$t>::$is,
        $same = $same_type<$p, $e>::$is,
        $is = int($member<$t, $name, $type, $at, $o, $same, $n>::$is) && int($members_of<$e, $n, $p>::$is)
    };
};
template <class... $found> struct $count : $constant<0> {};
template <class $f, class... $found> struct $count<$f, $found...> {
    enum { $is = int($f::$found) + int($count<$found...>::$is) };
};
template <class...> struct $all : $constant<1> {};
template <class $t, class... $o> struct $all<$t, $o...> {
    enum { $is = int($t::$is) && int($all<$o...>::$is) };
};
template <class $t, int $n, class $p, class... $m, int... $o, class... $q>
struct $members_of<$t, $n, $with_members<$p, $field<$m, $o, $q>...>, true> {
    enum {
        $compared = int($count<decltype($m::template $find<$t>(0))...>::$is) > 1,
        $is = $all<$one<$t, $n, $field<$m, $o, $q>, decltype($m::template $find<$t>(0)),
                        bool($compared) && bool(decltype($m::template $find<$t>(0))::$found)>...>::$is
    };
};
template <int $n, class $c, class $f, bool> struct $all_members : $constant<1> {};
template <int $n, class... $c, class... $f> struct $all_members<$n, $list<$c...>, $list<$f...>, true> {
    enum { $is = $all<$members_of<typename $target<$f>::$type, $n, $c>...>::$is };
};
""".replace("OTHER_MEMBERS", OTHER_MEMBERS)
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
        """The member as the class has it."""
        return f"{self.type} {self.name} at byte {self.offset} of {self.struct}"

    @property
    def expected(self) -> str:
        """The member as the record has it."""
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
