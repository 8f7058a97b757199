# SPDX-License-Identifier: BSD-2-Clause
"""Garbage collection is paused while a front end compiles, but not while objects are asked."""

from __future__ import annotations

import contextlib
import gc
import os
import threading

import pytest
from numba.cuda import autolink
from numba.cuda.autolink import garbage_collection
from numba.cuda.autolink.compilation import asking, compiling
from numba.cuda.autolink.garbage_collection import paused
from numba.cuda.extending import overload

TARGET = autolink.Target((9, 0))


@pytest.fixture(autouse=True)
def collecting():
    assert gc.isenabled()
    yield
    was_on = gc.isenabled()
    gc.enable()
    assert was_on


def test_it_is_off_while_numba_types_a_kernel_and_on_in_hooks():
    seen = []

    def typed(x):
        raise NotImplementedError

    @overload(typed)
    def typed_overload(x):
        seen.append(("typing", gc.isenabled()))
        return lambda x: x

    class Twice(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("twice", returns=x)

        def __numba_cuda_link__(self, x):
            seen.append(("__numba_cuda_link__", gc.isenabled()))
            return autolink.CUDASource('extern "C" __device__ int twice(int x) { return 2 * x; }')

    twice = Twice()

    def kernel(x):
        x[0] = twice(typed(x[0]))

    autolink.build(kernel, "void(int32[::1])", cc=(9, 0))
    assert set(seen) == {("typing", False), ("__numba_cuda_link__", True)}


def test_it_is_on_after_a_compilation_that_fails():
    def kernel(x):
        x[0] = "text"

    with pytest.raises(Exception, match="setitem"):
        autolink.build(kernel, "void(int32[::1])", cc=(9, 0))
    assert gc.isenabled()


def test_what_a_hook_compiles_pauses_it_again():
    with compiling(TARGET):
        with compiling(TARGET), asking(TARGET):
            assert gc.isenabled()
            with compiling(TARGET):
                assert not gc.isenabled()
            assert gc.isenabled()
        assert not gc.isenabled()


def test_it_stays_off_where_a_program_turned_it_off():
    gc.disable()
    try:
        with paused(), paused(False):
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


@contextlib.contextmanager
def paused_by_another_thread():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with paused():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        assert inside.wait(60)
        yield
    finally:
        leave.set()
        thread.join(60)


def test_it_goes_on_when_the_last_of_several_threads_does():
    with contextlib.ExitStack() as other:
        with paused():
            other.enter_context(paused_by_another_thread())
        assert not gc.isenabled()
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_it_is_on_in_a_process_that_another_thread_forks():
    with paused_by_another_thread():
        assert not gc.isenabled()
        if (child := os.fork()) == 0:
            with paused():
                off = not gc.isenabled()
            os._exit(0 if off and gc.isenabled() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_frozen_objects_stay_frozen(monkeypatch):
    monkeypatch.setattr(garbage_collection._Process, "is_first_pause", True)
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with paused():
            pass
        assert gc.get_freeze_count() >= frozen - 100 > 0
    finally:
        gc.unfreeze()


def test_the_objects_of_the_first_pause_are_old(monkeypatch):
    monkeypatch.setattr(garbage_collection._Process, "is_first_pause", True)
    gc.collect()
    with paused():
        made = [[] for _ in range(100_000)]
    young = sum(len(gc.get_objects(generation)) for generation in (0, 1))
    assert young < len(made)
    assert gc.get_freeze_count() == 0
