# SPDX-License-Identifier: BSD-2-Clause
"""The cache that machines share: what one builds another finds, and only what one's own site has sealed is used."""

from __future__ import annotations

import dataclasses
import random
import shutil
import threading
import time
import warnings
from pathlib import Path

import pytest
from cache_support import OURS, SharedFiles, cache_warnings, machines, make_key, not_built, patient
from numba.cuda.cudadrv.external_code.cache.entry import pack
from numba.cuda.cudadrv.external_code.cache.patience import PER_BUILD, Patience
from numba.cuda.cudadrv.external_code.cache.remote_settings import (
    RemoteSettings,
    RemoteSettingsError,
    lock_line,
)
from numba.cuda.cudadrv.external_code.cache.seals import UntrustedEntryError, opened, sealed
from numba.cuda.cudadrv.external_code.cache.settings import CacheSettings
from numba.cuda.cudadrv.external_code.cache.store import CacheStore

KEY = OURS.key


@pytest.fixture
def files():
    return SharedFiles()


@pytest.fixture
def machine(tmp_path, files):
    return machines(tmp_path, files)


def name_of(key):
    """Return the name of an entry's file."""
    return f"{key.digest.hex()[:2]}/{key.digest.hex()[2:]}"


def stored(blob):
    """Return the content of the file of a sealed entry, which names no pack."""
    return bytes(16) + blob


class TestSharing:
    def test_what_one_machine_built_another_finds_and_keeps(self, machine, files):
        key, first, second = make_key(), patient(machine()), patient(machine())
        assert first.fetch(key, lambda: b"code").origin == "built"
        assert first.remote.flush(30) == 0 and len(files) == 1
        assert second.fetch(key, not_built).origin == "remote"
        files.clear()
        assert (second.fetch(key, not_built).data, second.disk.read(key.digest)) == (b"code", b"code")

    def test_so_does_a_question_without_a_build(self, machine):
        key, first, second = make_key(kind="prototype"), patient(machine()), patient(machine())
        first.put(key, b"checked")
        first.remote.flush(30)
        assert second.get(key) == b"checked"

    @pytest.mark.parametrize("kind", ["kernel", "survival", "not cached", "mark", "future kind"])
    def test_what_is_a_pickle_or_true_on_one_machine_alone_is_neither_written_nor_read(self, machine, files, kind):
        key, first, second = make_key(kind=kind), patient(machine()), patient(machine())
        first.put(key, b"here")
        assert first.remote.flush(30) == 0 and not files
        entry = pack(key, b"planted")
        files[name_of(key)] = stored(sealed(OURS, key.digest, entry))
        assert second.get(key) is None and second.remote.counts.found == 0

    def test_nor_is_what_its_author_says_is_not_portable(self, machine, files):
        first = patient(machine())
        first.fetch(make_key(kind="answer"), lambda: b"/a/path", is_portable=lambda data: False)
        assert first.remote.flush(30) == 0 and not files

    def test_a_machine_that_only_reads_writes_nothing(self, machine, files):
        reader = patient(machine(dataclasses.replace(OURS, writes=False)))
        reader.put(make_key(), b"code")
        assert reader.remote.flush(30) == 0 and not files

    def test_what_was_found_there_is_not_written_again(self, machine, files):
        key, first, second = make_key(), patient(machine()), patient(machine())
        first.put(key, b"code")
        first.remote.flush(30)
        second.get(key)
        second.put(key, b"code")
        assert second.remote.counts.written == 0


