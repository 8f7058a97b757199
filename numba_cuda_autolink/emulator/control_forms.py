# SPDX-License-Identifier: BSD-2-Clause
"""Branches, calls, returns, and calls of what the host provides."""

from __future__ import annotations

import re

from .forms import Modifiers, form
from .function_builder import FunctionBuilder
from .host_services import HOST_FUNCTIONS
from .parser import Instruction, split_operands
from .state import FIRST_FUNCTION_ADDRESS, Error

_BACK_EDGES_BETWEEN = 31  # those after which a thread yields
_WAITING = ("atom", "red", "nanosleep", "mbarrier")
_ORDERED = re.compile(r"\.(volatile|acquire|relaxed|cv|mmio)")


@form("bra", r"(?:\.uni)?")
def branch(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """A branch back ends the thread after an interrupt or an error of another block. Over an atomic or volatile access,
    it yields now and then, so that what it waits for can happen."""
    target = f.function.labels.get(i.operands[0])
    if target is None:
        raise f.refuse(f"the label {i.operands[0]} is not defined")
    if target <= f.index:
        f.program.loops = True
        failed = f.temporary(f"load volatile i32, ptr {f.field_pointer('launch.failed')}")
        f.call_unless(f.temporary(f"icmp eq i32 {failed}, 0"), "suspend", f.thread)
        loop = [each.opcode for each in f.function.code[target : f.index]]
        yields = any(each.startswith(_WAITING) or (each.startswith("ld") and _ORDERED.search(each)) for each in loop)
        f.program.suspends |= yields
        f.program.spins |= yields
        if yields or f.program.checks.most_back_edges:
            between = _BACK_EDGES_BETWEEN if yields else -1
            f.call("count_back_edge", f.thread, f.program.checks.most_back_edges or -1, between, f.site)
    f.leave(f'br label %"b{target}"')


@form("brx", r"\.idx(?:\.uni)?")
def branch_by_index(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    targets = f.function.branch_targets.get(i.operands[1])
    if targets is None:
        raise f.refuse(f"the list {i.operands[1]} is not declared")
    wrong = f.label()
    cases = " ".join(f'i32 {k}, label %"b{f.function.labels[name]}"' for k, name in enumerate(targets))
    f.emit(f"switch i32 {f.value(i.operands[0], 'u32')}, label %{wrong} [ {cases} ]")
    f.start_block(wrong)
    f.call("fail", f.thread, Error.BAD_CALL, f.site, 0, 0)
    f.leave("unreachable")


@form("ret", r"(?:\.uni)?")
@form("exit", r"")
def leave(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    if m["name"] == "ret" or f.function.is_entry:
        f.leave_function()
        return
    f.program.suspends = True
    f.call("exit_thread", f.thread)
    f.leave("unreachable")


@form("trap", r"")
def trap(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.call("fail", f.thread, Error.TRAP, f.site, 0, 0)
    f.leave("unreachable")


@form("call", r"(?:\.uni)?")
def call(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    operands = list(i.operands)
    results = split_operands(operands.pop(0)[1:-1]) if operands[0].startswith("(") else []
    name = operands.pop(0)
    arguments = split_operands(operands.pop(0)[1:-1]) if operands and operands[0].startswith("(") else []
    if not f.function.local_variables.keys() >= {*arguments, *results}:
        raise f.refuse("an argument is not a parameter that the function declares")
    pointers = {operand: f.pointer_of(operand) for operand in (*arguments, *results)}
    function = f.program.linked.find_function(f.function.text, name)
    if f.register(name) is not None or function is not None:
        target = _indirect_target(f, name) if function is None else f.program.function_symbol(function)
        below = f.field("thread.locals")
        f.push_frame(below, f.site, 0, "0")  # for messages
        f.call_symbol("void", target, "ptr %thread", *(f"ptr {pointers[each]}" for each in (*arguments, *results)))
        f.set_frames(below)
    elif name == "cudaCGSynchronize":
        f.program.suspends = True
        f.call("grid_sync", f.thread, f.site)
        f.emit(f"store i32 0, ptr {pointers[results[0]]}")
    elif name == "cudaCGGetIntrinsicHandle":
        f.emit(f"store i64 1, ptr {pointers[results[0]]}")
    elif name in HOST_FUNCTIONS:
        _call_host(f, name, arguments, results)
    else:
        raise f.refuse(f"nothing that is linked defines the function {name}")


def _indirect_target(f: FunctionBuilder, name: str) -> str:
    """Look the function up whose address is in the register *name*."""
    address = f.value(name, "u64")
    offset = f.temporary(f"sub i64 {address}, {FIRST_FUNCTION_ADDRESS}")
    index = f.intrinsic("umin", "i64", f.temporary(f"lshr i64 {offset}, 4"), str(len(f.program.linked.functions)))
    target = f.temporary(f"load ptr, ptr {f.temporary(f'getelementptr ptr, ptr @functions, i64 {index}')}")
    good = f.temporary(f"icmp ne ptr {target}, null")
    f.call_unless(good, "fail", f.thread, Error.BAD_CALL, f.site, address, 0)
    return target


def _call_host(f: FunctionBuilder, name: str, arguments: list[str], results: list[str]) -> None:
    f.program.suspends = True
    record = f.scratch(8 * len(arguments))
    for k, argument in enumerate(arguments):
        bits = 8 * f.function.local_variables[argument].nbytes
        value = f.temporary(f"load i{bits}, ptr {f.pointer_of(argument)}")
        f.store(record, 8 * k, f.resize(value, bits, 64))
    code = HOST_FUNCTIONS.index(name)
    value = f.call("host_call", f.thread, code, f.temporary(f"ptrtoint ptr {record} to i64"), f.site)
    for result in results:
        bits = 8 * f.function.local_variables[result].nbytes
        f.emit(f"store i{bits} {f.resize(value, 64, bits)}, ptr {f.pointer_of(result)}")
