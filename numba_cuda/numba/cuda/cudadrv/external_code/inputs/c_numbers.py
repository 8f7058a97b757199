# SPDX-License-Identifier: BSD-2-Clause
"""The numbers of C: what Python calls them, their kinds and sizes."""

from __future__ import annotations

from typing import NamedTuple


class CNumber(NamedTuple):
    """A number of C: its *name* in Numba and NumPy, its *kind*, ``"bool"``, ``"int"`` or ``"float"``, and its *size* in
    bytes."""

    name: str
    kind: str
    size: int


NUMBERS = {
    "bool": CNumber("bool_", "bool", 1),
    "char": CNumber("int8", "int", 1),
    "signed char": CNumber("int8", "int", 1),
    "unsigned char": CNumber("uint8", "int", 1),
    "short": CNumber("int16", "int", 2),
    "unsigned short": CNumber("uint16", "int", 2),
    "int": CNumber("int32", "int", 4),
    "unsigned int": CNumber("uint32", "int", 4),
    "long": CNumber("int64", "int", 8),
    "unsigned long": CNumber("uint64", "int", 8),
    "long long": CNumber("int64", "int", 8),
    "unsigned long long": CNumber("uint64", "int", 8),
    "float": CNumber("float32", "float", 4),
    "double": CNumber("float64", "float", 8),
}
