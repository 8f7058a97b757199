# SPDX-License-Identifier: BSD-2-Clause
"""Structs of C++ as NumPy dtypes: NVRTC reports the members' names and types, and assertions compare the offsets."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba.cuda import types
from numba.cuda.core.errors import NumbaError
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_text, shown
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, ComputeCapabilityLike

from numba_cuda_autolink.printable_texts import number_of

from ..c_abi.c_types import CABIError
from ..c_abi.record_values import EnumeratorType
from ..frontend_api.record_fields import note_struct
from .call_text import write_call
from .calls import Call, Records
from .cxx_errors import CxxError
from .library_source import LibrarySource
from .prelude import ARRAY, MOST_MEMBERS, STRUCT, TUPLE
from .questions import Question, ask, at_call_outside
from .results import read_numbers, read_type
from .structs import Struct

# Pointers to members of an object are template arguments from C++20 on. Their lowered names have the members' names.
_TEXT = """#line 1 "prelude"
namespace nca {
template <class nca_T> struct nca_holder { nca_T nca_v; };
template <class nca_T> extern __device__ nca_holder<nca_T> nca_object;
template <auto nca_P> extern __device__ char nca_tell_member;
}
@open@
@line@using nca_type = @subject@;
@close@
"""
_CODE = "&nca::nca_tell<nca::nca_form_t<@inside@nca_type>::nca_code>"
_OBJECT = "nca::nca_object<{}>.nca_v"
_STEP = re.compile(r"(\d+)|Ll\d+E")


@dataclass(frozen=True)
class CxxRecord:
    """A struct of C++ and its dtype."""

    name: str
    dtype: np.dtype[Any]

    def register(self, source: LibrarySource, dtype: Any, cc: ComputeCapability | None) -> np.dtype[Any]:
        """Let the library take records of *dtype*, by default its own, as this struct. Raise `CxxError` if the fields
        differ, or if records of another struct have this dtype."""
        from numba.cuda.np import numpy_support

        given = self.dtype if dtype is None else read_dtype(dtype)
        if (got := _listed(given)) != (expected := _listed(self.dtype)):
            raise CxxError(
                f"the dtype differs from the C++ struct {self.name}\n  got: {got}\n  expected: {expected}, with the"
                " offsets in bytes\n"
                f"  what to do: use the dtype that lib.record({self.name!r}) returns"
            )
        numba_type = numpy_support.from_dtype(given)
        known = source.records[numba_type].name if numba_type in source.records else self.name
        if known != self.name and not _same_type(source, known, self.name, cc):
            raise CxxError(
                f"{self.name} and {known} have the same dtype, so that records of one would be taken for the other\n"
                f"  dtype: {_listed(given)}\n"
                "  what to do: rename a member in C++, or use one of the structs in another autolink.cxx(...)"
            )
        source.register(numba_type, Struct.of_dtype(known, self.dtype))
        return given


def read_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype that a user gives. Raise `TypeError` if it is none."""
    try:
        return np.dtype(dtype)
    except Exception as error:  # of whatever kind: NumPy asks the object
        raise TypeError(f"record() takes a NumPy dtype, got {shown(dtype)}\n  reason: {safe_text(error)}") from None


def _same_type(source: LibrarySource, name: str, other: str, cc: ComputeCapability | None) -> bool:
    text = (
        '#line 1 "prelude"\nnamespace nca {\n'
        "template <class nca_T, class nca_U> struct nca_pair_of { enum { nca_is_one = 0 }; };\n"
        "template <class nca_T> struct nca_pair_of<nca_T, nca_T> { enum { nca_is_one = 1 }; };\n}\n@open@\n"
        f"using nca_both = nca::nca_pair_of<nca::nca_plain<{name}>, nca::nca_plain<{other}>>;\n"
        "enum { nca_same = nca_both::nca_is_one };\n@close@\n"
    )
    (answer,) = ask(source, Question(other, text, ["&nca::nca_tell<nca::nca_told<@inside@nca_same>>"]), cc)
    return read_numbers(answer) == [1]


def _listed(dtype: np.dtype[Any]) -> str:
    fields: Mapping[str, Any] = dtype.fields or {}
    shown = [f"{name}: {field[0]} at {field[1]}" for name, field in sorted(fields.items(), key=lambda item: item[1][1])]
    return f"{number_of(dtype.itemsize, 'byte')}, {', '.join(shown)}"


