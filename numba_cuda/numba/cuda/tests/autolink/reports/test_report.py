# SPDX-License-Identifier: BSD-2-Clause
"""Reports: what they say about a kernel whose code is known, and how they are shown."""

import copy
import dataclasses
import functools
import hashlib
import html
import inspect
import io
import json
import linecache
import pickle
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from autolink_support import CC, Linked, adder, build, calling, compiled, ptx
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda import dispatcher as numba_cuda_dispatcher
from numba.cuda.autolink.compilation.context import without_device
from numba.cuda.autolink.frontends.numba_cuda.code_library import LinkingCodeLibrary
from numba.cuda.autolink.reports import text
from numba.cuda.autolink.reports.collect import report_of
from numba.cuda.autolink.reports.formatting import titles
from numba.cuda.autolink.reports.graph import MOST_BOXES, draw
from numba.cuda.autolink.reports.report import Report
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.formats.cubin import resources, spills_of_functions
from numba.cuda.cudadrv.external_code.formats.symbols import Symbols, symbols_of, symbols_of_ptx
from numba.cuda.cudadrv.external_code.link.ltoir_symbols import symbols_of_ltoir
from numba.cuda.cudadrv.external_code.platform import cuda_libraries

from numba_cuda_autolink.mangled_names import without_result

SVG = "{http://www.w3.org/2000/svg}"


class Power(autolink.DeviceCallable):
    """Two pieces of code: C++ that calls a function in PTX."""

    def __init__(self, n):
        self.n = n

    def __repr__(self):
        return f"Power({self.n})"

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"power_{self.n}", returns=x)

    def __numba_cuda_link__(self, x):
        helper = f'extern "C" __device__ int helper_{self.n}(int x)'
        arch = autolink.current_target().arch
        yield autolink.CUDASource(
            f'{helper}; extern "C" __device__ int power_{self.n}(int x) {{ return helper_{self.n}(x); }}',
            name=f"power_{self.n}.cu",
        )
        yield cuda.PTXSource(ptx(f"{helper} {{ return x * {self.n}; }}", arch).decode(), name=f"helper_{self.n}.ptx")


reported = Linked("reported").function
cube = Power(3)


@cuda.jit(device=True)
def inner(x):
    return cube(x) + 1


@cuda.jit(device=True)
def outer(x):
    return reported(x) + inner(x)


def kernel(x):
    x[0] = outer(x[1])
    x[1] = cube(x[2])


def line_of(function, text):
    lines, first = inspect.getsourcelines(getattr(function, "py_func", function))
    return first + next(number for number, line in enumerate(lines) if text in line)


@pytest.fixture(scope="module")
def report():
    return build(kernel).report


@functools.cache
def many(number):
    """A report with *number* calls of as many objects, by two device functions."""
    objects = tuple(Linked(f"many_{number}_{index}").function for index in range(number))
    half = (number + 1) // 2

    def device_function(some):
        body = "".join(f"    y += f{index}(y)\n" for index in range(len(some)))
        names = {f"f{index}": each for index, each in enumerate(some)}
        exec(f"def device_function(x):\n    y = x\n{body}    return y\n", names)
        return cuda.jit(device=True)(names["device_function"])

    one, other = device_function(objects[:half]), device_function(objects[half:])

    def kernel(x):
        x[0] = one(x[1]) + other(x[2])

    return build(kernel).report


def test_each_call_with_its_place_and_the_functions_that_lead_there(report):
    (built,) = report.builds
    calls = built.calls
    assert [call.name for call in calls] == ["reported", "Power(3)", "Power(3)"]
    assert [call.argtypes for call in calls] == [("int32",)] * 3
    assert {call.filename for call in calls} == {__file__}
    in_kernel = line_of(kernel, "outer("), line_of(outer, "reported("), line_of(inner, "cube(")
    assert [[(frame.function, frame.line) for frame in call.chain] for call in calls] == [
        [("kernel", in_kernel[0]), ("outer", in_kernel[1])],
        [("kernel", in_kernel[0]), ("outer", in_kernel[1]), ("inner", in_kernel[2])],
        [("kernel", line_of(kernel, "cube("))],
    ]
    assert [call.line for call in calls] == [call.chain[-1].line for call in calls]
    assert [report.graph.functions[call.function].name for call in calls] == ["outer", "inner", "kernel"]
    assert (report.kernel, report.signature) == ("kernel", "(int32[::1])")
    assert (report.filename, report.line) == (__file__, line_of(kernel, "def kernel"))


def test_what_each_call_returned(report):
    (built,) = report.builds
    first, second, third = built.calls
    (source,) = first.returned
    text = adder("reported").encode()
    assert (source.kind, source.size, source.sha256) == ("CUDA C++ source", len(text), hashlib.sha256(text).hexdigest())
    assert (source.defines, source.undefined) == (("reported",), ())
    assert source.compiled.kind == "LTO-IR"
    assert source.compiled.size > 0
    assert source.compiled.seconds > 0 or source.compiled.origin != "built"  # another test may have compiled it
    caller, helper = second.returned
    assert [code.name for code in second.returned] == ["power_3.cu", "helper_3.ptx"]
    assert (caller.defines, caller.undefined) == (("power_3",), ("helper_3",))
    assert (helper.kind, helper.defines, helper.undefined, helper.compiled) == ("PTX", ("helper_3",), (), None)
    assert [each.brought_by for each in third.returned] == [(third.site,)] * 2
    assert [dataclasses.replace(each, brought_by=(second.site,)) for each in third.returned] == [*second.returned]
    assert all(call.seconds > 0 for call in built.calls)


def test_the_link_and_its_result(report):
    (built,) = report.builds
    link, result = built.link, built.result
    assert link.lto
    assert "helper_3.ptx (PTX) cannot take part" in link.why
    assert [code.name for code in link.inputs][1:] == ["Linked.cu", "power_3.cu", "helper_3.ptx"] or len(
        link.inputs
    ) == 4
    assert link.inputs[0].own
    assert link.inputs[0].undefined == ("power_3", "reported")
    assert {"-arch=sm_90", "-lto"} <= set(link.options)
    assert link.seconds > 0
    assert (result.kind, built.arch) == ("cubin", "sm_90")
    assert 8 <= result.registers <= 255
    assert (result.shared, result.stack) == (0, 0)
    code = build(kernel).code
    assert (result.size, result.sha256) == (len(code), hashlib.sha256(code).hexdigest())


