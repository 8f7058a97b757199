# SPDX-License-Identifier: BSD-2-Clause
"""What changed between two reports of a kernel in a file that is edited: its own code, options, architecture."""

import linecache
import re
from pathlib import Path

import pytest
from autolink_support import CC, build
from numba import cuda
from numba.cuda import autolink
from numba.cuda.autolink.reports.comparison import changes

KERNELS = """
ops = autolink.cxx("ops.cu")
FACTOR = 3


class Hooked(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        def inside(x):
            return x + 5
        return inside


hooked = Hooked()


@cuda.jit(device=True)
def doubled(x):
    return x * 2


@cuda.jit
def kernel(x):
    x[0] = ops.first(doubled(x[0]))
    x[1] = ops.second(x[1]) + hooked(x[2])
    x[3] += FACTOR
"""
OPS = """
__device__ __noinline__ float helper(float x) { return x / 3 + 1; }
__device__ __noinline__ float other(float x)
{
#if __CUDA_ARCH__ >= 1000 || defined(SIXTEEN)
    return x * 16;
#else
    return x * 8;
#endif
}
__device__ float first(float x) { return helper(x) + other(x); }
__device__ float second(float x) { return helper(x) * 2; }
"""


@pytest.fixture
def reported(tmp_path, front_end):
    """Return a function that reports the kernel after edits, pairs of an old and a new text, of either file."""

    def report(*edits, cc=CC):
        texts = {"kernels.py": KERNELS.replace("ops.cu", str(tmp_path / "ops.cu")), "ops.cu": OPS}
        for old, new in edits:
            assert any(old in text for text in texts.values())
            texts = {name: text.replace(old, new) for name, text in texts.items()}
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        linecache.checkcache()
        path = tmp_path / "kernels.py"
        namespace = {"cuda": front_end.cuda, "autolink": autolink, "__name__": "kernels"}
        exec(compile(path.read_text(), str(path), "exec"), namespace)
        return autolink.report(namespace["kernel"], "void(float32[::1])", cc=cc)

    return report


def of_code(before, now):
    """Return what `changes` says but of the result."""
    results = ("registers", "stack", "shared", "spill", "occupancy", "result", "inlined", "function ", "entry name")
    return [each.what for each in changes(before, now) if not each.what.startswith((*results, "architecture"))]


def option(text):
    return "@cuda.jit\ndef kernel", f"@cuda.jit({text})\ndef kernel"


HELPER = "x / 3 + 1", "x / 3 + 2"
HELPER_EDITED = "helper(float) in ops.cu, called by first(float64) and second(float32), was edited"


def test_the_kernels_own_code(reported, front_end):
    before = reported()
    assert of_code(before, reported()) == []
    assert of_code(before, reported(("x[3] +=", "x[3] -="))) == ["kernel (kernels.py:21) was edited"]
    of_device_function = of_code(before, reported(("x * 2\n\n", "x * 3\n\n")))
    in_hook = of_code(before, reported(("x + 5", "x + 6")))
    assert of_device_function == ["doubled (kernels.py:16) was edited"]
    known = front_end.name == "numba-cuda"  # the other one knows no function that it does not inline without calls
    assert in_hook == ["inside (kernels.py:8) was edited" if known else "the kernel's own code was edited"]
    assert "FACTOR in kernel (kernels.py:21): 3 → 4" in reported(("FACTOR = 3", "FACTOR = 4")).changes_since(before)
    assert of_code(before, reported(HELPER)) == [HELPER_EDITED]


def test_an_edited_text_changes_names_in_the_kernels_own_code_alone(reported):
    def with_third(result):
        text = f"{OPS}__device__ float third(float x) {{ return {result}; }}"
        return 'ops = autolink.cxx("', f'ops = autolink.cxx({text!r})  # "'

    before, now = reported(with_third("x + 4")), reported(with_third("x + 5"))
    own = [report.builds[0].link.inputs[0] for report in (before, now)]
    assert all(code.own for code in own)
    assert own[0].sha256 != own[1].sha256
    assert changes(before, now) == []
    in_kernel = changes(before, reported(with_third("x + 5"), ("x[3] +=", "x[3] -=")))
    assert "kernel (kernels.py:21) was edited" in [each.what for each in in_kernel]
    assert "device_as_default" not in str(before)


def test_options_of_the_kernel(reported):
    before = reported()
    assert "option fastmath" in of_code(before, reported(option("fastmath=True")))

    def causes(now):
        return [each for each in of_code(before, now) if not each.startswith("call ")]

    assert causes(reported(option("lto=False"))) == ["option lto"]
    for cc in (CC, (10, 0)):
        assert causes(reported(option("lto=False"), HELPER, cc=cc)) == [
            "option lto",
            HELPER_EDITED,
        ]


@pytest.mark.parametrize("given", ["launch_bounds=64", "opt=False", "forceinline=True"])
def test_each_option_of_the_kernel_that_is_given_is_named(reported, front_end, given):
    name, _, value = given.partition("=")
    if front_end.name != "numba-cuda" and name == "opt":
        name, value = "opt_level", "0"
    before, now = reported(), reported(option(given))
    assert f"option {name}: default → {value}" in now.changes_since(before)
    assert f"option {name}: {value} → default" in before.changes_since(now)
    assert f"options of the kernel: {name}={value}" in str(now)
    assert "options of the kernel" not in str(before)


