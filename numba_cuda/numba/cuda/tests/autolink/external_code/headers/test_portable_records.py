# SPDX-License-Identifier: BSD-2-Clause
"""What compiles looked up, for other machines and moved trees: by name and content, wherever the directories are."""

import os

import pytest
from numba.cuda.cudadrv.external_code.headers import search_roots
from numba.cuda.cudadrv.external_code.headers.manifest import HeaderManifest, read_header
from numba.cuda.cudadrv.external_code.headers.search_roots import Alternative, SearchRoots


def roots_at(folder):
    return SearchRoots(
        str(folder / "work"), (str(folder / "include"), str(folder / "include/deep"), "/package"), ("/package",)
    )


@pytest.mark.parametrize(
    "path, name",
    [
        ("work/a.h", "<0>/a.h"),
        ("include/a.h", "<1>/a.h"),
        ("include/sub/../a.h", "<1>/sub/../a.h"),
        ("include/deep/a.h", "<2>/a.h"),
        ("includes/a.h", None),
        ("/package/a.h", "/package/a.h"),
    ],
)
def test_a_name_is_relative_to_the_deepest_directory_and_leads_back_to_the_path(tmp_path, path, name):
    roots, whole = roots_at(tmp_path), os.path.join(tmp_path, path)
    assert roots.name(whole) == (name or whole)
    assert roots.path(roots.name(whole)) == whole


def test_the_root_directory_is_one_like_any_other():
    roots = SearchRoots("/", (), ())
    for path in "/a.h", "/", "/sub/a.h":
        assert roots.name(path) == f"<0>{path}" and roots.path(f"<0>{path}") == path


def test_a_name_of_a_directory_that_is_not_there_has_no_path():
    for name in "<0>/a.h", "<1>/a.h":
        with pytest.raises(ValueError, match="there is no directory for"):
            SearchRoots(None, (), ()).path(name)


def test_the_layout_is_the_same_where_directories_lie_in_each_other_in_the_same_way(tmp_path):
    layout = roots_at(tmp_path / "one").layout
    assert layout == roots_at(tmp_path / "two").layout
    for search in ("/include", "/deep", "/package"), ("/include", "/include/deep", "/other"):
        assert SearchRoots("/work", search, ("/package",)).layout != layout


def test_include_paths_that_are_where_the_source_looks_first():
    roots = SearchRoots("/source", ("/source", "/source/deep", "/include"), ())
    assert roots.shared_with("") == ((1, ""),)
    assert roots.shared_with('#include "deep/a.h"') == ((1, ""), (2, "deep/"))
    for own in None, "/", "/source/deep/er":
        assert SearchRoots(own, roots.search, ()).shared_with("") == ()


@pytest.fixture
def moved(tmp_path):
    """Two equal trees, and what a compile in the first one looked up."""
    for name in "one", "two":
        for folder in "work", "include/deep":
            (tmp_path / name / folder).mkdir(parents=True)
        (tmp_path / name / "include/a.h").write_text("a")
    one = tmp_path / "one"
    header = read_header(str(one / "include/a.h"))
    manifest = HeaderManifest.of(
        [header], {str(one / "work"): "a.h", str(one / "include/deep"): "b.h"}, roots_at(one), 0
    )
    return manifest, manifest.alternative(roots_at(one), "places"), tmp_path / "two"


def test_what_was_looked_up_holds_in_an_equal_tree(moved):
    manifest, known, other = moved
    there = HeaderManifest.of_alternative(known, roots_at(other))
    assert there.digest == manifest.digest
    assert [header.path for header in there.headers] == [str(other / "include/a.h")]


@pytest.mark.parametrize(
    "path, text", [("include/a.h", "b"), ("include/a.h", None), ("work/a.h", "a"), ("include/deep/b.h", "")]
)
def test_it_does_not_hold_where_a_file_differs_is_gone_or_is_there(moved, path, text):
    _, known, other = moved
    if text is None:
        (other / path).unlink()
    else:
        (other / path).write_text(text)
    assert HeaderManifest.of_alternative(known, roots_at(other)) is None


def test_the_digest_depends_on_what_was_not_found(moved):
    manifest, _, other = moved
    headers = [read_header(str(other / "include/a.h"))]
    assert HeaderManifest.of(headers, {str(other / "work"): "a.h"}, roots_at(other), 0).digest != manifest.digest


def test_a_record_has_the_first_few_alternatives():
    alternatives = [
        Alternative((("<1>/a.h", f"{n:064}"), ("/b.h", "0" * 64)), (("<0>/", "c.h\0d.h"), ("/b/", "c.h")), "")
        for n in range(20)
    ]
    data = search_roots.pack_alternatives(alternatives)
    assert search_roots.unpack_alternatives(data) == alternatives[:8]
    for damaged in b"", data[:-9], b"x" + data, search_roots.zlib.compress(b"[1, 2]"):
        assert search_roots.unpack_alternatives(damaged) == []
