# SPDX-License-Identifier: BSD-2-Clause
"""Which calls were inlined, and the functions that are left in the result."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from numba.cuda.cudadrv.external_code.formats.cubin import FunctionInCubin, spills_of_functions

from . import formatting
from .ptx_lines import Place
from .records import CallReport, CodeReport, FunctionReport

_CUDAS = "__"  # begins the names of CUDA's own parts of mathematical functions
Called: TypeAlias = Mapping[str, Sequence[tuple[Place, ...]]]  # by function, the places of its CALL instructions


def has_functions(functions: Collection[str], entry_name: str) -> bool:
    """Whether one of the *functions* of a result is neither the kernel nor CUDA's own."""
    return any(name != entry_name and not name.startswith(_CUDAS) for name in functions)


def with_inlining(
    calls: Sequence[CallReport],
    codes: Iterable[CodeReport],
    functions: Collection[str],
    reached: Mapping[str, Collection[str]],
    called: Called | None,
) -> tuple[CallReport, ...]:
    """Return *calls*, of functions in Python, with whether they were inlined: whether what they call, of the linked
    *codes*, or a function that it leads to, as *reached* has them by name, is still one of the *functions* of the
    result. Where *called* has the ``CALL`` instructions, these say which calls of a function are left: by their places,
    or else by their number. CUDA's own parts of mathematical functions, whose names are reserved, do not count."""
    in_python = {name for code in codes if code.is_python for name in code.undefined or ()}
    by_site = defaultdict[str, set[str]](set)
    for piece in (piece for code in codes for piece in code.parts or (code,)):
        for site in piece.brought_by:
            by_site[site].update(piece.defines or ())
    names = [in_python.intersection(by_site[call.site]) for call in calls]
    left = [each.intersection(functions) for each in names]
    inner = [
        {
            each
            for each in {each for name in some for each in reached.get(name, ())}.intersection(functions) - some
            if not each.startswith(_CUDAS)
        }
        for some in names
    ]
    leading = defaultdict[str, list[CallReport]](list)  # by function that is left: the calls that lead to it
    for call, some, others in zip(calls, left, inner, strict=True):
        for name in some | others:
            leading[name].append(call)
    known = {name: _left(some, called.get(name, ()) if called else ()) for name, some in leading.items()}
    found = []
    for call, own, some, others in zip(calls, names, left, inner, strict=True):
        if not own or len(some) not in (0, len(own)):
            found.append(dataclasses.replace(call, inlined=None))
            continue
        sides = {name: known[name].get(_place(call)) for name in sorted(some | others)}
        is_left = {name: side for name, side in sides.items() if side is not True}
        unknown = [(len(called[name]), len(leading[name])) for name in is_left if called and is_left[name] is None]
        is_known = False in is_left.values() or not is_left
        text = tuple(sorted(formatting.symbol(name) for name in is_left)) if not some.intersection(is_left) else ()
        found.append(
            dataclasses.replace(
                call,
                inlined=not is_left if is_known else None,
                called=text,
                left=None if is_known else unknown[0],
            )
        )
    return tuple(found)


def _place(call: CallReport) -> Place:
    return call.filename, call.line


def _left(calls: Sequence[CallReport], instructions: Sequence[tuple[Place, ...]]) -> dict[Place, bool | None]:
    """Return whether the *calls* of one function that is left were inlined, by place, with ``None`` where that is not
    known: of the ``CALL`` *instructions*, those whose places are known tell, and else as many as there are calls."""
    places = set(map(_place, calls))
    found = [next((place for place in each if place in places), None) for each in instructions]
    if found and None not in found:
        return {place: place not in found for place in places}
    return dict.fromkeys(places, None if 0 < len(found) < len(calls) else False)


def function_reports(
    functions: Mapping[str, FunctionInCubin], entry_name: str, names: Mapping[str, str], log: str, called: Called | None
) -> tuple[FunctionReport, ...]:
    """Return the *functions* of a result, the largest first after the kernel. *names* are those that users know some
    by; *log* is what the linker printed; *called* has the ``CALL`` instructions by function. What the kernel needs is
    that of the result."""
    shown, seen = {}, Counter[str]()
    for name in sorted(functions):  # functions of several files, which no other file sees, may have one name
        seen[title := names.get(name) or formatting.symbol(name)] += 1
        shown[name] = f"{title} #{seen[title]}" if seen[title] > 1 else title
    order = sorted(functions, key=lambda name: (name != entry_name, -functions[name].size, name))
    spills = spills_of_functions(log)

    def report(name: str) -> FunctionReport:
        made = functions[name]
        what = shown[name], made.size, made.sha256
        if name == entry_name:
            return FunctionReport(*what)
        number = None if called is None else len(called.get(name, ()))
        return FunctionReport(*what, number, made.registers, made.stack, *spills.get(name, (None, None)))

    return tuple(map(report, order))
