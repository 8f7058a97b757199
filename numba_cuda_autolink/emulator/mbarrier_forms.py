# SPDX-License-Identifier: BSD-2-Clause
"""Barriers in shared memory."""

from __future__ import annotations

from . import mbarriers  # noqa: F401
from .forms import Modifiers, form
from .function_builder import FunctionBuilder
from .parser import Instruction
from .pointers import checked_pointer

_SPACE = r"(?P<space>\.shared(?:::cta)?)?"
_ORDER = r"(?:\.(?:release|acquire|relaxed))?(?:\.(?:cta|cluster))?"


def _address(f: FunctionBuilder, operand: str, m: Modifiers) -> str:
    space = "shared" if m["space"] else "generic"
    pointer = checked_pointer(f, operand, space, 8, writes=True, atomic=True)
    return f.temporary(f"ptrtoint ptr {pointer} to i64")


@form("mbarrier", rf"\.init{_SPACE}\.b64")
def initialise(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    space = "shared" if m["space"] else "generic"
    pointer = checked_pointer(f, i.operands[0], space, 8, writes=True, atomic=False)
    f.call("mbarrier_init", f.temporary(f"ptrtoint ptr {pointer} to i64"), f.value(i.operands[1], "u32"))


@form("mbarrier", rf"\.inval{_SPACE}\.b64")
def invalidate(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.call("mbarrier_init", _address(f, i.operands[0], m), "0")


@form("mbarrier", rf"\.(?P<kind>arrive|arrive_drop)(?:\.noComplete)?{_ORDER}{_SPACE}\.b64")
def arrive(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    count = f.value(i.operands[2], "u32") if len(i.operands) > 2 else "1"
    drop = str(m["kind"] == "arrive_drop").lower()
    state = f.call("mbarrier_arrive", f.thread, _address(f, i.operands[1], m), count, drop)
    f.assign(i.operands[0], "b64", state)


@form("mbarrier", rf"\.(?P<kind>test_wait|try_wait)(?P<parity>\.parity)?{_ORDER}{_SPACE}\.b64")
def wait(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.mark_waiting()
    if m["parity"]:
        phase = f.resize(f.value(i.operands[2], "u32"), 32, 64, signed=False)
    else:
        phase = f.temporary(f"lshr i64 {f.value(i.operands[2], 'b64')}, 63")
    yields = str(m["kind"] == "try_wait").lower()
    f.assign(i.operands[0], "pred", f.call("mbarrier_wait", f.thread, _address(f, i.operands[1], m), phase, yields))


@form("mbarrier", r"\.pending_count\.b64")
def pending_count(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.assign(i.operands[0], "u32", f.call("mbarrier_pending", f.value(i.operands[1], "b64")))


@form("cp", rf"\.async\.mbarrier\.arrive(?P<no_increment>\.noinc)?{_SPACE}\.b64")
def arrive_after_copies(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """Copies happened at once: without ``.noinc`` the arrival makes up for one more that is expected."""
    address = _address(f, i.operands[0], m)
    if m["no_increment"]:
        f.call("mbarrier_arrive", f.thread, address, "1", "false")
