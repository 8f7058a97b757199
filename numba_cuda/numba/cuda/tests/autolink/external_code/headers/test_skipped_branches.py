# SPDX-License-Identifier: BSD-2-Clause
"""Branches that NVRTC skips because it defines ``__CUDACC_RTC__``: headers that only they include are not read."""

import dataclasses
import random

import pytest
from numba.cuda.autolink import CUDASource, Target
from numba.cuda.cudadrv.external_code.compile.programs import compile_unit
from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit
from numba.cuda.cudadrv.external_code.headers.manifest import HeaderManifest
from numba.cuda.cudadrv.external_code.headers.preprocessor import Directives
from numba.cuda.cudadrv.external_code.headers.scan import SourceText
from numba.cuda.cudadrv.external_code.inputs.link_input import from_item


@pytest.mark.parametrize(
    "condition, is_skipped",
    [
        ("ifdef __CUDACC_RTC__", False),
        ("ifndef __CUDACC_RTC__", True),
        ("if !defined(__CUDACC_RTC__)", True),
        ("if ! defined __CUDACC_RTC__ // host", True),
        ("if !!!defined(__CUDACC_RTC__)", True),
        ("if !(defined(__CUDACC_RTC__) || defined(A))", True),
        ("if !defined(__CUDACC_RTC__) && (defined(A) || defined B)", True),
        ("if (defined(A) && !defined(__CUDACC_RTC__)) || 0", True),
        ("if defined(A) || !defined(__CUDACC_RTC__)", False),
        ("if !defined(__CUDACC_RTC__) && A", False),  # A may be `1 || 1`
        ("if !defined(__CUDACC_RTC__) && A(x)", False),
        ("if !defined(__CUDACC_RTC__) or 1", False),
        ("if !defined(__CUDACC_RTC__) ? 0 : 1", False),
        ("if !defined(__CUDACC_RTC__) | 1", False),
        ("if !defined(__CUDACC_RTC__X)", False),
        ("if !__CUDACC_RTC__", False),
        ("if " + "(" * 300 + "!defined(__CUDACC_RTC__)" + ")" * 300, False),
        ("if !defined(__CUDACC_RTC__", False),
    ],
)
def test_only_conditions_of_nothing_but_defined_names_are_evaluated(condition, is_skipped):
    text = f"int before;\n#{condition}\n#include <a>\n#endif\n#include <b>\n"
    assert (("<", "a") not in Directives.of(text.encode()).names) == is_skipped
    assert ("<", "b") in Directives.of(text.encode()).names


SKIPPED = "#ifndef __CUDACC_RTC__\n#include <a>\n"


@pytest.mark.parametrize(
    "text",
    [
        SKIPPED,
        SKIPPED + "#endif\n#endif\n",
        "#else\n" + SKIPPED + "#endif\n",
        SKIPPED + '#endif\nchar c = R"(\n#endif)"[0];\n',
        SKIPPED + "don't /*\n#endif\n",
        SKIPPED + '"\n#endif\n',
        SKIPPED + "#endif\n/* open",
    ],
)
def test_a_text_whose_conditionals_may_be_misread_is_read_whole(text):
    assert ("<", "a") in Directives.of(text.encode()).names


@pytest.mark.parametrize("line", ["#undef __CUDACC_RTC__", "# define __CUDACC_RTC__ 1", "%:undef __CUDACC_RTC__ // x"])
def test_where_the_macro_is_redefined_nobody_can_say_what_is_read(tmp_path, line):
    (tmp_path / "a.h").write_text(f"{line}\n")
    found = SourceText(b'#include "a.h"\n', str(tmp_path), ()).scan()
    assert found.unclear == (str(tmp_path / "a.h"), "it may redefine __CUDACC_RTC__")
    assert not SourceText(f"#ifndef __CUDACC_RTC__\n{line}\n#endif".encode(), "", ()).scan().unclear


def test_so_it_is_where_an_option_undefines_it():
    assert SourceText(b"", "", (), undefined=("__CUDACC_RTC__",)).scan().unclear
    assert SourceText(b"", "", (), defined=(("__CUDACC_RTC__", "1"),)).scan().unclear


def draw_conditionals(draw, number, depth=0):
    """Lines that include ``h0.h`` and so on in branches, and the next number."""
    lines = []
    for _ in range(draw.randrange(1, 4)):
        if depth < 3 and draw.random() < 0.6:
            operands = [draw.choice(("", "!", "! !")) + draw.choice(NAMES) for _ in range(draw.randrange(1, 4))]
            condition = "".join(f"{draw.choice((' && ', ' || '))}{each}" for each in operands)[4:]
            if draw.random() < 0.3:
                condition = f"!({condition}) && {draw.choice(NAMES)}"
            lines.append(f"#if {condition}")
            for branch in ("", f"#elif {draw.choice(NAMES)}", "#else")[: draw.randrange(1, 4)]:
                inner, number = draw_conditionals(draw, number, depth + 1)
                lines += [branch, *inner]
            lines.append("#endif")
        else:
            lines.append(f'#include "h{number}.h"')
            number += 1
    return lines, number


NAMES = ("defined(__CUDACC_RTC__)", "defined __CUDACC_RTC__", "defined(HOST)", "defined( DEVICE )", "0", "1", "MACRO")


def test_what_nvrtc_includes_is_found(tmp_path):
    draw, lines, number = random.Random(5), ["#define DEVICE", "#define MACRO 0 || 1"], 0
    for _ in range(60):
        more, number = draw_conditionals(draw, number)
        lines += more
    for each in range(number):
        (tmp_path / f"h{each}.h").write_text(f"__device__ int included_{each};\n")
    code = "\n".join(lines) + "\n"
    unit = TranslationUnit.of(from_item(CUDASource(code, include_paths=[tmp_path])), Target((9, 0), lto=False))
    ptx = compile_unit(dataclasses.replace(unit, output="ptx")).code.decode()
    found = {path.rsplit("/", 1)[1] for path in SourceText(code.encode(), str(tmp_path), ()).scan().headers}
    included = {f"h{each}.h" for each in range(number) if f"included_{each};" in ptx}
    assert included <= found and len(included) < len(found) < number


def test_a_header_that_is_only_probed_for_is_not_read(tmp_path):
    (tmp_path / "a.h").write_text("#include <gone.h>\n")
    source = SourceText(b'#if __has_include("a.h")\n#endif\n', str(tmp_path), ())
    manifest = HeaderManifest.of(source.scan(), source, 0)
    assert [header.is_read for header in manifest.headers] == [False] and not manifest.absences
    (tmp_path / "a.h").write_text("#include <another.h>\n")
    assert manifest.refreshed().digest == manifest.digest
    (tmp_path / "a.h").unlink()
    assert manifest.refreshed() is None


def test_a_header_that_is_probed_for_and_included_is_read(tmp_path):
    (tmp_path / "a.h").write_text("#define A\n")
    for code in (
        b'#if __has_include("a.h")\n#include "a.h"\n#endif',
        b'#include "b.h"\n#if __has_include("a.h")\n#endif',
    ):
        (tmp_path / "b.h").write_text('#include "a.h"\n')
        found = SourceText(code, str(tmp_path), ()).scan()
        assert found.headers[str(tmp_path / "a.h")].is_read
