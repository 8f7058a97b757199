# SPDX-License-Identifier: BSD-2-Clause
"""Whether the object's symbols and link key differ from those of other objects with other code."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

from numba.cuda.cudadrv.external_code.safe_repr import safe_repr

from ..protocol.asking import link_key
from ..protocol.callee import KEY_HOOK, Callee
from ..protocol.errors import HookError
from ..value_fingerprint import fingerprint, plain, state
from .records import FailedError, Findings, SkippedError
from .repetition import KEY_OF_VALUES, code_difference
from .subject import Subject


def check_own_symbols(subject: Subject, others: Sequence[Subject], findings: Findings) -> None:
    """Check that no other code defines the same symbols: a kernel that calls both objects could not be linked."""
    if not others:
        return
    with findings.check("its symbols name everything that its code depends on"):
        for other in others:
            shared = [symbol for symbol in other.symbols if symbol in subject.symbols]
            if shared and not _same_code(subject, other):
                raise FailedError(
                    f"{', '.join(shared)}, also defined by {other.call} with different code",
                    "a symbol of its own for different code",
                    "put into the symbol what the code depends on: attributes of the object, types",
                )


def check_link_key(subject: Subject, others: Sequence[Subject], findings: Findings) -> None:
    """Check that a link key consists of values, is the same each time, and differs where the code does."""
    with findings.check(f"its {KEY_HOOK} identifies its code"):
        if subject.callee.link_key is None:
            raise SkippedError("it has none")
        try:
            key, again = _key(subject), _key(subject)
        except HookError as error:
            raise FailedError(str(error), "a key", "let it return a value, or None for no key") from error
        if key is None:
            raise SkippedError("it is None")
        if (part := _without_value(key)) is not None:
            raise FailedError(
                f"{safe_repr(key)}, in which {part} has no value of its own",
                "numbers, strings, types, and tuples of these",
                "put values into the key that differ between objects with different code",
            )
        if fingerprint(key) != fingerprint(again):
            got = f"first {safe_repr(key)}, then {safe_repr(again)}"
            raise FailedError(got, "the same key each time", KEY_OF_VALUES)
        for other in others:
            if _comparable(subject, other) and fingerprint(_key(other)) == fingerprint(key):
                raise FailedError(
                    f"{safe_repr(key)}, also the key of {other.call} with different code",
                    "different keys for different code",
                    "put into the key what the code depends on: attributes of the object, versions of the generator",
                )


def _key(subject: Subject) -> Any:
    return link_key(subject.callee, subject.site.argtypes, subject.targets[0])


def _comparable(one: Subject, other: Subject) -> bool:
    """Whether the keys have to differ. Signature and class are part of what an answer is stored under."""
    same_question = one.site.argtypes == other.site.argtypes and _class_of(one.callee) == _class_of(other.callee)
    return same_question and not _same_code(one, other)


def _same_code(one: Subject, other: Subject) -> bool:
    target = one.targets[0]
    return not code_difference(one.answers[target], other.answers[target])


def _class_of(callee: Callee) -> Any:
    return callee.obj if isinstance(callee.obj, (FunctionType, type)) else type(callee.obj)


def _without_value(value: Any, enclosing: tuple[int, ...] = ()) -> str | None:
    """Return as text a part of a key that has no value of its own, such as a lock or a plain ``object()``, or None."""
    simple = plain(value) or callable(value) or isinstance(value, (os.PathLike, bytearray, memoryview))
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
        attributes = state(value)
        if not attributes or isinstance(attributes, type):
            return safe_repr(value)
        parts = list(attributes.values()) if isinstance(attributes, dict) else [attributes]
    return next((found for part in parts if (found := _without_value(part, enclosing)) is not None), None)
