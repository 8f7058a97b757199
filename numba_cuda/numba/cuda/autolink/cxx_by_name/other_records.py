# SPDX-License-Identifier: BSD-2-Clause
"""Records that are passed where C++ takes a struct with other members: what differs, as C++ has the struct."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.cuda import types

from ..c_abi.c_types import CABIError
from .cxx_errors import CxxError
from .library_source import LibrarySource
from .records import ask_record

_REFUSED = re.compile(
    r'(?P<label>.*?): .*"(?:const )?record(?: \*)?" (?:is incompatible with parameter of type|to)'
    r' "(?:const )?(?P<type>[\w:]+)[^"]*".*'
)


def explain_record(source: LibrarySource, argtypes: Sequence[Any], error: CxxError) -> CxxError:
    """Return the *error* of a call with arguments of these types, with what differs if one is a record, or an array of
    them, and C++ takes a struct; the *error* as it is for any other."""
    refused = _REFUSED.match(str(error))
    records = {_record_of(each) for each in argtypes} - {None}
    if refused is None or len(records) != 1:
        return error
    (record,), name = records, refused["type"]
    try:
        dtype = ask_record(source, name, None).dtype
    except CABIError:
        return error
    given, expected = _fields_of(np.dtype(record.dtype)), _fields_of(dtype)
    _, *others = str(error).split("\n")
    if given == expected:
        diagnosis, listed = f"the record has the members of {name}, and C++ does not know that it is one", []
    else:
        diagnosis = _compare(given, expected, name)
        listed = [f"  got: {_write(given)}", f"  expected: {_write(expected)}, with the offsets in bytes"]
    return CxxError("\n".join([f"{refused['label']}: {diagnosis}", *listed, *others]), error.log)


def _record_of(numba_type: Any) -> Any:
    element = numba_type.dtype if isinstance(numba_type, types.Array) else numba_type
    return element if isinstance(element, types.Record) else None


def _fields_of(dtype: np.dtype[Any]) -> list[tuple[str, str, int]]:
    """Return the names, types and offsets of the fields of a *dtype*, in the order of their offsets."""
    fields = [(name, str(inner), offset) for name, (inner, offset, *_) in (dtype.fields or {}).items()]
    return sorted(fields, key=lambda each: each[2])


def _compare(given: Sequence[tuple[str, str, int]], expected: Sequence[tuple[str, str, int]], name: str) -> str:
    """Return the first difference of two lists of fields: of names, of types, or else of offsets."""
    known = {each[0]: each for each in expected}
    for field, dtype, _ in given:
        if field not in known:
            return f"the record has a field {field!r}, and {name} has no such member"
        if dtype != known[field][1]:
            return f"the field {field!r} of the record is {dtype}, and that of {name} is {known[field][1]}"
    had = {each[0] for each in given}
    for field, *_ in expected:
        if field not in had:
            return f"{name} has a member {field!r}, and the record has no such field"
    return f"the record has its fields at other offsets than {name}"


def _write(fields: Sequence[tuple[str, str, int]]) -> str:
    return ", ".join(f"{name}: {dtype} at {offset}" for name, dtype, offset in fields)
