# SPDX-License-Identifier: BSD-2-Clause
"""What ``cache why`` says of builds: what is known of them, in users' words."""

import importlib.util
import inspect
import os
import random
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from numba import cuda, from_dtype
from numba.cuda import autolink
from numba.cuda import types as numba_types
from numba.cuda.autolink import cache
from numba.cuda.cudadrv.external_code.cache import settings as cache_settings
from numba.cuda.cudadrv.external_code.cache.changes import changes_in_words
from numba.cuda.cudadrv.external_code.cache.entry import CacheKey, described
from numba.cuda.cudadrv.external_code.cache.store import current_store, reset_store
from numba.cuda.cudadrv.external_code.plan.python_functions import object_text

SOURCE = "template <class T>\n__device__ T ten(T x) {\n    return x * T(10);\n}\n"
KERNEL = """\
from numba import cuda
from numba.cuda import autolink

lib = autolink.cxx({file!r})
N = 3


@cuda.jit(device=True)
def helper(v):
    return v + 1


@cuda.jit
def kernel(x):
    x[0] = lib.ten(helper(x[0])) + N
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The folder of a kernel and its C++, with a cache of its own."""
    monkeypatch.setenv(cache_settings.DIRECTORY, str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two edits of a file may have the same time
    before = reset_store()
    (tmp_path / "ten.cu").write_text(SOURCE)
    (tmp_path / "m.py").write_text(KERNEL.format(file=str(tmp_path / "ten.cu")))
    yield tmp_path
    reset_store(before)


def build(path, types="float32[::1]", **options):
    """Build the kernel of a file as if a process had begun after the file was written."""
    from numba.cuda.cudadrv.external_code.plan import python_functions

    os.utime(path, (python_functions._imported - 1,) * 2)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return autolink.build(module.kernel, f"void({types})", cc=(9, 0), **options)


def told(name=".py:kernel", kind="link"):
    """Return the lines of the history of a name, latest first, without times."""
    return [line[21:] for line in str(cache.why(name, kind=kind)).splitlines()]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("+ N", "+ N * 2", " changed: line 15"),
        ("N = 3", "N = 4", ": value N: 3 -> 4 (m.py:5)"),
        ("v + 1", "v + 2", ": helper changed: line 10"),
        ("(x):\n    x[0] = lib.ten(helper(x[0]))", "(y):\n    y[0] = lib.ten(helper(y[0]))", ": parameters: x -> y"),
        ("cu')", "cu', defines={'Z': '3'})", ": ten.cu: defines Z=3 added"),
        ("cu')", "cu', options={'std': 'c++20'})", ": ten.cu: std='c++20' added"),
        ("cu')", "cu', include_paths=['inc1'])", f": ten.cu: include_paths: [] -> [{os.path.abspath('inc1')!r}]"),
        ("cuda.jit\n", "cuda.jit(lineinfo=True)\n", ": lineinfo=True added"),
        ("cuda.jit\n", "cuda.jit(debug=True, opt=False)\n", ": debug=True added, opt=False added"),
        ("cuda.jit\n", "cuda.jit(launch_bounds=64)\n", ": launch_bounds=64 added"),
        ("cuda.jit(device=True)", "cuda.jit(device=True, fastmath=True)", ": helper: fastmath=True added"),
        ("cuda.jit\n", "cuda.jit(max_registers=32)\n", ": max_registers=32 added"),
    ],
)
def test_a_rebuild_has_its_cause_alone(files, old, new, said):
    path = files / "m.py"
    build(path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    build(path)
    assert told() == [f"sm_90   m.py:kernel{said}", "sm_90   m.py:kernel: first build"]


def test_what_is_told_of_a_build_is_found_once(files, monkeypatch):
    """A few milliseconds each time, which a cold build need not take again."""
    from numba.cuda.cudadrv.external_code import pipeline

    found = []
    for name in "link_facts", "link_lines":
        own = getattr(pipeline, name)
        monkeypatch.setattr(pipeline, name, lambda request, own=own, name=name: (found.append(name), own(request))[1])
    build(files / "m.py")
    assert sorted(found) == ["link_facts", "link_lines"]


MEANT = """\
import enum

from numba import cuda
from numba.cuda import autolink

lib = autolink.cxx({file!r})


class Mode(enum.IntEnum):
    A = 1


class Sizes:
    WIDTH = 3


N = 3


def offset():
    return 5


OFFSET = offset()


@cuda.jit(device=True)
def helper(v, more=2):
    return v + more + N


@cuda.jit
def kernel(x):
    x[0] = lib.ten(helper(x[0])) + Mode.A + N + OFFSET
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("more=2", "more=3", "helper: default more: 2 -> 3 (m.py:27)"),
        ("A = 1", "A = 2", "value Mode.A: 1 -> 2"),
        ("N = 3", "N = 4", "value N: 3 -> 4 (m.py:17)"),
    ],
)
def test_values_that_no_line_of_a_function_has_are_named_once(files, old, new, said):
    path = files / "m.py"
    path.write_text(MEANT.format(file=str(files / "ten.cu")))
    build(path)
    rewrite(path, (old, new))
    build(path)
    assert told()[0] == f"sm_90   m.py:kernel: {said}"


def test_of_an_edit_that_nothing_else_tells_the_lines_are_named(files, monkeypatch):
    from numba.cuda.cudadrv.external_code.plan import python_functions

    monkeypatch.setattr(python_functions, "_values", lambda function: ((), (), ()))
    path = files / "m.py"
    path.write_text(MEANT.format(file=str(files / "ten.cu")))
    build(path)
    rewrite(path, ("A = 1", "A = 2"))
    build(path)
    assert told()[0] == "sm_90   m.py:kernel: m.py changed: line 10"
    assert cache.why("m.py").builds[0]["edited"] == ["m.py: line 10"]


def rewrite(path, *edits):
    """Edit the text of a file."""
    text = path.read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


def test_an_option_that_was_tried_and_taken_back_is_no_cause(files):
    path = files / "m.py"
    build(path)
    with_option = ("@cuda.jit\ndef kernel", "@cuda.jit(fastmath=True)\ndef kernel")
    edits = (
        ([with_option], "fastmath=True added"),
        ([with_option[::-1], ("N = 3", "N = 4")], "value N: 3 -> 4 (m.py:5)"),
        ([with_option, ("N = 4", "N = 5")], "value N: 3 -> 5 (m.py:5)"),
        ([with_option[::-1]], "fastmath=True removed"),
    )
    for edit, said in edits:
        rewrite(path, *edit)
        build(path)
        assert told()[0] == f"sm_90   m.py:kernel: {said}"


def test_options_that_exclude_each_other_are_both_named(files):
    path = files / "m.py"
    rewrite(path, ("@cuda.jit\n", "@cuda.jit(debug=True, opt=False, launch_bounds=64)\n"))
    build(path)
    rewrite(path, ("debug=True, opt=False, launch_bounds=64", "lineinfo=True, launch_bounds=(128, 2)"))
    build(path)
    changes = "lineinfo=True added, launch_bounds: 64 -> (128, 2), debug=True removed, opt=False removed"
    assert told()[0] == f"sm_90   m.py:kernel: {changes}"


def test_an_option_that_the_environment_sets_has_its_variable(files):
    (files / "m.py").write_text(BUILT)
    run(files)
    assert run(files, NUMBA_CUDA_DEBUGINFO="1") == ["m.py:kernel: debug=True added (NUMBA_CUDA_DEBUGINFO=1)"]


def test_a_build_is_not_compared_with_one_of_another_front_end(files):
    pytest.importorskip("numba_cuda_mlir")
    path = files / "m.py"
    build(path)
    front_ends = ("from numba import cuda", "from numba_cuda_mlir import cuda")
    rewrite(path, front_ends, ("N = 3", "N = 4"))
    build(path)
    rewrite(path, front_ends[::-1], ("N = 4", "N = 5"))
    build(path)
    assert told() == [
        "sm_90   m.py:kernel: value N: 3 -> 5 (m.py:5)",
        "sm_90   m.py:kernel: first build with numba-cuda-mlir",
        "sm_90   m.py:kernel: first build",
    ]


@pytest.mark.parametrize(("old", "line"), [("    x[0] =", 15), ("@cuda.jit(lineinfo", 13)])
def test_an_edit_that_moves_lines_alone_is_named(files, old, line):
    path = files / "m.py"
    rewrite(path, ("@cuda.jit\ndef kernel", "@cuda.jit(lineinfo=True)\ndef kernel"))
    build(path)
    rewrite(path, (old, f"    # a comment\n{old}" if old[0] == " " else f"# a comment\n{old}"))
    build(path)
    assert told()[0] == f"sm_90   m.py:kernel: m.py changed: line {line} (line information)"


def test_other_argument_types_are_told(files):
    build(files / "m.py")
    build(files / "m.py", "float64[::1]")
    assert told()[0] == "sm_90   m.py:kernel(float64[::1]): first build for these types"


def test_the_names_that_are_printed_are_taken(files):
    for name in "one", "two":
        (files / name).mkdir()
        (files / name / "ten.cu").write_text(SOURCE)
        (files / name / "m.py").write_text(KERNEL.format(file=str(files / name / "ten.cu")))
        build(files / name / "m.py")
    assert told() == ["sm_90   two/m.py:kernel: first build", "sm_90   one/m.py:kernel: first build"]
    for wanted in "two/m.py:kernel", str(files / "two" / "m.py"), f"{files}/one/../two/m.py":
        assert told(wanted) == ["sm_90   m.py:kernel: first build"], wanted


def test_builds_that_say_the_same_are_one_line(files):
    for number in "10", "11":
        (files / "ten.cu").write_text(SOURCE.replace("10", number))
        for types in "int64[::1]", "float64[::1]":
            build(files / "m.py", types)
    assert told("ten.cu", "program") == [
        "sm_90   ten.cu changed: line 3 (2 builds)",
        "sm_90   ten.cu: first build of ten(float64)",
        "sm_90   ten.cu: first build of ten(int64)",
    ]


def test_lines_of_a_file_are_listed_and_many_are_counted(files):
    lines = [f"// {number}\n" for number in range(1, 100)]
    (files / "ten.cu").write_text(SOURCE + "".join(lines))
    build(files / "m.py")
    for number in (10, 20, 21, 30, 40, 50, 60):
        lines[number - 5] = "// edited\n"
    (files / "ten.cu").write_text(SOURCE + "".join(lines))
    build(files / "m.py")
    assert told()[0] == "sm_90   m.py:kernel: ten.cu changed: lines 10, 20-21, 30, 40 and 2 more"


def test_kernels_and_sources_of_one_name_in_other_files_are_not_compared(files):
    for folder in ("p", "q"):
        (files / folder).mkdir()
        (files / folder / "a.cu").write_text(f"{SOURCE}// {folder}\n")
        (files / folder / "a.py").write_text(KERNEL.format(file=str(files / folder / "a.cu")))
        build(files / folder / "a.py")
    assert told() == ["sm_90   q/a.py:kernel: first build", "sm_90   p/a.py:kernel: first build"]
    programs = [line.partition(" of ")[0] for line in told("a.cu", kind="program")]
    assert programs == ["sm_90   q/a.cu: first build", "sm_90   p/a.cu: first build"]


def test_inline_code_is_not_compared_with_other_texts(files):
    path = files / "m.py"
    for source in ("__device__ float ten(float x) { return x; }", "__device__ float ten(float x) { return 2 * x; }"):
        path.write_text(re.sub(r"cxx\(.*\)", f"cxx({source!r})", path.read_text()))
        build(path)
    assert told("ten", kind="program") == [
        "sm_90   ten(float64): first build of the text '__device__ float ten(float x) { return 2 * x; }'...",
        "sm_90   ten(float64): first build",
    ]
    assert told()[0] == "sm_90   m.py:kernel: inline C++ changed: line 4 of m.py"


def run(folder, name="m.py", **environment):
    """Run a program in a process of its own, and return the lines of its history that are new, without times."""
    known = len(told("kernel", None)) if cache.why("kernel").entries else 0
    given = {**os.environ, "NUMBA_CUDA_AUTOLINK_EMULATE": "1", "PYTHONDONTWRITEBYTECODE": "1", **environment}
    subprocess.run([sys.executable, name], cwd=folder, env=given, check=True)
    lines = told("kernel", None)
    return [line.partition(" ")[2].strip() for line in lines[: len(lines) - known]]


PROGRAM = """\
import numpy as np
import helpers
from numba import cuda
from numba.cuda import autolink

lib = autolink.cxx("ten.cu")
text = autolink.cxx("__device__ float more(float x) { return x + 1; }")
N = 3


@cuda.jit(cache=True)
def kernel(x):
    x[0] = lib.ten(text.more(helpers.shift(x[0]))) + N


kernel[1, 1](np.ones(1, np.float32))
"""


TEXT = 'text = autolink.cxx("__device__ float more(float x) { return x + 1; }")'
PLAIN = """\
import numpy as np
from numba import cuda


@cuda.jit(cache=True)
def kernel(x, n):
    x[n] = 1


"""


def test_each_build_is_compared_with_the_last_run(files):
    """Whatever edits were tried before, and taken back."""
    (files / "m.py").write_text(PROGRAM)
    (files / "helpers.py").write_text(HELPERS)
    name = "m.py:kernel (cache=True)"
    assert run(files) == [f"{name}: first build"]
    others = {"m.py": ("x + 1", "x + 2"), "ten.cu": ("10", "11"), "helpers.py": ("GAIN = 2", "GAIN = 3")}
    for file, edit in others.items():
        rewrite(files / file, edit)
    assert run(files) == [f"{name}: inline C++ changed: line 7 of m.py, ten.cu changed: line 3"]
    assert cache.why("kernel").builds[0]["edited"] == ["m.py: line 7", "helpers.py: line 4"]
    for file, edit in others.items():
        rewrite(files / file, edit[::-1])
    assert run(files) == []
    rewrite(files / "m.py", ("N = 3", "N = 4"))
    assert run(files) == [f"{name}: value N: 3 -> 4 (m.py:8)"]
    rewrite(files / "helpers.py", ("import numpy as np", "import numpy  # a comment"))
    rewrite(files / "m.py", ("N = 4", "N = 5"))
    assert run(files) == [f"{name}: value N: 4 -> 5 (m.py:8)"]
    rewrite(files / "helpers.py", ("v + 1", "v + GAIN"))
    assert run(files) == [f"{name}: helpers.py:shift changed: line 9"]
    rewrite(files / "helpers.py", ("GAIN = 2", "GAIN = 3"))
    assert run(files) == [f"{name}: helpers.py:shift: value GAIN: 2 -> 3 (helpers.py:4)"]
    rewrite(files / "m.py", ("(cache=True)", "(cache=True, fastmath=True)"), ("x + 1", "x + 3"))
    assert run(files) == [f"{name}: fastmath=True added, inline C++ changed: line 7 of m.py"]
    rewrite(files / "m.py", ("N = 5", "# N was 5\nN = 5"))
    assert run(files) == [f"{name}: m.py changed: line 8 (line information)"]


FACTORY = """\
import numpy as np
from numba import cuda
from numba.cuda import autolink

lib = autolink.cxx("__device__ float once(float x) { return x; }")


@cuda.jit
def dd(x):
    return x + 1


def make(op, n):
    @cuda.jit
    def kernel(x):
        x[0] = op(x[0]) + n

    return kernel


for op in dd, lib.once:
    for n in 1, 2, 3:
        make(op, n)[1, 1](np.ones(1, np.float32))
"""


def test_kernels_of_a_factory_are_compared_with_those_of_the_run_before(files):
    (files / "m.py").write_text(FACTORY)
    made = "; ".join(
        f"n={n}, op={op}" for op, n in (("dd (m.py:8)", 1), ("dd (m.py:8)", 2), ("dd (m.py:8)", 3), ("once", 1))
    )
    assert run(files) == [f"m.py:kernel: first build, made with {made}; 2 more (6 builds)"]
    rewrite(files / "m.py", (") + n", ") - n"), ("return x;", "return x * x;"))
    assert run(files) == [
        "m.py:kernel changed: line 16, inline C++ changed: line 5 of m.py (3 builds)",
        "m.py:kernel changed: line 16 (3 builds)",
    ]
    rewrite(files / "m.py", ("x * x;", "x * x * x;"))
    assert run(files) == ["m.py:kernel: inline C++ changed: line 5 of m.py (3 builds)"]


def test_lines_are_compared_with_those_that_the_last_run_read(files):
    """An edit after which the last run built nothing is no cause of the next build."""
    (files / "m.py").write_text(PROGRAM.replace("(cache=True)", "") + "# a\n")
    (files / "helpers.py").write_text(HELPERS)
    run(files)
    rewrite(files / "m.py", ("# a", "# b"))
    assert run(files) == []
    rewrite(files / "m.py", ("import numpy", "# a comment\nimport numpy"))
    assert run(files) == ["m.py:kernel: m.py changed: line 1 (line information)"]


BUILT = """\
from numba import cuda
from numba.cuda import autolink

lib = autolink.cxx("ten.cu")
FLAG = False
STEP = 1


def kernel(x):
    t = lib.ten(x[0])
    x[0] = t
    if FLAG:
        x[0] += STEP


autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
"""


def test_an_edit_that_needed_no_build_is_no_cause_of_the_next_one(files):
    """The name of a local variable, a docstring, a value that is not used; also if a run after it edited nothing, and
    where it is taken back."""
    edits = ("    t = lib", "    'Text.'\n    tmp = lib"), ("= t\n", "= tmp\n"), ("STEP = 1", "STEP = 2")
    (files / "m.py").write_text(BUILT)
    assert run(files) == ["m.py:kernel: first build"]
    rewrite(files / "m.py", *edits)
    assert run(files) == []
    assert run(files) == []
    rewrite(files / "ten.cu", ("10", "11"))
    assert run(files) == ["m.py:kernel: ten.cu changed: line 3"]
    rewrite(files / "m.py", *((new, old) for old, new in edits))
    assert run(files) == []
    rewrite(files / "ten.cu", ("11", "12"))
    assert run(files) == ["m.py:kernel: ten.cu changed: line 3"]
    assert cache.why("kernel").builds[0]["edited"] == []


def test_an_edit_of_another_file_that_needed_no_build_is_no_cause_of_the_next_one(files):
    text = BUILT.replace("STEP = 1\n", "import helpers\n").replace("STEP", "helpers.STEP")
    (files / "m.py").write_text(text)
    (files / "helpers.py").write_text("STEP = 1\n")
    run(files)
    rewrite(files / "helpers.py", ("STEP = 1", "STEP = 2"))
    assert run(files) == []
    rewrite(files / "ten.cu", ("10", "11"))
    assert run(files) == ["m.py:kernel: ten.cu changed: line 3"]


OBJECTS = """\
import numpy as np
from numba import cuda
from numba.cuda import autolink


class Power(autolink.DeviceCallable):
    def __init__(self, n):
        self.n = n

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"power_{self.n}", returns=x)

    def __numba_cuda_link__(self, x):
        text = f'extern "C" __device__ float power_{self.n}(float x) {{ return {self.n} * x; }}'
        return autolink.CUDASource(text, name=f"power_{self.n}.cu")


