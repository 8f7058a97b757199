# SPDX-License-Identifier: BSD-2-Clause
"""Slices of untrusted bytes: what a header points to lies within the file, or `FormatError` is raised."""

from __future__ import annotations

import struct
from typing import Any

_LONGEST_NAME = 1 << 16


class FormatError(ValueError):
    """Bytes do not have the structure that their format requires."""


def check_range(code: bytes, offset: int, size: int, what: str) -> None:
    """Check that *code* has *size* bytes at *offset*; *what* names them in the error. Raises `FormatError` if it does
    not."""
    if offset + size > len(code):
        raise FormatError(f"its {what} ends at byte {offset + size} of {len(code)}: it is truncated or damaged")


def unpack(layout: struct.Struct, code: bytes, offset: int, what: str) -> tuple[Any, ...]:
    """Return the fields of *layout* at *offset*; *what* names them in the error. Raises `FormatError` if they do not
    lie within *code*."""
    left = max(len(code) - offset, 0)
    if left < layout.size:
        raise FormatError(f"{what} takes {layout.size} bytes, and {left} are left: it is truncated or damaged")
    return layout.unpack_from(code, offset)


def string_at(strings: bytes, start: int, what: str) -> str:
    """Return the zero-terminated string at *start* of a string table; *what* names it in the error. Raises
    `FormatError` if it is longer than 64 KiB or does not end within the table."""
    end = strings.find(b"\0", start, start + _LONGEST_NAME)
    if end < 0:
        raise FormatError(f"{what} is not in its string table")
    return strings[start:end].decode("utf-8", "replace")
