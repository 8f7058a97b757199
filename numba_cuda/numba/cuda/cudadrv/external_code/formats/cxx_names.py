# SPDX-License-Identifier: BSD-2-Clause
"""Mangled C++ names of functions, as far as messages need them: ``_Z5scaleif`` is ``scale(int, float)``."""

from __future__ import annotations

import re

_TYPES = {
    "v": "void", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "f": "float", "d": "double",
}  # fmt: skip
_QUALIFIERS = {"P": "*", "R": "&", "O": "&&", "K": " const"}
_IDENTIFIER = re.compile(r"\d+")


def readable(symbol: str) -> str:
    """Return a mangled *symbol* as C++ spells it, ``name(...)`` if its parameters are too complex; others unchanged."""
    parsed = _parse(symbol)
    if parsed is None:
        return symbol
    names, rest = parsed
    return f"{'::'.join(names)}({_parameters(rest)})"


def base_name(symbol: str) -> str:
    """Return the function's name without namespaces and parameters: *symbol* itself if it is not mangled."""
    parsed = _parse(symbol)
    return symbol if parsed is None else parsed[0][-1]


def _parse(symbol: str) -> tuple[list[str], str] | None:
    """Return the names, outermost first, and what follows them."""
    if not symbol.startswith("_Z"):
        return None
    rest, names = symbol[2:], []
    nested = rest.startswith("N")
    rest = rest[nested:].lstrip("KL") if nested else rest.removeprefix("L")
    while length := _IDENTIFIER.match(rest):
        start, size = length.end(), int(length[0])
        if start + size > len(rest):
            return None
        names.append(rest[start : start + size])
        rest = rest[start + size :]
        if not nested:
            break
    return (names, rest.removeprefix("E") if nested else rest) if names else None


def _parameters(rest: str) -> str:
    found: list[str] = []
    qualifiers = ""
    while rest:
        letter, rest = rest[0], rest[1:]
        if letter in _QUALIFIERS:
            qualifiers = _QUALIFIERS[letter] + qualifiers
        elif letter in _TYPES:
            found.append(_TYPES[letter] + qualifiers)
            qualifiers = ""
        elif letter.isdigit() and (length := _IDENTIFIER.match(letter + rest)):
            rest = (letter + rest)[length.end() :]
            found.append(rest[: int(length[0])] + qualifiers)
            rest, qualifiers = rest[int(length[0]) :], ""
        else:  # templates, substitutions
            return "..."
    return "" if found == ["void"] else ", ".join(found)


_OF_LLVM = {
    "i8": "ahbc", "i16": "st", "i32": "ij", "i64": "lmxy", "float": "f", "double": "d", "i1": "b",
}  # fmt: skip
_MOST = 500


def possible_names(symbol: str, prototype: str) -> list[str]:
    """Return the C++ names that *symbol* may have with the parameters of an LLVM function type, ``i32 (i32, float*)``;
    none if there are more than 500."""
    inside = prototype.partition("(")[2].rpartition(")")[0]
    stem, names = f"_Z{len(symbol)}{symbol}", [""]
    for parameter in filter(None, (text.strip() for text in inside.split(","))):
        if parameter.endswith("*") or parameter == "ptr":
            pointed = _OF_LLVM.get(parameter.rstrip("*"), "")
            letters = [f"P{const}{letter}" for const in ("", "K") for letter in {*pointed, *"vfdijcxl"}]
        else:
            letters = list(_OF_LLVM.get(parameter, ""))
        names = [name + letter for name in names for letter in sorted(letters)]
        if not names or len(names) > _MOST:
            return []
    return [stem + (name or "v") for name in names]
