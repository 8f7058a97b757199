# SPDX-License-Identifier: BSD-2-Clause
"""Executors: processes of this machine, which end with their parent, however it ends; Ray; and `Workers`, which calls a
function for many arguments in any of them."""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import multiprocessing.connection
import multiprocessing.util
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from queue import SimpleQueue
from typing import Any

from numba.cuda.cudadrv.external_code.cache.store import abandon, current_store
from numba.cuda.cudadrv.external_code.compile.nvrtc_processes import JOBS, most_jobs
from numba.cuda.cudadrv.external_code.platform.child_process import fork_lock, kill_all

_TASKS_PER_WORKER = 2  # in progress at once: all of them are lost when one ends its process
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
    resource_tracker.ensure_running()  # which would unblock it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start() -> None:
    """Set up a worker: Ctrl-C is for the parent, which then gives it no more jobs, or terminates it."""
    os.environ[JOBS] = "1"  # all CPUs have a worker
    signal.signal(signal.SIGTERM, end_now)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    from numba import cuda  # noqa: F401

    # Processes of `multiprocessing` run no functions of `atexit`.
    multiprocessing.util.Finalize(None, lambda: current_store().end(_LONGEST_END), exitpriority=1)


def _end_with(parent: Any) -> None:
    # A fork of the parent may still have the sentinel's pipe: an orphan gets another parent.
    while not multiprocessing.connection.wait([parent.sentinel], _WATCH_INTERVAL) and os.getppid() == parent.pid:
        pass
    end_now()


def end_now(*_: Any) -> None:
    """End this process, a worker, in the middle of what it does, and leave nothing behind."""
    kill_all()
    abandon()
    os._exit(1)


class RayExecutor(Executor):
    """A `concurrent.futures.Executor` whose calls are Ray tasks, with the keyword arguments of ``ray.remote``.

    Ray is connected to or started (``ray.init()``) by its user, or by the first call, and shut down by its user.
    """

    def __init__(self, **options: Any):
        import ray

        self._remote = ray.remote(**options) if options else ray.remote

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start ``fn(*args, **kwargs)`` as a task."""
        return self._remote(fn).remote(*args, **kwargs).future()


class _ThisThread(Executor):
    """Runs each call when it is submitted: a thread of its own would hang where a hook builds kernels."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Workers:
    """The executor *given*, what a function *given* makes, or processes of our own for so many *jobs*; the last two are
    shut down by a ``with`` block, and replaced when they break. A call whose process died has *attempts*, alone.
    One that ends its process after *time_limit* seconds has a `TimeoutError`."""

    def __init__(
        self, given: Executor | Callable[[], Executor] | None, jobs: int, attempts: int, time_limit: float | None
    ):
        self._attempts, self._time_limit = attempts, time_limit
        self._make: Callable[[], Executor] | None = None
        if given is None:
            count = min(jobs, most_jobs())
            given = _ThisThread if count < 2 and time_limit is None else lambda: WorkerProcesses(count)
        if isinstance(given, Executor):
            self._executor = given
        else:
            self._make, self._executor = given, given()
        workers = getattr(self._executor, "_max_workers", None)  # those of `concurrent.futures` have it
        self._most = _TASKS_PER_WORKER * workers if isinstance(workers, int) else None

    def map(
        self,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        ended: Callable[[int, Any], None],
        attempts: int | None = None,
    ) -> None:
        """Call *function* once for each of *arguments*; after each call, call *ended* with its number and result.

        A call whose process died is repeated, alone, so that the one that ends its process fails, and no other. If it
        has failed so in all *attempts*, its result is the executor's exception.
        """
        most_attempts = self._attempts if attempts is None else attempts
        waiting, suspects = collections.deque(range(len(arguments))), collections.deque[int]()
        running: dict[int, tuple[Future[Any], float]] = {}
        failed: collections.Counter[int] = collections.Counter()
        done: SimpleQueue[int] = SimpleQueue()
        is_broken = is_alone = False

        def start(number: int) -> None:
            running[number] = self._submit(function, arguments[number]), time.monotonic()
            running[number][0].add_done_callback(lambda _: done.put(number))

        try:
            while waiting or suspects or running:
                if not running:
                    if is_broken:
                        self._replace()
                    is_broken, is_alone = False, bool(suspects)
                    if is_alone:
                        start(suspects.popleft())
                while waiting and not (is_alone or is_broken or suspects) and self._has_room(len(running), done):
                    start(waiting.popleft())
                number = done.get()
                future, since = running.pop(number)
                lost = CancelledError() if future.cancelled() else future.exception()
                if lost is None:
                    ended(number, future.result())
                    continue
                is_broken |= isinstance(lost, BrokenExecutor)
                failed[number] += is_alone
                if failed[number] < most_attempts:
                    suspects.append(number)
                elif is_alone and self._time_limit is not None and time.monotonic() - since >= self._time_limit:
                    ended(number, TimeoutError(f"it took longer than {self._time_limit:g} s, the time limit of a job"))
                else:
                    ended(number, lost)
        finally:
            for future, _ in running.values():
                future.cancel()

    def _has_room(self, running: int, done: SimpleQueue[int]) -> bool:
        """Whether to start a call now, and not first take what has ended."""
        return not running or (done.empty() and (self._most is None or running < self._most))

    def _submit(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Future[Any]:
        try:
            return self._executor.submit(function, *arguments)
        except Exception as error:  # the executor is broken, or shut down
            future: Future[Any] = Future()
            future.set_exception(error)
            return future

    def _replace(self) -> None:
        if self._make is not None:
            self._executor.__exit__(None, None, None)
            self._executor = self._make()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._make is not None:
            self._executor.__exit__(None, None, None)
