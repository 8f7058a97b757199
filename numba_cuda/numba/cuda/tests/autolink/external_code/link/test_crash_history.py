# SPDX-License-Identifier: BSD-2-Clause
"""Binary code from outside, which is linked in another process until it has survived a link on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from autolink_support import Linked, adder, build, compiled
from numba import cuda
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.cache.store import reset_store
from numba.cuda.cudadrv.external_code.link import checked_link, ltoir_symbols, nvjitlink, nvjitlink_child
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError

MADE = {"ptx": cuda.PTXSource, "cubin": cuda.Cubin, "ltoir": cuda.LTOIR}


@pytest.fixture
def links(monkeypatch):
    """Where each link runs: ``"helper"`` or ``"here"``."""
    places = []

    def noted(place, link):
        def count(*arguments):
            places.append(place)
            return link(*arguments)

        return count

    monkeypatch.setattr(checked_link, "link_in_helper", noted("helper", checked_link.link_in_helper))
    monkeypatch.setattr(checked_link, "link_here", noted("here", checked_link.link_here))
    return places


def build_with(item, amount=0, lto=True):
    function = Linked("f", item).function

    def kernel(x):
        x[0] = function(x[0]) + amount

    return build(kernel, lto=lto)


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("lto", [True, False])
def test_the_first_link_of_outside_code_runs_in_the_helper_and_later_ones_here(kind, lto, links):
    if kind == "ltoir" and not lto:
        pytest.skip("LTO-IR needs a link with LTO")
    code = compiled(adder("f", 30 + lto), kind)
    build_with(MADE[kind](code), lto=lto)
    assert links == ["helper"]  # whose cubin is used: it is not linked twice
    build_with(MADE[kind](code), amount=1, lto=lto)
    assert links == ["helper", "here"]


def test_what_survived_one_link_is_searched_for_definitions_in_the_helper(monkeypatch, links):
    monkeypatch.setattr(ltoir_symbols, "link_here", None)  # damaged code may crash one link and not another
    one, other = (
        Linked(name, each).function
        for name, each in (
            ("f", cuda.LTOIR(compiled(adder("f", 36), "ltoir"))),
            ("g", cuda.Cubin(compiled(adder("g", 36), "cubin"))),
        )
    )

    def kernel(x):
        x[0] = one(x[0]) + other(x[0])

    build(kernel)
    assert links == ["helper"]


def test_another_process_knows_what_survived(links):
    code = compiled(adder("f", 32), "ltoir")
    build_with(cuda.LTOIR(code))
    reset_store()  # as in a new process, which has the disk only
    build_with(cuda.LTOIR(code), amount=1)
    assert links == ["helper", "here"]


def test_what_is_compiled_here_is_not_doubted(links):
    build_with(cuda.CUSource(adder("f", 33)))
    assert links == ["here"]


def test_the_helper_links_the_same_cubin_as_this_process(monkeypatch):
    code = compiled(adder("f", 34), "ltoir")
    job = {}
    link_here, tried = checked_link.link_here, checked_link.link_in_helper

    def both(*arguments):
        job["helper"], job["here"] = tried(*arguments).code, link_here(*arguments).code
        return tried(*arguments)

    monkeypatch.setattr(checked_link, "link_in_helper", both)
    build_with(cuda.LTOIR(code))
    assert job["helper"] and job["helper"] == job["here"]


def test_many_links_share_one_helper_process(monkeypatch):
    nvjitlink.helpers.close()
    started = []
    start = nvjitlink.ChildProcess

    def counted(script, **how):
        started.append(script)
        return start(script, **how)

    monkeypatch.setattr(nvjitlink, "ChildProcess", counted)
    for amount in range(3):
        build_with(cuda.Cubin(compiled(adder("f", 40 + amount), "cubin")))
    assert len(started) == 1


def test_a_helper_process_that_died_while_it_was_idle_is_replaced(links):
    build_with(cuda.Cubin(compiled(adder("f", 50), "cubin")))
    helper = nvjitlink.helpers.kept
    helper.kill()
    helper._process.wait()
    build_with(cuda.Cubin(compiled(adder("f", 60), "cubin")))
    assert links == ["helper", "helper"]
    assert nvjitlink.helpers.kept is not helper


@pytest.mark.parametrize(("statement", "how"), [("os.abort()", "SIGABRT"), ("time.sleep(600)", "")])
def test_a_crash_or_a_hang_is_an_error_that_names_the_input(statement, how, monkeypatch, tmp_path, links):
    text = Path(nvjitlink_child.__file__).read_text()
    call = "            nvjitlink.add_data("
    body = f"            if 'bad' in name:\n                import os, time; {statement}\n"
    (tmp_path / "child.py").write_text(text.replace(call, body + call))
    nvjitlink.helpers.close()  # the next one runs the changed script
    monkeypatch.setattr(nvjitlink_child, "__file__", str(tmp_path / "child.py"))
    monkeypatch.setattr(nvjitlink, "LINK_TIMEOUT", 2.0)
    monkeypatch.setattr(nvjitlink, "TIMEOUT", 2.0)
    code = compiled(adder("f", 35), "cubin")
    for _ in range(2):  # what did not survive is not remembered as if it had
        with pytest.raises(LinkError, match="an input crashes nvJitLink") as caught:
            build_with(cuda.Cubin(code, name="bad one"))
        assert "at fault: cubin 'bad one'" in str(caught.value)
        assert how in str(caught.value)
    assert links == ["helper", "helper"]


def test_where_no_process_can_be_started_it_is_linked_in_this_one(monkeypatch, links):
    code = compiled(adder("f"), "cubin") + b"\0"  # which no other test links
    nvjitlink.helpers.close()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert build_with(cuda.Cubin(code)).code
    assert links == ["helper", "here"]


def test_what_the_linker_prints_as_an_error_is_one(capfd, monkeypatch):
    monkeypatch.setattr(checked_link, "check_signatures", lambda job, read: None)
    nvjitlink.helpers.close()  # where code was linked with LTO before, nvJitLink crashes on it instead
    wrong = 'extern "C" __device__ int f(int *out, double x, float y) { *out = x + y; return 0; }'
    with pytest.raises(LinkError, match="Prototype doesn't match"):
        build_with(cuda.Cubin(compiled(wrong, "cubin")), lto=False)
    assert capfd.readouterr().err == ""


REFERS = """
extern "C" { extern __device__ int g%d; }
extern "C" __device__ int f(int* result, int x) { *result = x + g%d; return 0; }
"""


def build_both(number, other, amount=0):
    sources = [autolink.CUDASource(REFERS % (number, number)), autolink.CUDASource(other % number)]
    function = Linked("f", sources).function

    def kernel(x):
        x[0] = function(x[0]) + amount

    return build(kernel, lto=False)


def test_sources_that_refer_to_each_other_are_linked_in_the_helper_once(links):
    for amount in 1, 2:
        build_both(40, 'extern "C" __device__ int g%d = 3;', amount)
    assert links == ["helper", "here"]


@pytest.mark.parametrize(
    "other, message",
    [
        ('extern "C" __device__ int g%d(float x) { return x; }', "an input crashes nvJitLink"),
        ('extern "C" __device__ short g%d = 3;', "Size doesn't match for 'g42'"),
        ('extern "C" __constant__ int g%d = 3;', "Memory space doesn't match for 'g42'"),
    ],
)
def test_sources_that_contradict_each_other_are_an_error_and_no_crash(other, message, capfd):
    nvjitlink.helpers.close()  # as above
    with pytest.raises(LinkError, match=message):
        build_both(42, other)
    assert "@E@" not in capfd.readouterr().err
