# SPDX-License-Identifier: BSD-2-Clause
"""Fatbins, static libraries (ar archives) and objects: the pieces of device code that they hold; the header of LTO-IR.

Fatbins are read as nvcc of CUDA 12.9 to 13.4 writes them, LTO-IR as NVRTC and NVVM do.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from numba_cuda_autolink.errors import FormatError

from .elf import ELF_MAGIC, check_range, content, read_elf, unpack

ARCHIVE_MAGIC = b"!<arch>\n"
FATBIN_MAGIC = b"\x50\xed\x55\xba"

_DEVICE_CODE = ("__nv_relfatbin", ".nv_fatbin")  # sections of objects
_FATBIN = struct.Struct("<4sHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_ENTRY_KINDS = {1: "PTX", 2: "cubin", 8: "LTO-IR"}
_MEMBER = struct.Struct("16s12s6s6s8s10s2s")


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
        yield from _entries(code)
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
    return any(piece.code is None for piece in known_pieces(kind, code))


def has_ltoir(kind: str, code: bytes) -> bool:
    return any(piece.kind == "LTO-IR" for piece in known_pieces(kind, code))


def readable_pieces(kind: str, code: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield kind and content of the pieces of *code* that can be read."""
    return ((piece.kind, piece.code) for piece in known_pieces(kind, code) if piece.code is not None)


def known_pieces(kind: str, code: bytes) -> Iterator[Piece]:
    """Yield the pieces of *code*, up to what is wrong with its format."""
    with contextlib.suppress(FormatError):
        yield from pieces(kind, code)


def _pieces_of_object(code: bytes) -> Iterator[Piece]:
    file = read_elf(code)
    if file.is_cuda:
        yield Piece("cubin", file.sm, code)
        return
    for section in file.sections:
        if section.name in _DEVICE_CODE and section.size:
            yield from _entries(content(code, section))


def _entries(code: bytes) -> list[Piece]:
    """Return the entries of a fatbin, or of several one after another."""
    found: list[Piece] = []
    start = 0
    while start >= 0:
        magic, _, header_size, size = unpack(_FATBIN, code, start, "a fatbin's header")
        if magic != FATBIN_MAGIC:
            raise FormatError(f"a fatbin begins with {FATBIN_MAGIC!r}, not with {magic!r}")
        if header_size < _FATBIN.size:
            raise FormatError(f"its header gives its own size as {header_size} bytes, not {_FATBIN.size} or more")
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
            at = body + padded
            found.append(Piece(_ENTRY_KINDS.get(kind, f"kind {kind}"), sm, None if compressed else code[body:at]))
        start = code.find(FATBIN_MAGIC, end, end + 64)
    if not found:
        raise FormatError("the fatbin holds no code")
    return found


def read_archive(code: bytes) -> list[tuple[str, bytes]]:
    """Return the members of an ar archive, by name, without its tables of symbols and names. Raises `FormatError` if
    one does not lie within the bytes."""
    if not code.startswith(ARCHIVE_MAGIC):
        raise FormatError(f"an archive begins with {ARCHIVE_MAGIC!r}, not with {code[:8]!r}")
    at, long_names = len(ARCHIVE_MAGIC), b""
    members: list[tuple[str, bytes]] = []
    while at < len(code) and code[at : at + 2] != b"\n":
        raw_name, *_, raw_size, mark = unpack(_MEMBER, code, at, "a member's header")
        if mark != b"`\n" or not raw_size.strip().isdigit():
            raise FormatError(f"there is no member's header at byte {at}")
        size, name = int(raw_size), raw_name.decode("utf-8", "replace").rstrip()
        at += _MEMBER.size
        check_range(code, at, size, f"member {name!r}")
        body = code[at : at + size]
        if name == "//":
            long_names = body
        elif name not in ("/", "/SYM64/", "__.SYMDEF"):
            if name[:1] == "/" and name[1:].isdigit():
                start = int(name[1:])
                end = long_names.find(b"\n", start)
                if end < 0:
                    raise FormatError(f"the name of member {name!r} is not in the table of names")
                name = long_names[start:end].decode("utf-8", "replace")
            members.append((name.rstrip("/"), body))
        at += size + size % 2
    return members


LTO_IR_MAGIC = b"\xed\x43\x4e\x7f"

_HEADER = struct.Struct("<4sBBBBBBBBHHII")
_ARCHITECTURE = 1


@dataclass(frozen=True)
class LtoIr:
    """The header of an LTO-IR container; ``sm`` is ``None`` if it does not name an architecture."""

    container_version: tuple[int, int]
    ir_version: tuple[int, int]
    sm: int | None

    @property
    def version(self) -> str:
        (c, d), (i, j) = self.container_version, self.ir_version
        return f"container {c}.{d}, NVVM IR {i}.{j}"

    def is_newer_than(self, other: LtoIr) -> bool:
        return self.container_version > other.container_version or self.ir_version > other.ir_version


def read_lto_ir(code: bytes) -> LtoIr:
    """Read the header of an LTO-IR container. Raises `FormatError` if it does not lie within the bytes, or nothing
    follows it."""
    magic, c, d, i, j, *_, scalars, blobs = unpack(_HEADER, code, 0, "a header of LTO-IR")
    if magic != LTO_IR_MAGIC:
        raise FormatError(f"LTO-IR begins with {LTO_IR_MAGIC!r}, not with {magic!r}")
    if c != 1:  # made by a future toolkit, whose header may differ
        return LtoIr((c, d), (i, j), None)
    if not _HEADER.size <= scalars <= blobs < len(code):
        raise FormatError(
            f"its header puts the code at byte {blobs}, after fields up to byte {scalars}, of {len(code)} bytes: it is"
            " truncated or damaged"
        )
    if len(code) % 4:
        raise FormatError(f"LTO-IR comes in units of 4 bytes, and there are {len(code)}: it is truncated")
    fields = (struct.unpack_from("<HH", code, at) for at in range(_HEADER.size, scalars - 3, 4))
    sm = next((value // 10 for tag, value in fields if tag == _ARCHITECTURE), None)
    return LtoIr((c, d), (i, j), sm)
