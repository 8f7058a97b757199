# SPDX-License-Identifier: BSD-2-Clause
"""The files of the shared cache are opened once, before the process needs them."""

import gzip
import http.server
import threading
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


def test_a_web_server_that_sends_without_end_is_not_listened_to(monkeypatch):
    """Nor is what it packed unpacked."""
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(shared_files, "LARGEST", 1000)
    packed = gzip.compress(bytes(5000))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip" if self.path.endswith("packed") else "identity")
            self.end_headers()
            self.wfile.write(packed if self.path.endswith("packed") else bytes(2000))

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        files = shared_files.opened(f"http://127.0.0.1:{server.server_port}/cache")
        assert files.read("packed") == packed
        with pytest.raises(OSError, match="the server sent more than 1000 bytes"):
            files.read("endless")
        server.shutdown()


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
