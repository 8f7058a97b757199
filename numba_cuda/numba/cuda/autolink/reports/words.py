# SPDX-License-Identifier: BSD-2-Clause
"""Sizes, times and names as people read them."""

from __future__ import annotations

import os
import re

_STATISTICS = re.compile(r"(ptxas )?info +:|ptxas +\. +\d|INFO: ")


def size(count: int) -> str:
    """``74 bytes``, ``1.8 KiB``."""
    if count < 1024:
        return f"{count} byte{'s'[: count != 1]}"
    for unit, factor in (("KiB", 2**10), ("MiB", 2**20)):
        if count < 1024 * factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count / 2**30:.1f} GiB"


def time(seconds: float) -> str:
    """``62 µs``, ``19 ms``, ``1.2 s``."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def origin(name: str, seconds: float | None) -> str:
    """``built in 19 ms``, ``from memory in 20 µs``, ``from disk in 1 ms``."""
    how = f"from {name}" if name in ("memory", "disk") else name
    return how if seconds is None else f"{how} in {time(seconds)}"


def digest(sha256: str) -> str:
    """The first digits of a digest."""
    return f"sha256 {sha256[:12]}"


def function(qualname: str) -> str:
    """A function's name without those of the functions that it is defined in."""
    return qualname.rpartition("<locals>.")[2]


def file(path: str | None) -> str:
    """A file's name without its folder."""
    return os.path.basename(path) if path else "?"


def count(number: int, what: str) -> str:
    """``1 call``, ``3 calls``."""
    return f"{number} {what}{'s'[: number != 1]}"


def shortened(text: str, longest: int) -> str:
    """*text*, cut in the middle if it is longer than *longest*: both ends of a name tell it apart."""
    if len(text) <= longest:
        return text
    head = (longest - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (longest - 1 - head) :]}"


def notable(log: str) -> list[str]:
    """The lines of a linker's log that are no statistics."""
    return [line.strip() for line in log.splitlines() if line.strip() and not _STATISTICS.match(line.strip())]
