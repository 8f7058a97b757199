# SPDX-License-Identifier: BSD-2-Clause
"""What callers give to public functions: paths and lists, or a `TypeError` that names the function."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import Any

from .messages import safe_repr

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
    """Return a value's type and its repr, shortened to *longest* characters."""
    return "None" if value is None else f"{type(value).__name__} {safe_repr(value, longest)}"
