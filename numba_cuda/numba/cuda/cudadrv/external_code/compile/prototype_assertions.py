# SPDX-License-Identifier: BSD-2-Clause
"""Assertions at the end of a translation unit: the functions that Python calls have the types that the calls pass.

The linker sees symbols alone, and links a function of other types into garbage. So the unit itself compares: after the
user's text come templates (``prototype_assertions.cuh``) that use the compiler's built-in traits, and one assertion for
each function and prototype. They add no code: a unit compiles to the same bytes with and without them.

An assertion must not fail where the unit has no such function. ``&::f`` finds a function ``f`` that the unit declares,
and otherwise, through a using-directive, one that takes what no call passes. Of overloads and templates it decides
nothing, and so the assertion holds.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

from ..inputs.c_prototypes import CalledFunction, CField, CPrototype, CType
from ..inputs.link_input import line_marker
from .nvrtc import CompileError
from .translation_unit import TranslationUnit

# A struct of more members is not taken apart.
MOST_MEMBERS = 32
_NUMBER = re.compile(r"L[a-z](\d+)E")


def write_members(most_taken: int) -> str:
    """Return C++ templates that take structs apart: functions that call another one with all members of a struct, or
    return their offsets, and functions whose type is whether so many empty lists initialise an aggregate, up to
    *most_taken*."""
    counts = range(1, MOST_MEMBERS + 1)
    return "\n".join(
        [
            "struct nca_yes { char nca_c[2]; };",
            "struct nca_no { char nca_c[1]; };",
            "template <int nca_N> struct nca_empty;",
            *map(_write_empty, range(1, most_taken + 1)),
            f"struct nca_offsets {{ int nca_at[{MOST_MEMBERS}]; }};",
            "template <int nca_N> struct nca_bound;",
            "#pragma nv_diagnostic push\n#pragma nv_diag_suppress 284",  # a null reference
            *map(_write_bound, counts),
            read_templates("struct_offsets.cuh"),
            "#pragma nv_diagnostic pop",
        ]
    )


def _write_bound(n: int) -> str:
    names = ", ".join(f"nca_m{i}" for i in range(n))
    offsets = ", ".join(f"int(__INTADDR__(__builtin_addressof(nca_m{i})))" for i in range(n))
    return (
        f"template <> struct nca_bound<{n}> {{ template <class nca_T, class nca_F> static constexpr __device__"
        f" decltype(auto) nca_in(nca_T& nca_t, nca_F nca_f) {{ auto& [{names}] = nca_t; return nca_f({names}); }}\n"
        "template <class nca_T> static constexpr __device__ nca_offsets nca_places()"
        f" {{ auto& [{names}] = *(nca_T*)0; return {{{{{offsets}}}}}; }} }};"
    )


def _write_empty(n: int) -> str:
    made = f"nca_T{{{', '.join(['{}'] * n)}}}"
    return (
        f"template <> struct nca_empty<{n}> {{\ntemplate <class nca_T> static __device__ auto nca_in(int)"
        f" -> decltype({made}, nca_yes{{}});\ntemplate <class nca_T> static __device__ nca_no nca_in(long); }};"
    )


def read_templates(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8").replace("$", "nca_")


_WRITTEN = f"enum {{ nca_most = {MOST_MEMBERS} }};\n{write_members(MOST_MEMBERS)}"
# Precede the assertions of structs.
STRUCT_TEMPLATES = (
    f"\nnamespace numba_cuda_autolink_prototypes {{\n{_WRITTEN}\n}}\n{read_templates('struct_assertions.cuh')}"
)


def question(numbers: Sequence[int], space: str) -> str:
    """Return the name expression that tells which of the calls with these *numbers* have structs that are not taken
    apart."""
    return f"&{space}::nca_told<{', '.join(f'{space}::nca_hides_{number}' for number in numbers)}>"


def read_answer(lowered: str) -> list[bool]:
    """Return what the *lowered* name of a `question` tells, in the order of its numbers."""
    return [number != "0" for number in _NUMBER.findall(lowered)]


# What NVRTC calls the text that is added. Its names begin with "nca_", here "$": no macro of the user's is called that.
_FILE = "numba-cuda-autolink"
_SPACE = "numba_cuda_autolink_prototypes"
_OTHER_TYPES = "a call in Python passes or expects other types than the function has"
# Another check needs another `_CHECK` in `translation_unit`, or what fits an earlier one is not compared again.
_TEMPLATES = read_templates("prototype_assertions.cuh")
_FUNCTION = """
#undef {symbol}
namespace {space} {{ namespace $absent {{ __device__ void {symbol}($no_such_function, ...); }} }}
using namespace {space}::$absent;
namespace {space} {{
template <class $c, int $n>
__device__ auto $of_{symbol}(int) -> decltype($of<$c, $n>(&::{symbol}, 0));
template <class $c, int $n> __device__ $no_such_function $of_{symbol}(...);
}}""".replace("$", "nca_")
_OTHER_MEMBERS = "a struct has its members elsewhere than a record of a call in Python has its fields"
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
_WRONG_MEMBER = re.compile(
    r"\[with nca_struct=(?P<struct>.*), nca_name=\S*nca_name_(?P<name>\w+), nca_type=(?P<type>.*),"
    r" nca_offset=(?P<offset>\d+), nca_in_record=(?P<in_record>\d+), nca_same=\w+, nca_number=(?P<number>\d+)\]"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FAILED = re.compile(r"\[with nca_function=(.*), nca_number=(\d+)")
_ERROR = re.compile(r"\(\d+\): (?:catastrophic )?error")


@dataclass(frozen=True)
class WrongFunction:
    """A function of a source whose types are not those of a call; *declaration* is the source's. If they differ only in
    *members* of its structs, there is none."""

    called: CalledFunction
    declaration: str = ""
    members: tuple[WrongMember, ...] = ()


class PrototypeError(CompileError):
    """Functions of a source have other types than the calls in Python pass and expect: those in *wrong*."""

    def __init__(self, name: str, log: str, wrong: tuple[WrongFunction, ...]):
        self.wrong = wrong
        super().__init__(name, log)


def has_structs(called: Sequence[CalledFunction]) -> bool:
    return any(_has_leaves(each) for each in called)


def _has_leaves(called: CalledFunction) -> bool:
    return "nca_with_leaves<" in called.types


def with_assertions(
    unit: TranslationUnit, called: Sequence[CalledFunction], *, of_structs: bool = True
) -> TranslationUnit:
    """Return *unit* with an assertion for each of the *called* functions that C++ can name, also *of structs* by value
    and what is in them."""
    named = _named(called)
    functions = {each.symbol: _FUNCTION.format(symbol=each.symbol, space=_SPACE) for _, each in named}
    # The blank line ends a comment or a line that the user's text may end with.
    lines = [unit.code.rstrip("\0"), "", "#if __cplusplus >= 201103L", f"{line_marker(_FILE)}{_TEMPLATES}"]
    if of_structs and has_structs(called):
        lines.append(STRUCT_TEMPLATES)
    lines += [*functions.values(), *_finders((each for _, each in named), _SPACE)]
    for number, each in named:
        lines.append(f"{line_marker(f'{_FILE}: {each.call}')}namespace {_SPACE} {{ {_assertion(each, number)} }}")
    return dataclasses.replace(unit, code="\n".join([*lines, "#endif", ""]))


def _named(called: Sequence[CalledFunction]) -> list[tuple[int, CalledFunction]]:
    return [(number, each) for number, each in enumerate(called) if _NAME.fullmatch(each.symbol)]


def _assertion(called: CalledFunction, number: int) -> str:
    found = f"decltype(nca_of_{called.symbol}<nca_list<{called.types}>, {number}>(0))"
    told = f" enum {{ nca_hides_{number} = {found}::nca_hides }};" if _has_leaves(called) else ""
    return f'static_assert(sizeof({found}) != 0, "");{told}'


def questions(called: Sequence[CalledFunction]) -> list[str]:
    numbers = [number for number, each in _named(called) if _has_leaves(each)]
    return [question(numbers, _SPACE)] if numbers else []


def list_hidden(called: Sequence[CalledFunction], lowered: Collection[str]) -> tuple[CalledFunction, ...]:
    """Return those of the functions *called* that have structs by value which are not compared; *lowered* are the names
    of the `questions`, if they were asked."""
    asked = [each for _, each in _named(called) if _has_leaves(each)] if lowered else []
    hides = dict(zip(asked, *map(read_answer, lowered), strict=True) if asked else ())
    return tuple(each for each in called if hides.get(each, each.has_structs))


def raise_understood(error: CompileError, name: str, called: Sequence[CalledFunction]) -> None:
    """Raise what the *error* of a unit with assertions means: `PrototypeError`, or the unit's own `CompileError`.

    Return if only the text that was added does not compile, for another reason than that types differ.
    """
    wrong: dict[CalledFunction, WrongFunction] = {}
    kept, others, own = [], 0, 0
    for block in re.split(r"\n\s*\n", error.log.replace("__nv_bool", "bool")):
        first = block.strip("\n").partition("\n")[0]
        if _FILE not in block:  # not even as what instantiated a template
            kept.append(block)
            others += bool(_ERROR.search(first))
        elif (found := _FAILED.search(block)) and _OTHER_TYPES in first:
            function = called[int(found[2])]
            result, _, parameters = found[1].partition("(")
            declaration = f"{result.rstrip()} {function.symbol}({parameters}".replace(" *", "*").replace(" &", "&")
            wrong.setdefault(function, WrongFunction(function, declaration))
        elif _OTHER_MEMBERS in first and (of := _wrong_member(block, called)) is not None:
            function, member = of
            known = wrong.get(function, WrongFunction(function))
            wrong[function] = dataclasses.replace(known, members=(*known.members, member))
        else:
            own += bool(_ERROR.search(first))
    if others:
        raise CompileError(name, "\n\n".join(kept)) from error.__cause__
    if wrong and not own:
        # What is wrong with a struct, the names of its members say best.
        said = (
            dataclasses.replace(each, declaration="" if each.members else each.declaration) for each in wrong.values()
        )
        raise PrototypeError(name, error.log, tuple(said)) from error.__cause__


# Members and fields of records belong together by their names. Where fewer than two of them agree, nothing is compared:
# the members may have names of their own, or the record is memory for an object that only C++ knows. Nor are members
# compared whose offset is not a constant that others may know: private ones, bit-fields, references, those of virtual
# bases.


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


def _finders(called: Iterable[CalledFunction], space: str) -> Iterator[str]:
    names = dict.fromkeys(field.name for each in called for field in _fields_of(each.prototype))
    return (_FINDER.format(name=name, space=space) for name in names)


def _fields_of(prototype: CPrototype) -> Iterator[CField]:
    for c_type in (prototype.returns, *prototype.parameters):
        yield from _all_fields(c_type)


def _all_fields(c_type: CType) -> Iterator[CField]:
    for field in c_type.fields:
        yield field
        yield from _all_fields(field.type)


def _wrong_member(message: str, called: Sequence[CalledFunction]) -> tuple[CalledFunction, WrongMember] | None:
    """Return the function that an assertion in NVRTC's *message* is about, and the member; None if it is about none."""
    if (found := _WRONG_MEMBER.search(message)) is None:
        return None
    function, name, offset = called[int(found["number"])], found["name"], int(found["in_record"])
    field = next(each for each in _fields_of(function.prototype) if (each.name, each.offset) == (name, offset))
    return function, WrongMember(found["struct"], name, found["type"], int(found["offset"]), field)
