# SPDX-License-Identifier: BSD-2-Clause
"""What changed from one cached entry to another, in the words of users, of what their records know."""

from __future__ import annotations

import functools
import itertools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .changed_lines import changed_lines
from .entry import CLASS, DAMAGED, FILE, MADE_BY, MODULE, PLACE_OF, Facts, StoredEntry

FRONT_END = "front end"
COMPILED_FOR = "compiled for"  # the architecture that NVVM gets, where it compiles the kernel
# What an entry is for, which is not compared.
_IDENTITY = ("path", "kernel", "architecture", "output", "types", "link key", "entry_name", FRONT_END, DAMAGED)
# What is told if nothing else changed: the file that contains the kernel, and how its programs were compiled.
OWN_FILE = "file of the kernel"
COMPILED = ("working directory", "packages", "program", "at")
NOT_CACHED = "not cached"
INLINE = "inline C++"  # the name of C++ in a Python program
MADE_WITH = "made with "  # before the closure variables of a kernel that differ
BUILT_AGAIN = "built again, as its entry had been removed from the cache"
REMOVED = "what the last run used was removed from the cache, so what changed is not known"
LINES_MOVED = ": lines moved (line information)"
_CLOSURE = "closure "  # before the name of such a variable
_OBJECT = "object "  # before the name of a function or another object that is known by another name than its own
_LINES = ("line", "lines")  # of functions, which count where compiled code has line information
_TOOLS = (
    *("NVRTC", "NVVM", "nvJitLink", "cuda.core", "llvmlite", "numba-cuda", "numba-cuda-autolink"),
    *("Python", "NumPy", "Numba"),
)
_CONTENT = ("code", "source", "file")
# Words for parts that may differ while no fact does, by how their labels begin.
_REST = {
    "LLVM IR": "the code that Numba made of its Python",
    "NVVM's options": "options of NVVM",
    "NVVM": "NVVM",
    "own code": "the code that Numba made of its Python",
    "entry": "its name in the code",
    "input ": "code that it calls, which was compiled again",
    "places": "the folder of its files",
    "headers": "where its headers are searched for, which includes the working directory",
    "values": "something that its functions reach",
    "variant": "what its objects return for calls",
    "schema": "numba-cuda-autolink",
    "format": "numba-cuda-autolink",
}
_DIGEST = re.compile(r"<(?:(\S+ \(.*\)) |.*)[0-9a-f]{16}>")  # of a value: with what it is, if that is known


class Subject(NamedTuple):
    """What an entry is of: entries of one subject are compared."""

    kind: str
    path: str  # of the file that it is in, if it is in one; of inline C++ a digest of its text
    name: str


def fact(entry: StoredEntry, label: str) -> str:
    """Return what *entry* is for, as its facts say, such as its ``"architecture"``; empty if they do not."""
    return next((value for subject, each, value in entry.facts if each == label and not subject), "")


def subject_of(entry: StoredEntry) -> Subject:
    """Return what *entry* is of: a kernel or a source in a file, or what has its name."""
    path = fact(entry, "path")
    if is_inline(entry):
        return Subject(
            entry.kind, next((value for _, label, value in entry.facts if label == "source"), ""), entry.name
        )
    if key := fact(entry, "link key"):
        return Subject(entry.kind, path, f"of {entry.name} with link key {key}")
    return Subject(entry.kind, path, fact(entry, "kernel") or (entry.name.partition(": ")[2] if path else entry.name))


def is_inline(entry: StoredEntry) -> bool:
    """Whether *entry* is of inline C++ in a Python program, which its facts do not name."""
    return entry.kind == "program" and "(" in entry.name and not fact(entry, "path")


def _facts_of(entry: StoredEntry) -> dict[tuple[str, str], str]:
    facts: Facts = entry.facts or tuple(("", label, value) for label, value in entry.parts)
    return {(subject, label): value for subject, label, value in facts if subject or label not in _IDENTITY}


def call_of(entry: StoredEntry) -> tuple[str, ...]:
    """Return the argument types, architecture, output, name and front end of *entry*, and of a program whether it has
    line information, in which it does not differ from what it is compared with."""
    labels = ("output", "entry_name", FRONT_END)
    return types_of(entry), target_of(entry), *(fact(entry, label) for label in labels), lines_in(entry)


def lines_in(entry: StoredEntry) -> str:
    """Return in words whether a program has line information, as all have for the emulator; empty for others."""
    if entry.kind != "program":
        return ""
    return "line information" if any(label == "lineinfo" for _, label, _ in entry.facts) else "no line information"


