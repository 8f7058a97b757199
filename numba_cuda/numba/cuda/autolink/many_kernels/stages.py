# SPDX-License-Identifier: BSD-2-Clause
"""`build_many`, in three stages: front ends compile the kernels, the programs that these need are compiled, each once,
and the kernels are linked."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import pickle
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, Literal, NamedTuple

from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.cache.entry import CacheKey
from numba.cuda.cudadrv.external_code.cache.last_runs import current_run
from numba.cuda.cudadrv.external_code.cache.settings import CacheWarning, logger
from numba.cuda.cudadrv.external_code.cache.store import current_store
from numba.cuda.cudadrv.external_code.diagnostics import messages
from numba.cuda.cudadrv.external_code.diagnostics import progress as progress_of_builds
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CalledFunction
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapabilityLike

from numba_cuda_autolink.printable_texts import number_of
from numba_cuda_autolink.short_tracebacks import short_traceback

from ..builds.result import with_link
from .executors import Workers
from .jobs import BuildManyError, Job, note_lost
from .pickling import pickle_jobs
from .worker_tasks import (
    Entries,
    Outcome,
    PreparedJob,
    Surroundings,
    compile_program,
    link_kernel,
    prepare_job,
    process_name,
    run,
)

_LONGEST_FLUSH = 600.0  # seconds

# Called with the stage, how many of its tasks have ended, how many there are, and how many kernels have failed.
Show = Callable[[str, int, int, int], None]
ShownProgress = bool | Callable[[str, int, int], None] | None


class Built(NamedTuple):
    """What `run_all` built: the `LinkedKernel` or exception of each job; how many cache entries of each kind; and how
    many of them could not be written to the shared cache."""

    results: list[Any]
    entries: dict[str, int]
    unstored: int


@messages.suggest_names
def build_many(
    jobs: Iterable[Job | tuple[Any, ...]],
    cc: ComputeCapabilityLike | None = None,
    *,
    executor: Executor | Callable[[], Executor] | None = None,
    on_error: Literal["raise", "return"] = "raise",
    progress: ShownProgress = None,
    time_limit: float | None = None,
    attempts: int = 1,
) -> list[Any]:
    """Build many kernels in several processes; no GPU is needed.

    What kernels have in common is compiled once for all of them: each program of CUDA C++. All that is built is
    cached, so that a call that was interrupted continues where it stopped when it is repeated.

    Parameters
    ----------
    jobs:
        `Job` records, or tuples ``(kernel, signature)`` or ``(kernel, signature, cc)``. They are pickled: functions,
        closures and classes of ``__main__`` too. What they import is installed where the workers run.
    cc:
        The compute capability of the jobs that have none, as for `build`. Default: that of this process's GPU.
    executor:
        Where to build: any `concurrent.futures.Executor`, such as Dask's ``Client.get_executor()`` and mpi4py's
        ``MPIPoolExecutor``. It is not shut down. Or a function that makes one, which is shut down, and made again when
        it breaks. Default: processes of this machine, one for each CPU.
    on_error:
        ``"raise"``: raise `BuildManyError` if jobs failed, after all others are built. ``"return"``: return the
        exceptions in the places of their kernels.
    progress:
        Whether to show a progress bar. Default: in notebooks, and where stderr is a terminal. Or a function to call
        after each step with the name of the stage, how many of its steps are done, and how many there are.
    time_limit:
        How many seconds a step of a job may take before its process is ended; for the default executor only.
    attempts:
        How often a job whose process died is tried again, alone, so that only the one that ends its process fails.

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
        another argument is not what is described here.

    Warns
    -----
    CacheWarning
        If entries could not be written to a shared cache.
    """
    _check(executor, on_error, time_limit, attempts)
    if config.ENABLE_CUDASIM:
        raise RuntimeError("build_many() compiles for a GPU, which the simulator (NUMBA_ENABLE_CUDASIM=1) does not do")
    expected = "such as [(kernel, 'void(float32[::1])', (9, 0))]"
    # Each job of an iterator is pickled as it is drawn: what it reaches may change before the next one.
    drawn = jobs if isinstance(jobs, Iterator) else messages.items("the jobs of build_many()", jobs, expected)
    names: list[str] = []
    data = pickle_jobs(_name(drawn, cc, names))
    with short_traceback():
        built = run_all(data, executor, progress, time_limit=time_limit, attempts=attempts)
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(built.entries.items()))
    logger.info("%d kernels; built: %s", len(built.results), counts or "nothing")
    if built.unstored:
        text = f"build_many() could not write {number_of(built.unstored, 'entry')} to the shared cache"
        warnings.warn(text, CacheWarning, stacklevel=3)
    if on_error == "raise" and any(isinstance(each, BaseException) for each in built.results):
        raise BuildManyError(names, built.results)
    return built.results


def _check(executor: object, on_error: object, time_limit: float | None, attempts: int) -> None:
    if on_error not in ("raise", "return"):
        raise ValueError(f'on_error must be "raise" or "return", not {on_error!r}')
    if not (executor is None or isinstance(executor, Executor) or callable(executor)):
        raise TypeError(
            f"executor must be a concurrent.futures.Executor, got {type(executor).__name__}\n"
            "  what to do: pass Dask's client.get_executor(), autolink.RayExecutor() or mpi4py's MPIPoolExecutor()"
        )
    is_time = isinstance(time_limit, (int, float)) and 0 < time_limit <= threading.TIMEOUT_MAX
    if time_limit is not None and not is_time:
        raise ValueError(f"time_limit={time_limit!r}: expected a number of seconds above 0")
    if time_limit is not None and executor is not None:
        raise ValueError(
            f"time_limit={time_limit!r}: an executor has its own limits\n"
            "  what to do: set the limit of the executor's own workers, or leave out executor= or time_limit="
        )
    if not isinstance(attempts, int) or attempts < 1:
        raise ValueError(f"attempts={attempts!r}: expected a number from 1 on")


def _name(jobs: Iterable[Any], cc: ComputeCapabilityLike | None, names: list[str]) -> Iterator[Job]:
    """Yield *jobs*, checked and for *cc* if they have none of their own, and add their names to *names*."""
    for each in jobs:
        job = Job.of(each)
        if job.cc is None:
            job = Job.of(dataclasses.replace(job, cc=cc))
        names.append(str(job))
        yield job


def run_all(
    jobs: list[bytes],
    executor: Executor | Callable[[], Executor] | None = None,
    progress: ShownProgress = None,
    *,
    time_limit: float | None = None,
    attempts: int = 1,
) -> Built:
    if not jobs:
        return Built([], {}, 0)
    with (
        Workers(executor, len(jobs), attempts, time_limit) as workers,
        _mark_left() as mark,
        _show_progress(len(jobs), progress) as show,
    ):
        path = tuple(map(os.path.abspath, filter(None, sys.path)))
        return _Building(jobs, workers, Surroundings(mark, current_run(), path, time_limit), show).run()


@contextlib.contextmanager
def _mark_left() -> Iterator[bytes]:
    """Leave an entry in the cache directory while the block runs; give the digest of its key."""
    disk, key = current_store().disk, CacheKey("mark", "build_many", (("random", os.urandom(16)),))
    disk.write(key, b"")
    try:
        yield key.digest
    finally:
        with contextlib.suppress(OSError):
            disk.remove(key.digest)


class _Building:
    """The state of one call of `build_many`."""

    def __init__(self, jobs: Sequence[bytes], workers: Workers, around: Surroundings, show: Show):
        self._jobs, self._workers, self._around, self._show = jobs, workers, around, show
        self._results: dict[int, Any] = {}
        self._built: collections.Counter[str] = collections.Counter()
        self._unstored: dict[str, int] = {}  # by process

    def run(self) -> Built:
        prepared = self._prepare()
        entries = self._compile(prepared)
        self._link(prepared, entries)
        store = current_store()
        if store.remote is not None:
            self._unstored[process_name()] = store.remote.flush(_LONGEST_FLUSH)
        results = [self._results[number] for number in range(len(self._jobs))]
        return Built(results, dict(self._built), sum(self._unstored.values()))

    def _prepare(self) -> dict[int, PreparedJob]:
        """Have the front ends compile all kernels; return those that are to be linked."""
        prepared: dict[int, PreparedJob] = {}

        def ended(number: int, outcome: Any) -> None:
            if isinstance(job := self._take(outcome), BaseException):
                self._results[number] = job
            elif job.request is None:
                self._results[number] = _load(job.kernel)
            else:
                prepared[number] = job

        self._map("compiling kernels", [(prepare_job, self._around, job) for job in self._jobs], ended)
        return prepared

    def _compile(self, prepared: dict[int, PreparedJob]) -> dict[object, Entries]:
        """Compile what the kernels need, each program once, into the cache. Return the entries of those that workers of
        other machines compiled. A program that does not compile is an error of each link that needs it."""
        called: dict[Any, dict[CalledFunction, None]] = {}
        for job in prepared.values():
            for source, target, functions in job.programs:
                called.setdefault((source, source.name, target), {}).update(dict.fromkeys(functions))
        entries: dict[object, Entries] = {}
        needed = list(called)

        def ended(number: int, outcome: Any) -> None:
            self._take(outcome)
            if isinstance(outcome, Outcome) and outcome.entries:
                entries[needed[number]] = outcome.entries

        tasks = [
            (compile_program, self._around, source, target, tuple(called[source, name, target]))
            for source, name, target in needed
        ]
        self._map("compiling programs", tasks, ended, attempts=0)
        return entries

    def _link(self, prepared: dict[int, PreparedJob], entries: dict[object, Entries]) -> None:
        tasks = []
        for job in prepared.values():
            used: Entries = {}
            for source, target, _ in job.programs:
                used.update(entries.get((source, source.name, target), {}))
            around = dataclasses.replace(self._around, wants_links=job.for_launch)
            tasks.append((link_kernel, around, job.request, used))
        numbers = list(prepared)

        def ended(task: int, outcome: Any) -> None:
            job, ran = prepared.pop(numbers[task]), self._take(outcome)
            kernel = ran if isinstance(ran, BaseException) else _load(job.kernel)
            self._results[numbers[task]] = kernel if isinstance(kernel, BaseException) else with_link(kernel, ran)

        self._map("linking kernels", tasks, ended)

    def _map(
        self,
        stage: str,
        tasks: list[tuple[Any, ...]],
        ended: Callable[[int, Any], None],
        attempts: int | None = None,
    ) -> None:
        done = 0

        def ended_one(number: int, outcome: Any) -> None:
            nonlocal done
            ended(number, outcome)
            tasks[number] = ()  # what it got is not kept in memory
            done += 1
            failed = sum(isinstance(each, BaseException) for each in self._results.values())
            self._show(stage, done, len(tasks), failed)

        self._workers.map(run, tasks, ended_one, attempts)

    def _take(self, outcome: Any) -> Any:
        """Return what a task returned or raised, or what the executor raised in its place."""
        if not isinstance(outcome, Outcome):
            if not isinstance(outcome, TimeoutError):
                note_lost(outcome)
            return outcome
        self._built.update(outcome.built)
        process, unstored = outcome.unstored
        self._unstored[process] = unstored
        for digest, entry in outcome.entries.items():
            current_store().adopt(digest, entry, memory=False)
        return outcome.result if outcome.error is None else _load(outcome.error)


def _load(data: bytes) -> Any:
    """Return what is pickled, or the exception that this raises: it may name a module that is not here."""
    try:
        return pickle.loads(data)
    except Exception as error:
        return error


@contextlib.contextmanager
def _show_progress(jobs: int, shown: ShownProgress) -> Iterator[Show]:
    """Show the progress of so many *jobs* while the block runs, by default only where `progress.enabled`."""
    if callable(shown):
        called = shown
        yield lambda stage, done, total, failed: called(stage, done, total)
        return
    if not (progress_of_builds.enabled() if shown is None else shown):
        yield lambda stage, done, total, failed: None
        return
    if progress_of_builds.in_notebook():
        with _notebook_line(jobs) as show:
            yield show
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        *(TextColumn("building kernels"), BarColumn(), TextColumn("{task.fields[stage]}")),
        *(TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[failed]}", style="red")),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task("", total=2 * jobs, stage=f"compiling kernels 0/{jobs}", failed="")
        totals: dict[str, tuple[int, int]] = {}  # how many steps of each stage are done, and how many there are

        def show(stage: str, done: int, total: int, failed: int) -> None:
            totals[stage] = done, total
            completed = sum(done for done, _ in totals.values())
            known = sum(total for _, total in totals.values())
            text = f"{stage} {done}/{total}"
            # Those that are not known yet have as many steps as there are jobs.
            expected = max(known, 2 * jobs) if stage.startswith("compiling") else known
            bar.update(
                task, completed=completed, total=expected, stage=text, failed=(failed and f"{failed} failed") or ""
            )

        yield show


@contextlib.contextmanager
def _notebook_line(jobs: int) -> Iterator[Show]:
    start, step = time.monotonic(), ("compiling kernels", 0, jobs, 0)

    def draw() -> tuple[str, float]:
        stage, done, total, failed = step
        text = f"{stage} {done}/{total}, {time.monotonic() - start:.0f} s" + (f", {failed} failed" if failed else "")
        return f"building {number_of(jobs, 'kernel')}: {text}", done / max(total, 1)

    def show(*ended: Any) -> None:
        nonlocal step
        step = ended

    line = progress_of_builds.NotebookLine(draw)
    line.start()
    try:
        yield show
    finally:
        line.stop()