@cuda.jit(device=True)
def first(x):
    return x + 1


@cuda.jit(device=True)
def second(x):
    return x + 2


p = Power(2)
several = (Power(3), Power(4))
op = first
fused = autolink.cxx("ten.cu").expr("[](auto x) { return ten(x) + 1; }")
ARR = np.array([1, 2], np.float32)
BIG = np.arange(100)


def kernel(x):
    x[0] = op(p(x[0])) + several[0](several[1](x[0])) + fused(x[0]) + ARR[1] + BIG[2]


autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
"""


def test_other_objects_and_arrays_are_named_as_the_program_makes_them(files):
    """By what they are and where, and not by the files and calls that follow."""
    (files / "m.py").write_text(OBJECTS)
    run(files)
    edits = (
        (("[1, 2]", "[1, 3]"), "value ARR: float32 [1.0, 2.0] -> float32 [1.0, 3.0] (m.py:32)"),
        (("arange(100)", "arange(1, 101)"), "value BIG changed: other elements of int64 (100,) (m.py:33)"),
        (("op = first", "op = second"), "op: first -> second (m.py:30)"),
        (("Power(2)", "Power(5)"), "p: Power(n=2) -> Power(n=5) (m.py:28)"),
        (
            ("Power(4)", "Power(6)"),
            "several: (Power(n=3), Power(n=4)) -> (Power(n=3), Power(n=6)) (m.py:29)",
        ),
        (
            ("(x) + 1; }", "(x) + 2; }"),
            "fused: [](auto x) { return ten(x) + 1; } -> [](auto x) { return ten(x) + 2; } (m.py:31)",
        ),
    )
    rewrite(files / "m.py", *(edit for edit, _ in edits))
    assert run(files) == [f"m.py:kernel: {', '.join(said for _, said in edits)}"]


@pytest.mark.parametrize("begin", ["", "\\\n"])
def test_an_edit_of_the_text_that_an_object_makes_has_its_line_in_python(files, begin):
    """Also where the text has lines that are not indented."""
    (files / "m.py").write_text(OBJECTS.replace("text = f'", f"text = f'{begin}"))
    run(files)
    rewrite(files / "m.py", ("return {self.n} * x", "return {self.n} / x"))
    (said,) = run(files)
    line = 15 if begin else 14
    assert said.startswith(f"m.py:kernel: power_2.cu changed: line 1 (m.py: line {line}), power_")


JOBS = """\
from numba import cuda
from numba.cuda import autolink


