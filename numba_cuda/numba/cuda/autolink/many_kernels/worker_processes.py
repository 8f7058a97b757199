# SPDX-License-Identifier: BSD-2-Clause
"""The default executor: processes of this machine, which end with their parent, however it ends."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import multiprocessing.util
import os
import signal
import sys
import threading
import types
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from numba.cuda.cudadrv.external_code.cache.store import abandon, current_store
from numba.cuda.cudadrv.external_code.platform.child_process import kill_all
from numba.cuda.cudadrv.external_code.platform.fork_lock import fork_lock

_LONGEST_END = 300.0  # seconds to wait for what is written to a shared cache
_WATCH_INTERVAL = 1.0  # seconds between two looks of a worker at its parent
_replacing = fork_lock()


class _WorkerProcess(SpawnProcess):
    """A new process that does not run the parent's script again: what jobs need of ``__main__`` is pickled with them.
    So scripts need no ``if __name__ == "__main__":``."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        with _without_script(), _without_interrupts():
            return SpawnProcess._Popen(process_obj)


class _WorkerContext(SpawnContext):
    # Not a fork: the parent may have threads, and a CUDA context.
    def __init__(self) -> None:
        super().__init__()
        self.started: list[_WorkerProcess] = []

    def Process(self, *args: Any, **kwargs: Any) -> _WorkerProcess:  # type: ignore[override]
        process = _WorkerProcess(*args, **kwargs)
        self.started.append(process)
        return process


class WorkerProcesses(ProcessPoolExecutor):
    """An executor with *count* processes."""

    def __init__(self, count: int):
        self._context = _WorkerContext()
        super().__init__(count, mp_context=self._context, initializer=_start)

    def __exit__(self, *_: Any) -> None:
        """End the processes after what they do now; at once if that is interrupted."""
        try:
            self.shutdown(cancel_futures=True)
        except BaseException:
            for process in self._context.started:
                if process.is_alive():
                    process.terminate()
            self.shutdown()  # without which Python would wait for them at its end
            raise


@contextlib.contextmanager
def _without_script() -> Iterator[None]:
    """Hide the script from `multiprocessing`, which reads from ``sys.modules`` what a child is to run."""
    with _replacing:
        script = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = script


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block Ctrl-C for this thread and the processes that it starts, which unblock it once they ignore it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would unblock it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start() -> None:
    """Set up a worker: Ctrl-C is for the parent, which then gives it no more jobs, or terminates it."""
    signal.signal(signal.SIGTERM, _end_now)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    from numba import cuda  # noqa: F401

    # Processes of `multiprocessing` run no functions of `atexit`.
    multiprocessing.util.Finalize(None, _finish, exitpriority=1)


def _finish() -> None:
    current_store().end(_LONGEST_END)


def _end_with(parent: Any) -> None:
    # A fork of the parent may still have the sentinel's pipe: an orphan gets another parent.
    while not multiprocessing.connection.wait([parent.sentinel], _WATCH_INTERVAL) and os.getppid() == parent.pid:
        pass
    _end_now()


def _end_now(*_: Any) -> None:
    """End this process in the middle of what it does, and leave nothing behind."""
    kill_all()
    abandon()
    os._exit(1)
