# SPDX-License-Identifier: BSD-2-Clause
"""Where a kernel's parameters are among the bytes that it is launched with, read from its cubin or PTX.

In a cubin the toolkit notes them in ``.nv.info.KERNEL`` (``EIATTR_KPARAM_INFO``, whose fields ``cuobjdump --dump-elf``
prints); kernels with more than 4 KiB of parameters have a second form.
"""

from __future__ import annotations

import re
import struct

from numba_cuda_autolink.errors import FormatError
from numba_cuda_autolink.ptx import read_ptx

from .cubin import attributes
from .elf import content, read_elf

_PARAMETER = 0x17  # EIATTR_KPARAM_INFO: index, ordinal, offset, and the size from bit 18 on
_LARGE_PARAMETER = 0x45  # index, ordinal, offset, size
_MAX_THREADS = 0x05  # EIATTR_MAX_THREADS: the launch bounds, in three dimensions
_IN_PTX = re.compile(rb"\.param\s+(?:\.align\s+(\d+)\s+)?\.[a-z](\d+)[^\[,]*(?:\[(\d+)\])?")


def cubin_parameters(cubin: bytes, entry_name: str) -> tuple[tuple[int, int], ...]:
    """Return offset and size in bytes of each parameter of the kernel *entry_name*. Raise `FormatError` if *cubin* does
    not have it, or is damaged."""
    found = {}
    for kind, value in _notes(cubin, entry_name):
        if kind == _PARAMETER and len(value) == 12:
            _, ordinal, offset, flags = struct.unpack("<IHHI", value)
            found[ordinal] = offset, flags >> 18
        elif kind == _LARGE_PARAMETER and len(value) == 12:
            _, ordinal, offset, size, _ = struct.unpack("<IHHHH", value)
            found[ordinal] = offset, size
    if sorted(found) != list(range(len(found))):
        raise FormatError(f"the notes on the parameters of {entry_name} are not complete")
    return tuple(found[ordinal] for ordinal in range(len(found)))


def launch_bounds(cubin: bytes, entry_name: str) -> int | None:
    """Return the most threads per block that the kernel *entry_name* was compiled for; ``None`` without launch bounds.
    Raise `FormatError` if *cubin* does not have it, or is damaged."""
    for kind, value in _notes(cubin, entry_name):
        if kind == _MAX_THREADS and len(value) == 12:
            x, y, z = struct.unpack("<III", value)
            return int(x * y * z)
    return None


def ptx_parameters(ptx: bytes, entry_name: str) -> tuple[tuple[int, int], ...]:
    """Return offset and size in bytes of each parameter of the kernel *entry_name* of *ptx*. Raise `FormatError` if it
    is not there."""
    name = re.escape(entry_name.encode())
    found = re.search(rb"\.entry\s+" + name + rb"\s*(?:\(([^)]*)\))?\s*[.{]", read_ptx(ptx).text)
    if found is None:
        raise FormatError(f"it has no kernel {entry_name}")
    places, end = [], 0
    for align, bits, count in _IN_PTX.findall(found[1] or b""):
        item = int(bits) // 8
        boundary = int(align or item)
        offset = (end + boundary - 1) // boundary * boundary
        places.append((offset, item * int(count or 1)))
        end = sum(places[-1])
    return tuple(places)


def _notes(cubin: bytes, entry_name: str) -> list[tuple[int, bytes]]:
    file = read_elf(cubin)
    section = file.section(f".nv.info.{entry_name}")
    if section is None:
        raise FormatError(f"it has no notes on a kernel {entry_name}")
    return list(attributes(content(cubin, section)))