class TestTrust:
    def test_forged_truncated_swapped_and_foreign_entries_are_not_used(self):
        draw = random.Random(3)
        foreign = dataclasses.replace(OURS, key=b"the key of another site, 32 bytes")
        refused = 0
        for number in range(10_000):
            key, other = make_key(f"f{number}.cu"), make_key(f"g{number}.cu")
            entry = pack(key, draw.randbytes(draw.randint(0, 300)))
            blob = sealed(OURS, key.digest, entry)
            position = draw.randrange(len(blob))
            forged = [
                blob[:position],
                blob[:position] + bytes([blob[position] ^ 1 << draw.randrange(8)]) + blob[position + 1 :],
                blob + b"\0",
                entry,
                bytes(32) + entry,
                sealed(foreign, key.digest, entry),
                sealed(OURS, other.digest, pack(other, b"code")),
                sealed(OURS, other.digest, entry),
                b"",
                draw.randbytes(len(blob)),
            ][number % 10]
            with pytest.raises(UntrustedEntryError):
                opened(OURS, key.digest, forged)
            refused += 1
            assert opened(OURS, key.digest, blob) == entry
        assert refused == 10_000

    def test_an_own_entry_under_another_key_is_not_used(self):
        """Even whoever has the key could not make a store answer one question with the answer to another."""
        key, other = make_key("f.cu"), make_key("g.cu")
        with pytest.raises(UntrustedEntryError, match="belongs to another key"):
            opened(OURS, key.digest, sealed(OURS, key.digest, pack(other, b"code")))

    def test_an_entry_that_is_not_used_is_built_with_one_warning_and_replaced(self, machine, files):
        keys, store = [make_key(f"f{number}.cu") for number in range(3)], patient(machine())
        names = [name_of(key) for key in keys]
        files.update((name, b"planted") for name in names)
        with cache_warnings() as warned:
            assert [store.fetch(key, lambda: b"right").data for key in keys] == [b"right"] * 3
        assert len(warned) == 1 and "does not use entries of its shared cache memory://cache" in warned[0]
        assert store.remote.flush(30) == 0 and b"planted" not in files.values()
        assert store.remote.counts.untrusted == 3

    def test_a_lock_file_says_what_is_trusted_whoever_sealed_it(self, tmp_path):
        key, other = make_key(), make_key("g.cu")
        entry, changed = pack(key, b"code"), pack(key, b"other code")
        (tmp_path / "lock").write_text("# comment\n\n" + lock_line(key.digest, entry))
        environ = {
            "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE": "https://mirror/cache",
            "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_LOCK": str(tmp_path / "lock"),
        }
        settings = RemoteSettings.from_environment(environ)
        assert opened(settings, key.digest, bytes(32) + entry) == entry
        for digest, blob in [(key.digest, changed), (other.digest, entry), (other.digest, pack(other, b""))]:
            with pytest.raises(UntrustedEntryError):
                opened(settings, digest, sealed(OURS, digest, blob))

    def test_an_empty_key_seals_nothing(self):
        nobody, key = dataclasses.replace(OURS, key=b""), make_key()
        with pytest.raises(UntrustedEntryError):
            opened(nobody, key.digest, sealed(nobody, key.digest, pack(key, b"code")))