def test_many_calls_that_are_inlined_no_more(front_end):
    def build(lto):
        ops = autolink.cxx("".join(f"__device__ float f{n}(float x) {{ return x * x + {n}; }}\n" for n in range(6)))

        @front_end.cuda.jit(lto=lto)
        def kernel(x):
            x[0] = ops.f0(x[0]) + ops.f1(x[1]) + ops.f2(x[2]) + ops.f3(x[3]) + ops.f4(x[4]) + ops.f5(x[5])

        return autolink.report(kernel, "void(float32[::1])", cc=CC)

    before, now = build(True), build(False)
    lines = now.changes_since(before).splitlines()
    arch = now.builds[0].arch
    assert f"{arch}: inlined: 6 of 6 → 0 of 6" in lines
    (functions,) = [line for line in lines if "6 new functions" in line]
    assert re.fullmatch(rf"{arch}: 6 new functions: nothing → f\d, f\d, f\d and 3 more, [\d.]+ (KiB|bytes)", functions)
    assert not [line for line in lines if ": call f" in line]
    assert any("kernel(…): " in line for line in lines)


def test_one_call_that_is_inlined_no_more(front_end):
    def build(lto):
        ops = autolink.cxx("__device__ float f(float x) { return x * x + 3; }")

        @front_end.cuda.jit(lto=lto)
        def kernel(x):
            x[0] = ops.f(x[0])

        return autolink.report(kernel, "void(float32[::1])", cc=CC)

    assert "call f(float32): inlined → called" in build(False).changes_since(build(True))


def test_the_kernels_lambda_is_named(front_end):
    def build(number):
        ops = autolink.cxx("template <class F> __device__ float f(float x, F op) { return op(x) + 3; }")
        text = f"def kernel(x):\n    x[0] = f(x[0], lambda a: a * {number})\n"
        names = {"f": ops.f}
        exec(text, names)
        return autolink.report(front_end.cuda.jit(names["kernel"]), "void(float32[::1])", cc=CC)

    found = [each.what for each in changes(build(7), build(8))]
    assert any(what.startswith("<lambda> (") and what.endswith(" was edited") for what in found)
    assert not [what for what in found if "_lambda_" in what]


def test_python_that_cxx_calls_is_the_same_for_another_architecture_and_without_lto(front_end):
    def build(number, lto=True, cc=CC):
        ops = autolink.cxx("template <class F> __device__ float f(float x, F op) { return op(x) + 3; }")

        def best(a):
            return a * a * number

        @front_end.cuda.jit(lto=lto)
        def kernel(x):
            x[0] = ops.f(x[0], best)

        return autolink.report(kernel, "void(float32[::1])", cc=cc)

    def of_python(before, now):
        return [str(each) for each in changes(before, now) if "edited" in each.what or " in best" in each.what]

    before = build(7)
    for options in ({"lto": False}, {"cc": (10, 0)}, {"lto": False, "cc": (10, 0)}):
        assert of_python(before, build(7, **options)) == []
        edited = of_python(before, build(8, **options))
        assert re.fullmatch(r"sm_\S+( → sm_\S+)?: number in best \(test_comparison.py:\d+\): 7 → 8", edited[0])
        assert len(edited) == 1


def test_text_that_is_not_json_is_no_report():
    with pytest.raises(ValueError, match=r"^the text is not a report, since it is not JSON: .*line 1 column 6"):
        autolink.Report.from_json('{"a":')


def test_options_of_cxx(reported):
    before = reported()
    with_option = ('ops.cu")', 'ops.cu", options={"use_fast_math": True}, defines={"SIXTEEN": 1})')
    report = reported(with_option)
    names = ["option -DSIXTEEN of ops.cu", "option use_fast_math of ops.cu"]
    assert of_code(before, report) == names
    assert of_code(before, reported(with_option, HELPER)) == [*names, "ops.cu was edited"]
    options = report.builds[0].calls[0].returned[0].options
    assert {("use_fast_math", "True"), ("-DSIXTEEN", "1")} <= {*options}
    assert "use_fast_math=True" in str(report) and "use_fast_math=True" in report.to_html()
    assert autolink.Report.from_json(report.to_json()) == report
    assert dict(before.builds[0].options)["lto"] == "True"


def test_another_architecture_names_what_was_edited_alone(reported):
    before = reported()
    assert of_code(before, reported(cc=(10, 0))) == []
    assert of_code(before, reported(HELPER, cc=(10, 0))) == [HELPER_EDITED]
    assert of_code(before, reported(("x * 8", "x * 7"), cc=(10, 0))) == [
        "other(float) in ops.cu, called by first(float64), was edited"
    ]


@pytest.mark.parametrize(("cc", "arch"), [("9.0a", "sm_90a"), ("10.0", "sm_100")])
def test_another_architecture_is_said_first(reported, cc, arch):
    now = reported(cc=cc)
    lines = now.changes_since(reported(cc="9.0")).splitlines()
    assert lines[0] == f"all: architecture: sm_90 → {arch}"
    assert now.changes_since(now) == "nothing changed"


def test_the_versions_name_the_front_end(reported, front_end):
    versions = dict(reported().versions)
    assert front_end.name in versions
    assert {"Python", "numba-cuda-autolink", "NVRTC"} <= versions.keys()
    assert {"numba-cuda", "numba-cuda-mlir"} - {front_end.name} - versions.keys()


PERIODIC = """
__device__ float f0(float x) { return x * 1.5f; }
__device__ float f1(float x) { return x * 2.5f; }
__device__ float f2(float x) { return x * 3.5f + 1; }
"""


def called_in_turn(front_end, path, calls, text=PERIODIC):
    """Return the report of a kernel in the file *path* with one line for each of *calls*, from line 2 on."""
    lines = ["def kernel(x):", *(f"    x[0] = {call}" for call in calls)]
    path.write_text("\n".join(lines) + "\n")
    linecache.checkcache()
    names = {"ops": autolink.cxx(text)}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return autolink.report(front_end.cuda.jit(names["kernel"]), "void(float32[::1])", cc=CC)


def of_calls(before, now):
    found = changes(before, now)
    return [(each.what, each.before, each.now) for each in found if each.what.startswith(("call", "f2(", "2 ca"))]


