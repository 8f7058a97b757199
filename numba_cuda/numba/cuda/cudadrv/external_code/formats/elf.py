# SPDX-License-Identifier: BSD-2-Clause
"""ELF files, which cubins and objects are: header, sections and symbols.

The flags of cubins are read as nvcc and NVRTC of CUDA 12.9 to 13.4 write them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, NamedTuple

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


ELF_MAGIC = b"\x7fELF"
ET_REL = 1
SHT_SYMTAB, SHT_RELA, SHT_REL = 2, 4, 9
GLOBAL, WEAK = 1, 2
FUNCTION = 2

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_EM_CUDA = 190
_SHT_STRTAB = 3
# Of these a file holds the size alone: none, zeros, variables without a value, and shared memory of device functions.
_WITHOUT_CONTENT = (0, 8, 0x70000007, 0x7000000A)
_LARGEST_ALIGNMENT = 1 << 20  # bytes; a linker fills what a section's alignment asks for


@dataclass(frozen=True)
class Section:
    """A section of an ELF file: its name, and the offset and size of its content in bytes."""

    name: str
    type: int
    offset: int
    size: int
    link: int
    info: int


@dataclass(frozen=True)
class Elf:
    """The headers of a little-endian 64-bit ELF file; whether it holds machine code for GPUs, and the architecture of a
    cubin, 90 for sm_90: ``None`` for an ABI version whose flags are not known."""

    type: int
    is_cuda: bool
    sm: int | None
    sections: tuple[Section, ...]

    def section(self, name: str) -> Section | None:
        return next((section for section in self.sections if section.name == name), None)

    @property
    def symbol_table(self) -> Section | None:
        return next((section for section in self.sections if section.type == SHT_SYMTAB), None)


class ElfSymbol(NamedTuple):
    """A symbol. *bind* is 0 for local, 1 for global, 2 for weak; *type* is 1 for a variable, 2 for a function;
    *section* is the number of the section that defines it, 0 if the symbol is undefined; *size* and, from the beginning
    of the section, *offset* are in bytes."""

    name: str
    bind: int
    type: int
    section: int
    size: int
    offset: int

    @property
    def is_defined(self) -> bool:
        return self.section != 0


def read_elf(code: bytes) -> Elf:
    """Read the headers of an ELF file, and check that all tables and sections lie within it. Raises `FormatError` if
    one does not, or it is not a little-endian 64-bit ELF file."""
    ident, kind, machine, version, _, phoff, shoff, flags, ehsize, phentsize, phnum, shentsize, shnum, names = unpack(
        _HEADER, code, 0, "an ELF header"
    )
    if not ident.startswith(ELF_MAGIC):
        raise FormatError(f"an ELF file begins with {ELF_MAGIC!r}, not with {ident[:4]!r}")
    if ident[4] != 2 or ident[5] != 1:
        raise FormatError("it is not a little-endian 64-bit ELF file")
    if ident[6] != 1 or version == 0:
        raise FormatError(f"its ELF version is {ident[6]} and {version}, not 1")
    if kind not in (ET_REL, 2, 3):
        raise FormatError(f"its ELF type {kind} is not relocatable (1), executable (2) or shared (3)")
    if ehsize != _HEADER.size:
        raise FormatError(f"its ELF header gives its own size as {ehsize} bytes, not {_HEADER.size}")
    if phnum:
        check_range(code, phoff, phnum * phentsize, "program header table")
    if not shnum or shentsize != _SECTION_HEADER.size or names >= shnum:
        raise FormatError(f"its section table is unreadable ({shnum} sections of {shentsize} bytes, names in {names})")
    check_range(code, shoff, shnum * shentsize, "section table")
    headers = [_SECTION_HEADER.unpack_from(code, shoff + number * shentsize) for number in range(shnum)]
    for number, (_, section_type, _, _, offset, size, link, _, alignment, _) in enumerate(headers):
        if section_type not in _WITHOUT_CONTENT:
            check_range(code, offset, size, f"section {number}")
        if link >= shnum:
            raise FormatError(f"section {number} is linked to section {link}, and there are {shnum}")
        if alignment & (alignment - 1) or alignment > _LARGEST_ALIGNMENT:
            raise FormatError(
                f"section {number} is aligned to {alignment} bytes, not to a power of two up to {_LARGEST_ALIGNMENT}"
            )
    _, strings_type, _, _, offset, size, *_ = headers[names]
    if strings_type != _SHT_STRTAB:
        raise FormatError("its section names are not in a string table")
    strings = code[offset : offset + size]
    sections = tuple(
        Section(string_at(strings, name, "a section's name"), section_type, offset, size, link, info)
        for name, section_type, _, _, offset, size, link, info, *_ in headers
    )
    is_cuda = machine == _EM_CUDA
    sm = {7: flags & 0xFF, 8: flags >> 8 & 0xFF}.get(ident[8]) if is_cuda else None  # by ABI version
    return Elf(kind, is_cuda, sm, sections)


def content(code: bytes, section: Section) -> bytes:
    """Return the bytes of a *section* of *code*, which `read_elf` found to lie within it."""
    return b"" if section.type in _WITHOUT_CONTENT else code[section.offset : section.offset + section.size]


def elf_symbols(code: bytes, file: Elf) -> list[ElfSymbol]:
    """Return the symbols of an ELF *file*; empty if it has no symbol table. Raises `FormatError` if the table is
    damaged."""
    table = file.symbol_table
    if table is None:
        return []
    if table.size % _SYMBOL.size:
        raise FormatError(f"its symbol table takes {table.size} bytes, which is not a multiple of {_SYMBOL.size}")
    names = file.sections[table.link]
    if names.type != _SHT_STRTAB:
        raise FormatError("its symbols' names are not in a string table")
    strings = content(code, names)
    return [
        ElfSymbol(string_at(strings, name, "a symbol's name"), info >> 4, info & 0xF, section, size, offset)
        for name, info, _, section, offset, size in _SYMBOL.iter_unpack(content(code, table))
    ]
