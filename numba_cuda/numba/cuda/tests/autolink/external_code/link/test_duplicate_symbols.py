# SPDX-License-Identifier: BSD-2-Clause
"""Symbols that two parts of a link define."""

from __future__ import annotations

import itertools
import re

import pytest
from autolink_support import Linked, adder, build, calling, compiled
from numba import cuda
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.link import checked_link, ltoir_symbols
from numba.cuda.cudadrv.external_code.link import nvjitlink as trial
from numba.cuda.cudadrv.external_code.link.duplicate_symbols import duplicate_of, find_duplicate
from numba.cuda.cudadrv.external_code.link.linker_input import Part
from numba.cuda.cudadrv.external_code.link.nvjitlink import run_trials
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError

ARCH = "sm_90"
KIND = {"ltoir": kinds.LTO_IR, "ptx": kinds.PTX, "cubin": kinds.CUBIN}


def part(kind, *symbols):
    code = compiled("".join(adder(symbol, len(symbols)) for symbol in symbols), kind)
    return Part(KIND[kind], code, f"{kind} of {', '.join(symbols)}")


@pytest.fixture
def links(monkeypatch):
    """The numbers of inputs of the links that probe."""
    counts = []

    def counted(link):
        def count(inputs, *arguments):
            counts.append(len(inputs))
            return link(inputs, *arguments)

        return count

    for name in ("link_here", "link_in_helper"):
        monkeypatch.setattr(ltoir_symbols, name, counted(getattr(ltoir_symbols, name)))
    return counts


@pytest.mark.parametrize(("first", "second"), [*itertools.product(("ptx", "cubin"), repeat=2)])
def test_in_code_that_can_be_read(first, second, links):
    parts = [part(first, "f"), part(second, "g"), part(second, "g", "f")]
    found = find_duplicate(parts, (), ARCH)
    assert (found.symbol, found.first, found.second) == ("f", parts[0], parts[2])
    assert links == []


@pytest.mark.parametrize("other", ["ptx", "cubin"])
def test_in_ltoir_and_code_that_can_be_read(other):
    parts = [part("ltoir", "a"), part("ltoir", "b", "f"), part(other, "f")]
    found = find_duplicate(parts, (), ARCH)
    assert {found.first, found.second} == set(parts[1:])


def test_a_name_that_no_symbol_can_have_is_no_duplicate():
    damaged = Part(kinds.PTX, part("ptx", "f").code.replace(b" f(", b" 4294967297("), "damaged")
    assert b"4294967297(" in damaged.code
    assert find_duplicate([part("ltoir", "a"), damaged], (), ARCH) is None


@pytest.mark.parametrize("count", [2, 8])
def test_any_number_of_ltoir_modules_takes_one_link(count, links):
    parts = [part("ptx", "f"), *(part("ltoir", f"g{number}") for number in range(count))]
    assert find_duplicate(parts, (), ARCH) is None
    assert len(links) == 1


@pytest.mark.parametrize("count", [4, 16])
def test_the_modules_that_define_a_symbol_are_found_by_one_process_and_a_link_each(count, monkeypatch):
    runs = []

    def counted(inputs, trials, options):
        runs.append([len(trial) for trial in trials])
        return run_trials(inputs, trials, options)

    monkeypatch.setattr(ltoir_symbols, "run_trials", counted)
    parts = [part("ltoir", f"g{number}") for number in range(count)]
    parts[1], parts[-1] = part("ltoir", "f"), part("ltoir", "g", "f")
    found = duplicate_of("f", parts, ARCH)
    assert (found.first, found.second) == (parts[1], parts[-1])
    # Each links the module, one that defines the symbol, and twice the one that ends the link.
    assert runs == [[4] * count]


@pytest.mark.parametrize("kind", ["ptx", "cubin"])
def test_names_that_can_be_read_are_compared_before_anything_is_linked(kind, monkeypatch):
    for name in ("link_in_helper", "link_here"):
        monkeypatch.setattr(checked_link, name, lambda *_: pytest.fail("it was linked"))
    made = {"ptx": cuda.PTXSource, "cubin": cuda.Cubin}[kind]
    codes = [compiled(adder("f" if number in (0, 9) else f"g{number}", number), kind) for number in range(10)]
    function = Linked("f", [made(code) for code in codes]).function

    with pytest.raises(LinkError, match="'f' is defined twice"):
        build(calling(function))


def test_a_symbol_that_one_module_defines_is_not_a_duplicate():
    assert duplicate_of("f", [part("ltoir", "f"), part("ltoir", "g")], ARCH) is None