@pytest.mark.parametrize("at", [0, 1, 2, 9, 17, 23])
def test_an_edited_line_among_calls_of_the_same_functions_is_the_one_that_is_named(front_end, tmp_path, at):
    calls = [f"ops.f{number % 2}(x[0])" for number in range(24)]
    before = called_in_turn(front_end, tmp_path / "turns.py", calls)
    edited = [*calls[:at], "ops.f2(x[0])", *calls[at + 1 :]]
    now = called_in_turn(front_end, tmp_path / "turns.py", edited)
    assert of_calls(before, now) == [(f"call at turns.py:{at + 2}", f"f{at % 2}(float32)", "f2(float32)")]
    without = called_in_turn(front_end, tmp_path / "turns.py", [*calls[:at], *calls[at + 1 :]])
    ((what, *sides),) = of_calls(before, without)
    assert what.startswith(f"call removed: f{at % 2}(float32) at turns.py:") and what.endswith(", inlined")
    assert sides == [None, None]


def test_two_calls_that_change_places_are_the_same(front_end, tmp_path):
    calls = ["ops.f0(x[0])", "ops.f1(x[0])", "ops.f2(x[0])"]
    before = called_in_turn(front_end, tmp_path / "turns.py", calls)
    assert of_calls(before, called_in_turn(front_end, tmp_path / "turns.py", [calls[1], calls[0], calls[2]])) == []


def test_calls_that_differ_alike_are_one_change(front_end, tmp_path):
    calls = ["ops.f2(x[0])", "ops.f0(x[0])", "ops.f2(x[0])"]
    before = called_in_turn(front_end, tmp_path / "turns.py", calls)
    apart = called_in_turn(
        front_end, tmp_path / "turns.py", calls, PERIODIC.replace("float f2", "__noinline__ float f2")
    )
    of_f2 = "2 calls of f2(float32) at turns.py:2 and 4"
    edited = ("f2(float) was edited", None, None)
    assert of_calls(before, apart) == [edited, (of_f2, "inlined", "called")]
    edited = called_in_turn(front_end, tmp_path / "turns.py", calls, PERIODIC.replace("+ 1", "+ 2"))
    assert [each.what for each in changes(before, edited) if each.is_edit] == ["f2(float) was edited"]
    replaced = called_in_turn(front_end, tmp_path / "turns.py", [each.replace("f2", "f1") for each in calls])
    assert of_calls(before, replaced) == [("2 calls at turns.py:2 and 4", "f2(float32)", "f1(float32)")]


def test_an_edit_of_python_that_cxx_calls_is_one_change(front_end):
    def build(number):
        ops = autolink.cxx("template <class F> __device__ float f(float x, F op) { return op(x) + 3; }")

        @front_end.cuda.jit(device=True)
        def scaled(a):
            return a * number

        @front_end.cuda.jit
        def kernel(x):
            x[0] = ops.f(x[0], scaled)

        return autolink.report(kernel, "void(float32[::1])", cc=CC)

    (change,) = [each for each in changes(build(7), build(8)) if not each.what.startswith(("result", "function"))]
    assert re.fullmatch(r"number in scaled \(test_comparison.py:\d+\)", change.what)
    assert (change.before, change.now) == ("7", "8")


@pytest.mark.parametrize("lto", [True, False])
def test_an_edit_of_one_function_of_a_text_is_one_change_and_no_name_has_a_digest(front_end, lto):
    text = """
        __device__ float helper(float x) { return x * 2.0f; }
        __device__ float one(float x) { return helper(x) + 1.0f; }
        __device__ float two(float x) { return x * x + 3.0f; }
    """

    def build(text):
        names = {"lib": autolink.cxx(text)}
        exec("def kernel(x):\n    x[0] = lib.one(x[0]) + lib.two(x[1])", names)
        return autolink.report(front_end.cuda.jit(names["kernel"], lto=lto), "void(float32[::1])", cc=CC)

    before, now = build(text), build(text.replace("3.0f", "4.0f"))
    assert now.changes_since(before) == f"{now.builds[0].arch}: two(float) was edited"


def test_edits_of_python_functions_that_cxx_calls_are_told_by_name_and_place(front_end, tmp_path):
    source = """
lib = autolink.cxx("template <class F> __device__ __noinline__ float apply(F f, float x) { return f(x) + 1; }")
SHIFT = 3


@device(device=True)
def inner(x):
    return x * x


@device(device=True)
def grow(x):
    return inner(x) + SHIFT


class Twice(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        f, apply = autolink.device_function(grow, x), lib.apply
        return lambda x: apply(f, x) + f(x)


twice = Twice()


def kernel(x):
    x[0] = twice(x[0])
"""

    def build(name, old="", new=""):
        path = tmp_path / name
        path.write_text(source.replace(old, new, 1))
        names = {"autolink": autolink, "device": cuda.jit, "__name__": path.stem}
        exec(compile(path.read_text(), str(path), "exec"), names)
        return autolink.report(front_end.cuda.jit(names["kernel"]), "void(float32[::1])", cc=CC)

    before = build("before.py")

    def edits(name, *edit):
        lines = build(name, *edit).changes_since(before).splitlines()
        assert not [line for line in lines if re.search("[0-9a-f]{8}", line)]
        return [line.partition(": ")[2] for line in lines if "function " not in line and "result" not in line]

    assert build("moved.py").changes_since(before) == "nothing changed"
    assert edits("a.py", "+ SHIFT", "- SHIFT") == ["grow (a.py:11) was edited"]
    assert edits("b.py", "x * x", "x * x * x") == ["inner (b.py:6) was edited"]
    assert edits("c.py", "SHIFT = 3", "SHIFT = 4") == ["SHIFT in grow (c.py:11): 3 → 4"]


def test_only_line_information_differs_after_a_comment(reported):
    before = reported(option("lineinfo=True, lto=False"))
    now = reported(option("lineinfo=True, lto=False"), ("FACTOR = 3", "# A comment.\nFACTOR = 3"))
    assert now.changes_since(before) == f"{now.builds[0].arch}: only line information differs"