class TestFaults:
    def test_a_store_that_is_absent_or_full_costs_one_warning(self, machine, files):
        def fail():
            raise ConnectionRefusedError("nobody listens")

        files.fault = fail
        store = patient(machine())
        with cache_warnings() as warned:
            for number in range(5):
                assert store.fetch(make_key(f"f{number}.cu"), lambda: b"right").data == b"right"
            assert store.remote.flush(30) == 0
        assert len(warned) == 1 and "ConnectionRefusedError: nobody listens" in warned[0]
        assert store.remote.counts.failed == 1, "it is asked again only after a pause"

    def test_a_full_store_costs_one_warning(self, machine, files):
        def full():
            if threading.current_thread().name.startswith("numba") and writing:
                raise OSError(28, "No space left on device")

        store, writing = patient(machine()), []
        store.get(make_key("g.cu"))
        writing.append(True)
        files.fault = full
        with cache_warnings() as warned:
            store.put(make_key(), b"right")
            assert store.remote.flush(30) == 0
        assert len(warned) == 1 and "No space left" in warned[0]

    def test_a_store_that_stalls_is_waited_for_once_and_its_late_answer_is_kept(self, machine, files):
        key, other, release = make_key(), make_key("g.cu"), threading.Event()
        files[name_of(key)] = stored(sealed(OURS, key.digest, pack(key, b"code")))
        files.fault = release.wait
        store = machine()
        assert store.get(key) is None and store.get(other) is None
        assert (store.remote.counts.late, store.remote.counts.not_asked) == (1, 1)
        release.set()
        deadline = time.monotonic() + 30
        while store.get(key) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert store.get(key) == b"code" and store.remote.counts.late == 1

    def test_a_store_that_does_not_answer_for_long_costs_one_warning(self, machine, files):
        release = threading.Event()
        files.fault = release.wait
        store = machine()
        with cache_warnings() as warned:
            assert store.get(make_key()) is None and store.get(make_key("g.cu")) is None
            assert not warned
            store.remote._asked_since -= 11
            assert store.get(make_key("g.cu")) is None and store.get(make_key("h.cu")) is None
        release.set()
        assert len(warned) == 1 and "waits for its shared cache memory://cache, which does not answer" in warned[0]

    def test_nothing_is_asked_while_all_readers_are_stalled(self, machine, files):
        release = threading.Event()
        files.fault = release.wait
        store = machine()
        store.remote.patience = Patience(0.001)
        store.remote.patience.note_no_answer = lambda seconds: None
        for number in range(10):
            assert store.get(make_key(f"f{number}.cu")) is None
        assert (store.remote.counts.late, store.remote.counts.not_asked) == (4, 6)
        release.set()

    def test_more_than_can_be_written_is_dropped(self, machine, files, monkeypatch):
        monkeypatch.setattr("numba.cuda.cudadrv.external_code.cache.transfers._MOST_PENDING", 3)
        release = threading.Event()
        files.fault = release.wait
        store = machine()
        store.remote.patience = Patience(0.001)
        for number in range(10):
            store.put(make_key(f"f{number}.cu"), b"code")
        assert (store.remote.counts.written, store.remote.counts.dropped) == (3, 7)
        release.set()
        assert store.remote.flush(30) == 0 and len([name for name in files if not name.startswith("packs")]) == 3

    def test_the_end_of_a_process_does_not_wait_for_a_store_that_stalls(self, machine, files):
        release = threading.Event()
        files.fault = release.wait
        store, asked = machine(), []
        flush = store.remote._transfers.flush
        store.remote._transfers.flush = lambda patience, longest: asked.append(patience) or flush(patience, longest)
        store.remote.write(make_key().digest, pack(make_key(), b"code"))
        store.remote.end()
        assert asked == [PER_BUILD]
        release.set()


ADDRESS = {"NUMBA_CUDA_AUTOLINK_CACHE_REMOTE": "s3://bucket/cache"}


