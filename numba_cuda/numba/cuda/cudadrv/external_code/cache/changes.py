# SPDX-License-Identifier: BSD-2-Clause
"""What changed from one cached entry to another, in the words of users, of what their records know."""

from __future__ import annotations

import difflib
import itertools
import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from numba_cuda_autolink.printable_texts import number_of, printable

from .entry import DAMAGED, FILE, MODULE, PLACE_OF, Facts, StoredEntry

FRONT_END = "front end"
COMPILED_FOR = "compiled for"  # the architecture that NVVM gets, where it compiles the kernel
# What an entry is for, which is not compared.
_IDENTITY = ("path", "kernel", "architecture", "output", "types", "link key", "entry_name", FRONT_END, DAMAGED)
# What is told if nothing else changed: the file that contains the kernel, and how its programs were compiled.
OWN_FILE = "file of the kernel"
COMPILED = ("working directory", "packages", "program", "at")
NOT_CACHED = "not cached"
MADE_WITH = "made with "  # before the closure variables of a kernel that differ
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
_MOST_RANGES = 4
_MOST_COMPARED = 2_000_000  # pairs of lines


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

    own = made_with(entry, exactly=True)

    def difference(before: StoredEntry) -> tuple[int, int, bool]:
        changes = changes_in_words(before, entry)
        return sum(MADE_WITH in each for each in changes), len(changes), made_with(before, exactly=True) != own

    return min(reversed(others), key=difference, default=None)


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
    found = known_changes(before, after) or [*map(edit_in_words, edited_lines(before, after))]
    return found or [what_differs(before, after)]


def edit_in_words(edited: str) -> str:
    """Return one of the texts that `edited_lines` returns as a change: ``m.py changed: line 8``."""
    return edited.replace(": ", " changed: ", 1)


def edited_lines(before: StoredEntry, after: StoredEntry) -> list[str]:
    """Return which lines were edited in the files of the Python functions of two kernels, as ``m.py: line 8``."""
    own = os.path.basename(fact(after, "path"))
    files = ((own if label == OWN_FILE else label.removeprefix(FILE), label) for label, _ in after.lines)
    python = [(file, label) for file, label in files if label.startswith(FILE) and file.endswith((own, ".py"))]
    edited = ((file, _changed_lines(label, before, after)) for file, label in python)
    return [f"{file}{lines}" for file, lines in edited if lines]


def known_changes(before: StoredEntry, after: StoredEntry) -> list[str]:
    """Return what changed from *before* to *after*, of what users know: the Python of a kernel, files and what changed
    in them, options, versions."""
    old, new = _facts_of(before), _facts_of(after)
    subjects = [{subject for subject, _ in each} for each in (old, new)]
    is_other_python = old.get(("", "Python")) != new.get(("", "Python"))

    def is_same_code(subject: str) -> bool:
        return old.get((subject, "code")) == new.get((subject, "code"))

    found = []
    seen: set[tuple[str, ...]] = set()
    changed = [key for key in dict.fromkeys((*new, *old)) if old.get(key) != new.get(key)]
    other_objects = {key for key in changed if key[1].startswith(_OBJECT) and is_same_code(key[0])}
    for subject, label in other_objects:  # which one of them knew by its own name
        old.setdefault((subject, label), label.removeprefix(_OBJECT))
        new.setdefault((subject, label), label.removeprefix(_OBJECT))
    other_functions = {
        each.get(key)
        for key in changed
        for each in (old, new)
        if key in other_objects or (key[1].startswith(_CLOSURE) and key in old.keys() & new)
    }
    of_other_objects = tuple(f"{of}.{label.removeprefix(_OBJECT)}." for of, label in other_objects)
    for key in changed:
        subject, label = key
        values = old.get(key), new.get(key)
        if label in (OWN_FILE, NOT_CACHED, *_LINES) or label.startswith(PLACE_OF) or (subject and label in COMPILED):
            continue
        if label in (*_TOOLS, COMPILED_FOR, MODULE) and None in values:
            continue
        if label == "code" and is_other_python:
            continue
        if label.startswith(_OBJECT) and key not in other_objects:
            continue  # what the edit of the function says
        if not (subject in subjects[0] and subject in subjects[1]):
            if subject.rpartition(":")[2] in other_functions:
                continue  # what the kernel was made with says it
            if other_objects and "source" in {label for each in (old, new) for of, label in each if of == subject}:
                continue  # the text that the object generates
            found.append(f"{subject} is {'not ' if subject in subjects[0] else ''}used")
            continue
        if label == "file" and (files := _other_file(subject, before, after)) is not None:
            found += [f"{files[1]} is used", f"{files[0]} is not used"]
            continue
        if label.startswith("value ") and label.removeprefix("value ").startswith(of_other_objects):
            continue  # an attribute of such an object
        if label.startswith("value "):  # of a module, which several of its functions may read
            of_module = subject.rpartition(":")[0], label, *map(str, values)
            if of_module in seen:
                continue
            seen.add(of_module)
        if label != "calls":
            place = new.get((subject, f"{PLACE_OF}{label}")) or old.get((subject, f"{PLACE_OF}{label}"))
            words = _in_words(subject, label, before, after, *values)
            found.append(f"{words} ({place})" if place and label != "source" else words)
    if old.get(("", OWN_FILE)) != new.get(("", OWN_FILE)) and not _is_same_around(before, after):
        found.append(f"{os.path.basename(fact(after, 'path'))} changed{_changed_lines(OWN_FILE, before, after)}")
    moved = [subject for subject, label in changed if label in _LINES and (subject, label) in old.keys() & new.keys()]
    calls = [(key, old.get(key), new.get(key)) for key in changed if key[1] == "calls"]
    found += [f"{subject} is not cached: {why}" for (subject, label), why in new.items() if label == NOT_CACHED]
    found = found or [_in_words(*key, before, after, *values) for key, *values in calls]  # follow from the others
    found = found or _compiled_otherwise(old, new) or [f"{each}{LINES_MOVED}" for each in moved]
    return list(dict.fromkeys(found))


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


