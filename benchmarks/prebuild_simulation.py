# SPDX-License-Identifier: BSD-2-Clause
"""Compute how long a cluster takes to build many kernels, from measured costs, and what limits it.

``python benchmarks/prebuild_simulation.py`` simulates `autolink.build_many` event by event: a parent that starts
attempts and takes their results, workers on many containers, and a store that they share. Each line is one cluster.
``--parent`` measures what the parent needs for an attempt here, in place of the default.
"""

from __future__ import annotations

import argparse
import heapq
import time
from dataclasses import dataclass, replace

from numba.cuda.autolink.many_kernels.assignment import Assignment


@dataclass(frozen=True)
class Costs:
    """Seconds that the parent and its scheduler need for one attempt, as Dask's does; that an attempt takes that stops,
    a program, and a kernel whose programs are there, measured on two cores; and that a question to the store takes. S3
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
    """How long it takes, how often the parent and the workers are busy, and how often something is asked or built."""

    seconds: float
    parent_busy: float
    workers_busy: float
    attempts: int
    programs: int
    questions: int


def simulate(cluster: Cluster, costs: Costs) -> Outcome:
    """Run all events of one build."""
    assignment = Assignment(cluster.kernels)
    is_stored = [number < cluster.stored * cluster.programs for number in range(cluster.programs)]
    caches: list[set[int]] = [set() for _ in range(cluster.containers)]
    idle = list(range(cluster.workers))[::-1]
    events: list[tuple[float, int, int, int, bool]] = []  # end, order, worker, job, whether it is built
    parent = store = busy = 0.0
    attempts = programs = questions = finished = order = 0
    now = parent_busy = 0.0
    while finished < cluster.kernels:
        while idle and (job := assignment.next()) is not None:
            worker = idle.pop()
            parent = max(parent, now) + costs.parent
            parent_busy += costs.parent
            program, cache = job % cluster.programs, caches[worker % cluster.containers]
            digest = program.to_bytes(8, "little")
            duration = costs.kernel
            if digest in assignment.to_fetch(job):
                cache.add(program)
            if program not in cache:
                questions += 1
                store = max(store, parent) + 1 / costs.store_rate
                duration += store - parent + costs.latency
                if is_stored[program]:
                    cache.add(program)
            is_built = program in cache or digest in assignment.assigned(job)
            if not is_built:
                duration += costs.stopped - costs.kernel
            elif program not in cache:
                duration += costs.program
                programs += 1
                cache.add(program)
            attempts += 1
            busy += duration
            order += 1
            heapq.heappush(events, (parent + duration, order, worker, job, is_built))
        if not events:
            assert assignment.stop_waiting(), "all jobs wait"
            continue
        now, _, worker, job, is_built = heapq.heappop(events)
        idle.append(worker)
        if is_built:
            finished += 1
            assignment.finished(job)
        else:
            assignment.stopped(job, [(job % cluster.programs).to_bytes(8, "little")], False)
    return Outcome(now, parent_busy / now, busy / (now * cluster.workers), attempts, programs, questions)


def parent_cost(jobs: int = 2000) -> float:
    """Measure the seconds that the parent needs for an attempt: with workers that do nothing."""
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
            future.set_result(Attempt(kernel, (), {}, (), True))
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


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parent", action="store_true", help="measure what the parent needs for an attempt")
    options = parser.parse_args()
    costs = replace(Costs(), parent=parent_cost()) if options.parent else Costs()
    print(f"parent: {costs.parent * 1e3:.2f} ms an attempt, at most {1 / costs.parent:.0f} attempts a second")
    print(" kernels programs workers containers stored |  seconds  parent workers attempts built questions")
    for cluster in CLUSTERS:
        found = simulate(cluster, costs)
        size = f"{cluster.kernels:8}{cluster.programs:9}{cluster.workers:8}{cluster.containers:11}{cluster.stored:7.0%}"
        busy = f"{found.parent_busy:8.0%}{found.workers_busy:8.0%}"
        print(f"{size} |{found.seconds:9.1f}{busy}{found.attempts:9}{found.programs:6}{found.questions:10}")


if __name__ == "__main__":
    main()
