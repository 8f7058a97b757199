# SPDX-License-Identifier: BSD-2-Clause
"""Barriers, also those in shared memory, fences, and what the lanes of a warp do together."""

from __future__ import annotations

from .forms import Modifiers, computes, form
from .function_builder import FunctionBuilder
from .parser import Instruction
from .pointers import checked_pointer
from .ptx_types import ptx_type
from .warp import KINDS, REDUCTIONS


@form("bar", r"(?:\.cta)?\.(?P<kind>sync|arrive)")
@form("barrier", r"(?:\.cta)?\.(?P<kind>sync|arrive)(?P<aligned>\.aligned)?")
@form("bar", r"(?:\.cta)?\.red\.(?P<kind>popc|and|or)\.(?P<type>u32|pred)")
@form("barrier", r"(?:\.cta)?\.red\.(?P<kind>popc|and|or)(?P<aligned>\.aligned)?\.(?P<type>u32|pred)")
def barrier(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """The operands are the barrier's number, and how many threads take part if it is not the whole block; of a
    reduction, they are between its result and a predicate."""
    f.program.suspends = True
    reduces, aligned = bool(m.get("type")), m["name"] == "bar" or bool(m.get("aligned"))
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
@form("fence", r"\.proxy\.(?:alias|async(?:\.(?:global|shared::cta|shared::cluster))?)")
@form("fence", r"\.mbarrier_init\.release\.cluster")
def fence(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.emit("fence seq_cst")
    f.note_fence()


@form("nanosleep", r"\.u32")
def sleep(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.program.suspends = True
    f.call("yield_thread", f.thread)


def warp_operation(f: FunctionBuilder, function: str, kind: int, mask: str, *operands: str | int) -> tuple[str, str]:
    """Let the lanes of *mask* meet; return both results (i64) of the native *function*."""
    f.program.suspends = True
    f.program.natives.add(function)
    address = f.temporary(f'ptrtoint ptr @"native.{function}" to i64')
    f.call("warp_operation", f.thread, address, kind, mask, *[*operands, 0, 0, 0][:3], f.site)
    return f.field("thread.result"), f.field("thread.result_2")


@form("bar", r"\.warp\.sync")
def warp_barrier(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    warp_operation(f, "sync", 0, f.value(i.operands[0], "u32"))


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
    given = ptx_type("pred" if name == "vote" else type or "u32")
    *operands, mask = i.operands[1:]
    values: list[str | int] = [f.resize(f.value(operand, given), given.bits, 64) for operand in operands]
    kind = KINDS[name].index(mode) if name in KINDS else 0
    if name == "redux":
        kind, flipped = REDUCTIONS[f"{mode}.{type}"]
        values.append(flipped)
    results = warp_operation(f, name, kind, f.value(mask, "u32"), *values)
    types = ptx_type("pred" if type == "pred" else "b32"), ptx_type("pred")
    for target, each, result in zip(i.operands[0].split("|"), types, results, strict=False):
        f.assign(target.strip(), each, f.resize(result, 64, each.bits))


@form("activemask", r"\.b32")
def active_mask(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.program.suspends = True
    f.assign(i.operands[0], "b32", f.call("active_mask", f.thread, f.site))


# Barriers in shared memory

_SHARED = r"(?P<space>\.shared(?:::cta)?)?"
_WAIT_ORDER = r"(?:\.(?:release|acquire|relaxed))?(?:\.(?:cta|cluster))?"


def _address(f: FunctionBuilder, operand: str, m: Modifiers, *, atomic: bool = True) -> str:
    space = "shared" if m["space"] else "generic"
    pointer = checked_pointer(f, operand, space, 8, writes=True, atomic=atomic)
    return f.temporary(f"ptrtoint ptr {pointer} to i64")


@form("mbarrier", rf"\.(?P<kind>init|inval){_SHARED}\.b64")
def initialise(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    count = f.value(i.operands[1], "u32") if m["kind"] == "init" else "0"
    f.call("mbarrier_init", _address(f, i.operands[0], m, atomic=False), count)


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
