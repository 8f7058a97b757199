# SPDX-License-Identifier: BSD-2-Clause
"""Structs of C++ as NumPy dtypes: NVRTC reports the members' names and types, and assertions compare the offsets."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.cuda import types
from numba.cuda.core.errors import NumbaError
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_text, shown
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, ComputeCapabilityLike

from ..c_abi.c_types import CABIError
from .call_text import write_call
from .calls import Call, Records
from .library_source import LibrarySource
from .prelude import ARRAY, MOST_MEMBERS, STRUCT
from .questions import Question, ask
from .refusals import CxxError
from .results import CxxObject, read_numbers, read_type
from .structs import Struct
from .structs import register as register_struct

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

        given = self.dtype if dtype is None else _dtype_given(dtype)
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
        register_struct(source.records, numba_type, Struct.of_dtype(known, self.dtype))
        return given


def _dtype_given(dtype: Any) -> np.dtype[Any]:
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
    return f"{dtype.itemsize} bytes, {', '.join(shown)}"


@dataclass(frozen=True)
class _Struct:
    """A struct in a record, or the record itself."""

    number: int  # its place among the structs of the record
    # What its members are: Numba types, structs, or arrays as pairs of an extent and an element.
    members: tuple[Any, ...]
    value: str  # C++ that names it, or its first one in an array, after the members of the structs around it have names
    outer: int | None = None  # the struct around it
    cxx_name: int = 0  # a number that stands for its name

    def bind(self, structs: Sequence[_Struct]) -> str:
        """Return C++ that gives names to its members, and to those of the structs around it alone: NVRTC takes members
        for those of other structs where these have names."""
        before = "" if self.outer is None else structs[self.outer].bind(structs)
        return f"{before}auto& [{', '.join(self.name(i) for i in range(len(self.members)))}] = {self.value}; "

    def name(self, member: int) -> str:
        """Return what C++ text calls a member."""
        return f"nca_m{self.number}_{member}"


def ask_record(source: LibrarySource, name: str, cc: ComputeCapability | None) -> CxxRecord:
    """Return the struct *name* with its dtype. Raise `CxxError` if it is not a struct that NumPy can describe."""
    question = Question(name, _TEXT, [_CODE], options={"std": "c++20"})
    structs, paths = _ask_structs(source, question, (), cc)
    offsets, sizes = _ask_places(source, question, structs, paths, cc)

    def make_dtype(struct: _Struct) -> np.dtype[Any]:
        start = offsets[paths[struct.number, 0].rpartition(".")[0]] if struct.number else 0
        found = [paths[struct.number, member] for member in range(len(struct.members))]
        return np.dtype(
            {
                "names": [path.rpartition(".")[2] for path in found],
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

    dtype = make_dtype(structs[0])
    assertion = f"@open@\n@line@{Struct.of_dtype(name, dtype).assertion(name)}\n@close@\n"
    ask(source, Question(name, assertion, ["&nca::nca_tell<int>"]), cc)
    return CxxRecord(name, dtype)


def ask_names(source: LibrarySource, call: Call, records: Records, cc: ComputeCapabilityLike) -> Any:
    """Return the Numba type of the struct that *call* returns, a tuple with the names of the members. Raise `CxxError`
    if these cannot be known."""
    written = write_call(call, is_asked_only=True)
    question = Question(call.label, _TEXT, [_CODE], f"::{call.symbol}_r", options={"std": "c++20"}, before=written)
    structs, paths = _ask_structs(source, question, list(records), cc)

    def make_type(member: Any) -> Any:
        if isinstance(member, tuple):
            return types.UniTuple(make_type(member[1]), member[0])
        if not isinstance(member, _Struct):
            return member
        names = tuple(paths[member.number, i].rpartition(".")[2] for i in range(len(member.members)))
        return types.BaseTuple.from_types(
            [make_type(each) for each in member.members], _make_class(names, member.cxx_name)
        )

    return make_type(structs[0])


@functools.cache
def _make_class(names: tuple[str, ...], cxx_name: int) -> type[tuple[Any, ...]]:
    made = collections.namedtuple("Struct", names, rename=True)  # type: ignore[misc]
    made.cxx_struct = names, cxx_name  # type: ignore[attr-defined]
    return made


def _ask_structs(
    source: LibrarySource, question: Question, records: Sequence[Any], cc: ComputeCapabilityLike | None
) -> tuple[list[_Struct], dict[tuple[int, int], str]]:
    """Return the structs in the one that *question* is about, which is the first, and the paths to their members."""
    (answer,) = ask(source, question, cc)
    structs: list[_Struct] = []
    _read_member(iter(read_numbers(answer)), question.label, "nca::nca_object<nca_T>.nca_v", structs, records)
    return structs, _ask_paths(source, question, structs, cc)


def _read_member(
    code: Iterator[int],
    label: str,
    value: str,
    structs: list[_Struct],
    records: Sequence[Any],
    outer: int | None = None,
) -> Any:
    """Return what the next numbers of *code* describe, a member of the struct *outer*; add the structs in it to
    *structs*."""
    first = next(code)
    if first == ARRAY:
        extent = next(code)
        return extent, _read_member(code, label, f"{value}[0]", structs, records, outer)
    if first != STRUCT:
        found = read_type(itertools.chain([first], code), records)
        if structs and not isinstance(found, (CxxObject, types.BaseTuple)):
            return found
        raise CxxError(
            f"{label} is not a struct of numbers, pointers, arrays and such structs\n"
            f"  expected: an aggregate of 1 to {MOST_MEMBERS} members, without base classes and private members"
        )
    number, cxx_name = len(structs), next(code)
    structs.append(_Struct(number, (), value, outer))
    members = tuple(
        _read_member(code, label, structs[number].name(member), structs, records, number)
        for member in range(next(code))
    )
    structs[number] = _Struct(number, members, value, outer, cxx_name)
    return structs[number]


def _ask_paths(
    source: LibrarySource, question: Question, structs: Sequence[_Struct], cc: ComputeCapabilityLike | None
) -> dict[tuple[int, int], str]:
    """Return the path to each member of the record in C++, such as ``.a`` or ``.inner[0].x``, by the numbers of its
    struct and its own."""
    members = [(struct, member) for struct in structs for member in range(len(struct.members))]
    functions = (
        f"template <class nca_T> constexpr __device__ auto nca_pointer_{number}() {{"
        f" {struct.bind(structs)}return &{struct.name(member)}; }}\n"
        for number, (struct, member) in enumerate(members)
    )
    names = [f"&nca::nca_tell_member<nca_pointer_{i}<@inside@nca_type>()>" for i in range(len(members))]
    answers = ask(source, dataclasses.replace(question, text="".join([question.text, *functions]), names=names), cc)
    paths: dict[str, str] = {}
    for (struct, member), answer in zip(members, answers, strict=True):
        # The indices of arrays are not read: the lowered names of NVRTC 13.0 lack them.
        array, bracket, indices = struct.value.partition("[")
        paths[struct.name(member)] = f"{paths.get(array, '')}{bracket}{indices}.{_read_member_name(answer)}"
    return {(struct.number, member): paths[struct.name(member)] for struct, member in members}


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
    paths: Mapping[tuple[int, int], str],
    cc: ComputeCapability | None,
) -> tuple[dict[str, int], list[int]]:
    """Return the offset of each member of the record by its path, and of each struct in it, and the structs' sizes."""
    start = "((@inside@nca_type*)0)"
    inner = [paths[struct.number, 0].rpartition(".")[0] for struct in structs]  # empty for the record itself
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
    if isinstance(member, types.EnumMember):
        member = member.dtype
    try:
        return np.dtype(numpy_support.as_dtype(member))
    except (NotImplementedError, NumbaError):
        raise CABIError(f"a member of {label} is a {member}, which has no NumPy dtype") from None
