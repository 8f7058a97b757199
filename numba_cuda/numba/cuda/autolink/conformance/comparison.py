# SPDX-License-Identifier: BSD-2-Clause
"""Whether an object's code and link key are the same when it is asked again, and differ from those of other objects."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInputError

from ..protocol.ask import link_key
from ..protocol.callee import KEY_HOOK
from ..protocol.errors import HookError
from ..protocol.value_digest import is_plain, value_digest
from . import reproducibility
from .records import FailedCheck, FailedError, LinkedCode, SkippedError
from .subject import Subject

_KEY_OF_VALUES = "make the key of values: no hash() of a string, no id(), no address in a repr, no counter, no time"
_VARYING = "hash() of a string, id(), the order of a set, addresses in a repr, temporary paths, times, random numbers"


def check_repetition(subject: Subject) -> bool:
    """Check that the object returns the same code when it is asked again in this process. Return whether it does."""
    difference = ""
    with subject.findings.check("returns the same code when asked again"):
        for target in subject.targets:
            try:
                again = reproducibility.fresh(subject.site.callee, subject.site.argtypes, target).inputs()
                before, now = ([*map(LinkedCode.of, inputs)] for inputs in (subject.answers[target], again))
                difference = _difference(before, now, "first", "then")
            except (HookError, LinkInputError) as error:
                difference = str(error)
            if difference:
                on = "the object's own constant attributes, the argument types and autolink.current_target()"
                raise FailedError(difference, "the same code each time", f"make the code depend on nothing but {on}")
    return not difference


def check_other_process(subject: Subject, requested: bool) -> None:
    """Check that the object returns the same code and link key in another process, if that is *requested*."""
    callee, argtypes, targets = question = subject.site.callee, subject.site.argtypes, subject.targets
    with subject.findings.check("returns the same code in another process without a GPU"):
        if not requested:
            raise SkippedError("not requested")
        try:
            here, there = reproducibility.ask_here(*question), reproducibility.ask_there(*question)
        except HookError as error:
            todo = "let the hook answer whenever it is asked"
            raise FailedError(str(error), "the same code each time", todo) from error
        except reproducibility.AskingError as error:
            todo = "use nothing in the hook that needs a GPU: autolink.current_target() is what to generate code for"
            raise FailedError(str(error), "the same code, with no GPU visible", todo) from error
        for one, other in zip(here.code, there.code, strict=True):
            if difference := _difference(one, other, "here", "there"):
                todo = f"put nothing into code or symbols that differs between processes: {_VARYING}"
                raise FailedError(difference, "the same code", todo)
        if here.key != there.key:
            got = f"another key there: {safe_repr(link_key(callee, argtypes, targets[0]))} here"
            name = f"its {KEY_HOOK} is the same in another process"
            subject.findings.wrong.append(FailedCheck(name, got, "the same value", _KEY_OF_VALUES))


def check_own_symbols(subject: Subject, others: Sequence[Subject]) -> None:
    """Check that no other code defines the same symbols: a kernel that calls both objects could not be linked."""
    if not others:
        return
    with subject.findings.check("its symbols name everything that its code depends on"):
        for other in others:
            shared = [symbol for symbol in other.symbols if symbol in subject.symbols]
            if shared and not _same_code(subject, other):
                got = f"{', '.join(shared)}, also defined by {other.findings.call} with different code"
                todo = "put into the symbol what the code depends on: attributes of the object, types"
                raise FailedError(got, "a symbol of its own for different code", todo)


def check_link_key(subject: Subject, others: Sequence[Subject]) -> None:
    """Check that a link key consists of values, is the same each time, and differs where the code does."""
    with subject.findings.check(f"its {KEY_HOOK} identifies its code"):
        if subject.site.callee.link_key is None:
            raise SkippedError("it has none")
        try:
            key, again = _key(subject), _key(subject)
        except HookError as error:
            raise FailedError(str(error), "a key", "let it return a value, or None for no key") from error
        if key is None:
            raise SkippedError("it is None")
        if (part := _without_value(key)) is not None:
            got = f"{safe_repr(key)}, in which {part} has no value of its own"
            todo = "put values into the key that differ between objects with different code"
            raise FailedError(got, "numbers, strings, types, and tuples of these", todo)
        if value_digest(key) != value_digest(again):
            got = f"first {safe_repr(key)}, then {safe_repr(again)}"
            raise FailedError(got, "the same key each time", _KEY_OF_VALUES)
        for other in others:
            must_differ = _question(subject) == _question(other) and not _same_code(subject, other)
            if must_differ and value_digest(_key(other)) == value_digest(key):
                got = f"{safe_repr(key)}, also the key of {other.findings.call} with different code"
                todo = "put into the key what the code depends on: attributes of the object, versions of the generator"
                raise FailedError(got, "different keys for different code", todo)


def _key(subject: Subject) -> Any:
    return link_key(subject.site.callee, subject.site.argtypes, subject.targets[0])


def _question(subject: Subject) -> Any:
    """Return what an answer is stored under besides the key: the signature, and the object's class."""
    obj = subject.site.callee.obj
    return subject.site.argtypes, obj if isinstance(obj, (FunctionType, type)) else type(obj)


def _same_code(one: Subject, other: Subject) -> bool:
    return one.answers[one.targets[0]] == other.answers[one.targets[0]]


def _without_value(value: Any, enclosing: tuple[int, ...] = ()) -> str | None:
    """Return as text a part of a key that has no value of its own, such as a lock or a plain ``object()``, or None."""
    simple = is_plain(value) or callable(value) or isinstance(value, (os.PathLike, bytearray, memoryview))
    if simple or id(value) in enclosing:
        return None
    enclosing = (*enclosing, id(value))
    if isinstance(value, Mapping):
        parts = [part for pair in value.items() for part in pair]
    elif isinstance(value, (tuple, list, set, frozenset)):
        parts = list(value)
    elif dataclasses.is_dataclass(value):
        parts = [getattr(value, field.name) for field in dataclasses.fields(value)]
    else:
        try:
            reduced = value.__reduce_ex__(4)
        except Exception:
            return safe_repr(value)
        parts = [part for part in reduced[1:3] if part] if isinstance(reduced, tuple) else [reduced]
        if parts == [(type(value),)] or not parts:
            return safe_repr(value)
    return next((found for part in parts if (found := _without_value(part, enclosing)) is not None), None)


def _difference(one: Sequence[LinkedCode], other: Sequence[LinkedCode], first: str, then: str) -> str:
    """Return how two answers differ, or an empty text if they are the same code."""
    if len(one) != len(other):
        return f"{first} {len(one)} pieces of code, {then} {len(other)}"
    for before, after in zip(one, other, strict=True):
        if before.digest != after.digest:
            return f"{first} {before}, {then} {after}{_differing_line(before, after, first, then)}"
    return ""


def _differing_line(before: LinkedCode, after: LinkedCode, first: str, then: str) -> str:
    lines = itertools.zip_longest((before.text or "").splitlines(), (after.text or "").splitlines(), fillvalue="")
    for number, (one, other) in enumerate(lines, 1):
        if one != other:
            return f"\nline {number} {first}: {one.strip()}\nline {number} {then}: {other.strip()}"
    return ""
