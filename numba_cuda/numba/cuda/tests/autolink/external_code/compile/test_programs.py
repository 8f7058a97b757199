# SPDX-License-Identifier: BSD-2-Clause
"""Programs are compiled once, and compiled again when anything that they depend on has changed."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import multiprocessing
import os
import threading
from pathlib import Path
from typing import Any

import cuda.core
import pytest
from cache_support import fork, wait
from numba.cuda import autolink, config
from numba.cuda.autolink import Target
from numba.cuda.cudadrv.external_code.cache.store import current_store, reset_store
from numba.cuda.cudadrv.external_code.compile import nvrtc_processes, programs, translation_unit
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.compile.programs import compile_unit
from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, from_item
from numba.cuda.cudadrv.external_code.platform import cuda_libraries

TRACES = cuda_libraries.nvrtc_version() >= (13, 0)
TARGET = Target((9, 0), lto=True)
LONG_AGO = 10 * 10**9


@contextlib.contextmanager
def working_directory(folder):
    outer = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(outer)


class Tree:
    """A source and headers in two include directories; `settle` makes the files so old that their times are trusted."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.target = TARGET
        self.name = "f.cu"
        self.code = (
            '#include "one.h"\n#if __has_include("optional.h")\n#include "optional.h"\n#else\n#define OPTIONAL 0\n'
            '#endif\nextern "C" __device__ int f(int x) { return x + ONE + TWO + THREE + OPTIONAL + MACRO; }'
        )
        self.options: dict[str, Any] = {"std": "c++17", "restrict": True}
        self.defines: list[tuple[str, Any]] = [("MACRO", 1), ("OTHER", 2)]
        self.paths = [folder / "first", folder / "second"]
        self.write("first/unrelated.h", "#error\n")
        self.write("second/one.h", '#include "deep/two.h"\n#define ONE 1\n')
        self.write("second/deep/two.h", '#include "three.h"\n#define TWO 2\n')
        self.write("second/deep/three.h", "#define THREE 3\n")
        (folder / "empty").mkdir()
        self.compiled_in = folder / "work"
        self.compiled_in.mkdir()
        self.settle()

    def write(self, name: str, text: str) -> Path:
        file = self.folder / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text)
        return file

    def settle(self) -> None:
        for path in (self.folder, *self.folder.rglob("*")):
            old = path.stat().st_mtime_ns - LONG_AGO
            os.utime(path, ns=(old, old))

    @property
    def source(self) -> LinkInput:
        if os.path.isfile(self.name):
            return dataclasses.replace(from_item(self.name), name=self.name)
        return from_item(
            autolink.CUDASource(
                self.code, name=self.name, include_paths=self.paths, defines=self.defines, options=self.options
            )
        )

    def compiled(self) -> programs.Program:
        """Return the program as a new process would find it; it is what the compiler makes now."""
        reset_store()
        program = programs.compiled(self.source, self.target)
        if program.origin != "built":
            unit = TranslationUnit.of(self.source, self.target)
            with working_directory(self.compiled_in):  # which NVRTC writes into LTO-IR
                assert program.code == compile_unit(unit).code
        return program


@pytest.fixture
def tree(tmp_path, monkeypatch):
    (tmp_path / "tree").mkdir()
    tree = Tree(tmp_path / "tree")
    monkeypatch.chdir(tree.folder / "work")
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.headers.file_state._TIME_MARGIN", 0)
    yield tree
    reset_store()


def change(number: int, before: str, after: str):
    """Edit a header of the tree, and keep its size if the two are as long."""

    def edit(tree: Tree, **_: Any) -> None:
        file = tree.folder / ("second/one.h", "second/deep/two.h", "second/deep/three.h")[number - 1]
        text = file.read_text()
        assert before in text
        file.write_text(text.replace(before, after))

    return edit


