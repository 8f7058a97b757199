# SPDX-License-Identifier: BSD-2-Clause
"""When the headers of a manifest are looked at again."""

import os
import time

import pytest
from numba.cuda.cudadrv.external_code.headers import manifest as changes
from numba.cuda.cudadrv.external_code.headers.manifest import HeaderManifest, HeaderWatch
from numba.cuda.cudadrv.external_code.headers.search_roots import SearchRoots


@pytest.fixture
def folders(tmp_path):
    """Directories ``own`` and ``package`` with an old header each, and their names in an include path."""
    for name in "own", "package":
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.h").write_text("")
    for path in sorted(tmp_path.rglob("*"), reverse=True):
        os.utime(path, (1, 1))
    return [str(tmp_path / "own"), str(tmp_path / "package")]


@pytest.fixture
def now(monkeypatch):
    """The time by the watch's clock, which stands still until it is set."""
    times = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: times[0])
    monkeypatch.setattr(changes, "_seen_packaged", {})
    return times


def watched(folders, package):
    paths = os.path.join(folders[0], "own.h"), os.path.join(folders[1], "package.h")
    absent = {folders[0]: "package.h"}
    roots = SearchRoots(None, tuple(folders), ())
    manifest = HeaderManifest.of(map(changes.read_header, paths), absent, roots, time.time_ns() + 10**10)
    assert manifest is not None and manifest.is_settled
    return HeaderWatch(manifest, [package])


def test_own_headers_are_looked_at_each_time(folders, now):
    headers = watched(folders, folders[1])
    assert headers.unchanged()
    with open(os.path.join(folders[0], "own.h"), "w") as file:
        file.write("changed")
    assert not headers.unchanged()


def test_headers_of_packages_are_looked_at_after_an_interval(folders, now):
    headers = watched(folders, folders[1])
    assert headers.unchanged()
    with open(os.path.join(folders[1], "package.h"), "w") as file:
        file.write("changed")
    assert headers.unchanged()
    now[0] += changes.PACKAGES_INTERVAL
    assert not headers.unchanged()


def test_a_touched_header_with_the_same_content_is_unchanged(folders, now):
    headers = watched(folders, folders[1])
    before = headers.manifest
    os.utime(os.path.join(folders[0], "own.h"), (2, 2))
    assert headers.unchanged()
    assert headers.manifest is not before
    assert headers.manifest.digest == before.digest


def test_a_header_that_appears_first_in_the_path_is_a_change(folders, now):
    headers = watched(folders, folders[1])
    assert headers.unchanged()
    with open(os.path.join(folders[0], "package.h"), "w"):
        pass
    assert not headers.unchanged()
