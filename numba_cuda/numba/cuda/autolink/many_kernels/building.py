# SPDX-License-Identifier: BSD-2-Clause
"""`build_many`: the loop over the attempts at all jobs."""

from __future__ import annotations

import collections
import os
import pickle
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, Executor, Future
from queue import SimpleQueue
from typing import Any, Literal

from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.cache.key import CacheKey
from numba.cuda.cudadrv.external_code.cache.log import logger

from .assignment import Assignment
from .attempts import Attempt, Task, attempt
from .entries import CacheMark, Collected
from .jobs import BuildManyError, Job
from .pickling import pickled_error, pickled_jobs
from .progress_bar import progress_bar
from .workers import Workers

# Attempts in progress for each worker. The fewer there are, the fewer stop at a program that another one is building.
_ATTEMPTS_PER_WORKER = 2

Shown = Callable[[int, int], None]


def build_many(
    jobs: Iterable[Job | tuple[Any, ...]],
    *,
    executor: Executor | None = None,
    on_error: Literal["raise", "return"] = "raise",
    progress: bool | None = None,
) -> list[Any]:
    """Build many kernels in several processes; no GPU is needed.

    What kernels have in common is built once for all of them: each program (CUDA C++ or bitcode, compiled), and the
    code of each object with a ``__numba_cuda_link_key__``. All that is built is cached, so that a call that was
    interrupted continues where it stopped when it is repeated.

    Parameters
    ----------
    jobs:
        `Job` records, or tuples ``(kernel, signature)`` or ``(kernel, signature, cc)``. They are pickled: functions,
        closures and classes of ``__main__`` too. What they import is installed where the workers run.
    executor:
        Where to build: any `concurrent.futures.Executor`, such as Dask's ``Client.get_executor()`` and mpi4py's
        ``MPIPoolExecutor``. It is not shut down. Default: processes of this machine, one for each CPU.
    on_error:
        ``"raise"``: raise `BuildManyError` if jobs failed, after all others are built. ``"return"``: return the
        exceptions in the places of their kernels.
    progress:
        Whether to show a progress bar on stderr. Default: where stderr is a terminal.

    Returns
    -------
    list
        For each job, in order, its `LinkedKernel`. The objects in its call sites are copies.

    Raises
    ------
    BuildManyError
        If jobs failed. Its ``results`` has the others, and ``errors`` has what they raised.
    TypeError, ValueError
        If one of *jobs* is not a job, or cannot be pickled; if a job has no compute capability and there is no GPU.
    """
    if on_error not in ("raise", "return"):
        raise ValueError(f'on_error must be "raise" or "return", not {on_error!r}')
    if config.ENABLE_CUDASIM:
        raise RuntimeError("build_many() compiles for a GPU, which the simulator (NUMBA_ENABLE_CUDASIM=1) does not do")
    checked = [Job.of(each) for each in jobs]
    names = list(map(str, checked))
    results, built = run_all(pickled_jobs(checked), executor, progress)
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(built.items()))
    logger.info("%d kernels; built: %s", len(results), counts or "nothing")
    if on_error == "raise" and any(isinstance(each, BaseException) for each in results):
        raise BuildManyError(names, results)
    return results


def run_all(
    jobs: list[bytes], executor: Executor | None = None, progress: bool | None = None
) -> tuple[list[Any], dict[str, int]]:
    """Build pickled *jobs*. Return the `LinkedKernel` or the exception of each, and how many entries of each kind were
    built for all of them."""
    if not jobs:
        return [], {}
    with (
        Workers(executor, len(jobs)) as workers,
        CacheMark().left() as mark,
        progress_bar(len(jobs), progress) as show,
    ):
        return _Building(jobs, workers, mark).run(show)


class _Building:
    """The state of one call of `build_many`."""

    def __init__(self, jobs: list[bytes], workers: Workers, mark: CacheKey):
        self._jobs, self._workers, self._mark = jobs, workers, mark
        self._most_running = _ATTEMPTS_PER_WORKER * workers.count if workers.count else len(jobs)
        self._path = tuple(map(os.path.abspath, filter(None, sys.path)))
        self._assignment = Assignment(len(jobs))
        self._collected = Collected()
        self._ended: SimpleQueue[tuple[int, Future[Attempt]]] = SimpleQueue()
        self._running: dict[int, Future[Attempt]] = {}
        self._results: dict[int, Any] = {}
        self._built: collections.Counter[str] = collections.Counter()
        # The jobs that were attempted when a process ended abruptly. One of them alone shows whether it was that one.
        self._suspects: list[int] = []
        self._is_alone = self._is_broken = False

    def run(self, show: Shown) -> tuple[list[Any], dict[str, int]]:
        """Attempt all jobs, as often as needed."""
        failed = 0
        try:
            while len(self._results) < len(self._jobs):
                self._start_next()
                job, future = self._ended.get()
                del self._running[job]
                self._take(job, future)
                if job in self._results:
                    failed += isinstance(self._results[job], BaseException)
                    show(len(self._results), failed)
        finally:
            for future in self._running.values():
                future.cancel()
        return [self._results[job] for job in range(len(self._jobs))], dict(self._built)

    def _start_next(self) -> None:
        if self._is_broken or self._suspects:
            if self._running:
                return
            if self._is_broken:
                self._workers.replace()
            self._is_broken = False
        if self._suspects:
            self._is_alone = True
            self._start(self._suspects.pop())
            return
        self._is_alone = False
        while True:
            while len(self._running) < self._most_running and (job := self._assignment.next()) is not None:
                self._start(job)
            if self._running or not self._assignment.stop_waiting():
                return

    def _start(self, job: int) -> None:
        entries = [self._collected.related_to(digest) for digest in self._assignment.to_fetch(job)]
        sent = tuple(dict.fromkeys(entry for related in entries for entry in related))
        task = Task(self._jobs[job], self._assignment.assigned(job), sent, self._mark, self._path)
        try:
            future = self._workers.executor.submit(attempt, task)
        except Exception as error:  # the executor is broken, or shut down
            future = Future()
            future.set_exception(error)
        self._running[job] = future
        future.add_done_callback(lambda ended: self._ended.put((job, ended)))

    def _take(self, job: int, future: Future[Attempt]) -> None:
        """Take what an attempt returned: a result, or what it was stopped at."""
        try:
            ended = future.result()
        except BaseException as error:  # of the executor: its process died, the task could not be sent
            if isinstance(error, BrokenExecutor) and self._workers.is_own:
                self._is_broken = True
                if not self._is_alone:
                    self._suspects.append(job)
                    return
            ended = Attempt(pickled_error(error), (), {}, (), False)
        self._built.update(ended.built)
        self._collected.add(ended.entries)
        if ended.result is None:
            if not ended.shares_cache:
                self._assignment.built_before(digest for digest in ended.left if self._collected.has(digest))
            self._assignment.stopped(job, ended.left, ended.shares_cache)
        else:
            self._results[job] = pickle.loads(ended.result)
            self._assignment.finished(job)
