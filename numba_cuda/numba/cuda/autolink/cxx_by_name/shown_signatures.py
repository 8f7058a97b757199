# SPDX-License-Identifier: BSD-2-Clause
"""The signature that `help()` and IPython show of a function of C++, from its declaration."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from keyword import iskeyword

_PARAMETER = re.compile(r"(?P<type>.*[\s&*>])(?P<name>[A-Za-z_]\w*)\s*(?P<array>(?:\[[^\]]*\]\s*)*)\Z", re.DOTALL)
# A parameter that ends with one of these words has no name.
_WORDS_OF_TYPES = re.compile("auto|bool|char|const|double|float|int|long|short|signed|unsigned|void|volatile")
_QUALIFIERS = frozenset(("const", "volatile", "struct", "enum", "class", "typename"))


class _Cxx(str):
    """C++ that is shown as it is."""

    __repr__ = str.__str__


def read_signature(declaration: str, name: str) -> inspect.Signature | None:
    """Return the signature of the function *name* with this *declaration* on one line; ``None`` if a parameter has no
    name, or is a pack."""
    found = re.search(rf"(?:\A|[\s&*>]){re.escape(name)}\s*\(", declaration)
    if found is None:
        return None
    given, rest = _split(declaration[found.end() :])
    if rest is None:
        return None
    before = declaration[: found.start() + 1]
    if template := re.match(r"template\s*<", before):
        before = _split(before[template.end() :], ">")[1] or ""
    result = re.sub(r"\bconstexpr\b", "", before).strip()
    if later := re.search(r"->\s*(.+)", rest):
        result = later[1].strip()
    parameters = [] if given in ([""], ["void"]) else [*map(_read_parameter, given)]
    named = [each for each in parameters if each is not None]
    if len(named) != len(parameters) or len({each.name for each in named}) != len(named):
        return None
    return inspect.Signature(named, return_annotation=_Cxx(result) if result else inspect.Signature.empty)


def _read_parameter(text: str) -> inspect.Parameter | None:
    declared, _, default = (each.strip() for each in text.partition("="))
    found = _PARAMETER.match(declared)
    if found is None or "..." in declared or "(" in declared or iskeyword(found["name"]):
        return None
    if _WORDS_OF_TYPES.fullmatch(found["name"]) or {*found["type"].split()} <= _QUALIFIERS:
        return None
    return inspect.Parameter(
        found["name"],
        inspect.Parameter.POSITIONAL_ONLY,
        default=_Cxx(default) if default else inspect.Parameter.empty,
        annotation=_Cxx(f"{found['type'].strip()}{found['array'].strip()}"),
    )


def _split(text: str, closing: str = ")") -> tuple[list[str], str | None]:
    """Return the parameters up to the *closing* bracket, and what follows it; ``None`` without one."""
    parts: list[str] = []
    depth = start = 0
    for found in _brackets(text):
        sign, place = found[0], found.start()
        if sign == closing and depth == 0:
            return [*parts, text[start:place].strip()], text[place + 1 :]
        if sign == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
        depth += (sign in "([{<") - (sign in ")]}>")
    return parts, None


def _brackets(text: str) -> Iterator[re.Match[str]]:
    """Find commas and brackets outside of texts and characters."""
    signs = re.finditer(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|->|[,()\[\]{}<>]", text)
    return (found for found in signs if len(found[0]) == 1)
