# SPDX-License-Identifier: BSD-2-Clause
"""docs/c_abi.md: its tables say what `cxx_type` and the memory layouts say."""

from __future__ import annotations

import re

import numpy as np
from numba.cuda import autolink, types
from numba.cuda.autolink.c_abi import c_types as cabi
from repository import DOCS

PAGE = DOCS / "c_abi.md"


def rows(heading):
    section = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    (text,) = [part for part in section if part.startswith(heading + "\n")]
    table = [line for line in text.splitlines() if line.startswith("|")][2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in table]


def test_the_table_of_numbers_is_complete_and_right():
    table = {row[0]: row[1:] for row in rows("Numbers")}
    assert {getattr(types, name) for name in table} == set(cabi._SCALARS)
    for name, (dtype, cxx, size, align) in table.items():
        numba_type = getattr(types, name)
        assert autolink.cxx_type(numba_type) == cxx, name
        layout = cabi.memory_layout(numba_type)
        assert (str(layout.size), str(layout.align)) == (size, align), name
        if dtype:
            assert autolink.cxx_type(np.dtype(dtype)) == cxx, name


RECORD = types.Record.make_c_struct([("x", types.float64), ("n", types.int32)])
POINTERS = {
    "array(float32, 1d, C)": types.float32[::1],
    "array(float32, 2d, C)": types.float32[:, ::1],
    "array(float32, 2d, F)": types.float32[::1, :],
    "array(complex64, 1d, C)": types.complex64[::1],
    "readonly array(float32, 1d, C)": types.Array(types.float32, 1, "C", readonly=True),
    "array of records": types.Array(RECORD, 1, "C"),
    "record": RECORD,
    "UniTuple(float32 x 3)": types.UniTuple(types.float32, 3),
    "tuple of several types": types.Tuple((types.float32, types.int32)),
    "CPointer(float32)": types.CPointer(types.float32),
    "voidptr": types.voidptr,
}


def test_the_table_of_pointers_is_right():
    table = dict(rows("Pointers"))
    assert table.pop("none") == "a null pointer of the declared type"
    assert set(table) == set(POINTERS)
    assert {name: autolink.cxx_type(POINTERS[name]) for name in table} == table
    for name, numba_type in POINTERS.items():
        if "array(" in name or "Tuple(" in name:
            assert str(numba_type) == name