def test_where_the_code_came_from():
    fresh = Linked("fresh_link").function

    kernel = calling(fresh)
    first, second = (build(kernel).report.builds[0].link for _ in range(2))
    assert first.origin == "built"
    assert second.origin == "memory"
    assert second.log == first.log
    assert "Compile time" not in first.log


def test_what_a_build_compiled_before_its_link_was_built_in_it():
    library = autolink.cxx("__device__ int first(int x) { return x + 97; } __device__ int second(int x) { return x; }")

    def kernel(x):
        x[0] = library.first(x[0]) + library.second(x[1])

    def again(x):
        x[0] = library.first(x[0]) + library.second(x[1]) + 1

    first, second = (build(each).report.builds[0].calls[0].returned[0].compiled for each in (kernel, again))
    assert (first.origin, second.origin) == ("built", "memory")
    assert first.seconds > second.seconds


def test_an_input_of_calls_in_a_row_names_the_first_and_the_last():
    library = autolink.cxx("template <int n> __device__ int plus(int x) { return x + n; }")
    calls = {f"f{n}": library[f"plus<{n}>"] for n in range(4)}
    exec("def kernel(x):\n" + "".join(f"    x[{n}] = f{n}(x[{n}])\n" for n in range(4)), calls)
    assert "of calls 1 to 4" in " ".join(str(build(calls["kernel"]).report).split())


@pytest.mark.parametrize("lto", [True, False])
@pytest.mark.parametrize("cc", [(8, 0), (9, 0), (10, 0)])
def test_shared_memory_and_stack(lto, cc):
    def kernel(x):
        shared = cuda.shared.array(64, types.int32)
        local = cuda.local.array(40, types.int32)
        for index in range(40):
            local[x[index]] = x[index]
        shared[cuda.threadIdx.x] = local[x[0]]
        cuda.syncthreads()
        x[0] = reported(shared[x[3]])

    result = build(kernel, lto=lto, cc=cc).report.builds[0].result
    assert result.shared == 256
    assert 160 <= result.stack < 256
    assert (result.spill_stores, result.spill_loads) == (0, 0) or cc == (10, 0)


def test_the_stack_of_recursion_is_not_known(front_end):
    ops = autolink.cxx("""
__device__ __noinline__ float rec(float x, int n) { return n <= 0 ? x : rec(x * 1.5f, n - 1) + rec(x, n - 2); }""")

    @front_end.cuda.jit
    def recursive(x):
        x[0] = ops.rec(x[0], 7)

    @front_end.cuda.jit
    def plain(x):
        x[0] = x[0] * 2

    before, now = (autolink.report(each, "void(float32[::1])", cc=CC) for each in (recursive, plain))
    assert json.loads(before.to_json())["builds"][0]["result"]["stack"] is None
    assert Report.from_json(before.to_json()) == before
    assert "stack: not known (recursion)" in str(before)
    assert "not known (recursion)" in before.to_html()
    assert "stack: not known (recursion) → 0 bytes" in now.changes_since(before)


def test_what_cxx_refers_to_is_shown_as_a_reference(front_end):
    count = autolink.cxx("__device__ double count(double x, int& n) { n += 1; return x * n; }").count

    @front_end.cuda.jit
    def counting(x, n):
        local = x[0] * 2
        x[0] = count(local, n[1])

    (call,) = autolink.report(counting, "void(float64[::1], int32[::1])", cc=CC).builds[0].calls
    assert call.argtypes[1] == "int32&"
    assert "[" not in call.argtypes[0]
    assert call.returned[0].name == f"count({', '.join(call.argtypes)})"


def test_spills_are_counted():
    log = """ptxas info    : Function properties for one
ptxas         .     8 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Function properties for other
ptxas         .     0 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads"""
    spills = {"spill_stores": 12, "spill_loads": 16}
    unknown = ("registers", "shared", "stack", "constant_memory", "global_memory", "data")
    assert resources(b"no cubin", "one", log) == {**dict.fromkeys(unknown), **spills}
    assert spills_of_functions(log) == {"one": (8, 12), "other": (4, 4)}


@pytest.mark.parametrize(
    ("options", "lto", "reason"),
    [
        ({}, True, "the default of cuda.jit"),
        ({"lto": False}, False, "lto=False"),
        ({"debug": True, "opt": False}, False, "debug=True"),
    ],
)
def test_why_lto_or_not(options, lto, reason):
    link = build(calling(reported), **options).report.builds[0].link
    assert link.lto is lto
    assert reason in link.why
    assert "nvJitLink" not in link.why


def test_without_nvjitlink_the_report_says_that_it_was_not_found(monkeypatch):
    built = build(calling(reported), lto=False)
    monkeypatch.setattr(cuda_libraries, "version_texts", dict)
    assert report_of(built).builds[0].link.why == "nvJitLink was not found"


def test_symbols_of_every_readable_kind():
    source = (
        'extern "C" __device__ int elsewhere(int); extern "C" __device__ int here(int x) { return elsewhere(x); }'
        'extern "C" __device__ int also(int x) { return x; }'
    )
    undefined = ("elsewhere",)
    assert symbols_of_ptx(ptx(source)) == Symbols(("also", "here"), undefined)
    assert symbols_of("cubin", compiled(source, "cubin")) == Symbols(("also", "here"), undefined)
    ltoir = compiled(source, "ltoir")
    assert symbols_of_ltoir([ltoir], ["here", "nowhere"], "sm_90") == [Symbols(("here",), undefined)]
    assert symbols_of_ltoir([ltoir], ["also", "elsewhere"], "sm_90") == [Symbols(("also",), ())]
    assert symbols_of_ltoir([b"\xed\x43\x4e\x7fbroken"], ["here"], "sm_90") == [None]
    assert symbols_of("cubin", b"\x7fELF but broken") is None


def test_inline_functions_that_several_modules_define_are_no_symbols_of_ltoir():
    shared = "inline __device__ __noinline__ int shared(int x) { return x * 3 + clock(); }"
    code = [
        compiled(f'{shared} extern "C" __device__ int {name}(int x) {{ return shared(x); }}', "ltoir")
        for name in ("here", "there")
    ]
    assert symbols_of_ltoir(code, ["here", "there"], "sm_90") == [Symbols(("here",), ()), Symbols(("there",), ())]


