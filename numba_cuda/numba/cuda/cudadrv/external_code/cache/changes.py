# SPDX-License-Identifier: BSD-2-Clause
"""What changed from one cached entry to another: in the words of users, and part by part."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Sequence

from numba_cuda_autolink.printable_texts import number_of, printable

from .entry import FILE, IS_TEXT, LONGEST_KEPT, PartsTable, StoredEntry

# Parts of which a digest tells users nothing, by how their labels begin.
_OF_LINKS = {
    "LLVM IR ": "the kernel's code or argument types changed",
    "own code ": "the kernel's code or argument types changed",
    "input ": "C++ or other code that is linked changed",
}
# What else users are told of parts, by how their labels begin; nothing of those with an empty text, which change with
# another part.
_IN_WORDS = {
    **_OF_LINKS,
    "NVVM's options ": "",
    "bitcode": "the bitcode changed",
    "code ": "code that is linked changed",
    "source": "changed",
    "headers": "a header of a package, or the place of one, changed",
    "places": "the folder of its files changed",
    "program": "its C++ changed",
    "package": "the package or class of the object changed",
    "values": "a value that the kernel reaches changed",
    "entry": "",
    "undefined": "the kernel's calls changed",
    "calls": "the types of the kernel's calls changed",
    "link key's digest": "",
    "signature's digest": "",
    "key schema": "",
    "record of headers": "",
    "schema": "numba-cuda-autolink changed",
    "format": "numba-cuda-autolink changed",
}
# Parts that change with all that these name.
_FOLLOWING: dict[str, tuple[str, ...]] = {
    "headers": (FILE,),
    "places": (FILE, "option "),
    "input ": (FILE,),
    "source": (FILE,),
    "values": ("value ",),
}
_FOLLOWING["link key's digest"] = _FOLLOWING["package"] = ("link key",)
_FOLLOWING["undefined"] = _FOLLOWING["calls"] = ("LLVM IR ", "own code ")
_ARCHITECTURES = ("option arch", "architecture", "target", "toolkit and compute capability")
_TYPES = ("argument types", "signature", "object")


def architecture_of(entry: StoredEntry) -> str:
    """Return the architecture that *entry* is for, such as ``sm_90``; empty if it is for all."""
    values = {**dict(entry.parts), **dict(entry.texts)}
    for label in _ARCHITECTURES:
        value = values.get(label, "")
        if (found := re.search(r"(?:sm|compute)_\d+[af]?", value)) is not None:
            return found[0].replace("compute", "sm")
        if (numbers := re.search(r"\((\d+), ?(\d+)\)|ComputeCapability\((\d+)\.(\d+)", value)) is not None:
            return "sm_" + "".join(filter(None, numbers.groups()))
    return ""


def call_of(entry: StoredEntry) -> tuple[str, ...]:
    """Return what *entry* is built for, besides the architecture: entries of one call are compared."""
    parts = dict(entry.parts)
    types = (parts.get(label, "") for label in _TYPES)
    return entry.kind, entry.name, *types, _without_tags(dict(entry.texts).get("entry", parts.get("entry", "")))


def _without_tags(mangled: str) -> str:
    """Return the name of a kernel without the tags, ``B2v1``, that tell versions and options apart."""
    while (tag := re.search(r"B(\d+)(?=[A-Za-z])", mangled)) is not None:
        mangled = mangled[: tag.start()] + mangled[tag.end() + int(tag[1]) :]
    return mangled


def changes_in_words(before: StoredEntry, after: StoredEntry) -> list[str]:
    """Return what changed from *before* to *after*, for users: files and what changed in them, options, versions."""
    old, new = dict(before.parts), dict(after.parts)
    labels = [label for label in dict.fromkeys((*new, *old)) if old.get(label) != new.get(label)]
    found = []
    if "target" in labels:
        found += _options_of_target(dict(before.texts).get("target", ""), dict(after.texts).get("target", ""))
    for label in sorted(labels, key=lambda label: not label.startswith(FILE)):
        followed = next((each for start, each in _FOLLOWING.items() if label.startswith(start)), ())
        if label not in _ARCHITECTURES and not any(each.startswith(followed) for each in labels if followed):
            found.append(_in_words(label, before, after, old.get(label), new.get(label)))
    return [each for each in dict.fromkeys(found) if each] or ["changed in a part of which only a digest is kept"]


def _in_words(label: str, before: StoredEntry, after: StoredEntry, old: str | None, new: str | None) -> str:
    if label.startswith(FILE):
        name = label.removeprefix(FILE).partition(": ")[0]
        if old is None or new is None:
            other = dict(before.parts if old is None else after.parts)
            if any(each.partition(": ")[0] == f"{FILE}{name}" for each in other):
                return f"other functions or types of {name} are called"
            return f"{name} is {'not ' if new is None else ''}used"
        return f"{name} changed{_changed_lines(label, before, after)}"
    if label == "source":
        if after.lines and dict(before.lines).get(label) == dict(after.lines).get(label):
            return ""  # it names files, or calls a library that is in files
        return f"changed{_changed_lines(label, before, after)}"
    if label.startswith("module "):
        return f"{label} changed"
    known = next((text for start, text in _IN_WORDS.items() if label.startswith(start)), None)
    if known is not None:
        return known
    if label in ("NVRTC", "nvJitLink", "cuda.core", "llvmlite") or label.startswith(("NVVM", "version of ")):
        name = re.sub(r" \d+\Z", "", label.removeprefix("version of "))
        versions = [(each or "none").partition(" build ")[0] for each in (old, new)]
        is_known = versions[0] != versions[1] and all(each[:1].isdigit() or each == "none" for each in versions)
        return f"{name} {' -> '.join(versions)}" if is_known else f"another build of {name}"
    if old is None:
        return f"{label} is {new}"
    return f"{label} is not given" if new is None else f"{label}: {old} -> {new}"


def _changed_lines(label: str, before: StoredEntry, after: StoredEntry) -> str:
    """Return which lines changed in the text behind a part, from the first to the last; nothing if it is not known."""
    old, new = (dict(each.lines).get(label, ()) for each in (before, after))
    if not (old and new) or old == new:
        return ""
    first = _equal_at_start(old, new)
    last = len(new) - _equal_at_start(old[first:][::-1], new[first:][::-1])
    if last == first:
        return f": {number_of(len(old) - len(new), 'line')} removed after line {first}"
    return f": line {last}" if last == first + 1 else f": lines {first + 1}-{last}"


def _equal_at_start(old: Sequence[str], new: Sequence[str]) -> int:
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _options_of_target(old: str, new: str) -> list[str]:
    before, after = (dict(re.findall(r"(\w+)=('[^']*'|[\w.]+)", each)) for each in (old, new))
    names = [name for name in after if name in before and before[name] != after[name]]
    return [
        f"{name}: {before[name]} -> {after[name]}" for name in names if name not in ("compute_capability", "suffix")
    ]


def differences(before: PartsTable, after: PartsTable) -> list[str]:
    """Describe the parts in which *after* differs from *before*: files, then the other parts of *after*, then those
    that it lacks."""
    old, new = dict(before), dict(after)
    labels = [label for label in dict.fromkeys((*new, *old)) if old.get(label) != new.get(label)]
    files = [label for label in labels if label.startswith(FILE)]
    found = [f"{label.removeprefix(FILE)} {_how(label, old, new)}" for label in files]
    # The digest of all headers says no more than their files do.
    found += [_difference(each, old, new) for each in labels if each not in files and not (files and each == "headers")]
    found = list(dict.fromkeys(found))
    return found or [f"{one} (in another place)" for one, other in zip(new, old, strict=True) if one != other]


def _how(label: str, old: dict[str, str], new: dict[str, str]) -> str:
    return "changed" if label in old and label in new else "is included" if label in new else "is not included"


def _difference(label: str, old: dict[str, str], new: dict[str, str]) -> str:
    if label not in new:
        return f"{label} (no longer {old[label]})"
    if label not in old:
        return f"{label} (now {new[label]})"
    known = next((text for start, text in _OF_LINKS.items() if label.startswith(start)), None)
    return known or f"{label} ({old[label]} -> {new[label]})"


def differing_lines(label: str, before: StoredEntry, after: StoredEntry) -> list[str]:
    """Return how the text of a part differs, in the form of ``diff -u``; none if the part is no such text."""
    old, new = (dict(each.parts).get(label, "") for each in (before, after))
    if old == new or not (IS_TEXT.match(old) and IS_TEXT.match(new)):
        return []
    if not (label in dict(before.texts) and label in dict(after.texts)):
        return [f"{label}: of texts with more than {LONGEST_KEPT} characters, only the digest is kept"]
    first, second = (printable(dict(each.texts)[label]).splitlines() for each in (before, after))
    return list(difflib.unified_diff(first, second, f"{label} before", f"{label} after", n=1, lineterm=""))