def test_what_all_architectures_have_in_common_is_said_once(front_end):
    def build(number):
        names = {"lib": autolink.cxx(f"__device__ __noinline__ float f(float x) {{ return x + {number}; }}")}
        exec("def kernel(x):\n    x[0] = lib.f(x[0])", names)
        return autolink.report(front_end.cuda.jit(names["kernel"]), "void(float32[::1])", cc=[(8, 0), (9, 0)])

    assert build(2).changes_since(build(1)).splitlines() == ["all: f(float) was edited"]


def test_edits_of_many_functions_are_one_line(front_end):
    def build(sign):
        lib = autolink.cxx(
            "".join(f"__device__ float f{n}(float x) {{ return x {sign} {n + 2}; }}\n" for n in range(10))
        )
        names = {"lib": lib}
        exec(f"def kernel(x):\n    x[0] = {' + '.join(f'lib.f{n}(x[{n}])' for n in range(10))}", names)
        return autolink.report(front_end.cuda.jit(names["kernel"]), "void(float32[::1])", cc=CC)

    edits = [each.what for each in changes(build("+"), build("-")) if each.is_edit]
    assert edits == [f"{', '.join(f'f{n}(float)' for n in range(7))} and 3 more were edited"]


def test_an_edit_of_what_a_python_function_that_cxx_calls_calls_is_seen(front_end):
    def build(factor):
        lib = autolink.cxx("template <class F> __device__ float apply(F f, float x) { return f(x) + 1; }")
        names = {"lib": lib, "cuda": front_end.cuda}
        exec(f"@cuda.jit(device=True)\ndef inner(x):\n    return x * {factor}", names)
        exec("@cuda.jit(device=True)\ndef grow(x):\n    return inner(x) + 3", names)
        exec("def kernel(x):\n    x[0] = lib.apply(grow, x[0])", names)
        return autolink.report(front_end.cuda.jit(names["kernel"]), "void(float32[::1])", cc=CC)

    before = build(2)
    assert build(2).changes_since(before) == "nothing changed"
    (edit,) = [each.what for each in changes(before, build(3)) if each.is_edit]
    assert edit in ("inner (<string>:1) was edited", "code of apply(function grow, float32) was edited")


def test_what_a_python_function_that_cxx_calls_calls_in_cxx_is_known(front_end):
    text = """
        __device__ float twice(float x) { return x * 2.5f + 9.0f; }
        __device__ __noinline__ float big(float x) {
            float s = 0; for (int i = 1; i < 97; ++i) s += 1.0f / (x + i); return s; }
        template <class F> __device__ float apply(F f, float x) { return f(f(x)); }
    """

    def report(name, text=text):
        lib = autolink.cxx(text)
        names = {"lib": lib, "cuda": front_end.cuda, "__name__": "kernels"}
        source = (
            f"@cuda.jit(device=True)\ndef dev(x):\n    return lib.{name}(x)\n"
            "@cuda.jit\ndef kernel(x):\n    x[0] = lib.apply(dev, x[0])\n"
        )
        path = f"<{name}>"
        linecache.cache[path] = len(source), None, source.splitlines(keepends=True), path
        exec(compile(source, path, "exec"), names)
        return autolink.report(names["kernel"], "void(float32[::1])", cc=CC)

    inlined, left = report("twice"), report("big")
    assert [each.inlined for each in inlined.builds[0].calls] == [True] * len(inlined.builds[0].calls)
    assert len(inlined.builds[0].calls) == 2
    assert "inlined 2 of 2" in str(inlined)
    assert [(each.inlined, each.called) for each in left.builds[0].calls][1] == (False, ("big(float)",))
    assert "inlined 0 of 2" in str(left)
    edited = text.replace("i < 97", "i < 96")
    assert changes(inlined, report("twice", edited)) == []
    assert of_code(left, report("big", edited)) == ["big(float) was edited"]


def test_an_edit_of_a_function_that_is_inlined_before_types_are_known_is_seen(front_end):
    library = autolink.cxx("template <class F> __device__ float apply(F f, float x) { return f(f(x)); }")

    def report(factor):
        source = (
            f"@cuda.jit(device=True, inline='always')\ndef inner(x):\n    return x * {factor}\n"
            "@cuda.jit(device=True)\ndef grow(x):\n    return inner(x) + 1\n"
            "@cuda.jit\ndef kernel(x):\n    x[0] = library.apply(grow, x[0])\n"
        )
        names = {"library": library, "cuda": front_end.cuda, "__name__": "kernels"}
        path = "<inlined>"
        linecache.cache[path] = len(source), None, source.splitlines(keepends=True), path
        exec(compile(source, path, "exec"), names)
        return autolink.report(names["kernel"], "void(float32[::1])", cc=CC)

    assert of_code(report(3), report(4)) == ["inner (<inlined>:1) was edited"]


