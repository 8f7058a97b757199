# SPDX-License-Identifier: BSD-2-Clause
"""Kernels whose folder moved: the same code in a file of the same name, where the earlier file is gone."""

from __future__ import annotations

import os
from collections.abc import Iterable

from .changes import LINES_MOVED, call_of, fact, known_changes, made_with
from .entry import StoredEntry


def moved_from(entry: StoredEntry, others: Iterable[StoredEntry]) -> StoredEntry | None:
    """Return the latest of *others* that is of the kernel of *entry* where that was before: its functions have
    the same code. Return ``None`` if there is none, or if one is in another folder still."""
    path, found = fact(entry, "path"), None
    for each in others:
        earlier = fact(each, "path")
        is_same = (each.kind, each.name, os.path.basename(earlier)) == (entry.kind, entry.name, os.path.basename(path))
        if not (path and is_same) or earlier == path or call_of(each) != call_of(entry):
            continue
        if os.path.exists(earlier):
            return None
        if _codes(each) == _codes(entry) and _codes(entry) and made_with(each) == made_with(entry):
            found = each if found is None or each.written > found.written else found
    return found


def changes_of_moved(before: StoredEntry, after: StoredEntry) -> list[str]:
    """Return the folders of a kernel that moved, and what else changed, in words."""
    old, new = (os.path.dirname(fact(each, "path")) for each in (before, after))
    base = os.path.commonpath([old, new])
    folders = [os.path.relpath(each, base) for each in (old, new)]

    def follows(change: str) -> bool:
        files = change.partition(": ")[2].split(" -> ")
        tails = {file.removeprefix(folder) for file, folder in zip(files, folders, strict=False)}
        return old in change or change.endswith(LINES_MOVED) or (len(files) == 2 and len(tails) == 1)

    others = (each for each in known_changes(before, after) if not follows(each))
    return [f"another folder: {old} -> {new}", *others]


def _codes(entry: StoredEntry) -> dict[str, str]:
    """Return digests of the code of the Python functions of *entry*, by their names."""
    return {of: value for of, label, value in entry.facts if of and label == "code"}
