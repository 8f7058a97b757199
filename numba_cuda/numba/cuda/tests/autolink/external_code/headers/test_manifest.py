# SPDX-License-Identifier: BSD-2-Clause
"""However a header is included or probed for: when it changes or appears, the program is compiled again."""

import os
import shutil

import pytest
from numba.cuda import autolink
from numba.cuda.autolink import Target
from numba.cuda.cudadrv.external_code.cache.store import reset_store
from numba.cuda.cudadrv.external_code.compile import programs
from numba.cuda.cudadrv.external_code.compile.programs import compile_unit
from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit
from numba.cuda.cudadrv.external_code.inputs.link_input import from_item

TARGET = Target((9, 0), lto=True)


class Folder:
    """A directory with headers, which is the include path of sources that are compiled as a new process would."""

    def __init__(self, folder):
        self.folder = folder
        self.folder.mkdir()
        self.options = {}
        self.defines = {}

    def write(self, name, text):
        file = self.folder / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text, newline="")

    def compiled(self, text, name="f.cu", **options):
        reset_store()
        source = from_item(
            autolink.CUDASource(
                f'{text}\nextern "C" __device__ int f() {{ return VALUE; }}',
                name=name,
                include_paths=[self.folder],
                defines=self.defines,
                options=self.options,
            )
        )
        program = programs.compiled(source, Target((9, 0), lto=True, **options))
        if program.origin != "built":
            assert program.code == compile_unit(TranslationUnit.of(source, Target((9, 0), lto=True, **options))).code
        return program.origin


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.headers.file_state._TIME_MARGIN", 0)
    yield Folder(tmp_path / "headers")
    reset_store()


# Sources that include value.h.
INCLUDES = {
    "plainly": '#include "value.h"',
    "in angle brackets": "#include <value.h>",
    "through a digraph": '%:include "value.h"',
    "with comments inside": '/**/#/* # */include/**/"value.h" // #',
    "after a comment of several lines": '/* \n */ # /* \n */ include /* \n */ "value.h"',
    "with form feeds inside": '\f#\finclude\f"value.h"',
    "with vertical tabs inside": '\v#\vinclude\v"value.h"',
    "without blanks": "#include<value.h>",
    "on spliced lines": '#inc\\\nlude "val\\\r\nue.h"',
    "after a comment that a splice seems to continue": '// a comment \\ \n#include "value.h"',
    "after a quote that is not closed": '#if 0\ndon"t /*\n#endif\n#include "value.h"\n/* */',
    "after an apostrophe": '#if 0\ndon\'t /*\n#endif\n#include "value.h"\n/* */',
    "after a number with separators": (
        "extern constexpr int n = 1'000; extern constexpr char c = '\"', d = '/', e = '*';\n#include \"value.h\""
    ),
    "after a raw string": 'extern constexpr auto s = R"x(" /* )x";\n#include "value.h"\n/* */',
    "by a macro": '#define NAME "value.h"\n#include NAME',
    "by a macro of another macro": '#define NAME OTHER\n#define OTHER "value.h" // of it\n#include NAME',
    "by a macro with another macro in it": "#define DEEP value\n#define NAME <DEEP.h>\n#include NAME",
    "by a macro in branches": '#if 0\n#define NAME "other.h"\n#else\n#define NAME "value.h"\n#endif\n#  include NAME',
    "by a macro with comments in its directive": '/**/#/**/define/**/NAME/**/"value.h"\n#include NAME',
    "by a macro through a digraph": '%:define NAME "value.h"\n%:include NAME',
    "by a macro whose directive is spliced": '#def\\\nine NAME "value.h"\n#include NAME',
    "by a macro with a universal character name": '#define \\u00e9 "value.h"\n#include \\u00e9',
    "by a macro that is called": "#define TEXT(x) #x\n#include TEXT(value.h)",
    "by a macro with a pasted name": '#define CAT(a, b) a##b\n#define AB "value.h"\n#include CAT(A, B)',
    "through another header": '#include "other.h"',
}


@pytest.mark.parametrize("how", INCLUDES)
def test_a_header_that_is_included(folder, how):
    folder.write("other.h", '#include "value.h"\n')
    folder.write("value.h", "#define VALUE 1\n")
    assert [folder.compiled(INCLUDES[how]) for _ in range(2)] == ["built", "disk"]
    folder.write("value.h", "#define VALUE 2\n")
    assert folder.compiled(INCLUDES[how]) == "built"


def test_a_header_that_is_included_by_a_trigraph(folder):
    folder.options["std"] = "c++14"
    folder.write("value.h", "#define VALUE 1\n")
    assert [folder.compiled('??=include "value.h"') for _ in range(2)] == ["built", "disk"]
    folder.write("value.h", "#define VALUE 2\n")
    assert folder.compiled('??=include "value.h"') == "built"