def made_with(entry: StoredEntry, *, exactly: bool = False) -> str:
    """Return the values and functions that a kernel was made with, as ``n=2, op=add``; *exactly*, with their places, by
    which functions of one name are told apart."""
    own = fact(entry, "kernel").rpartition("<locals>.")[2]
    facts = {label: value for of, label, value in entry.facts if own and of == own}
    places = {label: facts.get(f"{PLACE_OF}{label}", "") if exactly else "" for label in facts}
    return ", ".join(
        f"{label.removeprefix(_CLOSURE)}={value}{f' ({places[label]})' if places[label] else ''}"
        for label, value in facts.items()
        if label.startswith(_CLOSURE)
    )


def values_of(entry: StoredEntry) -> set[tuple[str, str, str]]:
    """Return the values, functions and objects that the code of a kernel was compiled with."""
    return {each for each in entry.facts if each[1].startswith(("value ", "default ", _CLOSURE, _OBJECT))}


def types_of(entry: StoredEntry) -> str:
    return fact(entry, "types").strip("()")


def target_of(entry: StoredEntry) -> str:
    return fact(entry, "architecture") or dict(entry.parts).get("architecture", "")


def of_same_call(entry: StoredEntry, others: Iterable[StoredEntry]) -> list[StoredEntry]:
    """Return those of *others* that are of the same subject and call as *entry*."""
    of_call = subject_of(entry), call_of(entry)
    return [each for each in others if each.digest != entry.digest and (subject_of(each), call_of(each)) == of_call]


def nearest(entry: StoredEntry, others: Sequence[StoredEntry]) -> StoredEntry | None:
    """Return the one of *others* that differs from *entry* in least, the last of several; ``None`` if there is none.
    One that was made with the same values is nearer than all that were not."""

    own, own_values = made_with(entry, exactly=True), _closed_over(entry)

    def difference(before: StoredEntry) -> tuple[int, int, bool]:
        others = len(own_values ^ _closed_over(before))
        return others, len(changes_in_words(before, entry)), made_with(before, exactly=True) != own

    return min(reversed(others), key=difference, default=None)


def _closed_over(entry: StoredEntry) -> set[tuple[str, str]]:
    return {(label, value) for _, label, value in entry.facts if label.startswith(_CLOSURE)}


def _is_same_around(before: StoredEntry, after: StoredEntry) -> bool:
    """Whether the files of two kernels are known to differ in the lines of the kernels alone."""
    around = [_lines_around(dict(each.lines)) for each in (before, after)]
    return None not in around and around[0] == around[1]


