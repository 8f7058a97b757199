# SPDX-License-Identifier: BSD-2-Clause
"""What compiles of a source looked up, for other machines and for moved trees: names in `SearchRoots`, not paths.

As in ccache's direct mode, a record has several alternatives, one for each set of contents that the source was compiled
with, such as those of two branches.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import NamedTuple

_MOST = 8
_LARGEST = 64 << 20  # bytes of a record


class Alternative(NamedTuple):
    """The names of the files that a compile read, each with the SHA-256 of its content; those of the files that it did
    not find, joined by zeros, by the name of their folder; and what stands for the *places* of all of them, which the
    code may contain."""

    files: tuple[tuple[str, str], ...]
    absent: tuple[tuple[str, str], ...]
    places: str


def pack(alternatives: Iterable[Alternative]) -> bytes:
    """Return the first few *alternatives* as bytes. They have most of their names in common."""
    files: dict[tuple[str, str], int] = {}
    names: dict[str, int] = {}  # many folders are searched for the same names
    packed = [
        (
            [files.setdefault(each, len(files)) for each in alternative.files],
            [(folder, names.setdefault(each, len(names))) for folder, each in alternative.absent],
            alternative.places,
        )
        for alternative in list(alternatives)[:_MOST]
    ]
    return zlib.compress(json.dumps((list(files), list(names), packed), separators=(",", ":")).encode(), 1)


def unpack(data: bytes) -> list[Alternative]:
    """Return the alternatives that were packed; none if *data* is damaged."""
    try:
        unpacker = zlib.decompressobj()
        files, names, packed = json.loads(unpacker.decompress(data, _LARGEST))
        return [
            Alternative(
                tuple((str(name), str(sha256)) for name, sha256 in (files[number] for number in read)),
                tuple((str(folder), str(names[number])) for folder, number in absent),
                str(places),
            )
            for read, absent, places in packed
        ]
    except (zlib.error, ValueError, TypeError, IndexError, KeyError, RecursionError):
        return []
