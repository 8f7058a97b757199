# SPDX-License-Identifier: BSD-2-Clause
"""The pieces of device code that code consists of: those in fatbins, in objects and in archives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .archive import read_archive
from .bounds import FormatError
from .elf import ELF_MAGIC, content, read_elf
from .fatbin import read_fatbin

_DEVICE_CODE = ("__nv_relfatbin", ".nv_fatbin")


@dataclass(frozen=True)
class Piece:
    """A piece of code of one kind (the name of a `Kind`); ``code`` is ``None`` if it is compressed."""

    kind: str
    sm: int | None
    code: bytes | None


def pieces(kind: str, code: bytes) -> Iterator[Piece]:
    """Yield the pieces of *code*: the entries of a fatbin, and of those in an object or archive; else *code* itself.
    Raises `FormatError` if the code is damaged."""
    if kind == "fatbin":
        for entry in read_fatbin(code):
            yield Piece(entry.kind, entry.sm, entry.code)
    elif kind == "object":
        yield from _pieces_of_object(code)
    elif kind == "archive":
        for name, member in read_archive(code):
            if member.startswith(ELF_MAGIC):
                try:
                    yield from _pieces_of_object(member)
                except FormatError as error:
                    raise FormatError(f"in its member {name!r}: {error}") from None
    else:
        yield Piece(kind, None, code)


def has_compressed_piece(kind: str, code: bytes) -> bool:
    """Return whether a piece of *code* is compressed and cannot be read here."""
    try:
        return any(piece.code is None for piece in pieces(kind, code))
    except FormatError:
        return False


def _pieces_of_object(code: bytes) -> Iterator[Piece]:
    file = read_elf(code)
    if file.is_cuda:
        yield Piece("cubin", file.sm, code)
        return
    for section in file.sections:
        if section.name in _DEVICE_CODE and section.size:
            yield from pieces("fatbin", content(code, section))
