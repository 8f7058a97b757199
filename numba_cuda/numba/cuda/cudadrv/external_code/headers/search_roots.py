# SPDX-License-Identifier: BSD-2-Clause
"""The directories in which a source's headers are looked up, and names of files that are the same wherever they are.

With these names it is recorded what compiles of a source looked up, for other machines and for moved trees. As in
ccache's direct mode, a record has several alternatives, one for each set of contents that the source was compiled with,
such as those of two branches.
"""

from __future__ import annotations

import functools
import json
import os
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

_NAME = re.compile(r"<(\d+)>/(.*)", re.DOTALL)
_MOST = 8  # alternatives in a record
_LARGEST = 64 << 20  # bytes of a record


@dataclass(frozen=True)
class SearchRoots:
    """The absolute paths in which headers are looked up: *own*, the directory of the source (``None`` for none), and
    *search*, the include paths, some of which are those of installed *packages*."""

    own: str | None
    search: tuple[str, ...]
    packages: tuple[str, ...]

    @functools.cached_property
    def _folders(self) -> tuple[tuple[str, str, int], ...]:
        """Each directory: what paths in it begin with, itself, and its number; the deepest first, the source's own
        last, which often has nothing to do with the others."""
        numbered = [(os.path.join(folder, ""), folder, number) for number, folder in enumerate(self.search, 1)]
        own = [] if self.own is None else [(os.path.join(self.own, ""), self.own, 0)]
        return (*sorted(numbered, key=lambda each: (-len(each[0]), each[2])), *own)

    def name(self, path: str) -> str:
        """Return a name for *path* that is the same wherever the directories are. A path in a package is its own name:
        the compiler may write it into the code."""
        folder, _, name = path.rpartition("/")
        base, prefix, number = self._place(folder)
        return path if number < 0 or base in self.packages else f"<{number}>/{prefix}{name}"

    def _place(self, folder: str) -> tuple[str, str, int]:
        if (known := self._places.get(folder)) is None:
            inside = f"{folder}/"
            places = ((base, inside[len(start) :], n) for start, base, n in self._folders if inside.startswith(start))
            known = self._places[folder] = next(places, (folder, "", -1))
        return known

    @functools.cached_property
    def _places(self) -> dict[str, tuple[str, str, int]]:
        return {}

    def path(self, name: str) -> str:
        """Return the path with this *name*. Raise `ValueError` if there is none here."""
        if (found := _NAME.fullmatch(name)) is None:
            return name
        folder = (self.own, *self.search)[int(found[1])] if int(found[1]) <= len(self.search) else None
        if folder is None:
            raise ValueError(f"there is no directory for {name}")
        return os.path.join(folder, found[2])

    def is_packaged(self, path: str) -> bool:
        return path.startswith(self._packaged)

    @functools.cached_property
    def _packaged(self) -> tuple[str, ...]:
        return tuple(os.path.join(folder, "") for folder in self.packages)

    @property
    def layout(self) -> tuple[str, ...]:
        """How the include paths lie within each other: names have the same meaning where it is the same."""
        folders = [(number, os.path.join(folder, "")) for number, folder in enumerate(self.search, 1)]
        return tuple(
            folder
            if folder[:-1] in self.packages
            else " ".join(f"{n}/{folder.removeprefix(other)}" for n, other in folders if folder.startswith(other))
            for _, folder in folders
        )

    def shared_with(self, code: str) -> tuple[tuple[int, str], ...]:
        """Return the include paths that are the directory of the source, or are in it and named in its *code*: files in
        them may have been found in either. Each is a number and a path in that directory."""
        own = None if self.own is None else os.path.join(self.own, "")
        inside = ((n, os.path.join(folder, "")) for n, folder in enumerate(self.search, 1))
        below = ((n, folder.removeprefix(own)) for n, folder in inside if own is not None and folder.startswith(own))
        return tuple((n, name) for n, name in below if name in code)


class Alternative(NamedTuple):
    """The names of the files that a compile read, each with the SHA-256 of its content; those of the files that it did
    not find, joined by zeros, by the name of their folder; and what stands for the *places* of all of them, which the
    code may contain."""

    files: tuple[tuple[str, str], ...]
    absent: tuple[tuple[str, str], ...]
    places: str


def pack_alternatives(alternatives: Iterable[Alternative]) -> bytes:
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


def unpack_alternatives(data: bytes) -> list[Alternative]:
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
