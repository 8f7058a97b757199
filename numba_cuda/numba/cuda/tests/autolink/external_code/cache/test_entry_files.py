# SPDX-License-Identifier: BSD-2-Clause
"""Entries move to machines without a network in files, which are trusted by the site's key, or on request."""

from __future__ import annotations

import os
import tarfile

import pytest
from cache_support import fresh, make_key, not_built
from numba.cuda.autolink import cache
from numba.cuda.cudadrv.external_code.cache.store import reset_store

from numba_cuda_autolink.commands.main_command import main

VARIABLE = "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY"
KEY = "the key of this site, 32 bytes.."


@pytest.fixture
def machine(tmp_path):
    """Makes a machine with an empty cache directory the current one."""
    before = reset_store()
    made = []

    def make():
        store = fresh(tmp_path / f"machine{len(made)}")
        made.append(store)
        reset_store(store)
        return store

    yield make
    reset_store(before)


@pytest.fixture
def exported(tmp_path, machine, monkeypatch):
    """A file of two entries, signed with `KEY`."""
    monkeypatch.setenv(VARIABLE, KEY)
    store = machine()
    for kind in "program", "link", "kernel", "headers", "survival":
        store.put(make_key(kind=kind), kind.encode())
    path = tmp_path / "entries"
    assert cache.export_file(path) == 2, "the others are pickles, or of this machine alone"
    return path


def test_what_is_exported_is_imported_elsewhere(exported, machine):
    store = machine()
    assert cache.import_file(exported) == 2
    assert [store.fetch(make_key(kind=kind), not_built).data for kind in ("program", "link")] == [b"program", b"link"]


@pytest.mark.parametrize("key", ["another site's key, 32 bytes....", ""])
def test_a_file_of_another_site_is_refused_unless_it_is_trusted(exported, machine, monkeypatch, key):
    store = machine()
    monkeypatch.setenv(VARIABLE, key)
    with pytest.raises(ValueError, match="is not used"):
        cache.import_file(exported)
    assert list(store.disk.entries()) == []
    assert cache.import_file(exported, trust=True) == 2


@pytest.mark.parametrize("trust", [False, True])
def test_nothing_of_a_damaged_file_is_kept(exported, machine, trust):
    store, content = machine(), bytearray(exported.read_bytes())
    last = content.rindex(b"NCALINK1")
    content[last + 50] ^= 1
    exported.write_bytes(content)
    with pytest.raises(ValueError, match="is not used"):
        cache.import_file(exported, trust=trust)
    assert list(store.disk.entries()) == []


def tar(path):
    with tarfile.open(path, "w") as file:
        file.addfile(tarfile.TarInfo("0" * 64))


START = b"numba-cuda-autolink: cache entries 2\n"
FOREIGN_FILES = {
    "tar": tar,
    "text": lambda path: path.write_text("text" * 1000),
    "nothing": lambda path: path.write_bytes(b""),
    "no end": lambda path: path.write_bytes(START),
    "a size without its entry": lambda path: path.write_bytes(START + b"x" * 48),
    "an end with something after it": lambda path: path.write_bytes(START + bytes(41)),
}


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("write", FOREIGN_FILES.values(), ids=FOREIGN_FILES)
def test_a_file_that_export_does_not_write_is_one_error(tmp_path, machine, monkeypatch, write, trust):
    store = machine()
    monkeypatch.setenv(VARIABLE, KEY)
    write(tmp_path / "file")
    with pytest.raises(ValueError, match="file is not a file of cache entries"):
        cache.import_file(tmp_path / "file", trust=trust)
    assert list(store.disk.entries()) == []


def test_a_file_that_cannot_be_written_is_named_and_leaves_the_earlier_one(exported, monkeypatch):
    before = exported.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left") as caught:
        cache.export_file(exported)
    assert caught.value.filename == str(exported)
    assert exported.read_bytes() == before and not list(exported.parent.glob("*.tmp"))


def test_what_has_no_room_is_not_imported(exported, tmp_path, machine):
    machine()
    store = fresh(tmp_path / "small", max_bytes=10)
    reset_store(store)
    with pytest.raises(ValueError, match=r"2 of 2 entries of .* could not be written to the cache"):
        cache.import_file(exported)


def test_the_command_does_the_same(exported, tmp_path, machine, monkeypatch, capsys):
    assert main(["cache", "export", str(tmp_path / "file")]) == 0
    machine()
    assert main(["cache", "import", str(tmp_path / "file")]) == 0
    exported_and_imported = capsys.readouterr().out.splitlines()
    assert exported_and_imported[0].endswith(": 2 entries, without 3 for this machine alone")
    assert exported_and_imported[1].endswith(": 2 entries, 2 of them new")
    monkeypatch.delenv(VARIABLE)
    assert main(["cache", "import", str(tmp_path / "file")]) == 1
    assert "--trust" in capsys.readouterr().err
    assert main(["cache", "import", "--trust", str(tmp_path / "file")]) == 0


def test_levels_hits_and_the_time_that_they_saved_are_shown(tmp_path, machine):
    store = machine()
    for _ in range(4):
        store.fetch(make_key(), lambda: b"code")
    store.statistics.seconds["program"] = 2.0
    (usage,) = cache.info().usage
    assert (usage.kind, usage.found, usage.built, usage.hit_rate) == ("program", (("memory", 3),), 1, 0.75)
    assert usage.seconds_saved == 6.0
    assert "program: 75% of 4 found (memory 3), about 6.0 s saved" in str(cache.info())
    assert "used so far, about 6.0 s saved\n" in str(cache.info())
    store.end()
    reset_store(fresh(store.settings.directory, read_only=("/image",)))
    later = cache.info()
    assert later.usage == (usage,), "processes leave what they counted"
    assert later.levels == (("image", "/image"),) and "image /image (there is no such folder)" in str(later)
    cache.clear()
    assert cache.info().usage == ()


@pytest.mark.parametrize("content", [b"\0\xff", b"[]\n{}\n", b'{"counts": [["a"]], "seconds": {}}\n', b"[" * 10_000])
def test_statistics_that_cannot_be_read_count_nothing(machine, content):
    store = machine()
    store.put(make_key(), b"code")
    with open(f"{store.settings.directory}/statistics", "wb") as file:
        file.write(content)
    assert [usage.kind for usage in cache.info().usage] == []