ELSE = '\n#include "value.h"\n#else\n#define VALUE 0\n#endif'
# Sources that probe for value.h.
PROBES = {
    "plainly": '#if __has_include("value.h")',
    "in angle brackets": "#if __has_include(<value.h>)",
    "after defined": '#if defined(__has_include) && __has_include("value.h")',
    "on spliced lines": '#if __has_\\\ninclude("value.h")',
    "with comments inside": '#if __has_include/**/(/**/"value.h"/**/)',
    "through a macro": '#define EXISTS(x) __has_include(x)\n#if EXISTS("value.h")',
    "through a macro with angle brackets": "#define EXISTS(x) __has_include(x)\n#if EXISTS(<value.h>)",
    "through a macro that adds angle brackets": "#define EXISTS(x) __has_include(<x>)\n#if EXISTS(value.h)",
    "through a macro of macros": '#define A(x) __has_include(x)\n#define B(x) A(x)\n#if B("value.h")',
    "through another name": '#define EXISTS __has_include\n#if EXISTS("value.h")',
    "through a variadic macro": '#define EXISTS(...) __has_include(__VA_ARGS__)\n#if EXISTS("value.h")',
    "through the second parameter": '#define EXISTS(x, y) __has_include(y)\n#if EXISTS("none.h", "value.h")',
    "through a digraph": '%:define EXISTS(x) __has_include(x)\n%:if EXISTS("value.h")',
    "of a macro": '#define NAME "value.h"\n#if __has_include(NAME)',
    "of a macro, through a macro": '#define NAME "value.h"\n#define EXISTS(x) __has_include(x)\n#if EXISTS(NAME)',
    "of a part that is a macro": "#define NAME value\n#define EXISTS(x) __has_include(x)\n#if EXISTS(<NAME.h>)",
    "by pasting": '#define CAT(a, b) a##b\n#if CAT(__has_, include)("value.h")',
    "by pasting early": '#define CAT(a, b) a##b\n#if CAT(__h, as_include)("value.h")',
    "by pasting late": '#define CAT(a, b) a##b\n#if CAT(__has_includ, e)("value.h")',
    "in a macro's value": '#define FOUND __has_include("value.h")\n#if FOUND',
    "in code": '#define EXISTS(x) __has_include(x)\nconstexpr bool found = EXISTS("value.h");\n#if EXISTS("value.h")',
    "in another header": '#include "exists.h"\n#if EXISTS("value.h")',
    "in an option": '#if OPTION("value.h")',
    "in an option, by name": '#if OPTION_NAME("value.h")',
}


@pytest.mark.parametrize("how", PROBES)
def test_a_header_that_is_probed_for(folder, how):
    text = PROBES[how] + ELSE
    folder.defines = {"OPTION(x)": "__has_include(x)", "OPTION_NAME": "__has_include"} if "option" in how else {}
    folder.write("exists.h", "#define EXISTS(x) __has_include(x)\n")
    assert [folder.compiled(text) for _ in range(2)] == ["built", "disk"]
    folder.write("value.h", "#define VALUE 1\n")
    assert folder.compiled(text) == "built"
    os.remove(folder.folder / "value.h")
    folder.compiled(text)  # which compares the code
    folder.write("value.h", "#define VALUE 2\n")
    assert folder.compiled(text) == "built"


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("__device__ const char *when() { return __TIME__; }", 2, "__TIME__"),
        ("#define CAT(a, b) a##b\n__device__ const char *when() { return CAT(__DA, TE__); }", 3, "TE__"),
        ('__device__ const char *a = "\\\n";__device__ const char *when() { return __TI\\\nME__; }', 3, "__TIME__"),
    ],
)
def test_what_is_not_cached_is_logged(folder, caplog, text, line, word):
    folder.write("value.h", f"#define VALUE 1\n{text}\n")
    with caplog.at_level("INFO", "numba_cuda_autolink.cache"):
        assert [folder.compiled('#include "value.h"') for _ in range(2)] == ["built", "built"]
    why = f"{folder.folder / 'value.h'}:{line}: it uses the time of the compile: {word}"
    assert caplog.text.count(f"program 'f.cu' is not cached: {why}") == 2
    assert f"  f.cu is not cached: {why}" in str(autolink.cache.why("f.cu"))


