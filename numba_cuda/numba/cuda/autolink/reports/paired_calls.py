# SPDX-License-Identifier: BSD-2-Clause
"""Which calls of two reports are the same one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

from ..function_code.object_names import item_name
from .records import CallReport, CodeReport

Pair = tuple[CallReport | None, CallReport | None]
_PATHS = "include_paths"
_NUMBER = re.compile(r" #\d+$")  # of one of several objects of one name


def code_options(code: CodeReport) -> dict[str, str]:
    """Return the compile options of *code* without the paths of headers: the digest of a source has their texts."""
    return {name: value for name, value in code.options if name != _PATHS}


def named(call: CallReport) -> str:
    """Return what is called, without the number of the object: numbers change with other objects."""
    return f"{_NUMBER.sub('', call.name)}({', '.join(call.argtypes)})"


def is_same_object(before: CallReport, now: CallReport) -> bool:
    """Return whether two calls are of one object: C++ expressions without a variable are the same one in one place."""
    if before.expression and now.expression and before.argtypes == now.argtypes and before.text == now.text:
        return True
    return _object(before) == _object(now) or named(before) == named(now)


def _object(call: CallReport) -> tuple[str, tuple[str, ...]]:
    """Return which object is called, by its repr: its name depends on the other objects of the report. An item of a
    library is the same when the library's source was edited; of a C++ expression, the whole text counts."""
    item = call.expression or item_name(call.object)
    return item or (named(call) if call.object.startswith("<") else call.object), call.argtypes


# What two calls that are the same one have in common, the most first. The last ones are other calls in one place.
_IN_COMMON: tuple[Callable[[CallReport], Hashable], ...] = (
    lambda call: (_object(call), call.text),
    lambda call: (named(call), call.text),
    _object,
    named,
    lambda call: call.text,
    lambda call: tuple(frame.function for frame in call.chain),
)


def _place(call: CallReport) -> tuple[str, list[str]]:
    return call.text, [frame.function for frame in call.chain]


def pair_calls(before: Sequence[CallReport], now: Sequence[CallReport]) -> list[Pair]:
    """Return calls that are the same one in both reports, in the order of *now*, then those that are gone: all in order
    where the lines of all are the same; else those at both ends that are equal, and of the others the first with the
    first, the second with the second of those that have the most in common."""
    if [*map(_place, before)] == [*map(_place, now)]:
        return [*zip(before, now, strict=True)]
    keys = [[_IN_COMMON[0](call) for call in some] for some in (before, now)]
    first, last = 0, 0
    shorter = min(len(before), len(now))
    while first < shorter and keys[0][first] == keys[1][first]:
        first += 1
    while last < shorter - first and keys[0][-1 - last] == keys[1][-1 - last]:
        last += 1
    partner = {number: number for number in range(first)}  # of a call now: its index before
    partner |= {len(now) - number: len(before) - number for number in range(1, last + 1)}
    old, new = [*range(first, len(before) - last)], [*range(first, len(now) - last)]
    for key in _IN_COMMON:
        waiting = defaultdict[Hashable, list[int]](list)
        for number in reversed(old):
            waiting[key(before[number])].append(number)
        partner |= {number: alike.pop() for number in new if (alike := waiting[key(now[number])])}
        old = sorted(number for some in waiting.values() for number in some)
        new = [number for number in new if number not in partner]
    found: list[Pair] = [(before[partner[n]] if n in partner else None, call) for n, call in enumerate(now)]
    return [*found, *((before[number], None) for number in old)]
