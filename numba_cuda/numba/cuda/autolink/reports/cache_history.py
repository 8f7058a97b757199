# SPDX-License-Identifier: BSD-2-Clause
"""Why cached entries were built: what changed from each to the next, as text."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from numba.cuda.cudadrv.external_code.cache.changes import (
    COMPILED,
    FRONT_END,
    MADE_WITH,
    NOT_CACHED,
    OWN_FILE,
    Subject,
    call_of,
    differing_lines,
    edited_lines,
    fact,
    is_inline,
    known_changes,
    lines_in,
    nearest,
    of_same_call,
    subject_of,
    target_of,
    types_of,
    what_differs,
)
from numba.cuda.cudadrv.external_code.cache.entry import DAMAGED, StoredEntry

from numba_cuda_autolink.printable_texts import did_you_mean, printable

from . import formatting

# Kernels; where there are none, what is compiled and asked. Entries of other kinds help to find these.
_FOR_USERS = ("link", "kernel", NOT_CACHED), ("program", "answer", NOT_CACHED)
# Facts that a line has anyhow, and digests.
_NOT_SHOWN = ("path", "kernel", "types", "architecture", "code", "source", "file", "headers", OWN_FILE, *COMPILED)
# Words before the names of what an entry contains.
_NAMED = ("module", "value", "define", "closure", "default")
_MOST_CALLS = 3


_CHANGE_OF_VALUE = re.compile(r"value (?:[\w.]*\.)?(\w+(?:=|: ).*)")


class _Build(NamedTuple):
    entry: StoredEntry
    before: StoredEntry | None  # the one that it is compared with
    new: str  # the architecture, output or text that it is the first of, where earlier ones of its name have others
    compiled: _Build | None = None  # of a link, the kernel of ``cache=True`` that the same run compiled for it


def builds(entries: Sequence[StoredEntry], known: Sequence[StoredEntry], *, every_kind: bool) -> list[str]:
    """Return a line for each of *entries*, latest first: when, for which architecture, and why it was built; last, what
    is not cached. One stands for those that one run built for the same cause. What they are compared with is among the
    *known* ones."""
    shown = _shown(entries, every_kind)
    names = _names(shown)
    lines = []
    for _, of_run in itertools.groupby(_with_earlier(shown, known), key=lambda each: _rebuilt_with(each, names)):
        first, *others = of_run
        named = list(dict.fromkeys(_name_of(each, names) for each in (first, *others)))
        count = len(others) + 1 if len(named) == 1 else 1
        line = _line(first, formatting.listed(named, _MOST_CALLS))
        if count > 1 and _is_sibling(first):
            line = f"{target_of(first.entry):7} {printable(named[0])}: {MADE_WITH}{count} other values"
        lines.append(f"{_written(first.entry)}  {line}{f' ({count} builds)' if count > 1 else ''}")
    return lines


def _rebuilt_with(build: _Build, names: Mapping[bytes, str]) -> tuple[Any, ...]:
    """Return what is the same for kernels that one run built again for the same cause."""
    entry, name = build.entry, _name_of(build, names)
    if build.before is None:
        return (entry.digest,)
    why = MADE_WITH if _is_sibling(build) else _describe(build, name).removeprefix(name)
    return entry.run, target_of(entry), why, name if entry.kind != "link" or _is_sibling(build) else ""


def _is_sibling(build: _Build) -> bool:
    """Whether a kernel differs from the one that it is compared with, of the same run, in the values that it was made
    with."""
    before = build.before
    if before is None or before.run != build.entry.run:
        return False
    causes = known_changes(before, build.entry)
    return bool(causes) and all(MADE_WITH in each for each in causes)


def as_data(entries: Sequence[StoredEntry], known: Sequence[StoredEntry], *, every_kind: bool) -> list[dict[str, Any]]:
    """Return the builds as plain data, latest first: the name, kind, architecture, argument types and path of each,
    when it and the one that it is compared with were built, in seconds since the epoch, its causes, and the lines of
    Python files that were edited."""
    shown = _shown(entries, every_kind)
    names = _names(shown)
    found = []
    for build in _with_earlier(shown, known):
        entry, before = build.entry, build.before
        causes, edited = _causes_of(build)
        what = {"name": _name_of(build, names), "kind": entry.kind, "architecture": target_of(entry)}
        where = {"types": types_of(entry), "path": fact(entry, "path")}
        when = {"built": entry.written, "compared_with": None if before is None else before.written}
        found.append({**what, **where, **when, "causes": causes, "edited": edited})
    return found


def details(entries: Sequence[StoredEntry], known: Sequence[StoredEntry], *, every_kind: bool) -> list[str]:
    """Return the same lines, each followed by the place of what was built, what that was compared with, the lines that
    changed in short texts, and all that is known of it if it was compared with nothing."""
    shown = _shown(entries, every_kind)
    names = _names(shown)
    lines = []
    by_digest = {each.digest: each for each in known}
    for build in _with_earlier(shown, known):
        entry, before = build.entry, build.before
        lines.append(f"{_written(entry)}  {_line(build, _name_of(build, names))}")
        place = fact(entry, "path") or entry.name
        types = fact(entry, "types")
        lines.append(f"    {entry.kind} of {printable(place)}{f', {types}' if types else ''}, {_size(entry)}")
        if before is not None:
            lines.append(f"    compared with the build of {_written(before)}")
            lines += [f"    {line}" for line in _changed_texts(entry, before, by_digest)]
            continue
        all_facts = entry.facts or tuple(("", label, value) for label, value in entry.parts)
        lines += [
            f"    {printable(f'{of}: ' if of else '')}{printable(label)}: {printable(value)}"
            for of, label, value in all_facts
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
        if kind not in _NAMED:
            name = "" if label in _NOT_SHOWN else label
        found |= {subject, os.path.basename(subject), *subject.split(":"), name, *name.split(".")}
    return found - {""}


def _shown(entries: Sequence[StoredEntry], every_kind: bool) -> Sequence[StoredEntry]:
    kinds = () if every_kind else _FOR_USERS
    found = ([each for each in entries if each.kind in of_users] for of_users in kinds)
    return next((each for each in found if any(entry.kind != NOT_CACHED for entry in each)), entries)


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


def _line(build: _Build, name: str) -> str:
    return f"{target_of(build.entry):7} {printable(_describe(build, name))}"


def _name_of(build: _Build, names: Mapping[bytes, str]) -> str:
    return names[(build.compiled or build).entry.digest]


def _changed_texts(entry: StoredEntry, before: StoredEntry, known: Mapping[bytes, StoredEntry]) -> list[str]:
    """Return the lines that changed in the texts of *entry*, of a link in those of its programs that are new."""
    if entry.kind != "link":
        return [line for label, _ in entry.texts for line in differing_lines(label, before, entry)]
    new, gone = (
        [known[each] for each in some if each in known and each not in others]
        for some, others in ((entry.uses, before.uses), (before.uses, entry.uses))
    )
    pairs = [(each, old) for each in new for old in gone if each.base == old.digest or each.name == old.name]
    return [line for each, old in pairs for line in _changed_texts(each, old, known)]


def _with_earlier(entries: Iterable[StoredEntry], known: Iterable[StoredEntry]) -> list[_Build]:
    earlier: dict[Subject, list[StoredEntry]] = {}
    by_digest = {each.digest: each for each in (*known, *entries)}
    of_code = defaultdict[tuple[str, str], list[StoredEntry]](list)
    for entry in known:
        of_code[entry.kind, _own_code(entry)].append(entry)
    found: list[_Build] = []
    for entry in sorted(entries, key=lambda entry: (entry.written, entry.digest)):
        of_name = earlier.setdefault(subject_of(entry), [])
        before = _base(entry, by_digest, of_name)
        is_first = before is None and entry.kind in ("link", "kernel")
        moved = _moved_from(entry, of_code[entry.kind, _own_code(entry)]) if is_first else ""
        new = moved or _first_of(entry, of_name)
        if is_inline(entry) and not of_name and any(each.name == entry.name for each in earlier if earlier[each]):
            new = " of this text"
        found.append(_Build(entry, before, new))
        of_name.append(entry)
    return sorted(_paired(found)[::-1], key=lambda each: each.entry.kind == NOT_CACHED)


def _base(
    entry: StoredEntry, entries: Mapping[bytes, StoredEntry], earlier: Sequence[StoredEntry]
) -> StoredEntry | None:
    """Return what *entry* is compared with: what its record names, or else, as where that was removed or is on another
    machine, the latest of the *earlier* ones that were built for the same call; ``None`` if there is none."""
    if entry.base in entries:
        return entries[entry.base]
    of_call = (each for each in reversed(earlier) if call_of(each) == call_of(entry))
    return next((each for each in of_call if each.digest != entry.digest), None)


def with_bases(entries: Iterable[StoredEntry]) -> list[StoredEntry]:
    """Return *entries*, of which those of programs name what they are compared with: the program that the link before
    the first link that uses them used in their place."""
    known = {each.digest: each for each in entries}
    used: dict[bytes, StoredEntry] = {}
    for link in sorted(known.values(), key=lambda each: each.written):
        for digest in link.uses:
            used.setdefault(digest, link)
    found = []
    for entry in known.values():
        link_before = known.get(used[entry.digest].base) if entry.digest in used else None
        programs = [known[each] for each in link_before.uses if each in known] if link_before is not None else []
        base = nearest(entry, of_same_call(entry, programs)) if entry.kind == "program" else None
        found.append(entry if base is None else dataclasses.replace(entry, base=base.digest))
    return found


def _paired(found: Sequence[_Build]) -> list[_Build]:
    """Return *found* with each compiled kernel as part of the link that the same run made of it just before."""
    paired: dict[bytes, _Build] = {}
    links: dict[tuple[str, ...], bytes] = {}  # the latest of each run and kernel, while it has no compiled kernel
    for build in found:
        entry = build.entry
        if entry.kind == "kernel" and (link := links.pop(_run_of(entry), None)) is not None:
            paired[link] = paired[link]._replace(compiled=build)
            continue
        paired[entry.digest] = build
        if entry.kind == "link" and entry.run:
            links[_run_of(entry)] = entry.digest
    return list(paired.values())


def _run_of(entry: StoredEntry) -> tuple[str, ...]:
    return entry.run, fact(entry, "path"), fact(entry, "kernel"), types_of(entry)


def _first_of(entry: StoredEntry, earlier: Sequence[StoredEntry]) -> str:
    """Return what *entry* is the first of, if all *earlier* ones of its name have another: `` for sm_90``."""
    for word, quality in (("for", target_of), ("for", _output), ("with", _front_end), ("with", lines_in)):
        alike = [each for each in earlier if quality(each) == quality(entry)]
        if earlier and quality(entry) and not alike:
            return f" {word} {quality(entry)}"
        earlier = alike
    return ""


def _moved_from(entry: StoredEntry, of_code: Iterable[StoredEntry]) -> str:
    """Return the folder that a kernel was moved from, if one *of* the same *code* was built in a file that is gone:
    ``, moved from FOLDER``."""
    path = fact(entry, "path")
    others = dict.fromkeys(fact(each, "path") for each in of_code if each.written < entry.written)
    for other in others:
        folder, name = os.path.split(other)
        if path and name == os.path.basename(path) and other != path and not os.path.exists(other):
            return f", moved from {folder}"
    return ""


def _own_code(entry: StoredEntry) -> str:
    """Return the digest of a kernel's own Python; empty for other entries."""
    own = fact(entry, "kernel").rpartition("<locals>.")[2]
    return next((value for subject, label, value in entry.facts if label == "code" and subject == own), "")


