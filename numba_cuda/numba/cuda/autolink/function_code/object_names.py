# SPDX-License-Identifier: BSD-2-Clause
"""Short names of objects, which still tell the objects of a report apart."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from numba_cuda_autolink.source_locations import shown_file

if TYPE_CHECKING:
    from numba.cuda.cudadrv.external_code.plan.python_functions import PythonFunction

LAMBDA = "<lambda>"
_LONGEST = 40
_ELIDED = "…"
_CALL = re.compile(r"([\w.]+)\((.*)\)", re.DOTALL)
_ITEM = re.compile(r"[\w.]+\(.*\)\['([^']*)'\]", re.DOTALL)
_FILE_ITEM = re.compile(r"[\w.]+\('([^'\n{};]+\.\w+)'[,)]")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")

T = TypeVar("T", bound=Hashable)


def short_names(objects: Mapping[T, tuple[str, str]]) -> dict[T, str]:
    """Return a name for each of *objects*, of which a fallback name and the repr are known. No two names are equal.

    A short repr is the name. Of a longer one, arguments that all objects of its class share are left out, and never one
    that differs. An item of a library, ``cxx('...')['hypot']``, has its own name, unless another object has it too.
    Objects whose repr tells nothing have the fallback name, and a number if there are several.
    """
    classes: defaultdict[str, list[T]] = defaultdict(list)
    arguments: dict[T, list[str]] = {}
    names: dict[T, str] = {}
    for key, (fallback, text) in objects.items():
        found = _CALL.fullmatch(text)
        if found is not None:
            classes[found[1]].append(key)
            arguments[key] = split_arguments(found[2])
        names[key] = fallback if text.startswith("<") else text
    for name, members in classes.items():
        shared = Counter(argument for key in members for argument in set(arguments[key]))
        for key in members:
            if len(names[key]) > _LONGEST:
                kept = (each if shared[each] < len(members) else _ELIDED for each in arguments[key])
                names[key] = f"{name}({', '.join(_without_repeats(kept))})"
    items = {key: item for key, name in names.items() if (item := item_name(name))}
    taken = Counter([*items.values(), *(name for key, name in names.items() if key not in items)])
    names.update({key: name for key, name in items.items() if taken[name] == 1})
    same = Counter(names.values())
    numbers: Counter[str] = Counter()
    for key, name in names.items():
        if same[name] > 1:
            numbers[name] += 1
            names[key] = f"{name} #{numbers[name]}"
    return names


def describe_functions(functions: Iterable[PythonFunction]) -> dict[PythonFunction, str]:
    """Return what tells each of *functions* from others of its name: the line where it is defined, of a lambda in any
    case; the values that its closure has, where they differ; or a number. Of the only one it is empty."""
    alike: defaultdict[str, list[PythonFunction]] = defaultdict(list)
    for function in dict.fromkeys(functions):
        alike[function.name].append(function)
    found: dict[PythonFunction, str] = {}
    for name, same in alike.items():
        is_placed = name == LAMBDA or len({(each.path, each.line) for each in same}) > 1
        for each in same:
            place = f" at {os.path.basename(shown_file(each.path))}:{each.line}" if is_placed else ""
            here = [dict(other.values) for other in same if (other.path, other.line) == (each.path, each.line)]
            values = [
                f"{kind.partition(' ')[2]}={value}"
                for kind, value in each.values
                if any(other.get(kind) != value for other in here)
            ]
            found[each] = place + (f" with {', '.join(values)}" if values else "")
        texts = Counter(found[each] for each in same)
        numbers: Counter[str] = Counter()
        for each in same:
            if texts[text := found[each]] > 1:
                numbers[text] += 1
                found[each] = f"{text} #{numbers[text]}"
    return found


def item_name(text: str) -> str | None:
    """Return the name of an item of a library, ``hypot`` of ``cxx('...')['hypot']``; ``None`` for any other repr."""
    found = _ITEM.fullmatch(text)
    return found[1] if found else None


def file_of_item(text: str) -> str | None:
    """Return the file of the library of an item, ``waves.cu`` of ``cxx('waves.cu')['hypot']``; ``None`` for any other
    repr, and for a library that is given as text."""
    found = _FILE_ITEM.match(text) if item_name(text) else None
    return os.path.basename(found[1]) if found else None


def only_different(names: Iterable[str]) -> list[str]:
    """Return *names* without the arguments that all of them have in the same place: ``["f(n=1)", "f(n=2)"]`` for
    ``["f(n=1, m=0)", "f(n=2, m=0)"]``. Names that are not calls with as many arguments, and equal names, are
    returned as they are."""
    names = list(names)
    found = [_CALL.fullmatch(name) for name in names]
    given = [split_arguments(call[2]) if call else [] for call in found]
    if len({len(each) for each in given}) != 1 or not all(given):
        return names
    differ = [number for number, values in enumerate(zip(*given, strict=True)) if len(set(values)) > 1]
    if not differ:
        return names
    return [
        f"{call[1]}({', '.join(values[number] for number in differ)})"
        for call, values in zip(found, given, strict=True)
        if call
    ]


def _without_repeats(arguments: Iterable[str]) -> Iterator[str]:
    for argument, group in itertools.groupby(arguments):
        yield from (argument,) if argument == _ELIDED else group


def split_arguments(text: str) -> list[str]:
    """Return the arguments of a call as *text*, split at the commas outside of brackets and strings."""
    hidden = _QUOTED.sub(lambda found: "x" * len(found[0]), text)
    depth, start, parts = 0, 0, []
    for at, character in enumerate(hidden):
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth <= 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [part for part in (*parts, text[start:].strip()) if part]
