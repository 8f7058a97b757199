# SPDX-License-Identifier: BSD-2-Clause
"""Time several launches that take turns, and print the lines of the table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping

from numba import cuda

Launch = Callable[[], object]


def in_turn(launches: Mapping[str, Launch], rounds: int = 15, repeat: int = 20) -> dict[str, float]:
    """Return the median seconds of each of *launches*, on the default stream.

    Each is measured *rounds* times, with *repeat* launches at a time, so that the host's time for the first of them
    hardly counts. Which of them goes first changes from round to round.
    """
    names = list(launches)
    times: dict[str, list[float]] = {name: [] for name in names}
    for name in names:
        _seconds(launches[name], repeat)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            times[name].append(_seconds(launches[name], repeat))
    return {name: statistics.median(each) for name, each in times.items()}


def _seconds(launch: Launch, repeat: int) -> float:
    start, stop = cuda.event(), cuda.event()
    start.record()
    for _ in range(repeat):
        launch()
    stop.record()
    stop.synchronize()
    return cuda.event_elapsed_time(start, stop) / 1e3 / repeat


def header() -> None:
    """Print the titles of the columns."""
    print(f"{'work':44}{'with us':>12}{'native':>12}  {'time':>7}  {'error':>8}{'its own':>9}  native is")


def line(title: str, unit: str, ours: float, native: float, error: float, own_error: float, what: str) -> None:
    """Print one contest: rates in *unit* (more is better), errors relative to a reference, and *what* native is."""
    time = f"{(native / ours - 1) * 100:+.1f} %"
    errors = f"{error:8.1e}{own_error:9.1e}"
    print(f"{title:44}{ours:7.0f} {unit:4}{native:7.0f} {unit:4}  {time:>7}  {errors}  {what}", flush=True)