EDITED = """
#include "util.cuh"
__constant__ float table[3] = {1, 2, 3};
__device__ float f(float x) { return deep(x) + 1.0f; }
__device__ float h(float x) { return x + table[1]; }
__device__ __noinline__ float slow(float x) { float s = 0; for (int i = 1; i < 99; ++i) s += 1.0f / (x + i); return s; }
"""
UTIL = "__device__ inline float deep(float x) { return x * 2.0f; }\n"
FUNCTION = """
factor = 3
@cuda.jit(device=True)
def grow(x, k=2.0):
    return x * factor + k
@cuda.jit
def kernel(x):
    x[0] = grow(library.f(x[0])) + library.h(x[1]) + library.slow(x[2])
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("x * 2.0f", "x - 2.0f", ["deep(float) in util.cuh, called by f(float32), was edited"]),
        ("{1, 2, 3}", "{1, 5, 3}", ["table in edited.cu, used by h(float32), was edited"]),
        ("__noinline__ ", "", ["slow(float) in edited.cu was edited"]),
        ("k=2.0", "k=5.0", ["k in grow (edited.py:3): 2.0 → 5.0"]),
        (
            "factor = 3\n@cuda.jit(device=True)\ndef grow(x, k=2.0):\n    return x * factor + k",
            "factor = 4\n@cuda.jit(device=True)\ndef grow(x, k=2.0):\n    return x * factor - k",
            ["grow (edited.py:3) was edited", "factor in grow (edited.py:3): 3 → 4"],
        ),
    ],
)
def test_each_effect_has_its_cause_with_its_file(front_end, tmp_path, old, new, expected):
    def report(old, new):
        texts = {"edited.cu": EDITED, "util.cuh": UTIL, "edited.py": FUNCTION}
        for name, text in texts.items():
            (tmp_path / name).write_text(text.replace(old, new))
        linecache.checkcache()
        path = tmp_path / "edited.py"
        names = {"library": autolink.cxx(tmp_path / "edited.cu"), "cuda": front_end.cuda, "__name__": "edited"}
        exec(compile(path.read_text(), str(path), "exec"), names)
        return autolink.report(names["kernel"], "void(float32[::1])", cc=CC)

    found = [each for each in changes(report(old, old), report(old, new)) if each.is_edit or " in grow" in each.what]
    assert [str(each).removeprefix("sm_90: ") for each in found] == expected


TYPES = {
    "types.cu": """
#include "types.cuh"
struct P { float a; float b; };
enum Mode { slow = 1, fast = 2 };
typedef float real;
template <class T> struct Tr { static constexpr int n = 3; };
namespace geo { struct Q { P p; int n; __device__ float len() const { return p.a * n; } }; }
__device__ float f1(float x) { P p{x, x * 2}; return p.a * p.a + p.b; }
__device__ float f2(float x) { geo::Q q{{x, 1}, 3}; return q.len(); }
__device__ float f3(float x) { return x * fast + real(x) / 3; }
__device__ float f4(float x) { return x * Tr<int>::n; }
__device__ float f5(float x) { V v{x, 2}; return v.a * v.a + v.b; }
__device__ float f6(float x) {
#ifdef EXTRA
    return x + 1;
#else
    return x - 1;
#endif
}
__device__ __noinline__ float f7(float x) { return helper(x) / x; }
""",
    "types.cuh": """
struct V { float a, b; };
__device__ __noinline__ float helper(float x) { return x * 3; }
""",
}


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        (
            [("float a; float b;", "float b; float a;")],
            ["P in types.cu, used by f1(float32) and f2(float32), was edited"],
        ),
        ([("fast = 2", "fast = 4")], ["Mode in types.cu, used by f3(float32), was edited"]),
        ([("float real", "double real")], ["real in types.cu, used by f3(float32), was edited"]),
        ([("n = 3; }", "n = 4; }")], ["Tr in types.cu, used by f4(float32), was edited"]),
        ([("float a, b;", "float b, a;")], ["V in types.cuh, used by f5(float32), was edited"]),
        ([("p.a * n;", "p.b * n;")], ["geo::Q::len() const in types.cu, called by f2(float32), was edited"]),
        ([("struct V", "#define EXTRA 1\nstruct V")], ["f6(float) was changed by an edit of types.cuh"]),
        (
            [("helper(x) / x", "helper(x) * x"), ("x * 3;", "x * 5;")],
            ["helper(float) in types.cuh, called by f7(float32), was edited", "f7(float) in types.cu was edited"],
        ),
        ([("struct V", "// a comment\nstruct V"), ("x - 1", "x - 2")], ["f6(float) in types.cu was edited"]),
        ([("float f6(float x)", "float f6(double x)")], ["f6(double) in types.cu was edited"]),
    ],
)
def test_a_function_was_edited_only_if_its_own_text_differs(front_end, tmp_path, edited, expected):
    def report(*edited):
        texts = TYPES
        for old, new in edited:
            assert any(old in text for text in texts.values())
            texts = {name: text.replace(old, new) for name, text in texts.items()}
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        names = {"library": autolink.cxx(tmp_path / "types.cu")}
        source = f"def kernel(x):\n    x[0] = {' + '.join(f'library.f{n}(x[{n}])' for n in range(1, 8))}\n"
        linecache.cache["<types>"] = 1, None, source.splitlines(keepends=True), "<types>"
        exec(compile(source, "<types>", "exec"), names)
        return autolink.report(front_end.cuda.jit(names["kernel"]), "void(float32[::1])", cc=CC)

    found = [each for each in edits(report(), report(*edited)) if "machine code" not in each]
    assert found == expected


CLOSURES = """
def times(n):
    def inner(x):
        return x * n
    return inner
twice, thrice = times(2.0), times(3.0)
def op(x):
    return x + 1
plus = op
def op(x):
    return x - 1
