# SPDX-License-Identifier: BSD-2-Clause
"""Barriers, also those in shared memory, fences, and what the lanes of a warp do together."""

from __future__ import annotations

from . import warp  # noqa: F401
from .forms import Modifiers, form
from .function_builder import FunctionBuilder
from .parser import Instruction
from .pointers import checked_pointer
from .state import Operation, Thread


@form("bar", r"(?:\.cta)?\.(?P<kind>sync|arrive)")
@form("barrier", r"(?:\.cta)?\.(?P<kind>sync|arrive)(?P<aligned>\.aligned)?")
def barrier(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    _arrive(f, m, [*i.operands], "false", str(m["kind"] == "sync").lower())


def _arrive(f: FunctionBuilder, m: Modifiers, barrier: list[str], predicate: str, waits: str) -> None:
    """Arrive at a *barrier*: its number, and how many threads take part if it is not the whole block."""
    f.program.suspends = True
    number, count = (f.value(operand, "u32") for operand in [*barrier, "0"][:2])
    aligned = str(m["name"] == "bar" or m.get("aligned") is not None).lower()
    f.call("arrive_at_barrier", f.thread, number, count, predicate, waits, aligned, f.site)


@form("bar", r"(?:\.cta)?\.red\.(?P<kind>popc|and|or)\.(?P<type>u32|pred)")
@form("barrier", r"(?:\.cta)?\.red\.(?P<kind>popc|and|or)(?P<aligned>\.aligned)?\.(?P<type>u32|pred)")
def reduce_at_barrier(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    _arrive(f, m, [*i.operands[1:-1]], f.value(i.operands[-1], "pred"), "true")
    ones, arrived = f.load("%thread", Thread.RESULT), f.load("%thread", Thread.RESULT_2)
    if m["kind"] == "popc":
        f.assign(i.operands[0], "u32", f.temporary(f"trunc i64 {ones} to i32"))
    else:
        test = f"icmp eq i64 {ones}, {arrived}" if m["kind"] == "and" else f"icmp ne i64 {ones}, 0"
        f.assign(i.operands[0], "pred", f.temporary(test))


@form("barrier", r"\.cluster\.(?P<kind>arrive|wait)(?:\.(?:release|relaxed|acquire))?(?:\.aligned)?")
def cluster_barrier(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """A cluster is one block."""
    if m["kind"] == "wait":
        f.program.suspends = True
        f.call("arrive_at_barrier", f.thread, "15", "0", "false", "true", "false", f.site)


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


def warp_operation(f: FunctionBuilder, operation: int, mask: str, *operands: str) -> tuple[str, str]:
    """Let the lanes of *mask* meet; return both results (i64)."""
    f.program.suspends = True
    values = [*operands, "0", "0", "0"][:3]
    f.call("warp_operation", f.thread, str(operation), mask, *values, f.site)
    return f.load("%thread", Thread.RESULT), f.load("%thread", Thread.RESULT_2)


def _operation(*words: str | None) -> int:
    """Return the operation that these *words* of an instruction name."""
    return int(getattr(Operation, "_".join(word or "" for word in words).upper()))


@form("bar", r"\.warp\.sync")
def warp_barrier(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    warp_operation(f, Operation.SYNC, f.value(i.operands[0], "u32"))


@form("shfl", r"\.sync\.(?P<mode>up|down|bfly|idx)\.b32")
def shuffle(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    a, b, c, mask = (f.value(operand, "u32") for operand in i.operands[1:])
    value, inside = warp_operation(f, _operation("shfl", m["mode"]), mask, *(f.resize(v, 32, 64) for v in (a, b, c)))
    _assign_pair(f, i, f.resize(value, 64, 32), inside)


def _assign_pair(f: FunctionBuilder, i: Instruction, value: str, flag: str) -> None:
    """Assign ``value|predicate``."""
    targets = [t.strip() for t in i.operands[0].split("|")]
    f.assign(targets[0], "b32", value)
    if len(targets) > 1:
        f.assign(targets[1], "pred", f.temporary(f"trunc i64 {flag} to i1"))


@form("vote", r"\.sync\.(?P<mode>all|any|uni)\.pred")
@form("vote", r"\.sync\.(?P<mode>ballot)\.b32")
def vote(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    predicate = f.resize(f.value(i.operands[1], "pred"), 1, 64)
    value, _ = warp_operation(f, _operation("vote", m["mode"]), f.value(i.operands[2], "u32"), predicate)
    if m["mode"] == "ballot":
        f.assign(i.operands[0], "b32", f.resize(value, 64, 32))
    else:
        f.assign(i.operands[0], "pred", f.resize(value, 64, 1))


@form("match", r"\.(?P<mode>any|all)\.sync\.b(?P<bits>32|64)")
def match(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    bits = int(m["bits"] or 0)
    value = f.resize(f.value(i.operands[1], f"b{bits}"), bits, 64)
    result, same = warp_operation(f, _operation("match", m["mode"]), f.value(i.operands[2], "u32"), value)
    _assign_pair(f, i, f.resize(result, 64, 32), same)


@form("redux", r"\.sync\.(?P<mode>add|min|max)\.(?P<type>[us]32)")
@form("redux", r"\.sync\.(?P<mode>and|or|xor)\.(?P<type>b32)")
def reduce(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    value, mask = f.resize(f.value(i.operands[1], "u32"), 32, 64), f.value(i.operands[2], "u32")
    value, _ = warp_operation(f, _operation(m["mode"], m["type"]), mask, value)
    f.assign(i.operands[0], "u32", f.resize(value, 64, 32))


@form("elect", r"\.sync")
def elect(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    leader, chosen = warp_operation(f, Operation.ELECT, f.value(i.operands[1], "u32"))
    _assign_pair(f, i, f.resize(leader, 64, 32), chosen)


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
    drop = str(m["kind"] == "arrive_drop").lower()
    state = f.call("mbarrier_arrive", f.thread, _address(f, i.operands[1], m), count, drop)
    f.assign(i.operands[0], "b64", state)


@form("mbarrier", rf"\.(?P<kind>test_wait|try_wait)(?P<parity>\.parity)?{_WAIT_ORDER}{_SHARED}\.b64")
def wait(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.program.suspends = True
    if m["parity"]:
        phase = f.resize(f.value(i.operands[2], "u32"), 32, 64)
    else:
        phase = f.temporary(f"lshr i64 {f.value(i.operands[2], 'b64')}, 63")
    yields = str(m["kind"] == "try_wait").lower()
    f.assign(i.operands[0], "pred", f.call("mbarrier_wait", f.thread, _address(f, i.operands[1], m), phase, yields))


@form("mbarrier", r"\.pending_count\.b64")
def pending_count(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    count = f.temporary(f"lshr i64 {f.value(i.operands[1], 'b64')}, 20")
    f.assign(i.operands[0], "u32", f.temporary(f"and i32 {f.resize(count, 64, 32)}, {0xFFFFF}"))


@form("cp", rf"\.async\.mbarrier\.arrive(?P<no_increment>\.noinc)?{_SHARED}\.b64")
def arrive_after_copies(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """Copies happened at once: without ``.noinc`` the arrival makes up for one more that is expected."""
    address = _address(f, i.operands[0], m)
    if m["no_increment"]:
        f.call("mbarrier_arrive", f.thread, address, "1", "false")
