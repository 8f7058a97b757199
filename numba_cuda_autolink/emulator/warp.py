# SPDX-License-Identifier: BSD-2-Clause
"""What the lanes of a warp do together: shuffles, votes, matches, reductions, and what a function of the
kernel does; and barriers in shared memory.

Each lane of the mask comes with its operands and waits; the last one computes the results of all.
"""
# ruff: noqa: F821
# mypy: disable-error-code="name-defined"

from __future__ import annotations

from .native import i32, native, u32, u64
from .scheduler import fail, set_status, status_of, suspend, thread_at, wait_as, yield_thread
from .state import Block, Error, Operation, Status, Thread


@native(inline=False)
def warp_operation(thread: u64, operation: u32, mask: u32, a: u64, b: u64, c: u64, site: u32):
    """Wait for the lanes of *mask*; RESULT and RESULT_2 of *thread* hold what came of it."""
    block = load_u64(thread, Thread.BLOCK)
    index = load_u32(thread, Thread.INDEX)
    if mask >> (index & 31) & 1 == 0:
        fail(thread, Error.NOT_IN_MASK, site, u64(mask), 0)
    store_u32(thread, Thread.OPERATION, operation)
    store_u32(thread, Thread.MASK, mask)
    store_u64(thread, Thread.A, a)
    store_u64(thread, Thread.B, b)
    store_u64(thread, Thread.C, c)
    store_u32(thread, Thread.SITE, site)
    set_status(block, index, Status.WARP)
    complete_warp(block, index >> 5, mask, operation)
    if status_of(block, index) == Status.WARP:
        suspend(thread)
    if load_u64(thread, Thread.RESULT_2) >> 32 != 0:
        fail(thread, Error.READ_FROM_ABSENT_LANE, site, u64(mask), 0)


@native(inline=False)
def active_mask(thread: u64, site: u32) -> u32:
    """Wait until no lane of the warp can run; return the lanes that wait in the same instruction."""
    store_u32(thread, Thread.SITE, site)
    wait_as(thread, Status.ACTIVE)
    return u32(load_u64(thread, Thread.RESULT))


@native(inline=False)
def complete_warp(block: u64, warp: u32, mask: u32, operation: u32):
    """Give all lanes of *mask* their results if all that live wait for the same."""
    lanes = mask & load_u32(load_u64(block, Block.LIVE_LANES), u64(warp) * 4)
    base = warp * 32
    rest = lanes
    while rest != 0:  # the last lane first, which most often is not there yet
        lane = 31 - ctlz(rest)
        rest ^= u32(1) << lane
        if status_of(block, base + lane) != Status.WARP:
            return
        other = thread_at(block, base + lane)
        if load_u32(other, Thread.MASK) != mask or load_u32(other, Thread.OPERATION) != operation:
            return
    first = thread_at(block, base)
    if operation < Operation.SYNC:
        shuffle(first, lanes, operation)
    elif operation == Operation.SYNC:
        give_all(first, lanes, 0, 0)
        for lane in bits(lanes):
            other = first + u64(lane) * Thread.BYTES
            store_u32(other, Thread.WARP_EPOCH, load_u32(other, Thread.WARP_EPOCH) + 1)
    elif operation <= Operation.VOTE_BALLOT:
        vote(first, lanes, operation)
    elif operation <= Operation.MATCH_ALL:
        match(first, lanes, operation)
    elif operation <= Operation.REDUX_XOR:
        reduce_lanes(first, lanes, operation)
    elif operation == Operation.ELECT_SYNC:
        leader = u64(cttz(lanes))
        give_all(first, lanes, leader, 0)
        store_u64(first + leader * Thread.BYTES, Thread.RESULT_2, 1)
    else:
        give_all(first, lanes, 0, 0)
        call_address(load_u64(first, Thread.C), first)
    for lane in bits(lanes):
        set_status(block, base + lane, Status.READY)


