# SPDX-License-Identifier: BSD-2-Clause
"""Occupancy: how many warps a multiprocessor can hold, of those that it has room for.

The limits are those of the table
"Technical Specifications per Compute Capability" in NVIDIA's CUDA C++ Programming Guide, and the rules of allocation
those of its occupancy calculator; no GPU is needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .records import BuildReport

_WARP, _REGISTERS = 32, 65536
_MOST_THREADS = 1024
_REGISTER_UNIT, _PARTITIONS = 256, 4  # registers are given to a warp by this number; warps to one of four schedulers
_LIMITS = {  # by compute capability: blocks, warps and bytes of shared memory of a multiprocessor
    75: (16, 32, 64 << 10),
    80: (32, 64, 164 << 10),
    86: (16, 48, 100 << 10),
    87: (16, 48, 164 << 10),
    89: (24, 48, 100 << 10),
    90: (32, 64, 228 << 10),
    100: (32, 64, 228 << 10),
    103: (32, 64, 228 << 10),
    110: (24, 48, 228 << 10),
    120: (24, 48, 100 << 10),
    121: (24, 48, 100 << 10),
}


@dataclass(frozen=True)
class Occupancy:
    """How many *blocks* of *threads* a multiprocessor holds, the share of its warps that they make up, and what limits
    them: ``"registers"``, ``"shared memory"``, ``"blocks"`` or ``"warps"``."""

    threads: int
    blocks: int
    share: float
    limit: str


def occupancy(arch: str, threads: int, registers: int, shared: int) -> Occupancy | None:
    """Return the occupancy on *arch* (``"sm_90a"``) of blocks of *threads*, with *registers* per thread and *shared*
    bytes of shared memory per block, static and dynamic. ``None`` if the architecture is not known, or such a block
    cannot be launched."""
    found = re.match(r"sm_(\d+)", arch)
    limits = _LIMITS.get(int(found[1])) if found else None
    if limits is None or not 0 < threads <= _MOST_THREADS:
        return None
    most_blocks, most_warps, most_shared = limits
    is_turing = most_shared == _LIMITS[75][2]
    warps = -(-threads // _WARP)
    per_warp = -(-max(registers, 1) * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT
    fitting_warps = _REGISTERS // _PARTITIONS // per_warp * _PARTITIONS
    unit, reserved = (256, 0) if is_turing else (128, 1024)
    per_block = -(-(shared + reserved) // unit) * unit
    blocks, limit = min(
        (most_warps // warps, "warps"),
        (most_blocks, "blocks"),
        (fitting_warps // warps, "registers"),
        *([(most_shared // per_block, "shared memory")] if per_block else []),
        key=lambda pair: pair[0],
    )
    return Occupancy(threads, blocks, blocks * warps / most_warps, limit) if blocks else None


def occupancies(build: BuildReport) -> list[Occupancy]:
    """Return the occupancy for blocks of several sizes, of those that can be launched."""
    registers, shared = build.result.registers, build.result.shared
    if registers is None or shared is None:
        return []
    sizes = (occupancy(build.arch, threads, registers, shared) for threads in (128, 256, 512, 1024))
    return [found for found in sizes if found]
