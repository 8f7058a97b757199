# SPDX-License-Identifier: BSD-2-Clause
"""Time several launches that take turns, and print the lines of the table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping

from numba import cuda
from numba.cuda.cudadrv.driver import Event

Launch = Callable[[], object]


def in_turn(
    launches: Mapping[str, Launch], rounds: int = 15, repeat: int = 20, *, queued: bool = True
) -> dict[str, float]:
    """Return the median seconds of each of *launches*, on the default stream.

    Each is measured *rounds* times, with *repeat* launches at a time. Which of them goes first changes from round to
    round. If *queued*, the device waits until the host has made all *repeat* launches, and only its own time counts.

    Raises RuntimeError if *queued* and a launch waits for the device.
    """
    names = list(launches)
    times: dict[str, list[float]] = {name: [] for name in names}
    measure = _device_seconds if queued else _seconds
    for name in names:
        _seconds(launches[name], repeat)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            times[name].append(measure(launches[name], repeat))
    return {name: statistics.median(each) for name, each in times.items()}


def _device_seconds(launch: Launch, repeat: int) -> float:
    for milliseconds in 3, 30, 300:
        _wait[1, 1](10 * milliseconds)
        start, stop = _record(launch, repeat)
        if not start.query():  # all launches were made before the first of them ran
            return _between(start, stop) / repeat
        stop.synchronize()
    raise RuntimeError("a launch waits for the device: measure it with queued=False")


def _seconds(launch: Launch, repeat: int) -> float:
    return _between(*_record(launch, repeat)) / repeat


def _record(launch: Launch, repeat: int) -> tuple[Event, Event]:
    start, stop = cuda.event(), cuda.event()
    start.record()
    for _ in range(repeat):
        launch()
    stop.record()
    return start, stop


def _between(start: Event, stop: Event) -> float:
    """Return the seconds between two events."""
    stop.synchronize()
    return float(cuda.event_elapsed_time(start, stop)) / 1e3


@cuda.jit
def _wait(steps):
    """Keep the device waiting for about *steps* times 100 microseconds."""
    for _ in range(steps):
        cuda.nanosleep(100_000)


def header() -> None:
    """Print the titles of the columns."""
    print(f"{'work':44}{'with us':>12}{'native':>12}  {'time':>7}  {'error':>8}{'its own':>9}  native is")


def line(title: str, unit: str, ours: float, native: float, error: float, own_error: float, what: str) -> None:
    """Print one contest: rates in *unit* (more is better), errors relative to a reference, and *what* native is."""
    time = f"{(native / ours - 1) * 100:+.1f} %"
    errors = f"{error:8.1e}{own_error:9.1e}"
    print(f"{title:44}{ours:7.0f} {unit:4}{native:7.0f} {unit:4}  {time:>7}  {errors}  {what}", flush=True)
