# SPDX-License-Identifier: BSD-2-Clause
"""The cache that machines share: what one builds another finds, and only what one's own site has signed is used."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import http.server
import os
import random
import shutil
import threading
import warnings
from pathlib import Path

import pytest
from cache_support import OURS, SharedFiles, cache_warnings, machines, make_key, not_built, wait_for
from numba.cuda.autolink import cache
from numba.cuda.cudadrv.external_code.cache import remote_store
from numba.cuda.cudadrv.external_code.cache.entry import pack
from numba.cuda.cudadrv.external_code.cache.remote_store import UntrustedEntryError, authenticate, sign
from numba.cuda.cudadrv.external_code.cache.settings import (
    CacheSettings,
    CacheWarning,
    RemoteSettings,
    RemoteSettingsError,
    lacks_writable_store,
    redact,
)
from numba.cuda.cudadrv.external_code.cache.store import CacheStore, reset_store

KEYS = OURS.keys
KEY = KEYS[0]
FOREIGN = (b"the key of another site, 32 bytes",)


@pytest.fixture
def files():
    return SharedFiles()


@pytest.fixture
def machine(tmp_path, files):
    return machines(tmp_path, files)


def name_of(key):
    """Return the name of an entry's file."""
    return key.digest.hex()


class TestSharing:
    def test_what_one_machine_built_another_finds_and_keeps(self, machine, files):
        key, first, second = make_key(), machine(), machine()
        assert first.fetch(key, lambda: b"code").origin == "built"
        assert first.remote.flush(30) == 0 and len(files) == 1
        assert second.fetch(key, not_built).origin == "remote"
        files.clear()
        assert (second.fetch(key, not_built).data, second.disk.read(key.digest)) == (b"code", b"code")

    @pytest.mark.parametrize("kind", ["kernel", "survival", "not cached", "mark", "future kind"])
    def test_what_is_a_pickle_or_true_on_one_machine_alone_is_neither_written_nor_read(self, machine, files, kind):
        key, first, second = make_key(kind=kind), machine(), machine()
        first.put(key, b"here")
        assert first.remote.flush(30) == 0 and not files
        files[name_of(key)] = sign(KEYS, key.digest, pack(key, b"planted"))
        assert second.get(key) is None and second.remote.counts["found"] == 0

    def test_nor_is_what_its_author_says_is_not_portable(self, machine, files):
        first = machine()
        first.fetch(make_key(kind="answer"), lambda: b"/a/path", is_portable=lambda data: False)
        assert first.remote.flush(30) == 0 and not files

    def test_a_machine_that_only_reads_writes_nothing(self, machine, files):
        reader = machine(dataclasses.replace(OURS, writes=False))
        reader.put(make_key(), b"code")
        assert reader.remote.flush(30) == 0 and not files

    def test_what_was_found_there_is_not_written_again(self, machine, files):
        key, first, second = make_key(), machine(), machine()
        first.put(key, b"code")
        first.remote.flush(30)
        second.get(key)
        second.put(key, b"code")
        assert second.remote.flush(30) == 0 and second.remote.counts["written"] == 0


