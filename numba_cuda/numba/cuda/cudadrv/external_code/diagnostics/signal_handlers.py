# SPDX-License-Identifier: BSD-2-Clause
"""A program's signal handlers: what they raise, as Ctrl-C and time limits do, interrupts whatever runs."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import contextlib
import functools
import signal
import threading
import traceback
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType, MethodType


def raised_by_signal_handler(error: BaseException) -> bool:
    """Return whether *error* was raised by a signal handler that is installed, or by what one called. It says nothing
    about the code that it interrupted."""
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    return any(frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__))


@contextlib.contextmanager
def interrupts_unchanged() -> Iterator[None]:
    """Raise what a signal handler raised, where an error of the block was raised from it. As a decorator: of a
    function."""
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not raised_by_signal_handler(cause):
            cause = cause.__cause__
        if cause is None or cause is error:
            raise
        raise cause from None


def _code_of(handler: object) -> CodeType | None:
    while isinstance(handler, functools.partial):
        handler = handler.func
    if isinstance(handler, MethodType):
        handler = handler.__func__
    if callable(handler) and not isinstance(handler, FunctionType):
        handler = type(handler).__call__
    code = getattr(handler, "__code__", None)
    return code if isinstance(code, CodeType) else None


_held_back = False  # in the main thread
# Without the enumerations of the module signal, which each refresh of a compilation would pay for.
_NUMBERS = tuple(map(int, signal.valid_signals()))


@contextlib.contextmanager
def handlers_held_back() -> Iterator[None]:
    """Call the signal handlers of the program after the ``with`` block, not inside it: for blocks that would leave
    something half done for the life of the process. Handlers run in the main thread alone; in others, and inside
    another such block, do nothing."""
    global _held_back
    if _held_back or threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: dict[int, FrameType | None] = {}
    handlers = {number: _signal.getsignal(number) for number in _NUMBERS}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        _held_back = True
        for number in held:
            signal.signal(number, arrived.setdefault)
        yield
    finally:
        _held_back = False
        # A handler that is back may raise before the next one is.
        with contextlib.ExitStack() as stack:
            for number, frame in arrived.items():
                stack.callback(held[number], number, frame)
            for number, handler in held.items():
                stack.callback(signal.signal, number, handler)
