# SPDX-License-Identifier: BSD-2-Clause
"""Device memory: ordinary memory of the process, with a table of what kernels may touch."""

from __future__ import annotations

import bisect
import ctypes
import threading
from dataclasses import dataclass, replace

import numpy as np

_ALIGNMENT = 256
_GUARD = 256
_PATTERN = 0xCD
_QUARANTINE_BYTES = 64 << 20


@dataclass(frozen=True)
class Allocation:
    """A piece of memory that kernels may touch, or could until it was *freed*."""

    address: int
    nbytes: int
    label: str
    freed: bool = False

    @property
    def end(self) -> int:
        return self.address + self.nbytes


class _Table:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.starts: list[int] = []
        self.allocations: list[Allocation] = []
        self.buffers: dict[int, np.ndarray] = {}
        self.quarantine: list[tuple[Allocation, np.ndarray | None]] = []
        self.packed: np.ndarray | None = None

    def add(self, allocation: Allocation) -> None:
        with self.lock:
            k = bisect.bisect_left(self.starts, allocation.address)
            if k < len(self.starts) and self.starts[k] == allocation.address:
                self.allocations[k] = max(self.allocations[k], allocation, key=lambda a: a.nbytes)
            else:
                self.starts.insert(k, allocation.address)
                self.allocations.insert(k, allocation)
            self.packed = None

    def remove(self, address: int) -> Allocation:
        with self.lock:
            k = bisect.bisect_left(self.starts, address)
            if k == len(self.starts) or self.starts[k] != address:
                raise ValueError(f"No memory begins at {address:#x}: it was never allocated, or is freed already")
            del self.starts[k]
            self.packed = None
            return self.allocations.pop(k)

    def pack(self) -> np.ndarray:
        """Return pairs of address and end, sorted."""
        with self.lock:
            if self.packed is None:
                pairs = [(a.address, a.end) for a in self.allocations if a.nbytes]
                self.packed = np.array(pairs or [(0, 0)], np.uint64)
            return self.packed


_table = _Table()
pack_table = _table.pack


def allocate(nbytes: int, *, label: str = "") -> int:
    """Return the address of *nbytes* of new memory, aligned to 256 bytes and filled with a pattern."""
    nbytes = int(nbytes)
    if nbytes < 0:
        raise ValueError(f"Memory of {nbytes} bytes cannot be allocated")
    buffer = np.empty(nbytes + _ALIGNMENT + 2 * _GUARD, np.uint8)
    address = -(-(buffer.ctypes.data + _GUARD) // _ALIGNMENT) * _ALIGNMENT
    offset = address - buffer.ctypes.data
    buffer[offset : offset + nbytes] = _PATTERN
    with _table.lock:
        _table.buffers[address] = buffer
        _table.add(Allocation(address, nbytes, label))
    return address


def free(address: int) -> None:
    """Give up what `allocate` returned; a kernel that still uses it is stopped."""
    with _table.lock:
        if address not in _table.buffers:
            raise ValueError(f"No memory begins at {address:#x}: it was never allocated, or is freed already")
        allocation = _table.remove(address)
        _table.quarantine.append((replace(allocation, freed=True), _table.buffers.pop(address)))
        held = sum(a.nbytes for a, _ in _table.quarantine)
        while held > _QUARANTINE_BYTES and len(_table.quarantine) > 1:
            held -= _table.quarantine.pop(0)[0].nbytes


def register(address: int, nbytes: int, label: str = "") -> None:
    """Let kernels touch memory that someone else owns."""
    _table.add(Allocation(int(address), int(nbytes), label))


def unregister(address: int) -> None:
    """Forget what `register` was told."""
    with _table.lock:
        _table.quarantine.append((replace(_table.remove(int(address)), freed=True), None))


def find(address: int) -> Allocation | None:
    """Return the memory that holds *address*, or held it before it was freed, or None.

    Freed memory may have been given to another array: next to that, it is no longer the freed memory.
    """
    with _table.lock:
        k = bisect.bisect_right(_table.starts, address) - 1
        if k >= 0 and address < _table.allocations[k].end:
            return _table.allocations[k]
        near = find_nearest(address)
        for allocation, _ in reversed(_table.quarantine):
            if allocation.address <= address < max(allocation.end, allocation.address + 1):
                return None if near is not None and _is_within(near, allocation, address) else allocation
    return None


def _is_within(near: Allocation, freed: Allocation, address: int) -> bool:
    """Return whether *near* uses memory of *freed*, and *address* is in it or just before or after it."""
    overlaps = near.address < freed.end and freed.address < near.end
    return overlaps and near.address - _GUARD <= address < near.end + _GUARD


def find_nearest(address: int) -> Allocation | None:
    """Return the memory in use that is nearest to *address*."""
    with _table.lock:
        k = bisect.bisect_right(_table.starts, address)
        near = [a for a in _table.allocations[max(0, k - 1) : k + 1] if a.nbytes]
        return min(near, key=lambda a: max(a.address - address, address - a.end), default=None)


def word_at(address: int) -> int:
    """Return the 64 bits at *address*."""
    return ctypes.c_uint64.from_address(address).value
