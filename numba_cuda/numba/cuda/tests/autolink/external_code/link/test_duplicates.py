# SPDX-License-Identifier: BSD-2-Clause
"""Symbols that two parts of a link define."""

from __future__ import annotations

import itertools

import pytest
from autolink_support import Linked, adder, build, compiled
from numba import cuda
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.link import probes, run, trial
from numba.cuda.cudadrv.external_code.link.duplicates import duplicate_of, find_duplicate
from numba.cuda.cudadrv.external_code.link.errors import LinkError
from numba.cuda.cudadrv.external_code.link.parts import Part
from numba.cuda.cudadrv.external_code.link.trial import run_trials

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
        monkeypatch.setattr(probes, name, counted(getattr(probes, name)))
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

    monkeypatch.setattr(probes, "run_trials", counted)
    parts = [part("ltoir", f"g{number}") for number in range(count)]
    parts[1], parts[-1] = part("ltoir", "f"), part("ltoir", "g", "f")
    found = duplicate_of("f", parts, ARCH)
    assert (found.first, found.second) == (parts[1], parts[-1])
    # Each links the module, one that defines the symbol, and twice the one that ends the link.
    assert runs == [[4] * count]


@pytest.mark.parametrize("kind", ["ptx", "cubin"])
def test_names_that_can_be_read_are_compared_before_anything_is_linked(kind, monkeypatch):
    for name in ("link_in_helper", "link_here"):
        monkeypatch.setattr(run, name, lambda *_: pytest.fail("it was linked"))
    made = {"ptx": cuda.PTXSource, "cubin": cuda.Cubin}[kind]
    codes = [compiled(adder("f" if number in (0, 9) else f"g{number}", number), kind) for number in range(10)]
    function = Linked("f", [made(code) for code in codes]).function

    def kernel(x):
        x[0] = function(x[1])

    with pytest.raises(LinkError, match="'f' is defined twice"):
        build(kernel)


def test_a_symbol_that_one_module_defines_is_not_a_duplicate():
    assert duplicate_of("f", [part("ltoir", "f"), part("ltoir", "g")], ARCH) is None


def test_a_probe_ends_before_code_is_generated():
    """A link that gets as far as ptxas and fails there would make nvJitLink let later undefined symbols pass."""
    calls = compiled('extern "C" __device__ int elsewhere(int); ' + adder("f", "elsewhere(x)"), "ltoir")
    assert probes.duplicate_in_ltoir([calls], ARCH) is None
    stop = probes.definitions_of(probes._STOP, ARCH)
    modules = [Part(kinds.LTO_IR, code, f"{number}") for number, code in enumerate([calls, stop, stop])]
    log = trial.link_here(modules, trial.options_for(modules, ARCH)).log
    assert probes.multiply_defined(log) == probes._STOP[0]
    assert "elsewhere" not in log
