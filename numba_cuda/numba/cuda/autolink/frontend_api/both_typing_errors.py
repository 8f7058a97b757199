# SPDX-License-Identifier: BSD-2-Clause
"""Typing errors that are caught as numba-cuda's and as Numba's, of which numba-cuda raises both, or as errors of
Python, some of which front ends raise in place of typing errors."""

from __future__ import annotations

from typing import Any

from numba.core import errors as of_numba
from numba.cuda.core import errors


class BothTypingError(errors.TypingError, of_numba.TypingError):
    """A typing error of numba-cuda, under whose name it is printed, and of Numba."""

    def __reduce__(self) -> Any:
        return _restored, (self.args, vars(self))


def _restored(args: tuple[Any, ...], attributes: dict[str, Any]) -> BothTypingError:
    error = BothTypingError(*args)
    error.__dict__.update(attributes)
    return error


BothTypingError.__module__ = errors.__name__
BothTypingError.__name__ = BothTypingError.__qualname__ = errors.TypingError.__name__


def also_of_class(error: type[Exception], other: type[Exception]) -> type[Exception]:
    """Return the class of errors that are of the class *error*, as which they are printed and pickled, and of the class
    *other*; *error* if Python has no such class, as where *other* has attributes in C."""
    members: dict[str, Any] = {name: getattr(error, name) for name in ("__module__", "__qualname__", "__str__")}
    if error is not BothTypingError:
        members["__reduce__"] = lambda self: (error, self.args, vars(self))
    try:
        return type(error.__name__, (error, other), members)
    except TypeError:
        return error
