# SPDX-License-Identifier: BSD-2-Clause
"""Why cached entries were built: what changed from each to the next, as text."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from numba.cuda.cudadrv.external_code.cache.changes import (
    Subject,
    changes_in_words,
    differing_lines,
    fact,
    subject_of,
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
    # The nearest earlier one of its file and name for its architecture: of the same argument types, if there is one.
    before: StoredEntry | None
    is_first: bool  # of its file and name, for any architecture


def builds(entries: Sequence[StoredEntry], *, every_kind: bool) -> list[str]:
    """Return a line for each of *entries*, latest first: when, for which architecture, and why it was built."""
    shown = _shown(entries, every_kind)
    names = _names(shown)
    return [_line(build, names) for build in _with_earlier(shown)]


def details(entries: Sequence[StoredEntry], *, every_kind: bool) -> list[str]:
    """Return the same lines, each followed by the place of what was built, what that was compared with, the lines that
    changed in short texts, and all that is known of it if it was compared with nothing."""
    shown = _shown(entries, every_kind)
    names = _names(shown)
    lines = []
    for build in _with_earlier(shown):
        entry, before, _ = build
        lines.append(_line(build, names))
        place = fact(entry, "path") or entry.name
        types = fact(entry, "types")
        lines.append(f"    {entry.kind} of {printable(place)}{f', {types}' if types else ''}, {_size(entry)}")
        if before is not None:
            lines.append(f"    compared with the build of {_written(before)}")
            changed = (differing_lines(label, before, entry) for label, _ in entry.parts if entry.kind != "link")
            lines += [f"    {line}" for each in changed for line in each]
            continue
        known = entry.facts or tuple(("", label, value) for label, value in entry.parts)
        lines += [
            f"    {printable(f'{of}: ' if of else '')}{printable(label)}: {printable(value)}"
            for of, label, value in known
            if label not in ("path", "kernel", "types", "architecture", "code", "source", "file", "headers")
        ]
    return lines


def name_of(entry: StoredEntry) -> str:
    """Return what users know *entry* by: ``kernels.py:scale`` for a kernel, a file or a name."""
    return _named(subject_of(entry), os.path.basename(fact(entry, "path")), entry)


def _shown(entries: Sequence[StoredEntry], every_kind: bool) -> Sequence[StoredEntry]:
    return [each for each in entries if every_kind or each.kind in _FOR_USERS] or entries


def _names(entries: Iterable[StoredEntry]) -> Mapping[str, str]:
    """Return short names of the paths of *entries*: with as many folders as tell them apart."""
    paths = {fact(entry, "path") for entry in entries}
    short = {}
    for path in paths:
        parts = path.split(os.sep)
        others = [each.split(os.sep) for each in paths if each != path]
        count = next(
            (n for n in range(1, len(parts)) if not any(each[-n:] == parts[-n:] for each in others)), len(parts)
        )
        short[path] = os.sep.join(parts[-count:])
    return short


def _named(subject: Subject, file: str, entry: StoredEntry) -> str:
    kernel = fact(entry, "kernel").rpartition("<locals>.")[2]
    if kernel:
        given = f" as {_given(entry)}" if _given(entry) else ""
        return f"{file}:{kernel}{given}{' (cache=True)' if entry.kind == 'kernel' else ''}"
    if file:
        return file
    return subject.name if entry.kind in ("program", "link") else f"{entry.kind} {subject.name}"


def _line(build: _Build, names: Mapping[str, str]) -> str:
    entry = build.entry
    name = _named(subject_of(entry), names[fact(entry, "path")], entry)
    text = printable(_describe(build, name))
    return f"{_written(entry)}  {fact(entry, 'architecture') or dict(entry.parts).get('architecture', ''):7} {text}"


def _with_earlier(entries: Iterable[StoredEntry]) -> list[_Build]:
    earlier: dict[Subject, list[StoredEntry]] = {}
    found = []
    for entry in sorted(entries, key=lambda entry: (entry.written, entry.digest)):
        of_name = earlier.setdefault(subject_of(entry), [])
        alike = [each for each in of_name if (_target(each), _given(each)) == (_target(entry), _given(entry))]
        of_types = [each for each in alike if fact(each, "types") == fact(entry, "types")]
        latest = (of_types or alike)[: -_MOST_COMPARED - 1 : -1]
        before = min(latest, key=lambda each: len(changes_in_words(each, entry)), default=None)
        found.append(_Build(entry, before, not of_name))
        of_name.append(entry)
    return found[::-1]


def _given(entry: StoredEntry) -> str:
    return fact(entry, "entry_name")


def _target(entry: StoredEntry) -> str:
    return fact(entry, "architecture") or dict(entry.parts).get("architecture", "")


def _describe(build: _Build, name: str) -> str:
    """Return what was built, which users know by *name*, and why."""
    entry, before, is_first = build
    if entry.kind == "not cached":
        return f"{entry.name} is not cached: {'; '.join(': '.join(part) for part in entry.parts[2:])}"
    if before is None:
        architecture = _target(entry)
        text = f"{name}: first build{f' for {architecture}' if not is_first and architecture else ''}"
        calls = entry.name.partition(": ")[2] if entry.kind == "program" else ""
        return f"{text} ({formatting.listed(re.split(r'(?<=[)]), ', calls), _MOST_CALLS)})" if calls else text
    own = fact(entry, "kernel").rpartition("<locals>.")[2] or os.path.basename(name)
    # What is of the entry itself needs no name.
    first, *more = (each.removeprefix(f"{own}: ") for each in changes_in_words(before, entry))
    first = name + first.removeprefix(own) if first.startswith(f"{own} changed") else f"{name}: {first}"
    return ", ".join([first, *more])


def _size(entry: StoredEntry) -> str:
    return formatting.size(entry.size)


def _written(entry: StoredEntry) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.written))
