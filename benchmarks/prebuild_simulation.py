# SPDX-License-Identifier: BSD-2-Clause
"""Compute how long a cluster takes to build many kernels, from measured costs, and what limits it.

``python benchmarks/prebuild_simulation.py`` simulates `autolink.build_many` event by event: a parent that starts
tasks and takes their results, workers on many containers, and a store that they share. Each line is one cluster: how
long it takes with chunks of jobs, and with one job in each task; and with chunks, who is busy.
``--parent`` measures what the parent needs for a task here, without a scheduler, in place of the default.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

from numba.cuda.autolink.many_kernels.assignment import Assignment
from numba.cuda.autolink.many_kernels.chunks import ChunkSizes


@dataclass(frozen=True)
class Costs:
    """Seconds that the parent and its scheduler need for one task, as Dask's does; that an attempt takes that stops, a
    program, and a kernel whose programs are there, measured on two cores; and that a question to the store takes. S3
    answers so many of them in a second, below one prefix."""

    parent: float = 0.001
    stopped: float = 0.025
    program: float = 1.0
    kernel: float = 0.075
    latency: float = 0.03
    store_rate: float = 5500.0


@dataclass(frozen=True)
class Cluster:
    """What is built, and where. Each container has one cache directory, which is empty; *stored* is the part of the
    programs that is in the shared cache."""

    kernels: int
    programs: int
    workers: int
    containers: int
    stored: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """How long it takes; which part of the time the parent, the store and the workers are busy; and how many tasks and
    attempts there are, programs built, and questions asked."""

    seconds: float
    parent_busy: float
    store_busy: float
    workers_busy: float
    tasks: int
    attempts: int
    programs: int
    questions: int


class Simulation:
    """One build, event by event. Without *chunks*, each task has one job."""

    def __init__(self, cluster: Cluster, costs: Costs, *, chunks: bool = True):
        self.cluster, self.costs = cluster, costs
        self.assignment, self.sizes = Assignment(cluster.kernels), ChunkSizes()
        self.workers = cluster.workers if chunks else None
        self.caches: list[set[int]] = [set() for _ in range(cluster.containers)]
        self.store = self.busy = self.now = 0.0  # until when the store is busy, how long the workers are, the time
        self.finished = self.tasks = self.attempts = self.programs = self.questions = 0

    def run(self) -> Outcome:
        """Start a task for each worker that is idle, as fast as the parent can, until all kernels are built."""
        idle = list(range(self.cluster.workers))[::-1]
        events: list[tuple[float, int, int, Iterator[float]]] = []  # time, order, worker, the rest of its task
        order, parent = itertools.count(), 0.0
        while self.finished < self.cluster.kernels:
            # What has ended is taken first.
            while idle and not (events and events[0][0] <= parent) and (chunk := self.next_chunk()):
                parent = max(parent, self.now) + self.costs.parent
                worker = idle.pop()
                heapq.heappush(events, (parent, next(order), worker, self.task(worker, chunk)))
            if not events:
                assert self.assignment.stop_waiting(), "all jobs wait"
                continue
            self.now, _, worker, rest = heapq.heappop(events)
            if (seconds := next(rest, None)) is None:
                idle.append(worker)
            else:
                self.busy += seconds
                heapq.heappush(events, (self.now + seconds, next(order), worker, rest))
        parent_busy = self.tasks * self.costs.parent / self.now
        store_busy = self.questions / self.costs.store_rate / self.now
        workers_busy = self.busy / self.now / self.cluster.workers
        counts = self.tasks, self.attempts, self.programs, self.questions
        return Outcome(self.now, parent_busy, store_busy, workers_busy, *counts)

    def next_chunk(self) -> list[int]:
        """Return the jobs of the next task, none if none is ready."""
        ready, first = self.assignment.ready, self.assignment.next()
        if first is None:
            return []
        chunk = [first]
        size = self.sizes.next(ready, self.workers, builds=bool(self.assignment.assigned(first)))
        while len(chunk) < size and (job := self.assignment.next_like(first)) is not None:
            chunk.append(job)
        return chunk

    def task(self, worker: int, chunk: list[int]) -> Iterator[float]:
        """Attempt the jobs of a task; yield how long each part of that takes."""
        self.tasks += 1
        self.attempts += len(chunk)
        ended = []
        for job in chunk:
            start = self.now
            is_built = yield from self.attempt(job, self.caches[worker % self.cluster.containers])
            ended.append((job, self.now - start, is_built))
        for job, seconds, is_built in ended:
            self.sizes.note(seconds, builds=bool(self.assignment.assigned(job)))
            if is_built:
                self.finished += 1
                self.assignment.finished(job)
            else:
                self.assignment.stopped(job, [self.digest(job)], False)

    def attempt(self, job: int, cache: set[int]) -> Generator[float, None, bool]:
        """Attempt a job in a container with this *cache*; return whether it is built."""
        costs, program = self.costs, job % self.cluster.programs
        if self.digest(job) in self.assignment.to_fetch(job):
            cache.add(program)
        yield costs.stopped
        if program not in cache:
            self.questions += 1
            self.store = max(self.store, self.now) + 1 / costs.store_rate
            yield self.store - self.now + costs.latency
            if program < self.cluster.stored * self.cluster.programs:
                cache.add(program)
        if program not in cache and self.digest(job) in self.assignment.assigned(job):
            self.programs += 1
            yield costs.program
            cache.add(program)
        is_built = program in cache
        if is_built:
            yield costs.kernel - costs.stopped
        return is_built

    def digest(self, job: int) -> bytes:
        """Return what stands for the program of a job."""
        return (job % self.cluster.programs).to_bytes(8, "little")


def simulate(cluster: Cluster, costs: Costs, *, chunks: bool = True) -> Outcome:
    """Run one build; without *chunks*, each task has one job."""
    return Simulation(cluster, costs, chunks=chunks).run()


def parent_cost(jobs: int = 2000) -> float:
    """Measure the seconds that the parent needs for a task of one job: with workers that do nothing."""
    from concurrent.futures import Executor, Future
    from typing import Any

    import cloudpickle
    from numba.cuda.autolink.many_kernels import building
    from numba.cuda.autolink.many_kernels.attempts import Attempt

    kernel = cloudpickle.dumps(b"x" * 8192)

    class Nothing(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            cloudpickle.loads(cloudpickle.dumps(args))
            future: Future[Any] = Future()
            future.set_result([Attempt(kernel, (), {}, (), True, 0.075)])
            return future

    start = time.perf_counter()
    building.run_all([bytes(8192) for _ in range(jobs)], Nothing())
    return (time.perf_counter() - start) / jobs


CLUSTERS = (
    Cluster(200, 20, 2, 1),
    Cluster(10_000, 1_000, 16, 1),
    Cluster(10_000, 1_000, 100, 10),
    Cluster(10_000, 1_000, 1_000, 100),
    Cluster(10_000, 1_000, 1_000, 100, stored=1.0),
    Cluster(10_000, 10_000, 1_000, 100),
    Cluster(100_000, 1_000, 1_000, 100, stored=1.0),
    Cluster(10_000, 1_000, 10_000, 1_000),
)


HEADING = (
    " kernels programs workers containers stored | chunks single job | parent store workers |  tasks built questions"
)


def line(cluster: Cluster, costs: Costs) -> str:
    """Return a line of the table."""
    found, single = simulate(cluster, costs), simulate(cluster, costs, chunks=False)
    size = f"{cluster.kernels:8}{cluster.programs:9}{cluster.workers:8}{cluster.containers:11}{cluster.stored:7.0%}"
    busy = f"{found.parent_busy:7.0%}{found.store_busy:6.0%}{found.workers_busy:8.0%}"
    counts = f"{found.tasks:7}{found.programs:6}{found.questions:10}"
    return f"{size} |{found.seconds:5.1f} s{single.seconds:9.1f} s |{busy} |{counts}"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parent", action="store_true", help="measure what the parent needs for a task")
    costs = Costs()
    if parser.parse_args().parent:
        costs = replace(costs, parent=parent_cost())
        print(f"The parent needs {costs.parent * 1e3:.2f} ms for a task.")
    print(HEADING)
    for cluster in CLUSTERS:
        print(line(cluster, costs), flush=True)


if __name__ == "__main__":
    main()