def test_what_nothing_in_a_link_defines_is_not_needed():
    """A link without it would fail: it is only declared."""
    declared = "\n.extern .func (.param .b32 r) nowhere (.param .b32 x);\n"
    text = ptx('extern "C" __device__ float listed(float x) { return x; }').decode()
    code = text.replace(".visible", declared + ".visible", 1)
    assert symbols_of_ptx(code.encode()).undefined == ("nowhere",)

    class Declares(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("listed", returns=x)

        def __numba_cuda_link__(self, x):
            return cuda.PTXSource(code.encode())

    (listed,) = report_of(build(calling(Declares()))).builds[0].calls[0].returned
    assert (listed.defines, listed.undefined) == (("listed",), ())


def test_other_outputs_and_kernels_without_external_code():
    def plain(x):
        x[0] = 1

    assert build(plain).report.builds[0].calls == ()
    report = build(plain).report
    assert "0 calls of external code" in str(report)
    assert "register spills: not known\n" in str(report) and "spills" in report.to_html()
    for output, kind in (("ptx", "PTX"), ("ltoir", "LTO-IR")):
        (built,) = build(kernel_without_ptx, output=output).report.builds
        assert built.result.kind == kind
        assert [code.kind for code in built.calls[0].returned] == ["CUDA C++ source"]
    assert built.link.origin == "not linked"
    report = build(kernel_without_ptx, output="ltoir").report
    assert "not linked, left to the" in str(report) and "with LTO" not in str(report)
    assert "<h4>Not linked</h4>" in report.to_html()


def kernel_without_ptx(x):
    x[0] = reported(x[1])


def test_code_from_the_link_option():
    declared = cuda.declare_device("from_link_option", "int32(int32)")

    def kernel(x):
        x[0] = declared(reported(x[1]))

    report = build(kernel, link=[cuda.CUSource(adder("from_link_option"))]).report
    assert ["link="] in [list(code.brought_by) for code in report.builds[0].link.inputs]
    assert ">link=<" in report.to_svg()


def test_sources_that_are_compiled_as_one_unit():
    one, other = (
        Linked(name, autolink.CUDASource(adder(name), name=f"{name}.cu", unit="shared")).function
        for name in ("in_unit", "in_unit_too")
    )

    def kernel(x):
        x[0] = one(other(x[1]))

    report = build(kernel).report
    (built,) = report.builds
    (unit,) = built.link.inputs[1:]
    assert (unit.name, unit.defines) == ("shared.cu", ("in_unit", "in_unit_too"))
    parts = [call.returned for call in built.calls]
    assert [[code.name for code in returned] for returned in parts] == [["in_unit_too.cu"], ["in_unit.cu"]]
    assert unit.parts == tuple(part for returned in parts for part in returned)
    assert all((part.unit, part.compiled) == ("shared.cu", unit.compiled) for part in unit.parts)
    assert [part.defines for part in unit.parts] == [("in_unit_too",), ("in_unit",)]
    assert [call.inlined for call in built.calls] == [True, True]
    assert "(with others, as shared.cu)" in str(report)
    assert autolink.Report.from_json(report.to_json()) == report
    assert [placed.title for placed in draw(report).boxes if placed.box.column == "inputs"] == ["shared.cu"]


def test_an_answer_that_was_stored_under_its_link_key():
    def linked():
        spy = Linked("stored_before")
        spy.function.__numba_cuda_link_key__ = lambda x: "the same"
        called = spy.function

        (call,) = build(calling(called)).report.builds[0].calls
        return call.stored, len(spy.asked)

    assert linked() == (False, 1)
    assert linked() == (True, 0)


def test_several_architectures_in_one_report():
    report = autolink.report(kernel, "void(int32[::1])", cc=[(8, 0), (9, 0)])
    assert [built.arch for built in report.builds] == ["sm_80", "sm_90"]
    assert all(built.entry_name for built in report.builds)
    assert [placed.detail[:5] for placed in draw(report).boxes if placed.title == "cubin"] == ["sm_80", "sm_90"]


def compiled_for(*signatures):
    """A dispatcher that has compiled kernels, as after launches."""
    dispatcher = cuda.jit(kernel_without_ptx)
    for argtypes in signatures:
        with without_device((*CC, "a")):
            overload = numba_cuda_dispatcher._Kernel(
                kernel_without_ptx, argtypes, **{**dispatcher.targetoptions, "link": []}
            )
            overload._codelibrary.get_cubin()
        dispatcher.overloads[argtypes] = overload
    return dispatcher


def test_the_only_compiled_signature_is_reported():
    one = (types.int32[::1],)
    report = autolink.report(compiled_for(one))
    assert report.builds[0].arch == "sm_90a"
    assert report.builds[0].calls[0].name == "reported"
    with pytest.raises(ValueError, match=r"kernel_without_ptx is not compiled yet\n  what to do: launch it, "):
        autolink.report(compiled_for())
    with pytest.raises(ValueError, match=r"2 signatures; .*\n  \(array\(int32, 1d, C\)\)\n  \(array\(int32, 1d, A\)\)"):
        autolink.report(compiled_for(one, (types.int32[:],)))
    with pytest.raises(TypeError, match=r"expects a @cuda\.jit kernel, got function\n"):
        autolink.report(kernel)
    with pytest.raises(TypeError, match="inner is a device function"):
        autolink.report(inner)


def test_a_kernel_from_the_disk_cache_is_reported_as_the_one_that_was_built():
    dispatcher = compiled_for((types.int32[::1],))
    before = autolink.report(dispatcher)
    (overload,) = dispatcher.overloads.values()
    (cc,), state = overload._codelibrary._cubin_cache, overload._codelibrary.state()
    overload._codelibrary = LinkingCodeLibrary.restore(**{**state, "function_code": copy.copy(state["function_code"])})
    overload._codelibrary.get_cubin(cc)
    after = autolink.report(dispatcher)
    assert after.builds[0].restored
    found, expected = (
        [(call.site, call.chain, call.text) for call in each.builds[0].calls] for each in (after, before)
    )
    assert (found, after.graph) == (expected, before.graph)


def test_a_kernel_that_was_built_ahead_of_time_keeps_its_report_in_a_pickle():
    linked = build(kernel_without_ptx)
    restored = dataclasses.replace(linked, call_sites=())
    assert pickle.loads(pickle.dumps(restored)).report == linked.report


def test_objects_that_look_the_same_in_one_line_are_two_calls_with_their_own_code():
    class Scale(autolink.DeviceCallable):
        def __init__(self, factor):
            self._factor = factor

        def __numba_cuda_call__(self, x):
            return autolink.Extern(f"scale_{self._factor}", returns=x)

        def __numba_cuda_link__(self, x):
            code = f"float scale_{self._factor}(float x) {{ return x * {self._factor}; }}"
            return autolink.CUDASource(f'extern "C" __device__ {code}')

    double, triple = Scale(2), Scale(3)
    assert repr(double) == repr(triple)

    def kernel(x):
        x[0] = double(x[0]) + triple(x[1])

    report = build(kernel, "void(float32[::1])").report
    assert [[code.defines for code in call.returned] for call in report.builds[0].calls] == [
        [("scale_2",)],
        [("scale_3",)],
    ]
    assert [line.rpartition("of ")[2] for line in str(report).splitlines() if "→" in line] == ["call 1", "call 2"]


def test_json_makes_an_equal_report(report):
    text = report.to_json()
    assert json.loads(text)["version"] == 4
    assert autolink.Report.from_json(text) == report
    assert autolink.Report.from_json(report.to_json(indent=None)) == report


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.pop("format"), "the text is not a report"),
        (lambda data: data.update(version=99), "format is version 99; expected version 4"),
        (lambda data: data.update(colour="red"), "not a whole report: .*colour"),
        (lambda data: data.pop("builds"), "not a whole report: .*builds"),
        (lambda data: data.update(builds=3), "not a whole report"),
    ],
)
def test_json_that_is_not_a_report_is_refused(report, change, message):
    data = json.loads(report.to_json())
    change(data)
    with pytest.raises(ValueError, match=message):
        autolink.Report.from_json(json.dumps(data))