def _output(entry: StoredEntry) -> str:
    return fact(entry, "output")


def _front_end(entry: StoredEntry) -> str:
    return fact(entry, FRONT_END)


def _describe(build: _Build, name: str) -> str:
    """Return what was built, which users know by *name*, and why."""
    own = fact(build.entry, "kernel").rpartition("<locals>.")[2] or os.path.basename(name)
    causes, edited = _causes_of(build)
    if build.entry.kind == NOT_CACHED:
        return f"{name} {causes[0]}"
    if not causes:
        return f"{name}: edited: {', '.join(edited)}"
    # What is of the entry itself needs no name.
    first, *more = (each.removeprefix(f"{own}: ") for each in causes)
    first = name + first.removeprefix(own) if first.startswith(f"{own} changed") else f"{name}: {first}"
    text = ", ".join([first, *more])
    return f"{text}; edited: {', '.join(edited)}" if edited else text


def _causes_of(build: _Build) -> tuple[list[str], list[str]]:
    """Return why something was built, and which lines of Python files were edited, besides those in the causes."""
    entry, before, new, compiled = build
    if entry.kind == NOT_CACHED:
        return [f"is not cached: {' '.join(fact(entry, 'reason').split())}"], []
    if fact(entry, DAMAGED):
        return ["its entry was damaged"], []
    if entry.base == entry.digest:
        return ["built again, as its entry had been removed from the cache"], []
    if before is None:
        calls = entry.name.partition(": ")[2] if entry.kind == "program" else ""
        for_calls = formatting.listed(re.split(r"(?<=[)]), ", calls), _MOST_CALLS)
        return [f"first build{new}{f' of {for_calls}' if calls else ''}"], []
    causes, edited = known_changes(before, entry), []
    if compiled is not None and compiled.before is not None:
        for cause in known_changes(compiled.before, compiled.entry):
            file, is_file, lines = cause.partition(" changed")
            if not (is_file and file.endswith(".py")):
                causes += [] if _is_said(cause, causes) else [cause]
            elif not (lines and any(each.endswith(f" changed{lines}") for each in causes)):
                edited.append(f"{file}{lines}")
    if not causes:
        edited = edited or edited_lines(before, entry)
        causes = [] if edited else [what_differs(before, entry)]
    return list(dict.fromkeys(causes)), edited


def _is_said(cause: str, causes: Sequence[str]) -> bool:
    """Whether *causes* have the change of a value, which *cause* names with the function that reads it."""
    of_value = _CHANGE_OF_VALUE.match(cause)
    return of_value is not None and any(each.endswith(f"value {of_value[1]}") for each in causes)


def _size(entry: StoredEntry) -> str:
    return formatting.size(entry.size)


def _written(entry: StoredEntry) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.written))