class Times(autolink.DeviceCallable):
    def __init__(self, n):
        self.n = n

    def __numba_cuda_call__(self, x):
        return autolink.Extern("times", returns=x)

    def __numba_cuda_link__(self, x):
        head = 'extern "C" __device__ float times(float x)'
        lines = head, "{", f"    const int n = {self.n};", "    return n * x;", "}", head.replace("times", "twice")
        lines += ("{ return 2 * x; }",)
        return autolink.CUDASource("\\n".join(lines), name="times.cu")


def job(times):
    def kernel(x):
        x[0] = times(x[0])

    autolink.build(kernel, "void(float32[::1])", cc=(9, 0))


job(Times(2))
job(Times(3))
"""


def test_lines_of_one_kernel_of_a_factory_are_not_those_of_another(files):
    (files / "m.py").write_text(JOBS)
    run(files)
    rewrite(files / "m.py", ("return n * x", "return n / x"))
    said = ["m.py:kernel: times.cu changed: line 4 (m.py: line 14) (2 builds)"]
    assert run(files) == said
    rewrite(files / "m.py", ("return n / x", "return n - x"))
    assert run(files) == said
    rewrite(files / "m.py", ('Extern("times"', 'Extern("twice"'))
    assert run(files) == ["m.py:kernel: m.py changed: line 10 (2 builds)"]


def test_an_edit_of_an_object_in_another_file_is_placed(files):
    beginning, end = JOBS.split("def job")
    (files / "objects.py").write_text(beginning)
    (files / "m.py").write_text(f"from numba.cuda import autolink\nfrom objects import Times\n\n\ndef job{end}")
    run(files)
    rewrite(files / "objects.py", ('Extern("times"', 'Extern("twice"'))
    assert run(files) == ["m.py:kernel: objects.py changed: line 10 (2 builds)"]


def test_what_an_object_is_may_not_be_known():
    class Raising:
        def __getattr__(self, name):
            raise RuntimeError(name)

    assert object_text(Raising()) == object_text((Raising(),)) == ""


F_STRING = """\
from numba import cuda
from numba.cuda import autolink

A = 2.5
lib = autolink.cxx(f"__device__ float by(float x) {{{{ return x * {{A}}f; }}}}")