minus = op
def kernel(x):
    x[0] = library.apply(twice, x[0]) + library.apply(plus, x[0])
    x[1] = library.apply(thrice, x[1]) + library.apply(minus, x[1])
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "times(2.0), times(3.0)",
            "times(3.0), times(2.0)",
            [
                "call apply(function inner, float32) at edited.py:14: "
                "function inner with n=2.0 → function inner with n=3.0",
                "call apply(function inner, float32) at edited.py:15: "
                "function inner with n=3.0 → function inner with n=2.0",
            ],
        ),
        (
            "plus = op\ndef op(x):\n    return x - 1\nminus = op",
            "minus = op\ndef op(x):\n    return x - 1\nplus = op",
            [
                "call apply(function op, float32) at edited.py:14: "
                "function op at edited.py:7 → function op at edited.py:10",
                "call apply(function op, float32) at edited.py:15: "
                "function op at edited.py:10 → function op at edited.py:7",
            ],
        ),
        ("def op", "\ndef op", []),
        ("times(3.0)", "times(4.0)", ["n in inner (edited.py:3): 3.0 → 4.0"]),
    ],
)
def test_python_functions_of_one_name_are_told_apart(front_end, tmp_path, old, new, expected):
    def report(text):
        path = tmp_path / "edited.py"
        path.write_text(text)
        linecache.checkcache()
        library = autolink.cxx("template <class F> __device__ float apply(F f, float x) { return f(x); }")
        names = {"library": library, "__name__": "edited"}
        exec(compile(text, str(path), "exec"), names)
        return autolink.report(front_end.cuda.jit(names["kernel"]), "void(float32[::1])", cc=CC)

    before = report(CLOSURES)
    arguments = [call.arguments for call in before.builds[0].calls]
    assert sorted(arguments) == [
        "(function inner with n=2.0, float32)",
        "(function inner with n=3.0, float32)",
        "(function op at edited.py:10, float32)",
        "(function op at edited.py:7, float32)",
    ]
    titles = [code.title for code in before.builds[0].link.inputs]
    assert len(set(titles)) == len(titles) and "inner(float32) with n=2.0" in titles
    found = report(CLOSURES.replace(old, new)).changes_since(before).replace("sm_90: ", "").splitlines()
    assert [line for line in found if not line.startswith(("function kern", "nothing", "function edited"))] == expected


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ("FACTOR 3", "FACTOR 4", ["FACTOR in values.cu, used by first(float32) and second(float32), was edited"]),
        ("OFFSET = 1", "OFFSET = 2", ["OFFSET in values.cu, used by first(float32), was edited"]),
        (
            "* 3.0f; }  // the second",
            "* 4.0f; }",
            ["second(float) in values.cu was edited"],
        ),
        ("FACTOR 3.0f", "FACTOR /* a comment */ 3.0f  // and one", []),
        (
            "3, 4}",
            "3, 5}",
            [
                "table in values.cu, used by third(float32), was edited",
                "the machine code is the same; initial values of variables differ",
            ],
        ),
    ],
)
def test_an_edit_of_a_macro_a_constant_or_data_names_it(tmp_path, old, new, expected):
    path = tmp_path / "values.cu"

    def report(text):
        path.write_text(text)
        library = autolink.cxx(path)

        def kernel(x):
            x[0] = library.first(x[1]) + library.second(x[2]) + library.third(x[3])

        return build(kernel, "void(float32[::1])").report

    assert old in VALUES
    assert edits(report(VALUES), report(VALUES.replace(old, new))) == expected


def edits(before, now):
    return [each.what for each in changes(before, now) if each.is_edit]


VALUES = """
#define FACTOR 3.0f
constexpr float OFFSET = 1.5f;
__device__ float table[4] = {1, 2, 3, 4};
__device__ __noinline__ float scaled(float x) { return x * FACTOR; }
__device__ float first(float x) { return scaled(x) + OFFSET; }
__device__ float second(float x) { return scaled(x) * 3.0f; }  // the second
__device__ float third(float x) { return table[int(x) & 3]; }
"""


def test_of_a_result_of_another_kind_only_what_both_have_is_compared():
    library = autolink.cxx("__device__ float f(float x) { return x * x; }")

    def kernel(x):
        x[0] = library.f(x[0])

    before, now = (build(kernel, "void(float32[::1])", output=output).report for output in ("ltoir", "cubin"))
    assert [each.what for each in changes(before, now)] == ["result"]


def test_a_renamed_kernel_is_told_once():
    def report(name, amount):
        text = f"def {name}(x):\n    x[0] = {amount}\n"
        linecache.cache["<renamed>"] = 1, None, text.splitlines(keepends=True), "<renamed>"
        names = {}
        exec(compile(text, "<renamed>", "exec"), names)
        return build(names[name]).report

    assert edits(report("before", 1), report("after", 2)) == ["after (<renamed>:1) was edited"]
    whats = [each.what for each in changes(report("before", 1), report("after", 1))]
    assert whats[0] == "kernel" and not any("functions in Python" in what for what in whats)


def test_without_lto_a_call_that_was_inlined_but_for_what_it_calls_is_told():
    library = autolink.cxx("""
        __device__ __noinline__ float inner(float x) { return x * x; }
        __device__ float outer(float x) { return inner(x) + 1; }
    """)

    def report(lto):
        @cuda.jit(lto=lto)
        def kernel(x):
            x[0] = library.outer(x[0])

        return autolink.report(kernel, "void(float32[::1])", cc=CC)

    assert "call outer(float32): inner(float) called → called\n" in report(False).changes_since(report(True))


def test_options_of_device_functions_and_machine_code_that_stays():
    def report(body, **options):
        names = {"cuda": cuda, "library": autolink.cxx("__device__ float f(float x) { return x; }")}
        text = f"def step(x):\n    return {body}\ndef kernel(x):\n    x[0] = step(library.f(x[0]))\n"
        linecache.cache["<options>"] = 1, None, text.splitlines(keepends=True), "<options>"
        exec(compile(text, "<options>", "exec"), names)
        names["step"] = cuda.jit(device=True, **options)(names["step"])
        return autolink.report(cuda.jit(names["kernel"]), "void(float32[::1])", cc=CC)

    before = report("x / 3.0")
    found = report("x / 3.0", fastmath=True).changes_since(before).splitlines()
    assert "sm_90: option fastmath of step (<options>:1): False → True" in found
    inlined = report("x / 3.0", inline="always").changes_since(before).splitlines()
    assert inlined[0] == "sm_90: option inline of step (<options>:1): never → always"
    assert report("(x) / 3.0").changes_since(before) == "nothing changed"
    found = report("1 + x * 2").changes_since(report("x * 2 + 1")).splitlines()
    assert found == ["sm_90: step (<options>:1) was edited", "sm_90: the machine code is the same"]


