# SPDX-License-Identifier: BSD-2-Clause
"""Shared by the cache tests: keys, stores as fresh processes would have them, and child processes."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import threading
import traceback
import warnings

from numba.cuda.cudadrv.external_code.cache.entry import CacheKey
from numba.cuda.cudadrv.external_code.cache.remote_store import RemoteStore
from numba.cuda.cudadrv.external_code.cache.settings import CacheSettings, CacheWarning, RemoteSettings
from numba.cuda.cudadrv.external_code.cache.store import CacheStore

OURS = RemoteSettings("memory://cache", (b"the key of this site, 32 bytes..",), writes=True, wait=60.0)


def make_key(name="f.cu", kind="program", **parts):
    return CacheKey(kind, name, tuple(parts.items()) or (("source", name),))


def fresh(directory, **settings):
    """A store on *directory* as a new process would have it: nothing in memory."""
    return CacheStore(CacheSettings(str(directory), **settings))


class SharedFiles(dict):
    """The files of a shared cache in memory, and the names of those *asked* for. *fault* is called before each read,
    *fault_of_writes* before each write."""

    fault = fault_of_writes = staticmethod(lambda: None)

    def __init__(self):
        self.asked = []

    def read(self, name):
        self.asked.append(name)
        self.fault()
        return self.get(name)

    def write(self, name, content):
        self.fault_of_writes()
        self[name] = content


def machines(folder, files):
    """A function that makes the store of a new machine, with an empty directory of its own in *folder*, in front of the
    shared *files*."""
    numbers = itertools.count()

    def made(settings=OURS, **others):
        store = fresh(folder / f"machine{next(numbers)}", **others)
        store.remote = RemoteStore(settings, lambda: files)
        return store

    return made


def not_built():
    raise AssertionError("built although it is cached")


def file_of(directory, key):
    """The file of *key*'s entry."""
    store = fresh(directory)
    store.get(key)
    return store.disk.path(key.digest)


@contextlib.contextmanager
def cache_warnings():
    """The texts of all `CacheWarning`s within."""
    texts = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    texts += [str(warning.message) for warning in caught if issubclass(warning.category, CacheWarning)]


def fork(function):
    """Run *function* in a forked child; returns its process id. Its exit status is 1 if the function raises."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def wait(child):
    """The exit status of a forked child; negative for the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def as_ordinary_user(directory, function):
    """Run *function* as someone whom file modes restrict, to whom *directory* belongs: root runs it in a child."""
    if os.geteuid() != 0:
        function()
        return
    nobody = 65534
    for folder, _, files in os.walk(directory):
        for path in (folder, *(os.path.join(folder, file) for file in files)):
            os.chown(path, nobody, nobody)
    for parent in directory.parents:  # pytest's own directories are root's alone
        if parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)

    def unprivileged():
        os.setgroups([])
        os.setgid(nobody)
        os.setuid(nobody)
        function()

    assert wait(fork(unprivileged)) == 0, "see the traceback of the child in the captured output"


def wait_for(function, seconds=60):
    """Run *function* in a forked child, which is killed if it hangs; raise if it raises or hangs."""
    child = fork(function)
    timer = threading.Timer(seconds, os.kill, (child, signal.SIGKILL))
    timer.start()
    status = wait(child)
    timer.cancel()
    assert status == 0, "see the traceback of the child in the captured output"
