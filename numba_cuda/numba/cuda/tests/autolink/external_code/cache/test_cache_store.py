# SPDX-License-Identifier: BSD-2-Clause
"""The store: where an artefact comes from, one build per key, settings, the size cap, and what users can ask."""

import dataclasses
import logging
import os
import random
import sys
import threading
import time

import pytest
from cache_support import cache_warnings, fork, fresh, make_key, not_built, wait
from numba import cuda
from numba.cuda import autolink
from numba.cuda.autolink import cache
from numba.cuda.cudadrv.external_code.cache import build_locks
from numba.cuda.cudadrv.external_code.cache import settings as cache_settings
from numba.cuda.cudadrv.external_code.cache.build_locks import BuildGuard, FileLock
from numba.cuda.cudadrv.external_code.cache.entry import CacheKey
from numba.cuda.cudadrv.external_code.cache.settings import CacheSettings, CacheWarning, print_log
from numba.cuda.cudadrv.external_code.cache.store import CacheMismatchError, CacheStore, current_store, reset_store


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """This process's store, in a directory of the test's; gives a function that makes a new one of the environment."""
    monkeypatch.setenv(cache_settings.DIRECTORY, str(tmp_path / "cache"))
    for variable in (cache_settings.MODE, cache_settings.MAX_BYTES, cache_settings.LOG):
        monkeypatch.delenv(variable, raising=False)

    def restart(**environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return reset_store()

    before = restart()
    yield restart
    reset_store(before)
    print_log(False)


# Where it comes from


def test_built_then_memory_then_disk(tmp_path):
    store = fresh(tmp_path)
    key = make_key()
    assert store.fetch(key, lambda: b"code").origin == "built"
    assert (store.fetch(key, not_built).data, store.fetch(key, not_built).origin) == (b"code", "memory")
    another_process = fresh(tmp_path)
    fetched = another_process.fetch(key, not_built)
    assert (fetched.data, fetched.origin) == (b"code", "disk")
    assert fetched.seconds > 0
    assert another_process.fetch(key, not_built).origin == "memory"


def test_another_key_is_built(tmp_path):
    store = fresh(tmp_path)
    store.fetch(make_key(arch="sm_80"), lambda: b"code for sm_80")
    assert store.fetch(make_key(arch="sm_90"), lambda: b"code for sm_90").data == b"code for sm_90"
    assert fresh(tmp_path).get(make_key(arch="sm_100")) is None


def test_put_replaces_and_other_processes_can_see_it(tmp_path):
    store, other = fresh(tmp_path), fresh(tmp_path)
    key = make_key("manifest", kind="headers")
    store.put(key, b"first")
    assert other.get(key) == b"first"
    store.put(key, b"second")
    assert store.get(key) == b"second"
    assert other.get(key) == b"first"
    assert other.get(key, memory=False) == b"second"
    assert other.get(key) == b"first"


def test_a_failing_build_keeps_nothing_and_the_next_one_builds(tmp_path):
    store = fresh(tmp_path)

    def failing():
        raise RuntimeError("does not compile")

    with pytest.raises(RuntimeError, match="does not compile"):
        store.fetch(make_key(), failing)
    assert store.fetch(make_key(), lambda: b"code").origin == "built"
    assert os.listdir(tmp_path / "locks") == []


@pytest.mark.parametrize("what", ["text", bytearray(b"x")], ids=repr)
def test_only_bytes_are_kept(tmp_path, what):
    with pytest.raises(TypeError, match=r"the cache keeps bytes, got \w+ for program 'f.cu'"):
        fresh(tmp_path).fetch(make_key(), lambda: what)


def test_memory_alone_where_the_disk_is_off(tmp_path):
    store = fresh(tmp_path / "cache", on_disk=False)
    store.fetch(make_key(), lambda: b"code")
    assert store.fetch(make_key(), not_built).origin == "memory"
    assert store.clear() == 0
    assert store.fetch(make_key(), lambda: b"code").origin == "built"
    assert not (tmp_path / "cache").exists()


# One build per key


def test_threads_build_a_key_once(tmp_path):
    store = fresh(tmp_path)
    built, origins = [], []

    def build():
        built.append(1)
        time.sleep(0.05)
        return b"code"

    threads = [
        threading.Thread(target=lambda: origins.append(store.fetch(make_key(), build).origin)) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert sorted(origins) == ["built"] + ["memory"] * 15


def test_sixteen_processes_build_twenty_keys_once_each(tmp_path):
    log = tmp_path / "built"

    def work(seed):
        store = fresh(tmp_path / "cache")
        numbers = list(range(20))
        random.Random(seed).shuffle(numbers)
        for number in numbers:

            def build(number=number):
                with open(log, "a") as file:
                    file.write(f"{number}\n")
                time.sleep(0.003)
                return b"%d" % number * 1000

            with cache_warnings() as warned:
                assert store.fetch(make_key(number=str(number)), build).data == b"%d" % number * 1000
            assert not warned

    children = [fork(lambda seed=seed: work(seed)) for seed in range(16)]
    assert [wait(child) for child in children] == [0] * 16
    assert sorted(map(int, log.read_text().split())) == list(range(20))
    assert os.listdir(tmp_path / "cache" / "locks") == []


def test_a_build_may_fetch_other_keys_and_even_its_own(tmp_path):
    store = fresh(tmp_path)

    def outer():
        inner = store.fetch(make_key(part="inner"), lambda: b"inner").data
        return inner + store.fetch(make_key(part="outer"), lambda: b"own").data

    assert store.fetch(make_key(part="outer"), outer).data == b"innerown"


def test_threads_whose_builds_want_each_other_do_not_wait_for_ever(tmp_path):
    store = fresh(tmp_path)
    both_build = threading.Barrier(2, timeout=10)
    results = {}

    def build(mine, theirs):
        both_build.wait()
        return store.fetch(make_key(part=theirs), lambda: b"made for " + mine.encode()).data

    def work(mine, theirs):
        results[mine] = store.fetch(make_key(part=mine), lambda: build(mine, theirs)).data

    threads = [threading.Thread(target=work, args=pair, daemon=True) for pair in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert len(results) == 2


def test_who_waits_too_long_builds(tmp_path):
    store = fresh(tmp_path)
    store._guard = BuildGuard(longest_wait=0.05)
    hangs, end = threading.Event(), threading.Event()

    def hanging():
        hangs.set()
        end.wait(10)
        return b"at last"

    thread = threading.Thread(target=store.fetch, args=(make_key(), hanging))
    thread.start()
    hangs.wait(10)
    assert store.fetch(make_key(), lambda: b"code").data == b"code"  # the same process
    other = fresh(tmp_path)
    other._guard = BuildGuard(longest_wait=0.05)
    key = make_key(part="locked by another")
    lock = FileLock.try_lock(os.path.join(other.disk.private_folder("locks"), f"{key.digest.hex()}.lock"))
    assert other.fetch(key, lambda: b"code").data == b"code"
    lock.release()
    end.set()
    thread.join()


def test_a_process_that_shows_no_life_is_not_waited_for(tmp_path, monkeypatch):
    """As one that was stopped, or on a machine that is gone; a builder of this project's shows it every few seconds."""
    monkeypatch.setattr(build_locks, "BEAT", 0.02)
    key, folder = make_key(), fresh(tmp_path).disk.private_folder("locks")
    silent = FileLock.try_lock(os.path.join(folder, f"{key.digest.hex()}.lock"))
    waiting = fresh(tmp_path)
    waiting._guard = BuildGuard(silence=0.3)
    assert waiting.fetch(key, lambda: b"code").data == b"code"
    silent.release()
    beating, begun, order = fresh(tmp_path), threading.Event(), []

    def slow():
        begun.set()
        time.sleep(0.8)
        order.append("built")
        return b"slow"

    slow_key = make_key(part="slow")
    thread = threading.Thread(target=beating.fetch, args=(slow_key, slow))
    thread.start()
    begun.wait(10)
    assert waiting.fetch(slow_key, lambda: b"not waited for").data == b"slow"
    assert order == ["built"]
    thread.join()


def test_where_nothing_can_be_locked_it_builds(tmp_path, monkeypatch):
    def unsupported(descriptor, how):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(build_locks.fcntl, "flock", unsupported)
    with cache_warnings() as warned:
        assert fresh(tmp_path).fetch(make_key(), lambda: b"code").origin == "built"
        assert fresh(tmp_path).fetch(make_key(), not_built).origin == "disk"
    assert not warned


def test_a_killed_builder_holds_nobody_up(tmp_path):
    reader, writer = os.pipe()

    def building():
        os.write(writer, b"x")
        time.sleep(60)

    child = fork(lambda: fresh(tmp_path).fetch(make_key(), building))
    os.read(reader, 1)
    killed = threading.Event()

    def kill():
        killed.set()
        os.kill(child, 9)

    threading.Timer(0.1, kill).start()
    assert fresh(tmp_path).fetch(make_key(), lambda: b"code" if killed.is_set() else b"early").data == b"code"
    assert wait(child) == -9
    assert os.listdir(tmp_path / "locks") == []


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_fork_amid_a_build_leaves_the_child_usable(own_cache):
    started, end = threading.Event(), threading.Event()

    def building():
        started.set()
        end.wait(10)
        return b"from the parent"

    current_store().fetch(make_key(part="before"), lambda: b"before")
    thread = threading.Thread(target=current_store().fetch, args=(make_key(), building))
    thread.start()
    started.wait(10)

    def child():
        assert current_store().fetch(make_key(part="before"), not_built).origin == "memory"
        assert current_store().fetch(make_key(part="other"), lambda: b"other").origin == "built"
        fetched = current_store().fetch(make_key(), not_built)
        assert (fetched.data, fetched.origin) == (b"from the parent", "disk")

    process = fork(child)
    time.sleep(0.1)
    end.set()
    thread.join()
    assert wait(process) == 0


# Settings


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, {"on_disk": True, "verify": False, "max_bytes": 1 << 30, "log": False}),
        ({"NUMBA_CUDA_AUTOLINK_CACHE": "0"}, {"on_disk": False}),
        ({"NUMBA_CUDA_AUTOLINK_CACHE": "1"}, {"on_disk": True}),
        ({"NUMBA_CUDA_AUTOLINK_CACHE": "verify"}, {"on_disk": True, "verify": True}),
        ({"NUMBA_CUDA_AUTOLINK_CACHE_SIZE": "12345"}, {"max_bytes": 12345}),
        ({"NUMBA_CUDA_AUTOLINK_CACHE_SIZE": "500M"}, {"max_bytes": 500 << 20}),
        ({"NUMBA_CUDA_AUTOLINK_CACHE_SIZE": "1.5 GiB"}, {"max_bytes": 3 << 29}),
        ({"NUMBA_CUDA_AUTOLINK_CACHE_SIZE": "64k"}, {"max_bytes": 64 << 10}),
        ({"NUMBA_CUDA_AUTOLINK_LOG": "cache"}, {"log": True}),
        ({"NUMBA_CUDA_AUTOLINK_LOG": "link, cache"}, {"log": True}),
        ({"NUMBA_CUDA_AUTOLINK_LOG": "link"}, {"log": False}),
    ],
    ids=repr,
)
def test_settings(environment, expected):
    settings = CacheSettings.from_environment({"HOME": "/home/me", **environment})
    assert {name: getattr(settings, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("NUMBA_CUDA_AUTOLINK_LOG", "chache", "NUMBA_CUDA_AUTOLINK_LOG='chache' has no effect: expected cache"),
        ("NUMBA_CUDA_AUTOLINK_CACHE", "off", "NUMBA_CUDA_AUTOLINK_CACHE='off' has no effect: expected 0 .*"),
        ("NUMBA_CUDA_AUTOLINK_CACHE_SIZE", "0", "NUMBA_CUDA_AUTOLINK_CACHE_SIZE='0' has no effect: expected a number"),
        ("NUMBA_CUDA_AUTOLINK_CACHE_SIZE", "much", "NUMBA_CUDA_AUTOLINK_CACHE_SIZE='much' has no effect"),
    ],
)
def test_a_setting_that_makes_no_sense_is_told(variable, value, message):
    with pytest.warns(CacheWarning, match=message):
        settings = CacheSettings.from_environment({variable: value})
    assert settings == CacheSettings.from_environment({})


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "/home/me/.cache/numba-cuda-autolink"),
        ({"XDG_CACHE_HOME": "/scratch/me"}, "/scratch/me/numba-cuda-autolink"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/numba-cuda-autolink"),
        ({"NUMBA_CUDA_AUTOLINK_CACHE_DIR": "~/mine", "XDG_CACHE_HOME": "/scratch"}, "/home/me/mine"),
        ({"NUMBA_CUDA_AUTOLINK_CACHE_DIR": ""}, "/home/me/.cache/numba-cuda-autolink"),
    ],
)
def test_the_directory(monkeypatch, environment, expected):
    monkeypatch.setenv("HOME", "/home/me")
    assert CacheSettings.from_environment(environment).directory == expected


