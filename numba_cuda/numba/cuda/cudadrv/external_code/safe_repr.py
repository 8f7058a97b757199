# SPDX-License-Identifier: BSD-2-Clause
"""The repr of any object, for messages."""

from __future__ import annotations

from typing import Any

_LONGEST_REPR = 120


def safe_repr(obj: Any) -> str:
    """``repr(obj)``, shortened, and with a stand-in where the object's own repr raises."""
    try:
        text = repr(obj)
    except Exception as error:
        text = f"<{type(obj).__qualname__} object whose repr raises {type(error).__name__}>"
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_REPR else f"{text[: _LONGEST_REPR - 3]}..."
