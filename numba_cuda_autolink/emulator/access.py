# SPDX-License-Identifier: BSD-2-Clause
"""Checks of memory accesses: native functions for where the quick test in the code does not decide.

Each place in the code that reads or writes remembers the memory that it met last, as an address and a number of valid
offsets, so that the next access there is a subtraction and a comparison.
"""
# ruff: noqa: F821
# mypy: disable-error-code="name-defined"

from __future__ import annotations

from .native import native, u8, u16, u32, u64
from .scheduler import fail, thread_at
from .state import FIRST_SHARED_ADDRESS, Block, Error, Frame, Launch, Thread


@native
def is_in_shared(thread: u64, address: u64) -> bool:
    block = load_u64(thread, Thread.BLOCK)
    return address - load_u64(block, Block.SHARED) - FIRST_SHARED_ADDRESS < load_u64(block, Block.SHARED_BYTES)


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
        size = load_u64(frame, Frame.SIZE)
        offset = address - load_u64(frame, Frame.ADDRESS)
        if offset < size and offset + u64(nbytes) <= size:
            return frame
        frame = load_u64(frame, Frame.BELOW)
    return u64(0)


@native(inline=False)
def check_access(thread: u64, address: u64, nbytes: u32, align: u32, site: u32, slot: u64):
    """Return if the access of *nbytes* at the generic *address* is right, and remember what is there; fail if not."""
    block = load_u64(thread, Thread.BLOCK)
    launch = load_u64(block, Block.LAUNCH)
    end = address + u64(nbytes)
    if address - load_u64(thread, Thread.STACK) < u64(load_u32(block, Block.STACK_BYTES)):
        check_local(thread, address, nbytes, align, site)
        return
    low = load_u64(block, Block.SHARED) + FIRST_SHARED_ADDRESS
    high = low + load_u64(block, Block.SHARED_BYTES)
    entry = find_allocation(launch, address)
    if entry != 0 and not is_in_shared(thread, address):
        low = load_u64(entry, 0)
        high = load_u64(entry, 8)
    parameters = load_u64(launch, Launch.PARAMETERS)
    is_parameter = address >= parameters and end <= parameters + load_u64(launch, Launch.PARAMETER_BYTES)
    is_inside = address >= low and end <= high and end > address
    if address & (u64(align) - 1) != 0 or not (is_inside or is_parameter):
        fail_access(thread, address, nbytes, align, site)
    if is_inside:
        store_u64(slot, 0, low)
        store_u64(slot, 8, high - low + 1 - u64(nbytes))


@native(inline=False)
def fail_access(thread: u64, address: u64, nbytes: u32, align: u32, site: u32):
    if address & (u64(align) - 1) != 0:
        fail(thread, Error.MISALIGNED, site, address, nbytes)
    fail(thread, Error.OUT_OF_BOUNDS, site, address, nbytes)


@native(inline=False)
def check_local(thread: u64, address: u64, nbytes: u32, align: u32, site: u32):
    """Return if the access is within the local memory of any frame of *thread*."""
    if address & (u64(align) - 1) != 0 or find_frame(thread, address, nbytes) == 0:
        fail_access(thread, address, nbytes, align, site)


# What was written, and who accessed it

# The record of a byte of shared memory: its last writer, and its last two readers that differ. Each is a thread (u16),
# the epoch of its warp (u16), the epoch of the block (u32), the instruction (u32), and the block's fences before (u32).
_WARP_EPOCH, _EPOCH, _SITE, _FENCES, _RECORD_BYTES = 2, 4, 8, 12, 16
ACCESS_BYTES = 3 * _RECORD_BYTES
_ATOMIC, _SEVERAL = 0x8000, 0xFFFF  # an atomic access, by a thread or by threads of several warps


@native(inline=False)
def note_fence(thread: u64):
    """What *thread* did until now comes before what other threads do after later fences of theirs: they have seen that
    it is done, or else another schedule is a race that this one does not show."""
    block = load_u64(thread, Thread.BLOCK)
    count = load_u32(block, Block.FENCES) + 1
    store_u32(block, Block.FENCES, count)
    store_u32(thread_at(block, load_u32(thread, Thread.INDEX)), Thread.LAST_FENCE, count)


@native
def conflicts(thread: u64, access: u64, me: u16, warp_epoch: u16, epoch: u32, atomic: bool) -> bool:
    """Return whether nothing orders the *access* of another thread before this one, and not both are *atomic*."""
    other = load_u16(access, 0)
    number = other & ~u16(_ATOMIC)
    if load_u32(access, _EPOCH) != epoch or number == me:
        return False
    if number >> 5 == me >> 5 and load_u16(access, _WARP_EPOCH) != warp_epoch:
        return False
    if other == _SEVERAL or (atomic and other >= _ATOMIC):
        return not atomic
    block = load_u64(thread, Thread.BLOCK)
    fenced = load_u32(thread_at(block, u32(number)), Thread.LAST_FENCE)
    mine = load_u32(thread_at(block, u32(me)), Thread.LAST_FENCE)
    return fenced <= load_u32(access, _FENCES) or mine <= fenced


@native
def note_access(thread: u64, access: u64, who: u16, warp_epoch: u16, epoch: u32, site: u32):
    store_u16(access, 0, who)
    store_u16(access, _WARP_EPOCH, warp_epoch)
    store_u32(access, _EPOCH, epoch)
    store_u32(access, _SITE, site)
    store_u32(access, _FENCES, load_u32(load_u64(thread, Thread.BLOCK), Block.FENCES))


