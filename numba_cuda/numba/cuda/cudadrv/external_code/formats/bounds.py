# SPDX-License-Identifier: BSD-2-Clause
"""Slices of untrusted bytes: each function raises `FormatError`, which names *what* it read, if that is not there."""

from __future__ import annotations

import struct
from typing import Any

from numba_cuda_autolink.errors import FormatError

_LONGEST_NAME = 1 << 16


def check_range(code: bytes, offset: int, size: int, what: str) -> None:
    if offset + size > len(code):
        raise FormatError(f"its {what} ends at byte {offset + size} of {len(code)}: it is truncated or damaged")


def unpack(layout: struct.Struct, code: bytes, offset: int, what: str) -> tuple[Any, ...]:
    left = max(len(code) - offset, 0)
    if left < layout.size:
        raise FormatError(f"{what} takes {layout.size} bytes, and {left} are left: it is truncated or damaged")
    return layout.unpack_from(code, offset)


def string_at(strings: bytes, start: int, what: str) -> str:
    """Return the zero-terminated string at *start* of a string table, of at most 64 KiB."""
    end = strings.find(b"\0", start, start + _LONGEST_NAME)
    if end < 0:
        raise FormatError(f"{what} is not in its string table")
    return strings[start:end].decode("utf-8", "replace")
