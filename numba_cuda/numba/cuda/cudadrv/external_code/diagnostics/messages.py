# SPDX-License-Identifier: BSD-2-Clause
"""Short texts of objects for messages, and the checks of paths and lists that callers give to public functions."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping
from typing import Any

from numba_cuda_autolink.argument_names import suggest_names as suggest_names
from numba_cuda_autolink.printable_texts import bounded, printable
from numba_cuda_autolink.printable_texts import did_you_mean as did_you_mean

_LONGEST_REPR = 120
_PATH = re.compile(r"(?<![\w.])/(?:[^\s/:\"'()]+/)+(?P<name>[^\s/:\"'()]*)")
LONGEST_LINE = 119  # characters of the first line of a message, where paths can be left out


def safe_repr(obj: object, longest: int = _LONGEST_REPR) -> str:
    """Return ``repr(obj)``, shortened to *longest* characters; if it raises, a text that says so."""
    try:
        text = " ".join(repr(obj).split())
    except Exception as error:
        text = f"<{type(obj).__qualname__} object whose repr raises {type(error).__name__}>"
    text = printable(text)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def safe_text(error: BaseException) -> str:
    """Return the message of an error, `bounded`; if it raises, a text that says so."""
    try:
        text = str(error)
    except Exception as raised:
        text = f"<an error whose text raises {type(raised).__name__}>"
    return bounded(text)


def shown_log(log: str) -> str:
    """Return what a message shows of a *log*, which an exception has as a whole."""
    return bounded(log, ": see the exception's .log")


def with_short_first_line(message: str) -> str:
    """Return *message*; of a first line that would be too long, paths are shown without folders, and follow with them.
    It is never cut: it is the whole diagnosis."""
    first, *others = message.split("\n")
    if len(first) <= LONGEST_LINE:
        return message
    shown = _PATH.sub(r".../\g<name>", first)
    paths = dict.fromkeys(found[0] for found in _PATH.finditer(first))
    left_out = [f"  path: {each}" for each in paths if not any(each in line for line in others)]
    return "\n".join([shown, *left_out, *others])


_SHORT = 60


def path(what: str, value: Any) -> str:
    """Return the path *value*, which is given to *what* (``"save()"``), as text."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{what} takes a path, got {shown(value)}\n  expected: a str or an os.PathLike")
    return os.fsdecode(value)


def items(what: str, values: Any, expected: str, most: int | None = None) -> list[Any]:
    """Return the items of *values*, which messages call *what* (``"the jobs of build_many()"``); *expected* describes
    such a list. Raises `ValueError` for more than *most*."""
    try:
        if isinstance(values, (str, bytes, Mapping)):
            raise TypeError
        found = list(values if most is None else itertools.islice(values, most + 1))
    except (TypeError, LookupError):  # what objects raise that are indexed, but not by numbers
        raise TypeError(f"{what} must be a list, got {shown(values)}\n  expected: {expected}") from None
    if most is not None and len(found) > most:
        raise ValueError(f"{what} have more than {most} items, expected an iterable that ends")
    return found


def shown(value: Any, longest: int = _SHORT) -> str:
    return "None" if value is None else f"{type(value).__name__} {safe_repr(value, longest)}"
