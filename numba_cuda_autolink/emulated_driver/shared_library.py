# SPDX-License-Identifier: BSD-2-Clause
"""A shared library whose functions are written in Python, for programs that open one by its name.

Its symbols have absolute addresses: those of ctypes' callbacks. The file is written, loaded and removed at once; what
later asks the loader for a library of that name gets this one, because it is loaded already.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
import tempfile
from collections.abc import Mapping

_MACHINES = {"x86_64": 62, "aarch64": 183}
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_ET_DYN, _PT_LOAD, _PT_DYNAMIC, _READ_WRITE = 3, 1, 2, 6
_PT_GNU_STACK = 0x6474E551  # without it, the library asks for a stack that can be executed, which glibc 2.41 refuses
_DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT, _DT_SONAME = 4, 5, 6, 10, 11, 14
_GLOBAL_FUNCTION, _ABSOLUTE = 1 << 4 | 2, 0xFFF1


def why_impossible() -> str | None:
    """Return why this system cannot load such a library; ``None`` if it can."""
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc" or sys.maxsize < 1 << 32:
        return "the loader of this system does not find a library that is loaded already by its name"
    if platform.machine() not in _MACHINES:
        return f"it is not known how to write a library for {platform.machine()}"
    return None


def load(name: str, functions: Mapping[str, int]) -> ctypes.CDLL:
    """Load a library called *name* with *functions*, by name their addresses, which must stay valid."""
    handle, path = tempfile.mkstemp(prefix="numba-cuda-autolink-", suffix=".so")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_library(name, functions))
        return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    finally:
        os.unlink(path)


def _library(name: str, functions: Mapping[str, int]) -> bytes:
    """Return the ELF file: header, program headers, hash table with one bucket, symbols, names, dynamic section."""
    texts, places = bytearray(b"\0"), []
    for text in (name, *functions):
        places.append(len(texts))
        texts += text.encode() + b"\0"
    symbols = bytes(_SYMBOL.size) + b"".join(
        _SYMBOL.pack(place, _GLOBAL_FUNCTION, 0, _ABSOLUTE, address, 0)
        for place, address in zip(places[1:], functions.values(), strict=True)
    )
    count = len(functions) + 1
    chain = (*range(2, count), 0)  # from each symbol to the next
    table = struct.pack(f"<{3 + count}I", 1, count, 1, 0, *chain)
    at_table = _HEADER.size + 3 * _SEGMENT.size
    at_symbols = _aligned(at_table + len(table))
    at_texts = at_symbols + len(symbols)
    at_dynamic = _aligned(at_texts + len(texts))
    entries = (
        (_DT_HASH, at_table),
        (_DT_SYMTAB, at_symbols),
        (_DT_SYMENT, _SYMBOL.size),
        (_DT_STRTAB, at_texts),
        (_DT_STRSZ, len(texts)),
        (_DT_SONAME, places[0]),
        (0, 0),
    )
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    size = at_dynamic + len(dynamic)
    identity = b"\x7fELF\2\1\1".ljust(16, b"\0")
    machine = _MACHINES[platform.machine()]
    sizes = _HEADER.size, _SEGMENT.size, 3, 64, 0, 0
    header = _HEADER.pack(identity, _ET_DYN, machine, 1, 0, _HEADER.size, 0, 0, *sizes)
    segments = _segment(_PT_LOAD, 0, size, 1 << 16) + _segment(_PT_DYNAMIC, at_dynamic, len(dynamic), 8)
    segments += _segment(_PT_GNU_STACK, 0, 0, 16)
    parts = ((0, header + segments), (at_table, table), (at_symbols, symbols), (at_texts, bytes(texts)))
    content = bytearray(size)
    for place, part in (*parts, (at_dynamic, dynamic)):
        content[place : place + len(part)] = part
    return bytes(content)


def _segment(kind: int, at: int, size: int, alignment: int) -> bytes:
    return _SEGMENT.pack(kind, _READ_WRITE, at, at, at, size, size, alignment)


def _aligned(place: int) -> int:
    return (place + 7) // 8 * 8