class TestTrust:
    def test_forged_truncated_swapped_and_foreign_entries_are_not_used(self):
        draw = random.Random(3)
        refused = 0
        for number in range(10_000):
            key, other = make_key(f"f{number}.cu"), make_key(f"g{number}.cu")
            entry = pack(key, draw.randbytes(draw.randint(0, 300)))
            blob = sign(KEYS, key.digest, entry)
            position = draw.randrange(len(blob))
            forged = [
                blob[:position],
                blob[:position] + bytes([blob[position] ^ 1 << draw.randrange(8)]) + blob[position + 1 :],
                blob + b"\0",
                entry,
                bytes(32) + entry,
                sign(FOREIGN, key.digest, entry),
                sign(KEYS, other.digest, pack(other, b"code")),
                sign(KEYS, other.digest, entry),
                b"",
                draw.randbytes(len(blob)),
            ][number % 10]
            with pytest.raises(UntrustedEntryError):
                authenticate(KEYS, key.digest, forged)
            refused += 1
            assert authenticate(KEYS, key.digest, blob) == entry
        assert refused == 10_000

    def test_an_entry_that_is_not_used_is_built_with_one_warning_and_replaced(self, machine, files):
        keys, store = [make_key(f"f{number}.cu") for number in range(3)], machine()
        files.update((name_of(key), b"planted") for key in keys)
        with cache_warnings() as warned:
            assert [store.fetch(key, lambda: b"right").data for key in keys] == [b"right"] * 3
        assert len(warned) == 1 and "does not use entries of its shared cache memory://cache" in warned[0]
        assert store.remote.flush(30) == 0 and b"planted" not in files.values()
        assert store.remote.counts["untrusted"] == 3

    def test_while_a_key_is_rotated_the_new_one_signs_and_both_are_accepted(self):
        key = make_key()
        entry = pack(key, b"code")
        old, new = KEYS, (b"the key of next year, 32 bytes..",)
        assert authenticate((*new, *old), key.digest, sign(old, key.digest, entry)) == entry
        assert authenticate(new, key.digest, sign((*new, *old), key.digest, entry)) == entry
        with pytest.raises(UntrustedEntryError):
            authenticate(new, key.digest, sign(old, key.digest, entry))

    @pytest.mark.parametrize("nobody", [(), (b"",)])
    def test_an_empty_key_signs_nothing(self, nobody):
        key = make_key()
        with pytest.raises(UntrustedEntryError):
            authenticate(nobody, key.digest, sign(nobody, key.digest, pack(key, b"code")))


