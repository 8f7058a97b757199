# SPDX-License-Identifier: BSD-2-Clause
"""A short text of any object, for messages."""

from __future__ import annotations

_LONGEST_REPR = 120
_LONGEST_TEXT = 1000
_LONGEST_LINE = 119  # characters of the first line of a message


def safe_repr(obj: object, longest: int = _LONGEST_REPR) -> str:
    """Return ``repr(obj)``, shortened to *longest* characters; if it raises, a text that says so."""
    try:
        text = " ".join(repr(obj).split())
    except Exception as error:
        text = f"<{type(obj).__qualname__} object whose repr raises {type(error).__name__}>"
    text = text.encode("utf-8", "backslashreplace").decode()  # lone surrogates cannot be printed
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def safe_text(error: BaseException) -> str:
    """Return the message of an error, its first line shortened; if it raises, a text that says so."""
    try:
        text = str(error)
    except Exception as raised:
        text = f"<an error whose text raises {type(raised).__name__}>"
    first, *others = text.encode("utf-8", "backslashreplace").decode().split("\n")
    if len(first) > _LONGEST_TEXT:
        first = f"{first[: _LONGEST_TEXT - 3]}..."
    return "\n".join([first, *others])


def with_short_first_line(message: str, whole: str = "") -> str:
    """Return *message*; a first line that would be too long is cut, and it, or the part *whole* of it, follows."""
    first, *others = message.split("\n")
    if len(first) <= _LONGEST_LINE:
        return message
    return "\n".join([f"{first[: _LONGEST_LINE - 3]}...", f"  {whole or first}", *others])
