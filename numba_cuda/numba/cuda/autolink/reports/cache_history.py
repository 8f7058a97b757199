# SPDX-License-Identifier: BSD-2-Clause
"""Why cached entries were built: what changed from each to the next, as text."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from numba.cuda.cudadrv.external_code.cache.changes import (
    architecture_of,
    call_of,
    changes_in_words,
    differences,
    differing_lines,
)
from numba.cuda.cudadrv.external_code.cache.entry import StoredEntry

from numba_cuda_autolink.printable_texts import printable

from . import formatting

# What is compiled, linked and asked; entries of other kinds help to find these.
_FOR_USERS = ("program", "link", "kernel", "answer", "not cached")
_MOST_CALLS = 3
_MOST_COMPARED = 8


class _Build(NamedTuple):
    entry: StoredEntry
    before: StoredEntry | None  # the nearest earlier one of its call and architecture
    others: list[StoredEntry]  # all earlier ones of its kind and name


def builds(entries: Sequence[StoredEntry], *, every_kind: bool) -> list[str]:
    """Return a line for each of *entries*, latest first: when, for which architecture, and why it was built."""
    shown = [each for each in entries if every_kind or each.kind in _FOR_USERS] or entries
    names = {each.name for each in shown}
    files = [name.partition(": ")[0] for name in names]
    lines = []
    for build in _with_earlier(shown):
        file, _, calls = build.entry.name.partition(": ")
        file = os.path.basename(file) if os.path.isabs(file) else file
        what = _describe(build, file)
        if calls and (build.before is None or files.count(file) > 1):
            what += f" ({formatting.listed(re.split(r'(?<=[)]), ', calls), _MOST_CALLS)})"
        lines.append(f"{_written(build.entry)}  {architecture_of(build.entry):7} {printable(what)}")
    return lines


def details(entries: Iterable[StoredEntry]) -> list[str]:
    """Return lines about each of *entries*, latest first: all that it depends on, or what of it changed."""
    lines = []
    for entry, before, _ in _with_earlier(entries):
        size = formatting.size(entry.size)
        lines.append(f"{entry.kind} {entry.name!r}, {size}, written {_written(entry)}")
        parts = differences(before.parts, entry.parts) if before else map(": ".join, entry.parts)
        lines += [f"  {part}" for part in parts]
        if before is not None:
            changed = (differing_lines(label, before, entry) for label, _ in entry.parts)
            lines += [f"    {line}" for each in changed for line in each]
    return lines


def _with_earlier(entries: Iterable[StoredEntry]) -> list[_Build]:
    same: dict[Any, list[StoredEntry]] = {}
    named: dict[Any, list[StoredEntry]] = {}
    found = []
    for entry in sorted(entries, key=lambda entry: (entry.written, entry.digest)):
        of_call = same.setdefault((call_of(entry), architecture_of(entry)), [])
        of_name = named.setdefault((entry.kind, entry.name), [])
        latest = of_call[: -_MOST_COMPARED - 1 : -1]
        before = min(latest, key=lambda each: len(changes_in_words(each, entry)), default=None)
        found.append(_Build(entry, before, of_name.copy()))
        of_call.append(entry)
        of_name.append(entry)
    return found[::-1]


def _describe(build: _Build, name: str) -> str:
    """Return what was built, which users know by *name*, and why."""
    entry, before, others = build
    subject = name if entry.kind in ("program", "link") else f"{entry.kind} {name}"
    if entry.kind == "not cached":
        return f"{name} is not cached: {'; '.join(': '.join(part) for part in entry.parts[2:])}"
    if before is None:
        architecture = architecture_of(entry)
        if any(architecture_of(each) == architecture for each in others):
            return f"{subject}: first build for other argument types"
        return f"{subject}: first build{f' for {architecture}' if others and architecture else ''}"
    first, *more = changes_in_words(before, entry)
    own = first.removeprefix(f"{name} ")
    text = f"{name} {own}" if own.startswith("changed") else f"{subject}: {first}"
    return ", ".join([text, *more])


def _written(entry: StoredEntry) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.written))
