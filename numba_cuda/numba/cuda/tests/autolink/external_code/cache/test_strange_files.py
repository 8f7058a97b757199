# SPDX-License-Identifier: BSD-2-Clause
"""Pipes, links, devices, sockets and very large files in the cache: nothing waits for them or follows them."""

import os
import socket
import stat
import time
from pathlib import Path

import pytest
from cache_support import cache_warnings, file_of, fresh, make_key, not_built, wait_for
from numba.cuda.cudadrv.external_code.cache.disk import FAILED_SOURCES, MISMATCHES
from numba.cuda.cudadrv.external_code.cache.store import CacheMismatchError, reset_store
from numba.cuda.cudadrv.external_code.compile import nvrtc_log

KEY, OTHER = make_key("f.cu"), make_key("g.cu")
CODE = b"some code"


def to_pipe(path):
    os.mkfifo(path)


def to_link(path):
    os.symlink("/dev/zero", path)


def to_dangling_link(path):
    os.symlink("/nowhere", path)


def to_socket(path):
    folder, name = os.path.split(path)
    outer = os.getcwd()
    os.chdir(folder)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(name[:90])
        os.rename(name[:90], name)
    finally:
        os.chdir(outer)


def to_directory(path):
    os.mkdir(path)


STRANGE = [to_pipe, to_link, to_dangling_link, to_socket, to_directory]


@pytest.mark.parametrize("strange", STRANGE)
def test_as_an_entry(tmp_path, strange):
    fresh(tmp_path).put(KEY, CODE)
    fresh(tmp_path).put(OTHER, CODE)
    path = file_of(tmp_path, KEY)
    os.unlink(path)
    strange(path)

    def use():
        store = fresh(tmp_path)
        with cache_warnings() as warned:
            assert store.get(KEY) is None
            assert store.get(KEY) is None
            assert [entry.digest for entry in store.disk.entries()] == [OTHER.digest]
            store.disk.prune(1 << 20)
        assert len(warned) == (0 if strange is to_dangling_link else 1)
        assert fresh(tmp_path).fetch(OTHER, not_built).data == CODE
        with cache_warnings():
            assert store.fetch(KEY, lambda: CODE).data == CODE
        assert fresh(tmp_path).fetch(KEY, not_built).data == CODE

    wait_for(use)


@pytest.mark.parametrize("strange", [to_pipe, to_link, to_dangling_link, to_socket])
@pytest.mark.parametrize("folder", ["locks", "tmp", MISMATCHES, FAILED_SOURCES])
def test_in_another_folder(tmp_path, monkeypatch, folder, strange):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path))
    fresh(tmp_path).put(OTHER, CODE)
    (tmp_path / folder).mkdir(mode=0o700, exist_ok=True)
    names = {
        "locks": [f"{KEY.digest.hex()}.lock"],
        "tmp": ["entry-strange"],
        MISMATCHES: [f"program-f.cu-{OTHER.digest.hex()[:16]}.{end}" for end in ("cached", "rebuilt")],
        FAILED_SOURCES: ["f-a665a4592042.cu"],  # of "123"
    }[folder]
    for name in names:
        strange(tmp_path / folder / name)

    def use():
        assert fresh(tmp_path).fetch(KEY, lambda: CODE).data == CODE
        with pytest.raises(CacheMismatchError) as caught:
            fresh(tmp_path).verify(make_key("f.cu", source="g.cu"), CODE, "disk", lambda: b"other")
        assert Path(caught.value.cached).read_bytes() == CODE
        reset_store()
        path = nvrtc_log.saved(b"123", "f.cu")
        assert path is not None and stat.S_ISREG(os.lstat(path).st_mode)
        assert fresh(tmp_path).clear() == 2
        assert not any(os.listdir(tmp_path / left) for left in (MISMATCHES, FAILED_SOURCES))

    wait_for(use)


@pytest.mark.parametrize("strange", STRANGE)
def test_a_source_s_name_that_is_no_file(tmp_path, monkeypatch, strange):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path / "cache"))
    strange(tmp_path / "f.cu")

    def use():
        reset_store()
        path = nvrtc_log.saved(b"code", str(tmp_path / "f.cu"))
        assert path is not None and path.startswith(str(tmp_path / "cache"))

    wait_for(use)


def test_one_entry_above_the_cap_does_not_evict_the_rest(tmp_path):
    keys = [make_key(number=str(number)) for number in range(5)]
    for key in keys:
        fresh(tmp_path).put(key, CODE)
    store = fresh(tmp_path, max_bytes=1 << 20)
    path = store.disk.path(OTHER.digest)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(path, "wb") as file:
        file.truncate(1 << 30)
    store.disk._evict(1 << 20)
    assert not os.path.exists(path)
    assert all(fresh(tmp_path).fetch(key, not_built).data == CODE for key in keys)


def test_failed_sources_are_capped_and_cleared(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path))
    reset_store()
    paths = [nvrtc_log.saved(b"%d" % number, "f.cu") for number in range(120)]
    for age, path in enumerate(reversed(paths)):
        if os.path.exists(path):
            os.utime(path, (time.time() - age, time.time() - age))
    last = nvrtc_log.saved(b"last", "f.cu")
    left = os.listdir(tmp_path / FAILED_SOURCES)
    assert len(left) == 100 and os.path.basename(last) in left and os.path.basename(paths[-1]) in left
    large = nvrtc_log.saved(bytes(200 << 20), "f.cu")
    assert os.listdir(tmp_path / FAILED_SOURCES) != left and os.path.exists(large)
    fresh(tmp_path).clear()
    assert os.listdir(tmp_path / FAILED_SOURCES) == []
    reset_store()
