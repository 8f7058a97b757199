# SPDX-License-Identifier: BSD-2-Clause
"""The registers, memory and spills of a linked kernel, read from its cubin and from what ptxas printed; no driver is
needed.

NVIDIA's "CUDA Binary Utilities" describes the sections of a cubin only in part; the attributes read here
(``EIATTR_REGCOUNT``, ``EIATTR_MIN_STACK_SIZE``) are those that ``cuobjdump --dump-elf`` and ``readelf`` name.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from .bounds import FormatError
from .cubin_tables import attributes
from .elf import content, elf_symbols, read_elf

_REGISTERS = 0x2F  # EIATTR_REGCOUNT
_STACK_SIZE = 0x12  # EIATTR_MIN_STACK_SIZE, which includes the functions that it calls
# From compute capability 9.0 on, a section of shared memory begins with what the system reserves in each block.
_RESERVED_SHARED = 1024
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


@dataclass(frozen=True)
class Resources:
    """What one kernel uses: registers per thread, static shared memory per block and stack per thread in bytes, and
    the bytes that all functions of its link spill; ``None`` for what cannot be read."""

    registers: int | None = None
    shared: int | None = None
    stack: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None


def resources(cubin: bytes, entry_name: str, log: str = "") -> Resources:
    """Return what the kernel *entry_name* of *cubin* uses. *log* is what the linker printed."""
    try:
        return Resources(*_from_cubin(cubin, entry_name), *_spills(log))
    except FormatError:  # cubins are not a documented format: a future one may differ
        return Resources(None, None, None, *_spills(log))


def _from_cubin(cubin: bytes, entry_name: str) -> tuple[int | None, int, int | None]:
    file = read_elf(cubin)
    names = [symbol.name for symbol in elf_symbols(cubin, file)]
    info = file.section(".nv.info")
    if info is None or file.sm is None or entry_name not in names:
        raise FormatError("the kernel or what the toolkit notes about it is missing")
    sized = [
        (kind, *struct.unpack("<II", value)) for kind, value in attributes(content(cubin, info)) if len(value) == 8
    ]
    values = {(kind, symbol): value for kind, symbol, value in sized}
    number = names.index(entry_name)
    shared = file.section(f".nv.shared.{entry_name}")
    size = shared.size if shared is not None else 0
    reserved = _RESERVED_SHARED if file.sm >= 90 else 0
    return values.get((_REGISTERS, number)), max(size - reserved, 0), values.get((_STACK_SIZE, number))


def _spills(log: str) -> tuple[int | None, int | None]:
    """Return the bytes of spill stores and loads that *log* reports, of all functions together."""
    spills = _SPILLS.findall(log)
    if not spills:
        return None, None
    return sum(int(stores) for stores, _ in spills), sum(int(loads) for _, loads in spills)
