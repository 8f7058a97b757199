# SPDX-License-Identifier: BSD-2-Clause
"""Exceptions of signal handlers pass through builds as they are, and some blocks hold the handlers back."""

from __future__ import annotations

import functools
import signal
import threading

import pytest
from numba.cuda.cudadrv.external_code.diagnostics.signal_handlers import (
    handlers_held_back,
    interrupts_unchanged,
    raised_by_signal_handler,
)
from numba.cuda.cudadrv.external_code.formats import elf
from numba.cuda.cudadrv.external_code.formats.validation import structural_fault
from numba.cuda.cudadrv.external_code.link import nvjitlink_child
from numba.cuda.cudadrv.external_code.platform import cuda_libraries
from numba.cuda.cudadrv.external_code.platform.child_process import ChildProcess

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="the system has no SIGUSR1")


class TimeIsUp(Exception):
    pass


def raise_time_is_up(number, frame):
    raise TimeIsUp


class Handler:
    def __call__(self, number, frame):
        raise_time_is_up(number, frame)

    def method(self, number, frame):
        raise_time_is_up(number, frame)


@pytest.fixture
def interrupt():
    """Interrupts what runs: *raise_time_is_up* is the handler."""
    before = signal.signal(signal.SIGUSR1, raise_time_is_up)
    yield lambda *_, **__: signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("kind", ["function", "partial", "object", "method"])
def test_what_a_handler_raises_is_known_by_its_traceback(interrupt, kind):
    handlers = {"partial": functools.partial(raise_time_is_up), "object": Handler(), "method": Handler().method}
    signal.signal(signal.SIGUSR1, handlers.get(kind, raise_time_is_up))
    with pytest.raises(TimeIsUp) as raised:
        interrupt()
    assert raised_by_signal_handler(raised.value)


def test_what_the_program_raises_itself_is_another_thing(interrupt):
    with pytest.raises(TimeIsUp) as raised:
        raise TimeIsUp
    assert not raised_by_signal_handler(raised.value)


def test_an_error_that_an_interrupt_caused_is_the_interrupt(interrupt):
    @interrupts_unchanged()
    def build():
        try:
            interrupt()
        except TimeIsUp as error:
            raise ValueError("does not compile") from error

    with pytest.raises(TimeIsUp) as raised:
        build()
    assert raised.value.__cause__ is None


def test_another_error_stays(interrupt):
    with pytest.raises(ValueError, match="does not compile") as raised, interrupts_unchanged():
        raise ValueError("does not compile") from TypeError()
    assert isinstance(raised.value.__cause__, TypeError)


class TestHeldBack:
    def test_the_handler_is_called_after_the_block(self, interrupt):
        done = []
        with pytest.raises(TimeIsUp), handlers_held_back():
            interrupt()
            interrupt()
            done.append("whole")
        assert done == ["whole"]
        assert signal.getsignal(signal.SIGUSR1) is raise_time_is_up

    def test_blocks_nest(self, interrupt):
        done = []
        with pytest.raises(TimeIsUp), handlers_held_back():
            with handlers_held_back():
                interrupt()
            done.append("whole")
        assert done == ["whole"]

    def test_all_handlers_are_back_though_one_raises(self, interrupt):
        before = signal.signal(signal.SIGUSR2, lambda *_: None)
        try:
            mine = signal.getsignal(signal.SIGUSR2)
            with pytest.raises(TimeIsUp), handlers_held_back():
                interrupt()
            assert signal.getsignal(signal.SIGUSR2) is mine
        finally:
            signal.signal(signal.SIGUSR2, before)

    def test_a_block_that_fails_gives_them_back(self, interrupt):
        with pytest.raises(ValueError), handlers_held_back():
            raise ValueError
        assert signal.getsignal(signal.SIGUSR1) is raise_time_is_up

    def test_other_threads_hold_nothing(self, interrupt):
        found = []

        def look():
            with handlers_held_back():
                found.append(signal.getsignal(signal.SIGUSR1))

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert found == [raise_time_is_up]


class TestNothingIsTakenForAFault:
    def test_of_code_that_is_read(self, interrupt, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(elf, "read_elf", interrupt)
            with pytest.raises(TimeIsUp):
                structural_fault("cubin", b"interrupted")
        assert "ELF" in structural_fault("cubin", b"interrupted")

    @pytest.mark.parametrize("function", ["nvrtc_build", "nvvm_build"])
    def test_of_a_library_that_is_identified(self, interrupt, monkeypatch, function):
        build = getattr(cuda_libraries, function)
        before = build()
        build.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(cuda_libraries.pathfinder, "load_nvidia_dynamic_lib", interrupt)
            patch.setattr(cuda_libraries.pathfinder, "locate_bitcode_lib", interrupt)
            with pytest.raises(TimeIsUp):
                build()
        assert build() == before

    def test_of_a_library_that_is_looked_for(self, interrupt, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(cuda_libraries.importlib, "import_module", interrupt)
            with pytest.raises(TimeIsUp):
                cuda_libraries.why_missing("nvJitLink")
        assert cuda_libraries.why_missing("nvJitLink") is None

    def test_of_an_input_of_a_link(self, interrupt, monkeypatch):
        monkeypatch.setattr("cuda.bindings.nvjitlink.complete", interrupt)
        with pytest.raises(TimeIsUp):
            nvjitlink_child.link([], ("-arch=sm_90",), "cubin")

    def test_of_a_child_process(self, tmp_path):
        """A time limit's exception may be an `OSError`, as that of a pipe whose child died is."""

        def time_out(number, frame):
            raise TimeoutError

        before = signal.signal(signal.SIGALRM, time_out)
        try:
            (tmp_path / "child.py").write_text("import time\ndef answer(*_): time.sleep(60)")
            with ChildProcess(str(tmp_path / "child.py")) as child, pytest.raises(TimeoutError):
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                child.request({})
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
