# SPDX-License-Identifier: BSD-2-Clause
"""Progress: a build that takes more than a second shows what it is doing, in a terminal on stderr, or in a notebook.

Nothing is shown elsewhere, in continuous integration (``CI`` is set), or with
``NUMBA_CUDA_AUTOLINK_PROGRESS=0``. A step then costs a few microseconds.
"""

from __future__ import annotations

import contextlib
import html
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from numba_cuda_autolink.short_tracebacks import running_shell

from .messages import printable

if TYPE_CHECKING:
    from rich.live import Live

VARIABLE = "NUMBA_CUDA_AUTOLINK_PROGRESS"
DELAY = 1.0  # seconds
_NOTEBOOK_INTERVAL = 0.5  # seconds


_is_silent: ContextVar[bool] = ContextVar("numba_cuda_autolink_silent", default=False)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Show no steps of the block: something else shows the progress of all of it."""
    token = _is_silent.set(True)
    try:
        yield
    finally:
        _is_silent.reset(token)


def enabled() -> bool:
    if (
        _is_silent.get()
        or os.environ.get(VARIABLE) == "0"
        or os.environ.get("CI", "").lower() not in ("", "0", "false")
    ):
        return False
    if in_notebook():
        return True
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):  # there is no stderr, or it is closed
        return False


def in_notebook() -> bool:
    return type(running_shell()).__name__ == "ZMQInteractiveShell"


class NotebookLine:
    """A line below a notebook's cell: the text that *draw* returns, and the share of the work that is done, if it is
    known, as a bar. It is drawn again until it is stopped. Its last state stays: an output of a cell cannot be taken
    away, only emptied."""

    def __init__(self, draw: Callable[[], tuple[str, float | None]]) -> None:
        self._draw = draw
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="shows the progress of builds")

    def start(self) -> None:
        from IPython.display import display

        self._shown = display(self._content(), raw=True, display_id=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()
        self._shown.update(self._content(), raw=True)

    def _run(self) -> None:
        while not self._ended.wait(_NOTEBOOK_INTERVAL):
            self._shown.update(self._content(), raw=True)

    def _content(self) -> dict[str, str]:
        text, share = self._draw()
        bar = "" if share is None else f'<progress value="{share:.3f}"></progress> '
        return {"text/plain": text, "text/html": f"<pre>{bar}{html.escape(text)}</pre>"}


@contextlib.contextmanager
def step(text: str, remaining: int = 0) -> Iterator[None]:
    """Show *text*, which begins with a verb such as *compiling*, while the block runs; *remaining* is the number of
    such steps still to come.

    Steps may be nested and run in several threads; the innermost step of each thread is shown. The first second counts
    from the start of the first step.
    """
    text = printable(text)
    shown = f"{text} ({remaining} more to come)" if remaining else text
    with _display.showing(shown) if enabled() else contextlib.nullcontext():
        yield


class _Display:
    """The steps in progress and, after the first second, a line that shows them."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Show nothing: after a fork, the steps are the parent process's."""
        self._lock = threading.Lock()
        self._steps: dict[object, tuple[int, str]] = {}
        self._timer: threading.Timer | None = None
        self._live: Live | NotebookLine | None = None
        self._since = 0.0
        self._end = ""  # how the last step ended

    @contextlib.contextmanager
    def showing(self, text: str) -> Iterator[None]:
        token = object()
        with self._lock:
            if not self._steps:
                self._since = time.monotonic()
                self._timer = threading.Timer(DELAY, self._show)
                self._timer.daemon = True
                self._timer.start()
            self._steps[token] = (threading.get_ident(), text)
        end = "failed"
        try:
            yield
            end = "done"
        finally:
            with self._lock:
                if len(self._steps) == 1:
                    timer, self._timer = self._timer, None
                    live, self._live = self._live, None
                    if timer is not None:
                        timer.cancel()
                    if live is not None:
                        self._end = end
                        live.stop()  # which draws once more
                        self._end = ""
                self._steps.pop(token, None)

    def text(self) -> str:
        """The steps in progress, or the last one when it has ended, as a line of text."""
        # Read without the lock, which waits for the thread that draws.
        shown = "; ".join(dict(self._steps.copy().values()).values())
        seconds = f"{time.monotonic() - self._since:.0f} s"
        if self._end == "failed":
            return f"{shown}: failed after {seconds}"
        if self._end:
            doing, _, what = shown.partition(" ")
            return f"{doing.removesuffix('ing')}ed {what} in {seconds}"
        return f"{shown} … {seconds}"

    def _show(self) -> None:
        with self._lock:
            if self._timer is not None:  # the last step has not ended meanwhile
                self._live = NotebookLine(lambda: (self.text(), None)) if in_notebook() else self._line()
                self._live.start()

    def _line(self) -> Live:
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner
        from rich.text import Text

        spinner = Spinner("dots")

        def draw() -> Spinner:
            spinner.update(text=Text(self.text(), overflow="ellipsis", no_wrap=True))
            return spinner

        # Only the line itself is written: what the program prints is left alone.
        return Live(
            console=Console(stderr=True),
            get_renderable=draw,
            transient=True,
            refresh_per_second=8,
            redirect_stdout=False,
            redirect_stderr=False,
        )


_display = _Display()
os.register_at_fork(after_in_child=_display.forget)
