# SPDX-License-Identifier: BSD-2-Clause
"""``__cuda_array_interface__``: its fields, checked, as a view of device memory."""

from __future__ import annotations

import operator
import re
from typing import Any

from ..types.parameters import ElementType, RecordType, item_size
from .views import Misfit, View

_TYPESTR = re.compile(r"[<>|][A-Za-z]\d{1,9}(\[\w+\])?")
_MOST_DIMENSIONS = 64
_END_OF_MEMORY = 1 << 64
_SIZES = 1 << 63  # those that fit in 64 bits with a sign


def read_interface(interface: Any) -> tuple[View, int | None]:
    """Return the memory that an array *interface* shows, and the stream to wait for. Raise `Misfit` if it is malformed,
    or that of a masked array."""
    if not isinstance(interface, dict):
        raise Misfit(f"an array whose __cuda_array_interface__ is of type {type(interface).__name__}, not a dict")
    data, typestr, descr = (interface.get(name) for name in ("data", "typestr", "descr"))
    strides, producer = interface.get("strides"), interface.get("stream")
    shape = _numbers(interface, "shape", 0)
    size = 1
    for length in shape:
        size *= length
    if size >= _SIZES:
        raise _malformed(interface, "shape")
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise _malformed(interface, "data")
    pointer = 0 if data[0] is None else _index(data[0])
    if pointer is None or not 0 <= pointer < _END_OF_MEMORY:
        raise _malformed(interface, "data")
    if not isinstance(typestr, str) or not _TYPESTR.fullmatch(typestr):
        raise _malformed(interface, "typestr")
    if strides is not None:
        strides = _numbers(interface, "strides", -_SIZES)
        if len(strides) != len(shape):
            raise _malformed(interface, "strides")
    if producer is not None:
        producer = _index(producer)
        if producer is None or not 0 <= producer < _END_OF_MEMORY:
            raise _malformed(interface, "stream")
    if interface.get("mask") is not None:
        raise Misfit("a masked array")
    try:
        dtype = _described_type(typestr, descr)
    except (TypeError, ValueError, IndexError, RecursionError):
        raise _malformed(interface, "descr") from None
    return View(pointer, shape, strides, dtype, bool(data[1])), producer


def _malformed(interface: dict[str, Any], field: str) -> Misfit:
    got = f"{interface[field]!r:.60}" if field in interface else "missing"
    return Misfit(f"an array whose __cuda_array_interface__ is malformed: {field!r} is {got}")


def _index(value: Any) -> int | None:
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def _numbers(interface: dict[str, Any], field: str, least: int) -> tuple[int, ...]:
    values = interface.get(field)
    numbers = tuple(map(_index, values)) if isinstance(values, (tuple, list)) else (None,)
    if len(numbers) > _MOST_DIMENSIONS:
        raise _malformed(interface, field)
    checked = tuple(number for number in numbers if number is not None and least <= number < _SIZES)
    if len(checked) < len(numbers):
        raise _malformed(interface, field)
    return checked


def _described_type(typestr: str, descr: Any = None) -> ElementType:
    """Return the element type that an array interface describes. Fields without a name are padding."""
    if typestr[1:2] != "V" or not descr or (len(descr) == 1 and not descr[0][0]):
        return typestr
    fields, at = [], 0
    for name, inner, *shape in descr:
        dims = tuple(map(int, shape[0])) if shape else ()
        if not isinstance(inner, (str, list)):
            raise TypeError("a field has no type")
        kind = inner if isinstance(inner, str) else _described_type("|V0", inner)
        size = item_size(kind)
        for length in dims:
            size *= length
        if name:
            fields.append((name[1] if isinstance(name, tuple) else name, at, kind, dims))
        at += size
    return RecordType(int(typestr[2:]) or at, tuple(fields))