def edit_and_restore_the_time(tree, **_):
    file = tree.folder / "second/one.h"
    before = file.stat()
    file.write_text(file.read_text().replace("ONE 1", "ONE 7"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def edit_and_undo(tree, **_):
    file = tree.folder / "second/one.h"
    text = file.read_text()
    file.write_text("")
    file.write_text(text)


def replace_by(text):
    def replace(tree, **_):
        os.replace(tree.write("new.h", text), tree.folder / "second/deep/three.h")

    return replace


def move_to_the_first_directory(tree, **_):
    os.replace(tree.folder / "second/one.h", tree.folder / "first/one.h")
    os.replace(tree.folder / "second/deep", tree.folder / "first/deep")


def make(name, text="#define OPTIONAL 5\n"):
    return lambda tree, **_: tree.write(name, text)


def touch(name):
    return lambda tree, **_: os.utime(tree.folder / name)


def assign(attribute, value):
    return lambda tree, **_: setattr(tree, attribute, value)


def retarget(**changes):
    return lambda tree, **_: setattr(tree, "target", dataclasses.replace(tree.target, **changes))


def option(name, value):
    return lambda tree, **_: tree.options.update({name: value})


def patch(module, name, value):
    return lambda monkeypatch, **_: monkeypatch.setattr(module, name, value)


def setenv(name, value):
    return lambda monkeypatch, **_: monkeypatch.setenv(name, value)


def chdir(name):
    return lambda tree, monkeypatch, **_: monkeypatch.chdir(tree.folder / name)


def work_with_a_header(tree, **_):
    tree.write("work/one.h", "#define ONE 8\n#define TWO 2\n#define THREE 3\n")


def search_elsewhere_too(tree, monkeypatch, **_):
    monkeypatch.setattr(config, "CUDA_NVRTC_EXTRA_SEARCH_PATHS", str(tree.folder / "empty"))


MISS, HIT = "built", "disk"
ALL = "#define ONE 9\n#define TWO 9\n#define THREE 9\n"
CHANGES = {
    "nothing": (HIT, lambda **_: None),
    # The source
    "the source": (MISS, lambda tree, **_: setattr(tree, "code", tree.code.replace("return x", "return 2 * x"))),
    "a comment in the source": (MISS, lambda tree, **_: setattr(tree, "code", tree.code + "// as text it is another")),
    "the source's name, which __FILE__ is": (MISS, assign("name", "g.cu")),
    # Macros and options
    "a macro's value": (MISS, assign("defines", [("MACRO", 3), ("OTHER", 2)])),
    "a macro more": (MISS, assign("defines", [("MACRO", 1), ("OTHER", 2), ("MORE", None)])),
    "a macro less": (MISS, assign("defines", [("MACRO", 1)])),
    "the order of macros, the last of which counts": (MISS, assign("defines", [("OTHER", 2), ("MACRO", 1)])),
    "macros as a mapping": (HIT, assign("defines", {"MACRO": 1, "OTHER": 2})),
    "the order of options": (HIT, assign("options", {"restrict": True, "std": "c++17"})),
    "an option's value": (MISS, option("std", "c++20")),
    "an option more": (MISS, option("use_fast_math", True)),
    "an option that is not set": (HIT, option("ftz", None)),
    # Include paths
    "the order of include paths": (MISS, lambda tree, **_: tree.paths.reverse()),
    "an include path more": (MISS, lambda tree, **_: tree.paths.append(tree.folder / "empty")),
    "an include path less": (MISS, lambda tree, **_: tree.paths.pop(0)),
    "numba-cuda's extra search paths": (MISS, search_elsewhere_too),
    # Headers
    "a header at depth 1": (MISS, change(1, "ONE 1", "ONE 10")),
    "a header at depth 2": (MISS, change(2, "TWO 2", "TWO 20")),
    "a header at depth 3": (MISS, change(3, "THREE 3", "THREE 30")),
    "a header, to another text of the same size": (MISS, change(3, "THREE 3", "THREE 4")),
    "a header, whose time is set back": (MISS, edit_and_restore_the_time),
    "a comment in a header": (MISS, change(1, "ONE 1", "ONE 1 // one")),
    "a header, and back": (HIT, edit_and_undo),
    "a header, touched only": (HIT, touch("second/one.h")),
    "all headers, touched only": (HIT, lambda tree, **_: tree.settle()),
    "a header, replaced by an equal one": (HIT, replace_by("#define THREE 3\n")),
    "a header, replaced by another": (MISS, replace_by("#define THREE 33\n")),
    "headers, moved to another include path": (MISS, move_to_the_first_directory),
    "a header more, included by a header": (MISS, change(3, "#define", '#include "four.h"\n#define')),
    "a header that shadows another on the include path": (MISS, make("first/one.h", ALL)),
    "a header that would, were there none beside the one that includes it": (HIT, make("first/deep/two.h", ALL)),
    "a header that shadows one where it includes": (MISS, make("second/deep/three.h", "#define THREE 9\n")),
    "a header that appears where __has_include asks": (MISS, make("second/optional.h")),
    "a header that appears there in the working directory": (MISS, make("work/optional.h")),
    "a directory of that name": (HIT, lambda tree, **_: (tree.folder / "second/optional.h").mkdir()),
    "a file that nothing includes": (HIT, touch("first/unrelated.h")),
    "the text of a file that nothing includes": (HIT, make("first/unrelated.h", "#error again\n")),
    "a file more that nothing includes": (HIT, make("second/unrelated.h", "#error\n")),
    # Where it is compiled
    "the working directory": (HIT, chdir("empty")),
    "the working directory, which has the header": (MISS, work_with_a_header),
    "the environment": (HIT, setenv("UNRELATED", "1")),
    # The target
    "the compute capability": (MISS, retarget(compute_capability=(8, 0))),
    "the compute capability's suffix": (MISS, retarget(suffix="a")),
    "no LTO": (MISS, retarget(lto=False)),
    "debug, which LTO takes no part in": (HIT, retarget(debug=True)),
    "line information": (MISS, retarget(lineinfo=True)),
    "the register cap": (MISS, retarget(max_registers=32)),
    "fastmath, which is for the kernel's own code": (HIT, retarget(fastmath=True)),
    # Versions
    "NVRTC": (MISS, patch(translation_unit, "nvrtc_build", lambda: "99.0")),
    "cuda.core": (MISS, patch(cuda.core, "__version__", "99.0")),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_misses_or_hits_as_a_compiler_engineer_would_say(tree, monkeypatch, name):
    expected, apply = CHANGES[name]
    if name == "a header that shadows one where it includes":
        # In the first place, next to the file that includes, and not on the include path.
        os.replace(tree.folder / "second/deep/three.h", tree.folder / "second/three.h")
        tree.settle()
    elif name == "a header more, included by a header":
        tree.write("second/deep/four.h", "#define FOUR 4\n")
    assert tree.compiled().origin == "built"
    assert tree.compiled().origin == "disk"
    apply(tree=tree, monkeypatch=monkeypatch)
    assert tree.compiled().origin == expected
    assert tree.compiled().origin == "disk"


def test_with_line_information_the_working_directory_counts(tree, monkeypatch):
    retarget(lineinfo=True)(tree)
    tree.compiled()
    tree.compiled_in = tree.folder / "empty"
    monkeypatch.chdir(tree.compiled_in)
    assert [tree.compiled().origin for _ in range(2)] == ["built", "disk"]


def test_a_header_of_the_working_directory_that_is_an_include_path_too(tree, monkeypatch):
    """It is found first in another working directory, whichever of the two it was taken from."""
    tree.code = '#include "one.h"\nextern "C" __device__ int f() { return ONE; }'
    tree.write("empty/one.h", "#define ONE 2\n")
    for folder, origins in ("first", ["built", "disk"]), ("empty", ["built", "disk"]), ("first", ["disk"]):
        tree.compiled_in = tree.folder / folder
        monkeypatch.chdir(tree.compiled_in)
        assert [tree.compiled().origin for _ in origins] == origins


def test_an_edited_source_file_misses_and_a_touched_one_hits(tree):
    file = tree.write("lib/f.cu", tree.code.replace("MACRO", "0"))
    for name in ("one.h", "deep/two.h", "deep/three.h"):
        tree.write(f"lib/{name}", (tree.folder / "second" / name).read_text())
    tree.name = str(file)
    assert tree.compiled().origin == "built"
    os.utime(file)
    assert tree.compiled().origin == "disk"
    file.write_text(file.read_text().replace("ONE", "2 * ONE"))
    assert tree.compiled().origin == "built"
    tree.name = str(file.rename(file.with_name("g.cu")))
    assert tree.compiled().origin == "built"


def test_a_source_file_s_own_directory_is_searched_before_the_working_directory(tree):
    file = tree.write("lib/f.cu", '#include "one.h"\n#include "here.h"\nextern "C" __device__ int f() { return ONE; }')
    tree.write("lib/one.h", "#define ONE 1\n")
    tree.write("work/one.h", "#error the wrong one\n")
    tree.write("work/here.h", "")
    tree.name = str(file)
    assert tree.compiled().origin == "built"


def test_a_removed_header_is_the_compiler_s_error(tree):
    tree.compiled()
    (tree.folder / "second/deep/three.h").unlink()
    with pytest.raises(CompileError, match=r'cannot open source file "three.h"'):
        programs.compiled(tree.source, tree.target)


@pytest.mark.parametrize("kind", ["next", "linked", "pre-included"])
def test_headers_that_are_included_in_other_ways(tree, kind):
    third = tree.folder / "second/deep/three.h"
    if kind == "next":
        tree.write("first/one.h", '#include_next "one.h"\n')
    elif kind == "linked":
        third = tree.write("empty/three.h", third.read_text())
        (tree.folder / "second/deep/three.h").unlink()
        (tree.folder / "second/deep/three.h").symlink_to(third)
    else:
        tree.code = tree.code.replace('#include "one.h"\n', "")
        tree.options["pre_include"] = "one.h"
    tree.settle()
    assert [tree.compiled().origin for _ in range(2)] == ["built", "disk"]
    third.write_text("#define THREE 4\n")
    assert [tree.compiled().origin for _ in range(2)] == ["built", "disk"]


def test_a_header_that_an_option_names(tree):
    tree.write("second/deep/two.h", "#include THIRD\n#define TWO 2\n")
    tree.defines.append(("THIRD", '"three.h"'))
    tree.settle()
    assert [tree.compiled().origin for _ in range(2)] == ["built", "disk"]
    change(3, "THREE 3", "THREE 4")(tree)
    assert [tree.compiled().origin for _ in range(2)] == ["built", "disk"]


def test_a_header_that_only_a_compile_finds(tree):
    tree.write("second/deep/two.h", "#define TEXT(x) #x\n#include TEXT(three.h)\n#define TWO 2\n")
    built = tree.compiled()
    assert built.origin == "built" and built.key == programs.program_digest(tree.source, TARGET, on_record=True)
    assert tree.compiled().origin == "disk"
    change(3, "THREE 3", "THREE 4")(tree)
    assert [tree.compiled().origin for _ in range(2)] == ["built", "disk"]
    tree.write("first/deep/three.h", "#define THREE 5\n")
    tree.compiled()


def test_a_header_that_is_probed_for_by_a_macro(tree):
    tree.write("second/deep/two.h", '#include "three.h"\n#define NAME "four.h"\n#define TWO __has_include(NAME)\n')
    tree.code += "\n#if TWO\n__device__ int four;\n#endif\n"
    tree.code = tree.code.replace("+ TWO", "")
    assert [tree.compiled().origin for _ in range(2)] == ["built", "disk"]
    tree.write("second/four.h", "")
    assert [tree.compiled().origin for _ in range(2)] == ["built", "disk"]


def test_headers_that_define_has_include_for_other_compilers(tree):
    tree.write(
        "second/deep/two.h",
        '#include "three.h"\n#ifndef __has_include\n#  define __has_include(x) 0\n#endif\n'
        "#if __has_include(<cuda_fp16.h>)\n#define TWO 2\n#endif\n",
    )
    assert [tree.compiled().origin for _ in range(2)] == ["built", "disk"]


@pytest.mark.parametrize("macro", ["__TIME__", "__DATE__"])
def test_what_depends_on_the_time_is_not_cached(tree, macro):
    tree.code += f"\n__device__ const char *when() {{ return {macro}; }}"
    for _ in range(2):
        reset_store()
        assert programs.compiled(tree.source, tree.target).origin == "built"


@pytest.mark.skipif(not TRACES, reason="this NVRTC does not report headers")
@pytest.mark.parametrize(
    "header",
    [
        "cuda/std/cstdint",
        "cuda_fp16.h",
        *(
            pytest.param(header, marks=pytest.mark.thorough)
            for header in (
                "cuda/std/complex",
                "cub/block/block_radix_sort.cuh",
                "cooperative_groups.h",
                "cuda/barrier",
                "thrust/iterator/transform_iterator.h",  # whose headers macros name
            )
        ),
    ],
)
def test_all_headers_that_nvrtc_reads_are_found(tree, header):
    tree.code = f"#include <{header}>"
    unit = TranslationUnit.of(tree.source, TARGET)
    options = [*nvrtc_processes.nvrtc_options(unit), f"--fdevice-time-trace={tree.folder / 'trace.json'}"]
    with nvrtc_processes.NvrtcProcess() as child:  # NVRTC 13.4 has been seen to corrupt memory when it traces
        nvrtc_processes.run_in_child(child, unit, unit.code, options, ())
    events = [
        event for file in tree.folder.glob("trace.json*") for event in json.loads(file.read_text())["traceEvents"]
    ]
    reported = {event["args"]["detail"] for event in events if event.get("name") == "Processing Header File"}
    reported = {path for path in reported if os.path.isfile(path)}  # others are part of NVRTC
    programs.compiled(tree.source, TARGET)
    known = programs.unit_of(tree.source, TARGET).known()
    assert reported and reported <= {header.path for header in known.manifest.headers}


def test_a_program_that_depends_on_other_files_than_headers_is_not_cached(tree):
    tree.options["fdevice_time_trace"] = str(tree.folder / "trace")
    assert [tree.compiled().origin for _ in range(2)] == ["built", "built"]


def test_a_header_that_is_edited_during_the_compile(tree, monkeypatch):
    def compile_and_edit(unit, names=()):
        compiled = compile_unit(unit)
        change(3, "THREE 3", "THREE 4")(tree)
        return compiled

    with monkeypatch.context() as patches:
        patches.setattr(programs, "compile_unit", compile_and_edit)
        assert programs.compiled(tree.source, tree.target).origin == "built"
    assert [tree.compiled().origin for _ in range(2)] == ["built", "disk"]


def test_a_header_that_was_written_just_now_is_read_again(tree, monkeypatch):
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.headers.file_state._TIME_MARGIN", 10**12)
    assert [tree.compiled().origin for _ in range(2)] == ["built", "disk"]
    edit_and_restore_the_time(tree)
    assert tree.compiled().origin == "built"


def test_a_change_is_seen_at_once_in_memory_too(tree):
    def origin():
        return programs.compiled(tree.source, tree.target).origin

    assert [origin(), origin()] == ["built", "memory"]
    change(3, "THREE 3", "THREE 4")(tree)
    assert [origin(), origin()] == ["built", "memory"]
    make("first/one.h", "#define ONE 1\n#define TWO 2\n#define THREE 3\n")(tree)
    assert [origin(), origin()] == ["built", "memory"]
    (tree.folder / "first/one.h").unlink()
    assert origin() == "memory"


def test_warnings_are_given_by_a_cached_program_too(tree):
    tree.code = '__device__ int g() { int unused = 1; return 0; }\n#warning "mind the gap"\n' + tree.code
    for origin in ("built", "disk"):
        reset_store()
        with pytest.warns(UserWarning, match="mind the gap"):
            assert programs.compiled(tree.source, tree.target).origin == origin


def test_a_damaged_record_of_headers_is_rebuilt(tree, monkeypatch):
    tree.compiled()
    unit = programs.unit_of(tree.source, tree.target)
    for data in (b"", b"{}", b"[1, 2]", b'{"recorded": 1}'):
        reset_store()
        current_store().put(unit.base_key, data)
        assert tree.compiled().origin == "disk"


def test_the_digest_of_a_program_follows_the_headers(tree, monkeypatch):
    def digest(*, on_record):
        return programs.program_digest(tree.source, tree.target, on_record=on_record)

    assert digest(on_record=True) is None
    before = digest(on_record=False)
    assert before is not None
    with monkeypatch.context() as patches:
        patches.setattr(programs, "compile_unit", None)
        assert digest(on_record=True) == digest(on_record=False) == before
        change(3, "THREE 3", "THREE 4")(tree)
        assert digest(on_record=True) is None
    assert digest(on_record=False) not in (None, before)
    change(3, "THREE 4", "THREE 3")(tree)
    assert digest(on_record=True) == before
    tree.code += "\n__device__ const char *when() { return __TIME__; }"
    assert digest(on_record=False) is None


def test_why_it_missed(tree, monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_LOG", "cache")
    tree.compiled()
    retarget(max_registers=32)(tree)
    tree.compiled()
    assert "program 'f.cu' built in" in (printed := capsys.readouterr().err)
    assert "f.cu: max_registers=32 added" in printed
    change(3, "THREE 3", "THREE 4")(tree)
    tree.compiled()
    assert "three.h changed: line 1" in capsys.readouterr().err


def test_equal_sources_with_different_names_are_different_programs(tree):
    tree.code = 'extern "C" __device__ const char *f() { return __FILE__; }'
    first = tree.source
    second = dataclasses.replace(first, name="g.cu")
    assert first == second
    codes = [programs.compiled(source, TARGET).code for source in (first, second)]
    assert codes[0] != codes[1]


# Concurrent compiles


def cub_sources(count):
    return [
        from_item(
            autolink.CUDASource(
                f'#include <cub/block/block_reduce.cuh>\nextern "C" __device__ int f{n}(int x) {{ return x + {n}; }}',
                name=f"f{n}.cu",
            )
        )
        for n in range(count)
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.counted
def test_slow_sources_are_compiled_in_several_processes(tree, monkeypatch, most):
    monkeypatch.setenv(nvrtc_processes.JOBS, str(most))
    ran = []
    request = nvrtc_processes.NvrtcProcess.request
    monkeypatch.setattr(
        nvrtc_processes.NvrtcProcess,
        "request",
        lambda child, *a, **how: ran.append(child.pid) or request(child, *a, **how),
    )
    sources = cub_sources(2)
    compiled = programs.all_compiled(sources, TARGET)
    assert [program.origin for program in compiled] == ["built", "built"]
    assert len(set(ran)) == most
    for source, program in zip(sources, compiled, strict=True):
        assert program.code == compile_unit(TranslationUnit.of(source, TARGET)).code
    reset_store()
    assert [program.origin for program in programs.all_compiled(sources, TARGET)] == ["disk", "disk"]


def test_the_first_failure_stops_what_is_queued_and_all_failures_so_far_are_told(monkeypatch):
    """Nine sources, two of them at once: the last are not begun."""
    monkeypatch.setenv(nvrtc_processes.JOBS, "2")
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.compile.program_cache.MANY_HEADERS", 0)
    begun, both = [], threading.Barrier(2, timeout=60)

    def fail(unit, **how):
        begun.append(unit.name)
        if len(begun) <= 2:
            both.wait()
        raise CompileError(unit.name, f"{unit.name} is wrong")

    monkeypatch.setattr(nvrtc_processes, "compile_unit", fail)
    sources = [from_item(autolink.CUDASource(f"#include <cuda_fp16.h>\n// {n}", name=f"f{n}.cu")) for n in range(9)]
    with pytest.raises(programs.SourceError) as caught:
        programs.all_compiled(sources, TARGET)
    failed = [caught.value, *caught.value.others]
    assert sorted(f"f{each.number}.cu" for each in failed) == sorted(begun)
    assert 2 <= len(begun) < 9
    assert all(str(each) == f"{each.error.args[0]}" for each in failed)


@pytest.mark.counted
@pytest.mark.parametrize("what", ["programs", "names", "programs after an edit"])
def test_a_program_that_eight_processes_want_at_once_is_compiled_once(tree, monkeypatch, what):
    runs, everyone = tree.folder / "runs", multiprocessing.get_context("fork").Barrier(8)
    request = nvrtc_processes.run_in_child

    def noted(*given):
        with open(runs, "a") as file:
            file.write("NVRTC\n")
        return request(*given)

    tree.code += "\n__device__ int value;"
    if what == "programs after an edit":
        programs.compiled(tree.source, TARGET)
        change(3, "THREE 3", "THREE 4")(tree)
    monkeypatch.setattr(nvrtc_processes, "run_in_child", noted)

    def work():
        reset_store()
        everyone.wait(60)
        if what != "names":
            programs.compiled(tree.source, TARGET)
        else:
            assert programs.lowered_names(tree.source, TARGET, ["&value"]).names["&value"] == "value"
        nvrtc_processes.processes.close()

    assert [wait(child) for child in [fork(work) for _ in range(8)]] == [0] * 8
    assert runs.read_text() == "NVRTC\n"
