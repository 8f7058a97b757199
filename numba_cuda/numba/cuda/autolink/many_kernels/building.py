# SPDX-License-Identifier: BSD-2-Clause
"""`build_many`: the loop over the attempts at all jobs."""

from __future__ import annotations

import collections
import itertools
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Literal

from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.cache.key import CacheKey
from numba.cuda.cudadrv.external_code.diagnostics import given
from numba.cuda.cudadrv.external_code.diagnostics.log import logger

from .assignment import Assignment
from .attempts import AssignedJob, Attempt, Task, attempt_all
from .chunks import ChunkSizes
from .entries import CacheMark, Collected
from .jobs import BuildManyError, Job, note_lost
from .pickling import pickled_jobs
from .progress_bar import progress_bar
from .workers import Workers

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
        If one of *jobs* is not a job, or cannot be pickled; if a job has no compute capability and there is no GPU; if
        *executor* is not an executor.
    """
    if on_error not in ("raise", "return"):
        raise ValueError(f'on_error must be "raise" or "return", not {on_error!r}')
    if not (executor is None or isinstance(executor, Executor)):
        raise TypeError(
            f"executor must be a concurrent.futures.Executor, got {type(executor).__name__}\n"
            "  what to do: pass Dask's client.get_executor(), autolink.RayExecutor() or mpi4py's MPIPoolExecutor()"
        )
    if config.ENABLE_CUDASIM:
        raise RuntimeError("build_many() compiles for a GPU, which the simulator (NUMBA_ENABLE_CUDASIM=1) does not do")
    expected = "such as [(kernel, 'void(float32[::1])', (9, 0))]"
    # Each job of an iterator is pickled as it is drawn: what it reaches may change before the next one.
    drawn = jobs if isinstance(jobs, Iterator) else given.items("the jobs of build_many()", jobs, expected)
    names: list[str] = []
    results, built = run_all(pickled_jobs(_named(drawn, names)), executor, progress)
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(built.items()))
    logger.info("%d kernels; built: %s", len(results), counts or "nothing")
    if on_error == "raise" and any(isinstance(each, BaseException) for each in results):
        raise BuildManyError(names, results)
    return results


def _named(jobs: Iterable[Any], names: list[str]) -> Iterator[Job]:
    """Yield *jobs*, checked, and add their names to *names*."""
    for each in jobs:
        job = Job.of(each)
        names.append(str(job))
        yield job


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


@dataclass(frozen=True)
class _Started:
    """A task that runs, and the numbers of its jobs."""

    jobs: list[int]
    future: Future[list[Attempt]]


class _Building:
    """The state of one call of `build_many`."""

    def __init__(self, jobs: list[bytes], workers: Workers, mark: CacheKey):
        self._jobs, self._workers, self._mark = jobs, workers, mark
        self._path = tuple(map(os.path.abspath, filter(None, sys.path)))
        self._assignment = Assignment(len(jobs))
        self._chunk_sizes = ChunkSizes()
        self._collected = Collected()
        self._ended: SimpleQueue[int] = SimpleQueue()
        self._running: dict[int, _Started] = {}  # by the numbers of the tasks
        self._numbers = itertools.count()
        self._results: dict[int, Any] = {}
        self._built: collections.Counter[str] = collections.Counter()
        # The jobs whose task was lost with the process that ran it. One of them alone shows whether it was that one.
        self._suspects: list[int] = []
        self._is_alone = self._is_broken = False

    def run(self, show: Shown) -> tuple[list[Any], dict[str, int]]:
        """Attempt all jobs, as often as needed."""
        failed = 0
        try:
            while len(self._results) < len(self._jobs):
                self._start_next()
                started = self._running.pop(self._ended.get())
                self._take_all(started)
                done = [self._results[job] for job in started.jobs if job in self._results]
                if done:
                    failed += sum(isinstance(each, BaseException) for each in done)
                    show(len(self._results), failed)
        finally:
            for started in self._running.values():
                started.future.cancel()
        return [self._results[job] for job in range(len(self._jobs))], dict(self._built)

    def _start_next(self) -> None:
        if self._is_broken or self._suspects:
            if self._running:
                return
            if self._is_broken:
                self._workers.replace()
            self._is_broken = False
        self._is_alone = bool(self._suspects)
        if self._suspects:
            self._start([self._suspects.pop()])
            return
        while True:
            while self._has_room() and (chunk := self._next_chunk()):
                self._start(chunk)
            if self._running or not self._assignment.stop_waiting():
                return

    def _has_room(self) -> bool:
        """Whether to start a task now, and not first take what has ended."""
        most = self._workers.most_tasks()
        return not self._running or (self._ended.empty() and (most is None or len(self._running) < most))

    def _next_chunk(self) -> list[int]:
        """Return the jobs of the next task, none if none is ready."""
        ready, first = self._assignment.ready, self._assignment.next()
        if first is None:
            return []
        builds = bool(self._assignment.assigned(first))
        chunk = [first]
        size = self._chunk_sizes.next(ready, self._workers.count(), builds=builds)
        while len(chunk) < size and (job := self._assignment.next_like(first)) is not None:
            chunk.append(job)
        return chunk

    def _start(self, chunk: list[int]) -> None:
        number = next(self._numbers)
        digests = dict.fromkeys(digest for job in chunk for digest in self._assignment.to_fetch(job))
        entries = dict.fromkeys(entry for digest in digests for entry in self._collected.related_to(digest))
        jobs = tuple(AssignedJob(self._jobs[job], self._assignment.assigned(job)) for job in chunk)
        task = Task(number, jobs, tuple(entries), self._mark, self._path)
        try:
            future = self._workers.executor.submit(attempt_all, task)
        except Exception as error:  # the executor is broken, or shut down
            future = Future()
            future.set_exception(error)
        self._running[number] = _Started(chunk, future)
        future.add_done_callback(lambda _: self._ended.put(number))

    def _take_all(self, started: _Started) -> None:
        """Take what the attempts of a task returned, or what became of the task."""
        lost = CancelledError() if started.future.cancelled() else started.future.exception()
        if lost is None:
            for job, ended in zip(started.jobs, started.future.result(), strict=True):
                self._chunk_sizes.note(ended.seconds, builds=bool(self._assignment.assigned(job)))
                self._take(job, ended)
            return
        # Of the executor: the task's process died, or the task could not be sent.
        self._is_broken |= self._workers.is_own and isinstance(lost, BrokenExecutor)
        if not self._is_alone:
            self._suspects += started.jobs
            return
        note_lost(lost)
        for job in started.jobs:
            self._results[job] = lost
            self._assignment.finished(job)

    def _take(self, job: int, ended: Attempt) -> None:
        """Take what an attempt returned: a result, or what it was stopped at."""
        self._built.update(ended.built)
        self._collected.add(ended.entries)
        if ended.result is None:
            if not ended.shares_cache:
                self._assignment.built_before(digest for digest in ended.left if self._collected.has(digest))
            self._assignment.stopped(job, ended.left, ended.shares_cache)
        else:
            try:
                self._results[job] = pickle.loads(ended.result)
            except Exception as error:  # it names a module that is not here, for example
                self._results[job] = error
            self._assignment.finished(job)
