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
from .state import Block, Error, Status, Thread

KINDS = {"shfl": ("up", "down", "bfly", "idx"), "vote": ("all", "any", "uni", "ballot"), "match": ("any", "all")}
UP, DOWN, BFLY, IDX = range(4)
ALL, ANY, UNI, BALLOT = range(4)
# Of numbers whose bits are flipped, and flipped back
ADD, XOR, OR, MAX = range(4)
REDUCTIONS = {"add.u32": (ADD, 0), "add.s32": (ADD, 0), "xor.b32": (XOR, 0), "or.b32": (OR, 0), "and.b32": (OR, ~0)}
REDUCTIONS |= {"max.u32": (MAX, 0), "min.u32": (MAX, ~0), "max.s32": (MAX, 1 << 31), "min.s32": (MAX, ~(1 << 31))}


@native(inline=False)
def warp_operation(thread: u64, function: u64, kind: u32, mask: u32, a: u64, b: u64, c: u64, site: u32):
    """Wait for the lanes of *mask*, of whose operands the *function* makes what is then in RESULT and RESULT_2."""
    block = load_u64(thread, Thread.BLOCK)
    index = load_u32(thread, Thread.INDEX)
    if mask >> (index & 31) & 1 == 0:
        fail(thread, Error.NOT_IN_MASK, site, u64(mask), 0)
    store_u64(thread, Thread.FUNCTION, function)
    store_u32(thread, Thread.OPERATION, kind)
    store_u32(thread, Thread.MASK, mask)
    store_u64(thread, Thread.A, a)
    store_u64(thread, Thread.B, b)
    store_u64(thread, Thread.C, c)
    store_u32(thread, Thread.SITE, site)
    set_status(block, index, Status.WARP)
    complete_warp(block, index >> 5, thread)
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
def complete_warp(block: u64, warp: u32, thread: u64):
    """Give all lanes for which *thread* waits their results if all that live wait for the same."""
    mask = load_u32(thread, Thread.MASK)
    function = load_u64(thread, Thread.FUNCTION)
    kind = load_u32(thread, Thread.OPERATION)
    lanes = mask & load_u32(load_u64(block, Block.LIVE_LANES), u64(warp) * 4)
    base = warp * 32
    rest = lanes
    while rest != 0:  # the last lane first, which most often is not there yet
        lane = 31 - ctlz(rest)
        rest ^= u32(1) << lane
        other = thread_at(block, base + lane)
        if status_of(block, base + lane) != Status.WARP or load_u32(other, Thread.MASK) != mask:
            return
        if load_u64(other, Thread.FUNCTION) != function or load_u32(other, Thread.OPERATION) != kind:
            return
    call_address(function, thread_at(block, base), u64(lanes), u64(kind))
    for lane in bits(lanes):
        set_status(block, base + lane, Status.READY)


# What lanes do: functions that are called with the record of the first lane of the warp


@native
def give_all(first: u64, lanes: u64, result: u64, second: u64):
    for lane in bits(lanes):
        store_u64(first + lane * Thread.BYTES, Thread.RESULT, result)
        store_u64(first + lane * Thread.BYTES, Thread.RESULT_2, second)


@native(inline=False)
def sync(first: u64, lanes: u64, kind: u64):
    give_all(first, lanes, 0, 0)
    for lane in bits(lanes):
        other = first + lane * Thread.BYTES
        store_u32(other, Thread.WARP_EPOCH, load_u32(other, Thread.WARP_EPOCH) + 1)


@native(inline=False)
def elect(first: u64, lanes: u64, kind: u64):
    leader = cttz(lanes)
    give_all(first, lanes, leader, 0)
    store_u64(first + leader * Thread.BYTES, Thread.RESULT_2, 1)


@native(inline=False)
def shfl(first: u64, lanes: u64, kind: u64):
    for each in bits(lanes):
        lane = u32(each)
        thread = first + each * Thread.BYTES
        b = u32(load_u64(thread, Thread.B)) & 31
        c = u32(load_u64(thread, Thread.C))
        segment = c >> 8 & 31
        clamp = c & 31
        highest = i32((lane & segment) | (clamp & ~segment))
        source = i32((lane & segment) | (b & ~segment))
        if kind == UP:
            source = i32(lane) - i32(b)
        elif kind == DOWN:
            source = i32(lane + b)
        elif kind == BFLY:
            source = i32(lane ^ b)
        inside = source >= highest if kind == UP else source <= highest
        absent = inside and lanes >> u64(source) & 1 == 0
        if absent or not inside:
            source = i32(lane)
        store_u64(thread, Thread.RESULT, load_u64(first + u64(source) * Thread.BYTES, Thread.A))
        store_u64(thread, Thread.RESULT_2, u64(inside) | u64(absent) << 32)


@native(inline=False)
def vote(first: u64, lanes: u64, kind: u64):
    result = u64(0)
    for lane in bits(lanes):
        result |= load_u64(first + lane * Thread.BYTES, Thread.A) << lane
    if kind == ALL:
        result = u64(result == lanes)
    elif kind == ANY:
        result = u64(result != 0)
    elif kind == UNI:
        result = u64(result == 0 or result == lanes)
    give_all(first, lanes, result, 0)


@native(inline=False)
def match(first: u64, lanes: u64, kind: u64):
    """The first kind is for any lane, the second for all."""
    for lane in bits(lanes):
        thread = first + lane * Thread.BYTES
        same = u64(0)
        for other in bits(lanes):
            is_same = load_u64(first + other * Thread.BYTES, Thread.A) == load_u64(thread, Thread.A)
            same |= u64(is_same) << other
        store_u64(thread, Thread.RESULT, same if kind == 0 or same == lanes else u64(0))
        store_u64(thread, Thread.RESULT_2, u64(same == lanes))


@native(inline=False)
def redux(first: u64, lanes: u64, kind: u64):
    flip = u32(load_u64(first + cttz(lanes) * Thread.BYTES, Thread.B))
    result = u32(0)
    for lane in bits(lanes):
        x = u32(load_u64(first + lane * Thread.BYTES, Thread.A)) ^ flip
        if kind == ADD:
            result += x
        elif kind == XOR:
            result ^= x
        elif kind == OR:
            result |= x
        elif x > result:
            result = x
    give_all(first, lanes, u64(result ^ flip), 0)


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
