# SPDX-License-Identifier: BSD-2-Clause
"""Device memory: ordinary memory of the process, with a table of what kernels may touch."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

_ALIGNMENT = 256
_GUARD = 256
_PATTERN = 0xCD
_QUARANTINE_BYTES = 64 << 20
_UNKNOWN = "No memory begins at {:#x}: it was never allocated, or is freed already"


@dataclass(frozen=True)
class Region:
    """The *nbytes* at *address*. Kernels may touch an allocated one until it is *freed*."""

    address: int
    nbytes: int
    label: str = ""
    freed: bool = False

    @property
    def end(self) -> int:
        return self.address + self.nbytes

    def is_near(self, address: int, distance: int = 0) -> bool:
        """Return whether *address* is in it, or within *distance* bytes of it."""
        return self.address - distance <= address < self.end + distance


def nearest(regions: Iterable[Region], address: int) -> Region | None:
    return min(regions, key=lambda region: max(region.address - address, address - region.end), default=None)


_lock = threading.RLock()
_allocations: list[Region] = []  # in the order of their addresses
_buffers: dict[int, np.ndarray] = {}
_quarantine: list[tuple[Region, np.ndarray | None]] = []
_packed: list[np.ndarray] = []  # what pack_table returned, until the table changes
# Addresses that nobody needs, until the next launch: a finalizer may run in the middle of a change of the table
abandoned: list[np.ndarray] = []


def _place(address: int) -> int:
    """Return how many allocations begin before *address*."""
    return bisect.bisect_left(_allocations, address, key=lambda a: a.address)


def pack_table() -> np.ndarray:
    """Return pairs of address and end, sorted."""
    with _lock:
        while abandoned:
            for address in filter(None, abandoned.pop().tolist()):
                free(address)
        if not _packed:
            pairs = [(a.address, a.end) for a in _allocations if a.nbytes]
            _packed.append(np.array(pairs or [(0, 0)], np.uint64))
        return _packed[0]


def allocate(nbytes: int, *, label: str = "") -> int:
    """Return the address of *nbytes* of new memory, aligned to 256 bytes and filled with a pattern."""
    buffer = np.empty(nbytes + _ALIGNMENT + 2 * _GUARD, np.uint8)
    address = -(-(buffer.ctypes.data + _GUARD) // _ALIGNMENT) * _ALIGNMENT
    offset = address - buffer.ctypes.data
    buffer[offset : offset + nbytes] = _PATTERN
    with _lock:
        _buffers[address] = buffer
        register(address, nbytes, label)
    return address


def free(address: int) -> None:
    """Give up what `allocate` returned; a kernel that still uses it is stopped."""
    with _lock:
        if address not in _buffers:
            raise ValueError(_UNKNOWN.format(address))
        unregister(address)


def register(address: int, nbytes: int, label: str = "") -> None:
    """Let kernels touch memory that someone else owns."""
    allocation = Region(int(address), int(nbytes), label)
    with _lock:
        k = _place(address)
        if k < len(_allocations) and _allocations[k].address == address:
            _allocations[k] = max(_allocations[k], allocation, key=lambda a: a.nbytes)
        else:
            _allocations.insert(k, allocation)
        _packed.clear()


def name(address: int, label: str) -> None:
    """Give the memory that begins at *address*, if any does, a label."""
    with _lock:
        k = _place(address)
        if k < len(_allocations) and _allocations[k].address == address:
            _allocations[k] = replace(_allocations[k], label=label)


def unregister(address: int) -> None:
    """Forget what `register` was told, which is remembered as freed for a while."""
    with _lock:
        k = _place(address)
        if k == len(_allocations) or _allocations[k].address != address:
            raise ValueError(_UNKNOWN.format(address))
        _quarantine.append((replace(_allocations.pop(k), freed=True), _buffers.pop(address, None)))
        _packed.clear()
        held = sum(a.nbytes for a, _ in _quarantine)
        while held > _QUARANTINE_BYTES and len(_quarantine) > 1:
            held -= _quarantine.pop(0)[0].nbytes


def find(address: int) -> Region | None:
    """Return the memory that holds *address*, or held it before it was freed, or None.

    Freed memory may have been given to another array: next to that, it is no longer the freed memory.
    """
    with _lock:
        k = _place(address + 1) - 1
        if k >= 0 and address < _allocations[k].end:
            return _allocations[k]
        near = find_nearest(address)
        for freed, _ in reversed(_quarantine):
            if freed.address <= address < max(freed.end, freed.address + 1):
                is_used = near is not None and near.address < freed.end and freed.address < near.end
                is_near = near is not None and near.is_near(address, _GUARD)
                return None if is_used and is_near else freed
    return None


def find_nearest(address: int) -> Region | None:
    """Return the memory in use that is nearest to *address*."""
    with _lock:
        k = _place(address + 1)
        return nearest((a for a in _allocations[max(0, k - 1) : k + 1] if a.nbytes), address)