def _in_words(
    subject: str, label: str, before: StoredEntry, after: StoredEntry, old: str | None, new: str | None
) -> str:
    is_known_text = bool(fact(after, "path")) or after.base == before.digest
    if label == "source" and after.kind == "program" and not is_known_text:
        return f"another text{_changed_lines(f'{label} {subject}', before, after)}"  # perhaps of another program
    if label in _CONTENT:
        place = next((each for *known, each in after.facts if known == [subject, f"{PLACE_OF}{label}"]), "")
        lines = _changed_lines(f"{label} {subject}", before, after)
        return f"{subject or label} changed{lines}{f' of {place}' if lines and place else ''}"
    if label == "headers":
        return "headers of CUDA or of another package changed"
    if label == "package":
        return "the module or package of its class changed"
    if label == MODULE:
        return f"imported as another module: {old} -> {new}"
    if label.startswith("module "):
        return f"{label} changed"
    if label in _TOOLS:
        versions = [str(each).partition(" build ")[0] for each in (old, new)]
        is_known = versions[0] != versions[1] and all(each[:1].isdigit() for each in versions)
        return f"{label} {' -> '.join(versions)}" if is_known else f"another build of {label}"
    name = label.replace("define ", "defines ") if label.startswith("define ") else label.removeprefix(_OBJECT)
    of = f"{subject}: " if subject else ""
    if label.startswith(_CLOSURE) and None not in (old, new):  # several functions may have been made of one text
        return f"{of}{MADE_WITH}{name.partition(' ')[2]}={new}, not {old}"
    if old is None or new is None:
        return f"{of}{name}={new if old is None else old} {'added' if old is None else 'removed'}"
    digests = [_DIGEST.fullmatch(each) for each in (old, new)]
    old, new = (text if digest is None else digest[1] for text, digest in zip((old, new), digests, strict=True))
    if not (old and new):
        return f"{of}{name} changed"
    if old == new:
        return f"{of}{name} changed: other elements of {new}"
    return f"{of}{name}: {old} -> {new}"


def _changed_lines(label: str, before: StoredEntry, after: StoredEntry) -> str:
    """Return which lines changed in the text behind a fact, where they are in *after*; nothing if it is not known."""
    old, new = (dict(each.lines).get(label, ()) for each in (before, after))
    if not (old and new):
        return ""
    offsets = [sum(1 for _ in itertools.takewhile(lambda line: not line, each)) for each in (old, new)]
    return _listed(old[offsets[0] :], new[offsets[1] :], offsets[1])


def _listed(old: Sequence[str], new: Sequence[str], offset: int) -> str:
    first = _equal_at_start(old, new)
    same = _equal_at_start(old[first:][::-1], new[first:][::-1])
    old, new = old[first : len(old) - same], new[first : len(new) - same]
    if not (old or new):
        return ""
    blocks = [(0, len(old), 0, len(new))]
    if len(old) * len(new) <= _MOST_COMPARED:
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        blocks = [each[1:] for each in matcher.get_opcodes() if each[0] != "equal"]
    lines, removed = [], []
    for begin, end, start, stop in blocks:
        at = offset + first + start
        if start == stop:
            lines_gone = number_of(end - begin, "line")
            removed.append(f"{lines_gone} removed after line {at}" if at else f"{lines_gone} removed at the start")
        else:
            lines.append(str(at + 1) if stop == start + 1 else f"{at + 1}-{at + stop - start}")
    shown = lines[:_MOST_RANGES]
    more = f" and {len(lines) - len(shown)} more" if len(lines) > len(shown) else ""
    word = "line" if len(lines) == 1 and "-" not in lines[0] else "lines"
    listed = [f"{word} {', '.join(shown)}{more}"] if lines else []
    return f": {', '.join([*listed, *removed[: _MOST_RANGES - len(shown) or 1]])}"


def _equal_at_start(old: Sequence[str], new: Sequence[str]) -> int:
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _different_labels(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """Return the labels of which the values differ, those of *new* first."""
    return [label for label in dict.fromkeys((*new, *old)) if old.get(label) != new.get(label)]


def _words(table: dict[str, str], label: str) -> str:
    """Return the text that *table* has for how a *label* begins; empty if it has none."""
    return next((text for start, text in table.items() if label.startswith(start)), "")


def differing_lines(label: str, before: StoredEntry, after: StoredEntry) -> list[str]:
    """Return how the text *label* differs, in the form of ``diff -u``; none if one of the entries has no such text, as
    long ones are not kept."""
    old, new = (dict(each.texts).get(label) for each in (before, after))
    if old is None or new is None:
        return []
    first, second = (printable(each).splitlines() for each in (old, new))
    return list(difflib.unified_diff(first, second, f"{label} before", f"{label} after", n=1, lineterm=""))