def test_the_text_contains_everything(report):
    text = " ".join(str(report).split())
    call = line_of(kernel, "outer(")
    for line in (
        f"at: {__file__}:{line_of(inner, 'cube(')}",
        f"by way of: kernel:{call} → outer:{line_of(outer, 'reported(')} → inner:{line_of(inner, 'cube(')}",
        "power_3.cu: CUDA C++ source, ",
        "undefined: helper_3",
        "power_3.cu: same as for call 2",
        "with LTO: ",
        "of call 2 and call 3",
        "result for sm_90: cubin, ",
        "per thread",
        report.builds[0].entry_name,
    ):
        assert line in text
    assert repr(report) == "<Report of kernel(int32[::1]) for sm_90: 3 calls of external code>"


def test_lines_of_the_text_are_no_longer_than_80_characters(report):
    for line in str(report).splitlines():
        assert len(line) <= 80 or " " not in line.strip()  # a name or a path


def test_a_large_report_has_one_line_for_each_function():
    lines = str(many(40)).replace("\n        ", " ").splitlines()
    at = lines.index("  40 calls of external code for sm_90: more in HTML, JSON")
    assert lines[at - 1].endswith("occupancy 100%, inlined 40 of 40")
    for number, line in enumerate(lines[at + 1 : at + 41], 1):
        assert re.fullmatch(rf"    .*\(int32\) at <string>:{(number - 1) % 20 + 3}: \S+", line)
    assert lines[at + 41].startswith("  link for sm_90")
    assert len(lines) < 70
    link = many(40).builds[0].link
    report = dataclasses.replace(many(40).builds[0], link=dataclasses.replace(link, options=("-a=1", *("-k=x",) * 40)))
    text = " ".join(str(dataclasses.replace(many(40), builds=(report,))).split())
    assert f" options: -a=1 {'-k=x ' * 4}and 36 more of -k time of" in text


def test_lines_of_a_large_report_do_not_repeat_the_name_of_a_call_and_say_what_was_not_inlined():
    library = autolink.cxx("""
        template <int N> __device__ int add(int x) { return x + N; }
        __device__ __noinline__ int called(int x) { return x * x + 5; }
    """)
    names = {"library": library}
    body = "".join(f"    x[0] = library['add<{number}>'](x[0])\n" for number in range(24))
    exec(f"def kernel(x):\n{body}    x[0] = library.called(x[0])\n", names)
    lines = str(build(names["kernel"], "void(int32[::1])").report).splitlines()
    assert re.fullmatch(r"  sm_90: \d+ registers, stack \d+ bytes, no spills, occupancy .*, inlined 24 of 25", lines[1])
    assert lines[2:5] == [
        "  not inlined",
        "    called(int32) at <string>:26",
        "  25 calls of external code for sm_90: more in HTML, JSON",
    ]
    assert lines[5] == "    add<0>(int32) at <string>:2"
    assert lines[29] == "    called(int32) at <string>:26, not inlined"


@pytest.mark.parametrize("number", [5, 6, 23])
def test_the_head_names_what_was_not_inlined_and_from_six_calls_on_those_of_a_function_are_one_line(number):
    library = autolink.cxx("""
        __device__ __noinline__ int inner(int x) { return x * x + 5; }
        __device__ int around(int x) { return inner(x) + 1; }
        __device__ int plus(int x) { return x + 1; }
    """)
    names = {"library": library}
    body = "".join(f"    x[0] = library.{'around' if n in (1, 4) else 'plus'}(x[0])\n" for n in range(number))
    exec(f"def kernel(x):\n{body}", names)
    lines = str(build(names["kernel"], "void(int32[::1])").report).splitlines()
    assert lines[2:4] == [
        "  not inlined",
        "    around(int32) ×2 at <string>:3 and 6: inner(int) called",  # noqa: RUF001 - as it is shown
    ]
    calls = [line for line in lines[5:] if re.match(r"    \S*(around|plus)\(", line) or re.match(r"    \d+\. ", line)]
    assert sum("around(int32)" in line for line in calls) == (2 if number < 6 else 1)
    assert len(lines) < (73 if number < 6 else 39)  # with those of two functions


