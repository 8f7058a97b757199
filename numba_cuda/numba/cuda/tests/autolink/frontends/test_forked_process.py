# SPDX-License-Identifier: BSD-2-Clause
"""A forked process builds kernels, or says why it cannot; it never waits for what is not there."""

from __future__ import annotations

import multiprocessing
import os
import threading

import pytest
from autolink_support import CC, Linked, adder, build, calling, compiled
from cache_support import wait_for
from numba import cuda
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.link import nvjitlink

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]


def build_with(code):
    function = Linked("f", code).function

    return build(calling(function))


def machine_code(number):
    return cuda.Cubin(compiled(adder("f", number), "cubin"))


def build_in_worker(number):
    build_with(machine_code(number))
    return nvjitlink.helpers.kept.pid


def test_it_has_a_helper_of_its_own_and_leaves_that_of_its_parent_alone():
    build_with(machine_code(int.from_bytes(os.urandom(3), "little")))
    helper = nvjitlink.helpers.kept

    def build_in_child():
        assert nvjitlink.helpers.kept is None
        assert build_in_worker(int.from_bytes(os.urandom(3), "little")) != helper.pid
        nvjitlink.helpers.close()

    wait_for(build_in_child)
    assert not helper.has_ended
    build_with(machine_code(int.from_bytes(os.urandom(3), "little")))
    assert nvjitlink.helpers.kept is helper


def test_processes_of_multiprocessing_that_are_forked_build():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        numbers = [int.from_bytes(os.urandom(3), "little") for _ in range(2)]
        assert nvjitlink.helpers.kept is None or nvjitlink.helpers.kept.pid not in pool.map(build_in_worker, numbers)


def test_one_that_is_forked_while_another_thread_compiles_raises_when_it_compiles():
    asked, go_on = threading.Event(), threading.Event()

    def answer():
        asked.set()
        go_on.wait(60)
        return autolink.CUDASource(adder("f", 1))

    slow = Linked("f", answer).function

    kernel = calling(slow)
    thread = threading.Thread(target=build, args=(kernel,))
    thread.start()
    assert asked.wait(60)

    def compile_in_child():
        for _ in range(2):
            with pytest.raises(RuntimeError, match="another thread of its parent compiled when it was forked"):
                autolink.build(lambda x: None, "void(int32[::1])", cc=CC)
            with pytest.raises(RuntimeError, match="another thread of its parent compiled when it was forked"):
                cuda.compile(lambda x: x, "int32(int32)", cc=CC)
        wait_for(lambda: None)  # a fork of a fork

    try:
        wait_for(compile_in_child)
    finally:
        go_on.set()
        thread.join()
    autolink.build(lambda x: None, "void(int32[::1])", cc=CC)
