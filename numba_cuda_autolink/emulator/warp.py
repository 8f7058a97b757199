# SPDX-License-Identifier: BSD-2-Clause
"""What the lanes of a warp do together: shuffles, votes, matches, reductions, and what a function of the
kernel does; and barriers in shared memory.

Each lane of the mask comes with its operands and waits; the last one computes the results of all.
"""
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, index"

from __future__ import annotations

from .native import i32, native, u32, u64
from .scheduler import fail, suspend, wait_as, yield_thread
from .state import Error, Status, Thread

KINDS = {"shfl": ("up", "down", "bfly", "idx"), "vote": ("all", "any", "uni", "ballot"), "match": ("any", "all")}
UP, DOWN, BFLY, IDX = range(4)
ALL, ANY, UNI, BALLOT = range(4)
# Of numbers whose bits are flipped, and flipped back
ADD, XOR, OR, MAX = range(4)
REDUCTIONS = {"add.u32": (ADD, 0), "add.s32": (ADD, 0), "xor.b32": (XOR, 0), "or.b32": (OR, 0), "and.b32": (OR, ~0)}
REDUCTIONS |= {"max.u32": (MAX, 0), "min.u32": (MAX, ~0), "max.s32": (MAX, 1 << 31), "min.s32": (MAX, ~(1 << 31))}


@native(inline=False)
def warp_operation(thread: Thread, function: u64, kind: u32, mask: u32, a: u64, b: u64, c: u64, site: u32):
    """Wait for the lanes of *mask*, of whose operands the *function* makes what is then in *result* and *result_2*."""
    if mask >> (thread.index & 31) & 1 == 0:
        fail(thread, Error.NOT_IN_MASK, site, u64(mask), 0)
    thread.function = function
    thread.operation = kind
    thread.mask = mask
    thread.a = a
    thread.b = b
    thread.c = c
    thread.site = site
    thread.status = Status.WARP
    complete_warp(thread)
    if thread.status == Status.WARP:
        suspend(thread)
    if thread.result_2 >> 32 != 0:
        fail(thread, Error.READ_FROM_ABSENT_LANE, site, u64(mask), 0)


@native(inline=False)
def active_mask(thread: Thread, site: u32) -> u32:
    """Wait until no lane of the warp can run; return the lanes that wait in the same instruction."""
    thread.site = site
    wait_as(thread, Status.ACTIVE)
    return u32(thread.result)


@native(inline=False)
def complete_warp(thread: Thread):
    """Give all lanes for which *thread* waits their results if all that live wait for the same."""
    warp = thread.index >> 5
    mask = thread.mask
    function = thread.function
    kind = thread.operation
    lanes = mask & load_u32(thread.block.live_lanes, u64(warp) * 4)
    first = thread.block.threads[warp * 32]
    rest = lanes
    while rest != 0:  # the last lane first, which most often is not there yet
        lane = 31 - ctlz(rest)
        rest ^= u32(1) << lane
        other = first[lane]
        if other.status != Status.WARP or other.mask != mask:
            return
        if other.function != function or other.operation != kind:
            return
    call_address(function, first, u64(lanes), u64(kind))
    for lane in bits(lanes):
        first[lane].status = Status.READY


# What lanes do: functions that are called with the record of the first lane of the warp


@native
def give_all(first: Thread, lanes: u64, result: u64, second: u64):
    for lane in bits(lanes):
        first[lane].result = result
        first[lane].result_2 = second


@native(inline=False)
def sync(first: Thread, lanes: u64, kind: u64):
    give_all(first, lanes, 0, 0)
    for lane in bits(lanes):
        first[lane].warp_epoch += 1


@native(inline=False)
def elect(first: Thread, lanes: u64, kind: u64):
    leader = cttz(lanes)
    give_all(first, lanes, leader, 0)
    first[leader].result_2 = 1


@native(inline=False)
def shfl(first: Thread, lanes: u64, kind: u64):
    for each in bits(lanes):
        lane = u32(each)
        thread = first[each]
        b = u32(thread.b) & 31
        c = u32(thread.c)
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
        thread.result = first[u64(source)].a
        thread.result_2 = u64(inside) | u64(absent) << 32


@native(inline=False)
def vote(first: Thread, lanes: u64, kind: u64):
    result = u64(0)
    for lane in bits(lanes):
        result |= first[lane].a << lane
    if kind == ALL:
        result = u64(result == lanes)
    elif kind == ANY:
        result = u64(result != 0)
    elif kind == UNI:
        result = u64(result == 0 or result == lanes)
    give_all(first, lanes, result, 0)


@native(inline=False)
def match(first: Thread, lanes: u64, kind: u64):
    """The first kind is for any lane, the second for all."""
    for lane in bits(lanes):
        thread = first[lane]
        same = u64(0)
        for other in bits(lanes):
            is_same = first[other].a == thread.a
            same |= u64(is_same) << other
        thread.result = same if kind == 0 or same == lanes else u64(0)
        thread.result_2 = u64(same == lanes)


@native(inline=False)
def redux(first: Thread, lanes: u64, kind: u64):
    flip = u32(first[cttz(lanes)].b)
    result = u32(0)
    for lane in bits(lanes):
        x = u32(first[lane].a) ^ flip
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
def mbarrier_arrive(thread: Thread, address: u64, count: u32, drop: bool) -> u64:
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
        thread.block.epoch += 1
    store_u64(address, 0, expected | pending << 20 | phase << 63)
    return old


@native(inline=False)
def mbarrier_wait(thread: Thread, address: u64, phase: u64, yields: bool) -> bool:
    """Return whether the *phase* (0 or 1) is over; if not, let others run first where the wait *yields*."""
    if load_u64(address, 0) >> 63 != phase:
        return True
    if yields:
        yield_thread(thread)
    return load_u64(address, 0) >> 63 != phase
