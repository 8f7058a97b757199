# SPDX-License-Identifier: BSD-2-Clause
"""Whether the tables of a cubin refer to symbols and sections that are there: nvJitLink crashes where they do not."""

from __future__ import annotations

import struct

from .containers import Elf, FormatError, Section

_SYMBOL = struct.Struct("<IBBHQQ")
_SYMTAB, _RELA, _REL = 2, 4, 9
_RESERVED = 0xFF00
_NV_INFO, _NV_CALLGRAPH, _NV_PROTOTYPE = 0x70000000, 0x70000001, 0x70000002
# In .nv.callgraph the last numbers stand for what is no symbol, such as an indirect call.
_NO_SYMBOL = 0xFFFFFF00
# Of .nv.info's attributes those that begin with a symbol: registers, frame size, minimal and maximal stack size.
_OF_SYMBOL = frozenset({0x2F, 0x11, 0x12, 0x23})
_SIZED = 4
# Sections whose info is no section: machine code has a symbol and registers there. So have the notes on it of sm_100,
# whose second table of symbols is another.
_WITHOUT_SECTION = (".text", ".nv.capmerc", ".nv.merc.symtab")


def check_tables(code: bytes, file: Elf) -> None:
    """Check symbols, relocations, and what the toolkit notes beside them.

    Raises
    ------
    FormatError
        If one refers to what is not there.
    """
    table = next((section for section in file.sections if section.type == _SYMTAB), None)
    count = 0
    if table is not None:
        count = table.size // _SYMBOL.size
        for _, _, _, section, _, _ in _SYMBOL.iter_unpack(_content(code, table)[: count * _SYMBOL.size]):
            if len(file.sections) <= section < _RESERVED:
                raise FormatError(
                    f"a symbol is in section {section}, and there are {len(file.sections)}: it is damaged"
                )
    for section in file.sections:
        is_of_section = section.type in (_RELA, _REL) or not section.name.startswith(_WITHOUT_SECTION)
        if section.type != _SYMTAB and is_of_section and section.info >= len(file.sections):
            raise FormatError(f"{section.name} is of section {section.info}, and there are {len(file.sections)}")
        if section.type in (_RELA, _REL):
            _check_relocations(code, section, file.sections[section.info], count)
        elif section.type == _NV_CALLGRAPH:
            for numbers in struct.iter_unpack("<II", _content(code, section)[: section.size // 8 * 8]):
                _check_symbols(section, numbers, count)
        elif section.type == _NV_PROTOTYPE and table is not None:
            names = file.sections[table.link].size
            for symbol, name in struct.iter_unpack("<II", _content(code, section)[: section.size // 8 * 8]):
                _check_symbols(section, (symbol,), count)
                if name >= names:
                    raise FormatError(f"{section.name} refers to name {name}, and there are {names} bytes of them")
        elif section.type == _NV_INFO and section.name == ".nv.info":
            _check_info(_content(code, section), section, count)


def _content(code: bytes, section: Section) -> bytes:
    return code[section.offset : section.offset + section.size]


def _check_symbols(section: Section, numbers: tuple[int, ...], count: int) -> None:
    for number in numbers:
        if count <= number < _NO_SYMBOL:
            raise FormatError(f"{section.name} refers to symbol {number}, and there are {count}: it is damaged")


def _check_relocations(code: bytes, section: Section, of: Section, count: int) -> None:
    size = 24 if section.type == _RELA else 16
    for at in range(0, section.size - size + 1, size):
        offset, info = struct.unpack_from("<QQ", code, section.offset + at)
        _check_symbols(section, (info >> 32,), count)
        if offset >= of.size:
            raise FormatError(
                f"{section.name} refers to byte {offset} of {of.name}, which has {of.size}: it is damaged"
            )


def _check_info(content: bytes, section: Section, count: int) -> None:
    at = 0
    while at + 4 <= len(content):
        form, attribute, size = struct.unpack_from("<BBH", content, at)
        at += 4
        if form != _SIZED:
            continue
        if at + size > len(content):
            raise FormatError(f"an attribute in {section.name} does not lie within it: it is damaged")
        if attribute in _OF_SYMBOL and size >= 4:
            _check_symbols(section, struct.unpack_from("<I", content, at), count)
        at += size
