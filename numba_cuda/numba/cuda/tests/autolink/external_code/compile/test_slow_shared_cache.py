# SPDX-License-Identifier: BSD-2-Clause
"""A shared cache that answers slowly is used if it is faster than NVRTC: a program is compiled meanwhile."""

import threading
import time
from concurrent.futures import Future

import pytest
from cache_support import machines
from numba.cuda import autolink
from numba.cuda.autolink import Target
from numba.cuda.cudadrv.external_code.cache.store import reset_store
from numba.cuda.cudadrv.external_code.compile import jobs, programs
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit, compile_unit
from numba.cuda.cudadrv.external_code.inputs.link_input import from_item

TARGET = Target((9, 0), lto=True)
SOURCE = from_item(autolink.CUDASource('extern "C" __device__ int f() { return 1; }', name="f.cu"))
UNIT = TranslationUnit.of(SOURCE, TARGET)


class Files(dict):
    """The files of a store in memory, which answers when it is released."""

    def __init__(self):
        self.released = threading.Event()
        self.released.set()

    def read(self, name):
        assert self.released.wait(60)
        return self.get(name)

    write = dict.__setitem__


@pytest.fixture
def files(monkeypatch):
    """A store in which another machine has left the program, and which does not answer within the budget."""
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.compile.cached_unit.MANY_HEADERS", -1)
    return Files()


@pytest.fixture
def machine(tmp_path, files):
    """Makes the store of a new machine, in front of the shared *files*, that of this process."""
    new = machines(tmp_path, files)

    def made():
        store = new()
        reset_store(store)
        return store

    yield made
    files.released.set()
    reset_store()


def slow(machine, files):
    """The store of another machine, after *machine* has built the program, which is known to answer in 0.2 s."""
    first = machine()
    assert programs.compiled(SOURCE, TARGET).origin == "built"
    assert first.remote.flush(30) == 0
    files.released.clear()
    second = machine()
    second.remote.patience.note_answer(0.2)
    return second


def test_a_late_entry_is_used_and_the_compile_is_stopped(machine, files, monkeypatch):
    second, ended = slow(machine, files), []

    def compile_in_child(unit, kept):
        files.released.set()
        deadline = time.monotonic() + 60
        while not kept[0].has_ended and time.monotonic() < deadline:
            time.sleep(0.001)
        ended.append(kept[0].has_ended)
        raise CompileError("f.cu", "stopped")

    monkeypatch.setattr(jobs, "compile_in_child", compile_in_child)
    program = programs.compiled(SOURCE, TARGET)
    assert (program.origin, program.code) == ("remote", compile_unit(UNIT).code)
    assert ended == [True]
    assert second.remote.counts.found == 1 and second.statistics.counts["program", "built"] == 0


def test_what_is_compiled_first_is_used(machine, files):
    second = slow(machine, files)
    program = programs.compiled(SOURCE, TARGET)
    assert (program.origin, program.code) == ("built", compile_unit(UNIT).code)
    assert second.remote.counts.late == 1


def test_a_store_that_has_never_answered_is_not_raced(machine, files, monkeypatch):
    """A process for NVRTC takes longer to start than this one, which would be wasted."""
    second = slow(machine, files)
    second.remote.patience.has_answered = False
    monkeypatch.setattr(jobs, "built_unless", None)
    assert programs.compiled(SOURCE, TARGET).origin == "built"


def test_errors_are_those_of_a_compile(machine, files):
    slow(machine, files)
    bad = from_item(autolink.CUDASource("this is not C++", name="bad.cu"))
    with pytest.raises(CompileError, match=r"bad\.cu"):
        programs.compiled(bad, TARGET)


def test_an_answer_that_there_is_no_entry_stops_nothing():
    coming = Future()

    def build(compile_):
        coming.set_result(None)
        return compile_(UNIT).code

    assert jobs.built_unless(coming, build) == compile_unit(UNIT).code
