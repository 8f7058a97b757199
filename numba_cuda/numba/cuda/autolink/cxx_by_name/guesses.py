# SPDX-License-Identifier: BSD-2-Clause
"""Guesses of what calls return, while C++ has not been asked. They only find the calls that follow: a wrong one costs a
run of the compiler, and never a type."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from numba.cuda import types

from ..frontend_api.typing_rounds import Use
from .calls import ELEMENT, Call, CallPattern, Records
from .declared_names import UNQUALIFIED, places_of_names
from .results import NUMBA_TYPES

# A word, or the elements of a tuple or a pair, before a name.
_TYPE_BEFORE = re.compile(r"(\w+|(?<=tuple)<[\w ,]+>|(?<=pair)<[\w ,]+>)\s+\Z")
_LONGEST_TYPE = 100
# A type after an arrow, or in a cast of what is returned.
_TYPE_IN_LAMBDA = re.compile(r"(?:->\s*|\breturn\s+(?:static_cast\s*<|\()?\s*)(\w[\w ]*?)\s*[{(>)]")


class KnownResults:
    """What calls of one library have returned, with their patterns and the types of their arguments."""

    def __init__(self) -> None:
        self._known: dict[CallPattern, dict[tuple[Any, ...], Any]] = {}

    def note(self, call: Call, returns: Any) -> None:
        """Note the Numba type that a call returns."""
        pattern, argtypes = _without_places(call)
        self._known.setdefault(pattern, {})[argtypes] = returns

    def guess(self, call: Call, use: Use, records: Records) -> Any:
        """Return what a call probably returns, whose result the kernel uses so; ``None`` if nothing is likely."""
        pattern, argtypes = _without_places(call)
        known = self._known.get(pattern, {})
        if argtypes in known:
            return known[argtypes]
        return next(filter(None, _guesses(call, use, records, known)), None)


def _without_places(call: Call) -> tuple[CallPattern, tuple[Any, ...]]:
    """Return the pattern and the types of a *call*, with numbers for the elements whose places it gets."""
    ways = itertools.zip_longest(call.argtypes, call.pattern.passing)
    argtypes = tuple(getattr(each, "dtype", each) if way == ELEMENT else types.unliteral(each) for each, way in ways)
    passing = tuple(None if way == ELEMENT else way for way in call.pattern.passing)
    while passing and passing[-1] is None:
        passing = passing[:-1]
    return dataclasses.replace(call.pattern, passing=passing, temporaries=(), constants=()), argtypes


def _guesses(call: Call, use: Use, records: Records, known: Mapping[tuple[Any, ...], Any]) -> Iterator[Any]:
    """Yield what a call may return, the most likely first."""
    number = _common_number(call.argtypes)
    declared = list(_read_declared(call))
    yield number if number in declared else next(iter(declared), None)
    for argtypes, returns in known.items():
        yield number if returns == _common_number(argtypes) else returns
    if use.attributes:
        yield next((record for record in records if use.attributes <= {*getattr(record, "fields", ())}), None)
    if use.count and number is not None:
        yield types.UniTuple(number, use.count)
    yield number


def _read_declared(call: Call) -> Iterator[Any]:
    """Yield the types before the name of the function in the library's own text, or those in a lambda, of those that
    are plain, or tuples of plain ones."""
    if (name := UNQUALIFIED.search(call.pattern.name)) is None:
        yield from filter(None, (NUMBA_TYPES.get(word) for word in _TYPE_IN_LAMBDA.findall(call.pattern.name)))
        return
    source = call.head.source
    places = places_of_names(source).get(name[1], ())
    words = (_TYPE_BEFORE.search(source, max(0, place - _LONGEST_TYPE), place) for place in places)
    for declared in (found[1] for found in words if found):
        found = [NUMBA_TYPES.get(each.strip()) for each in declared.strip("<>").split(",")]
        if None not in found:
            yield types.BaseTuple.from_types(found) if declared.startswith("<") else found[0]


def _common_number(argtypes: Sequence[Any]) -> Any:
    """Return the type of the numbers among the arguments: the widest float, or the first number."""
    elements = [types.unliteral(getattr(each, "dtype", each)) for each in argtypes]
    numbers = [each for each in elements if isinstance(each, (types.Number, types.Boolean))]
    return max(numbers, key=_width_of_float, default=None)


def _width_of_float(number: Any) -> int:
    return number.bitwidth if isinstance(number, (types.Float, types.Complex)) else 0
