# SPDX-License-Identifier: BSD-2-Clause
"""Why cached entries were built: what changed from each to the next, as text."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numba.cuda.cudadrv.external_code.cache.cells import CELL, is_named_otherwise
from numba.cuda.cudadrv.external_code.cache.changed_lines import differing_lines
from numba.cuda.cudadrv.external_code.cache.changes import (
    BUILT_AGAIN,
    COMPILED,
    FRONT_END,
    LINES_MOVED,
    MADE_WITH,
    NOT_CACHED,
    OWN_FILE,
    REMOVED,
    Subject,
    call_of,
    edited_lines,
    edits_in_words,
    fact,
    is_inline,
    known_changes,
    lines_in,
    made_with,
    nearest,
    of_same_call,
    subject_of,
    target_of,
    types_of,
    what_differs,
)
from numba.cuda.cudadrv.external_code.cache.entry import DAMAGED, PLACE_OF, StoredEntry
from numba.cuda.cudadrv.external_code.cache.moved_kernels import changes_of_moved, moved_from

from numba_cuda_autolink.printable_texts import did_you_mean, printable

from . import formatting

# Kernels; where there are none, what is compiled and asked. Entries of other kinds help to find these.
_FOR_USERS = ("link", "kernel", NOT_CACHED), ("program", "answer", NOT_CACHED)
# Facts that a line has anyhow, and digests.
_NOT_SHOWN = ("path", "kernel", "types", "architecture", "code", "source", "file", "headers", OWN_FILE, CELL, *COMPILED)
# Words before the names of what an entry contains.
_NAMED = ("module", "value", "define", "closure", "default", "object")
_MOST_CALLS = 3
_MOST_VALUES = 4
_LONGEST_BEGINNING = 60  # characters of a text
KERNELS = "link", "kernel"

_CACHED = " (cache=True)"
# Of record types, as Record(a[type=int32;offset=0],b[type=float32;offset=4];8;False).
_FIELD = re.compile(r"(\w+)\[type=([^;\[\]]*);offset=\d+(?:;title=\w+)?\](,?)")
_SIZE_OF_RECORD = re.compile(r";\d+;(?:True|False)\)")
_ANOTHER_NAME = "IPython has another name for its cell (line information)"
_NOTEBOOKS = "notebook", "ipython"  # whose names are not known


@dataclass(frozen=True)
class _Build:
    entry: StoredEntry
    before: StoredEntry | None  # the one that it is compared with
    new: str  # the architecture, output or text that it is the first of, where earlier ones of its name have others
    is_moved: bool = False  # whether that was in another folder, which is gone
    compiled: _Build | None = None  # of a link, the kernel of ``cache=True`` that the same run compiled for it

    @functools.cached_property
    def changes(self) -> list[str]:
        """What changed since the one that it is compared with."""
        if self.before is None:
            return []
        return changes_of_moved(self.before, self.entry) if self.is_moved else known_changes(self.before, self.entry)

    @functools.cached_property
    def why(self) -> tuple[list[str], list[str]]:
        """The causes, and which lines of Python files were edited."""
        causes, edited = _causes_of(self)
        if cell := fact(self.entry, CELL):
            notebook = re.compile(f"^{re.escape(os.path.basename(fact(self.entry, 'path')))}(?=:| changed)")
            causes, edited = ([notebook.sub(cell, each) for each in some] for some in (causes, edited))
            is_moved = all(each.endswith(LINES_MOVED) for each in self.changes)
            if self.before is not None and is_moved and is_named_otherwise(self.before.facts, self.entry.facts):
                causes = [_ANOTHER_NAME]
        return causes, edited

    @functools.cached_property
    def made_with(self) -> str:
        """The values and functions that a kernel was made with, if it was not built before."""
        is_first = self.before is None and not self.entry.base and not fact(self.entry, DAMAGED)
        return made_with(self.entry, exactly=True) if is_first else ""


def builds(entries: Sequence[StoredEntry], known: Sequence[StoredEntry], *, every_kind: bool) -> list[str]:
    """Return a line for each of *entries*, latest first: when, for which architecture, and why it was built; last, what
    is not cached. One stands for those that one run built for the same cause. What they are compared with is among the
    *known* ones."""
    return [line for line, _ in _lines(entries, known, every_kind)]


def _lines(
    entries: Sequence[StoredEntry], known: Sequence[StoredEntry], every_kind: bool
) -> Iterator[tuple[str, list[StoredEntry]]]:
    """Yield the lines, each with the entries that it is of."""
    shown = _shown(entries, every_kind)
    names = _names(shown)
    for of_run in _by_cause(_with_earlier(shown, known), names):
        first = of_run[0]
        named = list(dict.fromkeys(_name_of(each, names) for each in of_run))
        count = len(of_run) if len(named) == 1 else 1
        name = formatting.listed(named, _MOST_CALLS)
        text = _describe(first, name)
        if count > 1 and first.made_with:
            made = list(dict.fromkeys(each.made_with for each in reversed(of_run)))
            more = f"; {len(made) - _MOST_VALUES} more" if len(made) > _MOST_VALUES else ""
            values = "; ".join(made[:_MOST_VALUES]) + more
            text = f"{name}: first build{first.new}, {MADE_WITH}{values}"
        repeated = f" ({count} builds)" if count > 1 else ""
        parts = [part for each in of_run for part in (each, each.compiled) if part is not None]
        yield f"{_written(first.entry)}  {_line(first, text)}{repeated}", [part.entry for part in parts]


def _by_cause(builds: Iterable[_Build], names: Mapping[bytes, str]) -> list[list[_Build]]:
    """Return the *builds* that are told together: those of one run for the same cause, among which its workers may have
    built others, and successive ones."""
    found: list[list[_Build]] = []
    of_runs: dict[tuple[Any, ...], list[_Build]] = {}
    last: tuple[Any, ...] = ()
    for build in builds:
        cause = build.entry.run, *_rebuilt_with(build, names)
        if cause == last:
            found[-1].append(build)
        elif cause[0] and cause in of_runs:
            of_runs[cause].append(build)
            continue
        else:
            found.append([build])
            of_runs[cause] = found[-1]
        last = cause
    return found


def _rebuilt_with(build: _Build, names: Mapping[bytes, str]) -> tuple[Any, ...]:
    """Return what is the same for kernels that one run built again for the same cause."""
    entry, name = build.entry, _name_of(build, names)
    if build.made_with:
        return target_of(entry), f"{build.new}, {MADE_WITH}", name
    if build.before is None and not entry.base:
        return (entry.digest,)
    why = _describe(build, name).removeprefix(name)
    return target_of(entry), why, "" if entry.kind in KERNELS else name


def as_data(entries: Sequence[StoredEntry], known: Sequence[StoredEntry], *, every_kind: bool) -> list[dict[str, Any]]:
    """Return the builds as plain data, latest first: the name, kind, architecture, argument types and path of each,
    when it and the one that it is compared with were built, in seconds since the epoch, its causes, and the lines of
    Python files that were edited."""
    shown = _shown(entries, every_kind)
    names = _names(shown)
    found = []
    for build in _with_earlier(shown, known):
        entry, before = build.entry, build.before
        causes, edited = build.why
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
        lines.append(f"{_written(entry)}  {_line(build, _describe(build, _name_of(build, names)))}")
        place = fact(entry, "path") or entry.name
        types = fact(entry, "types")
        values = made_with(entry, exactly=True)
        made = f", {MADE_WITH}{printable(values)}" if values else ""
        lines.append(f"    {entry.kind} of {printable(place)}{f', {types}' if types else ''}{made}, {_size(entry)}")
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


def find(
    entries: Sequence[StoredEntry], known: Sequence[StoredEntry], name: str, *, every_kind: bool
) -> list[StoredEntry]:
    """Return those of *entries* whose name contains *name*, in a form in which it is printed, or as the whole path; of
    several names in one, all. If there are none, return the builds of all that contains a file, function, module or
    value of this name, or one with *name* in it; or else those whose lines have it. What they are compared with is
    among the *known* ones."""
    if found := _named_so(entries, name):
        return found
    parts = [_named_so(entries, each) for each in re.split(r" and |, (?![^()]*\))", name)]
    if all(parts):
        return list({each.digest: each for some in parts for each in some}.values())
    cause = name.removeprefix("value ")
    for contains in (operator.contains, lambda causes, part: any(part in each for each in causes)):
        using = {subject_of(each) for each in entries if contains(_causes(each), cause)}
        if found := [each for each in entries if subject_of(each) in using]:
            return found
    return [each for line, shown in _lines(entries, known, every_kind) if name in line for each in shown]


def _named_so(entries: Iterable[StoredEntry], name: str) -> list[StoredEntry]:
    wanted = {name.removesuffix(_CACHED), os.path.normpath(name) if name else ""}
    return [entry for entry in entries if any(each in form for form in _forms(entry) for each in wanted)]


def names_like(entries: Sequence[StoredEntry], name: str) -> str:
    """Return ``; did you mean NAME?`` for the name of one of *entries*, or of what one contains, that looks most like
    *name*; empty if there is none."""
    files = _files(entries)
    named = (_named(subject_of(each), files[fact(each, "path")], each) for each in entries)
    names = dict.fromkeys((*named, *(cause for each in entries for cause in sorted(_causes(each)))))
    names |= dict.fromkeys(each.rpartition(":")[2] for each in names)
    in_other_case = next((each for each in names if each.lower() == name.lower()), "")
    return f"; did you mean {in_other_case}?" if in_other_case else did_you_mean(name, names)


def _forms(entry: StoredEntry) -> list[str]:
    subject, path = subject_of(entry), fact(entry, "path")
    ways = itertools.product((False, True), repeat=2)
    return [entry.name, *(_named(subject, path, entry, *way).removesuffix(_CACHED) for way in ways)]


def _causes(entry: StoredEntry) -> set[str]:
    """Return the names of what an entry contains, as lines of changes have them."""
    found = set()
    for subject, label, _ in entry.facts:
        kind, _, name = label.partition(" ")
        if kind not in _NAMED:
            name = "" if label in _NOT_SHOWN or label.startswith(PLACE_OF) else label
        found |= {subject, os.path.basename(subject), *subject.split(":"), name, *name.split(".")}
    return found - {""}


def _shown(entries: Sequence[StoredEntry], every_kind: bool) -> Sequence[StoredEntry]:
    kinds = () if every_kind else _FOR_USERS
    found = ([each for each in entries if each.kind in of_users] for of_users in kinds)
    return next((each for each in found if any(entry.kind != NOT_CACHED for entry in each)), entries)


def _names(entries: Sequence[StoredEntry]) -> Mapping[bytes, str]:
    """Return a name for each of *entries*, by its digest: with argument types and the name in the code where there are
    several."""
    files = _files(entries)
    several = [defaultdict[Subject, set[str]](set) for _ in (types_of, _entry_of)]
    for entry in entries:
        for given, quality in zip(several, (types_of, _entry_of), strict=True):
            given[subject_of(entry)].add(quality(entry))
    names = {}
    for entry in entries:
        subject = subject_of(entry)
        names[entry.digest] = _named(
            subject, files[fact(entry, "path")], entry, *(len(given[subject]) > 1 for given in several)
        )
    return names


def _entry_of(entry: StoredEntry) -> str:
    return fact(entry, "entry_name") if entry.kind == "link" else ""


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


def _named(subject: Subject, file: str, entry: StoredEntry, with_types: bool = False, with_entry: bool = False) -> str:
    kernel = fact(entry, "kernel").rpartition("<locals>.")[2]
    if cell := fact(entry, CELL):
        file = cell if file in _NOTEBOOKS else f"{file} {cell}"
    if kernel:
        types = f"({_SIZE_OF_RECORD.sub(')', _FIELD.sub(_field, types_of(entry)))})" if with_types else ""
        own = _entry_of(entry)
        given = f" as entry {own!r}" if own and (with_entry or own != kernel) else ""
        return f"{file}:{kernel}{types}{given}{_CACHED if 'kernel' in (entry.kind, fact(entry, 'kind')) else ''}"
    if file:
        return file
    return subject.name if entry.kind in ("program", "link", NOT_CACHED) else f"{entry.kind} {subject.name}"


def _field(found: re.Match[str]) -> str:
    return f"{found[1]}: {found[2]}{', ' if found[3] else ''}"


def _line(build: _Build, text: str) -> str:
    return f"{target_of(build.entry):7} {printable(text)}"


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
    found: list[_Build] = []
    for entry in sorted(entries, key=lambda entry: (entry.written, entry.digest)):
        of_name = earlier.setdefault(subject_of(entry), [])
        before = _base(entry, by_digest, of_name)
        new = _first_of(entry, of_name)
        if is_inline(entry) and not of_name and any(each.name == entry.name for each in earlier if earlier[each]):
            new = f" of {_beginning(entry)}"
        moved = before is None and not entry.base and not of_name
        of_others = (each for some in earlier.values() for each in some)
        before = moved_from(entry, of_others) if moved else before
        found.append(_Build(entry, before, new, is_moved=moved and before is not None))
        of_name.append(entry)
    return sorted(_paired(found)[::-1], key=lambda each: each.entry.kind == NOT_CACHED)


def _base(
    entry: StoredEntry, entries: Mapping[bytes, StoredEntry], earlier: Sequence[StoredEntry]
) -> StoredEntry | None:
    """Return what *entry* is compared with: what its record names, as the last run knew it, or else, as where that was
    removed or is on another machine, the latest of the *earlier* ones of other runs that were built for the same call
    and made with the same values; ``None`` if there is none."""
    if entry.base in entries:
        return entries[entry.base].as_known(entry.facts_before, entry.read_before)
    of_call = call_of(entry), made_with(entry)
    alike = (each for each in reversed(earlier) if (call_of(each), made_with(each)) == of_call)
    return next((each for each in alike if each.digest != entry.digest and not each.run == entry.run != ""), None)


def with_bases(entries: Iterable[StoredEntry]) -> list[StoredEntry]:
    """Return *entries* without notes of what is cached since. Those of programs have the run of the first link that
    uses them, and name what they are compared with: the program that the link before used in their place."""
    listed = {each.digest: each for each in entries}
    latest = defaultdict[tuple[str, ...], float](float)
    for each in listed.values():
        for cached in (each, *(listed[digest] for digest in each.uses if digest in listed)):
            latest[_place(cached)] = max(each.used, latest[_place(cached)])
    known = {
        digest: each for digest, each in listed.items() if each.kind != NOT_CACHED or each.used == latest[_place(each)]
    }
    used: dict[bytes, StoredEntry] = {}
    for link in sorted(known.values(), key=lambda each: each.written):
        for digest in link.uses:
            used.setdefault(digest, link)
    found = []
    for entry in known.values():
        first = used.get(entry.digest)
        link_before = known.get(first.base) if first is not None else None
        programs = [known[each] for each in link_before.uses if each in known] if link_before is not None else []
        base = nearest(entry, of_same_call(entry, programs)) if entry.kind == "program" else None
        run = entry.run or ("" if first is None else first.run)
        found.append(dataclasses.replace(entry, run=run, base=entry.base if base is None else base.digest))
    return found


def _place(entry: StoredEntry) -> tuple[str, ...]:
    """Return what stands for the kernel, file or text of an entry, or for what a note says is not cached."""
    kind, path = fact(entry, "kind") or entry.kind, fact(entry, "path")
    return kind, path, fact(entry, "kernel"), "" if path else entry.name


def _paired(found: Sequence[_Build]) -> list[_Build]:
    """Return *found* with each compiled kernel as part of the link that the same run made of it just before."""
    paired: dict[bytes, _Build] = {}
    links: dict[tuple[str, ...], bytes] = {}  # the latest of each run and kernel, while it has no compiled kernel
    for build in found:
        entry = build.entry
        if entry.kind == "kernel" and (link := links.pop(_run_of(entry), None)) is not None:
            paired[link] = dataclasses.replace(paired[link], compiled=build)
            continue
        paired[entry.digest] = build
        if entry.kind == "link" and entry.run:
            links[_run_of(entry)] = entry.digest
    return list(paired.values())


def _run_of(entry: StoredEntry) -> tuple[str, ...]:
    return entry.run, fact(entry, "path"), fact(entry, "kernel"), types_of(entry)


def _first_of(entry: StoredEntry, earlier: Sequence[StoredEntry]) -> str:
    """Return what *entry* is the first of, if all *earlier* ones of its name have another: `` for sm_90``."""
    for word, quality in _QUALITIES:
        alike = [each for each in earlier if quality(each) == quality(entry)]
        if earlier and not alike:
            return f" {word}{quality(entry)}" if quality(entry) else ""
        earlier = alike
    is_other_call = earlier and fact(entry, "kernel") and all(types_of(each) != types_of(entry) for each in earlier)
    return " for these types" if is_other_call else ""


def _beginning(entry: StoredEntry) -> str:
    """Return how the text of inline C++ begins."""
    text = next((text for label, text in entry.texts if label.startswith("source ")), "").strip()
    first = text.partition("\n")[0].rstrip()
    return f"the text {first[:_LONGEST_BEGINNING]!r}..." if first else "this text"


def _output(entry: StoredEntry) -> str:
    return fact(entry, "output")


def _front_end(entry: StoredEntry) -> str:
    return fact(entry, FRONT_END)


_QUALITIES = (
    ("for ", target_of),
    ("for ", _output),
    ("with ", _front_end),
    ("with ", lines_in),
)


def _describe(build: _Build, name: str) -> str:
    """Return what was built, which users know by *name*, and why."""
    own = fact(build.entry, "kernel").rpartition("<locals>.")[2] or os.path.basename(name)
    causes, _ = build.why
    if build.entry.kind == NOT_CACHED:
        return f"{name} {causes[0]}"
    # What is of the entry itself needs no name.
    first, *more = (each.removeprefix(f"{own}: ") for each in causes)
    itself = next((word for word in (" changed", " is not cached") if first.startswith(f"{own}{word}")), "")
    return ", ".join([name + first.removeprefix(own) if itself else f"{name}: {first}", *more])


def _causes_of(build: _Build) -> tuple[list[str], list[str]]:
    """Return why something was built, and which lines of Python files were edited: these are the causes where nothing
    else is known."""
    entry, before, compiled = build.entry, build.before, build.compiled
    if entry.kind == NOT_CACHED:
        return [f"is not cached: {' '.join(fact(entry, 'reason').split())}"], []
    if fact(entry, DAMAGED):
        return ["its entry was damaged"], []
    if entry.base == entry.digest:
        return [BUILT_AGAIN], []
    if before is None and entry.base:
        return [REMOVED], []
    if before is None:
        calls = entry.name.partition(": ")[2] if entry.kind == "program" else ""
        for_calls = formatting.listed(re.split(r"(?<=[)]), ", calls), _MOST_CALLS)
        values = f", {MADE_WITH}{build.made_with}" if build.made_with else ""
        return [f"first build{build.new}{f' of {for_calls}' if calls else ''}{values}"], []
    causes = build.changes or (compiled.changes if compiled is not None else [])
    edited = edited_lines(before, entry)
    if compiled is not None and compiled.before is not None:
        edited = edited_lines(compiled.before, compiled.entry) | edited
    of_files = [each for each in causes if each.partition(" changed")[0].endswith(".py")]
    others = [each for each in causes if each not in of_files]
    in_lines = edits_in_words(edited)
    in_lines += [each for each in of_files if each.partition(" changed")[0] not in edited]
    if in_lines and all(each.endswith(LINES_MOVED) for each in others):
        others = [f"{each}{' (line information)' if others else ''}" for each in in_lines]
    return others or [what_differs(before, entry)], [f"{file}{lines}" for file, lines in edited.items()]


def _size(entry: StoredEntry) -> str:
    return formatting.size(entry.size)


def _written(entry: StoredEntry) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.written))
