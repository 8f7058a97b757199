# SPDX-License-Identifier: BSD-2-Clause
"""Have a loaded shared library call other functions in place of those that it imports, by its own import slots.

Only that library's calls are replaced. It is what the dynamic linker does when it loads the library, done once more:
glibc's handle of a library is its ``struct link_map``, which leads to the table of dynamic relocations. It runs in a
child process, as `nvrtc_child`, so it imports nothing of this package.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Relocations that are the address of a symbol: in a pointer, in the global offset table, in a slot of a function.
_ADDRESSES = {"x86_64": (1, 6, 7), "aarch64": (257, 1025, 1026)}
_END, _PLT_SIZE, _STRINGS, _SYMBOLS, _RELOCATIONS, _SIZE, _STRINGS_SIZE, _PLT = 0, 2, 5, 6, 7, 8, 10, 23
_RELATIVE_COUNT = 0x6FFFFFF9
_RELOCATION, _SYMBOL = struct.Struct("<QQq"), struct.Struct("<IBBHQQ")
_PROT_READ_WRITE = 3


class _LinkMap(ctypes.Structure):
    _fields_ = (("base", ctypes.c_size_t), ("name", ctypes.c_char_p), ("dynamic", ctypes.c_size_t))


def find_imports(library: ctypes.CDLL) -> dict[str, list[int]]:
    """Return the addresses of the slots through which *library* uses each symbol that it imports. Raise `OSError` where
    libraries are not ELF files that glibc has loaded, or are for another processor than those known here."""
    machine = os.uname().machine
    kinds = _ADDRESSES.get(machine)
    if kinds is None or not sys.platform.startswith("linux") or ctypes.sizeof(ctypes.c_void_p) != 8:
        raise OSError(f"the imports of libraries are not known on {sys.platform}, {machine}")
    loaded = _LinkMap.from_address(library._handle)
    if not loaded.name or not os.path.exists(loaded.name) or not os.path.samefile(loaded.name, library._name):
        raise OSError(f"{library._name}: its handle is not that of a library of glibc")
    entries = dict(_dynamic_entries(loaded.dynamic))

    def table(kind: int, size: int, skipped: int = 0) -> bytes:
        if kind not in entries:
            return b""
        address = entries[kind] if entries[kind] >= loaded.base else entries[kind] + loaded.base  # glibc has added it
        return ctypes.string_at(address + skipped, size - skipped)

    relative = entries.get(_RELATIVE_COUNT, 0) * _RELOCATION.size  # they come first, and name no symbols
    relocations = table(_RELOCATIONS, entries.get(_SIZE, 0), relative) + table(_PLT, entries.get(_PLT_SIZE, 0))
    all_used = ((offset, *divmod(info, 1 << 32)) for offset, info, _ in _RELOCATION.iter_unpack(relocations))
    used = [(offset, number) for offset, number, kind in all_used if kind in kinds]
    symbols = table(_SYMBOLS, (1 + max((number for _, number in used), default=0)) * _SYMBOL.size)
    strings = table(_STRINGS, entries[_STRINGS_SIZE])
    found: dict[str, list[int]] = {}
    for offset, number in used:
        name, _, _, section, _, _ = _SYMBOL.unpack_from(symbols, number * _SYMBOL.size)
        if section == 0:  # it is not defined in the library itself
            symbol = strings[name : strings.index(b"\0", name)].decode("utf-8", "replace")
            found.setdefault(symbol, []).append(loaded.base + offset)
    return found


def _dynamic_entries(address: int) -> Iterator[tuple[int, int]]:
    while (tag := ctypes.c_int64.from_address(address).value) != _END:
        yield tag, ctypes.c_uint64.from_address(address + 8).value
        address += 16


def replace_imports(slots: Mapping[str, list[int]], functions: Mapping[str, int]) -> None:
    """Write the addresses of *functions* into the *slots* of their names. Raise `OSError` if that is not permitted."""
    libc = ctypes.CDLL(None, use_errno=True)
    page = os.sysconf("SC_PAGE_SIZE")
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for name, function in functions.items():
        for slot in slots.get(name, ()):
            if libc.mprotect(slot & ~(page - 1), page, _PROT_READ_WRITE):
                raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
            ctypes.c_void_p.from_address(slot).value = function
