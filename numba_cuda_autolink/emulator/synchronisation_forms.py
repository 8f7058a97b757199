# SPDX-License-Identifier: BSD-2-Clause
"""Barriers, fences, and what the lanes of a warp do together."""

from __future__ import annotations

from . import warp  # noqa: F401
from .forms import Modifiers, form
from .function_builder import FunctionBuilder
from .parser import Instruction
from .state import Operation, Thread


@form("bar", r"(?:\.cta)?\.(?P<kind>sync|arrive)")
@form("barrier", r"(?:\.cta)?\.(?P<kind>sync|arrive)(?P<aligned>\.aligned)?")
def barrier(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    _arrive(f, m, [*i.operands], "false", str(m["kind"] == "sync").lower())


def _arrive(f: FunctionBuilder, m: Modifiers, barrier: list[str], predicate: str, waits: str) -> None:
    """Arrive at a *barrier*: its number, and how many threads take part if it is not the whole block."""
    f.mark_waiting()
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
        f.mark_waiting()
        f.call("arrive_at_barrier", f.thread, "15", "0", "false", "true", "false", f.site)


@form("membar", r"\.(?:cta|gl|sys)")
@form("fence", r"(?:\.(?:sc|acq_rel|acquire|release))?\.(?:cta|cluster|gpu|sys)")
@form("fence", r"\.proxy\.(?:alias|async(?:\.(?:global|shared::cta|shared::cluster))?)")
@form("fence", r"\.mbarrier_init\.release\.cluster")
def fence(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.emit("fence seq_cst")


@form("nanosleep", r"\.u32")
def sleep(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.mark_waiting()
    f.call("yield_thread", f.thread)


def warp_operation(f: FunctionBuilder, operation: int, mask: str, *operands: str) -> tuple[str, str]:
    """Let the lanes of *mask* meet; return both results (i64)."""
    f.mark_waiting()
    values = [*operands, "0", "0", "0"][:3]
    f.call("warp_operation", f.thread, str(operation), mask, *values, f.site)
    return f.load("%thread", Thread.RESULT), f.load("%thread", Thread.RESULT_2)


def _widen(f: FunctionBuilder, value: str, bits: int = 32) -> str:
    return f.resize(value, bits, 64, signed=False)


def _narrow(f: FunctionBuilder, value: str, bits: int = 32) -> str:
    return f.temporary(f"trunc i64 {value} to i{bits}")


@form("bar", r"\.warp\.sync")
def warp_barrier(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    warp_operation(f, Operation.SYNC, f.value(i.operands[0], "u32"))


_SHUFFLES = {
    "up": Operation.SHUFFLE_UP,
    "down": Operation.SHUFFLE_DOWN,
    "bfly": Operation.SHUFFLE_BUTTERFLY,
    "idx": Operation.SHUFFLE_INDEX,
}


@form("shfl", r"\.sync\.(?P<mode>up|down|bfly|idx)\.b32")
def shuffle(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    a, b, c, mask = (f.value(operand, "u32") for operand in i.operands[1:])
    operands = [_widen(f, v) for v in (a, b, c)]
    value, inside = warp_operation(f, _SHUFFLES[m["mode"] or ""], mask, *operands)
    _assign_pair(f, i, _narrow(f, value), inside)


def _assign_pair(f: FunctionBuilder, i: Instruction, value: str, flag: str) -> None:
    """Assign ``value|predicate``."""
    targets = [t.strip() for t in i.operands[0].split("|")]
    f.assign(targets[0], "b32", value)
    if len(targets) > 1:
        f.assign(targets[1], "pred", f.temporary(f"trunc i64 {flag} to i1"))


_VOTES = {
    "all": Operation.VOTE_ALL,
    "any": Operation.VOTE_ANY,
    "uni": Operation.VOTE_UNIFORM,
    "ballot": Operation.BALLOT,
}


@form("vote", r"\.sync\.(?P<mode>all|any|uni)\.pred")
@form("vote", r"\.sync\.(?P<mode>ballot)\.b32")
def vote(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    predicate = f.temporary(f"zext i1 {f.value(i.operands[1], 'pred')} to i64")
    value, _ = warp_operation(f, _VOTES[m["mode"] or ""], f.value(i.operands[2], "u32"), predicate)
    if m["mode"] == "ballot":
        f.assign(i.operands[0], "b32", _narrow(f, value))
    else:
        f.assign(i.operands[0], "pred", _narrow(f, value, 1))


@form("match", r"\.(?P<mode>any|all)\.sync\.b(?P<bits>32|64)")
def match(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    bits = int(m["bits"] or 0)
    value = _widen(f, f.value(i.operands[1], f"b{bits}"), bits)
    operation = Operation.MATCH_ANY if m["mode"] == "any" else Operation.MATCH_ALL
    result, same = warp_operation(f, operation, f.value(i.operands[2], "u32"), value)
    _assign_pair(f, i, _narrow(f, result), same)


_REDUCTIONS = {
    ("add", "s32"): Operation.REDUCE_ADD,
    ("add", "u32"): Operation.REDUCE_ADD,
    ("min", "s32"): Operation.REDUCE_MIN_SIGNED,
    ("max", "s32"): Operation.REDUCE_MAX_SIGNED,
    ("min", "u32"): Operation.REDUCE_MIN,
    ("max", "u32"): Operation.REDUCE_MAX,
    ("and", "b32"): Operation.REDUCE_AND,
    ("or", "b32"): Operation.REDUCE_OR,
    ("xor", "b32"): Operation.REDUCE_XOR,
}


@form("redux", r"\.sync\.(?P<mode>add|min|max)\.(?P<type>[us]32)")
@form("redux", r"\.sync\.(?P<mode>and|or|xor)\.(?P<type>b32)")
def reduce(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    operation = _REDUCTIONS[m["mode"] or "", m["type"] or ""]
    value, _ = warp_operation(f, operation, f.value(i.operands[2], "u32"), _widen(f, f.value(i.operands[1], "u32")))
    f.assign(i.operands[0], "u32", _narrow(f, value))


@form("elect", r"\.sync")
def elect(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    leader, chosen = warp_operation(f, Operation.ELECT, f.value(i.operands[1], "u32"))
    _assign_pair(f, i, _narrow(f, leader), chosen)


@form("activemask", r"\.b32")
def active_mask(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.mark_waiting()
    f.assign(i.operands[0], "b32", f.call("active_mask", f.thread, f.site))