def kernel(x):
    x[0] = lib.by(x[0])


autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
"""


def test_an_edit_of_what_inline_code_is_made_of_has_its_line(files):
    (files / "m.py").write_text(F_STRING.replace("{{", "{").replace("}}", "}"))
    run(files)
    rewrite(files / "m.py", ("A = 2.5", "A = 4.5"))
    assert run(files) == ["m.py:kernel: inline C++ changed: line 1 (m.py: line 4)"]


def test_other_headers_of_cuda_follow_from_an_edit(files):
    build(files / "m.py")
    (files / "ten.cu").write_text(f"#include <cuda/std/cmath>\n{SOURCE}")
    build(files / "m.py")
    assert told()[0] == "sm_90   m.py:kernel: ten.cu changed: line 1"


def test_programs_of_one_run_are_not_compared(files, monkeypatch):
    (files / "m.py").write_text(
        "from numba import cuda\nfrom numba.cuda import autolink\n\nlib = autolink.cxx('ten.cu')\n\n\n"
        "@cuda.jit(max_registers=32)\ndef kernel(x):\n    x[0] = lib.ten(x[0])\n\n\n"
        "def other(x):\n    x[0] = lib.ten(x[0])\n\n\n"
        "for each in kernel, other:\n    autolink.build(each, 'void(float32[::1])', cc=(9, 0))\n"
    )
    run(files)
    assert told("ten.cu", "program") == ["sm_90   ten.cu: first build of ten(float32)"] * 2
    (files / "ten.cu").write_text(SOURCE.replace("10", "20"))
    log = subprocess.run(
        [sys.executable, "m.py"],
        cwd=files,
        env={**os.environ, "NUMBA_CUDA_AUTOLINK_LOG": "cache"},
        check=True,
        capture_output=True,
        text=True,
    ).stderr
    assert len(re.findall(r"program 'ten.cu: .* built in .*; ten.cu changed: line 3\n", log)) == 2


def test_a_parameter_of_a_program_that_has_two_values_in_turn_is_no_cause(files):
    text = KERNEL.format(file="ten.cu").replace("N = 3", "N = int(os.environ['WIDTH'])")
    (files / "m.py").write_text(f"import os\n{text}\n\nautolink.build(kernel, 'void(float32[::1])', cc=(9, 0))\n")
    assert run(files, WIDTH="1") == ["m.py:kernel: first build"]
    assert run(files, WIDTH="2") == ["m.py:kernel: value N: 1 -> 2 (m.py:6)"]
    assert run(files, WIDTH="1") == run(files, WIDTH="2") == []
    (files / "ten.cu").write_text(SOURCE.replace("10", "20"))
    assert run(files, WIDTH="2") == run(files, WIDTH="1") == ["m.py:kernel: ten.cu changed: line 3"]
    assert run(files, WIDTH="3") == ["m.py:kernel: value N: 1 -> 3 (m.py:6)"]
    (files / "ten.cu").write_text(SOURCE.replace("10", "30"))
    assert run(files, WIDTH="4") == ["m.py:kernel: value N: 3 -> 4 (m.py:6), ten.cu changed: line 3"]


CLOSURES = """\
from numba import cuda
from numba.cuda import autolink

lib = autolink.cxx("ten.cu")


def factory(op):
    def kernel(x):
        x[0] = op(lib.ten(x[0]))

    return cuda.jit(kernel)


def shift(v):
    return v - 3


ops = cuda.jit(device=True)(lambda v: v + 1), cuda.jit(device=True)(lambda v: v * 2), cuda.jit(device=True)(shift)
"""


def test_functions_that_a_kernel_closes_over_tell_kernels_of_a_factory_apart(files):
    """In processes of their own, as workers and in turn."""
    (files / "m.py").write_text(CLOSURES)
    (files / "n.py").write_text(
        "from numba.cuda import autolink\nimport m\n"
        "jobs = [autolink.Job(m.factory(op), 'void(float32[::1])', cc=(9, 0)) for op in m.ops]\n"
        "autolink.build_many(jobs)\n"
    )
    lines = run(files, "n.py", NUMBA_CUDA_AUTOLINK_JOBS="2")
    (line,) = lines
    assert line.startswith("m.py:kernel: first build, made with ") and line.endswith(" (3 builds)"), line
    for made in "<lambda> (m.py:18", "<lambda> (m.py:18", "shift (m.py:14)":
        assert f"op={made}" in line
    rewrite(files / "ten.cu", ("10", "11"))
    assert run(files, "n.py", NUMBA_CUDA_AUTOLINK_JOBS="2") == ["m.py:kernel: ten.cu changed: line 3 (3 builds)"]
    rewrite(files / "m.py", ("v - 3", "v - 4"))
    assert run(files, "n.py", NUMBA_CUDA_AUTOLINK_JOBS="2") == ["m.py:kernel: shift changed: line 15"]
    rewrite(files / "m.py", ("v * 2", "v * 4"))
    assert run(files, "n.py", NUMBA_CUDA_AUTOLINK_JOBS="2") == ["m.py:kernel: <lambda> changed: line 18"]


@pytest.mark.parametrize("options", ["", "(cache=True)"])
def test_kernels_without_external_code_are_found_again_in_the_emulator(files, options):
    """Whatever was compiled before them: the first kernel is loaded from the cache in the second run."""
    plain = f"@cuda.jit{options}\ndef plain_kernel(x):\n    x[0] += 1\n\n\n"
    launch = "kernel[1, 1](np.ones(1, np.float32))\n"
    (files / "m.py").write_text(PROGRAM.replace(launch, f"{plain}{launch}plain_{launch}"))
    (files / "helpers.py").write_text(HELPERS)
    assert run(files) == ["m.py:plain_kernel: first build", "m.py:kernel (cache=True): first build"]
    assert run(files) == []


def test_a_define_that_toggles_has_its_kernels_kept(files):
    (files / "helpers.py").write_text(HELPERS)
    given = "'ten.cu', defines={'W': os.environ['W']}"
    (files / "m.py").write_text(
        PROGRAM.replace('"ten.cu"', given).replace("import numpy", "import os\n\nimport numpy", 1)
    )
    said = [run(files, W=each) for each in ("1", "2", "1", "2", "1", "3", "2")]
    name = "m.py:kernel (cache=True)"
    first, second, third = "first build", "ten.cu: defines W: 1 -> 2", "ten.cu: defines W: 1 -> 3"
    assert said == [[f"{name}: {first}"], [f"{name}: {second}"], [], [], [], [f"{name}: {third}"], []]


def test_a_kernel_of_a_moved_folder_has_its_lines_there(files):
    """Code for the emulator has the path of its file."""
    for name, text in ("helpers.py", HELPERS), ("m.py", PROGRAM), ("ten.cu", SOURCE):
        (files / "one").mkdir(exist_ok=True)
        (files / "one" / name).write_text(text)
    run(files / "one")
    (files / "one").rename(files / "two")
    assert run(files / "two") == [f"two/m.py:kernel (cache=True): another folder: {files / 'one'} -> {files / 'two'}"]
    rewrite(files / "two" / "m.py", ("more(float x)", "more(float y)"), ("x + 1", "y + 1"), ("N = 3", "N = 4"))
    lines = "value N: 3 -> 4 (m.py:8), inline C++ changed: line 7 of m.py"
    assert [line.partition("kernel")[2] for line in run(files / "two")] == [f" (cache=True): {lines}"]


def test_a_fault_in_a_moved_folder_is_at_the_file_there(files):
    """Also of a kernel in numba-cuda's own cache."""
    text = f"import sys\n{PLAIN}x = np.ones(1, np.float32)\nkernel[1, 1](x, int(sys.argv[1]))\n"
    (files / "one").mkdir()
    (files / "one" / "m.py").write_text(text)
    given = {**os.environ, "NUMBA_CUDA_AUTOLINK_EMULATE": "1"}
    subprocess.run([sys.executable, "m.py", "0"], cwd=files / "one", env=given, check=True)
    (files / "one").rename(files / "two")
    done = subprocess.run(
        [sys.executable, "m.py", "9999"], cwd=files / "two", env=given, capture_output=True, text=True, check=False
    )
    assert f"at: {files / 'two' / 'm.py'}:8" in done.stderr


