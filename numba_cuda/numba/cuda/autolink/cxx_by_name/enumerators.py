# SPDX-License-Identifier: BSD-2-Clause
"""Enumerators of C++ that Python uses as functions, attributes or arguments: how Python has their values, and which one
is meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from .declared_names import Enumeration, find_enumerations

_NEAR = 0.7


def explain_enumerator(name: str, texts: Iterable[str], enumeration: str = "") -> tuple[str, str] | None:
    """Return what is wrong where *name*, such as ``Mode::slow``, is used as a function or a member is, and what to do,
    if *texts* seem to declare it as an enumerator, or one of nearly that name; ``None`` for any other name.
    *enumeration* is its type where that is known."""
    found = find_enumerations(texts)
    if known := _find_owner(name, found, enumeration):
        return f"{name} is an enumerator of C++", _take(name, enumeration or _name(known, name))
    near = find_near(name, found)
    if known := _find_owner(near, found, enumeration):
        of_enumeration = enumeration or _name(known, near)
        return f"C++ has no enumerator {name}", f"did you mean {near}? Then {_take(near, of_enumeration)}"
    return None


def _take(name: str, enumeration: str) -> str:
    last = name.rpartition("::")[2]
    return f'take its value before the kernel, {last} = lib.eval("{name}"), and pass lib[{enumeration!r}]({last}) in it'


def _find_owner(name: str, found: Iterable[Enumeration], enumeration: str) -> Enumeration | None:
    """Return the one of the enumerations *found* that has the enumerator *name*; ``None`` if none has."""
    scope, _, last = name.rpartition("::")
    having = [each for each in found if last in each.enumerators]
    names = scope.rpartition("::")[2], enumeration.rpartition("::")[2]
    return next((each for each in having if each.name in names or not each.is_scoped), None)


def find_near(name: str, found: Iterable[Enumeration]) -> str:
    """Return the enumerator whose name looks most like *name*; empty if none does."""
    scope, _, last = name.rpartition("::")
    before, _, owner = scope.rpartition("::")
    names = {}
    for each in found:
        for enumerator in each.enumerators:
            if each.name == owner or each.is_scoped:
                names[f"{each.name}::{enumerator}"] = f"{before}::{each.name}::{enumerator}".removeprefix("::")
            if not each.is_scoped and each.name != owner:
                names[f"{owner}::{enumerator}".removeprefix("::")] = f"{scope}::{enumerator}".removeprefix("::")
    near = difflib.get_close_matches(f"{owner}::{last}".removeprefix("::"), names, n=1, cutoff=_NEAR)
    return names[near[0]] if near else ""


def _name(enumeration: Enumeration, enumerator: str) -> str:
    """Return the name of an *enumeration* of which an *enumerator* has this name."""
    scope = enumerator.rpartition("::")[0]
    if scope.rpartition("::")[2] == enumeration.name:
        return scope
    return f"{scope}::{enumeration.name}" if scope else enumeration.name
