# SPDX-License-Identifier: BSD-2-Clause
"""What the outline of a report says of calls: each by itself, or those of a function together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from numba_cuda_autolink.mangled_names import readable
from numba_cuda_autolink.source_locations import shown_file

from ..function_code.object_names import file_of_item, item_name
from . import formatting
from .item import Item
from .records import BuildReport, CallReport, CodeReport

_LONGEST_OBJECT = 300  # characters
_ROOM = 100  # characters of an object's repr
_LONGEST_OF_TEXT = 70  # characters of the repr of a library's item, up to which it has all of the library's text


def call_item(number: int, call: CallReport, seen: dict[CodeReport | str, int]) -> Item:
    took = "" if call.seconds is None else f" in {formatting.time(call.seconds)}"
    took += ", stored earlier under its link key" if call.stored else ""
    returned = tuple(
        _code(code) if first == number else Item(code.title, f"same as for call {first}")
        for code in call.returned
        for first in [seen.setdefault(replace(code, brought_by=()), number)]
    )
    of = [Item("object", whole)] if (whole := whole_name(call)) else []
    if call.expression and seen.setdefault(call.expression, number) == number:
        of.append(Item("C++", call.expression))
    place = *of, Item("at", f"{shown_file(call.filename)}:{call.line}"), Item("by way of", formatting.chain(call.chain))
    became = [Item("inlined", text)] if (text := inlining(call)) else []
    found = Item(f"returned{took}", "" if returned else "nothing to link", returned)
    return Item(f"{number}. {full_name(call)}", call.arguments, (*place, found, *became))


def inlining(call: CallReport) -> str:
    """Return whether a call was inlined, and if not, what is called; empty where that is not known."""
    if call.inlined is None:
        return f"not known, {formatting.left(call)}" if call.left is not None else ""
    if call.inlined:
        return "yes"
    return ", ".join(filter(None, ("no", formatting.left(call))))


def _asked(call: CallReport) -> tuple[object, ...]:
    """Return what a call is on all architectures for which the same is called and returned."""
    returned = tuple((code.kind, code.name, code.source or code.sha256) for code in call.returned)
    return call.name, call.argtypes, call.chain, returned


def asks_the_same(build: BuildReport, first: BuildReport) -> bool:
    """Whether the calls of *build* are as those of the *first* one, another one: the same is called and returned."""
    return build is not first and list(map(_asked, build.calls)) == list(map(_asked, first.calls))


def differing_calls(build: BuildReport, first: BuildReport) -> list[tuple[int, CallReport]]:
    """Return the calls of *build* with their numbers, that are not as those of the *first* one: where the same is
    called and returned, those that are inlined in one alone."""
    calls = [*enumerate(build.calls, 1)]
    if not asks_the_same(build, first):
        return calls
    return [each for each, old in zip(calls, first.calls, strict=True) if inlining(each[1]) != inlining(old)]


def inlined_call(number: int, call: CallReport) -> Item:
    became = (Item("inlined", inlining(call) or "not known"),)
    return Item(f"{number}. {full_name(call)}", call.arguments, became)


def group_calls(calls: Iterable[CallReport]) -> tuple[Item, ...]:
    """Return the calls of a large report, of which HTML and JSON have the rest: those of a function that became the
    same are one item."""
    groups: dict[tuple[str, str, str], list[CallReport]] = {}
    for call in calls:
        arguments = call.arguments
        returned = ", ".join(formatting.file(code.name) + code.detail for code in call.returned) or "nothing to link"
        found = "" if returned == f"{call.name}{arguments}" else f": {returned}"
        left = f": {left}" if (left := formatting.left(call)) else ""
        became = {True: "", False: f", not inlined{left}", None: left}[call.inlined]
        groups.setdefault((full_name(call), arguments, f"{found}{became}"), []).append(call)
    found_groups, seen = [], set()
    for (name, arguments, rest), some in groups.items():
        text = some[0].expression
        below = (Item("C++", text),) if text and text not in seen else ()
        seen.add(text)
        found_groups.append(
            Item(name, f"{arguments}{formatting.times(some)} at {formatting.places(some)}{rest}", below)
        )
    return tuple(found_groups)


def full_name(call: CallReport) -> str:
    """Return the name of a call's object, with all its arguments where there is room for them."""
    return call.object if "…" in call.name and len(call.object) <= _ROOM else call.name


def whole_name(call: CallReport) -> str:
    """Return the repr of a call's object where `full_name` leaves a part of it out; else an empty text, as for an item
    of a library that is given as a long text, of which the repr has the beginning."""
    of_text = item_name(call.object) is not None and file_of_item(call.object) is None
    is_cut = of_text and len(call.object) > _LONGEST_OF_TEXT
    tells_all = bool(call.expression) or full_name(call) == call.object or call.object.startswith("<") or is_cut
    return "" if tells_all else formatting.shortened(call.object, _LONGEST_OBJECT)


def _code(code: CodeReport) -> Item:
    below = [Item("compiled with", given)] if (given := formatting.options(code.options)) else []
    if (done := code.compiled) is not None:
        together = f" (with others{formatting.unit(code.unit)})" if code.unit else ""
        took = formatting.origin(done.origin, done.seconds)
        below.append(Item("compiled to", f"{formatting.code(done)}: {took}{together}"))
    if code.defines is None and code.undefined is None:
        below.append(Item("symbols", _symbols(None)))
    else:
        below.append(Item("defines", _symbols(code.defines)))
        if code.unit is None and code.undefined != ():
            below.append(Item("undefined", _symbols(code.undefined)))
    return Item(code.title, f"{code.kind}, {formatting.size(code.size)}, {formatting.digest(code)}", tuple(below))


def _symbols(names: tuple[str, ...] | None) -> str:
    if names is None:
        return "not visible in this format"
    return ", ".join(map(readable, names)) or "nothing that is referenced"
