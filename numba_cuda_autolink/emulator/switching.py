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


_SAVED_X86 = ("%rbp", "%rbx", "%r12", "%r13", "%r14", "%r15")
_X86 = StackSwitch(
    switch="\n".join(
        [
            *(f"pushq {register}" for register in _SAVED_X86),
            "movq %rsp, (%rdi)",
            "movq %rsi, %rsp",
            *(f"popq {register}" for register in reversed(_SAVED_X86)),
            "popq %rcx",
            "jmpq *%rcx",
        ]
    ),
    start="""movq %r12, %rdi
callq *%r13
ud2""",
    frame_bytes=56,
    return_slot=48,
    function_slot=16,
    argument_slot=24,
)
_SAVED_AARCH64 = [f"x{k}, x{k + 1}" for k in range(19, 31, 2)] + [f"d{k}, d{k + 1}" for k in range(8, 16, 2)]
_AARCH64 = StackSwitch(
    switch="\n".join(
        [
            "sub sp, sp, #160",
            *(f"stp {pair}, [sp, #{16 * k}]" for k, pair in enumerate(_SAVED_AARCH64)),
            "mov x9, sp",
            "str x9, [x0]",
            "mov sp, x1",
            *(f"ldp {pair}, [sp, #{16 * k}]" for k, pair in enumerate(_SAVED_AARCH64)),
            "add sp, sp, #160",
            "ret",
        ]
    ),
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
