# SPDX-License-Identifier: BSD-2-Clause
"""The timeline of a build: its lanes, its totals, and a trace for Perfetto and Chrome."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from numba.cuda.cudadrv.external_code.diagnostics.timeline import Span

from .records import BuildReport, KernelReport

KINDS = ("front end", "hook", "compile", "NVVM", "link")


@dataclass(frozen=True)
class Placed:
    """A span in a lane: how many spans of its lane it lies within (*depth*), and its own seconds, without those of the
    spans within it."""

    span: Span
    depth: int
    own: float


@dataclass(frozen=True)
class Lane:
    """The spans of one thread, or of one child process that worked for it, in the order in which they began."""

    process: int
    thread: int
    placed: tuple[Placed, ...]


@dataclass(frozen=True)
class Total:
    """All spans of one kind: their number, their own seconds together, and how many came from where."""

    kind: str
    number: int
    seconds: float
    origins: tuple[tuple[str, int], ...]


def lanes(spans: Iterable[Span]) -> list[Lane]:
    """Return the lanes of *spans*, by when their threads began. A thread that waits for a child process
    spends no time of its own."""
    found: defaultdict[tuple[int, int], list[Span]] = defaultdict(list)
    of_threads: defaultdict[int, list[Span]] = defaultdict(list)
    for span in sorted(spans, key=lambda span: (span.start, -span.seconds)):
        found[span.process, span.thread].append(span)
        of_threads[span.thread].append(span)
    own = {id(placed.span): placed.own for members in of_threads.values() for placed in _nested(members)}
    return [
        Lane(*key, tuple(replace(placed, own=own[id(placed.span)]) for placed in _nested(members)))
        for key, members in found.items()
    ]


def _nested(spans: Sequence[Span]) -> tuple[Placed, ...]:
    """Return *spans* of one thread, in the order in which they began, with what each lies within."""
    depths: list[int] = []
    own = [span.seconds for span in spans]
    around: list[int] = []
    for number, span in enumerate(spans):
        while around and not _lies_within(span, spans[around[-1]]):
            around.pop()
        depths.append(len(around))
        if around:
            own[around[-1]] -= span.seconds
        around.append(number)
    return tuple(Placed(span, depth, max(left, 0.0)) for span, depth, left in zip(spans, depths, own, strict=True))


def _lies_within(span: Span, other: Span) -> bool:
    """Whether *span*, which began later, lies within *other*; their two clocks may differ by some microseconds."""
    return span.start + span.seconds / 2 < other.end and span.end < other.end + 1e-4


def totals_of(build: BuildReport) -> list[Total]:
    """Return the totals of a *build*. Where the process had the answers of objects from earlier builds, they are
    counted as from memory."""
    asked = {(call.name, call.argtypes) for call in build.calls if call.seconds is not None}
    return totals(build.timeline, len(asked) - sum(span.kind == "hook" for span in build.timeline))


def totals(spans: Iterable[Span], remembered: int = 0) -> list[Total]:
    """Return the total of each kind of span, in the order of a build, with so many *remembered* answers."""
    seconds: defaultdict[str, float] = defaultdict(float)
    origins: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for lane in lanes(spans):
        for placed in lane.placed:
            seconds[placed.span.kind] += placed.own
            origins[placed.span.kind][placed.span.origin] += 1
    if remembered > 0:
        origins["hook"]["memory"] += remembered
    return [
        Total(kind, origins[kind].total(), seconds[kind], tuple(sorted(origins[kind].items())))
        for kind in sorted(origins, key=lambda kind: KINDS.index(kind) if kind in KINDS else len(KINDS))
    ]


def to_trace(report: KernelReport) -> str:
    """Return the timelines of all builds as JSON in Chrome's trace event format, which Perfetto opens too. Times are in
    microseconds since the first span began."""
    spans = list(dict.fromkeys(span for build in report.builds for span in build.timeline))
    first = min((span.start for span in spans), default=0.0)
    events: list[dict[str, object]] = []
    for number, process in enumerate(dict.fromkeys(lane.process for lane in lanes(spans))):
        name = f"child process {process}" if number else f"Python {process}"
        events.append({"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}})
    events += [
        {
            "ph": "X",
            "name": f"{span.kind}: {span.name}",
            "cat": span.kind,
            "ts": round((span.start - first) * 1e6, 3),
            "dur": round(span.seconds * 1e6, 3),
            "pid": span.process,
            "tid": span.thread,
            "args": {"origin": span.origin},
        }
        for span in sorted(spans, key=lambda span: span.start)
    ]
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events})
