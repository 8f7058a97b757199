# SPDX-License-Identifier: BSD-2-Clause
"""What a report derives from its records: totals by the class of the called objects, and occupancy.

Occupancy is how many warps a multiprocessor can hold, of those that it has room for. The limits are those of the table
"Technical Specifications per Compute Capability" in NVIDIA's CUDA C++ Programming Guide, and the rules of allocation
those of its occupancy calculator; no GPU is needed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from numba.cuda.cudadrv.external_code.formats.mangled_names import readable

from . import formatting
from .records import BuildReport, CallReport, CodeReport

MANY = 24  # calls, from which on a report begins with its totals


@dataclass(frozen=True)
class ClassTotal:
    """All calls of one class's objects: how many they are, and how many of them are known to be left in the result; the
    number of the inputs that they returned; the size of these as they are linked, and of the functions that they define
    in the result, in bytes; and how long these inputs took to compile, in seconds."""

    name: str
    calls: int
    called: int | None
    inputs: int
    linked: int
    machine_code: int
    seconds: float


def class_totals(build: BuildReport) -> list[ClassTotal]:
    """Return the totals, the class with most machine code first; of equal ones, the one that took longer to compile."""
    calls: defaultdict[str, list[CallReport]] = defaultdict(list)
    for call in build.calls:
        calls[call.type_name].append(call)
    sizes = {function.name: function.size for function in build.result.functions}
    found = [_total(name, members, sizes) for name, members in calls.items()]
    return sorted(found, key=lambda total: (-total.machine_code, -total.seconds))


def _total(name: str, calls: list[CallReport], sizes: dict[str, int]) -> ClassTotal:
    inputs: dict[tuple[str, str], CodeReport] = {
        (code.name, code.sha256): code for call in calls for code in call.returned
    }
    units = {code.unit or key: code.compiled for key, code in inputs.items() if code.compiled}
    as_they_are = sum(code.size for code in inputs.values() if not code.compiled)
    defined = {readable(symbol) for code in inputs.values() for symbol in code.defines or ()}
    return ClassTotal(
        name,
        len(calls),
        None if all(call.inlined is None for call in calls) else sum(call.inlined is False for call in calls),
        len(inputs),
        as_they_are + sum(made.size for made in units.values()),
        sum(sizes.get(symbol, 0) for symbol in defined),
        sum(made.seconds for made in units.values()),
    )


def to_text(total: ClassTotal) -> str:
    inlined = "" if total.called is None else f", {total.called} not inlined" if total.called else ", all inlined"
    left = f"{formatting.size(total.machine_code)} of machine code, " if total.machine_code else ""
    inputs = f"{formatting.count(total.inputs, 'input')} of {formatting.size(total.linked)}"
    return (
        f"{formatting.count(total.calls, 'call')}{inlined}; {left}{inputs}, "
        f"compiled in {formatting.time(total.seconds)}"
    )


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
