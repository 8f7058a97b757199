# SPDX-License-Identifier: BSD-2-Clause
"""The reader of PTX: header, functions with their prototypes, variables."""

import pytest
from autolink_support import ptx

from numba_cuda_autolink.errors import FormatError
from numba_cuda_autolink.ptx import Parameter, Prototype, PtxSymbol, ptx_symbols, read_ptx

HEADER = b".version 8.4\n.target sm_90a, debug\n.address_size 64\n"


def symbols(text):
    return {symbol.name: symbol for symbol in ptx_symbols(HEADER + text)}


def test_the_header():
    found = read_ptx(b"// made by hand\n" + HEADER)
    assert (found.sm, found.suffix, found.target) == (90, "a", "sm_90a")


@pytest.mark.parametrize(
    ("text", "symbol"),
    [
        (b".visible .func f() { ret; }", PtxSymbol("f", "visible", "func", True, Prototype(None, ()))),
        (b".func f\n()\n.noreturn\n{ ret; }", PtxSymbol("f", "", "func", True, Prototype(None, ()))),
        (b".weak .func f { }", PtxSymbol("f", "weak", "func", True, Prototype(None, ()))),
        (b".visible .entry f(.param .u64 .ptr f_0) .maxntid 1, 1, 1 { }", PtxSymbol("f", "visible", "entry", True)),
        (
            b".extern .func (.param .b32 result) f\n(\n.param .b16 f_0,\n.param .align 8 .b8 f_1[16]\n)\n;",
            PtxSymbol("f", "extern", "func", False, Prototype(Parameter(4), (Parameter(4), Parameter(16, 8)))),
        ),
        (b".func f(.reg .b32 %a);", PtxSymbol("f", "", "func", False, Prototype(None, (Parameter(None),)))),
        (b".visible .global .align 4 .b8 f[16] = {1, 2, 3, 4};", PtxSymbol("f", "visible", "global", True)),
        (b".visible .global .attribute(.managed) .align 8 .u64 f;", PtxSymbol("f", "visible", "global", True)),
        (b".const .align 4 .f32 f;", PtxSymbol("f", "", "const", True)),
        (b".extern .shared .align 16 .b8 f[];", PtxSymbol("f", "extern", "shared", False)),
        (b".common .global .u32 f;", PtxSymbol("f", "common", "global", True)),
    ],
)  # fmt: skip
def test_each_form_of_declaration(text, symbol):
    assert symbols(text) == {"f": symbol}


def test_bodies_comments_and_strings_declare_nothing():
    text = b"""
    // .visible .func commented() { }
    .file 1 ".visible .func quoted() {"
    .section .debug_str { .b8 1 }
    .visible .func f() { { call (r), g, (a), proto; } proto: .callprototype _ (.param .b32 _); }
    .visible .func g() { }
    """
    assert list(symbols(text)) == ["f", "g"]


@pytest.mark.parametrize("text", [b".visible .func f() {", b".visible .global .b8 f[2] = {1, 2", b"/* f"])
def test_truncated_text_is_refused(text):
    with pytest.raises(FormatError, match="it is truncated"):
        symbols(text)


def test_what_nvrtc_writes():
    found = symbols(
        ptx(
            'extern "C" __device__ float2 elsewhere(short); __device__ int table[4] = {1, 2, 3, 4};'
            'extern "C" __device__ float2 here(double x, char y) { return elsewhere(table[y] + short(x)); }'
        )
    )
    struct = Parameter(8, 8)
    assert found["elsewhere"] == PtxSymbol("elsewhere", "extern", "func", False, Prototype(struct, (Parameter(4),)))
    assert found["here"].prototype == Prototype(struct, (Parameter(8), Parameter(4)))
    assert str(found["here"].prototype) == ("takes 8 bytes, 4 bytes and returns a struct of 8 bytes aligned to 8")
    assert found["table"] == PtxSymbol("table", "visible", "global", True)