@dataclass(eq=False)
class _Struct:
    """A struct in a record or in what a call returns, or one of these itself."""

    number: int  # its place among the structs
    value: str  # C++ that names it, or its first one in an array, after the members of the structs around it have names
    outer: _Struct | None  # the struct around it
    cxx_name: int  # a number that stands for its name
    # What its members are: Numba types, structs, tuples, or arrays as pairs of an extent and an element.
    members: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    lowered: str = ""  # the lowered name of a member, which has the type of the outermost struct around it

    def bind(self) -> str:
        """Return C++ that gives names to its members, and to those of the structs around it alone: NVRTC takes members
        for those of other structs where these have names."""
        names = ", ".join(self.label(member) for member in range(len(self.members)))
        return f"{self.outer.bind() if self.outer else ''}auto& [{names}] = {self.value}; "

    def label(self, member: int) -> str:
        """Return what C++ text calls a member."""
        return f"nca_m{self.number}_{member}"


@dataclass(frozen=True)
class _Tuple:
    """A tuple, pair or array of libcu++."""

    elements: tuple[Any, ...]


class _Reader:
    """Reads what the numbers of *code* describe, and lists the *structs* in it."""

    def __init__(self, code: Sequence[int], records: Sequence[Any]):
        self.structs: list[_Struct] = []
        self.has_tuples = False
        self._code = iter(code)
        self._records = records

    def read(self, value: str, outer: _Struct | None = None, is_element: bool = False) -> Any:
        """Return what the next numbers describe, which C++ calls *value*: a member of the struct *outer*, or of a tuple
        in it."""
        first = next(self._code)
        if first == ARRAY:
            extent = next(self._code)
            return extent, self.read(f"{value}[0]", outer, is_element)
        if first == TUPLE:
            self.has_tuples, count = True, range(next(self._code))
            return _Tuple(tuple(self.read(f"cuda::std::get<{i}>({value})", outer, True) for i in count))
        if first != STRUCT:
            return read_type(itertools.chain([first], self._code), self._records)
        # Members of tuples have no names: a struct in one is as any object of its type.
        value = _OBJECT.format(f"nca::nca_plain<decltype({value})>") if is_element else value
        struct = _Struct(len(self.structs), value, outer, next(self._code))
        self.structs.append(struct)
        count = range(next(self._code))
        struct.members = [None for _ in count]
        struct.members[:] = [self.read(struct.label(member), struct) for member in count]
        return struct


def ask_record(source: LibrarySource, name: str, cc: ComputeCapability | None) -> CxxRecord:
    """Return the struct *name* with its dtype. Raise `CxxError` if it is not a struct that NumPy can describe."""
    question = Question(name, _TEXT, [_CODE], options={"std": "c++20"})
    record, reader = _ask_structs(source, question, (), cc)
    if reader.has_tuples or not isinstance(record, _Struct):
        raise at_call_outside(
            CxxError(
                f"{name} is not a struct of numbers, pointers, arrays and such structs\n"
                f"  expected: an aggregate of 1 to {MOST_MEMBERS} members, without base classes and private members\n"
                f"  what to do: write lib.type({name!r}), which has its member functions and memory for its objects"
            )
        )
    paths = _find_paths(reader.structs)
    offsets, sizes = _ask_places(source, question, reader.structs, paths, cc)

    def make_dtype(struct: _Struct) -> np.dtype[Any]:
        found = [paths[struct.label(member)] for member in range(len(struct.members))]
        start = offsets[found[0].rpartition(".")[0]] if struct.outer else 0
        return np.dtype(
            {
                "names": struct.names,
                "formats": [make_format(member) for member in struct.members],
                "offsets": [offsets[path] - start for path in found],
                "itemsize": sizes[struct.number],
            }
        )

    def make_format(member: Any) -> Any:
        if isinstance(member, _Struct):
            return make_dtype(member)
        if isinstance(member, tuple):
            element = np.dtype(make_format(member[1]))
            # Numba has no arrays of bool in records.
            base = np.dtype(np.uint8) if element.base == np.bool_ else element.base
            return base, (member[0], *element.shape)
        return _make_scalar(name, member)

    dtype = make_dtype(record)
    assertion = f"@open@\n@line@{Struct.of_dtype(name, dtype).assertion(name)}\n@close@\n"
    ask(source, Question(name, assertion, ["&nca::nca_tell<int>"]), cc)
    return CxxRecord(name, dtype)


def ask_names(source: LibrarySource, call: Call, records: Records, cc: ComputeCapabilityLike) -> Any:
    """Return the Numba type of what *call* returns, in which structs are tuples with the names of the members. Raise
    `CxxError` if these cannot be known."""
    written = write_call(call, is_asked_only=True)
    question = Question(call.label, _TEXT, [_CODE], f"::{call.symbol}_r", options={"std": "c++20"}, before=written)

    def make_type(member: Any) -> Any:
        if isinstance(member, tuple):
            return types.UniTuple(make_type(member[1]), member[0])
        if isinstance(member, _Tuple):
            return types.BaseTuple.from_types([make_type(each) for each in member.elements])
        if not isinstance(member, _Struct):
            return member
        made = _make_class(tuple(member.names), member.cxx_name)
        if member.outer is None:
            note_struct(tuple(member.names), member.lowered)
        return types.BaseTuple.from_types([make_type(each) for each in member.members], made)

    return make_type(_ask_structs(source, question, list(records), cc)[0])


