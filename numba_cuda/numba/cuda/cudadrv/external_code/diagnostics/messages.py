# SPDX-License-Identifier: BSD-2-Clause
"""Short texts of objects for messages, and the checks of paths and lists that callers give to public functions."""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from numba_cuda_autolink.errors import flag
from numba_cuda_autolink.printable_texts import bounded, did_you_mean, number_of, printable
from numba_cuda_autolink.short_tracebacks import short_traceback

_LONGEST_REPR = 120
_FOLDERS = re.compile(r"(?<![\w.])/(?:[^\s/:\"'()]+/)+")
_LONGEST_LINE = 119  # characters of the first line of a message


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
    """Return *message*; a first line that would be too long is shown without folders, and follows with them, or goes on
    in the next line."""
    first, *others = message.split("\n")
    if len(first) <= _LONGEST_LINE:
        return message
    shown = _FOLDERS.sub(".../", first)
    if shown == first:
        end = first.rfind(" ", 0, _LONGEST_LINE - 3)
        end = end if end > 0 else _LONGEST_LINE - 4
        return "\n".join([f"{first[:end]} ...", f"  ... {first[end:].lstrip()}", *others])
    shown = shown if len(shown) <= _LONGEST_LINE else f"{shown[: _LONGEST_LINE - 3]}..."
    return "\n".join([shown, f"  {first}", *others])


_Called = TypeVar("_Called", bound=Callable[..., Any])


def suggest_names(called: _Called) -> _Called:
    """Decorate a public function or class: the error for an unknown name of an argument suggests the nearest one, or
    lists all, that for too many arguments by position has the names of the others, what is annotated as a bool takes
    nothing else, and the traceback of an error about arguments shows the user's lines alone."""
    if isinstance(called, type):
        type.__setattr__(called, "__init__", suggest_names(called.__init__))  # type: ignore[misc]
        return called
    code = called.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    listed = ", ".join(name for name in known if name != "self")
    by_position, by_name = known[: code.co_argcount], known[code.co_argcount :]
    takes_any = bool(code.co_flags & inspect.CO_VARARGS)
    flags = {name for name, annotation in called.__annotations__.items() if annotation in ("bool", "bool | None")}

    @functools.wraps(called)
    def checked(*args: Any, **named: Any) -> Any:
        with short_traceback():
            name = called.__qualname__.removesuffix(".__init__")
            for given in named.keys() & flags:
                flag(f"{given}= of {name}()", named[given])
            for wrong in named.keys() - known:
                nearest = did_you_mean(wrong, known) or f"\n  expected: one of {listed}"
                raise TypeError(f"{name}() has no parameter {wrong!r}{nearest}")
            if len(args) > len(by_position) and by_name and not takes_any:
                own = "self" in by_position
                takes = f"takes {number_of(len(by_position) - own, 'argument')} by position, got {len(args) - own}"
                others = " or ".join(f"{each}=..." for each in by_name)
                raise TypeError(f"{name}() {takes}\n  what to do: give the others by name: {others}")
            return called(*args, **named)

    return cast(_Called, checked)


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
