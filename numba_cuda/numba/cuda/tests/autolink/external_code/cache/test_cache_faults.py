# SPDX-License-Identifier: BSD-2-Clause
"""Whatever happens to the cache's files: the result is right, there is at most one warning, and no entry that was
complete is lost."""

import errno
import itertools
import os
import shutil
import signal
import tempfile

import pytest
from cache_support import as_ordinary_user, cache_warnings, file_of, fork, fresh, make_key, not_built, wait
from numba.cuda.cudadrv.external_code.cache.entry import DamagedEntryError, pack, unpack

KEY = make_key("fft.cu")
OTHER = make_key("other.cu")
CODE = bytes(range(256)) * 40


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


# Damaged entries


def flip(path):
    data = bytearray(read(path))
    data[len(data) // 2] ^= 1
    write(path, data)


def to_link(path):
    os.rename(path, f"{path}.moved")
    os.symlink(f"{path}.moved", path)


DAMAGES = {
    "empty": (lambda path: write(path, b""), "it is empty"),
    "truncated": (lambda path: write(path, read(path)[:-1]), "its size is wrong"),
    "truncated to half": (lambda path: write(path, read(path)[: len(CODE) // 2]), "its size is wrong"),
    "truncated in the header": (lambda path: write(path, read(path)[:50]), "it is cut off"),
    "longer": (lambda path: write(path, read(path) + b"\0"), "its size is wrong"),
    "bit-flipped": (flip, "its checksum is wrong"),
    "something else": (
        lambda path: write(path, b"\x7fELF" + bytes(1000)),
        "it does not begin with an entry's magic number",
    ),
    "zeros": (lambda path: write(path, bytes(os.path.getsize(path))), "it does not begin with an entry's magic number"),
    "another key's": (lambda path: write(path, pack(OTHER, b"other code")), "it belongs to another key"),
    "link": (to_link, "it is not a regular file"),
    "too large": (lambda path: os.truncate(path, 2 << 30), "it is larger than the whole cache may be"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_built_again_and_replaced(tmp_path, damage):
    store = fresh(tmp_path)
    store.put(KEY, CODE)
    store.put(OTHER, b"other code")
    path = file_of(tmp_path, KEY)
    DAMAGES[damage][0](path)
    with cache_warnings() as warned:
        store = fresh(tmp_path)
        fetched = store.fetch(KEY, lambda: CODE)
        assert (fetched.data, fetched.origin) == (CODE, "built")
    assert warned == [f"numba-cuda-autolink found a damaged cache entry and rebuilds it: {path}: {DAMAGES[damage][1]}."]
    with cache_warnings() as warned:
        assert fresh(tmp_path).fetch(KEY, not_built).data == CODE
        assert fresh(tmp_path).fetch(OTHER, not_built).data == b"other code"
    assert not warned


def test_many_damaged_entries_are_one_warning(tmp_path):
    keys = [make_key(number=str(number)) for number in range(10)]
    for key in keys:
        fresh(tmp_path).put(key, CODE)
        flip(file_of(tmp_path, key))
    with cache_warnings() as warned:
        store = fresh(tmp_path)
        assert all(store.get(key) is None for key in keys)
        assert all(store.fetch(key, lambda: CODE).data == CODE for key in keys)
    assert len(warned) == 1


def test_no_bit_of_an_entry_can_flip_unnoticed():
    entry = pack(KEY, b"some code")
    assert unpack(entry, KEY.digest) == b"some code"
    for position in range(8 * len(entry)):
        flipped = bytearray(entry)
        flipped[position // 8] ^= 1 << position % 8
        with pytest.raises(DamagedEntryError):
            unpack(bytes(flipped), KEY.digest)


# A directory that fails


@pytest.mark.parametrize("folder", [".", "entries", "tmp", "locks"])
def test_a_read_only_directory_is_read_and_not_written(tmp_path, folder):
    root = tmp_path / "cache"
    fresh(root).fetch(KEY, lambda: CODE)
    (root / "locks").mkdir(exist_ok=True)

    def use():
        (root / folder).chmod(0o500)
        with cache_warnings() as warned:
            store = fresh(root)
            assert store.fetch(KEY, not_built).origin == "disk"
            assert not warned
            for number in range(5):
                key = make_key(number=str(number))
                assert store.fetch(key, lambda number=number: b"%d" % number).data == b"%d" % number
                assert store.fetch(key, not_built).origin == "memory"
        assert len(warned) == (folder in ("entries", "tmp"))
        for text in warned:
            assert text.startswith(f"numba-cuda-autolink cannot write to its cache {root} and continues without it: ")

    as_ordinary_user(tmp_path, use)


def test_an_entry_that_cannot_be_read(tmp_path):
    root = tmp_path / "cache"
    fresh(root).put(KEY, CODE)

    def use():
        os.chmod(file_of(root, KEY), 0)
        with cache_warnings() as warned:
            assert fresh(root).fetch(KEY, lambda: CODE).origin == "built"
        assert len(warned) == 1
        assert warned[0].startswith("numba-cuda-autolink cannot read its cache and rebuilds what is in it: ")
        assert fresh(root).fetch(KEY, not_built).origin == "disk"

    as_ordinary_user(tmp_path, use)


def test_a_directory_that_cannot_be_made(tmp_path):
    def use():
        tmp_path.chmod(0o500)
        with cache_warnings() as warned:
            store = fresh(tmp_path / "cache")
            for _ in range(2):
                assert store.fetch(KEY, lambda: CODE).data == CODE
                assert store.fetch(OTHER, lambda: b"other code").data == b"other code"
        assert len(warned) == 1
        assert f"cannot use its cache {tmp_path / 'cache'} and continues without it" in warned[0]
        assert "Set NUMBA_CUDA_AUTOLINK_CACHE_DIR" in warned[0]
        assert store.clear() == 0

    as_ordinary_user(tmp_path, use)


@pytest.mark.parametrize("place", ["cache", "cache/entries", "cache/tmp"])
def test_a_file_where_a_directory_belongs(tmp_path, place):
    path = tmp_path / place
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text("mine")
    with cache_warnings() as warned:
        store = fresh(tmp_path / "cache")
        assert store.fetch(KEY, lambda: CODE).data == CODE
        assert store.fetch(OTHER, lambda: CODE).data == CODE
    assert len(warned) == 1
    assert path.read_text() == "mine"


@pytest.mark.parametrize("removed", [".", "entries", "tmp", "locks"])
def test_removed_while_running(tmp_path, removed):
    root = tmp_path / "cache"
    with cache_warnings() as warned:
        store = fresh(root)
        assert store.fetch(KEY, lambda: CODE).data == CODE
        shutil.rmtree(root / removed, ignore_errors=True)
        assert store.fetch(KEY, not_built).origin == "memory"
        assert store.fetch(OTHER, lambda: b"other code").origin == "built"
        assert fresh(root).fetch(OTHER, not_built).data == b"other code"
    assert not warned


def test_cleared_at_the_moment_of_a_write(tmp_path, monkeypatch):
    replace = os.replace

    def cleared(source, target):
        monkeypatch.setattr(os, "replace", replace)
        shutil.rmtree(tmp_path / "cache")
        return replace(source, target)

    store = fresh(tmp_path / "cache")
    monkeypatch.setattr(os, "replace", cleared)
    with cache_warnings() as warned:
        store.put(KEY, CODE)
    assert not warned
    assert fresh(tmp_path / "cache").get(KEY) == CODE


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO], ids=errno.errorcode.get)
@pytest.mark.parametrize("call", ["os.replace", "tempfile.mkstemp"])
def test_a_full_or_failing_disk(tmp_path, monkeypatch, call, code):
    fresh(tmp_path).put(OTHER, b"other code")

    def failing(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch, cache_warnings() as warned:
        patch.setattr(call, failing)
        store = fresh(tmp_path)
        for number in range(3):
            assert store.fetch(make_key(number=str(number)), lambda: CODE).data == CODE
        assert store.fetch(OTHER, not_built).data == b"other code"
    assert len(warned) == 1
    assert os.strerror(code) in warned[0]
    assert os.listdir(tmp_path / "tmp") == []
    assert fresh(tmp_path).fetch(OTHER, not_built).data == b"other code"


# Processes killed while they write


STAGES = [
    ("os.mkdir", "after", 1),
    ("os.mkdir", "after", 3),
    ("tempfile.mkstemp", "before", 1),
    ("tempfile.mkstemp", "after", 1),
    ("os.fdopen", "half written", 1),
    ("os.replace", "before", 1),
    ("os.replace", "after", 1),
    ("os.unlink", "before", 1),  # of the lock file
    ("os.unlink", "after", 1),
]


def kill_me():
    os.kill(os.getpid(), signal.SIGKILL)


def killed_at(call, when, count):
    """*call*, which kills the process *when* it runs for the *count*th time."""
    module = {"os": os, "tempfile": tempfile}[call.split(".")[0]]
    original = getattr(module, call.split(".")[1])
    counter = itertools.count(1)

    def wrapper(*args, **kwargs):
        now = next(counter) == count
        if now and when == "before":
            kill_me()
        result = original(*args, **kwargs)
        if now and when == "after":
            kill_me()
        if now and when == "half written":
            write_all = result.write
            result = _HalfWriter(result, write_all)
        return result

    setattr(module, call.split(".")[1], wrapper)


class _HalfWriter:
    def __init__(self, file, write_all):
        self._file, self._write_all = file, write_all

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()

    def write(self, data):
        self._write_all(data[: len(data) // 2])
        self._file.flush()
        kill_me()


@pytest.mark.parametrize("there", [False, True], ids=["new", "replacing"])
@pytest.mark.parametrize("stage", STAGES, ids=" ".join(["%s", "%s", "%d"]).__mod__)
def test_killed_at_each_stage_of_a_write(tmp_path, stage, there):
    root = tmp_path / "cache"
    old, new = b"old" * 5000, b"new" * 6000
    if there or stage[0] != "os.mkdir":
        fresh(root).put(OTHER, CODE)
    if there:
        fresh(root).put(KEY, old)

    def writing():
        store = fresh(root)
        killed_at(*stage)
        if there:
            store.put(KEY, new)
        store.fetch(make_key("and another"), lambda: new)

    child = fork(writing)
    if (status := wait(child)) != -signal.SIGKILL:
        assert status == 0 and stage[0] == "os.mkdir" and there  # all directories were there
    with cache_warnings() as warned:
        store = fresh(root)
        assert store.get(KEY) in ((old, new) if there else (None,))
        assert store.get(OTHER) in (CODE, None if stage[0] == "os.mkdir" and not there else CODE)
        assert store.fetch(make_key("and another"), lambda: new).data == new
        store.put(KEY, new)
        assert fresh(root).get(KEY) == new
    assert not warned


# What someone else could have written


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777], ids=oct)
@pytest.mark.parametrize("folder", [".", "entries", "tmp"])
def test_a_directory_that_others_can_write_to_is_refused(tmp_path, folder, mode):
    root = tmp_path / "cache"
    fresh(root).put(KEY, CODE)
    (root / folder).chmod(mode)
    with cache_warnings() as warned:
        store = fresh(root)
        assert store.fetch(KEY, lambda: CODE).origin == "built"
        assert store.fetch(OTHER, lambda: b"other code").origin == "built"
    assert warned == [
        f"numba-cuda-autolink does not use {root / folder} of its cache: it can be written to by "
        f"{'any user' if mode & 0o002 else 'users of its group'}, who could put code there that runs in your kernels. "
        "Make it this user's alone (chown, chmod go-w), remove it, or set NUMBA_CUDA_AUTOLINK_CACHE_DIR."
    ]
    (root / folder).chmod(0o700)
    assert fresh(root).fetch(KEY, not_built).origin == "disk"
    assert fresh(root).get(OTHER) is None


@pytest.mark.parametrize("place", ["root", "entries", "folder", "entry"])
def test_what_others_can_write_to_while_running_is_refused(tmp_path, place):
    root = tmp_path / "cache"
    fresh(root).put(KEY, CODE)
    path = file_of(root, KEY)
    store = fresh(root)
    store.get(OTHER)
    os.chmod({"root": root, "entries": root / "entries", "folder": os.path.dirname(path), "entry": path}[place], 0o722)
    with cache_warnings() as warned:
        assert store.fetch(KEY, lambda: b"built").origin == "built"
        assert store.fetch(KEY, not_built).origin == "memory"
    assert len(warned) == 1
    # What others can write to is not written to either, but the entry itself is replaced.
    assert read(path).endswith(b"built" if place == "entry" else CODE)
    with cache_warnings():
        assert fresh(root).fetch(KEY, lambda: CODE).origin == ("disk" if place == "entry" else "built")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("place", ["root", "entries", "folder", "entry"])
def test_what_belongs_to_someone_else_is_refused(tmp_path, place):
    root = tmp_path / "cache"
    fresh(root).put(KEY, CODE)
    path = file_of(root, KEY)
    owned = {"root": root, "entries": root / "entries", "folder": os.path.dirname(path), "entry": path}[place]
    os.chown(owned, 12345, 12345)
    with cache_warnings() as warned:
        store = fresh(root)
        assert store.fetch(KEY, lambda: CODE).origin == "built"
    assert len(warned) == 1
    assert f"does not use {owned} of its cache: it belongs to user 12345, who could put code there" in warned[0]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become someone else")
def test_what_belongs_to_root_is_used(tmp_path):
    root = tmp_path / "cache"
    fresh(root).put(KEY, CODE)

    def use():
        with cache_warnings() as warned:
            assert fresh(root).fetch(KEY, not_built).origin == "disk"
        assert not warned

    as_ordinary_user(tmp_path / "nothing to give away", lambda: None)
    for folder, _, files in os.walk(root):
        os.chmod(folder, 0o755)
        for file in files:
            os.chmod(os.path.join(folder, file), 0o644)
    for parent in root.parents:
        if not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)

    def unprivileged():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        use()

    assert wait(fork(unprivileged)) == 0


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077], ids=oct)
def test_directories_and_entries_are_private_under_any_umask(tmp_path, umask):
    root = tmp_path / "some" / "cache"
    before = os.umask(umask)
    try:
        with cache_warnings() as warned:
            fresh(root).fetch(KEY, lambda: CODE)
            assert fresh(root).fetch(KEY, not_built).origin == "disk"
    finally:
        os.umask(before)
    assert not warned
    for folder, _, files in os.walk(tmp_path / "some"):
        assert os.stat(folder).st_mode & 0o777 == 0o700
        assert all(os.stat(os.path.join(folder, file)).st_mode & 0o777 == 0o600 for file in files)