def test_details_show_the_changed_lines_of_inline_code_and_files(files):
    path = files / "m.py"
    rewrite(path, ("lib.ten(", "text.more(lib.ten("), ("(x[0]))", "(x[0])))"), ("N = 3", f"{TEXT}\nN = 3"))
    build(path)
    rewrite(path, ("x + 1", "x + 2"))
    rewrite(files / "ten.cu", ("10", "11"))
    build(path)
    lines = cache.why("m.py:kernel").details.splitlines()
    for changed in (
        "-    return x * T(10);",
        "+    return x * T(11);",
        "-__device__ float more(float x) { return x + 1; }",
    ):
        assert f"    {changed}" in lines


def test_what_another_folder_built_is_used_and_is_what_the_next_build_is_compared_with(files):
    for folder in "one", "two":
        (files / folder).mkdir()
        (files / folder / "m.py").write_text(KERNEL.format(file=str(files / "ten.cu")))
        build(files / folder / "m.py")
    assert told() == ["sm_90   m.py:kernel: first build"]
    rewrite(files / "two" / "m.py", ("N = 3", "N = 4"))
    build(files / "two" / "m.py")
    for wanted in ".py:kernel", "two/m.py":
        assert told(wanted)[0].endswith("m.py:kernel: value N: 3 -> 4 (m.py:5)"), wanted


EDITS = {
    "N": ("m.py", "N = {}", "value N: {} -> {} (m.py:8)"),
    "factor": ("ten.cu", "T({})", "ten.cu changed: line 3"),
    "text": ("m.py", "x + {};", "inline C++ changed: line 7 of m.py"),
    "shift": ("helpers.py", "v + {}", "helpers.py:shift changed: line 9"),
    "gain": ("m.py", "'{}'", "ten.cu: defines GAIN: {} -> {}"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_random_edits_are_the_causes(files, seed):
    """Several at once, some of them undone later, each followed by a run."""
    rnd = random.Random(seed)
    program = PROGRAM.replace("cache=True", "").replace('"ten.cu"', "'ten.cu', defines={'GAIN': '1'}")
    (files / "m.py").write_text(program)
    (files / "helpers.py").write_text(HELPERS)
    values = {"N": 3, "factor": 10, "text": 1, "shift": 1, "gain": 1}
    run(files)
    known = [dict(values)]
    for _ in range(8):
        before = dict(values)
        if rnd.random() < 0.4:
            values = dict(rnd.choice(known))
        for each in rnd.sample(sorted(EDITS), rnd.choice((1, 1, 2, 3))):
            values[each] = rnd.randrange(20, 90)
        for each, (file, text, _) in EDITS.items():
            rewrite(files / file, (text.format(before[each]), text.format(values[each])))
        causes = {EDITS[each][2].format(before[each], values[each]) for each in EDITS if before[each] != values[each]}
        said = run(files)
        assert [set(line.removeprefix("m.py:kernel: ").split(", ")) for line in said] == [causes]
        known.append(values)


def run_two_kernels_before_and_after_an_edit(files):
    again = "kernel[1, 1](np.ones(1, np.float64))\nsecond[1, 1](np.ones(1, np.float32))\n"
    second = "@cuda.jit\ndef second(x):\n    x[0] = lib.ten(x[0])\n\n\nkernel["
    (files / "m.py").write_text(PROGRAM.replace("\nkernel[", f"\n{second}", 1) + again)
    (files / "helpers.py").write_text(HELPERS)
    run(files)
    rewrite(files / "ten.cu", ("10", "11"))
    run(files)


def test_kernels_that_one_run_built_for_the_same_cause_are_one_line(files):
    run_two_kernels_before_and_after_an_edit(files)
    kernels = [f"m.py:{each}" for each in ("second", "kernel(float64[::1])", "kernel(float32[::1])")]
    assert str(cache.why("")).splitlines()[0][29:] == (
        f"{kernels[0]}, {kernels[1]} and {kernels[2]}: ten.cu changed: line 3"
    )


def test_what_was_removed_from_the_cache_is_no_first_build(files):
    build(files / "m.py")
    cache.prune(0)
    reset_store()
    build(files / "m.py")
    assert told() == ["sm_90   m.py:kernel: built again, as its entry had been removed from the cache"]
    cache.clear()
    build(files / "m.py")
    assert told() == ["sm_90   m.py:kernel: first build"]


def test_a_build_after_what_it_is_compared_with_was_removed_is_no_first_build(files):
    (files / "m.py").write_text(BUILT)
    run(files)
    cache.prune(0)
    rewrite(files / "m.py", ("= t\n", "= t + 1\n"))
    removed = "what the last run used was removed from the cache, so what changed is not known"
    assert run(files) == [f"m.py:kernel: {removed}"]


VARIANTS = """\
from numba import cuda
from numba.cuda import autolink

lib = autolink.cxx("ten.cu")
N = 3


def make(n):
    def kernel(x):
        x[0] = lib.ten(x[0]) + n + N

    return kernel


def other(x):
    x[0] = lib.ten(x[0])


for each in make(1), other, make(2):
    autolink.build(each, "void(float32[::1])", cc=(9, 0))
"""


def test_builds_of_one_run_and_cause_are_one_line_also_with_others_between(files):
    """And details tell them apart by what they were made with."""
    (files / "m.py").write_text(VARIANTS)
    run(files)
    rewrite(files / "m.py", ("N = 3", "N = 4"), ("ten(x[0])\n\n\nfor", "ten(x[0]) + 1\n\n\nfor"))
    run(files)
    lines = [line[29:] for line in str(cache.why("")).splitlines()]
    assert lines[:2] == ["m.py:kernel: value N: 3 -> 4 (m.py:5) (2 builds)", "m.py:other changed: line 16"]
    details = str(cache.why("m.py:kernel").details)
    assert "made with n=1, " in details and "made with n=2, " in details


def test_another_python_environment_is_named_if_nothing_else_changed():
    def program(environment, where, gain="2"):
        facts = ("a.cu", "define GAIN", gain), ("a.cu", "packages", environment), ("a.cu", "program", where)
        parts = (("places", where),)
        return described(CacheKey("program", "a.cu", parts, facts=lambda: facts))

    before = program("/one", "digest")
    assert changes_in_words(before, program("/two", "other")) == ["another Python environment: /one -> /two"]
    assert changes_in_words(before, program("/two", "other", "3")) == ["a.cu: defines GAIN: 2 -> 3"]
    assert changes_in_words(before, program("/one", "other")) == ["a.cu: compiled again"]


def test_calls_that_follow_from_an_edit_are_no_cause(files):
    rewrite(files / "m.py", ("cxx({!r})".format(str(files / "ten.cu")), f"cxx({SOURCE!r})"))
    build(files / "m.py")
    rewrite(files / "m.py", ("helper(x[0])", "x[0]"))
    build(files / "m.py")
    assert told()[0] == "sm_90   m.py:kernel changed: line 15, helper is not used"


def test_an_edit_is_one_line_and_programs_have_theirs_by_name(files):
    build(files / "m.py")
    for number in "11", "10", "12":
        (files / "ten.cu").write_text(SOURCE.replace("10", number))
        build(files / "m.py")
    lines = [line[29:] for line in str(cache.why("")).splitlines()]
    assert lines == ["m.py:kernel: ten.cu changed: line 3 (2 builds)", "m.py:kernel: first build"]
    assert told("ten.cu", "program") == [
        "sm_90   ten.cu changed: line 3 (2 builds)",
        "sm_90   ten.cu: first build of ten(float64)",
    ]
    builds = cache.why("m.py:kernel").builds
    assert [each["causes"] for each in builds][1:] == [["ten.cu changed: line 3"], ["first build"]]


def test_exported_entries_keep_the_times_of_their_builds(files):
    build(files / "m.py")
    for entry in list(current_store().disk.entries()):
        os.utime(entry.path, (10**9, 10**9))
    cache.export_file(files / "entries")
    cache.clear()
    cache.import_file(files / "entries", trust=True)
    assert {entry.written for entry in current_store().disk.entries()} == {10**9}


def test_a_build_after_damage_is_told(files):
    build(files / "m.py")
    (files / "ten.cu").write_text(f"{SOURCE}// edited\n")
    build(files / "m.py")
    for entry in list(current_store().disk.entries()):
        os.truncate(entry.path, entry.size // 2)
    reset_store()
    with pytest.warns(cache.CacheWarning, match="damaged"):
        build(files / "m.py")
    assert told()[0] == "sm_90   m.py:kernel: its entry was damaged"
    assert told("ten.cu", "program")[0] == "sm_90   ten.cu: its entry was damaged"


def test_a_program_whose_record_of_headers_was_damaged_keeps_its_place(files):
    build(files / "m.py")
    (files / "ten.cu").write_text(f"{SOURCE}// edited\n")
    build(files / "m.py")
    before = cache.why("ten.cu", "program").entries
    for entry in list(current_store().disk.entries()):
        if entry.kind in ("headers", "source"):
            os.truncate(entry.path, entry.size // 2)
    reset_store()
    with pytest.warns(cache.CacheWarning, match="damaged"):
        build(files / "m.py")
    assert [each.written for each in cache.why("ten.cu", "program").entries] == [each.written for each in before]


def test_a_program_is_not_compared_with_one_without_line_information(files):
    build(files / "m.py")
    rewrite(files / "m.py", ("@cuda.jit\ndef", "@cuda.jit(lineinfo=True)\ndef"))
    build(files / "m.py")
    assert told("ten.cu", "program") == [
        "sm_90   ten.cu: first build with line information of ten(float64)",
        "sm_90   ten.cu: first build of ten(float64)",
    ]


def test_the_architecture_that_numba_is_made_to_compile_for_is_named(files, monkeypatch):
    facts = [(("", "compiled for", each),) for each in ("compute_90", "compute_86")]
    for each in facts:
        parts = (("NVVM's options 0", repr(each)),)
        current_store().put(CacheKey("link", "kernel 'k'", parts, facts=lambda each=each: each), b"")
        time.sleep(0.02)
    assert told("kernel 'k'")[0].endswith("compiled for: compute_90 -> compute_86")


def test_what_another_level_of_the_cache_has_is_listed(files, monkeypatch):
    build(files / "m.py")
    monkeypatch.setenv(cache_settings.READ_ONLY, str(files / "cache"))
    monkeypatch.setenv(cache_settings.DIRECTORY, str(files / "own"))
    reset_store()
    assert told() == ["sm_90   m.py:kernel: first build"]


def test_answers_of_objects_are_told_apart_by_their_link_keys(files):
    for package, key in (("a", "2"), ("a", "3"), ("b", "2")):
        facts = (("", "architecture", "sm_90"), ("", "link key", key), ("", "package", package))
        cache_key = CacheKey("answer", "Power", (("key", key), ("package", package)), facts=lambda facts=facts: facts)
        current_store().put(cache_key, b"")
        time.sleep(0.02)  # file times are as coarse as 10 ms
    assert told("Power", kind="answer") == [
        "sm_90   answer of Power with link key 2: the module or package of its class changed",
        "sm_90   answer of Power with link key 3: first build",
        "sm_90   answer of Power with link key 2: first build",
    ]


HELPERS = """\
import numpy as np
from numba import cuda

GAIN = 2


@cuda.jit(device=True)
def shift(v):
    return v + 1
"""
VALUES = """\
import numpy as np
import helpers
from helpers import shift
from numba import cuda
from numba.cuda import autolink

lib = autolink.cxx({file!r})
P = (1, 2.0)
T = np.arange(4)


@cuda.jit
def kernel(x):
    x[0] = lib.ten(shift(x[0])) + P[1] + T[3] + helpers.GAIN
"""


@pytest.fixture
def with_helpers(files, monkeypatch):
    """The same folder, with a kernel of a module of its own and of values of several kinds."""
    (files / "helpers.py").write_text(HELPERS)
    (files / "m.py").write_text(VALUES.format(file=str(files / "ten.cu")))
    monkeypatch.syspath_prepend(str(files))
    yield files
    for name in "helpers", "others":
        sys.modules.pop(name, None)


def edit(folder, name, old, new):
    """Replace text of a file, and build the kernel as a new process would."""
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))
    for each in folder.glob("*.py"):
        os.utime(each, (1, 1))  # as if the process had begun later
    for each in "helpers", "others":
        sys.modules.pop(each, None)
    importlib.invalidate_caches()
    build(folder / "m.py")


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("m.py", "(1, 2.0)", "(1, 3.0)", "value P: (1, 2.0) -> (1, 3.0) (m.py:8)"),
        ("m.py", "arange(4)", "arange(5)", "value T: int64 [0, 1, 2, 3] -> int64 [0, 1, 2, 3, 4] (m.py:9)"),
        ("helpers.py", "GAIN = 2", "GAIN = 3", "value helpers.GAIN: 2 -> 3 (helpers.py:4)"),
        ("helpers.py", "v + 1", "v + 2", "helpers.py:shift changed: line 9"),
    ],
)
def test_values_and_functions_of_other_modules_are_named(with_helpers, file, old, new, said):
    edit(with_helpers, "m.py", "", "")
    edit(with_helpers, file, old, new)
    assert told()[0] == f"sm_90   m.py:kernel: {said}"


