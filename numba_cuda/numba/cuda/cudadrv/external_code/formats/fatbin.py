# SPDX-License-Identifier: BSD-2-Clause
"""Fatbins, which hold code for several architectures, as nvcc of CUDA 12.9 to 13.4 writes them."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from .bounds import FormatError, check_range, unpack

FATBIN_MAGIC = b"\x50\xed\x55\xba"

_HEADER = struct.Struct("<4sHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_KINDS = {1: "PTX", 2: "cubin", 8: "LTO-IR"}


@dataclass(frozen=True)
class FatbinEntry:
    """An entry of a fatbin; ``code`` is ``None`` if it is compressed."""

    kind: str
    sm: int
    code: bytes | None


def read_fatbin(code: bytes) -> list[FatbinEntry]:
    """Return the entries of a fatbin, or of several one after another. Raises `FormatError` if one does not lie within
    the bytes, or there is none."""
    entries: list[FatbinEntry] = []
    start = _read_one(code, 0, entries)
    while (start := code.find(FATBIN_MAGIC, start, start + 64)) >= 0:
        start = _read_one(code, start, entries)
    if not entries:
        raise FormatError("the fatbin holds no code")
    return entries


def _read_one(code: bytes, start: int, entries: list[FatbinEntry]) -> int:
    """Add the entries of the fatbin at *start*, and return where it ends."""
    magic, _, header_size, size = unpack(_HEADER, code, start, "a fatbin's header")
    if magic != FATBIN_MAGIC:
        raise FormatError(f"a fatbin begins with {FATBIN_MAGIC!r}, not with {magic!r}")
    if header_size < _HEADER.size:
        raise FormatError(f"its header gives its own size as {header_size} bytes, not {_HEADER.size} or more")
    at = start + header_size
    end = at + size
    check_range(code, at, size, "content")
    while at < end:
        if end - at < _ENTRY.size:
            raise FormatError(f"an entry's header takes {_ENTRY.size} bytes, and {end - at} are left")
        kind, _, entry_header, padded, compressed, _, _, _, sm, *_ = _ENTRY.unpack_from(code, at)
        body = at + entry_header
        if entry_header < _ENTRY.size or body + padded > end or compressed > padded:
            raise FormatError("an entry does not lie within the fatbin: it is truncated or damaged")
        content = None if compressed else code[body : body + padded]
        entries.append(FatbinEntry(_KINDS.get(kind, f"kind {kind}"), sm, content))
        at = body + padded
    return end
