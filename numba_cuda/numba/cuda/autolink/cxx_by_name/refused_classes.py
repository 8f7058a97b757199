# SPDX-License-Identifier: BSD-2-Clause
"""Why C++ makes no object of a class that a kernel calls as a function, and what to do."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from numba.cuda.cudadrv.external_code.compile.nvrtc_log import Diagnostic

NOT_CONSTRUCTED = 'expected a ")"'  # of the call's arguments: the name is that of a type
_NO_CONSTRUCTOR = re.compile(r'no instance of constructor "(?:const )?(?P<type>[^"]*?)(?: \[with [^"]*)?" matches')
_NO_CONVERSION = re.compile(
    r'no suitable (?:constructor|user-defined conversion) .* to "(?:const )?(?P<type>[A-Za-z_][\w:]*(?:<.*>)?)"'
)
_CANDIDATE = re.compile(
    r'(?:(?P<place>[^"]*)\((?P<line>\d+)\): note[^"]*)?\bfunction (?:template )?"(?P<whole>[^"]*)"(?! was declared)'
)
_ARGUMENTS = re.compile(r"<[^<>]*>")
_SCOPE = re.compile(r"\b(?:\w+::)+(?=\w)")


@dataclass(frozen=True)
class RefusedClass:
    """Why no object is made: the *diagnosis*, the *constructors* there are, and the *remedy*."""

    diagnosis: str
    constructors: tuple[str, ...]
    remedy: str


def explain_class(error: Diagnostic, called: str) -> RefusedClass | None:
    """Return why the class *called* has no constructor for the arguments of an *error*; ``None`` for another error."""
    found = _NO_CONSTRUCTOR.match(error.text) or _NO_CONVERSION.match(error.text)
    name = _name(called)
    if error.text != NOT_CONSTRUCTED and (found is None or _name(found["type"]) != name):
        return None
    constructors = tuple(dict.fromkeys(_list_constructors(error.lines, name)))
    if not constructors and _NO_CONSTRUCTOR.match(error.text) and "<" not in called:
        diagnosis = "it is a class template, whose arguments C++ does not deduce"
        named = f'name the arguments of the class template: lib["{called}<...>"]'
        todo = f"{named}, or give it the arguments of a constructor"
        called = f"{called}<...>"
    else:
        diagnosis = "it is a class, not a function, and has no constructor of these arguments"
        made = f"for its members, lib.expr('[](auto... members) {{ return {called}{{members...}}; }}')"
        todo = "pass the arguments of a constructor" if constructors else made
    listed = tuple(f"constructor: {each}" for each in constructors)
    return RefusedClass(diagnosis, listed, f"{todo};\n    {_use_member(called)}")


def _use_member(called: str) -> str:
    made = f"lib.expr('[](auto x) {{ return {called}(...).f(x); }}')"
    return f"for a member function f, let a lambda make an object and call it: {made}"


def _without_arguments(name: str) -> str:
    """Return a *name* without template arguments."""
    while (shorter := _ARGUMENTS.sub("", name)) != name:
        name = shorter
    return name


def _name(of: str) -> str:
    """Return the last name of a class, or of the constructor *of* one."""
    return _without_arguments(of).rpartition("::")[2].strip()


def _list_constructors(lines: Sequence[str], name: str) -> Iterator[str]:
    """Yield the constructors of the class *name* that the *lines* of an error list, but those that copy an object."""
    for found in filter(None, map(_CANDIDATE.search, lines)):
        declared, _, arguments = found["whole"].partition(" [with ")
        constructor, opening, takes = _without_arguments(declared).partition("(")
        plain = _SCOPE.sub("", takes)
        if re.fullmatch(rf"(?:const )?{name} &&?\)", plain) or _name(constructor) != name:
            continue
        deduced = filter(None, arguments.rstrip("]").split(", "))
        used = [each for each in deduced if re.search(rf"\b{each.partition('=')[0]}\b", plain)]
        place = f" ({os.path.basename(found['place'])}:{found['line']})" if found["place"] else ""
        yield f"{name}{opening}{plain}{' with ' if used else ''}{', '.join(used)}{place}"