def test_a_user_without_a_home_caches_nothing_on_disk(monkeypatch):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.warns(CacheWarning, match="no home directory. Set NUMBA_CUDA_AUTOLINK_CACHE_DIR"):
        settings = CacheSettings.from_environment({})
    assert not settings.on_disk
    store = CacheStore(settings)
    assert store.fetch(make_key(), lambda: b"code").data == b"code"
    assert list(store.disk.entries()) == []


def test_the_environment_is_read_at_first_use(own_cache, tmp_path):
    assert current_store().fetch(make_key(), lambda: b"code").origin == "built"
    own_cache()
    assert current_store().get(make_key()) == b"code"
    own_cache(NUMBA_CUDA_AUTOLINK_CACHE_DIR=str(tmp_path / "another"))
    assert current_store().get(make_key()) is None
    current_store().put(make_key(), b"other code")
    assert (tmp_path / "another" / "entries").is_dir()


# A large cache


def test_what_was_not_used_for_longest_goes(tmp_path):
    entry = 10_000
    store = fresh(tmp_path, max_bytes=8 * entry)
    for number in range(7):
        store.put(make_key(number=str(number)), bytes(entry - 500))
        time.sleep(0.02)  # file times are as coarse as 10 ms
    assert fresh(tmp_path).get(make_key(number="0"))
    for number in range(7, 10):
        time.sleep(0.02)  # file times are as coarse as 10 ms
        store.put(make_key(number=str(number)), bytes(entry - 500))
    kept = [number for number in range(10) if fresh(tmp_path).get(make_key(number=str(number)))]
    assert kept == [0, 3, 4, 5, 6, 7, 8, 9]


