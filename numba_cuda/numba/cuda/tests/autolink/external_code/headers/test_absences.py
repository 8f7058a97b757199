# SPDX-License-Identifier: BSD-2-Clause
"""Headers that a compile looked for and did not find: when one of them appears, that is noticed."""

import os

import pytest
from numba.cuda.cudadrv.external_code.headers.manifest import HeaderManifest
from numba.cuda.cudadrv.external_code.headers.search_roots import SearchRoots

MANY = [name for n in range(200) for name in (f"gone{n}.h", f"gone/{n}.h")]


@pytest.fixture
def folders(tmp_path):
    for name in "left", "right":
        (tmp_path / name).mkdir()
    return str(tmp_path / "left"), str(tmp_path / "right")


def manifest_of(folders, *more):
    absent = {}
    for path in (os.path.join(folder, name) for folder in folders for name in (*MANY, *more)):
        absent.setdefault(os.path.dirname(path), []).append(os.path.basename(path))
    return HeaderManifest.of(
        (), {folder: "\0".join(names) for folder, names in absent.items()}, SearchRoots(None, folders, ()), 0
    )


def test_headers_that_are_missing_are_looked_for_in_one_listing_of_each_directory(folders, monkeypatch):
    asked = []
    for name in "stat", "lstat", "listdir":
        call = getattr(os, name)
        monkeypatch.setattr(os, name, lambda path, *, _call=call, **more: asked.append(path) or _call(path, **more))
    manifest = manifest_of(folders)
    assert len(asked) < 100  # of 800 questions
    assert [folder for folder, _ in manifest.absences.watched] == list(folders)


@pytest.mark.parametrize(
    "name", ["late.h", "late/late.h", "LATE.h", "late~1.h", "../right/late.h", "./late.h", "sp\u00e4t.h"]
)
def test_one_of_many_headers_that_were_missing_appears(folders, monkeypatch, name):
    """Whatever a listing shows: the file system may know the name in another case or form."""
    manifest = manifest_of(folders, name)
    assert manifest.refreshed() is not None
    path = os.path.join(folders[1], name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w"):
        listed = {each: each if each.isascii() and "~" not in each else "LONG" for each in os.listdir(folders[1])}
    monkeypatch.setattr(os, "listdir", lambda folder: [each.upper() for each in listed.values()])
    assert manifest.refreshed() is None
    assert manifest_of(folders, name) is None


def test_a_directory_that_cannot_be_listed_may_contain_a_header(folders, monkeypatch):
    def refused(folder):
        raise PermissionError

    monkeypatch.setattr(os, "listdir", refused)
    with open(os.path.join(folders[1], "here.h"), "w"):
        pass
    assert manifest_of(folders, "here.h") is None
