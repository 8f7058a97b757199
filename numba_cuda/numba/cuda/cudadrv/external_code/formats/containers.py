# SPDX-License-Identifier: BSD-2-Clause
"""The formats of linkable code, read as far as their headers tell: ELF, fatbins, archives, LTO-IR, PTX.

Every reader checks that what a header says lies within the bytes, and raises `FormatError` where it does not, in time
that the size of the code bounds, whatever the bytes are. Fields of cubins, fatbins and LTO-IR are as nvcc and NVRTC of
CUDA 12.9 to 13.4 write them; where a version says that they may be others, they are not read.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

ELF_MAGIC = b"\x7fELF"
FATBIN_MAGIC = b"\x50\xed\x55\xba"
LTO_IR_MAGIC = b"\xed\x43\x4e\x7f"
ARCHIVE_MAGIC = b"!<arch>\n"
EM_CUDA = 190
ET_REL, ET_EXEC, ET_DYN = 1, 2, 3

_ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL_SIZE = 24
_LONGEST_NAME = 1 << 16
_SHT_NULL, _SHT_SYMTAB, _SHT_STRTAB, _SHT_NOBITS = 0, 2, 3, 8
_FATBIN_HEADER = struct.Struct("<4sHHQ")
_FATBIN_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_FATBIN_KINDS = {1: "PTX", 2: "cubin", 8: "LTO-IR"}
_MEMBER = struct.Struct("16s12s6s6s8s10s2s")
_LTO_IR_HEADER = struct.Struct("<4sBBBBBBBBHHII")
_LTO_IR_ARCH = 1


class FormatError(ValueError):
    """Bytes are not what their format says."""


# ELF


@dataclass(frozen=True)
class Section:
    """A section of an ELF file: its name and where its bytes are."""

    name: str
    type: int
    offset: int
    size: int
    link: int
    info: int


@dataclass(frozen=True)
class Elf:
    """The headers of a little-endian 64-bit ELF file."""

    type: int
    machine: int
    flags: int
    abi_version: int
    os_abi: int
    sections: tuple[Section, ...]

    @property
    def is_cuda(self) -> bool:
        """Whether it holds machine code for GPUs."""
        return self.machine == EM_CUDA

    @property
    def sm(self) -> int | None:
        """The architecture that a cubin is for: 90 for sm_90. It stands elsewhere since CUDA 13."""
        if not self.is_cuda or self.abi_version not in (7, 8):
            return None
        return (self.flags >> 8) & 0xFF if self.abi_version == 8 else self.flags & 0xFF


def elf(code: bytes) -> Elf:
    """Read an ELF file's headers; all tables and sections lie within the file.

    Raises
    ------
    FormatError
        If one does not.
    """
    if len(code) < _ELF_HEADER.size:
        raise FormatError(f"an ELF header takes {_ELF_HEADER.size} bytes, and there are {len(code)}")
    ident, kind, machine, version, _, phoff, shoff, flags, ehsize, phentsize, phnum, shentsize, shnum, names = (
        _ELF_HEADER.unpack_from(code)
    )
    if not ident.startswith(ELF_MAGIC):
        raise FormatError(f"an ELF file begins with {ELF_MAGIC!r}, not with {ident[:4]!r}")
    if ident[4] != 2 or ident[5] != 1:
        raise FormatError("it is no little-endian 64-bit ELF file")
    if ident[6] != 1 or version == 0:
        raise FormatError(f"its ELF version is {ident[6]} and {version}, not 1")
    if kind not in (ET_REL, ET_EXEC, ET_DYN):
        raise FormatError(f"its ELF type {kind} is neither relocatable (1), executable (2) nor shared (3)")
    if ehsize != _ELF_HEADER.size:
        raise FormatError(f"its ELF header gives its own size as {ehsize} bytes, not {_ELF_HEADER.size}")
    if phnum:
        _within(code, phoff, phnum * phentsize, "program header table")
    if not shnum or shentsize != _SECTION_HEADER.size or names >= shnum:
        raise FormatError(f"it has no readable section table ({shnum} sections of {shentsize} bytes, names in {names})")
    _within(code, shoff, shnum * shentsize, "section table")
    headers = [_SECTION_HEADER.unpack_from(code, shoff + number * shentsize) for number in range(shnum)]
    for number, (_, section_type, _, _, offset, size, link, *_) in enumerate(headers):
        if section_type not in (_SHT_NULL, _SHT_NOBITS):
            _within(code, offset, size, f"section {number}")
        if link >= shnum:
            raise FormatError(f"section {number} is linked to section {link}, and there are {shnum}")
    if headers[names][1] != _SHT_STRTAB:
        raise FormatError("its section names are in no string table")
    strings = code[headers[names][4] : headers[names][4] + headers[names][5]]
    sections = tuple(
        Section(_string(strings, header[0], "a section's name"), header[1], header[4], header[5], header[6], header[7])
        for header in headers
    )
    return Elf(kind, machine, flags, ident[8], ident[7], sections)


@dataclass(frozen=True)
class ElfSymbol:
    """An entry of an ELF symbol table. *bind*: 0 local, 1 global, 2 weak; *type*: 1 variable, 2 function."""

    name: str
    bind: int
    type: int
    is_defined: bool


def elf_symbols(code: bytes, file: Elf) -> list[ElfSymbol]:
    """The symbols of an ELF *file*.

    Raises
    ------
    FormatError
        If the table is damaged.
    """
    table = next((section for section in file.sections if section.type == _SHT_SYMTAB), None)
    if table is None:
        return []
    if table.size % _SYMBOL_SIZE:
        raise FormatError(f"its symbol table takes {table.size} bytes, which is no multiple of {_SYMBOL_SIZE}")
    names = file.sections[table.link]
    if names.type != _SHT_STRTAB:
        raise FormatError("its symbols' names are in no string table")
    strings = code[names.offset : names.offset + names.size]
    entries = struct.iter_unpack("<IBBHQQ", code[table.offset : table.offset + table.size])
    return [
        ElfSymbol(_string(strings, name, "a symbol's name"), info >> 4, info & 0xF, section != 0)
        for name, info, _, section, _, _ in entries
    ]


def _string(strings: bytes, start: int, what: str) -> str:
    end = strings.find(b"\0", start, start + _LONGEST_NAME)
    if end < 0:
        raise FormatError(f"{what} is not in its string table")
    return strings[start:end].decode("utf-8", "replace")


def _within(code: bytes, offset: int, size: int, what: str) -> None:
    if offset + size > len(code):
        raise FormatError(
            f"its {what} ends at byte {offset + size}, and there are {len(code)}: it is cut off or damaged"
        )


# Fatbins


@dataclass(frozen=True)
class FatbinEntry:
    """One piece of code in a fatbin; ``code`` is ``None`` where it is compressed."""

    kind: str
    sm: int
    code: bytes | None


def fatbin(code: bytes) -> list[FatbinEntry]:
    """The pieces of a fatbin, or of several one after another.

    Raises
    ------
    FormatError
        If one does not lie within the bytes.
    """
    entries: list[FatbinEntry] = []
    start = _one_fatbin(code, 0, entries)
    while (start := code.find(FATBIN_MAGIC, start, start + 64)) >= 0:
        start = _one_fatbin(code, start, entries)
    if not entries:
        raise FormatError("the fatbin holds no code")
    return entries


def _one_fatbin(code: bytes, start: int, entries: list[FatbinEntry]) -> int:
    if len(code) - start < _FATBIN_HEADER.size:
        raise FormatError(f"a fatbin's header takes {_FATBIN_HEADER.size} bytes, and there are {len(code) - start}")
    magic, _, header_size, size = _FATBIN_HEADER.unpack_from(code, start)
    if magic != FATBIN_MAGIC:
        raise FormatError(f"a fatbin begins with {FATBIN_MAGIC!r}, not with {magic!r}")
    if header_size < _FATBIN_HEADER.size:
        raise FormatError(f"its header gives its own size as {header_size} bytes, not {_FATBIN_HEADER.size} or more")
    end = start + header_size + size
    _within(code, start + header_size, size, "content")
    at = start + header_size
    while at < end:
        if end - at < _FATBIN_ENTRY.size:
            raise FormatError(f"an entry's header takes {_FATBIN_ENTRY.size} bytes, and {end - at} are left")
        kind, _, entry_header, padded, compressed, _, _, _, sm, _, _, _, _, _ = _FATBIN_ENTRY.unpack_from(code, at)
        body = at + entry_header
        if entry_header < _FATBIN_ENTRY.size or body + padded > end or compressed > padded:
            raise FormatError("an entry does not lie within it: it is cut off or damaged")
        content = None if compressed else code[body : body + padded]
        entries.append(FatbinEntry(_FATBIN_KINDS.get(kind, f"kind {kind}"), sm, content))
        at = body + padded
    return end


# Archives


def archive(code: bytes) -> list[tuple[str, bytes]]:
    """The members of an ar archive, by name; its symbol and name tables are left out.

    Raises
    ------
    FormatError
        If one does not lie within the bytes.
    """
    if not code.startswith(ARCHIVE_MAGIC):
        raise FormatError(f"an archive begins with {ARCHIVE_MAGIC!r}, not with {code[:8]!r}")
    at, long_names = len(ARCHIVE_MAGIC), b""
    members: list[tuple[str, bytes]] = []
    while at < len(code):
        if code[at:] == b"\n":
            break
        if len(code) - at < _MEMBER.size:
            raise FormatError(f"a member's header takes {_MEMBER.size} bytes, and {len(code) - at} are left")
        raw_name, *_, raw_size, end = _MEMBER.unpack_from(code, at)
        if end != b"`\n" or not raw_size.strip().isdigit():
            raise FormatError(f"there is no member's header at byte {at}")
        size, name = int(raw_size), raw_name.decode("utf-8", "replace").rstrip()
        at += _MEMBER.size
        _within(code, at, size, f"member {name!r}")
        body = code[at : at + size]
        if name == "//":
            long_names = body
        elif name not in ("/", "/SYM64/", "__.SYMDEF"):
            members.append((_member_name(name, long_names), body))
        at += size + size % 2
    return members


def _member_name(name: str, long_names: bytes) -> str:
    if name[:1] == "/" and name[1:].isdigit():
        start = int(name[1:])
        end = long_names.find(b"\n", start)
        if start >= len(long_names) or end < 0:
            raise FormatError(f"the name of member {name!r} is not in the table of names")
        return long_names[start:end].decode("utf-8", "replace").rstrip("/")
    return name.rstrip("/")


# LTO-IR


@dataclass(frozen=True)
class LtoIr:
    """The header of an LTO-IR container."""

    container_version: tuple[int, int]
    ir_version: tuple[int, int]
    llvm_version: tuple[int, int]
    sm: int | None

    @property
    def version(self) -> str:
        """Its versions as text."""
        (c, d), (i, j) = self.container_version, self.ir_version
        return f"container {c}.{d}, NVVM IR {i}.{j}"

    def is_newer_than(self, other: LtoIr) -> bool:
        """Whether a toolkit that knows *other* may not know this."""
        return self.container_version > other.container_version or self.ir_version > other.ir_version


def lto_ir(code: bytes) -> LtoIr:
    """Read an LTO-IR container's header.

    Raises
    ------
    FormatError
        If it does not lie within the bytes, or nothing follows it.
    """
    if len(code) < _LTO_IR_HEADER.size:
        raise FormatError(f"a header of LTO-IR takes {_LTO_IR_HEADER.size} bytes, and there are {len(code)}")
    magic, c, d, i, j, _, _, m, n, _, _, scalars, blobs = _LTO_IR_HEADER.unpack_from(code)
    if magic != LTO_IR_MAGIC:
        raise FormatError(f"LTO-IR begins with {LTO_IR_MAGIC!r}, not with {magic!r}")
    if c != 1:  # of a toolkit to come, whose header may be another
        return LtoIr((c, d), (i, j), (m, n), None)
    if not _LTO_IR_HEADER.size <= scalars <= blobs < len(code):
        raise FormatError(
            f"its header says that the code begins at byte {blobs}, after fields up to byte {scalars}, and there are"
            f" {len(code)} bytes: it is cut off or damaged"
        )
    if len(code) % 4:
        raise FormatError(f"LTO-IR comes in units of 4 bytes, and there are {len(code)}: it is cut off")
    sm = None
    for at in range(_LTO_IR_HEADER.size, scalars - 3, 4):
        tag, value = struct.unpack_from("<HH", code, at)
        if tag == _LTO_IR_ARCH:
            sm = value // 10
            break
    return LtoIr((c, d), (i, j), (m, n), sm)


# PTX

_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*"')
_VERSION = re.compile(rb"\s*\.version\s+(\d+)\.(\d+)")
_TARGET = re.compile(rb"\s*\.target\s+(sm_(\d+)([af]?)\b[^\n]*)")


@dataclass(frozen=True)
class Ptx:
    """What PTX says about itself; ``text`` is its code without comments and strings."""

    version: tuple[int, int]
    sm: int
    suffix: str
    text: bytes

    @property
    def target(self) -> str:
        """Its architecture, for example ``sm_90a``."""
        return f"sm_{self.sm}{self.suffix}"


def ptx(code: bytes) -> Ptx:
    """Read PTX as far as its directives and braces go.

    Raises
    ------
    FormatError
        If it does not begin as PTX does, or does not end where it should.
    """
    code = code.rstrip(b"\0")
    if b"\0" in code:
        raise FormatError(f"it is no text: byte {code.index(0)} is 0")
    text = _STRING.sub(b'""', _COMMENT.sub(b" ", code)) if b"/" in code or b'"' in code else code
    if b"/*" in text:
        raise FormatError("a comment does not end: it is cut off")
    version = _VERSION.match(text)
    if not version:
        raise FormatError("PTX begins with .version, such as '.version 8.0'")
    target = _TARGET.match(text, version.end())
    if not target:
        raise FormatError("after .version, PTX says for which architecture it is, such as '.target sm_90'")
    for opening, closing in ((b"{", b"}"), (b"(", b")")):
        difference = text.count(opening) - text.count(closing)
        if difference > 0:
            raise FormatError(f"{difference} {opening.decode()!r} too many: it is cut off or damaged")
        if difference < 0:
            raise FormatError(f"{-difference} {closing.decode()!r} too many: it is damaged")
    return Ptx((int(version[1]), int(version[2])), int(target[2]), target[3].decode(), text)


# What code is made of


@dataclass(frozen=True)
class Piece:
    """A piece of code of one kind (the name of a `Kind`); ``code`` is ``None`` where it is compressed."""

    kind: str
    sm: int | None
    code: bytes | None


def pieces(kind: str, code: bytes) -> Iterator[Piece]:
    """What code of *kind* is made of: itself; the entries of a fatbin, and of those in an object or in an archive.

    Raises
    ------
    FormatError
        If the code is damaged.
    """
    if kind == "fatbin":
        for entry in fatbin(code):
            yield Piece(entry.kind, entry.sm, entry.code)
    elif kind == "object":
        yield from _pieces_of_object(code)
    elif kind == "archive":
        for name, member in archive(code):
            if member.startswith(ELF_MAGIC):
                try:
                    yield from _pieces_of_object(member)
                except FormatError as error:
                    raise FormatError(f"in its member {name!r}: {error}") from None
    else:
        yield Piece(kind, None, code)


_DEVICE_CODE = ("__nv_relfatbin", ".nv_fatbin")


def _pieces_of_object(code: bytes) -> Iterator[Piece]:
    file = elf(code)
    if file.is_cuda:
        yield Piece("cubin", file.sm, code)
        return
    for section in file.sections:
        if section.name in _DEVICE_CODE and section.size:
            yield from pieces("fatbin", code[section.offset : section.offset + section.size])
