# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of calls that are no numbers of C++: arrays, strings, None and tuples, what C++ gets for them, and what to
pass in their place."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

_ARRAY = re.compile(r"(?:\w+ )*array\((?P<element>.*), (?P<ndim>\d+)d, (?P<layout>[ACF])\)")
_FUNCTION = re.compile(r".* \(\*\)\((?P<parameters>.*)\)(?: noexcept)?")
_INDICES = "ijklmnopqr"


class Kind(NamedTuple):
    """A kind of arguments: what messages call one, what C++ gets for it, and what to do where C++ takes a number."""

    name: str
    in_cxx: str
    remedy: str


_TEXT = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")


def split_label(label: str) -> tuple[str, str]:
    """Return what a call's *label* says is called, which may be a lambda with its own parentheses, and the types of the
    arguments, up to the last parenthesis; nothing for a label that is no call."""
    if not label.endswith(")"):
        return label.partition("(")[0], ""
    hidden = _TEXT.sub(lambda text: "_" * len(text[0]), label)
    opening, depth = 0, 0
    for place, character in enumerate(hidden):
        if character in "([{":
            opening = place if character == "(" and not depth else opening
            depth += 1
        depth -= character in ")]}"
    return label[:opening], label[opening + 1 :]


def list_arguments(passed: str) -> list[str]:
    """Return the types of the arguments of a call, which messages write as *passed*, up to its last parenthesis."""
    found, depth = [""], 0
    for character in passed.removesuffix(")"):
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return [each.strip() for each in found]


def ask_parameters(called: str, ask_type: Callable[[str], str | None]) -> list[str] | None:
    """Return the types of the parameters of the function that is *called*; ``None`` where it is no function, or one of
    several. *ask_type* returns the type of an expression of C++."""
    found = _FUNCTION.fullmatch(ask_type(f"&{called}") or "")
    return None if found is None else list_arguments(found["parameters"])


class Array(NamedTuple):
    """The type of an array, as messages write its *element*, *ndim* and *layout*: ``A``, ``C`` or ``F``."""

    element: str
    ndim: int
    layout: str

    @property
    def is_strided(self) -> bool:
        return self.layout == "A"


def find_array(argument: str) -> Array | None:
    """Return the array that an *argument* is, as messages write its type; ``None`` for any other."""
    found = _ARRAY.fullmatch(argument)
    return None if found is None else Array(found["element"], int(found["ndim"]), found["layout"])


def find_kind(argument: str) -> Kind | None:
    """Return the kind of an *argument*, as messages write its type; ``None`` for a number and any other."""
    if argument == "none":
        return Kind("None", "a null pointer, nullptr", "pass a number, not None")
    if argument == "string" or argument.startswith("'"):  # as calls are written
        return Kind("a string", "a const char*", "pass a number, not a string")
    if re.match(r"(?:Uni)?Tuple\(|NamedTuple|NamedUniTuple|\(", argument):
        return Kind("a tuple", "a cuda::std::tuple", "pass one element of it, such as value[0]")
    if array := find_array(argument):
        indices = ", ".join(_INDICES[: array.ndim]) or "()"
        return Kind("an array", "a pointer to its elements", f"pass one element of it, such as x[{indices}]")
    return None


def describe(argument: str) -> str:
    """Return what messages say that an *argument* is, whose type they write so."""
    if array := find_array(argument):
        return f"an array of {array.element}"
    if kind := find_kind(argument):
        return kind.name
    return f"{'an' if argument[:1] in 'aeiou' and not argument.startswith('uint') else 'a'} {argument}"


def as_pointers(arguments: Sequence[str]) -> list[str]:
    """Return the types of *arguments* with those of arrays and strings as the pointers that C++ gets."""
    return [*map(_as_pointer, arguments)]


def _as_pointer(argument: str) -> str:
    if array := find_array(argument):
        return f"{array.element} *"
    kind = find_kind(argument)
    if kind is None:
        return argument
    return "char *" if kind.name == "a string" else kind.name


def explain_kinds(arguments: Sequence[str], *, takes_pointers: bool = False) -> str:
    """Return what to do about the first of *arguments* that is None or a tuple, with which C++ can do little, where C++
    *takes_pointers*, or numbers; empty if there is none."""
    for number, argument in enumerate(arguments, 1):
        if (kind := find_kind(argument)) and kind.name in ("None", "a tuple"):
            remedy = "pass an array, not None" if kind.name == "None" and takes_pointers else kind.remedy
            return f"{remedy}: argument {number} is {kind.in_cxx} in C++"
    return ""