def _lines_around(lines: dict[str, tuple[str, ...]]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return digests of the lines before and after the kernel in its file, if they are known."""
    own = next((each for label, each in lines.items() if label.startswith("code ")), ())
    if not own or OWN_FILE not in lines:
        return None
    start = sum(1 for _ in itertools.takewhile(lambda line: not line, own))
    return lines[OWN_FILE][:start], lines[OWN_FILE][len(own) :]


def changes_in_words(before: StoredEntry, after: StoredEntry) -> list[str]:
    """Return what changed from *before* to *after*, for users; if nothing that they know of is known, the lines of
    Python that were edited, or else what differs."""
    found = known_changes(before, after) or edits_in_words(edited_lines(before, after))
    return found or [what_differs(before, after)]


def edits_in_words(edited: Mapping[str, str]) -> list[str]:
    """Return what `edited_lines` returns as changes: ``m.py changed: line 8``."""
    return [f"{file} changed{lines}" for file, lines in edited.items()]


def edited_lines(before: StoredEntry, after: StoredEntry) -> dict[str, str]:
    """Return which lines were edited in the files of the Python functions of two kernels, and in the classes of their
    objects: by the file, as ``: line 8``."""
    own = os.path.basename(fact(after, "path"))
    files = ((own if label == OWN_FILE else label.removeprefix(FILE), label) for label, _ in after.lines)
    python = [(file, label) for file, label in files if label.startswith(FILE) and file.endswith((own, ".py"))]
    edited = ((file, changed_lines(label, before, after)) for file, label in python)
    return dict(_edits_of_classes(before, after)) | {file: lines for file, lines in edited if lines}


class _Change(NamedTuple):
    """A fact that differs: ``None`` is that of an entry which has none."""

    subject: str
    label: str
    old: str | None
    new: str | None

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(each for each in (self.old, self.new) if each is not None)


class _Facts:
    """The facts of two entries, in the words of users."""

    def __init__(self, before: StoredEntry, after: StoredEntry):
        self.old, self.new = _facts_of(before), _facts_of(after)
        self.subjects = tuple({subject for subject, _ in each} for each in (self.old, self.new))
        keys = dict.fromkeys((*self.new, *self.old))
        self.changes = [_Change(*key, *values) for key in keys if len(set(values := self.of(*key))) > 1]
        for number, change in enumerate(self.changes):
            if change.label.startswith(_OBJECT) and self.is_same(change.subject, "code"):
                # One of the two is known by its own name, which is no fact.
                own = change.label.removeprefix(_OBJECT)
                old, new = (own if each is None else each for each in change[2:])
                self.changes[number] = change._replace(old=old, new=new)

    def of(self, subject: str, label: str) -> tuple[str | None, str | None]:
        return self.old.get((subject, label)), self.new.get((subject, label))

    def is_same(self, subject: str, label: str) -> bool:
        old, new = self.of(subject, label)
        return old == new

    def is_in_both(self, subject: str) -> bool:
        return all(subject in each for each in self.subjects)

    def is_in_one(self, subject: str) -> bool:
        return len([each for each in self.subjects if subject in each]) == 1

    @functools.cached_property
    def moved(self) -> dict[str, str]:
        """The files, sources and functions of one entry alone that have the content of one of the other alone, by their
        names, with both names in words."""
        texts: list[dict[str, str]] = []
        for number, of in enumerate((self.old, self.new)):
            alone = self.subjects[number] - self.subjects[1 - number]
            texts.append({text: key[0] for key, text in of.items() if key[0] in alone and key[1] in _CONTENT})
        pairs = [(texts[0][text], texts[1][text]) for text in texts[0].keys() & texts[1].keys()]
        return {name: f"{old} -> {new} (of the same content)" for old, new in pairs for name in (old, new)}

    def place_of(self, change: _Change) -> str:
        old, new = self.of(change.subject, f"{PLACE_OF}{change.label}")
        return new or old or ""


def known_changes(before: StoredEntry, after: StoredEntry) -> list[str]:
    """Return what changed from *before* to *after*, of what users know: the Python of a kernel, files and what changed
    in them, options, versions."""
    facts = _Facts(before, after)
    changes = [each for each in facts.changes if _is_told(each, facts)]
    found: list[str] = []
    made_with = [each for each in changes if each.label.startswith(_CLOSURE) and None not in each]
    for subject in dict.fromkeys(each.subject for each in made_with):
        found.append(_made_with_in_words(subject, [each for each in made_with if each.subject == subject]))
    for change in _without_consequences(changes, facts):
        if change not in made_with:
            found += _in_words(change, facts, before, after)
    if not facts.is_same("", OWN_FILE) and not _is_same_around(before, after):
        found.append(f"{os.path.basename(fact(after, 'path'))} changed{changed_lines(OWN_FILE, before, after)}")
    found += [f"{subject} is not cached: {why}" for (subject, label), why in facts.new.items() if label == NOT_CACHED]
    calls = [each for each in facts.changes if each.label == "calls"]
    found = found or [_difference(each) for each in calls if facts.is_in_both(each.subject)]  # follow from the others
    moved = [each.subject for each in facts.changes if each.label in _LINES and None not in each]
    found = found or _compiled_otherwise(facts.old, facts.new) or [f"{each}{LINES_MOVED}" for each in moved]
    return list(dict.fromkeys(found))


def _is_told(change: _Change, facts: _Facts) -> bool:
    """Whether users know a fact by itself."""
    subject, label = change.subject, change.label
    if label in (OWN_FILE, NOT_CACHED, "calls", *_LINES) or label.startswith(PLACE_OF):
        return False
    if subject and label in COMPILED:
        return not facts.is_in_both(subject)
    if label in (*_TOOLS, COMPILED_FOR, MODULE) and None in change:
        return False
    if label == "code":  # which another Python compiles to other instructions
        return facts.is_same("", "Python") or not facts.is_in_both(subject)
    return not label.startswith(_OBJECT) or facts.is_same(subject, "code")  # else the edit of the function says it


def _without_consequences(changes: Iterable[_Change], facts: _Facts) -> list[_Change]:
    """Return *changes* without those that follow from others."""
    changes = list(changes)
    objects = [each for each in changes if each.label.startswith((_OBJECT, _CLOSURE)) and None not in each]
    known_as = [text for each in objects for text in each.texts]
    attributes = tuple(f"value {each.subject}.{each.label.partition(' ')[2]}." for each in objects)
    kept, seen = [], set()
    for change in changes:
        subject, label = change.subject, change.label
        file = subject.rpartition(":")[0]
        if not subject and label.startswith(attributes):
            continue
        if not facts.is_in_both(subject):
            other_object = _is_of_objects(facts.of(subject, MADE_BY), known_as)
            if subject.rpartition(":")[2] in known_as or other_object or facts.is_in_one(file):
                continue
        elif label == MADE_BY or (label != "file" and not facts.is_same(subject, MADE_BY)):
            if label != MADE_BY or _is_of_objects(change.texts, known_as):
                continue
        elif label.startswith("value ") and (of_module := (file, *change[1:])) in seen:
            continue  # of a module, which several of its functions read
        elif label.startswith("value "):
            seen.add(of_module)
        kept.append(change)
    # An edit of a source or header may include others of CUDA.
    has_edit = any(each.label in ("source", "file") for each in kept)
    kept = [each for each in kept if not (each.label == "headers" and has_edit)]
    return [each for each in kept if not _is_new_value(each) or not any(_is_cause_of(other, each) for other in kept)]


def _is_new_value(change: _Change) -> bool:
    """Whether a function reads a value that it did not read, or no longer does."""
    return change.label.startswith("value ") and None in change


def _is_cause_of(change: _Change, new_value: _Change) -> bool:
    """Whether a change is one of the same function, by which it reads another value."""
    return change.subject == new_value.subject and not _is_new_value(change)


def _is_of_objects(made_by: Iterable[str | None], known_as: Iterable[str]) -> bool:
    """Whether what a source is *made by* is among objects that changed, or in tuples of them."""
    return any(each and each in text for each in made_by for text in known_as)


def _compiled_otherwise(old: dict[tuple[str, str], str], new: dict[tuple[str, str], str]) -> list[str]:
    """Return which programs were compiled again, of which nothing that users know of changed, and where."""
    found = []
    for subject in [subject for subject, label in new if subject and label == "program"]:
        if old.get((subject, "program")) != new[subject, "program"]:
            if moved := _moved_files(old, new):
                found += moved
                continue
            packages = [each.get((subject, "packages"), "") for each in (old, new)]
            if packages[0] != packages[1] and all(packages):
                found.append(f"another Python environment: {' -> '.join(packages)}")
                continue
            folders = [each.get((subject, "working directory"), "") for each in (old, new)]
            where = f" in another working directory: {' -> '.join(folders)}" if folders[0] != folders[1] else " again"
            found.append(f"{subject}: compiled{where}")
    return found


def _other_file(name: str, before: StoredEntry, after: StoredEntry) -> tuple[str, str] | None:
    """Return the paths of the files of a *name* that two entries read, relative to the folder of what was built where
    they are in it, if the entries read two files: one that moved with that folder, or with a source, is one."""
    entries = before, after
    old, new = ({of: path for of, label, path in each.facts if label == "at"} for each in entries)
    if not (name in old and name in new):
        return None
    folders = [os.path.dirname(fact(each, "path")) for each in entries]
    sources = [subject for subject, label, _ in after.facts if label == "include_paths" and subject in old.keys() & new]
    places = [folders, *([os.path.dirname(each[source]) for each in (old, new)] for source in sources)]
    paths = old[name], new[name]
    if paths[0] == paths[1] or any(
        len({os.path.relpath(*pair) for pair in zip(paths, each, strict=True)}) == 1 for each in places if all(each)
    ):
        return None
    first, second = (
        path.removeprefix(os.path.join(folder, "")) if folder else path
        for path, folder in zip(paths, folders, strict=True)
    )
    return first, second


def _moved_files(old: dict[tuple[str, str], str], new: dict[tuple[str, str], str]) -> list[str]:
    """Return which files were found elsewhere: ``window.h: inc/window.h -> window.h``."""
    found = []
    for key, path in new.items():
        if key[1] == "at" and old.get(key, path) != path:
            base = os.path.commonpath([os.path.dirname(each) for each in (old[key], path)])
            found.append(f"{key[0]}: {' -> '.join(os.path.relpath(each, base) for each in (old[key], path))}")
    return found


def what_differs(before: StoredEntry, after: StoredEntry) -> str:
    """Return in which parts the entries differ, where no fact does."""
    named = [_words(_REST, each) or each for each in _different_labels(dict(before.parts), dict(after.parts))]
    named = [each for each in named if each != "undefined"] or named
    return f"changed: {', '.join(dict.fromkeys(named))}" if named else "built again"


def _made_with_in_words(subject: str, changes: Iterable[_Change]) -> str:
    """Return which variables a kernel closes over differ; several functions may have been made of one text."""
    pairs = [(each.label.partition(" ")[2], each.old, each.new) for each in changes]
    old, new = (", ".join(f"{name}={pair[side]}" for name, *pair in pairs) for side in (0, 1))
    if len(pairs) == 1:
        old = old.partition("=")[2]
    return f"{subject and subject + ': '}{MADE_WITH}{new}, not {old}"


def _in_words(change: _Change, facts: _Facts, before: StoredEntry, after: StoredEntry) -> list[str]:
    """Return a change in words; in two, if a file takes the place of another one."""
    subject, label, old, new = change
    if not facts.is_in_both(subject):
        if subject in facts.moved:
            return [facts.moved[subject]]
        return [f"{subject} is {'not ' if subject in facts.subjects[0] else ''}used"]
    if label == "file" and (files := _other_file(subject, before, after)) is not None:
        return [f"{files[1]} is used", f"{files[0]} is not used"]
    if label == MADE_BY:
        return [f"{old} -> {new}" if old and new else f"{subject} is made by {new or 'another object'}"]
    is_known_text = bool(fact(after, "path")) or after.base == before.digest
    if label == "source" and after.kind == "program" and not is_known_text:
        return [f"another text{changed_lines(f'{label} {subject}', before, after)}"]  # perhaps of another program
    if label in _CONTENT:
        place = facts.new.get((subject, f"{PLACE_OF}{label}"), "")
        lines = changed_lines(f"{label} {subject}", before, after)
        if label == "file" and not lines and all(f"{FILE}{subject}" in dict(each.lines) for each in (before, after)):
            return [f"{subject or label} changed in the ends of its lines"]
        of = f" of {place}" if lines and place else ""
        if label == "source" and not of:
            is_inline_text = subject.startswith(INLINE)
            edited = edited_lines(before, after).items() if is_inline_text else _edits_of_classes(before, after)
            of = f" ({', '.join(f'{file}{each}' for file, each in edited)})" if edited else ""
        return [f"{subject or label} changed{lines}{of}"]
    if label == "headers":
        return ["headers of CUDA or of another package changed"]
    if label == "package":
        return ["the module or package of its class changed"]
    if label == MODULE:
        return [f"imported as another module: {old} -> {new}"]
    if label.startswith("module "):
        return [f"{label} changed"]
    if label in _TOOLS:
        versions = [str(each).partition(" build ")[0] for each in (old, new)]
        is_known = versions[0] != versions[1] and all(each[:1].isdigit() for each in versions)
        return [f"{label} {' -> '.join(versions)}" if is_known else f"another build of {label}"]
    place = facts.place_of(change)
    return [f"{_difference(change)}{f' ({place})' if place else ''}"]


def _edits_of_classes(before: StoredEntry, after: StoredEntry) -> list[tuple[str, str]]:
    """Return which lines were edited of the classes of objects that provide code: the file, and ``: line 22``."""
    labels = [label for label, _ in after.lines if label.startswith(CLASS)]
    edited = ((label.rpartition(" in ")[2], changed_lines(label, before, after)) for label in labels)
    return [each for each in edited if each[1]]


def _difference(change: _Change) -> str:
    subject, label, old, new = change
    name = label.replace("define ", "defines ") if label.startswith("define ") else label.removeprefix(_OBJECT)
    of = f"{subject}: " if subject else ""
    if old is None or new is None:
        return f"{of}{name}={new if old is None else old} {'added' if old is None else 'removed'}"
    digests = [_DIGEST.fullmatch(each) for each in (old, new)]
    old, new = (text if digest is None else digest[1] for text, digest in zip((old, new), digests, strict=True))
    if not (old and new):
        return f"{of}{name} changed"
    if old == new:
        return f"{of}{name} changed: other elements of {new}"
    return f"{of}{name}: {old} -> {new}"


def _different_labels(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """Return the labels of which the values differ, those of *new* first."""
    return [label for label in dict.fromkeys((*new, *old)) if old.get(label) != new.get(label)]


def _words(table: dict[str, str], label: str) -> str:
    """Return the text that *table* has for how a *label* begins; empty if it has none."""
    return next((text for start, text in table.items() if label.startswith(start)), "")
