# SPDX-License-Identifier: BSD-2-Clause
"""The header of LTO-IR, as NVRTC and NVVM of CUDA 12.9 to 13.4 write it."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from numba_cuda_autolink.errors import FormatError

from .elf import unpack

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