def test_calls_of_many_functions_that_differ_alike_are_one_change(front_end):
    functions = range(6)

    def report(attribute):
        text = "".join(f"__device__ {attribute} float f{n}(float x) {{ return x / (x + {n}); }}\n" for n in functions)
        body = "".join(f"    x[{n}] = library.f{n}(x[{n}])\n" for n in functions)
        names = {"library": autolink.cxx(text), "__name__": "kernels"}
        linecache.cache["<alike>"] = 1, None, ["def kernel(x):\n", *body.splitlines(keepends=True)], "<alike>"
        exec(compile(f"def kernel(x):\n{body}", "<alike>", "exec"), names)
        return autolink.report(front_end.cuda.jit(names["kernel"]), "void(float32[::1])", cc=CC)

    lines = report("").changes_since(report("__noinline__")).splitlines()
    named = "f0(float32), f1(float32), f2(float32) and 3 more"
    assert f"sm_90: 6 calls of {named} at <alike>:2, 3, 4 and 3 more: called → inlined" in lines
    assert lines[0] == "sm_90: f0(float), f1(float), f2(float), f3(float), f4(float) and f5(float) were edited"
    assert not [line for line in lines if "__cuda" in line]


INLINING = """// twice(float)
__device__ __noinline__ float helper(float x) { return x * 1.5f; }
__device__ __noinline__ float series(float x) {
    float sum = 0;
    for (int i = 1; i < 9; ++i) sum = sum / x + helper(1.0f / i);
    return sum;
}
"""


@pytest.mark.parametrize(
    ("old", "new", "edited", "left"),
    [
        ("__noinline__ float series", "float series", "series(float) in {}", "helper(float) called"),
        (
            "__noinline__ float helper",
            "__forceinline__ float helper",
            "helper(float) in {}, called by series(float32),",
            "called",
        ),
        ("helper(", "helper2(", "series(float) in {}", "helper2(float) and series(float) called"),
        ("    for", "#pragma unroll 1\n    for", "series(float) in {}", None),
        ("i = 1;", "/* the first */ i = 1;", None, None),
    ],
)
def test_an_edit_that_changes_only_what_is_inlined_names_the_function(front_end, tmp_path, old, new, edited, left):
    path = tmp_path / "inlining.cu"

    def report(text):
        path.write_text(text)
        names = {"library": autolink.cxx(path)}
        linecache.cache["<inlining>"] = 1, None, ["def kernel(x):\n", "    x[0] = library.series(x[0])\n"], "<inlining>"
        exec(compile("def kernel(x):\n    x[0] = library.series(x[0])\n", "<inlining>", "exec"), names)
        return autolink.report(front_end.cuda.jit(names["kernel"]), "void(float32[::1])", cc=CC)

    before, now = report(INLINING), report(INLINING.replace(old, new))
    found = changes(before, now)
    assert [each.what for each in found if each.is_edit] == (
        [f"{edited} was edited".format(path.name)] if edited else []
    )
    calls = [(each.before, each.now) for each in found if each.what.startswith("call ")]
    assert calls == ([("helper(float) and series(float) called", left)] if left else [])
    assert " helper(float) and series(float) called\n" in str(before).partition("1 call")[0]
    assert "inlined: no, helper(float) and series(float) called\n" in str(before)
    assert ">no, helper(float) and series(float) called<" in before.to_html()


def test_an_option_of_the_kernel_is_named_once_and_causes_come_before_effects(front_end):
    library = autolink.cxx("template <class F> __device__ float apply(F f, float x) { return f(x) / x; }")

    def report(**options):
        def kernel(x):
            x[0] = library.apply(lambda v: v * 3, x[0])

        return autolink.report(front_end.cuda.jit(kernel, **options), "void(float32[::1])", cc=CC)

    unoptimised = {"opt": False} if front_end.name == "numba-cuda" else {"opt_level": 0}
    before = report()
    for options in ({"fastmath": True}, {"debug": True, **unoptimised}):
        for found in (changes(before, report(**options)), changes(report(**options), before)):
            named = [each.what for each in found if each.what.startswith("option ")]
            assert set(named) - {"option lto"} == {f"option {name}" for name in options}
            assert [each.what for each in found[: len(named)]] == named
            assert len([each for each in found if "apply" in f"{each.what}{each.before}" and "call" in each.what]) <= 1
            assert "entry name" in [each.what for each in found] or front_end.name != "numba-cuda"


def report_of(text, cuda=cuda, path="<edited>", **names):
    """Return the report of the ``kernel`` in *text*."""
    linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
    names |= {"cuda": cuda, "autolink": autolink, "__name__": "edited"}
    exec(compile(text, path, "exec"), names)
    return autolink.report(names["kernel"], "void(float32[::1])", cc=CC)


WITHOUT_EXTERNAL_CODE = """@cuda.jit(device=True)
def inner(x):
    return x * 0.5
@cuda.jit
def kernel(x):
    x[0] = inner(x[0])
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [("x * 0.5", "x * 0.25", "inner (<edited>:1)"), ("(x[0])", "(x[1])", "kernel (<edited>:4)")],
)
def test_an_edit_of_a_kernel_without_external_code_is_named(front_end, old, new, expected):
    before = report_of(WITHOUT_EXTERNAL_CODE, front_end.cuda)
    now = report_of(WITHOUT_EXTERNAL_CODE.replace(old, new), front_end.cuda)
    assert edits(before, now) == [f"{expected} was edited"]


POWERS = """
class Power(autolink.DeviceCallable):
    def __init__(self, n):
        self.n = n
    def __repr__(self):
        return f"Power(n={self.n})"
    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"power_{self.n}", returns=x, args={"x": x})
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(
            f'extern "C" __device__ float power_{self.n}(float x) {{ return powf(x, {self.n}.5f) + 1; }}')
a, b, c, d, e = map(Power, range(5))
@cuda.jit
def kernel(x):
    x[0] = a(x[0]) + b(x[1]) + c(x[2]) + d(x[3]) + e(x[4])