def test_an_entry_above_the_cap_is_built_each_time(tmp_path):
    small = make_key(size="small")
    fresh(tmp_path, max_bytes=1000).put(small, b"code")
    with cache_warnings() as warned:
        assert fresh(tmp_path, max_bytes=1000).fetch(make_key(), lambda: bytes(2000)).data == bytes(2000)
        assert fresh(tmp_path, max_bytes=1000).fetch(make_key(), lambda: bytes(2000)).origin == "built"
        assert fresh(tmp_path, max_bytes=1000).get(small) == b"code"  # nothing was evicted for it
    assert not warned


# Verify mode


@pytest.mark.parametrize("origin", ["disk", "memory"])
def test_verify_builds_again_what_is_found(tmp_path, origin):
    store = fresh(tmp_path, verify=True)
    store.fetch(make_key(), lambda: b"code")
    if origin == "disk":
        store = fresh(tmp_path, verify=True)
    built = []
    assert store.fetch(make_key(), lambda: built.append(1) or b"code").origin == origin
    assert built == [1]


@pytest.mark.parametrize("name", ["f.cu", "../../some where/f<int>.cu", "x" * 1000])
def test_verify_saves_both_artefacts_and_fails(tmp_path, name):
    key = make_key(name)
    fresh(tmp_path).put(key, b"code")
    with pytest.raises(CacheMismatchError) as caught:
        fresh(tmp_path, verify=True).fetch(key, lambda: b"other code")
    error = caught.value
    assert f"program {name!r} from disk differs from what is built now" in str(error)
    assert error.cached in str(error) and error.rebuilt in str(error)
    assert os.path.dirname(error.cached) == str(tmp_path / "mismatches")
    with open(error.cached, "rb") as cached, open(error.rebuilt, "rb") as rebuilt:
        assert (cached.read(), rebuilt.read()) == (b"code", b"other code")