class TestFaults:
    def test_a_failure_is_a_miss_which_is_counted_with_one_warning(self, machine, files):
        def fail():
            raise ConnectionRefusedError("nobody listens")

        files.fault = fail
        store = machine(dataclasses.replace(OURS, writes=False))
        with cache_warnings() as warned:
            for number in range(5):
                assert store.fetch(make_key(f"f{number}.cu"), lambda: b"right").data == b"right"
        assert len(warned) == 1 and "ConnectionRefusedError: nobody listens" in warned[0]
        assert store.remote.counts["failed"] == 5

    def test_a_store_that_cannot_be_opened_is_tried_once(self, tmp_path):
        tried = []

        def opened():
            tried.append(True)
            raise ImportError("no module named s3fs")

        store = CacheStore(CacheSettings(str(tmp_path)))
        store.remote = remote_store.RemoteStore(dataclasses.replace(OURS, writes=False), opened)
        with cache_warnings() as warned:
            assert store.get(make_key()) is None and store.get(make_key("g.cu")) is None
        assert len(tried) == len(warned) == 1 and "pip install 'numba-cuda-autolink[remote]'" in warned[0]

    def test_after_one_answer_that_takes_too_long_nothing_is_asked(self, machine, files):
        release = threading.Event()
        files.fault = release.wait
        store = machine(dataclasses.replace(OURS, wait=0.01))
        with cache_warnings() as warned:
            for number in range(3):
                assert store.get(make_key(f"f{number}.cu")) is None
        release.set()
        assert (len(files.asked), store.remote.counts["failed"], store.remote.counts["not_asked"]) == (1, 1, 2)
        assert len(warned) == 1 and "no answer in 0.01 s" in warned[0]

    def test_writes_that_fail_are_counted_and_reads_go_on(self, machine, files):
        def full():
            raise OSError(28, "No space left on device")

        key, other, store = make_key(), make_key("g.cu"), machine()
        files[name_of(other)] = sign(KEYS, other.digest, pack(other, b"code"))
        files.fault_of_writes = full
        with cache_warnings() as warned:
            for number in range(3):
                store.put(make_key(f"f{number}.cu"), b"right")
            assert store.remote.flush(30) == 3
            assert store.get(other) == b"code"
        assert len(warned) == 1 and "cannot write to its shared cache memory://cache: OSError" in warned[0]
        assert store.remote.counts["failed_writes"] == 3
        del files.fault_of_writes
        store.put(make_key("f0.cu"), b"right")
        assert store.remote.flush(30) == 2, "what is written later is stored"
        assert store.get(key) is None

    @pytest.mark.parametrize("error", [asyncio.CancelledError("by the loop"), MemoryError(), RecursionError()])
    def test_no_exception_of_a_store_ends_a_build_or_the_writes(self, machine, files, error):
        def fail():
            raise error

        files.fault = files.fault_of_writes = fail
        store = machine()
        with cache_warnings():
            assert store.fetch(make_key(), lambda: b"right").data == b"right"
            assert store.remote.flush(30) == 1
            del files.fault_of_writes
            store.put(make_key("g.cu"), b"right")
        assert store.remote.flush(30) == 1 and len(files) == 1
        assert (store.remote.counts["failed"], store.remote.counts["failed_writes"]) == (1, 1)

    def test_where_warnings_are_errors_writes_go_on_and_all_are_counted(self, machine, files):
        def full():
            raise OSError(28, "No space left on device")

        files.fault_of_writes, store = full, machine()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            store.put(make_key("f0.cu"), b"right")
            assert store.remote.flush(30) == 1
            with pytest.raises(CacheWarning, match="No space left"):
                store.put(make_key("f1.cu"), b"right")
            assert store.remote.flush(30) == 2
            del files.fault_of_writes
            store.put(make_key("f2.cu"), b"right")
            assert store.remote.flush(30) == 2 and len(files) == 1

    def test_what_is_dropped_or_not_written_in_time_is_counted(self, machine, files, monkeypatch):
        monkeypatch.setattr(remote_store, "_MOST_PENDING", 3)
        release = threading.Event()
        files.fault_of_writes = release.wait
        store = machine()
        for number in range(10):
            store.remote.write(make_key(f"f{number}.cu").digest, pack(make_key(f"f{number}.cu"), b"code"))
        assert store.remote.flush(0.01) == 10
        release.set()
        while len(files) < 3:
            pass
        assert store.remote.flush(30) == 7

    def test_a_store_that_stalls_is_waited_for_once_until_it_goes_on(self, machine, files, monkeypatch):
        """Workers flush after each task."""
        release = threading.Event()
        files.fault_of_writes = release.wait
        remote = machine().remote
        remote.write(make_key().digest, pack(make_key(), b"code"))
        assert remote.flush(0.01) == 1
        with monkeypatch.context() as patch:
            patch.setattr(remote._writes.all_tasks_done, "wait_for", None)
            assert remote.flush(30) == 1
        release.set()
        remote._writes.join()
        assert remote.flush(30) == 0 and len(files) == 1

    def test_the_end_of_a_process_waits_for_writes_no_longer_than_for_an_answer(self, machine, files):
        release = threading.Event()
        files.fault_of_writes = release.wait
        store, asked = machine(dataclasses.replace(OURS, wait=0.05)), []
        flush = store.remote.flush
        store.remote.flush = lambda timeout: asked.append(timeout) or flush(timeout)
        store.remote.write(make_key().digest, pack(make_key(), b"code"))
        store.end()
        assert asked == [0.05]
        release.set()

    def test_a_server_s_text_is_one_printable_line_without_the_password(self, machine, files):
        def fail():
            raise OSError("403\r\n\x1b[2Jfor me:pa/s s@w0rd@host and https://me:pa/s s@w0rd@host " + 3000 * "x")

        files.fault = fail
        store = machine(dataclasses.replace(OURS, address="https://me:pa/s s@w0rd@host/cache", writes=False))
        with cache_warnings() as (warned):
            store.get(make_key())
        (text,) = warned
        assert text.isprintable() and "w0rd" not in text and "https://***@host/cache" in text
        assert len(text) < 200 + 200


ADDRESS = {"NUMBA_CUDA_AUTOLINK_CACHE_REMOTE": "s3://bucket/cache"}


