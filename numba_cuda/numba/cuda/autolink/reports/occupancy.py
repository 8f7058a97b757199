# SPDX-License-Identifier: BSD-2-Clause
"""Occupancy: how many warps a multiprocessor can hold, of those that it has room for.

The limits are those of the table
"Technical Specifications per Compute Capability" in NVIDIA's CUDA C++ Programming Guide, and the rules of allocation
those of its occupancy calculator; no GPU is needed.
"""

from __future__ import annotations

import re

from .records import OccupancyReport

_WARP, _REGISTERS = 32, 65536
_MOST_THREADS = 1024
_SIZES = (128, 256, 512, 1024)
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


def occupancy(
    arch: str, threads: int, registers: int, shared: int, bounds: int | None = None
) -> OccupancyReport | None:
    """Return the occupancy on *arch* (``"sm_90a"``) of blocks of *threads*, with *registers* per thread and *shared*
    bytes of shared memory per block, static and dynamic, of a kernel with these launch *bounds*. ``None`` if the
    architecture is not known, or has no blocks of so many threads."""
    found = re.match(r"sm_(\d+)", arch)
    limits = _LIMITS.get(int(found[1])) if found else None
    if limits is None or not 0 < threads <= _MOST_THREADS:
        return None
    if bounds is not None and threads > bounds:
        return OccupancyReport(threads, 0, 0.0, "launch bounds")
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
    return OccupancyReport(threads, blocks, blocks * warps / most_warps, limit)


def occupancies(
    arch: str, registers: int | None, shared: int | None, bounds: int | None
) -> tuple[OccupancyReport, ...]:
    """Return the occupancy for blocks of several sizes, and of that of the launch *bounds*; nothing where the registers
    or the shared memory are not known."""
    if registers is None or shared is None:
        return ()
    sizes = sorted({*_SIZES, *(() if bounds is None else (bounds,))})
    found = (occupancy(arch, threads, registers, shared, bounds) for threads in sizes)
    return tuple(each for each in found if each)
