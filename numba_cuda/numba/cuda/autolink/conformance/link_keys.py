# SPDX-License-Identifier: BSD-2-Clause
"""Whether a link key consists of values, which mean the same in another process."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from numba.cuda.cudadrv.external_code.safe_repr import safe_repr

from ..value_fingerprint import plain, state


def without_value(key: Any) -> str | None:
    """Return as text a part of *key* that has no value of its own, such as a lock or a plain ``object()``, or None."""
    return _without_value(key, [])


def _without_value(value: Any, enclosing: list[int]) -> str | None:
    if (
        plain(value)
        or callable(value)
        or isinstance(value, (os.PathLike, bytearray, memoryview))
        or id(value) in enclosing
    ):
        return None
    enclosing = [*enclosing, id(value)]
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
