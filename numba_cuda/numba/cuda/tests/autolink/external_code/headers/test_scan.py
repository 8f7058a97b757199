# SPDX-License-Identifier: BSD-2-Clause
"""Which headers a scan finds: those that include each other by relative paths, as in many header-only libraries."""

import os

import pytest
from numba.cuda.cudadrv.external_code.headers.manifest import HeaderManifest
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


MANY = "".join(f'#include "{name}"\n' for n in range(200) for name in (f"gone{n}.h", f"gone/{n}.h"))


@pytest.fixture
def folders(tmp_path):
    for name in "left", "right":
        (tmp_path / name).mkdir()
    return str(tmp_path / "left"), str(tmp_path / "right")


def test_headers_that_are_missing_are_looked_for_in_one_listing_of_each_directory(folders, monkeypatch):
    asked = []
    for name in "stat", "lstat", "listdir":
        call = getattr(os, name)
        monkeypatch.setattr(os, name, lambda path, *, _call=call, **more: asked.append(path) or _call(path, **more))
    source = SourceText(MANY.encode(), None, folders)
    found = source.scan()
    manifest = HeaderManifest.of(found, source, 0)
    assert [len(found.absent[folder]) for folder in folders] == [400, 400]
    assert len(asked) < 200  # of 1,600 questions
    assert [folder for each in manifest.absences for folder in each.watched if each.base == folder] == list(folders)


@pytest.mark.parametrize(
    "name", ["late.h", "late/late.h", "LATE.h", "late~1.h", "../right/late.h", "./late.h", "sp\u00e4t.h"]
)
def test_one_of_many_headers_that_were_missing_appears(folders, monkeypatch, name):
    """Whatever a listing shows: the file system may know the name in another case or form."""
    source = SourceText(f'{MANY}#include "{name}"\n'.encode(), None, folders)
    manifest = HeaderManifest.of(source.scan(), source, 0)
    assert manifest.refreshed() is not None
    path = os.path.join(folders[1], name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w"):
        listed = {each: each if each.isascii() and "~" not in each else "LONG" for each in os.listdir(folders[1])}
    monkeypatch.setattr(os, "listdir", lambda folder: [each.upper() for each in listed.values()])
    assert manifest.refreshed() is None
    assert os.path.realpath(path) in map(os.path.realpath, source.scan().headers)


def test_a_directory_that_cannot_be_listed_may_contain_a_header(folders, monkeypatch):
    def refused(folder):
        raise PermissionError

    monkeypatch.setattr(os, "listdir", refused)
    path = os.path.join(folders[1], "here.h")
    with open(path, "w"):
        source = SourceText(f'{MANY}#include "here.h"\n'.encode(), None, folders)
    assert list(source.scan().headers) == [path]


def test_a_header_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    """NVRTC has limits of memory and time; this process has none."""
    with open(tmp_path / "large.h", "wb") as file:
        file.truncate(1 << 40)  # a hole
    monkeypatch.setattr(os, "read", None)
    with pytest.raises(OSError, match=f"it has more than {256 << 20} bytes") as caught:
        SourceText(b'#include "large.h"', str(tmp_path), ()).scan()
    assert caught.value.filename == str(tmp_path / "large.h")
