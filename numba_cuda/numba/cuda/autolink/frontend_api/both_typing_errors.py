# SPDX-License-Identifier: BSD-2-Clause
"""Typing errors that are caught as numba-cuda's and as Numba's, of which numba-cuda raises both."""

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
