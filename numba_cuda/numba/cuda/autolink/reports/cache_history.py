# SPDX-License-Identifier: BSD-2-Clause
"""Why cached entries were built: what changed from each to the next, as text."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from numba.cuda.cudadrv.external_code.cache.changes import (
    COMPILED,
    FRONT_END,
    NOT_CACHED,
    OWN_FILE,
    Subject,
    changes_in_words,
    differing_lines,
    fact,
    is_inline,
    lines_in,
    nearest,
    subject_of,
    target_of,
    types_of,
)
from numba.cuda.cudadrv.external_code.cache.entry import DAMAGED, StoredEntry

from numba_cuda_autolink.printable_texts import did_you_mean, printable

from . import formatting

# What is compiled, linked and asked; entries of other kinds help to find these.
_FOR_USERS = ("program", "link", "kernel", "answer", NOT_CACHED)
# Facts that a line has anyhow, and digests.
_NOT_SHOWN = ("path", "kernel", "types", "architecture", "code", "source", "file", "headers", OWN_FILE, *COMPILED)
_MOST_CALLS = 3


class _Build(NamedTuple):
    entry: StoredEntry
    before: StoredEntry | None  # the nearest earlier one of its file and name, argument types and architecture
    new: str  # the architecture, output or text that it is the first of, where earlier ones of its name have others


def builds(entries: Sequence[StoredEntry], *, every_kind: bool) -> list[str]:
    """Return a line for each of *entries*, latest first: when, for which architecture, and why it was built; last, what
    is not cached. One stands for those after another that say the same."""
    shown = _shown(entries, every_kind)
    names = _names(shown)
    lines = [(build, _line(build, names)) for build in _with_earlier(shown)]
    found = []
    for _, same in itertools.groupby(lines, key=lambda each: (each[1], each[0].before is None and each[0].entry)):
        (build, text), *others = same
        found.append(f"{_written(build.entry)}  {text}{f' ({len(others) + 1} builds)' if others else ''}")
    return found


def details(entries: Sequence[StoredEntry], *, every_kind: bool) -> list[str]:
    """Return the same lines, each followed by the place of what was built, what that was compared with, the lines that
    changed in short texts, and all that is known of it if it was compared with nothing."""
    shown = _shown(entries, every_kind)
    names = _names(shown)
    lines = []
    for build in _with_earlier(shown):
        entry, before, _ = build
        lines.append(f"{_written(entry)}  {_line(build, names)}")
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
            if label not in _NOT_SHOWN
        ]
    return lines


def find(entries: Sequence[StoredEntry], name: str) -> list[StoredEntry]:
    """Return those of *entries* whose name contains *name*, in a form in which it is printed, or as the whole path. If
    there are none, return the builds of all that contains a file, function, module or value of this name."""
    wanted = os.path.normpath(name) if name else ""
    found = [each for each in entries if any(name in form or wanted in form for form in _forms(each))]
    if found:
        return found
    cause = name.removeprefix("value ")
    using = {subject_of(each) for each in entries if cause in _causes(each)}
    return [each for each in entries if subject_of(each) in using]


def names_like(entries: Sequence[StoredEntry], name: str) -> str:
    """Return ``; did you mean NAME?`` for the name of one of *entries*, or of what one contains, that looks most like
    *name*; empty if there is none."""
    files = _files(entries)
    named = (_named(subject_of(each), files[fact(each, "path")], each) for each in entries)
    names = dict.fromkeys((*named, *(cause for each in entries for cause in sorted(_causes(each)))))
    names |= dict.fromkeys(each.rpartition(":")[2] for each in names)
    in_other_case = next((each for each in names if each.lower() == name.lower()), "")
    return f"; did you mean {in_other_case}?" if in_other_case else did_you_mean(name, names)


def _forms(entry: StoredEntry) -> tuple[str, ...]:
    subject, path = subject_of(entry), fact(entry, "path")
    return entry.name, *(_named(subject, path, entry, with_types=with_types) for with_types in (False, True))


def _causes(entry: StoredEntry) -> set[str]:
    """Return the names of what an entry contains, as lines of changes have them."""
    found = set()
    for subject, label, _ in entry.facts:
        kind, _, name = label.partition(" ")
        if kind not in ("module", "value", "define", "closure"):
            name = "" if label in _NOT_SHOWN else label
        found |= {subject, os.path.basename(subject), *subject.split(":"), name, *name.split(".")}
    return found - {""}


def _shown(entries: Sequence[StoredEntry], every_kind: bool) -> Sequence[StoredEntry]:
    return [each for each in entries if every_kind or each.kind in _FOR_USERS] or entries


def _names(entries: Sequence[StoredEntry]) -> Mapping[bytes, str]:
    """Return a name for each of *entries*, by its digest: with argument types where there are several."""
    files = _files(entries)
    types = defaultdict[Subject, set[str]](set)
    for entry in entries:
        types[subject_of(entry)].add(types_of(entry))
    return {
        entry.digest: _named(
            subject_of(entry), files[fact(entry, "path")], entry, with_types=len(types[subject_of(entry)]) > 1
        )
        for entry in entries
    }


def _files(entries: Iterable[StoredEntry]) -> Mapping[str, str]:
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


def _named(subject: Subject, file: str, entry: StoredEntry, *, with_types: bool = False) -> str:
    kernel = fact(entry, "kernel").rpartition("<locals>.")[2]
    if kernel:
        types = f"({types_of(entry)})" if with_types else ""
        own = fact(entry, "entry_name")
        given = f" as {own}" if own not in ("", kernel) else ""
        return (
            f"{file}:{kernel}{types}{given}{' (cache=True)' if 'kernel' in (entry.kind, fact(entry, 'kind')) else ''}"
        )
    if file:
        return file
    return subject.name if entry.kind in ("program", "link", NOT_CACHED) else f"{entry.kind} {subject.name}"


def _line(build: _Build, names: Mapping[bytes, str]) -> str:
    return f"{target_of(build.entry):7} {printable(_describe(build, names[build.entry.digest]))}"


def _with_earlier(entries: Iterable[StoredEntry]) -> list[_Build]:
    earlier: dict[Subject, list[StoredEntry]] = {}
    found = []
    for entry in sorted(entries, key=lambda entry: (entry.written, entry.digest)):
        of_name = earlier.setdefault(subject_of(entry), [])
        before = nearest(entry, of_name)
        new = _first_of(entry, of_name)
        if is_inline(entry) and not of_name and any(each.name == entry.name for each in earlier if earlier[each]):
            new = " of this text"
        found.append(_Build(entry, before, new))
        of_name.append(entry)
    return sorted(found[::-1], key=lambda each: each.entry.kind == NOT_CACHED)


def _first_of(entry: StoredEntry, earlier: Sequence[StoredEntry]) -> str:
    """Return what *entry* is the first of, if all *earlier* ones of its name have another: `` for sm_90``."""
    for word, quality in (("for", target_of), ("for", _output), ("with", _front_end), ("with", lines_in)):
        if earlier and quality(entry) not in ("", *map(quality, earlier)):
            return f" {word} {quality(entry)}"
    return ""


def _output(entry: StoredEntry) -> str:
    return fact(entry, "output")


def _front_end(entry: StoredEntry) -> str:
    return fact(entry, FRONT_END)


def _describe(build: _Build, name: str) -> str:
    """Return what was built, which users know by *name*, and why."""
    entry, before, new = build
    if entry.kind == NOT_CACHED:
        return f"{name} is not cached: {' '.join(fact(entry, 'reason').split())}"
    if fact(entry, DAMAGED):
        return f"{name}: its entry was damaged"
    if before is None:
        text = f"{name}: first build{new}"
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
