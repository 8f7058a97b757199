# SPDX-License-Identifier: BSD-2-Clause
"""What a linked kernel takes of the GPU, read from its cubin and from what ptxas printed. No driver is needed.

The sections of a cubin are described by NVIDIA's "CUDA Binary Utilities" only in part; the attributes read here
(``EIATTR_REGCOUNT``, ``EIATTR_MIN_STACK_SIZE``) are those that ``cuobjdump --dump-elf`` and ``readelf`` name.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

_REGISTERS = 0x2F  # EIATTR_REGCOUNT
_STACK_SIZE = 0x12  # EIATTR_MIN_STACK_SIZE, with that of called functions
_SIZED = 4  # EIFMT_SVAL: a length and that many bytes; every other format is four bytes in all
# From compute capability 9.0 on, a section of shared memory begins with what the system keeps of each block's.
_RESERVED_SHARED = 1024
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


@dataclass(frozen=True)
class Resources:
    """What one kernel takes: registers per thread, static shared memory per block and stack per thread in bytes, and
    the bytes that all functions of its link spill; ``None`` where that cannot be read."""

    registers: int | None = None
    shared: int | None = None
    stack: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None


def resources(cubin: bytes, entry_name: str, log: str = "") -> Resources:
    """What *entry_name* of *cubin* takes. *log* is what the linker printed."""
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(io.BytesIO(cubin))
        sections = {section.name: section for section in elf.iter_sections()}
        symbols = list(sections[".symtab"].iter_symbols())
        attributes = dict(_attributes(sections[".nv.info"].data()))
        number = next(index for index, symbol in enumerate(symbols) if symbol.name == entry_name)
        shared = sections.get(f".nv.shared.{entry_name}")
        size = shared["sh_size"] if shared is not None else 0
        reserved = _RESERVED_SHARED if _compute_capability(elf["e_flags"]) >= 90 else 0
        return Resources(
            attributes.get((_REGISTERS, number)),
            max(size - reserved, 0),
            attributes.get((_STACK_SIZE, number)),
            *_spills(log),
        )
    except Exception:  # a format that nobody promises to keep: then there is nothing to show
        return Resources(None, None, None, *_spills(log))


def _attributes(info: bytes) -> Iterator[tuple[tuple[int, int], int]]:
    """The attributes of functions: pairs of attribute and symbol, and the value."""
    at = 0
    while at + 4 <= len(info):
        form, attribute = info[at], info[at + 1]
        length = int.from_bytes(info[at + 2 : at + 4], "little") if form == _SIZED else 0
        if length == 8:
            symbol, value = (int.from_bytes(info[start : start + 4], "little") for start in (at + 4, at + 8))
            yield (attribute, symbol), value
        at += 4 + length


def _compute_capability(flags: int) -> int:
    # CUDA 12 keeps it in the low byte of the flags, CUDA 13 in the second.
    return flags & 0xFF if flags & 0xFF >= 50 else flags >> 8 & 0xFF


def _spills(log: str) -> tuple[int | None, int | None]:
    """Bytes of spill stores and loads that *log* reports, of all functions together."""
    spills = _SPILLS.findall(log)
    if not spills:
        return None, None
    return sum(int(stores) for stores, _ in spills), sum(int(loads) for _, loads in spills)
