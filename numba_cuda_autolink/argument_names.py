# SPDX-License-Identifier: BSD-2-Clause
"""The names of arguments of public functions: the error for a wrong one has the right ones."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from .errors import flag
from .printable_texts import did_you_mean, number_of
from .short_tracebacks import short_traceback

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
