# SPDX-License-Identifier: BSD-2-Clause
"""The lines that include headers come first, with room behind them that a compile server leaves out."""

from __future__ import annotations

import pytest
from numba.cuda.cudadrv.external_code.compile.header_prefix import Prefixed, prefixed, with_room

STOP = "#pragma nv_hdrstop\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("int x;", '#line 1 "s"\nint x;'),
        ("#include <a>\nint x;", '#line 1 "s"\n#include <a>\n\n#line 2 "s"\nint x;'),
        (
            "// why\n#define A 1\n\n#include <a>\n\n// f\nint x;",
            '#line 1 "s"\n// why\n#define A 1\n\n#include <a>\n\n\n\n\n#line 5 "s"\n\n// f\nint x;',
        ),
        ('#include "a"\n#include <b>', '#line 1 "s"\n#include "a"\n#include <b>'),
        ("#include <a> /* of\n*/ int x;", '#line 1 "s"\n#include <a> /* of\n*/ int x;'),
        ("// goes on \\\n#include <a>", '#line 1 "s"\n// goes on \\\n#include <a>'),
        ("#if A\n#include <a>\n#endif", '#line 1 "s"\n#if A\n#include <a>\n#endif'),
    ],
)
def test_each_line_of_the_source_keeps_its_number(source, expected):
    assert with_room(source, "s") == expected


def test_the_prefix_comes_before_the_name_and_the_room_is_left_out():
    text = with_room("#include <a>\n#include <b>\nint x;", "s")
    prefix = "#include <a>\n#include <b>\n"
    assert prefixed(text) == Prefixed(prefix + STOP, f'{prefix}#line 5 "s"\n#line 3 "s"\nint x;')


def test_macros_come_before_the_prefix():
    macros = "#undef a\n#define a b\n"
    text = with_room("#include <a>\nint x;", "s", macros)
    assert text == f'{macros}#line 1 "s"\n#include <a>\n\n\n\n#line 2 "s"\nint x;'
    prefix = f"{macros}#include <a>\n"
    assert prefixed(text) == Prefixed(prefix + STOP, f'{prefix}#line 5 "s"\n#line 2 "s"\nint x;')


@pytest.mark.parametrize(
    "text",
    [
        "",
        "#include <a>\n\n",
        '#line 1 "s"\nint x;',
        '#line 1 "s"\n#include <a>\nint x;',
        '#line 2 "s"\n#include <a>\n\n',
    ],
)
def test_other_sources_have_no_other_form(text):
    assert prefixed(text) is None