def test_the_table_of_architectures_fits_into_80_columns_and_is_lines_where_there_is_no_room(front_end):
    library = autolink.cxx("__device__ float f(float x, int n) { return n < 1 ? x : f(x, n - 1) * x; }")

    @front_end.cuda.jit
    def kernel(x):
        x[0] = library.f(x[0], 5)
        for n in range(12):
            x[n] = library.f(x[n], n)

    report = autolink.report(kernel, "void(float32[::1])", cc=["8.0", "9.0", "10.0a", "12.0a"])
    lines = text.to_text(report).splitlines()
    at = next(number for number, line in enumerate(lines) if "registers  " in line)
    rows = lines[at : at + 5]
    assert all(re.match(r"  (sm_\d+a? +\d|  +registers)", row) and len(row) <= 80 for row in rows)
    narrow = text.to_text(report, 50).splitlines()
    assert not any("registers  " in line for line in narrow)
    heads = [line for line in narrow if re.match(r"  sm_\d+a?: \d+ registers,", line)]
    assert len(heads) == 4 and all(len(line) <= 50 for line in heads)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_colours_on_a_terminal_and_plain_text_elsewhere(report, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    piped, terminal = io.StringIO(), Terminal()
    report.show(piped)
    report.show(terminal)
    assert piped.getvalue() == f"{report}\n"
    assert "\x1b" not in piped.getvalue()
    assert "\x1b[" in terminal.getvalue()
    assert "Power(3)(int32)" in re.sub(r"\x1b\[[\d;]*m", "", terminal.getvalue())


def test_on_a_narrow_terminal_lines_that_are_piped_are_as_narrow(report, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    report.show()
    shown = capsys.readouterr().out
    assert {len(line) > 60 for line in shown.splitlines() if len(line.split()) > 1} == {False}
    assert " ".join(shown.split()) == " ".join(str(report).split())


def test_the_inputs_are_listed_however_many_calls_there_are(tmp_path):
    path = tmp_path / "listed.cu"
    path.write_text("".join(f"__device__ float f{n}(float x) {{ return x + {n}; }}\n" for n in range(30)))
    library = autolink.cxx(path)
    names = {f"f{n}": library[f"f{n}"] for n in range(30)}
    exec("def kernel(x):" + "".join(f"\n    x[{n}] = f{n}(x[{n}])" for n in range(30)), names)
    lines = [line.strip() for line in str(build(names["kernel"], "void(float32[::1])").report).splitlines()]
    assert "inputs: 2, in this order" in lines
    assert "2. listed.cu, 30 functions: CUDA C++ source → LTO-IR, of calls 1 to 30" in lines
    text = str(many(40))
    assert "inputs: 41: 40 that the calls returned, and\n      1. kernel: LTO-IR, the kernel's own code" in text


@pytest.mark.parametrize("number", [1, 10, 40])
def test_the_drawing_is_well_formed_and_no_boxes_overlap(number):
    report = many(number)
    drawing = draw(report)
    columns = [placed.box.column for placed in drawing.boxes]
    drawn = number if number <= MOST_BOXES else 1
    assert [columns.count(name) for name, _ in drawing.headings] == [1, drawn, drawn, 1]
    for index, one in enumerate(drawing.boxes):
        assert 0 <= one.x < one.x + one.width <= drawing.width
        assert 0 <= one.y < one.y + one.height <= drawing.height
        for other in drawing.boxes[index + 1 :]:
            apart = one.x + one.width <= other.x or other.x + other.width <= one.x
            assert apart or one.y + one.height < other.y or other.y + other.height < one.y
    root = ElementTree.fromstring(report.to_svg())
    assert len([group for group in root.iter(f"{SVG}g") if group.get("class") == "node"]) == len(drawing.boxes)
    assert all(float(text.get("font-size")) >= 10 for text in root.iter(f"{SVG}text"))


@pytest.mark.parametrize("number", [1, 10])
def test_a_drawing_of_short_names_is_legible_in_500_pixels(number):
    assert draw(many(number)).width <= 500 * 1.1


def test_long_names_in_a_drawing_keep_what_tells_them_apart():
    (call,) = many(1).builds[0].calls
    names = [f"Scale(factor={factor}, mode='fast', precision='half')" for factor in (2, 3)]
    names += [f"a_function_with_a_long_name_{letter}_of_some_library" for letter in "ab"]
    calls = tuple(dataclasses.replace(call, name=name, type_name=name[:5]) for name in names)
    report = dataclasses.replace(many(1), builds=(dataclasses.replace(many(1).builds[0], calls=calls),))
    drawn = [placed.title for placed in draw(report).boxes if placed.box.column == "calls"]
    assert drawn == ["Scale(factor=2)", "Scale(factor=3)", *names[2:]]


def test_the_box_of_the_only_input_has_its_whole_name():
    (call,) = many(1).builds[0].calls
    inputs = (many(1).builds[0].link.inputs[0], dataclasses.replace(call.returned[0], name="norm(a, b)"))
    link = dataclasses.replace(many(1).builds[0].link, inputs=inputs)
    report = dataclasses.replace(many(1), builds=(dataclasses.replace(many(1).builds[0], link=link),))
    assert [each.title for each in draw(report).boxes if each.box.column == "inputs"] == ["norm(a, b)"]
    long = dataclasses.replace(inputs[1], name="norm(float32, float32)")
    link = dataclasses.replace(link, inputs=(inputs[0], long))
    report = dataclasses.replace(report, builds=(dataclasses.replace(report.builds[0], link=link),))
    assert [each.title for each in draw(report).boxes if each.box.column == "inputs"] == ["norm(float3…oat32)"]


class Root(autolink.DeviceCallable):
    """The n-th root: sources of one class have one name."""

    def __init__(self, n):
        self.n = n

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"root_{self.n}", returns=x)

    def __numba_cuda_link__(self, x):
        code = f'extern "C" __device__ float root_{self.n}(float x) {{ return powf(x, 1.f / {self.n}); }}'
        return autolink.CUDASource(code, name="Root.cu")


def calling_roots(number):
    names = {f"root{n}": Root(n) for n in range(2, 2 + number)}
    exec("def kernel(x):" + "".join(f"\n    x[0] += {name}(x[0])" for name in names), names)
    return autolink.report(cuda.jit(names["kernel"]), "void(float32[::1])", cc=CC, listings=number == 2)


def test_inputs_of_one_name_are_told_apart_by_the_objects_that_returned_them():
    report = calling_roots(2)
    names = ["Root.cu of Root(n=2)", "Root.cu of Root(n=3)"]
    assert [placed.box.title for placed in draw(report).boxes if placed.box.column == "inputs"] == names
    assert [listing.name for listing in report.builds[0].listings][1:3] == names
    assert all(f"<summary>{name}: " in report.to_html() for name in names)
    assert all(f">{name}</code>" in report.to_html() for name in names)
    (folded,) = [each.box for each in draw(calling_roots(MOST_BOXES + 1)).boxes if each.box.column == "inputs"]
    assert folded.title == f"{MOST_BOXES + 1} C++ sources"
    assert folded.detail == "Root.cu of Root(n=2) … Root.cu of Root(n=14)"
    codes = report.builds[0].link.inputs[1:]
    same = [dataclasses.replace(code, brought_by=("link=",)) for code in codes]
    assert titles(same, ()) == ["Root.cu of link= #1", "Root.cu of link= #2"]


class Typed(Root):
    """The n-th root, with a function for each type."""

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"root_{self.n}_{x}", returns=x)

    def __numba_cuda_link__(self, x):
        name = autolink.cxx_type(x)
        code = f'extern "C" __device__ {name} root_{self.n}_{x}({name} x) {{ return pow(x, ({name}) 1 / {self.n}); }}'
        return autolink.CUDASource(code, name=f"root_{self.n}.cu")


