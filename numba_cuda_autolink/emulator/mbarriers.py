# SPDX-License-Identifier: BSD-2-Clause
"""Barriers in shared memory (mbarrier): a word that counts arrivals, and flips its phase when all have come.

Bits 0 to 19 hold how many arrivals complete a phase, bits 20 to 39 how many are missing, and bit 63 the phase.
"""
# ruff: noqa: F821
# mypy: disable-error-code="name-defined"

from __future__ import annotations

from .native import native, u32, u64
from .scheduler import yield_thread
from .state import Block, Thread


@native
def mbarrier_init(address: u64, count: u32):
    store_u64(address, 0, u64(count) | u64(count) << 20)


@native(inline=False)
def mbarrier_arrive(thread: u64, address: u64, count: u32, drop: bool) -> u64:
    """Count *count* arrivals, and one fewer from then on for a *drop*; return the word as it was."""
    old = load_u64(address, 0)
    expected = old & 0xFFFFF
    pending = (old >> 20 & 0xFFFFF) - u64(count)
    phase = old >> 63
    if drop:
        expected -= u64(count)
    if pending == 0:
        pending = expected
        phase ^= 1
        block = load_u64(thread, Thread.BLOCK)
        store_u32(block, Block.EPOCH, load_u32(block, Block.EPOCH) + 1)
    store_u64(address, 0, expected | pending << 20 | phase << 63)
    return old


@native(inline=False)
def mbarrier_wait(thread: u64, address: u64, phase: u64, yields: bool) -> bool:
    """Return whether the *phase* (0 or 1) is over; if not, let others run first where the wait *yields*."""
    if load_u64(address, 0) >> 63 != phase:
        return True
    if yields:
        yield_thread(thread)
    return load_u64(address, 0) >> 63 != phase


@native
def mbarrier_pending(state: u64) -> u32:
    return u32(state >> 20 & 0xFFFFF)
