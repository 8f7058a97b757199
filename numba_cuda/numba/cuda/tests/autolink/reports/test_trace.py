# SPDX-License-Identifier: BSD-2-Clause
"""The timeline of a build: what took how long, in which process, and from which cache it came."""

import json
import os
import sys
import threading

import pytest
from autolink_support import Linked, adder, build
from numba import cuda
from numba.cuda import autolink
from numba.cuda.autolink.reports.trace import lanes, totals, totals_of
from numba.cuda.cudadrv.external_code.diagnostics.timeline import Span, Timeline, in_process, recording, span


def spans_of(*functions):
    """The spans of a build of a kernel that calls *functions*, by kind."""
    names = {f"f{number}": function for number, function in enumerate(functions)}
    body = "".join(f"    x[{number}] = f{number}(x[{number}])\n" for number in range(len(functions)))
    exec(f"def kernel(x):\n{body}", names)
    report = build(names["kernel"]).report
    found = {}
    for each in report.builds[0].timeline:
        found.setdefault(each.kind, []).append(each)
    return report, found


def test_every_part_of_a_build_is_in_its_timeline():
    inner = Linked("timeline_inner").function
    helper = cuda.jit(device=True)(lambda x: inner(x))
    report, found = spans_of(Linked("timeline_outer").function, helper)
    assert [each.name for each in found["front end"]] == ["<lambda>", "kernel"]
    assert len(found["hook"]) == 2
    assert len(found["compile"]) == 2
    assert [len(found[kind]) for kind in ("NVVM", "link")] == [1, 1]
    here = [each for each in report.builds[0].timeline if each.kind != "compile"]
    assert {each.process for each in here} == {os.getpid()}  # and NVRTC runs in child processes
    assert os.getpid() not in {each.process for each in found["compile"]}
    assert {each.thread for each in report.builds[0].timeline} == {threading.get_native_id()}
    kernel = found["front end"][1]
    for each in (*found["front end"], *found["hook"]):
        assert kernel.start <= each.start <= each.start + each.seconds <= kernel.start + kernel.seconds + 1e-3
    assert found["link"][0].start >= kernel.start + kernel.seconds - 1e-3


@pytest.mark.counted
def test_what_came_from_a_cache_says_so():
    functions = [Linked("timeline_cached").function]
    _, first = spans_of(*functions)
    _, again = spans_of(*functions)
    assert [each.origin for each in (*first["compile"], *first["link"])] == ["built", "built"]
    assert [each.origin for each in again["link"]] == ["memory"] and "compile" not in again and "NVVM" not in again
    assert [(total.kind, total.origins) for total in totals(again["link"])] == [("link", (("memory", 1),))]


@pytest.mark.counted
def test_times_and_counts_of_a_report_agree():
    asked_before, asked_now = Linked("timeline_before").function, Linked("timeline_now").function
    spans_of(asked_before)
    first, _ = spans_of(asked_before, asked_now)
    again, _ = spans_of(asked_before, asked_now)
    for report, origin, hooks in (
        (first, "built", (("built", 1), ("memory", 1))),
        (again, "memory", (("memory", 2),)),
    ):
        (built,) = report.builds
        found = {total.kind: total for total in totals_of(built)}
        assert (found["link"].origins, built.link.origin) == (((origin, 1),), origin)
        assert found["link"].seconds == pytest.approx(built.link.seconds, rel=0.01)
        assert found["hook"].origins == hooks
        assert found["hook"].number == len(built.calls)


def test_sources_that_are_compiled_in_child_processes_have_lanes_of_their_own(monkeypatch):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_JOBS", "2")
    many = "\n".join(f"#include <{name}>" for name in ("cuda_fp16.h", "cuda_bf16.h", "cooperative_groups.h"))
    functions = []
    for name in ("in_lane", "in_other_lane"):
        code = autolink.CUDASource(f"{many}\n// {os.urandom(8).hex()}\n{adder(name)}", name=f"{name}.cu")
        functions.append(Linked(name, code).function)
    report, found = spans_of(*functions)
    compiled = found["compile"]
    assert sorted(each.name for each in compiled) == ["in_lane.cu", "in_other_lane.cu"]
    assert len({each.process for each in compiled}) == 2
    for child in {each.process for each in compiled}:
        assert f'<p class="faint">process {child}</p>' in report.to_html()


def test_a_trace_file_has_each_span_in_microseconds():
    report, _ = spans_of(Linked("timeline_traced").function)
    trace = json.loads(report.to_trace())
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(complete) == len(report.builds[0].timeline)
    assert min(event["ts"] for event in complete) == 0
    kernel = next(event for event in complete if event["name"] == "front end: kernel")
    (front_end,) = [each for each in report.builds[0].timeline if each.kind == "front end"]
    assert kernel["dur"] == pytest.approx(front_end.seconds * 1e6, abs=0.01)
    names = [event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"]
    children = {each.process for each in report.builds[0].timeline if each.kind == "compile"}
    assert names == [f"Python {os.getpid()}", *(f"child process {child}" for child in children)]
    assert autolink.Report.from_json(report.to_json()) == report


def test_totals_count_nested_work_once():
    outer, inner = Span("front end", "kernel", 10.0, 5.0, 1, 1), Span("hook", "f", 11.0, 2.0, 1, 1, "stored")
    elsewhere = Span("compile", "f.cu", 13.0, 1.5, 2, 1, "disk")  # for which the same thread waits
    assert [(total.kind, total.seconds, total.origins) for total in totals([inner, elsewhere, outer])] == [
        ("front end", 1.5, (("built", 1),)),
        ("hook", 2.0, (("stored", 1),)),
        ("compile", 1.5, (("disk", 1),)),
    ]
    assert [[placed.depth for placed in lane.placed] for lane in lanes([inner, elsewhere, outer])] == [[0, 1], [0]]


def test_short_spans_one_after_the_other_do_not_lie_within_each_other():
    outer = Span("front end", "kernel", 10.0, 1.0, 1, 1)
    hooks = [Span("hook", f"f{number}", 10.0 + number * 30e-6, 30e-6, 1, 1) for number in range(1000)]
    (lane,) = lanes([*hooks, outer])
    assert {placed.depth for placed in lane.placed[1:]} == {1}


def test_spans_are_recorded_where_a_timeline_is_and_not_where_one_raises():
    timeline = Timeline()
    with span("link", "before"):
        in_process(1)
    with recording(timeline):
        with pytest.raises(ValueError), span("link", "fails"):
            raise ValueError
        with span("compile", "in a child") as opened:
            in_process(77)
            opened.origin = "disk"
    assert [(each.name, each.process, each.origin) for each in timeline.spans] == [("in a child", 77, "disk")]


def test_spans_are_ranges_for_nsight_systems_where_nvtx_is_imported(monkeypatch):
    events = []

    class Nvtx:
        push_range = staticmethod(lambda text, domain: events.append((text, domain)))
        pop_range = staticmethod(lambda domain: events.append(domain))

    monkeypatch.setitem(sys.modules, "nvtx", Nvtx)
    spans_of(Linked("timeline_in_nsight").function)
    domain = "numba-cuda-autolink"
    assert events[0] == ("front end: kernel", domain)
    kinds = [each[0].partition(":")[0] for each in events if each != domain]
    assert [*kinds[:2], kinds[4]] == ["front end", "hook", "link"] and {*kinds[2:4]} == {"NVVM", "compile"}
    assert events.count(domain) == len(events) / 2