def test_inputs_of_one_object_are_told_apart_by_types_and_objects_are_counted_once():
    names = {f"root{n}": Typed(n) for n in range(2, 3 + MOST_BOXES)}
    lines = [f"    x[0] += {name}(x[0])" for name in names]
    exec("\n".join(["def kernel(x):", *lines, "    x[0] += root2(float(x.size))"]), names)
    report = build(names["kernel"], "void(float32[::1])").report
    assert f"{MOST_BOXES + 1} Typed objects" in [placed.box.title for placed in draw(report).boxes]
    named = titles(report.builds[0].link.inputs, report.builds[0].calls)
    assert [name for name in named if "root_2" in name] == ["root_2.cu (float32)", "root_2.cu (float64)"]


def test_a_library_names_its_file_and_shared_code_its_functions(tmp_path):
    path = tmp_path / "a_folder_with_a_long_name_of_its_own" / "library.cu"
    path.parent.mkdir()
    path.write_text(
        "__device__ float twice(float x) { return 2 * x; }\n__device__ float half(float x) { return x / 2; }\n"
    )
    library = autolink.cxx(path)

    def kernel(x):
        x[0] = library.twice(x[0])
        x[1] = library.half(x[1])

    report = build(kernel, "void(float32[::1])").report
    assert [call.name for call in report.builds[0].calls] == ["twice", "half"]
    shown = [f"cxx({str(path)!r})['{name}']" for name in ("twice", "half")]
    assert [call.object for call in report.builds[0].calls] == shown
    assert all(f"object: {each}" in " ".join(str(report).split()) for each in shown)
    assert all(html.escape(each, quote=False).replace("'", "&#39;") in report.to_html() for each in shown)
    assert [each.box.title for each in draw(report).boxes if each.box.column == "inputs"] == ["library.cu"]
    assert "2. library.cu, 2 functions: CUDA C++ source → LTO-IR, of call 1 and call 2" in str(report)
    assert "2 functions, " in report.to_svg()


def test_a_line_of_text_is_not_broken_between_a_number_and_its_unit(report):
    units = re.compile(r"(?:µs|ms|s|bytes?|[KMG]iB)\b")
    assert not [line for line in str(report).splitlines() if units.match(line.strip())]


def test_long_columns_are_folded_and_their_box_names_all():
    boxes = {placed.box.column: placed for placed in draw(many(40)).boxes}
    name = many(40).builds[0].calls[0].type_name
    assert boxes["calls"].box.title == f"40 {name} objects"
    assert boxes["calls"].box.hint.splitlines() == [call.name for call in many(40).builds[0].calls]
    (from_kernel,) = [arrow for arrow in draw(many(40)).arrows if arrow.hint.startswith("kernel")]
    assert from_kernel.hint.count("<string>:") == 20


def test_html_loads_nothing_and_has_light_and_dark_colours(report):
    fragment = report._repr_html_()
    drawing = fragment[fragment.index("<svg") : fragment.index("</svg>") + 6]
    ElementTree.fromstring(drawing)
    assert not re.search(r"\bsrc=|@import|href=\"(?!file://)|url\(", fragment)
    assert "--nca-back: light-dark(#ffffff, #0d1117)" in fragment
    assert 'data-jp-theme-light="false"' in fragment
    assert fragment.count("helper_3.ptx") >= 3
    assert report.to_html().startswith("<!DOCTYPE html>")


def test_names_cannot_break_out_of_html():
    class Nasty(Power):
        def __repr__(self):
            return "</td><script>alert('x')</script>"

    nasty = Nasty(5)

    report = build(calling(nasty)).report
    assert report.to_html().count("<script") == 1  # its own
    ElementTree.fromstring(report.to_svg())


def test_dot(report, tmp_path):
    text = report.to_dot()
    assert text.count("{") == text.count("}") == 1
    nodes = set(re.findall(r"^  (n\d+) \[", text, re.MULTILINE))
    edges = re.findall(r"^  (n\d+) -> (n\d+)", text, re.MULTILINE)
    assert len(nodes) == 1 + 2 + 3 + 1
    assert {name for edge in edges for name in edge} == nodes
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg", "-o", str(tmp_path / "graph.svg")], input=text.encode(), check=True)


@pytest.mark.parametrize("name", ["numba.cuda", "numba_cuda_mlir.cuda"])
def test_python_functions_as_arguments_have_their_names(name):
    front_end = pytest.importorskip(name)
    library = autolink.cxx("template <class F> __device__ float twice(F f, float x) { return f(f(x)); }")

    def triple(x):
        return x * 3

    def kernel(x):
        x[0] = library.twice(triple, x[0])

    report = autolink.build(front_end.jit(kernel), "void(float32[::1])", cc=(9, 0)).report
    assert report.builds[0].calls[0].argtypes == ("function triple", "float32")
    assert "twice(function triple, float32)" in str(report)


