# SPDX-License-Identifier: BSD-2-Clause
"""Which of several LTO-IR modules defines a function, and what it references: read by a few links of many modules."""

import pytest
from autolink_support import compiled
from numba.cuda.cudadrv.external_code.formats.symbols import Symbols
from numba.cuda.cudadrv.external_code.link import ltoir_symbols
from numba.cuda.cudadrv.external_code.link.ltoir_symbols import symbols_of_ltoir

from numba_cuda_autolink.ptx import ptx_references

ARCH = "sm_90"
BROKEN = b"\xed\x43\x4e\x7fbroken"


def function(name, body="x", before=""):
    return f'{before} extern "C" __device__ int {name}(int x) {{ return {body}; }}'


def declared(name):
    return f'extern "C" __device__ int {name}(int);'


@pytest.fixture(scope="module")
def modules():
    """Five modules: two that call another one, one through a static function; one with two functions, of which nobody
    calls one; and two that define the same function weakly."""
    hidden = "static __device__ __noinline__ int hidden(int x) { return elsewhere(x) + x; }"
    weak = 'extern "C" __device__ __attribute__((weak)) int weak(int x) { return x; }'
    sources = (
        function("first", "second(x) + 1", declared("second")),
        function("second", "hidden(x)", declared("elsewhere") + hidden),
        function("third") + function("uncalled"),
        function("fourth", "weak(x)", weak),
        function("fifth", "weak(x) + first(x)", weak + declared("first")),
    )
    return [compiled(source, "ltoir") for source in sources]


def test_each_function_is_found_in_its_module(modules):
    found = symbols_of_ltoir(modules, ["first", "third", "fourth", "fifth", "nowhere"], ARCH)
    assert found[:3] == [
        Symbols(("first",), ("second",)),
        Symbols(("second",), ("elsewhere",)),  # because the first module references it
        Symbols(("third",), ()),
    ]
    # nvJitLink of CUDA 12 tells the weak function of a module only where it is asked for.
    named = [set(symbols.defined) - {"weak"} for symbols in found[3:]]
    assert (named, [symbols.undefined for symbols in found[3:]]) == ([{"fourth"}, {"fifth"}], [(), ("first",)])


def test_a_weak_function_is_found_in_all_modules_that_define_it(modules):
    found = symbols_of_ltoir(modules, ["weak", "third"], ARCH)
    assert [symbols.defined for symbols in found] == [(), (), ("third",), ("weak",), ("weak",)]


def test_a_module_that_does_not_link_hides_no_other(modules):
    found = symbols_of_ltoir([modules[2], BROKEN, modules[1]], ["second", "third"], ARCH)
    assert found == [Symbols(("third",), ()), None, Symbols(("second",), ("elsewhere",))]
    assert symbols_of_ltoir([BROKEN], ["second"], ARCH) == [None]


def test_without_candidates_nothing_is_linked(modules, monkeypatch):
    monkeypatch.setattr(ltoir_symbols, "ptx_of_ltoir", None)
    assert symbols_of_ltoir(modules, [], ARCH) == [None] * 5
    assert symbols_of_ltoir([], ["first"], ARCH) == []


@pytest.mark.parametrize(("number", "most"), [(1, 2), (2, 3), (100, 10), (1000, 14)])
def test_the_number_of_links_grows_with_the_logarithm_of_the_modules(number, most):
    links, chosen = ltoir_symbols._memberships(number)
    assert links + 1 <= most
    assert len(set(chosen)) == number
    assert len(set(map(len, chosen))) == 1


def test_what_bodies_in_ptx_reference():
    text = b""".version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) outside (.param .b32 p);
.func (.param .b32 r) inside (.param .b32 p);
.global .align 8 .u64 table[2] = {inside, outside};
.func (.param .b32 r) inside (.param .b32 p) { call (r), outside, (p); ret; }
.visible .entry kernel () { mov.u64 %rd1, table; { call inside; } }
"""
    assert ptx_references(text) == {
        "table": {"inside", "outside"},
        "inside": {"outside"},
        "kernel": {"table", "inside"},
    }


def test_a_function_of_the_same_module_is_not_undefined():
    called = "__device__ __noinline__ int called(int x) { return x * x; }"
    code = compiled(called + function("calls", "called(x)"), "ltoir")
    assert symbols_of_ltoir([code], ["calls"], ARCH) == [Symbols(("calls",), ())]


def test_variables_that_functions_read_hide_nothing():
    variable = "__device__ int table[2] = {1, 2};"
    read, written = (compiled(function(name, "table[x]", variable), "ltoir") for name in ("reads", "also_reads"))
    found = symbols_of_ltoir(
        [read, compiled(function("other", "reads(x)", declared("reads")), "ltoir")], ["other"], ARCH
    )
    assert found == [Symbols(("reads",), ()), Symbols(("other",), ("reads",))]
    assert symbols_of_ltoir([written], ["also_reads"], ARCH) == [Symbols(("also_reads",), ())]