"""


def test_calls_of_lines_that_are_the_same_are_paired_in_order(front_end):
    before = report_of(POWERS, front_end.cuda)
    now = report_of(POWERS.replace("range(5)", "range(1, 6)"), front_end.cuda)
    (change,) = [each for each in changes(before, now) if "calls" in each.what]
    assert change.what == "5 calls at <edited>:15"
    assert change.before == "Power(n=0)(float32), Power(n=1)(float32), Power(n=2)(float32) and 2 more"
    assert change.now == "Power(n=1)(float32), Power(n=2)(float32), Power(n=3)(float32) and 2 more"


def test_one_edit_of_a_class_is_one_line(front_end):
    before, now = (report_of(POWERS.replace("+ 1", f"+ {number}"), front_end.cuda) for number in (1, 2))
    of = "Power(n=0)(float32), Power(n=1)(float32), Power(n=2)(float32) and 2 more"
    powers = "power_0, power_1, power_2, power_3 and power_4"
    assert edits(before, now) == [f"{powers}, used by {of}, were edited"]


CALLS = """
lib = autolink.cxx("__device__ float f(float x) { return x / 3; } __device__ float g(float x) { return x * x; }")
lam = lib.expr("[](float x) { return x * 2; }")
@cuda.jit
def kernel(x):
    x[0] = lib.f(x[0])
    x[1] = lam(x[1])
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("lib.f(x[0])", "lib.f(x[0]) + lib.g(x[2])", "call added: g(float32) at <edited>:6, inlined"),
        ("    x[0] = lib.f(x[0])\n", "", "call removed: f(float32) at <edited>:6, inlined"),
    ],
)
def test_a_call_that_is_added_or_removed_is_said_so(front_end, old, new, expected):
    found = edits(report_of(CALLS, front_end.cuda), report_of(CALLS.replace(old, new), front_end.cuda))
    assert found[:2] == ["kernel (<edited>:4) was edited", expected]


def test_a_renamed_expression_is_told_by_its_names(front_end):
    found = changes(report_of(CALLS, front_end.cuda), report_of(CALLS.replace("lam", "lom"), front_end.cuda))
    (call,) = [each for each in found if each.what.startswith("call")]
    assert str(call).endswith("call at <edited>:7: lam(float32) → lom(float32)")


def test_machine_code_is_the_same_with_line_information():
    before, now = report_of(CALLS), report_of(CALLS.replace("cuda.jit", "cuda.jit(lineinfo=True)"))
    assert [each.what for each in changes(before, now)][-1] == "the machine code is the same"


def test_other_instructions_are_told_only_where_no_change_is_known(front_end):
    template = """
lib = autolink.cxx('''
__device__ __noinline__ float slow(float x) { float s = 0; for (int i = 1; i < 9; ++i) s = s * x + 1.0f / i; return s; }
template <int N> __device__ float power(float x) { float r = 1; for (int i = 0; i < N; ++i) r *= x; return r; }
''')
power = lib["power<3>"]
@cuda.jit
def kernel(x):
    x[0] = lib.slow(x[0]) + power(x[1])
"""
    before, now = (report_of(each, front_end.cuda) for each in (template, template.replace("power<3>", "power<4>")))
    whats = [each.what for each in changes(before, now)]
    assert whats[0].startswith("call at ") and not [what for what in whats if "other instructions" in what]


IN_A_FOLDER = """
HERE = Path(__file__).parent
ops = autolink.cxx(HERE / "ops.cu", include_paths=[HERE / "include"])


class Read(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("read_one", returns="float32")

    def __numba_cuda_link__(self, x):
        return autolink.CUDASource.from_file(HERE / "read.cu", include_paths=[HERE / "include"])


read = Read()


def op(x):
    return x * 2


@cuda.jit(lineinfo=LINEINFO)
def kernel(x):
    x[0] = ops.wave(x[0]) + ops.apply(op, x[1]) + ops.apply(lambda v: v * 3, x[1]) + read(x[2])
"""
FOLDER = {
    "ops.cu": """#include <gain.h>
static __device__ __noinline__ float inside(float x) { return x * GAIN; }
namespace { __device__ __noinline__ float hidden(float x) { return x / GAIN; } }
__device__ float wave(float x) { return sinf(x) * inside(x) + hidden(x); }
template <class F> __device__ float apply(F f, float x) { return f(x) + f(x + 1); }
""",
    "include/gain.h": "#define GAIN 3",
    "read.cu": '#include <gain.h>\nextern "C" __device__ float read_one(float x) { return x - GAIN; }',
}


@pytest.mark.parametrize("lineinfo", [False, True])
def test_a_file_is_compared_by_its_content_in_another_folder(front_end, tmp_path, lineinfo):
    def report(folder, old="", new=""):
        (tmp_path / folder / "include").mkdir(parents=True)
        path = tmp_path / folder / "kernels.py"
        for name, text in {**FOLDER, path.name: IN_A_FOLDER.replace("LINEINFO", str(lineinfo))}.items():
            (tmp_path / folder / name).write_text(text.replace(old, new))
        names = {"cuda": front_end.cuda, "autolink": autolink, "Path": Path, "__file__": path, "__name__": "kernels"}
        exec(compile(path.read_text(), str(path), "exec"), names)
        return autolink.report(names["kernel"], "void(float32[::1])", cc=CC)

    before = report("before")
    assert report("same").changes_since(before) in ("nothing changed", "sm_90: only line information differs")
    edits = [
        ("return x * 2", "return x * 5", "op (kernels.py:17) was edited"),
        ("sinf(x)", "cosf(x)", "wave(float) in ops.cu was edited"),
        ("x - GAIN", "x + GAIN", "read_one in read.cu, used by Read()(float32), was edited"),
    ]
    for number, (old, new, what) in enumerate(edits):
        found = changes(before, report(f"now{number}", old, new))
        assert [each.what for each in found if each.is_edit] == [what]
