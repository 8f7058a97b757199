# SPDX-License-Identifier: BSD-2-Clause
"""Which lines of a text differ between two cached entries, of digests of their lines that the entries have."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Sequence

from numba_cuda_autolink.printable_texts import number_of, printable

from .entry import StoredEntry

_MOST_RANGES = 4
_MOST_COMPARED = 2_000_000  # pairs of lines


def changed_lines(label: str, before: StoredEntry, after: StoredEntry) -> str:
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


def differing_lines(label: str, before: StoredEntry, after: StoredEntry) -> list[str]:
    """Return how the text *label* differs, in the form of ``diff -u``; none if one of the entries has no such text, as
    long ones are not kept."""
    old, new = (dict(each.texts).get(label) for each in (before, after))
    if old is None or new is None:
        return []
    first, second = (printable(each).splitlines() for each in (old, new))
    return list(difflib.unified_diff(first, second, f"{label} before", f"{label} after", n=1, lineterm=""))