@functools.cache
def _make_class(names: tuple[str, ...], cxx_name: int) -> type[tuple[Any, ...]]:
    made = collections.namedtuple("Struct", names, rename=True)  # type: ignore[misc]
    made.__name__ = f"Struct{{{', '.join(names)}}}"  # as messages show it
    made.cxx_struct = names, cxx_name  # type: ignore[attr-defined]
    return made


def _ask_structs(
    source: LibrarySource, question: Question, records: Sequence[Any], cc: ComputeCapabilityLike | None
) -> tuple[Any, _Reader]:
    """Return what the type is that *question* is about, and its reader, whose structs have names of their members."""
    (answer,) = ask(source, question, cc)
    reader = _Reader(read_numbers(answer), records)
    found = reader.read(_OBJECT.format("nca_T"))
    if reader.structs:
        _ask_member_names(source, question, reader.structs, cc)
    return found, reader


def _ask_member_names(
    source: LibrarySource, question: Question, structs: Sequence[_Struct], cc: ComputeCapabilityLike | None
) -> None:
    """Give the structs in what *question* is about the names of their members."""
    members = [(struct, member) for struct in structs for member in range(len(struct.members))]
    functions = (
        f"template <class nca_T> constexpr __device__ auto nca_pointer_{number}() {{"
        f" {struct.bind()}return &{struct.label(member)}; }}\n"
        for number, (struct, member) in enumerate(members)
    )
    names = [f"&nca::nca_tell_member<nca_pointer_{i}<@inside@nca_type>()>" for i in range(len(members))]
    answers = ask(source, dataclasses.replace(question, text="".join([question.text, *functions]), names=names), cc)
    for (struct, _), answer in zip(members, answers, strict=True):
        struct.names.append(_read_member_name(answer))
        struct.lowered = answer


def _find_paths(structs: Sequence[_Struct]) -> dict[str, str]:
    """Return the path to each member of a record in C++, such as ``.a`` or ``.inner[0].x``, by the member's label."""
    paths: dict[str, str] = {}
    for struct in structs:
        # The indices of arrays are not read: the lowered names of NVRTC 13.0 lack them.
        array, bracket, indices = struct.value.partition("[")
        path = f"{paths.get(array, '')}{bracket}{indices}"
        paths |= {struct.label(member): f"{path}.{name}" for member, name in enumerate(struct.names)}
    return paths


def _read_member_name(lowered: str) -> str:
    """Return the name of the member of `nca_object`, perhaps of one in it, that the lowered name of a pointer spells
    last."""
    rest, name = lowered.partition("E5nca_v")[2], ""
    while step := _STEP.match(rest):
        end = step.end() + int(step[1] or 0)
        rest, name = rest[end:], rest[step.end() : end] or name
    return name


def _ask_places(
    source: LibrarySource,
    question: Question,
    structs: Sequence[_Struct],
    paths: Mapping[str, str],
    cc: ComputeCapability | None,
) -> tuple[dict[str, int], list[int]]:
    """Return the offset of each member of the record by its path, and of each struct in it, and the structs' sizes."""
    start = "((@inside@nca_type*)0)"
    inner = [paths[struct.label(0)].rpartition(".")[0] for struct in structs]  # empty for the record itself
    places = list(dict.fromkeys([*paths.values(), *inner[1:]]))
    numbers = [f"__INTADDR__(&{start}->{path[1:]})" for path in places]
    numbers += [f"sizeof({start}->{path[1:]})" if path else "sizeof(@inside@nca_type)" for path in inner]
    (answer,) = ask(source, dataclasses.replace(question, names=[f"&nca::nca_tell_numbers<{', '.join(numbers)}>"]), cc)
    found = read_numbers(answer)
    return dict(zip(places, found)), found[len(places) :]  # noqa: B905


def _make_scalar(label: str, member: types.Type) -> np.dtype[Any]:
    """Return the dtype of a member that is a number or a pointer."""
    from numba.cuda.np import numpy_support

    if isinstance(member, (types.RawPointer, types.CPointer)):
        return np.dtype(np.uint64)
    if isinstance(member, EnumeratorType):
        member = member.underlying
    try:
        return np.dtype(numpy_support.as_dtype(member))
    except (NotImplementedError, NumbaError):
        raise CABIError(f"a member of {label} is a {member}, which has no NumPy dtype") from None
