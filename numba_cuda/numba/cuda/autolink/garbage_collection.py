# SPDX-License-Identifier: BSD-2-Clause
"""Python's garbage collection, paused while a front end compiles.

The first compilation of a process makes some 200,000 objects that live as long as the process: the collections that
this sets off find nothing, and take as long as the rest of the compilation. Later compilations lose a tenth to them.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Iterator

from numba.cuda.cudadrv.external_code.fork_lock import fork_lock


class _Thread(threading.local):
    pauses: bool = False


class _Process:
    """How many threads pause collection; whether it was on before the first of them did; whether that is the first
    pause of the process."""

    threads: int = 0
    was_on: bool = False
    is_first_pause: bool = True


_thread = _Thread()
_lock = fork_lock()


@contextlib.contextmanager
def paused(pause: bool = True) -> Iterator[None]:
    """Pause garbage collection in the whole process inside the ``with`` block; with *pause* false, let it go on as far
    as this thread is concerned, for code of users that is called there."""
    outer = _thread.pauses
    _set(pause)
    try:
        yield
    finally:
        _set(outer)


def _set(pause: bool) -> None:
    if pause == _thread.pauses:
        return
    with _lock:
        _thread.pauses = pause
        if pause and _Process.threads == 0:
            _Process.was_on = gc.isenabled()
            gc.disable()
        _Process.threads += 1 if pause else -1
        if _Process.threads == 0 and _Process.was_on:
            if _Process.is_first_pause:
                _Process.is_first_pause = False
                _make_old()
            gc.enable()


def _make_old() -> None:
    """Move all objects to the oldest generation, which is rarely collected, without a collection."""
    if not gc.get_freeze_count():  # an application that freezes objects wants them to stay so
        gc.freeze()
        gc.unfreeze()


def _after_fork() -> None:
    """Forget the threads that a forked process does not have."""
    _Process.threads = int(_thread.pauses)
    if _Process.threads == 0 and _Process.was_on:
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
