# SPDX-License-Identifier: BSD-2-Clause
"""Stacks of threads: the instructions that leave one stack for another, for x86-64 and AArch64."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class StackSwitch:
    """How a processor changes its stack: *switch* saves what a called function must keep and loads the other stack's.

    A new stack begins with a frame of *frame_bytes*, whose slots (byte offsets) hold the address of *start*, the
    function that it calls, and the argument of that function.
    """

    switch: str
    start: str
    frame_bytes: int
    return_slot: int
    function_slot: int
    argument_slot: int


_X86 = StackSwitch(
    switch="""pushq %rbp
pushq %rbx
pushq %r12
pushq %r13
pushq %r14
pushq %r15
movq %rsp, (%rdi)
movq %rsi, %rsp
popq %r15
popq %r14
popq %r13
popq %r12
popq %rbx
popq %rbp
popq %rcx
jmpq *%rcx""",
    start="""movq %r12, %rdi
callq *%r13
ud2""",
    frame_bytes=56,
    return_slot=48,
    function_slot=16,
    argument_slot=24,
)
_AARCH64 = StackSwitch(
    switch="""sub sp, sp, #160
stp x19, x20, [sp, #0]
stp x21, x22, [sp, #16]
stp x23, x24, [sp, #32]
stp x25, x26, [sp, #48]
stp x27, x28, [sp, #64]
stp x29, x30, [sp, #80]
stp d8, d9, [sp, #96]
stp d10, d11, [sp, #112]
stp d12, d13, [sp, #128]
stp d14, d15, [sp, #144]
mov x9, sp
str x9, [x0]
mov sp, x1
ldp x19, x20, [sp, #0]
ldp x21, x22, [sp, #16]
ldp x23, x24, [sp, #32]
ldp x25, x26, [sp, #48]
ldp x27, x28, [sp, #64]
ldp x29, x30, [sp, #80]
ldp d8, d9, [sp, #96]
ldp d10, d11, [sp, #112]
ldp d12, d13, [sp, #128]
ldp d14, d15, [sp, #144]
add sp, sp, #160
ret""",
    start="""mov x0, x19
blr x20
brk #1""",
    frame_bytes=160,
    return_slot=88,
    function_slot=8,
    argument_slot=0,
)
_SWITCHES = {"x86_64": _X86, "amd64": _X86, "aarch64": _AARCH64, "arm64": _AARCH64}
if platform.machine().lower() not in _SWITCHES or sys.platform == "win32":
    where = f"this is {platform.machine()} with {platform.system()}"
    raise ImportError(f"The emulator runs on x86-64 and AArch64 with Linux or macOS; {where}")
SWITCH = _SWITCHES[platform.machine().lower()]

FRAME_BYTES, RETURN_SLOT = SWITCH.frame_bytes, SWITCH.return_slot
FUNCTION_SLOT, ARGUMENT_SLOT = SWITCH.function_slot, SWITCH.argument_slot


def _define(name: str, lines: str) -> str:
    """Return *lines* as the function *name*, in assembly that LLVM does not look into."""
    text = f".globl {name}\n{name}:\n{lines}"
    return "\n".join(f'module asm "{line}"' for line in text.splitlines())


# A name that begins with \\01 is the same in the object files of all systems.
SWITCH_IR = f"""
module asm ".text"
{_define("autolink_switch", SWITCH.switch)}
{_define("autolink_start", SWITCH.start)}
declare void @"\\01autolink_switch"(i64, i64)
declare void @"\\01autolink_start"()
define internal void @switch(i64 %save, i64 %to) {{
 call void @"\\01autolink_switch"(i64 %save, i64 %to)
 ret void
}}
define internal i64 @start_address() {{
 %a = ptrtoint ptr @"\\01autolink_start" to i64
 ret i64 %a
}}
"""