# The log


@pytest.fixture
def printed_log():
    print_log(True)
    yield
    print_log(False)


def of_file(name="f.cu", **parts):
    """Return the key of a program of a file."""
    facts = ("", "path", f"/here/{name}"), *(("", label, value) for label, value in parts.items())
    return dataclasses.replace(make_key(name, **parts), facts=lambda: facts)


@pytest.mark.usefixtures("printed_log")
def test_the_log_says_what_hit_and_by_what_it_missed(tmp_path, capsys):
    for _ in range(2):
        store = fresh(tmp_path)
        store.fetch(of_file(use="1", lto="yes"), lambda: b"1")
        store.fetch(of_file(use="1", lto="yes"), not_built)
    store.fetch(make_key("g.cu", use="1"), lambda: b"2")
    store.fetch(of_file(use="2", lto="no"), lambda: b"3")
    store.fetch(of_file(use="3", lto="yes"), lambda: b"4")
    store.get(make_key("f.cu", kind="headers"))
    output = capsys.readouterr()
    assert output.out == ""
    lines = output.err.splitlines()
    start = "numba-cuda-autolink cache: program 'f.cu' "
    for line, begins, ends in zip(
        lines,
        [*["built in ", "from memory in ", "from disk in ", "from memory in "], "", *["built in "] * 2, ""],
        [
            *[" ms"] * 5,
            "ms; use: 1 -> 2, lto: yes -> no",
            "ms; use: 1 -> 3",  # the last run's, not one of this run
            "headers 'f.cu' not cached",
        ],
        strict=True,
    ):
        assert line.startswith(start + begins if begins else "numba-cuda-autolink cache: ")
        assert line.endswith(ends)