@native
def give_all(first: u64, lanes: u32, result: u64, second: u64):
    for lane in bits(lanes):
        store_u64(first + u64(lane) * Thread.BYTES, Thread.RESULT, result)
        store_u64(first + u64(lane) * Thread.BYTES, Thread.RESULT_2, second)


@native(inline=False)
def shuffle(first: u64, lanes: u32, operation: u32):
    for lane in bits(lanes):
        thread = first + u64(lane) * Thread.BYTES
        b = u32(load_u64(thread, Thread.B)) & 31
        c = u32(load_u64(thread, Thread.C))
        segment = c >> 8 & 31
        clamp = c & 31
        highest = i32((lane & segment) | (clamp & ~segment))
        source = i32((lane & segment) | (b & ~segment))
        if operation == Operation.SHFL_UP:
            source = i32(lane) - i32(b)
        elif operation == Operation.SHFL_DOWN:
            source = i32(lane + b)
        elif operation == Operation.SHFL_BFLY:
            source = i32(lane ^ b)
        inside = source >= highest if operation == Operation.SHFL_UP else source <= highest
        absent = inside and lanes >> u32(source) & 1 == 0
        if absent or not inside:
            source = i32(lane)
        store_u64(thread, Thread.RESULT, load_u64(first + u64(source) * Thread.BYTES, Thread.A))
        store_u64(thread, Thread.RESULT_2, u64(inside) | u64(absent) << 32)


@native
def vote(first: u64, lanes: u32, operation: u32):
    ballot = u32(0)
    for lane in bits(lanes):
        ballot |= u32(load_u64(first + u64(lane) * Thread.BYTES, Thread.A)) << lane
    result = u64(ballot)
    if operation == Operation.VOTE_ALL:
        result = u64(ballot == lanes)
    elif operation == Operation.VOTE_ANY:
        result = u64(ballot != 0)
    elif operation == Operation.VOTE_UNI:
        result = u64(ballot == 0 or ballot == lanes)
    give_all(first, lanes, result, 0)


@native
def match(first: u64, lanes: u32, operation: u32):
    for lane in bits(lanes):
        mine = load_u64(first + u64(lane) * Thread.BYTES, Thread.A)
        same = u32(0)
        for other in bits(lanes):
            if load_u64(first + u64(other) * Thread.BYTES, Thread.A) == mine:
                same |= u32(1) << other
        thread = first + u64(lane) * Thread.BYTES
        store_u64(thread, Thread.RESULT_2, u64(same == lanes))
        if operation == Operation.MATCH_ALL and same != lanes:
            same = u32(0)
        store_u64(thread, Thread.RESULT, u64(same))


@native
def reduce_lanes(first: u64, lanes: u32, operation: u32):
    result = u32(load_u64(first + u64(cttz(lanes)) * Thread.BYTES, Thread.A))
    for lane in bits(lanes & (lanes - 1)):
        x = u32(load_u64(first + u64(lane) * Thread.BYTES, Thread.A))
        if operation == Operation.REDUX_ADD_U32:
            result += x
        elif operation == Operation.REDUX_MIN_S32:
            result = x if i32(x) < i32(result) else result
        elif operation == Operation.REDUX_MAX_S32:
            result = x if i32(x) > i32(result) else result
        elif operation == Operation.REDUX_MIN_U32:
            result = x if x < result else result
        elif operation == Operation.REDUX_MAX_U32:
            result = x if x > result else result
        elif operation == Operation.REDUX_AND:
            result &= x
        elif operation == Operation.REDUX_OR:
            result |= x
        else:
            result ^= x
    give_all(first, lanes, u64(result), 0)


# Barriers in shared memory (mbarrier): a word that counts arrivals, and flips its phase when all have come. Bits 0 to
# 19 hold how many arrivals complete a phase, bits 20 to 39 how many are missing, and bit 63 the phase.


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