def test_a_function_that_comes_from_another_file_is_named(with_helpers):
    build(with_helpers / "m.py")
    (with_helpers / "others.py").write_text(HELPERS)
    edit(with_helpers, "m.py", "from helpers import", "from others import")
    assert told()[0] == "sm_90   m.py:kernel: helpers.py:shift -> others.py:shift (of the same content)"


def test_all_names_in_lines_are_taken_and_wrong_ones_are_answered(with_helpers, capsys):
    from numba_cuda_autolink.commands.main_command import main

    build(with_helpers / "m.py")
    build(with_helpers / "m.py", "float64[::1]")
    for types, new in ("float32", ""), ("float64", " for these types"):
        line = f"sm_90   m.py:kernel({types}[::1]): first build{new}"
        assert line in told()
        assert told(f"m.py:kernel({types}[::1])") == ["sm_90   m.py:kernel: first build"]
    for cause in "shift", "helpers.py", "helpers.py:shift", "helpers.GAIN", "T":
        assert len(told(cause)) == 2, cause
    rewrite(with_helpers / "m.py", ("@cuda.jit\ndef", "@cuda.jit(fastmath=True)\ndef"))
    build(with_helpers / "m.py")
    for cause in "fastmath", "GAIN", "helpers":
        assert len(told(cause)) == 3, cause
    assert main(["cache", "why", "KERNEL"]) == 1
    assert "did you mean kernel?" in capsys.readouterr().err
    assert main(["cache", "why", "m.py:kernle"]) == 1
    error = capsys.readouterr().err
    assert "nothing is cached under the name 'm.py:kernle'; did you mean m.py:kernel" in error


TYPES = """\
import numpy as np
from numba import cuda, float32, float64
from numba.cuda import autolink
from cfg import T

lib = autolink.cxx("ten.cu")
A = float32
D = np.dtype("f4")


def make(U):
    def kernel(x):
        a, b, c, d = cuda.local.array(4, T), cuda.local.array(4, A), cuda.local.array(4, D), cuda.local.array(4, U)
        a[1] = b[1] = c[1] = d[1] = x[1] * x[0]
        x[0] = lib.ten(x[0]) + a[1] / x[2] + b[1] / x[3] + c[1] / x[4] + d[1] / x[5]
        x[1] = np.float32(x[0]) / x[7]

    return kernel


autolink.build(make(np.float32), "void(float32[::1])", cc=(9, 0))
"""