class TestSettings:
    def test_without_an_address_there_is_none(self):
        assert CacheSettings.from_environment({}).remote is None

    def test_the_key_is_text_or_in_a_file(self, tmp_path):
        path = tmp_path / "key"
        path.write_bytes(KEY + b"\n")
        path.chmod(0o600)
        for text in KEY.decode(), f"@{path}":
            found = RemoteSettings.from_environment({**ADDRESS, "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY": text})
            assert found == RemoteSettings("s3://bucket/cache", (KEY,))
        assert "site" not in repr(found), "the key is not shown"

    @pytest.mark.parametrize("in_a_file", [True, False])
    def test_two_lines_are_the_new_key_and_the_old_one(self, tmp_path, in_a_file):
        text = f"{KEY.decode()}\n{FOREIGN[0].decode()}\n"
        if in_a_file:
            (tmp_path / "key").write_text(text)
            (tmp_path / "key").chmod(0o400)
            text = f"@{tmp_path / 'key'}"
        found = RemoteSettings.from_environment({**ADDRESS, "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY": text})
        assert found.keys == (KEY, *FOREIGN)

    @pytest.mark.parametrize("mode", [0o604, 0o602, 0o640, 0o620])
    def test_a_key_file_that_others_may_read_or_write_is_refused(self, tmp_path, mode):
        path = tmp_path / "key"
        path.write_bytes(KEY)
        path.chmod(mode)
        with pytest.raises(RemoteSettingsError, match="other users may read or write the key file"):
            RemoteSettings.from_environment({**ADDRESS, "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY": f"@{path}"})

    @pytest.mark.parametrize(
        "text", ["/run/secrets/autolink-key", "~/autolink/the-key", "./the/key/file", "../the/key"]
    )
    def test_a_key_that_looks_like_a_path_is_refused(self, text):
        with pytest.raises(RemoteSettingsError, match="looks like a path: put @ before the path of a file"):
            RemoteSettings.from_environment({**ADDRESS, "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY": text})

    def test_a_key_that_names_a_file_is_refused(self, tmp_path, monkeypatch):
        (tmp_path / "the-key-of-this-site").write_bytes(KEY)
        monkeypatch.chdir(tmp_path)
        with pytest.raises(RemoteSettingsError, match="looks like a path"):
            RemoteSettings.from_environment({**ADDRESS, "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY": "the-key-of-this-site"})

    @pytest.mark.parametrize(
        ("others", "message"),
        [
            ({}, "set NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY"),
            ({"_KEY": "short"}, "shorter than 16 bytes"),
            ({"_KEY": f"{KEY.decode()}\nshort"}, "shorter than 16 bytes"),
            ({"_KEY": "\n".join(3 * [KEY.decode()])}, "has 3 keys"),
            ({"_KEY": KEY.decode(), "_MODE": "wr"}, "expected ro or rw"),
            ({"_KEY": KEY.decode(), "_WAIT": "long"}, "expected a number of milliseconds above 0"),
            ({"_KEY": KEY.decode(), "_WAIT": "0"}, "expected a number of milliseconds above 0"),
            ({"_KEY": "@/no/such/file"}, "No such file"),
        ],
    )
    def test_doubtful_settings_use_no_shared_cache_and_warn(self, others, message):
        environ = {**ADDRESS, **{f"NUMBA_CUDA_AUTOLINK_CACHE_REMOTE{each}": others[each] for each in others}}
        with cache_warnings() as warned:
            assert CacheSettings.from_environment(environ).remote is None
        assert len(warned) == 1 and "uses no shared cache" in warned[0] and message in warned[0]

    @pytest.mark.parametrize(
        ("others", "lacks"),
        [
            ({"_REMOTE_MODE": "rw"}, False),
            ({"_REMOTE_MODE": "ro"}, False),
            ({}, False),
            ({"_REMOTE_MODE": "wr"}, True),
            ({"_REMOTE_MODE": "rw", "_REMOTE_KEY": ""}, True),
            ({"_REMOTE_MODE": "rw", "": "0"}, True),
        ],
    )
    def test_a_store_to_write_to_that_is_asked_for_in_vain_is_known(self, others, lacks):
        asked = {"_REMOTE_KEY": KEY.decode(), **others}
        environ = {**ADDRESS, **{f"NUMBA_CUDA_AUTOLINK_CACHE{each}": asked[each] for each in asked}}
        assert lacks_writable_store(environ) == lacks

    def test_a_key_file_that_is_not_text_is_refused(self, tmp_path):
        path = tmp_path / "key"
        path.write_bytes(bytes(range(128, 160)))
        path.chmod(0o600)
        with pytest.raises(RemoteSettingsError, match="is not text: make one by openssl rand -hex 32"):
            RemoteSettings.from_environment({**ADDRESS, "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY": f"@{path}"})

    @pytest.mark.parametrize("address", ["kernels", "s3:/bucket", "./kernels"])
    def test_a_folder_below_the_working_directory_is_not_an_address(self, address):
        environ = {"NUMBA_CUDA_AUTOLINK_CACHE_REMOTE": address, "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY": KEY.decode()}
        with pytest.raises(RemoteSettingsError, match=r"expected an address, such as s3://bucket/folder"):
            RemoteSettings.from_environment(environ)

    def test_how_long_an_answer_may_take_is_set_in_milliseconds(self):
        own = {"NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY": KEY.decode(), "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_WAIT": "250"}
        assert RemoteSettings.from_environment({**ADDRESS, **own}).wait == 0.25

    def test_users_and_passwords_in_addresses_are_not_shown(self, tmp_path):
        settings = dataclasses.replace(OURS, address="https://me:pa/s s@w0rd@host/cache")
        before = reset_store(CacheStore(CacheSettings(str(tmp_path), remote=settings)))
        try:
            info = cache.info()
        finally:
            reset_store(before)
        assert "w0rd" not in f"{settings!r} {settings} {info!r} {info}"
        assert info.levels == (("remote", "https://***@host/cache (rw)"),)
        assert redact("from s3://bucket/folder, with no user") == "from s3://bucket/folder, with no user"


