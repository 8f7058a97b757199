# SPDX-License-Identifier: BSD-2-Clause
"""Checks of memory accesses: native functions for where the quick test in the code does not decide.

Each place in the code that reads or writes remembers the memory that it met last, as an address and a number of valid
offsets, so that the next access there is a subtraction and a comparison. A frame with local memory whose address is
taken is a record on the stack: the frame below, its address, its size, and, where reads of unwritten memory are
checked, a shadow.
"""
# ruff: noqa: F821
# mypy: disable-error-code="name-defined"

from __future__ import annotations

from .native import native, u8, u16, u32, u64
from .scheduler import fail
from .state import FIRST_SHARED_ADDRESS, Block, Error, Launch, Thread

FRAME_BELOW, FRAME_ADDRESS, FRAME_SIZE, FRAME_SHADOW = 0, 8, 16, 24


@native
def remember(slot: u64, address: u64, end: u64, nbytes: u32):
    valid = end - address + 1 - u64(nbytes)
    if end - address < u64(nbytes):
        valid = u64(0)
    store_u64(slot, 0, address)
    store_u64(slot, 8, valid)


@native
def find_allocation(launch: u64, address: u64) -> u64:
    """Return the address of the entry that may hold *address*: the last that begins at it or before; or 0."""
    table = load_u64(launch, Launch.ALLOCATIONS)
    low = u64(0)
    high = load_u64(launch, Launch.ALLOCATION_COUNT)
    while low < high:
        middle = (low + high) >> 1
        if load_u64(table, middle * 16) <= address:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return u64(0)
    return table + (low - 1) * 16


@native
def find_frame(thread: u64, address: u64, nbytes: u32) -> u64:
    """Return the frame whose local memory holds the access, or 0."""
    frame = load_u64(thread, Thread.LOCALS)
    while frame != 0:
        size = load_u64(frame, FRAME_SIZE)
        offset = address - load_u64(frame, FRAME_ADDRESS)
        if offset < size and offset + u64(nbytes) <= size:
            return frame
        frame = load_u64(frame, FRAME_BELOW)
    return u64(0)


@native(inline=False)
def check_access(thread: u64, address: u64, nbytes: u32, align: u32, site: u32, slot: u64):
    """Return if the access of *nbytes* at the generic *address* is right; fail if not."""
    block = load_u64(thread, Thread.BLOCK)
    launch = load_u64(block, Block.LAUNCH)
    if address & (u64(align) - 1) != 0:
        fail(thread, Error.MISALIGNED, site, address, nbytes)
    if address - load_u64(thread, Thread.STACK) < u64(load_u32(block, Block.STACK_BYTES)):
        if find_frame(thread, address, nbytes) == 0:
            fail(thread, Error.OUT_OF_BOUNDS, site, address, nbytes)
        return
    end = address + u64(nbytes)
    shared = load_u64(block, Block.SHARED) + FIRST_SHARED_ADDRESS
    shared_bytes = load_u64(block, Block.SHARED_BYTES)
    if address - shared < shared_bytes and end - shared <= shared_bytes:
        remember(slot, shared, shared + shared_bytes, nbytes)
        return
    entry = find_allocation(launch, address)
    if entry != 0 and end <= load_u64(entry, 8) and end > address:
        remember(slot, load_u64(entry, 0), load_u64(entry, 8), nbytes)
        return
    parameters = load_u64(launch, Launch.PARAMETERS)
    if address >= parameters and end <= parameters + load_u64(launch, Launch.PARAMETER_BYTES):
        return
    fail(thread, Error.OUT_OF_BOUNDS, site, address, nbytes)


@native(inline=False)
def fail_access(thread: u64, address: u64, nbytes: u32, align: u32, site: u32):
    """Fail for an access to shared or local memory that the quick test refuses."""
    if address & (u64(align) - 1) != 0:
        fail(thread, Error.MISALIGNED, site, address, nbytes)
    fail(thread, Error.OUT_OF_BOUNDS, site, address, nbytes)


@native(inline=False)
def check_local(thread: u64, address: u64, nbytes: u32, align: u32, site: u32):
    """Return if the access is within the local memory of any frame of *thread*."""
    if address & (u64(align) - 1) != 0 or find_frame(thread, address, nbytes) == 0:
        fail_access(thread, address, nbytes, align, site)


# What was written, and who accessed it


@native(inline=False)
def check_shared_access(thread: u64, offset: u64, nbytes: u32, writes: bool, atomic: bool, site: u32):
    """Notice an access of shared memory at the shared address *offset*: reads of unwritten bytes, and races.

    The record of a byte: the last writer and the last reader, each as thread (u16), epoch of its warp (u16) and epoch
    of the block (u32). An atomic access counts as a write by nobody (thread 0xFFFF).
    """
    block = load_u64(thread, Thread.BLOCK)
    shadow = load_u64(block, Block.SHARED_WRITTEN)
    accesses = load_u64(block, Block.SHARED_ACCESSES)
    me = u16(load_u32(thread, Thread.INDEX))
    warp_epoch = u16(load_u32(thread, Thread.WARP_EPOCH))
    epoch = load_u32(block, Block.EPOCH)
    for k in range(u64(nbytes)):
        at = offset + k - FIRST_SHARED_ADDRESS
        if shadow != 0:
            if writes:
                store_u8(shadow, at, 1)
            if (not writes or atomic) and load_u8(shadow, at) == 0:
                fail(thread, Error.UNINITIALISED, site, load_u64(block, Block.SHARED) + offset + k, nbytes)
        if accesses != 0:
            record = accesses + at * 16
            for reader in range(u32(2)):
                other = load_u16(record, reader * 8)
                same_epoch = load_u32(record, reader * 8 + 4) == epoch
                same_warp = other >> 5 == me >> 5 and load_u16(record, reader * 8 + 2) != warp_epoch
                both_atomic = atomic and other == 0xFFFF
                if same_epoch and other != me and not same_warp and not both_atomic and (writes or reader == 0):
                    store_u64(block, Block.ERROR_DETAIL, u64(other))
                    fail(thread, Error.RACE, site, load_u64(block, Block.SHARED) + offset + k, nbytes)
            who = me
            if atomic:
                who = u16(0xFFFF)
            column = u32(8)
            if writes:
                column = u32(0)
            store_u16(record, column, who)
            store_u16(record, column + 2, warp_epoch)
            store_u32(record, column + 4, epoch)


@native(inline=False)
def check_any_access(thread: u64, address: u64, nbytes: u32, writes: bool, atomic: bool, site: u32):
    """`check_shared_access` or the check of unwritten local memory, if the generic *address* is in either."""
    block = load_u64(thread, Thread.BLOCK)
    offset = address - load_u64(block, Block.SHARED)
    if offset - FIRST_SHARED_ADDRESS < load_u64(block, Block.SHARED_BYTES):
        check_shared_access(thread, offset, nbytes, writes, atomic, site)
        return
    frame = find_frame(thread, address, nbytes)
    if frame != 0 and load_u64(frame, FRAME_SHADOW) != 0:
        at = load_u64(frame, FRAME_SHADOW) + (address - load_u64(frame, FRAME_ADDRESS))
        for k in range(u64(nbytes)):
            if writes:
                store_u8(at, k, u8(1))
            elif load_u8(at, k) == 0:
                fail(thread, Error.UNINITIALISED, site, address, nbytes)
