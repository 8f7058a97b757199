# SPDX-License-Identifier: BSD-2-Clause
"""The timeline of a build: what took how long, in which process and thread, and from which cache it came.

A `Timeline` records the spans that end while it is the current one, also in threads that run in a copy of the context.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

NVTX_DOMAIN = "numba-cuda-autolink"
REFUSED = "refused"  # the origin of what a compiler refused, where the build goes on without it
Kind = Literal["front end", "hook", "compile", "NVVM", "link"]


@dataclass(frozen=True)
class Span:
    """A part of a build: what *kind* of work it was, on what (*name*); when it began, in seconds since the epoch, and
    how long it took; the ids of the process that did it and of the thread that waited for it; and its *origin*,
    ``"built"``, ``"refused"`` where the compiler refused what was only guessed, or where the result was found:
    ``"memory"``, ``"disk"``, or ``"stored"`` under a link key. *program* is the SHA-256 of the code that it
    compiled."""

    kind: str
    name: str
    start: float
    seconds: float
    process: int
    thread: int
    origin: str = "built"
    program: str = ""

    @property
    def end(self) -> float:
        return self.start + self.seconds


@dataclass
class OpenSpan:
    """What is found out of a span."""

    origin: str = "built"
    process: int = field(default_factory=os.getpid)
    seconds: float = 0.0  # when it has ended
    program: str = ""


class Timeline:
    """The spans of one build, in the order in which they ended."""

    def __init__(self) -> None:
        self.spans: list[Span] = []


_current: ContextVar[Timeline | None] = ContextVar("numba_cuda_autolink_timeline", default=None)
_open: ContextVar[OpenSpan | None] = ContextVar("numba_cuda_autolink_span", default=None)


@contextlib.contextmanager
def recording(timeline: Timeline) -> Iterator[None]:
    token = _current.set(timeline)
    try:
        yield
    finally:
        _current.reset(token)


@contextlib.contextmanager
def span(kind: Kind, name: str) -> Iterator[OpenSpan]:
    """Record the ``with`` block as a span, unless it raises and is not `REFUSED`; in no measurable time. In a program
    that has imported the package ``nvtx`` it is also a range, which Nsight Systems shows."""
    opened, timeline, has_ended = OpenSpan(), _current.get(), False
    with contextlib.ExitStack() as stack:
        if (nvtx := sys.modules.get("nvtx")) is not None:
            nvtx.push_range(f"{kind}: {name}", domain=NVTX_DOMAIN)
            stack.callback(nvtx.pop_range, domain=NVTX_DOMAIN)
        stack.callback(_open.reset, _open.set(opened))
        # The clock that is compared between processes tells the beginning, and the one that never jumps the duration.
        began, start = time.time(), time.perf_counter()
        try:
            yield opened
            has_ended = True
        finally:
            opened.seconds = time.perf_counter() - start
            if timeline is not None and (has_ended or opened.origin == REFUSED):
                thread = threading.get_native_id()
                what = opened.process, thread, opened.origin, opened.program
                timeline.spans.append(Span(kind, name, began, opened.seconds, *what))


def record(kind: Kind, name: str, seconds: float, origin: str) -> None:
    """Record what has just ended, and took so many *seconds*, as a span."""
    if (timeline := _current.get()) is not None:
        place = os.getpid(), threading.get_native_id()
        timeline.spans.append(Span(kind, name, time.time() - seconds, seconds, *place, origin))


def in_process(process: int) -> None:
    if (opened := _open.get()) is not None:
        opened.process = process


def note_program(code: bytes) -> None:
    """Note that *code* was compiled in the current span."""
    if (opened := _open.get()) is not None:
        opened.program = hashlib.sha256(code).hexdigest()