class TestFolder:
    """A folder, as on a network's file system, is a store."""

    @pytest.fixture
    def store(self, tmp_path):
        pytest.importorskip("fsspec")
        settings = RemoteSettings(f"file://{tmp_path}/shared", KEYS, writes=True, wait=60.0)
        return lambda name: CacheStore(CacheSettings(str(tmp_path / name), remote=settings))

    def test_what_one_machine_wrote_another_finds(self, store, tmp_path):
        first, second = store("one"), store("two")
        first.fetch(make_key(), lambda: b"code")
        assert first.remote.flush(30) == 0
        assert second.fetch(make_key(), not_built).origin == "remote"
        assert [path.name for path in (tmp_path / "shared").iterdir()] == [name_of(make_key())]

    def test_links_in_it_are_not_followed(self, store, tmp_path):
        """Not when it is read, and none leads what is written out of it."""
        shared, outside = tmp_path / "shared", tmp_path / "outside"
        shared.mkdir()
        outside.mkdir()
        key, first = make_key(), store("one")
        (outside / name_of(key)).write_bytes(sign(KEYS, key.digest, pack(key, b"planted")))
        (shared / name_of(key)).symlink_to(outside / name_of(key))
        (shared / name_of(key)[:2]).symlink_to(outside)
        with cache_warnings():
            assert first.fetch(key, lambda: b"right").data == b"right"
        assert first.remote.flush(30) == 0 and not (shared / name_of(key)).is_symlink()
        assert [path.name for path in outside.iterdir()] == [name_of(key)]

    def test_what_is_larger_than_what_is_read_is_not_written_and_counted(self, store, tmp_path, monkeypatch):
        monkeypatch.setattr(remote_store, "LARGEST", 1000)
        first = store("one")
        with cache_warnings() as warned:
            first.put(make_key(), bytes(1000))
            assert first.remote.flush(30) == 1
            first.end()
        assert len(warned) == 1 and "is larger than 1000 bytes" in warned[0]
        assert not (tmp_path / "shared").exists()

    def test_what_killed_processes_left_goes_and_nothing_else(self, store, tmp_path, monkeypatch):
        monkeypatch.setattr(remote_store, "_SOME", "")  # as for one entry in 256
        shared = tmp_path / "shared"
        shared.mkdir()
        for name in ".numba-cuda-autolink-0", "mine.tmp":
            (shared / name).write_bytes(b"old")
            os.utime(shared / name, (0, 0))
        (shared / ".numba-cuda-autolink-1").write_bytes(b"another process writes it now")
        first = store("one")
        first.put(make_key(), b"code")
        assert first.remote.flush(30) == 0
        left = {".numba-cuda-autolink-1", "mine.tmp", name_of(make_key())}
        assert {path.name for path in shared.iterdir()} == left

    def test_a_forked_child_has_a_store_of_its_own(self, store):
        first = store("one")
        first.put(make_key(), b"code")
        reset_store(first)

        def child():
            assert first.remote.counts["written"] == 0
            assert first.remote.read(make_key().digest) is not None

        try:
            first.remote.flush(30)
            wait_for(child)
        finally:
            reset_store()


