# SPDX-License-Identifier: BSD-2-Clause
"""Which headers a scan finds: those that include each other by relative paths, as in many header-only libraries."""

import pytest
from numba.cuda.cudadrv.external_code.headers.scan import SourceText


@pytest.mark.parametrize(
    "of_a, of_b", [("../b/b.h", "../a/a.h"), ("./../b/b.h", "./../a/a.h"), ("link/b/b.h", "../a/a.h")]
)
def test_headers_that_include_each_other_are_read_once_or_twice(tmp_path, of_a, of_b):
    for folder, included in ("a", of_a), ("b", of_b):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.h").write_text(f'#pragma once\n#include "{included}"\n')
    (tmp_path / "a" / "link").symlink_to(tmp_path)
    found = SourceText(b'#include "a/a.h"', None, (str(tmp_path),)).scan()
    assert next(iter(found.headers)) == str(tmp_path / "a" / "a.h")
    assert {path.rsplit("/", 1)[1] for path in found.headers} == {"a.h", "b.h"}
    assert len(found.headers) <= 3


def test_includes_are_found_by_either_spelling_of_a_path(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "a.h").write_text('#include "beside.h"\n#include "../top.h"\n')
    (tmp_path / "a" / "beside.h").write_text("")
    (tmp_path / "top.h").write_text('#include "a/../a/a.h"\n')
    found = SourceText(b'#include "a/./a.h"\n#include "a/a.h"', None, (str(tmp_path),)).scan()
    assert {path.rsplit("/", 1)[1] for path in found.headers} == {"a.h", "beside.h", "top.h"}


@pytest.mark.parametrize(
    "definitions, found",
    [
        ("#define HEADER(name) <ROOT/name>\n#define ROOT left\n#define ROOT right\n", {"left/x.h", "right/x.h"}),
        ("#define HEADER( name ) <left/name>\n", {"left/x.h"}),
        ("#define HEADER(name) <left/name>\n#define x y\n", {"left/x.h", "left/y.h"}),
    ],
)
def test_an_include_that_a_macro_makes_of_a_name(tmp_path, definitions, found):
    for path in "left/x.h", "left/y.h", "right/x.h", "other/x.h":
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("")
    scanned = SourceText(f"{definitions}#include HEADER ( x.h )\n".encode(), None, (str(tmp_path),)).scan()
    assert {path.removeprefix(f"{tmp_path}/") for path in scanned.headers} == found
    assert not scanned.computed


@pytest.mark.parametrize(
    "definitions",
    [
        "",
        "#define HEADER <left/x.h>\n",
        "#define HEADER(...) <left/__VA_ARGS__>\n",
        "#define HEADER(name...) <left/name>\n",
        "#define HEADER(a, b) <a/b>\n",
        "#define HEADER(name) OTHER(name)\n",
        "#define HEADER(name) <left/pre##name>\n",
        "#define HEADER(name) <left/name>\n#define left(x) right\n",
        "#define HEADER(name) <left/name>\n#define HEADER(name) OTHER(name)\n",
    ],
)
def test_an_include_of_which_definitions_do_not_show_what_it_is(tmp_path, definitions):
    assert SourceText(f"{definitions}#include HEADER(x.h)\n".encode(), None, (str(tmp_path),)).scan().computed