@pytest.mark.usefixtures("printed_log")
def test_a_logged_miss_reads_no_entries_of_a_large_cache(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.cache.store._MOST_READ", 2)
    for number in range(3):
        fresh(tmp_path).disk.write(make_key(number=str(number)), b"1")
        if number == 1:
            fresh(tmp_path).get(of_file("g.cu"))
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.cache.disk.describe", None)
    fresh(tmp_path).get(of_file("g.cu"))
    few, many = capsys.readouterr().err.splitlines()
    assert few.endswith(" not cached")
    assert many.endswith("; cache why shows earlier builds")


def test_without_the_log_nothing_is_printed_and_no_miss_is_explained(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(CacheStore, "_why_missed", None)
    fresh(tmp_path).fetch(make_key(), lambda: b"code")
    assert capsys.readouterr() == ("", "")


def test_the_environment_turns_the_printed_log_on_and_off(own_cache, capsys):
    for value, is_printed in ("cache", True), ("", False):
        own_cache(NUMBA_CUDA_AUTOLINK_LOG=value)
        current_store().get(make_key())
        assert ("program 'f.cu' not cached" in capsys.readouterr().err) == is_printed


@pytest.mark.usefixtures("printed_log")
def test_a_printed_line_is_not_printed_again_by_handlers_that_did_not_ask_for_it(tmp_path, capsys):
    handler = logging.StreamHandler(sys.stderr)
    logging.getLogger().addHandler(handler)
    try:
        fresh(tmp_path).fetch(make_key(), lambda: b"code")
    finally:
        logging.getLogger().removeHandler(handler)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_user_s_own_logging_gets_hits_and_misses_without_the_variable(own_cache, caplog, capsys):
    with caplog.at_level("INFO", logger="numba_cuda_autolink"):
        current_store().fetch(make_key(), lambda: b"code")
    assert not caplog.messages
    with caplog.at_level("DEBUG", logger="numba_cuda_autolink"):
        current_store().fetch(make_key(), not_built)
        current_store().fetch(make_key(arch="sm_90"), lambda: b"code")
    hit, miss = caplog.records
    assert (hit.name, hit.levelname) == (miss.name, miss.levelname) == ("numba_cuda_autolink.cache", "DEBUG")
    assert hit.getMessage().startswith("program 'f.cu' from memory in ")
    assert miss.getMessage().endswith(" ms") and ";" not in miss.getMessage()
    assert capsys.readouterr() == ("", "")


# What users can ask


def test_info(own_cache, tmp_path):
    empty = cache.info()
    assert (empty.entries, empty.bytes, empty.by_kind) == (0, 0, ())
    assert not (tmp_path / "cache").exists()
    for number in range(3):
        current_store().put(make_key(number=str(number)), bytes(1000))
    current_store().put(make_key("kernel", kind="link"), bytes(5000))
    info = cache.info()
    assert (info.directory, info.enabled, info.verify) == (str(tmp_path / "cache"), True, False)
    assert [(kind.kind, kind.entries) for kind in info.by_kind] == [("link", 1), ("program", 3)]
    assert info.entries == 4
    assert 8000 < info.bytes == sum(kind.bytes for kind in info.by_kind) < 10_000
    assert str(info).splitlines() == [
        f"cache in {tmp_path / 'cache'} (on)",
        f"  4 entries, {info.bytes / 1024:.1f} KiB of 1.0 GiB",
        f"  link: 1 entry, {info.by_kind[0].bytes / 1024:.1f} KiB (finished kernels)",
        f"  program: 3 entries, {info.by_kind[1].bytes / 1024:.1f} KiB (compiled C++)",
    ]


@pytest.mark.parametrize(
    ("mode", "text"), [("0", "(off: what is in it is not used)"), ("verify", "(on, verifying each hit)")]
)
def test_info_tells_the_mode(own_cache, mode, text):
    own_cache(NUMBA_CUDA_AUTOLINK_CACHE=mode)
    assert text in str(cache.info())


def test_clear(own_cache):
    for number in range(3):
        current_store().put(make_key(number=str(number)), b"code")
    assert cache.clear() == 3
    assert cache.info().entries == 0
    assert current_store().get(make_key(number="0")) is None
    current_store().put(make_key(), b"code")
    assert cache.info().entries == 1


def test_clear_removes_locks_that_killed_processes_left(own_cache, tmp_path):
    current_store().fetch(make_key(), lambda: b"code")
    left = tmp_path / "cache" / "locks" / "left.lock"
    left.write_bytes(b"")
    held = FileLock.try_lock(str(tmp_path / "cache" / "locks" / "held.lock"))
    cache.clear()
    assert os.listdir(tmp_path / "cache" / "locks") == ["held.lock"]
    held.release()


def test_prune(own_cache):
    for number in range(4):
        current_store().put(make_key(number=str(number)), bytes(1000))
        time.sleep(0.02)  # file times are as coarse as 10 ms
    assert cache.prune() == 0
    assert cache.prune(3000) == 2
    own_cache()
    assert [bool(current_store().get(make_key(number=str(number)))) for number in range(4)] == [
        False,
        False,
        True,
        True,
    ]
    assert cache.prune(0) == 2
    assert cache.info().entries == 0
    with pytest.raises(ValueError, match=r"prune\(max_bytes=-1\): a size in bytes cannot be negative"):
        cache.prune(-1)


def test_looking_is_not_using(own_cache):
    for number in range(2):
        current_store().put(make_key(number=str(number)), bytes(1000))
        time.sleep(0.02)  # file times are as coarse as 10 ms
    own_cache()
    current_store().get(make_key(number="0"))
    cache.info()
    cache.why("f.cu")
    cache.prune(1500)
    own_cache()
    assert current_store().get(make_key(number="1")) is None


def told(history):
    """Return the lines of a history, without the times."""
    return [" ".join(line.split()[2:]) for line in str(history).splitlines()]


def test_why_lists_the_builds_of_a_name_latest_first_and_what_changed(own_cache):
    options = {"option_lineinfo": "False"}
    for number, (architecture, changed) in enumerate(
        [("sm_80", {}), ("sm_90", {}), ("sm_80", {"NVRTC": "13.6 build b, 2 bytes"}), ("sm_90", {"lineinfo": "True"})]
    ):
        parts = {"architecture": architecture, "NVRTC": "13.5 build a, 1 bytes", "lineinfo": "False", **changed}
        current_store().put(CacheKey("program", "fft.cu", (*parts.items(), *options.items())), bytes([number]))
        time.sleep(0.01)
    current_store().put(make_key("other.cu"), b"3")
    current_store().put(make_key("fft.cu", kind="headers"), b"4")
    history = cache.why("fft", kind="program")
    assert [dict(entry.parts)["architecture"] for entry in history.entries] == ["sm_90", "sm_80"] * 2
    assert told(history) == [
        "sm_90 fft.cu: lineinfo: False -> True",
        "sm_80 fft.cu: NVRTC 13.5 -> 13.6",
        "sm_90 fft.cu: first build for sm_90",
        "sm_80 fft.cu: first build",
    ]
    assert len(cache.why("fft").entries) == 5
    assert told(cache.why("fft")) == told(history)  # kinds that only help to find others are left out
    assert str(cache.why("nothing")) == "nothing is cached under the name 'nothing'"


def test_why_names_the_lines_of_a_library_that_changed(own_cache, tmp_path):
    path = tmp_path / "waves.cu"
    (tmp_path / "other.h").write_text("")
    source = (
        '#include "other.h"\n__device__ float series(float x) { return x * 2; }\n'
        "namespace inner { __device__ float step(float x) { return x + 2; } }\n"
        "// the end\n"
    )

    def kernel(x):
        x[0] = library.series(x[0])

    for text in (
        source,
        source.replace("x * 2", "x * 3"),
        source.replace("2", "4"),
        source.replace("2", "4").replace("// the end\n", ""),
    ):
        path.write_text(text)
        library = autolink.cxx(path)
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        autolink.build(kernel, "void(float32[::1])", cc=(10, 0))
    for name in ("waves.cu", "series"):
        history = cache.why(name)
        assert {entry.name for entry in history.entries if entry.kind == "program"} == {"waves.cu: series(float32)"}
        assert told(history)[::-1] == [
            "sm_90 waves.cu: first build of series(float32)",
            "sm_100 waves.cu: first build for sm_100 of series(float32)",
            *[f"{each} waves.cu changed: line 2" for each in ("sm_90", "sm_100")],
            *[f"{each} waves.cu changed: lines 2-3" for each in ("sm_90", "sm_100")],
            *[f"{each} waves.cu changed: 1 line removed after line 3" for each in ("sm_90", "sm_100")],
        ]
    assert told(cache.why("kernel", kind="link"))[:2] == [
        "sm_100 test_cache_store.py:kernel: waves.cu changed: 1 line removed after line 3",
        "sm_90 test_cache_store.py:kernel: waves.cu changed: 1 line removed after line 3",
    ]


def test_why_tells_calls_of_a_library_apart(own_cache):
    library = autolink.cxx("""
        template <class T> __device__ T twice(T x) { return x + x; }
        __device__ float once(float x) { return x; }
    """)

    def kernel(x):
        x[0] = library.twice(x[0])

    def other(x):
        x[0] = library.once(x[0])

    for function, type_ in (kernel, "float32"), (kernel, "float64"), (other, "float32"):
        autolink.build(function, f"void({type_}[::1])", cc=(9, 0))
    assert told(cache.why("", kind="program")) == [
        "sm_90 once(float32): first build",
        "sm_90 twice(float64): first build",
        "sm_90 twice(float32): first build",
    ]
    to_other_types = "sm_90 test_cache_store.py:kernel(float64[::1]): first build for these types"
    assert told(cache.why(".py:kernel"))[0] == to_other_types
    for type_ in "float32", "float64":  # with a name that does not tell the types
        autolink.build(kernel, f"void({type_}[::1])", cc=(9, 0), entry_name="named")
    assert told(cache.why(".py:kernel"))[0] == to_other_types.replace(": ", " as entry 'named': ").removesuffix(
        " for these types"
    )


def test_why_says_how_options_of_a_kernel_changed(own_cache):
    def kernel(x):
        x[0] = library.once(x[0])

    library = autolink.cxx("__device__ float once(float x) { return x; }")
    for lineinfo in (False, True):
        autolink.build(cuda.jit(kernel, lineinfo=lineinfo), "void(float32[::1])", cc=(9, 0))
    assert told(cache.why("once", kind="program"))[0] == "sm_90 once(float32): first build with line information"
    assert told(cache.why("kernel"))[0] == "sm_90 test_cache_store.py:kernel: lineinfo=True added"


def test_details_have_the_same_lines_and_all_that_a_first_build_depends_on(own_cache):
    for architecture in ("sm_80", "sm_90"):
        current_store().put(make_key("fft.cu", architecture=architecture, lto="yes"), b"1")
        time.sleep(0.01)
    history = cache.why("fft")
    lines = history.details.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == str(history).splitlines()
    assert lines[1].startswith("    program of fft.cu, ")
    assert lines[2:4] == ["    key schema: 2", "    lto: yes"]


def test_details_show_the_lines_of_a_short_text_that_changed(own_cache):
    texts = ["int a;\nint b;\nint c;\n", "int a;\nint \x1b[1mB;\nint c;\n", "int a;\n" * 400, "int b;\n" * 400]
    for number, text in enumerate(texts):
        current_store().put(make_key("fft.cu", source=text, data=text.encode()), bytes([number]))
        time.sleep(0.01)
    lines = cache.why("fft").details.splitlines()
    changed = lines.index("    --- source before")
    assert lines[changed - 1].startswith("    compared with the build of ")
    assert lines[changed + 1 : changed + 7] == [
        "    +++ source after",
        "    @@ -1,3 +1,3 @@",
        "     int a;",
        "    -int b;",
        "    +int \\x1b[1mB;",
        "     int c;",
    ]