@native(inline=False)
def check_race(thread: u64, record: u64, address: u64, nbytes: u32, writes: bool, atomic: bool, site: u32):
    """Fail if the access of the byte with *record* conflicts with an earlier one, and note it."""
    me = u16(load_u32(thread, Thread.INDEX))
    warp_epoch = u16(load_u32(thread, Thread.WARP_EPOCH))
    epoch = load_u32(load_u64(thread, Thread.BLOCK), Block.EPOCH)
    first = record + _RECORD_BYTES
    second = first + _RECORD_BYTES
    who = me | u16(_ATOMIC) if atomic else me
    for slot in range(u64(3)):
        other = record + slot * _RECORD_BYTES
        if (slot == 0 or writes) and conflicts(thread, other, me, warp_epoch, epoch, atomic):
            detail = u64(load_u16(other, 0)) | u64(load_u32(other, _SITE)) << 32
            store_u64(load_u64(thread, Thread.BLOCK), Block.ERROR_DETAIL, detail)
            fail(thread, Error.RACE, site, address, nbytes)
    if not writes:
        if not conflicts(thread, first, me, warp_epoch, epoch, False):
            note_access(thread, first, who, warp_epoch, epoch, site)
        elif load_u16(second, 0) >= _ATOMIC or not conflicts(thread, second, me, warp_epoch, epoch, False):
            note_access(thread, second, who, warp_epoch, epoch, site)
        return
    if atomic and load_u32(record, _EPOCH) == epoch:
        before = load_u16(record, 0)
        if before < _ATOMIC:
            return  # a plain write, which other warps must not miss
        if (before & ~u16(_ATOMIC)) >> 5 != me >> 5:
            who = u16(_SEVERAL)
    note_access(thread, record, who, warp_epoch, epoch, site)


@native(inline=False)
def fail_unwritten(thread: u64, address: u64, nbytes: u32, site: u32):
    """Fail for a read of unwritten memory: at once, or in shared memory where races are found, if no thread writes it
    until the next barrier."""
    block = load_u64(thread, Thread.BLOCK)
    if load_u64(block, Block.SHARED_ACCESSES) == 0 or not is_in_shared(thread, address):
        fail(thread, Error.UNINITIALISED, site, address, nbytes)
    if load_u32(block, Block.UNWRITTEN_BYTES) == 0:
        store_u32(block, Block.UNWRITTEN_THREAD, load_u32(thread, Thread.INDEX))
        store_u64(block, Block.UNWRITTEN_ADDRESS, address)
        store_u32(block, Block.UNWRITTEN_SITE, site)
        store_u32(block, Block.UNWRITTEN_BYTES, nbytes)


@native(inline=False)
def notice_access(thread: u64, address: u64, nbytes: u32, writes: bool, atomic: bool, copies: bool, site: u32):
    """Check an access of shared or local memory, if the generic *address* is there: races, and reads of unwritten bytes
    unless it *copies* them."""
    block = load_u64(thread, Thread.BLOCK)
    accesses = load_u64(block, Block.SHARED_ACCESSES)
    if accesses != 0 and is_in_shared(thread, address):
        offset = address - load_u64(block, Block.SHARED) - FIRST_SHARED_ADDRESS
        for byte in range(u64(nbytes)):
            record = accesses + (offset + byte) * ACCESS_BYTES
            check_race(thread, record, address + byte, nbytes, writes, atomic, site)
    shadow = find_shadow(thread, address, nbytes)
    if shadow != 0:
        for byte in range(u64(nbytes)):
            if not copies and (not writes or atomic) and load_u8(shadow, byte) == 0:
                fail_unwritten(thread, address + byte, nbytes, site)
            if writes:
                store_u8(shadow, byte, 1)


# Copies: what is loaded and only stored, as the padding of structs, may be unwritten, and remains so


@native
def find_shadow(thread: u64, address: u64, nbytes: u32) -> u64:
    """Return where it is noted which bytes of shared or local memory are written, or 0 for other memory."""
    if is_in_shared(thread, address):
        block = load_u64(thread, Thread.BLOCK)
        written = load_u64(block, Block.SHARED_WRITTEN)
        offset = address - load_u64(block, Block.SHARED) - FIRST_SHARED_ADDRESS
        return written + offset if written != 0 else u64(0)
    frame = find_frame(thread, address, nbytes)
    if frame == 0 or load_u64(frame, Frame.SHADOW) == 0:
        return u64(0)
    return load_u64(frame, Frame.SHADOW) + (address - load_u64(frame, Frame.ADDRESS))


@native(inline=False)
def find_unwritten(thread: u64, address: u64, nbytes: u32) -> u64:
    """Return a bit for each of the *nbytes* that is not written."""
    unwritten = u64(0)
    shadow = find_shadow(thread, address, nbytes)
    if shadow != 0:
        for k in range(u64(nbytes)):
            unwritten |= u64(load_u8(shadow, k) == 0) << k
    return unwritten


@native(inline=False)
def store_unwritten(thread: u64, target: u64, unwritten: u64, address: u64, nbytes: u32, site: u32):
    """Note that bytes at *target* are as *unwritten* as those that were loaded from *address*: other threads and the
    host must not see them."""
    shadow = find_shadow(thread, target, nbytes)
    if shadow == 0 and unwritten != 0:
        fail_unwritten(thread, address, nbytes, site)
    if shadow != 0:
        for k in range(u64(nbytes)):
            if unwritten >> k & 1 == 1:
                store_u8(shadow, k, u8(0))