def test_a_web_server_that_sends_without_end_is_not_listened_to(monkeypatch):
    """Nor is what it packed unpacked."""
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(remote_store, "LARGEST", 1000)
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
        files = remote_store.SharedFiles(f"http://127.0.0.1:{server.server_port}/cache")
        assert files.read("packed") == packed
        with pytest.raises(OSError, match="the server sent more than 1000 bytes"):
            files.read("endless")
        server.shutdown()


@pytest.mark.thorough
def test_an_object_store_is_one(tmp_path, monkeypatch):
    """Through a real server of S3's protocol on this machine, which is then killed, and a warning says so once."""
    moto, s3fs = (pytest.importorskip(name, reason=f"needs {name}") for name in ("moto.server", "s3fs"))
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    s3fs.S3FileSystem().mkdir("bucket")
    settings = RemoteSettings("s3://bucket/cache", KEYS, writes=True, wait=60.0)
    keys = [make_key(f"f{number}.cu") for number in range(50)]
    first, second, third = (
        CacheStore(CacheSettings(str(tmp_path / name), remote=settings)) for name in ("one", "two", "three")
    )
    for key in keys:
        first.fetch(key, lambda: b"code" * 1000)
    assert first.remote.flush(60) == 0
    assert [second.fetch(key, not_built).origin for key in keys] == ["remote"] * 50
    for planted in b"", b"planted":
        s3fs.S3FileSystem().pipe_file(f"bucket/cache/{name_of(keys[2])}", planted)
        with cache_warnings():
            assert third.get(keys[2]) is None
    assert (third.remote.counts["untrusted"], third.remote.counts["failed"]) == (2, 0)
    server.stop()
    with cache_warnings() as warned:
        assert third.fetch(keys[0], lambda: b"right").data == b"right"
        assert third.fetch(keys[1], lambda: b"right").data == b"right"
    assert len(warned) == 1 and "cannot read its shared cache s3://bucket/cache" in warned[0]


class TestImages:
    def test_a_directory_that_is_only_read_hits_whatever_its_owners_times_and_modes_are(self, tmp_path):
        key, image = make_key(), tmp_path / "image"
        CacheStore(CacheSettings(str(image))).put(key, b"code")
        shutil.copytree(image, tmp_path / "copied", copy_function=shutil.copyfile)
        for path in (tmp_path / "copied").rglob("*"):
            path.chmod(0o777 if path.is_dir() else 0o666)
            if hasattr(os, "geteuid") and os.geteuid() == 0:  # who alone may give files away
                os.chown(path, 12345, 12345)
        before = sorted((tmp_path / "copied").rglob("*"))
        store = CacheStore(
            CacheSettings(str(tmp_path / "own"), read_only=(str(tmp_path / "no"), str(tmp_path / "copied")))
        )
        with cache_warnings() as warned:
            fetched = store.fetch(key, not_built)
        assert (fetched.data, fetched.origin, warned) == (b"code", "image", [])
        assert sorted((tmp_path / "copied").rglob("*")) == before

    @pytest.mark.parametrize("damage", [b"", b"planted", None])
    def test_a_damaged_entry_of_it_is_built(self, tmp_path, damage):
        key, image = make_key(), CacheStore(CacheSettings(str(tmp_path / "image")))
        image.put(key, b"code")
        path = Path(image.disk.path(key.digest))
        path.write_bytes(path.read_bytes()[:-1] + b"x" if damage is None else damage)
        store = CacheStore(CacheSettings(str(tmp_path / "own"), read_only=(str(tmp_path / "image"),)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert store.fetch(key, lambda: b"right").data == b"right"

    def test_pickles_in_it_are_not_read(self, tmp_path):
        key = make_key(kind="kernel")
        CacheStore(CacheSettings(str(tmp_path / "image"))).put(key, b"pickle")
        store = CacheStore(CacheSettings(str(tmp_path / "own"), read_only=(str(tmp_path / "image"),)))
        assert store.get(key, memory=False) is None

    def test_the_variable_lists_folders(self, tmp_path):
        environ = {"NUMBA_CUDA_AUTOLINK_CACHE_READONLY": f"{tmp_path}/a::{tmp_path}/b"}
        assert CacheSettings.from_environment(environ).read_only == (f"{tmp_path}/a", f"{tmp_path}/b")
