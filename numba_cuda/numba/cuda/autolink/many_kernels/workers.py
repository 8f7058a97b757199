# SPDX-License-Identifier: BSD-2-Clause
"""The workers of `build_many`: an executor of its user, or one of its own, which is replaced when it breaks."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from types import TracebackType
from typing import Any

from numba.cuda.cudadrv.external_code.compile.nvrtc_processes import most_jobs

from .worker_processes import WorkerProcesses

# Tasks in progress for each worker. The fewer there are, the fewer stop at a program that another one is building.
_TASKS_PER_WORKER = 2
_LEAST_QUEUED = 64  # for a cluster that grows with what is queued
_RECOUNTED = 5.0  # seconds after which the workers of a cluster are counted again


class _ThisThread(Executor):
    """Runs each call when it is submitted: a thread of its own would wait for ever where a hook builds kernels."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Workers:
    """The executor *given*, or one of our own for so many *jobs*, which a ``with`` block shuts down."""

    def __init__(self, given: Executor | None, jobs: int):
        self.is_own = given is None
        self._own_count = min(jobs, most_jobs())
        self.executor = self._started() if given is None else given
        self._count, self._counted = None, -_RECOUNTED  # type: tuple[int | None, float]

    def count(self) -> int | None:
        """Return how many workers there are at present; ``None`` if that is not known, or there are none yet."""
        if self.is_own:
            return self._own_count
        if (now := time.monotonic()) >= self._counted + _RECOUNTED:
            self._count, self._counted = _counted(self.executor), now
        return self._count

    def most_tasks(self) -> int | None:
        """Return how many tasks to start before one has ended; ``None`` for as many as there are."""
        if (count := self.count()) is None:
            return None
        return max(_TASKS_PER_WORKER * count, 0 if self.is_own else _LEAST_QUEUED)

    def _started(self) -> Executor:
        return WorkerProcesses(self._own_count) if self._own_count > 1 else _ThisThread()

    def replace(self) -> None:
        """Replace an executor of our own, which is broken."""
        self._end()
        self.executor = self._started()

    def _end(self) -> None:
        """End our own workers, after what they do now."""
        if self.is_own:
            self.executor.__exit__(None, None, None)

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()


def _counted(executor: Executor) -> int | None:
    """Return how many workers *executor* has, if it tells: mpi4py's and Ray's do, Dask's client, and pools."""
    try:
        if (client := getattr(executor, "_client", None)) is not None:
            return sum(client.nthreads().values()) or None
        found = getattr(executor, "num_workers", None) or getattr(executor, "_max_workers", None)
        return found if isinstance(found, int) else None
    except Exception:  # of a connection: what is wrong with it shows when a task is started
        return None
