# SPDX-License-Identifier: BSD-2-Clause
"""Structs of C++ as NumPy dtypes: NVRTC reports the members' names and types, and assertions compare the offsets."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.cuda import types
from numba.cuda.core.errors import NumbaError
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_text, shown
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability

from ..c_abi.c_types import CABIError, Layout, memory_layout
from .library_source import LibrarySource
from .prelude import ARRAY, MOST_MEMBERS, TUPLE
from .questions import Question, ask
from .refusals import CxxError
from .results import read_numbers, read_type
from .structs import Struct
from .structs import register as register_struct

# Pointers to members of an object are template arguments from C++20 on. Their lowered names have the members' names.
_TEXT = """#line 1 "prelude"
namespace nca {
template <class nca_T> struct nca_holder { nca_T nca_v; };
template <class nca_T> extern __device__ nca_holder<nca_T> nca_object;
template <class nca_T> using nca_element_t = nca_plain<decltype(nca_made<nca_T&>()[0])>;
template <auto nca_P> extern __device__ char nca_tell_member;
template <int nca_I> struct nca_nth {
    template <class nca_A, class... nca_B> __device__ auto& operator()(nca_A& nca_a, nca_B&... nca_b) const {
        if constexpr (nca_I == 0) return nca_a; else return nca_nth<nca_I - 1>()(nca_b...);
    }
};
template <class nca_T, int nca_I>
using nca_member_t = nca_plain<decltype(nca_bound<nca_count<nca_T>()>::nca_in(nca_made<nca_T&>(), nca_nth<nca_I>()))>;
}
@open@
@line@using nca_type = @subject@;
@close@
"""
_SIZE = "nca::nca_told<sizeof(@inside@nca_type)>"
_CODE = f"&nca::nca_tell<nca::nca_all_t<{_SIZE}, nca::nca_form_t<@inside@nca_type>::nca_code>>"
_NAME = re.compile(r"E5nca_v(\d+)")


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


def ask_record(source: LibrarySource, name: str, cc: ComputeCapability | None) -> CxxRecord:
    """Return the struct *name* with its dtype. Raise `CxxError` if it is not a struct that NumPy can describe."""
    dtype = _dtype(source, name, name, cc)
    assertion = f"@open@\n@line@{Struct.of_dtype(name, dtype).assertion(name)}\n@close@\n"
    ask(source, Question(name, assertion, ["&nca::nca_tell<int>"]), cc)
    return CxxRecord(name, dtype)


def _dtype(source: LibrarySource, label: str, name: str, cc: ComputeCapability | None) -> np.dtype[Any]:
    question = Question(label, _TEXT, [_CODE], subject=name, options={"std": "c++20"})
    (answer,) = ask(source, question, cc)
    size, *code = read_numbers(answer)
    members = _members(iter(code))
    if not isinstance(members, list):
        raise CxxError(
            f"{label} is not a struct of numbers, pointers, arrays and such structs\n"
            f"  expected: an aggregate of 1 to {MOST_MEMBERS} members, without base classes and private members"
        )
    names = _names(source, question, len(members), cc)
    formats = [
        _format(source, label, f"nca::nca_member_t<{name}, {number}>", member, cc)
        for number, member in enumerate(members)
    ]
    layouts = [_layout(member) for member in members]
    offsets, end = [], 0
    for each in layouts:
        offsets.append(end + -end % each.align)
        end = offsets[-1] + each.size
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


def _members(code: Iterator[int]) -> Any:
    """Return the type that the next numbers of *code* describe: a list of the members' types for a struct, a pair of
    the extent and the element's type for an array."""
    first = next(code)
    if first == TUPLE:
        return [_members(code) for _ in range(next(code))]
    if first == ARRAY:
        extent = next(code)
        return extent, _members(code)
    return read_type(itertools.chain([first], code), ())


def _layout(member: Any) -> Layout:
    if isinstance(member, list):
        parts = [_layout(each) for each in member]
        end, align = 0, max(each.align for each in parts)
        for each in parts:
            end += -end % each.align + each.size
        return Layout(end + -end % align, align)
    if isinstance(member, tuple):
        element = _layout(member[1])
        return Layout(member[0] * element.size, element.align)
    return memory_layout(member)


def _format(source: LibrarySource, label: str, name: str, member: Any, cc: ComputeCapability | None) -> Any:
    from numba.cuda.np import numpy_support

    if isinstance(member, list):
        return _dtype(source, label, name, cc)
    if isinstance(member, tuple):
        return _format(source, label, f"nca::nca_element_t<{name}>", member[1], cc), (member[0],)
    if isinstance(member, (types.RawPointer, types.CPointer)):
        return np.uint64
    try:
        return numpy_support.as_dtype(member)
    except (NotImplementedError, NumbaError):
        raise CABIError(f"a member of {label} is a {member}, which has no NumPy dtype") from None


def _names(source: LibrarySource, question: Question, count: int, cc: ComputeCapability | None) -> list[str]:
    """Return the names of the members of the struct that *question* is about."""
    bound = ", ".join(f"nca_m{i}" for i in range(count))
    functions = (
        f"template <class nca_T> constexpr __device__ auto nca_pointer_{i}() {{"
        f" auto& [{bound}] = nca::nca_object<nca_T>.nca_v; return &nca_m{i}; }}\n"
        for i in range(count)
    )
    names = [f"&nca::nca_tell_member<nca_pointer_{i}<@inside@nca_type>()>" for i in range(count)]
    question = dataclasses.replace(question, text="".join([question.text, *functions]), names=names)
    found = [_NAME.search(answer) for answer in ask(source, question, cc)]
    members = [each.string[each.end() : each.end() + int(each[1])] for each in found if each is not None]
    if len(members) != count:
        shown = ", ".join(members) or "none"
        raise CxxError(f"{question.label} is not a struct with named members\n  members: {shown}")
    return members
