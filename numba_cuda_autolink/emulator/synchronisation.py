# SPDX-License-Identifier: BSD-2-Clause
"""Barriers, also those in shared memory, fences, and what the lanes of a warp do together.

Each lane of a warp operation comes with its operands and waits; the last one computes the results of all.
"""
# ruff: noqa: F821
# mypy: disable-error-code="index, name-defined"

from __future__ import annotations

from .access import checked_pointer
from .forms import Modifiers, computes, form
from .function_builder import FunctionBuilder
from .native import i32, native, u32, u64
from .parser import TYPES, Instruction
from .scheduler import fail, suspend, yield_thread
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
    thread.status = Status.ACTIVE
    suspend(thread)
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


@native()
def give_all(first: Thread, lanes: u64, result: u64, second: u64):
    for lane in bits(lanes):
        first[lane].result = result
        first[lane].result_2 = second


@native(inline=False)
def sync(first: Thread, lanes: u64, kind: u64):
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
    if yields and load_u64(address, 0) >> 63 == phase:
        yield_thread(thread)
    return load_u64(address, 0) >> 63 != phase


@form("bar barrier", r"(?:\.cta)?\.(?P<kind>sync|arrive)(?P<aligned>\.aligned)?")
@form("bar barrier", r"(?:\.cta)?\.red\.(?P<kind>popc|and|or)(?P<aligned>\.aligned)?\.(?P<type>u32|pred)")
def barrier(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """The operands are the barrier's number, and how many threads take part if it is not the whole block; of a
    reduction, they are between its result and a predicate."""
    f.program.suspends = True
    reduces, aligned = bool(m.get("type")), m["name"] == "bar" or bool(m["aligned"])
    predicate = f.value(i.operands[-1], "pred") if reduces else "false"
    operands = i.operands[1:-1] if reduces else i.operands
    number, count = (f.value(operand, "u32") for operand in [*operands, "0"][:2])
    f.call("arrive_at_barrier", f.thread, number, count, predicate, m["kind"] != "arrive", aligned, f.site)
    if reduces:
        ones, arrived = f.field("thread.result"), f.field("thread.result_2")
        test = f"icmp eq i64 {ones}, {arrived}" if m["kind"] == "and" else f"icmp ne i64 {ones}, 0"
        result = f.resize(ones, 64, 32) if m["kind"] == "popc" else f.temporary(test)
        f.assign(i.operands[0], m["type"], result)


@form("barrier", r"\.cluster\.(?P<kind>arrive|wait)(?:\.(?:release|relaxed|acquire))?(?:\.aligned)?")
def cluster_barrier(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """A cluster is one block."""
    if m["kind"] == "wait":
        f.program.suspends = True
        f.call("arrive_at_barrier", f.thread, 15, 0, False, True, False, f.site)


@form("membar", r"\.(?:cta|gl|sys)")
@form("fence", r"(?:\.(?:sc|acq_rel|acquire|release))?\.(?:cta|cluster|gpu|sys)")
@form("fence", r"\.(?:cta|cluster|gpu|sys)\.(?:sc|acq_rel)")  # as CCCL of CUDA 12 writes it
@form("fence", r"\.proxy\.(?:alias|async(?:\.(?:global|shared::cta|shared::cluster))?)")
@form("fence", r"\.mbarrier_init\.release\.cluster")
def fence(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.emit("fence seq_cst")
    f.note_fence()


@form("nanosleep", r"\.u32")
def sleep(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.program.suspends = True
    f.call("yield_thread", f.thread)


def let_lanes_meet(f: FunctionBuilder, function: str, kind: int, mask: str, *operands: str | int) -> tuple[str, str]:
    """Let the lanes of *mask* meet; return both results (i64) of the native *function*."""
    f.program.suspends = True
    f.program.natives.add(function)
    address = f.temporary(f'ptrtoint ptr @"native.{function}" to i64')
    f.call("warp_operation", f.thread, address, kind, mask, *[*operands, 0, 0, 0][:3], f.site)
    return f.field("thread.result"), f.field("thread.result_2")


@form("bar", r"\.warp\.sync")
def warp_barrier(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    let_lanes_meet(f, "sync", 0, f.value(i.operands[0], "u32"))


@form("shfl", r"\.sync\.(?P<mode>up|down|bfly|idx)\.(?P<type>b32)")
@form("vote", r"\.sync\.(?P<mode>all|any|uni)\.(?P<type>pred)")
@form("vote", r"\.sync\.(?P<mode>ballot)\.(?P<type>b32)")
@form("match", r"\.(?P<mode>any|all)\.sync\.(?P<type>b32|b64)")
@form("redux", r"\.sync\.(?P<mode>add|min|max)\.(?P<type>u32|s32)")
@form("redux", r"\.sync\.(?P<mode>and|or|xor)\.(?P<type>b32)")
@form("elect", r"\.(?P<mode>sync)(?P<type>)")
def together(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """The last operand is the mask; a predicate may follow the result."""
    name, mode, type = m["name"], m["mode"], m["type"]
    given = TYPES["pred" if name == "vote" else type or "u32"]
    *operands, mask = i.operands[1:]
    values: list[str | int] = [f.resize(f.value(operand, given), given.bits, 64) for operand in operands]
    kind = KINDS[name].index(mode) if name in KINDS else 0
    if name == "redux":
        kind, flipped = REDUCTIONS[f"{mode}.{type}"]
        values.append(flipped)
    results = let_lanes_meet(f, name, kind, f.value(mask, "u32"), *values)
    types = TYPES["pred" if type == "pred" else "b32"], TYPES["pred"]
    for target, each, result in zip(i.operands[0].split("|"), types, results, strict=False):
        f.assign(target.strip(), each, f.resize(result, 64, each.bits))


@form("activemask", r"\.b32")
def mask_of_active_lanes(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.program.suspends = True
    f.assign(i.operands[0], "b32", f.call("active_mask", f.thread, f.site))


# Barriers in shared memory

_SHARED = r"(?P<space>\.shared(?:::cta)?)?"
_WAIT_ORDER = r"(?:\.(?:release|acquire|relaxed))?(?:\.(?:cta|cluster))?"


def _address(f: FunctionBuilder, operand: str, m: Modifiers) -> str:
    space = "shared" if m["space"] else "generic"
    pointer = checked_pointer(f, operand, space, 8, reads=True, writes=True, atomic=True)
    return f.temporary(f"ptrtoint ptr {pointer} to i64")


@form("mbarrier", rf"\.(?P<kind>init|inval){_SHARED}\.b64")
def initialise(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    count = f.value(i.operands[1], "u32") if m["kind"] == "init" else "0"
    pointer = checked_pointer(f, i.operands[0], "shared" if m["space"] else "generic", 8, reads=False, writes=True)
    f.emit(f"store i64 {f.temporary(f'mul i64 {f.resize(count, 32, 64)}, {1 << 20 | 1}')}, ptr {pointer}")


@form("mbarrier", rf"\.(?P<kind>arrive|arrive_drop)(?:\.noComplete)?{_WAIT_ORDER}{_SHARED}\.b64")
def arrive(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    count = f.value(i.operands[2], "u32") if len(i.operands) > 2 else "1"
    drops = m["kind"] == "arrive_drop"
    state = f.call("mbarrier_arrive", f.thread, _address(f, i.operands[1], m), count, drops)
    f.assign(i.operands[0], "b64", state)


@form("mbarrier", rf"\.(?P<kind>test_wait|try_wait)(?P<parity>\.parity)?{_WAIT_ORDER}{_SHARED}\.b64")
def wait(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.program.suspends = True
    if m["parity"]:
        phase = f.resize(f.value(i.operands[2], "u32"), 32, 64)
    else:
        phase = f.temporary(f"lshr i64 {f.value(i.operands[2], 'b64')}, 63")
    yields = m["kind"] == "try_wait"
    f.assign(i.operands[0], "pred", f.call("mbarrier_wait", f.thread, _address(f, i.operands[1], m), phase, yields))


@form("mbarrier", r"\.pending_count\.b64")
@computes("u32", "b64")
def pending_count(f: FunctionBuilder, m: Modifiers, state: str) -> str:
    count = f.temporary(f"lshr i64 {state}, 20")
    return f.temporary(f"and i32 {f.resize(count, 64, 32)}, {0xFFFFF}")


@form("cp", rf"\.async\.mbarrier\.arrive(?P<no_increment>\.noinc)?{_SHARED}\.b64")
def arrive_after_copies(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """Copies happened at once: without ``.noinc`` the arrival makes up for one more that is expected."""
    address = _address(f, i.operands[0], m)
    if m["no_increment"]:
        f.call("mbarrier_arrive", f.thread, address, 1, False)
