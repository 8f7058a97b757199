# SPDX-License-Identifier: BSD-2-Clause
"""Fingerprints of Python values: equal where the values are, in every process.

`value_encoders` has the known kinds of values. Any other value raises `UnknownValueError`: it is never taken as equal
to another.
"""

from __future__ import annotations

import enum
import hashlib
import itertools
import os
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba.cuda import types

from .object_state import has_own_getstate, own_attributes
from .python_code import file_digest
from .value_encoders import NUMBERS, WITHOUT_IDENTITY, UnknownValueError, Unordered, encoder_of

# An object that refers to half of the program is unknown: so many values, nested so deeply, are looked at.
_MOST_VALUES = 10_000
_DEEPEST = 120
# What C++ by name reads files for: the numbers that it tells of a library, or its calls, which are compared themselves.
_Files = tuple[str, ...]
_CONSTANTS: _Files = ("constants",)
_ANYTHING: _Files = ("constants", "calls")
# Bits: Python may refuse to write longer numbers in decimal digits.
_LONGEST_DECIMAL = 2048
_PRIMITIVES = (*NUMBERS, type(None), type(Ellipsis), type(NotImplemented))


def fingerprint(*values: Any) -> bytes:
    """Return the SHA-256 of *values*. Raise `UnknownValueError` if they lead to a value that has none."""
    return _digest(values)


def fingerprint_of_code(*values: Any) -> bytes:
    """Return the SHA-256 of functions that run while a kernel is compiled, and what nothing else shows of them. Raise
    `UnknownValueError` also if they name a library of C++: what they ask it depends on its headers."""
    return _digest(values, refuses=_CONSTANTS)


def fingerprint_of_hook(*values: Any) -> bytes:
    """Return the SHA-256 of what a hook is made of, with the content of the files that paths in it name. Raise
    `UnknownValueError` as `fingerprint_of_code` does, and for functions of C++: the hook may ask for their code."""
    return _digest(values, refuses=_ANYTHING)


def fingerprint_of_link_key(value: Any) -> bytes:
    """Return the SHA-256 of a link key, in which attributes that ``__getstate__`` leaves out count too, and the content
    of the files that paths in it name: nothing else would show that they changed. Raise `UnknownValueError` if *value*
    leads to a value that has none, or to one that reads files, such as a library of C++."""
    return _digest((value,), refuses=_ANYTHING, is_link_key=True)


def _digest(values: tuple[Any, ...], *, refuses: _Files = (), is_link_key: bool = False) -> bytes:
    writer = _Writer([], itertools.count(1), refuses=refuses, is_link_key=is_link_key)
    writer.add("values", *values)
    return writer.hash.digest()


def plain(value: Any) -> bool:
    """Return whether *value* is a number, string, dtype, array or the like, or a tuple of such values."""
    if isinstance(value, (tuple, frozenset)):
        return all(plain(element) for element in value)
    return isinstance(value, (*_PRIMITIVES, enum.Enum, np.generic, np.ndarray, np.dtype, types.Type, range, slice))


class _Writer:
    """Writes values into a hash, each as a label and its content, framed, so that no two can run into each other."""

    def __init__(self, inside: list[int], counter: Iterator[int], *, refuses: _Files, is_link_key: bool) -> None:
        self._refuses = refuses
        self._files_count = refuses == _ANYTHING
        self._is_link_key = is_link_key
        self.hash = hashlib.sha256()
        # The objects that contain the one that is being written, which may refer back to them.
        self._inside = inside
        self._counter = counter
        # The objects that are written already. Which of two equal objects is meant counts.
        self._written: dict[int, tuple[int, Any]] = {}

    def add(self, label: str, *values: Any) -> None:
        """Write *label* and *values*."""
        self._frame(label.encode())
        self._frame(str(len(values)).encode())
        for value in values:
            self._value(value)

    def _frame(self, data: bytes) -> None:
        self.hash.update(len(data).to_bytes(8, "little"))
        self.hash.update(data)

    def _value(self, value: Any) -> None:
        if type(value) in _PRIMITIVES:
            self._frame(type(value).__name__.encode())
            self._frame(_primitive(value))
            if self._files_count and type(value) is str and os.path.isabs(value):
                self._frame(repr(file_digest(value)).encode())
            return
        if type(value) is Unordered:
            self.add("elements", len(value))
            for element in sorted(value, key=self._digest_of_first):
                self.add("element", *element)
            return
        number = next(self._counter)
        if id(value) in self._inside:
            self.add("inside", len(self._inside) - self._inside.index(id(value)))
            return
        cls: Any = type(value)
        label, encode = encoder_of(cls)
        if label not in WITHOUT_IDENTITY:
            if id(value) in self._written:
                self.add("written", self._written[id(value)][0])
                return
            self._written[id(value)] = len(self._written), value
        if number > _MOST_VALUES or len(self._inside) > _DEEPEST:
            raise UnknownValueError(f"it leads to more than {_MOST_VALUES} values, or is nested deeper than {_DEEPEST}")
        if getattr(cls, "cxx_reads_files", None) in self._refuses:
            raise UnknownValueError(f"{value!r} does not show what the files are that it reads")
        if self._files_count and label == "path":
            self.add("file", file_digest(value))
        self._inside.append(id(value))
        content = encode(value)
        if content is None:
            raise UnknownValueError(f"a value of type {cls.__module__}.{cls.__qualname__} cannot be fingerprinted")
        self.add(label, *content)
        if self._is_link_key and label == "object" and has_own_getstate(cls):
            self.add("attributes", own_attributes(value))
        self._inside.pop()

    def _digest_of_first(self, element: tuple[Any, ...]) -> bytes:
        writer = _Writer(self._inside, self._counter, refuses=self._refuses, is_link_key=self._is_link_key)
        writer._value(element[0])
        return writer.hash.digest()


def _primitive(value: Any) -> bytes:
    """Return the exact content of a number, text or constant: a NaN has a sign and a payload."""
    if type(value) is bytes:
        return value
    if type(value) is float:
        return struct.pack("<d", value)
    if type(value) is complex:
        return struct.pack("<dd", value.real, value.imag)
    if type(value) is int and value.bit_length() > _LONGEST_DECIMAL:
        return hex(value).encode()
    return repr(value).encode("utf-8", "surrogatepass")
