# SPDX-License-Identifier: BSD-2-Clause
"""A slow build shows what it is doing in a terminal, and nothing elsewhere."""

import importlib
import os
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from kernel_cache_support import run_warm
from numba import cuda
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.diagnostics import progress

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")

SLOW_BUILD = """
    import time
    from numba import cuda
    from numba.cuda import autolink

    called = cuda.declare_device("slow", "int32(int32)")

    def hook(x):
        time.sleep(1.5)
        return autolink.CUDASource('extern "C" __device__ int slow(int *out, int x) { *out = x; return 0; }')

    called.__numba_cuda_link__ = hook

    def kernel(x):
        x[0] = called(x[1])

    autolink.build(kernel, "void(int32[::1])", cc=(9, 0))
    print("done")
"""


class Reader:
    """A terminal's other end: ``text`` is what was written to it."""

    def __init__(self):
        self._end, self.terminal = pty.openpty()
        self._written = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        while True:
            try:
                data = os.read(self._end, 4096)
            except OSError:  # Linux's way of saying that the terminal is closed
                return
            if not data:
                return
            self._written.append(data)

    @property
    def text(self):
        os.close(self.terminal)
        self._thread.join(10)
        os.close(self._end)
        return b"".join(self._written).decode()


@pytest.fixture
def quick(monkeypatch):
    """A second is a tenth of one, and what draws is there."""
    for module in ("console", "live", "spinner", "text"):
        importlib.import_module(f"rich.{module}")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "DELAY", 0.1)


def shown(work):
    """What *work* writes to stderr, which is a terminal."""
    reader, outer = Reader(), sys.stderr
    with os.fdopen(os.dup(reader.terminal), "w") as stream:
        sys.stderr = stream
        try:
            work()
        finally:
            sys.stderr = outer
    return reader.text


def run(environment, **streams):
    environment = {**os.environ, "TERM": "xterm", "NUMBA_CUDA_AUTOLINK_CACHE": "0", **environment}
    environment = {name: value for name, value in environment.items() if value is not None}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SLOW_BUILD)],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
        **streams,
    )


def test_a_slow_build_shows_in_a_terminal_what_it_is_doing():
    reader = Reader()
    done = run({"CI": None, progress.VARIABLE: None}, stderr=reader.terminal)
    text = reader.text
    assert "asking ExternFunction for its code" in text
    assert done.stdout == b"done\n"


def test_nothing_is_shown_in_a_file(servers, monkeypatch):
    for name in "CI", progress.VARIABLE:
        monkeypatch.delenv(name, raising=False)
    done = run_warm(servers, "-c", textwrap.dedent(SLOW_BUILD), TERM="xterm", NUMBA_CUDA_AUTOLINK_CACHE="0")
    assert (done.stdout, done.stderr) == ("done\n", "")


def slow_steps():
    with progress.step("building"), progress.step("compiling one.cu", remaining=2):
        time.sleep(0.5)


def test_the_innermost_step_is_shown_and_how_many_remain(quick):
    text = shown(slow_steps)
    first, _, _ = text.partition("…")
    assert "compiling one.cu (2 more to come)" in first
    assert "building" not in first


def test_a_build_of_less_than_a_second_is_not_shown(quick):
    def work():
        with progress.step("quick"):
            pass
        time.sleep(0.2)

    assert shown(work) == ""


@pytest.mark.parametrize("variable", ["CI", progress.VARIABLE])
def test_switched_off(quick, monkeypatch, variable):
    monkeypatch.setenv(variable, {"CI": "true", progress.VARIABLE: "0"}[variable])
    assert shown(slow_steps) == ""


def until_drawn():
    """Wait until the line is there, however busy the machine is, and drawn a few times."""
    end = time.monotonic() + 20
    while progress._display._live is None and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.5)


def test_steps_of_several_threads_share_the_line(quick):
    drawn = threading.Event()

    def step(name):
        with progress.step(f"compiling {name}"):
            drawn.wait(30)

    def work():
        threads = [threading.Thread(target=step, args=(name,)) for name in ("one.cu", "two.cu")]
        for thread in threads:
            thread.start()
        until_drawn()
        drawn.set()
        for thread in threads:
            thread.join()

    text = shown(work)
    # In the order in which they started.
    assert "compiling one.cu; compiling two.cu" in text or "compiling two.cu; compiling one.cu" in text


def test_an_error_ends_the_line(quick):
    def work():
        with pytest.raises(ValueError, match="stop"), progress.step("failing"):
            until_drawn()
            raise ValueError("stop")

    assert "failing" in shown(work)
    assert progress._display._live is None
    assert not progress._display._steps


drawn = []  # below the cell of a notebook, in order


@pytest.fixture
def notebook(monkeypatch):
    display = pytest.importorskip("IPython.display")
    drawn.clear()

    class Handle:
        def update(self, data, raw):
            drawn.append(data["text/html"])

    def shown(data, **options):
        drawn.append(data["text/html"])
        return Handle()

    monkeypatch.setattr(display, "display", shown)
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    monkeypatch.setattr(progress, "_NOTEBOOK_INTERVAL", 0.01)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv(progress.VARIABLE, raising=False)


def until(condition):
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)


def test_a_notebook_shows_the_line_below_its_cell_and_leaves_no_empty_output(quick, notebook):
    with progress.step("compiling <one> for sm_90"):
        until(lambda: len(drawn) > 3)
    assert len(drawn) > 3
    assert all(text.startswith("<pre>compiling &lt;one&gt; for sm_90 … ") for text in drawn[:-1])


def test_what_stays_in_a_notebook_says_that_it_was_done_or_failed(quick, notebook):
    with progress.step("compiling one for sm_90"), progress.step("linking one"):
        until(lambda: len(drawn) > 3)
    assert drawn[-1].startswith("<pre>compiled one for sm_90 in ")
    drawn.clear()
    with pytest.raises(KeyError), progress.step("linking one"):
        until(lambda: len(drawn) > 3)
        raise KeyError
    assert drawn[-1].startswith("<pre>linking one: failed after ")


def wait_for_drawing(x):
    """A hook that waits until the bar was drawn again."""
    known = len(drawn)
    until(lambda: len(drawn) > known + 3)
    return autolink.CUDASource('extern "C" __device__ int slow(int *out, int x) { *out = x; return 0; }')


def test_in_a_notebook_many_kernels_have_a_bar_from_the_start_that_is_drawn_while_one_is_built(notebook):
    called = cuda.declare_device("slow", "int32(int32)")
    called.__numba_cuda_link__ = wait_for_drawing

    def kernel(x):
        x[0] = called(x[0])

    with ThreadPoolExecutor(1) as executor:
        autolink.build_many([(kernel, "void(int32[::1])", (9, 0))], executor=executor)
    begin = '<pre><progress value="0.000"></progress> building 1 kernel: compiling kernels 0/1, '
    assert drawn[0] == f"{begin}0 s</pre>" and all(text.startswith(begin) for text in drawn[:4])
    assert '<progress value="1.000"></progress> building 1 kernel: linking kernels 1/1' in drawn[-1]