def test_types_are_values(files):
    """Of Numba and of NumPy, in globals, other modules and closures."""
    (files / "m.py").write_text(TYPES)
    (files / "cfg.py").write_text("from numba import float32, float64\nT = float32\n")
    assert run(files) == ["m.py:kernel: first build, made with U=float32"]
    rewrite(files / "cfg.py", ("T = float32", "T = float64"))
    assert run(files) == ["m.py:kernel: value T: float32 -> float64 (cfg.py:2)"]
    rewrite(files / "m.py", ("A = float32", "A = float64"), ('"f4"', '"f8"'))
    assert run(files) == ["m.py:kernel: value A: float32 -> float64 (m.py:7), value D: float32 -> float64 (m.py:8)"]
    rewrite(files / "m.py", ("make(np.float32)", "make(np.float64)"))
    assert run(files) == ["m.py:kernel: made with U=float64, not float32"]
    rewrite(files / "m.py", ("= np.float32(", "= np.float64("))
    assert run(files) == ["m.py:kernel changed: line 16"]


def test_lines_of_generated_code_are_those_of_its_text(files):
    source = '\n#include <cuda/std/cmath>\nextern "C" __device__ float twice(float x) {\n    return x * 2;\n}'

    class Twice(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("twice", returns=x)

        def __numba_cuda_link__(self, x):
            return autolink.CUDASource(source, name="twice.cu")

    def build(**options):
        twice = Twice()

        def kernel(x):
            x[0] = twice(x[0])

        autolink.build(cuda.jit(kernel, **options), "void(float32[::1])", cc=(9, 0))
        return told("test_cache_history.py:")[0].partition("kernel")[2]

    build()
    assert build(lineinfo=True) == ": lineinfo=True added"
    source = source.replace("* 2", "* 3")
    assert build(lineinfo=True) == ": twice.cu changed: line 4"


def test_a_header_that_is_found_elsewhere_is_named(files):
    (files / "inc").mkdir()
    (files / "inc" / "gain.h").write_text("// gain\n")
    (files / "ten.cu").write_text(f'#include "gain.h"\n{SOURCE}')
    rewrite(files / "m.py", ("cu')", f"cu', include_paths=[{str(files / 'inc')!r}])"))
    build(files / "m.py")
    (files / "gain.h").write_text("// gain\n")
    build(files / "m.py")
    assert told()[0] == "sm_90   m.py:kernel: gain.h: inc/gain.h -> gain.h"
    assert told("ten.cu", "program")[0] == "sm_90   ten.cu: gain.h: inc/gain.h -> gain.h"


def test_other_ends_of_lines_are_told(files):
    build(files / "m.py")
    (files / "ten.cu").write_text(SOURCE, newline="\r\n")
    build(files / "m.py")
    assert told()[0] == "sm_90   m.py:kernel: ten.cu changed in the ends of its lines"


def test_a_header_that_hides_another_is_named(files):
    for folder in "inc1", "inc2", "project":
        (files / folder).mkdir()
    (files / "inc2" / "gain.h").write_text("#define GAIN 1\n")
    folders = [str(files / each) for each in ("inc1", "inc2")]
    rewrite(files / "ten.cu", ("template", "#include <gain.h>\ntemplate"), ("T(10)", "T(GAIN)"))
    rewrite(files / "m.py", ("cu')", f"cu', include_paths={folders!r})"))
    (files / "project" / "n.py").write_text((files / "m.py").read_text())
    names = "m.py", "project/n.py"
    for name in names:
        build(files / name)
    (files / "inc1" / "gain.h").write_text("#define GAIN 6\n")
    for name in names:
        build(files / name)
    assert told("m.py:kernel")[0] == "sm_90   m.py:kernel: inc1/gain.h is used, inc2/gain.h is not used"
    first, second = (os.path.join(each, "gain.h") for each in folders)
    assert told("n.py:kernel")[0] == f"sm_90   n.py:kernel: {first} is used, {second} is not used"
    assert told("ten.cu", "program")[0] == "sm_90   ten.cu: inc1/gain.h is used, inc2/gain.h is not used"
    rewrite(files / "inc1" / "gain.h", ("6", "7"))
    build(files / "m.py")
    assert told("m.py:kernel")[0] == "sm_90   m.py:kernel: gain.h changed: line 1"


def test_a_header_that_moves_with_its_source_is_one(files):
    """As where both are generated in another folder each time."""
    for number in "1", "2":
        folder = files / number
        folder.mkdir()
        (folder / "gain.h").write_text(f"#define GAIN {number}\n")
        (folder / "ten.cu").write_text('#include "gain.h"\n' + SOURCE.replace("10", "GAIN"))
        (files / "m.py").write_text(KERNEL.format(file=str(folder / "ten.cu")))
        build(files / "m.py")
    assert told()[0] == "sm_90   m.py:kernel: gain.h changed: line 1"


def test_what_is_not_cached_is_listed_last(files):
    for number in 1, 2:
        build(files / "m.py")
        facts = ("", "path", str(files / "m.py")), ("", "kernel", "kernel")
        current_store().note_not_cached("kernel", "kernel", "a reason", facts)
        (files / "ten.cu").write_text(f"{SOURCE}// {number}\n")
    lines = [line[29:] for line in str(cache.why("m.py:kernel")).splitlines()]
    assert lines == [
        "m.py:kernel: ten.cu changed: line 5",
        "m.py:kernel: first build",
        "m.py:kernel (cache=True) is not cached: a reason",
    ]


def test_the_output_is_no_change(files):
    path = files / "m.py"
    for gain in "N = 3", "N = 4":
        path.write_text(path.read_text().replace("N = 3", gain))
        build(path)
        build(path, output="ptx")
    assert told() == [
        "sm_90   m.py:kernel: value N: 3 -> 4 (m.py:5) (2 builds)",
        "sm_90   m.py:kernel: first build for ptx",
        "sm_90   m.py:kernel: first build",
    ]


def test_kernels_of_one_factory_are_told_apart_by_what_they_were_made_with(files):
    library = autolink.cxx("__device__ float once(float x) { return x; }")

    def make(c):
        def kernel(x):
            x[0] = library.once(x[0]) + c

        return kernel

    for c in 1, 2:
        autolink.build(make(c), "void(float32[::1])", cc=(9, 0))
    made = "first build, made with c=1; c=2 (2 builds)"
    assert told("history.py:kernel")[0] == f"sm_90   test_cache_history.py:kernel: {made}"
    library, line = autolink.cxx("__device__ float once(float x) { return 2 * x; }"), inspect.currentframe().f_lineno
    for c in 1, 2:
        autolink.build(make(c), "void(float32[::1])", cc=(9, 0))
    edited = (
        f"sm_90   test_cache_history.py:kernel: inline C++ changed: line {line} of test_cache_history.py (2 builds)"
    )
    assert told("history.py:kernel")[0] == edited


def test_the_history_of_helping_entries_is_in_words(files):
    build(files / "m.py")
    (files / "ten.cu").write_text(SOURCE.replace("10", "11"))
    build(files / "m.py")
    for kind in "headers", "names", "prototype", "source":
        assert not [line for line in told("ten.cu", kind) if ": :" in line or ":  " in line], kind
    assert told("ten.cu", "names")[0].endswith("names ten.cu: ten(float64): program changed")


def test_a_program_that_is_compiled_again_in_another_folder_is_named(files, monkeypatch):
    for folder in files, files / "other":
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        build(files / "m.py")
    said = f"ten.cu: compiled in another working directory: {files} -> {files / 'other'}"
    assert told()[0] == f"sm_90   m.py:kernel: {said}"
    assert told("ten.cu", "program")[0] == f"sm_90   {said}"


def test_what_is_not_cached_is_named_in_the_line_of_its_kernel(files):
    """A program with the time of its compile differs each time: two texts stand for two times here."""
    path = files / "m.py"
    for number in 1, 2:
        when = f"__device__ const char *when() {{ return __DATE__; }} __device__ int used = {number};"
        text = repr(f"\n__device__ float ten(float x) {{ return x; }}\n{when}")
        path.write_text(re.sub(r"cxx\(.*\)", lambda _, text=text: f"cxx({text})", path.read_text()))
        build(path)
    why = "the source:3: it uses the time of the compile: __DATE__"
    assert f"        ten(float64) is not cached: {why}" in str(cache.why("ten"))
    assert (
        told()[0] == f"sm_90   m.py:kernel: inline C++ changed: line 3 (m.py: line 4), inline C++ is not cached: {why}"
    )


@pytest.mark.parametrize("file", ["ten.cu", "gain.h"])
def test_a_file_that_begins_to_use_the_time_is_not_cached(files, file):
    (files / "gain.h").write_text("// gain\n")
    (files / "ten.cu").write_text(f'#include "gain.h"\n{SOURCE}')
    build(files / "m.py")
    text = (files / file).read_text()
    (files / file).write_text(f"{text}__device__ const char *when() {{ return __TIME__; }}\n")
    build(files / "m.py")
    line = len(text.splitlines()) + 1
    why = f"{file}:{line}: it uses the time of the compile: __TIME__"
    changed = f"{file} changed: line {line}"
    assert told()[0] == f"sm_90   m.py:kernel: {changed}, ten.cu is not cached: {why}"
    lines = str(cache.why("ten.cu")).splitlines()
    assert lines[-1].endswith(f" ten.cu is not cached: {files / why}")
    (files / file).write_text(text)
    reset_store()
    build(files / "m.py")
    assert "is not cached" not in str(cache.why("ten.cu"))


def test_a_source_with_options_that_exclude_a_cache_is_said_not_to_be_cached(files):
    rewrite(files / "m.py", ("cu')", f"cu', options={{'time': {str(files / 'times.csv')!r}}})"))
    build(files / "m.py")
    assert str(cache.why("ten.cu")).endswith(" ten.cu is not cached: it is compiled with the option time")


def test_builds_of_one_kernel_with_other_names_in_their_code_are_told_apart(files):
    build(files / "m.py")
    build(files / "m.py", entry_name="kernel")
    build(files / "m.py", entry_name="tenfold")
    named = [f"m.py:kernel{entry}" for entry in (" as entry 'tenfold'", " as entry 'kernel'", "")]
    assert told() == [f"sm_90   {each}: first build" for each in named]
    for each in named[:2]:
        assert len(told(each)) == 1, each


def test_every_part_of_a_line_is_taken_as_a_name(files):
    run_two_kernels_before_and_after_an_edit(files)
    lines = str(cache.why("")).splitlines()
    for line in lines:
        name = line[29:].rpartition(": first build")[0] or line[29:].partition(": ten.cu")[0]
        for wanted in name, line[29:], line[21:], *name.split(", "), *name.split(" and "):
            assert cache.why(wanted).entries, wanted
    assert str(cache.why(lines[0][29:])).splitlines() == lines[:1]
    assert cache.why("helper").entries


def test_kernels_of_a_factory_are_not_compared_with_those_of_other_values(files):
    (files / "m.py").write_text(FACTORY)
    run(files)
    for entry in list(current_store().disk.entries()):
        if entry.kind == "link" and ("kernel", "closure n", "1") not in entry.facts:
            current_store().disk.remove(entry.digest)
    rewrite(files / "m.py", (") + n", ") - n"))
    said = run(files)
    assert not [line for line in said if "not 1" in line], said


def test_kernels_of_a_copied_folder_are_first_builds(files):
    for folder in "one", "two":
        (files / folder).mkdir()
        for name, text in ("helpers.py", HELPERS), ("m.py", PROGRAM), ("ten.cu", SOURCE):
            (files / folder / name).write_text(text)
        said = run(files / folder)
    assert said == ["two/m.py:kernel (cache=True): first build"]


@pytest.mark.parametrize(
    ("imported", "named"),
    [
        ("from helpers import GAIN", "GAIN"),
        ("from helpers import (\n    GAIN,\n    shift,\n)", "GAIN"),
        ("import helpers", "helpers.GAIN"),
    ],
)
def test_the_place_of_a_value_is_where_it_is_assigned(with_helpers, imported, named):
    text = VALUES.format(file=str(with_helpers / "ten.cu")).replace(
        "from helpers import shift", f"from helpers import shift\n{imported}"
    )
    (with_helpers / "m.py").write_text(text.replace("helpers.GAIN", named))
    edit(with_helpers, "m.py", "", "")
    edit(with_helpers, "helpers.py", "GAIN = 2", "GAIN: int = 3")
    assert told()[0] == f"sm_90   m.py:kernel: value {named}: 2 -> 3 (helpers.py:4)"
    assert cache.why(f"value {named}: 2 -> 3 (helpers.py:4)").entries


def test_a_value_that_is_assigned_twice_has_no_place(with_helpers):
    edit(with_helpers, "helpers.py", "GAIN = 2", "GAIN = 1\nGAIN = 2")
    edit(with_helpers, "helpers.py", "GAIN = 2", "GAIN = 3")
    assert told()[0] == "sm_90   m.py:kernel: value helpers.GAIN: 2 -> 3"


def test_a_kernel_of_a_file_that_is_run_and_imported_has_its_module_named(files):
    (files / "m.py").write_text(PROGRAM.replace("(cache=True)", ""))
    (files / "helpers.py").write_text(HELPERS)
    (files / "n.py").write_text("import m")
    assert run(files) == ["m.py:kernel: first build"]
    assert run(files, "n.py") == ["m.py:kernel: imported as another module: __main__ -> m"]


def test_a_kernel_whose_folder_moved_is_told_with_both_folders(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (folder := tmp_path / "p").mkdir()
    (folder / "ten.cu").write_text(SOURCE)
    source = KERNEL.replace("{file!r}", "__file__.replace('m.py', 'ten.cu')")
    (folder / "m.py").write_text(source)
    build(folder / "m.py", lineinfo=True)
    other = folder.rename(tmp_path / "q")
    reset_store()
    build(other / "m.py", lineinfo=True)
    moved = f"sm_90   q/m.py:kernel: another folder: {folder} -> {other}"
    assert told() == [moved, "sm_90   p/m.py:kernel: first build"]
    (deeper := tmp_path / "r").mkdir()
    (deeper / "ten.cu").write_text(SOURCE.replace("10", "20"))
    (deeper / "m.py").write_text(source.replace("N = 3", "N = 4"))
    reset_store()
    build(deeper / "m.py", lineinfo=True)
    assert told()[0] == "sm_90   r/m.py:kernel: first build"  # the other one is there, too


def test_a_first_build_for_other_types_is_told_and_records_are_short(files):
    record = from_dtype(np.dtype([("a", np.int32), ("b", np.float32)]))
    (files / "m.py").write_text(
        f"from numba.cuda import autolink\nlib = autolink.cxx({str(files / 'ten.cu')!r})\n"
        "def kernel(x, y):\n    y[0] = lib.ten(y[0])\n"
    )
    spec = importlib.util.spec_from_file_location("m", files / "m.py")
    spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
    for each in numba_types.float32, numba_types.float64, record:
        autolink.build(module.kernel, numba_types.void(each[::1], numba_types.float32[::1]), cc=(9, 0))
    shown = "unaligned array(Record(a: int32, b: float32), 1d, C)"
    assert told() == [
        f"sm_90   m.py:kernel({shown}, float32[::1]): first build for these types",
        "sm_90   m.py:kernel(float64[::1], float32[::1]): first build for these types",
        "sm_90   m.py:kernel(float32[::1], float32[::1]): first build",
    ]


def test_equal_edits_of_several_runs_are_lines_of_their_own(files):
    (files / "m.py").write_text(PROGRAM)
    (files / "helpers.py").write_text(HELPERS)
    for factor in "10", "20", "30":
        (files / "ten.cu").write_text(SOURCE.replace("10", factor))
        run(files)
    lines = told("ten.cu", kind="program")
    assert lines == [*["sm_90a  ten.cu changed: line 3"] * 2, "sm_90a  ten.cu: first build of ten(float32)"]
