# SPDX-License-Identifier: BSD-2-Clause
"""What is known of a function's code is worked out once: its call sites and symbols, the plan of its link, the link."""

from __future__ import annotations

from collections import Counter

import pytest
from autolink_support import Linked, adder, build
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.autolink.function_code import build_record, function_code
from numba.cuda.autolink.function_code.function_code import FunctionCode
from numba.cuda.autolink.protocol.ask import with_answer
from numba.cuda.autolink.protocol.call_sites import CallSite
from numba.cuda.autolink.protocol.callee import find_callee
from numba.cuda.cudadrv.external_code import pipeline
from numba.cuda.cudadrv.external_code.diagnostics.timeline import Timeline
from numba.cuda.cudadrv.external_code.formats import symbols
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkPlan, SymbolSite

TARGET = autolink.Target((9, 0))
PTX = b".version 8.0\n.target sm_90\n.address_size 64\n"


def counting(monkeypatch, counts, name, owner, attribute):
    """Count under *name* the calls of an *attribute* of *owner*."""
    original = getattr(owner, attribute)

    def counted(*args, **kwargs):
        counts[name] += 1
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, attribute, counted)


def test_a_build_makes_one_plan_and_one_list_of_call_sites_and_reads_symbols_once(monkeypatch):
    add, double, halve = (Linked(name).function for name in ("once_add", "once_double", "once_halve"))

    @cuda.jit(device=True)
    def inner(x):
        return add(x) + double(x)

    @cuda.jit(device=True)
    def outer(x):
        return inner(x) + halve(x)

    def kernel(x):
        x[0] = outer(x[1]) + inner(x[2]) + add(x[3])

    counts = Counter()
    counting(monkeypatch, counts, "plans", LinkPlan, "of")
    counting(monkeypatch, counts, "lists of call sites", function_code, "origins_of")
    counting(monkeypatch, counts, "lists of call sites", build_record, "origins_of")
    counting(monkeypatch, counts, "readings of symbols", symbols, "undefined_functions")
    counting(monkeypatch, counts, "links", pipeline, "run_link")
    built = build(kernel)
    assert len(built.call_sites) == 4
    assert len(built.report.builds[0].calls) == 4
    assert built.called_functions
    assert counts == {"plans": 1, "lists of call sites": 1, "readings of symbols": 1, "links": 1}


class Provider:
    """An object whose code is one source."""

    def __init__(self, name):
        self.name = name

    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(adder(self.name))


def asked(obj):
    return with_answer(CallSite(find_callee(obj), (types.int32,), "kernels.py", 1, "kernel"), TARGET)


@pytest.fixture
def code():
    return FunctionCode("module.<locals>.kernel", TARGET, Timeline())


def test_the_plan_of_a_target_is_remembered(code):
    code.add_call(asked(Provider("remembered")))
    assert code.plan(TARGET) is code.plan(TARGET)
    assert code.plan(autolink.Target((8, 0))) is not code.plan(TARGET)


@pytest.mark.parametrize("how", ["call", "item", "glue", "callee"])
def test_what_is_added_is_in_the_next_plan(code, how):
    assert code.plan(TARGET).inputs == ()
    added = LinkInput(kinds.PTX, PTX, name="added.ptx")
    if how == "call":
        code.add_call(asked(Provider("added")))
    elif how == "item":
        code.add_items([added])
    elif how == "glue":
        code.add_glue(added)
    else:
        callee = FunctionCode("callee", TARGET, Timeline())
        callee.add_items([added])
        code.add_callee(callee, 7)
    assert len(code.plan(TARGET).inputs) == 1
    assert len(code.call_sites) == (how == "call")


def test_a_callee_brings_its_calls_and_symbols(code):
    callee = FunctionCode("callee", TARGET, Timeline())
    callee.add_call(asked(Provider("brought")))
    callee.symbols.note("brought", SymbolSite("i32 (i32)", "a call"))
    code.add_callee(callee, 7)
    assert code.call_sites == callee.call_sites
    assert code.prototypes == {"brought": "i32 (i32)"}
    assert code.calls.lines == {callee: 7}


def test_a_plan_for_ptx_has_only_what_takes_part_in_link_time_optimisation(code):
    source = LinkInput(kinds.CUDA, adder("kept").encode(), name="kept.cu")
    code.add_items([source, LinkInput(kinds.PTX, PTX, name="left.ptx")])
    assert [each.input.name for each in code.request(TARGET, (), "ptx").plan.inputs] == ["kept.cu"]
    assert len(code.request(TARGET, ()).plan.inputs) == 2


def test_equal_links_run_once_and_others_again(code, monkeypatch):
    ran = []
    monkeypatch.setattr(pipeline, "run_link", lambda request: ran.append(request) or f"linked {len(ran)}")
    own = LinkInput(kinds.PTX, PTX, name="own.ptx")
    assert code.link(code.request(TARGET, [own])) == code.link(code.request(TARGET, [own])) == "linked 1"
    other = LinkInput(kinds.PTX, PTX + b"\n", name="own.ptx")
    assert code.link(code.request(TARGET, [other])) == "linked 2"