def test_several_architectures_begin_with_a_table_and_tell_what_is_the_same_once(front_end):
    library = autolink.cxx("""
__device__ float plus(float x) { return x + 1; }
#if __CUDA_ARCH__ >= 1000
__device__ __noinline__ float apart(float x) { return x * 3; }
#else
__device__ float apart(float x) { return x * 2; }
#endif
""")

    @front_end.cuda.jit
    def kernel(x):
        x[0] = library.plus(x[0])
        x[1] = library.apart(x[1])

    report = autolink.report(kernel, "void(float32[::1])", cc=["8.0", "9.0", "10.0"])
    lines = str(report).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("          registers"))
    titles, *rows = (re.split(r" {2,}", line.strip()) for line in lines[at : at + 4])
    assert titles == ["registers", "shared", "stack", "spills", "occupancy", "inlined", "size"]
    assert [row[0] for row in rows] == ["sm_80", "sm_90", "sm_100"]
    assert [row[1] for row in rows] == [str(each.result.registers) for each in report.builds]
    assert [row[6] for row in rows] == ["2/2", "2/2", "1/2"]
    assert lines[at + 4] == "  not inlined for sm_100"
    assert re.fullmatch(r"    apart\(float32\) at test_report.py:\d+", lines[at + 5])
    assert sum(line.startswith("    1. plus(float32)") for line in lines) == 1
    assert "  2 calls of external code for sm_90: as for sm_80" in lines
    compiled_to = {code.compiled.sha256[:12] for each in report.builds for code in each.link.inputs[1:]}
    assert compiled_to <= {*re.findall(r"[0-9a-f]{12}", str(report))}
    at = lines.index("  2 calls of external code for sm_100: as for sm_80 but for")
    assert lines[at + 1 : at + 3] == ["    2. apart(float32)", "      inlined: no"]
    assert lines[at + 3].startswith("    code of plus and apart: compiled to LTO-IR, ")
    assert str(report).count("inputs: ") == 1
    assert sum("-arch=" in line for line in lines) == 1
    assert all(f"result for {each.arch}: cubin" in str(report) for each in report.builds)
    page = report.to_html()
    assert page.count('<span class="left" data-words="not inlined">no</span>') == 1
    assert page.count('<p class="faint">as for sm_80') == 2 and page.count("library.plus(x[0])") == 1
    assert page.count(">not inlined: (float32)<") == 1  # in the graph
    table = page[page.index("<h4>Architectures</h4>") :].partition("</table>")[0]
    assert "<th>occupancy</th><th>inlined</th>" in table
    assert ">1 of 2<" in table and ">100%<" in table


def test_calls_that_depend_on_the_architecture_are_all_shown():
    def answer():
        return autolink.CUDASource(adder("by_architecture"), name=f"named_{autolink.current_target().arch}.cu")

    by_architecture = Linked("by_architecture", answer).function

    def kernel(x):
        x[0] = by_architecture(x[1])

    report = autolink.report(cuda.jit(kernel), "void(int32[::1])", cc=["8.0", "9.0"])
    assert "named_sm_80.cu" in str(report) and "named_sm_90.cu" in str(report)


def test_of_many_calls_those_of_a_function_are_one_line(tmp_path):
    path = tmp_path / "few.cu"
    path.write_text("".join(f"__device__ float f{n}(float x) {{ return x + {n}; }}\n" for n in range(3)))
    path.write_text(path.read_text().replace("__device__ float f1", "__device__ __noinline__ float f1"))
    library = autolink.cxx(path)
    body = "".join(f"\n    x[{n}] = library.f{n % 3}(x[{n}])" for n in range(29))
    names = {"library": library}
    exec(f"def kernel(x):{body}", names)
    lines = [line.strip() for line in str(build(names["kernel"], "void(float32[::1])").report).splitlines()]
    at = lines.index("29 calls of external code for sm_90: more in HTML, JSON")
    assert lines[at + 1 : at + 4] == [
        "f0(float32) ×10 at <string>:2, 5, 8 and 7 more",  # noqa: RUF001 - as it is shown
        "f1(float32) ×10 at <string>:3, 6, 9 and 7 more, not inlined",  # noqa: RUF001
        "f2(float32) ×9 at <string>:4, 7, 10 and 6 more",  # noqa: RUF001
    ]
    assert lines[at + 4].startswith("link for sm_90")


def test_the_calls_of_an_input_are_in_order_and_many_pieces_are_their_number():
    library = autolink.cxx("".join(f"__device__ float f{n}(float x) {{ return x + {n}; }}\n" for n in range(3)))

    def inputs(number):
        body = "".join(
            f"\n    x[{n}] = {f'library.f{n // 2 % 2}' if n % 2 else 'cube_of'}(x[{n}])" for n in range(number)
        )
        names = {"library": library, "cube_of": autolink.cxx("__device__ float c(float x) { return x * x; }").c}
        exec(f"def kernel(x):{body}", names)
        return " ".join(str(build(names["kernel"], "void(float32[::1])").report).split())

    assert "of call 2, call 4, call 6 and call 8" in inputs(8)
    assert "of call 1, call 3, call 5 and call 7" in inputs(8)
    assert "LTO-IR, of 6 calls" in inputs(12)


def test_functions_of_templates_are_shown_without_the_type_of_their_result():
    for name, shown in {
        "float f5<4, float>(float)": "f5<4, float>(float)",
        "std::pair<int, float> ns::f<a b>(int) const": "ns::f<a b>(int) const",
        "decltype (a+b) f<int>(int)": "f<int>(int)",
        "float (anonymous namespace)::f<int>(int)": "(anonymous namespace)::f<int>(int)",
        "m::kernel(Array<float, 1, C>)": "m::kernel(Array<float, 1, C>)",
        "A::operator float() const": "A::operator float() const",
        "plain": "plain",
    }.items():
        assert without_result(name) == shown
    library = autolink.cxx("template <class T> __device__ __noinline__ T apart(T x) { return x * x + 2; }")

    def kernel(x):
        x[0] = library.apart(x[0])

    report = build(kernel, "void(float32[::1])").report
    assert "apart<float>(float) called" in str(report)
    assert "apart<float>(float)" in [each.name for each in report.builds[0].result.functions]


def test_an_item_of_a_library_given_as_text_is_its_name_alone(tmp_path):
    comment = "// a comment that is so long that it is all that the repr has"
    text = f"{comment}\n__device__ float of_text(float x) {{ return x; }}"
    (tmp_path / "filed.cu").write_text(text.replace("of_text", "of_file"))
    given, filed = autolink.cxx(text), autolink.cxx(tmp_path / "filed.cu")

    def kernel(x):
        x[0] = given.of_text(filed.of_file(x[0]))

    report = build(kernel, "void(float32[::1])").report
    assert str(report).count("object:") == 1
    assert "['of_file']" in str(report) and "['of_text']" not in str(report)


def test_what_was_launched_in_the_emulator_has_the_options_of_its_decorator():
    with autolink.emulated():
        x = np.zeros(1, np.float32)
        for options, expected in ({}, "False"), ({"lineinfo": True}, "True"):
            launched = cuda.jit(**options)(_add_one)
            launched[1, 1](x)
            assert dict(autolink.report(launched).builds[0].options)["lineinfo"] == expected
    assert x[0] == 2