class TestSettings:
    def test_without_an_address_there_is_none(self):
        assert CacheSettings.from_environment({}).remote is None

    def test_the_key_is_text_or_in_a_file(self, tmp_path):
        (tmp_path / "key").write_bytes(KEY + b"\n")
        for text in KEY.decode(), f"@{tmp_path / 'key'}":
            found = RemoteSettings.from_environment({**ADDRESS, "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY": text})
            assert found == RemoteSettings("s3://bucket/cache", False, KEY)
        assert "site" not in repr(found), "the key is not shown"

    @pytest.mark.parametrize(
        ("others", "message"),
        [
            ({}, "set NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY or NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_LOCK"),
            ({"_KEY": "short"}, "shorter than 16 bytes"),
            ({"_KEY": KEY.decode(), "_MODE": "wr"}, "expected ro or rw"),
            ({"_KEY": KEY.decode(), "_WAIT": "long"}, "expected a number of milliseconds above 0"),
            ({"_KEY": KEY.decode(), "_WAIT": "0"}, "expected a number of milliseconds above 0"),
            ({"_KEY": "@/no/such/file"}, "No such file"),
            ({"_LOCK": "/no/such/file"}, "No such file"),
            ({"_LOCK": __file__}, "is not a lock file"),
        ],
    )
    def test_doubtful_settings_use_no_shared_cache_and_warn(self, others, message):
        environ = {**ADDRESS, **{f"NUMBA_CUDA_AUTOLINK_CACHE_REMOTE{each}": others[each] for each in others}}
        with cache_warnings() as warned:
            assert CacheSettings.from_environment(environ).remote is None
        assert len(warned) == 1 and "uses no shared cache" in warned[0] and message in warned[0]

    @pytest.mark.parametrize("address", ["kernels", "s3:/bucket", "./kernels"])
    def test_a_folder_below_the_working_directory_is_not_an_address(self, address):
        environ = {"NUMBA_CUDA_AUTOLINK_CACHE_REMOTE": address, "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY": KEY.decode()}
        with pytest.raises(RemoteSettingsError, match=r"expected an address, such as s3://bucket/folder"):
            RemoteSettings.from_environment(environ)

    def test_how_long_a_build_may_wait_is_set_in_milliseconds(self):
        own = {"NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY": KEY.decode(), "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_WAIT": "250"}
        assert RemoteSettings.from_environment({**ADDRESS, **own}).wait == 0.25

    def test_writing_needs_a_key(self, tmp_path):
        (tmp_path / "lock").write_text("")
        own = {"_LOCK": str(tmp_path / "lock"), "_MODE": "rw"}
        environ = {**ADDRESS, **{f"NUMBA_CUDA_AUTOLINK_CACHE_REMOTE{each}": own[each] for each in own}}
        with pytest.raises(RemoteSettingsError, match="needs NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY"):
            RemoteSettings.from_environment(environ)


def test_a_folder_is_a_store(tmp_path):
    """As a folder on a network's file system is."""
    pytest.importorskip("fsspec")
    settings = RemoteSettings(f"file://{tmp_path}/shared", writes=True, key=KEY)
    first, second = (CacheStore(CacheSettings(str(tmp_path / name), remote=settings)) for name in ("one", "two"))
    patient(first).fetch(make_key(), lambda: b"code")
    assert first.remote.flush(30) == 0
    assert patient(second).fetch(make_key(), not_built).origin == "remote"
    assert [path.name for path in (tmp_path / "shared").rglob("*.tmp")] == []


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
    settings = RemoteSettings("s3://bucket/cache", writes=True, key=KEY)
    keys = [make_key(f"f{number}.cu") for number in range(50)]
    first, second, third = (
        patient(CacheStore(CacheSettings(str(tmp_path / name), remote=settings))) for name in ("one", "two", "three")
    )
    for key in keys:
        first.fetch(key, lambda: b"code" * 1000)
    assert first.remote.flush(60) == 0
    assert [second.fetch(key, not_built).origin for key in keys] == ["remote"] * 50
    for planted in b"", b"planted":
        s3fs.S3FileSystem().pipe_file(f"bucket/cache/{name_of(keys[2])}", planted)
        with cache_warnings():
            assert third.get(keys[2]) is None
    assert (third.remote.counts.untrusted, third.remote.counts.failed) == (2, 0)
    server.stop()
    third.remote.patience = Patience(60.0)
    with cache_warnings() as warned:
        assert third.fetch(keys[0], lambda: b"right").data == b"right"
        assert third.fetch(keys[1], lambda: b"right").data == b"right"
    assert len(warned) == 1 and "cannot use its shared cache s3://bucket/cache" in warned[0]


class TestImages:
    def test_a_directory_that_is_only_read_hits_whatever_its_times_and_modes_are(self, tmp_path):
        key, image = make_key(), tmp_path / "image"
        CacheStore(CacheSettings(str(image))).put(key, b"code")
        shutil.copytree(image, tmp_path / "copied", copy_function=shutil.copyfile)
        for path in (tmp_path / "copied").rglob("*"):
            path.chmod(0o777 if path.is_dir() else 0o666)
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