def test_a_probe_ends_before_code_is_generated():
    """A link that gets as far as ptxas and fails there would make nvJitLink let later undefined symbols pass."""
    calls = compiled('extern "C" __device__ int elsewhere(int); ' + adder("f", "elsewhere(x)"), "ltoir")
    assert ltoir_symbols.duplicate_in_ltoir([calls], ARCH) is None
    stop = ltoir_symbols.definitions_of(ltoir_symbols._STOP, ARCH)
    modules = [Part(kinds.LTO_IR, code, f"{number}") for number, code in enumerate([calls, stop, stop])]
    log = trial.link_here(modules, trial.options_for(modules, ARCH)).log
    assert trial.multiply_defined(log) == ltoir_symbols._STOP[0]
    assert "elsewhere" not in log


class TestHeaders:
    """Two libraries include a header whose functions are not inline."""

    @pytest.fixture
    def kernel(self, tmp_path):
        """Makes a kernel that calls an object of either library; the options of their sources differ as given."""
        (tmp_path / "shapes.cuh").write_text("#pragma once\nnamespace shapes { @int area(int x) { return x * x; } }\n")
        (tmp_path / "one.cuh").write_text('#include "shapes.cuh"\ninline @int one(int x) { return shapes::area(x); }\n')
        (tmp_path / "two.cuh").write_text('#include "shapes.cuh"\ninline @int two(int x) { return shapes::area(x); }\n')
        for file in tmp_path.iterdir():
            file.write_text(file.read_text().replace("@", "__device__ "))

        class Library(autolink.DeviceCallable):
            def __init__(self, name, **options):
                self.name, self.options = name, options

            def __numba_cuda_call__(self, x):
                return autolink.Extern(f"call_{self.name}", returns=x)

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource(
                    f'#include "{self.name}.cuh"\nextern "C" __device__ int call_{self.name}(int x) {{'
                    f" return {self.name}(x); }}",
                    name=f"{self.name}.cu",
                    **{"include_paths": [tmp_path], **self.options},
                )

        def make(first, second):
            one, two = Library("one", **first), Library("two", **second)

            def kernel(x):
                x[0] = one(x[1]) + two(x[2])

            return kernel

        return make

    @pytest.mark.parametrize("lto", [True, False])
    def test_a_unit_makes_it_one_function(self, kernel, lto):
        (unit,) = (build(kernel({"unit": "shapes"}, {"unit": "shapes"}), lto=lto).inputs,)
        assert [planned.input.options.unit for planned in unit] == ["shapes", "shapes"]

    @pytest.mark.parametrize(
        ("differs", "line"),
        [
            ({"options": {"std": "c++20"}}, "options: {} and {'std': 'c++20'}"),
            ({"defines": {"N": 3}}, "defines: {} and {'N': '3'}"),
        ],
    )
    def test_what_keeps_sources_of_a_unit_apart_is_named(self, kernel, differs, line):
        with pytest.raises(LinkError) as caught:
            build(kernel({"unit": "shapes"}, {"unit": "shapes", **differs}))
        at_link = "\n  linking kernel 'kernel' for sm_90 failed"
        todo = "\n  what to do: make these equal: only then are the sources of the unit 'shapes'"
        assert f"\n  {line}{at_link}{todo}" in str(caught.value)

    def test_a_variable_of_a_header_has_no_parameters(self, kernel, tmp_path):
        (tmp_path / "shapes.cuh").write_text("#pragma once\nnamespace shapes { __device__ int n; }\n")
        for name in ("one", "two"):
            text = f'#include "shapes.cuh"\ninline __device__ int {name}(int x) {{ return shapes::n; }}\n'
            (tmp_path / f"{name}.cuh").write_text(text)
        with pytest.raises(LinkError, match="'shapes::n' is defined twice"):
            build(kernel({}, {}))


def test_a_variable_that_the_source_defines_too():
    table = autolink.Variable("table", "int32", 4)
    function = Linked("f", [table, autolink.CUDASource("__device__ int table[4];\n" + adder("f", "table[0]"))]).function

    with pytest.raises(
        LinkError, match=r"'table' is defined twice\n[^$]*declare it extern in C\+\+: the Variable defines"
    ):
        build(calling(function))


def test_both_places_are_named_where_python_has_the_sources():
    one = autolink.cxx("__device__ float placed_twice(float x) { return x; }")
    two = autolink.cxx("__device__ float placed_twice(float x) { return 2 * x; }")

    @cuda.jit
    def kernel(x):
        x[0] = one.placed_twice(x[0]) + two.placed_twice(x[0])

    with pytest.raises(LinkError) as caught:
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
    places = re.findall(r"(?:first|again) by: .* at (.*):(\d+)\n", str(caught.value))
    assert [path for path, _ in places] == [__file__, __file__]
    assert int(places[1][1]) == int(places[0][1]) + 1