def test_a_link_that_is_retargeted(folder):
    """The same header by two paths, one of them through a link: what it includes in turn is looked for in both."""
    for name, value in ("one", 1), ("two", 2):
        folder.write(f"{name}/outer.h", '#include "inner.h"\n')
        folder.write(f"{name}/inner.h", f"#undef VALUE\n#define VALUE {value}\n")
    link = folder.folder / "link"
    link.symlink_to("one")
    text = '#include "one/outer.h"\n#include "link/outer.h"'
    assert [folder.compiled(text) for _ in range(2)] == ["built", "disk"]
    link.unlink()
    link.symlink_to("two")
    assert [folder.compiled(text) for _ in range(2)] == ["built", "disk"]


def test_a_link_that_is_replaced_by_a_copy(folder):
    """``#pragma once`` takes a file and a link to it for one."""
    once = "#pragma once\n#ifdef VALUE\n#undef VALUE\n#define VALUE 2\n#else\n#define VALUE 1\n#endif\n"
    folder.write("one.h", once)
    (folder.folder / "two.h").symlink_to("one.h")
    text = '#include "one.h"\n#include "two.h"'
    assert [folder.compiled(text) for _ in range(2)] == ["built", "disk"]
    (folder.folder / "two.h").unlink()
    folder.write("two.h", once)
    assert [folder.compiled(text) for _ in range(2)] == ["built", "disk"]


def test_a_name_that_becomes_a_file(folder, tmp_path):
    """In one process: the source is then looked for, and its includes, elsewhere."""
    name = str(tmp_path / "later" / "f.cu")
    source = from_item(
        autolink.CUDASource(
            '#include "value.h"\nextern "C" __device__ int f() { return VALUE; }',
            name=name,
            include_paths=[folder.folder],
        )
    )
    folder.write("value.h", "#define VALUE 1\n")
    before = programs.compiled(source, TARGET)
    assert programs.compiled(source, TARGET).origin == "memory"
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "value.h").write_text("#define VALUE 2\n")
    (tmp_path / "later" / "f.cu").write_text("")
    after = programs.compiled(source, TARGET)
    assert after.origin == "built"
    assert after.code == compile_unit(TranslationUnit.of(source, TARGET)).code != before.code


@pytest.mark.parametrize(
    "text, options, depends",
    [
        ("", {}, False),
        ("__device__ const char *file() { return __FILE__; }", {}, True),
        ("#define HERE __FILE__\n__device__ const char *file() { return HERE; }", {}, True),
        ("__device__ const char *file() { return __builtin_FILE(); }", {}, True),
        ("__device__ void check(int n) { assert(n); }", {}, True),
        ("static_assert(true);", {}, False),
        ("", {"lineinfo": True}, True),
    ],
)
def test_another_checkout_of_the_same_sources(folder, tmp_path, text, options, depends):
    folder.write("value.h", f"#define VALUE 1\n#include <deep/more.h>\n{text}\n")
    folder.write("deep/more.h", '#include "../optional.h"\n')
    folder.write("optional.h", "")
    folder.write("f.cu", '#include "value.h"\nextern "C" __device__ int f() { return VALUE; }')

    def origins():
        reset_store()
        source = from_item(autolink.CUDASource('#include "value.h"', name="f.cu", include_paths=[folder.folder]))
        file = from_item(
            autolink.CUDASource(
                (folder.folder / "f.cu").read_text(), name=str(folder.folder / "f.cu"), include_paths=[folder.folder]
            )
        )
        return [programs.compiled(each, Target((9, 0), lto=True, **options)).origin for each in (source, file)]

    assert [origins(), origins()] == [["built", "built"], ["disk", "disk"]]
    moved = tmp_path / "elsewhere" / "headers"
    moved.parent.mkdir()
    folder.folder = shutil.move(folder.folder, moved)
    assert origins() == (["built", "built"] if depends else ["disk", "disk"])
    (moved / "optional.h").write_text("#undef VALUE\n#define VALUE 2\n")
    assert origins() == ["built", "built"]


def test_include_paths_that_lie_in_each_other_are_not_others(folder, tmp_path):
    """``x.h`` is found in the one and not in the other, although the files have the same names below the paths."""

    def origin(top, second):
        reset_store()
        probe = '#include "sub/x.h"\n#if __has_include("x.h")\n#define VALUE 1\n#else\n#define VALUE 0\n#endif'
        source = from_item(
            autolink.CUDASource(
                f'{probe}\nextern "C" __device__ int f() {{ return VALUE; }}', name="f.cu", include_paths=[top, second]
            )
        )
        return programs.compiled(source, TARGET).origin

    for name in "a", "b":
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "sub" / "x.h").write_text("")
    (tmp_path / "empty").mkdir()
    assert origin(tmp_path / "a", tmp_path / "a" / "sub") == "built"
    assert origin(tmp_path / "b", tmp_path / "empty") == "built"
    assert origin(tmp_path / "b", tmp_path / "b" / "sub") == "disk"