def _add_one(x):
    x[0] += 1


def test_lambdas_name_the_code_that_they_share(front_end):
    library = autolink.cxx("")
    names = {f"lambda{n}": library.expr(f"[](auto x) {{ return x * {n}.0f; }}") for n in (2, 3)}
    exec("def kernel(x):\n    x[0] = lambda2(x[0]) + lambda3(x[1])", names)
    report = autolink.report(front_end.cuda.jit(names["kernel"]), "void(float32[::1])", cc=CC)
    assert "code of lambda at test_report.py:" in " ".join(str(report).split())


LAMBDAS = """
library = autolink.cxx("#include <cuda/std/cmath>")
def scaled(n):
    return library.expr(f"[](float x, float y, float z) {{ return cuda::std::fma(x, y, z) * {n}; }}")
plus = library.expr("[](float x, float y, float z) { return cuda::std::fma(x, y, z) + 1; }")
minus = library.expr("[](float x, float y, float z) { return cuda::std::fma(x, y, z) - 1; }")
double = scaled(2)
sums = [library.expr(f"[](auto x, auto y, auto z) {{ return x + y + z + {n}; }}") for n in (5, 6)]
first, second = sums
def kernel(x):
    x[0] = plus(x[0], x[1], x[2])
    x[1] = minus(x[0], x[1], x[2])
    x[2] = double(x[0], x[1], x[2])
    x[3] = first(x[0], x[1], x[2]) + second(x[0], x[1], x[2])
"""


@pytest.fixture
def of_lambdas(front_end, tmp_path):
    def report(*edits, **options):
        text = LAMBDAS
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "lambdas.py"
        path.write_text(text)
        linecache.checkcache(str(path))
        names = {"autolink": autolink, "__name__": "lambdas"}
        exec(compile(text, path, "exec"), names)
        return autolink.report(front_end.cuda.jit(**options)(names["kernel"]), "void(float32[::1])", cc=CC)

    return report


def test_lambdas_have_the_names_of_their_variables_or_lines_and_their_code_beside(of_lambdas):
    report = of_lambdas(lto=False)
    names = ["plus", "minus", "double", "lambda at lambdas.py:8 #1", "lambda at lambdas.py:8 #2"]
    build = report.builds[0]
    assert [call.name for call in build.calls] == names
    assert [call.returned[0].name for call in build.calls] == [f"{name}(float32, float32, float32)" for name in names]
    assert {f"{name}(float32, float32, float32)" for name in names} <= {each.name for each in build.result.functions}
    page, text = report.to_html(), " ".join(str(report).split())
    for call in build.calls:
        assert text.count(call.expression) == page.count(f"<code>{html.escape(call.expression)}</code>") == 1
    assert autolink.Report.from_json(report.to_json()) == report
    assert pickle.loads(pickle.dumps(build.calls)) == build.calls


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ((("z) - 1", "z) - 2"),), ["C++ of minus: …fma(x, y, z) - 1; } → …fma(x, y, z) - 2; }"]),
        ((("plus(x", "PLUS(x"), ("minus(x", "plus(x"), ("PLUS(x", "minus(x")), ["kernel (lambdas.py:10) was edited"]),
        ((("scaled(2)", "scaled(3)"),), ["C++ of double: …fma(x, y, z) * 2; } → …fma(x, y, z) * 3; }"]),
        (
            (("sums =", "\nsums ="), ("(5, 6)", "(5, 7)")),
            ["C++ of lambda at lambdas.py:9 #2: …x + y + z + 6; } → …x + y + z + 7; }"],
        ),
        ((("sums =", "\nsums ="),), []),
        (
            (("minus(x[0]", "plus(x[0]"),),
            [
                "kernel (lambdas.py:10) was edited",
                "call at lambdas.py:12: minus(float32, float32, float32) → plus(float32, float32, float32)",
            ],
        ),
    ],
)
def test_an_edit_of_a_lambda_is_one_line_and_others_are_told_apart_by_their_text(of_lambdas, edits, expected):
    found = of_lambdas(*edits).changes_since(of_lambdas()).replace("sm_90: ", "").splitlines()
    assert [each for each in found if not each.startswith(("function ", "registers: ", "nothing"))] == expected


def test_a_lambda_that_is_passed_to_cxx_has_the_name_of_its_variable(front_end):
    library = autolink.cxx("template <class F> __device__ float apply(F f, float x) { return f(x); }")
    twice = library.expr("[](float x) { return x * 2; }")

    @front_end.cuda.jit
    def kernel(x):
        x[0] = library.apply(twice, x[0])

    (call,) = autolink.report(kernel, "void(float32[::1])", cc=CC).builds[0].calls
    assert call.arguments == "(twice, float32)"


def test_a_kernel_that_is_passed_to_cxx_is_refused_in_one_sentence():
    library = autolink.cxx("template <class F> __device__ float apply(F f, float x) { return f(x); }")
    names = {"apply": library.apply, "cuda": cuda}
    exec("@cuda.jit\ndef grow(x): x[0] = 1\n@cuda.jit\ndef kernel(x):\n    x[0] = apply(grow, x[0])", names)
    with pytest.raises(TypingError, match=r"^C\+\+ takes a device function, got the kernel 'grow'\n"):
        autolink.report(names["kernel"], "void(float32[::1])", cc=CC)


def test_the_size_of_a_report_is_linear_in_the_calls():
    square = autolink.cxx("__device__ float square(float x) { return x * x; }").square

    def size(calls):
        names = {"square": square}
        lines = "".join(f"    x[{n}] = square(x[{n}])\n" for n in range(calls))
        exec(f"def kernel(x):\n    x[0] = 0\n{lines}", names)
        report = autolink.report(cuda.jit(names["kernel"]), "void(float32[::1])", cc=CC)
        assert autolink.Report.from_json(report.to_json()) == report
        return len(report.to_json())

    of_no_call, of_ten, of_forty = size(0), size(10), size(40)
    assert of_forty - of_no_call < 4.5 * (of_ten - of_no_call)


def test_a_kernel_of_numba_cuda_mlir_without_external_code_says_who_chose_no_lto():
    mlir = pytest.importorskip("numba_cuda_mlir").cuda

    def kernel(x):
        x[0] = 1

    report = autolink.report(mlir.jit(kernel), "void(float32[::1])", cc=CC)
    assert "numba-cuda-mlir compiles a kernel without external code so" in report.builds[0].link.why
