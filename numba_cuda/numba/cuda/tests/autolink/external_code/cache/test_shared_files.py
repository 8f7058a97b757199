# SPDX-License-Identifier: BSD-2-Clause
"""The files of the shared cache are opened once, before the process needs them."""

from types import SimpleNamespace

import pytest
from cache_support import posix_only, wait_for

from numba_cuda_autolink import import_hook, shared_files


@pytest.fixture(autouse=True)
def nothing_opened(monkeypatch):
    pytest.importorskip("fsspec")
    monkeypatch.setattr(shared_files, "_opening", None)


def test_what_was_begun_is_used(tmp_path):
    shared_files.begin(f"file://{tmp_path}")
    first = shared_files.opened(f"file://{tmp_path}")
    assert shared_files.opened(f"file://{tmp_path}") is first
    first.write("ab/name", b"content")
    assert first.read("ab/name") == (tmp_path / "ab/name").read_bytes() == b"content"


def test_files_at_another_address_are_others(tmp_path):
    shared_files.begin(f"file://{tmp_path}/one")
    shared_files.opened(f"file://{tmp_path}/two").write("name", b"content")
    assert (tmp_path / "two/name").exists() and not (tmp_path / "one").exists()


def test_what_cannot_be_opened_raises_when_it_is_needed():
    shared_files.begin("no-such-protocol://folder")
    for _ in range(2):
        with pytest.raises(ValueError, match="no-such-protocol"):
            shared_files.opened("no-such-protocol://folder")


@posix_only
def test_a_forked_child_opens_files_of_its_own(tmp_path):
    """Connections and threads are the parent's."""
    shared_files.begin(f"file://{tmp_path}")
    parents = shared_files.opened(f"file://{tmp_path}")

    def child():
        assert shared_files.opened(f"file://{tmp_path}") is not parents

    wait_for(child)


@pytest.mark.parametrize(("switch", "expected"), [("1", ["begin s3://bucket", "import"]), ("0", ["import"])])
def test_they_are_begun_before_numba_cuda_is_imported(switch, expected, monkeypatch):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK", switch)
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_REMOTE", " s3://bucket ")
    done = []
    monkeypatch.setattr(shared_files, "begin", lambda address: done.append(f"begin {address}"))
    loader = SimpleNamespace(exec_module=lambda module: done.append("import"))
    import_hook.Activator(loader).exec_module(SimpleNamespace(__spec__=SimpleNamespace()))
    assert done == expected
