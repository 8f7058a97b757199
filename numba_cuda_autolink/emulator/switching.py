# SPDX-License-Identifier: BSD-2-Clause
"""Stacks of threads: the instructions that leave one stack for another, for x86-64 and AArch64."""

from __future__ import annotations

import platform
import sys

# A switch saves what a called function must keep and loads the other stack's. A new stack begins with a frame of
# FRAME_BYTES, whose slots (byte offsets) hold the address of the start, the function that it calls, and the argument of
# that function.
if platform.machine().lower() in ("x86_64", "amd64") and sys.platform != "win32":
    _SAVED = ("%rbp", "%rbx", "%r12", "%r13", "%r14", "%r15")
    _SWITCH = [f"pushq {register}" for register in _SAVED]
    _SWITCH += ["movq %rsp, (%rdi)", "movq %rsi, %rsp"]
    _SWITCH += [f"popq {register}" for register in reversed(_SAVED)]
    _SWITCH += ["popq %rcx", "jmpq *%rcx"]
    _START = ["movq %r12, %rdi", "callq *%r13", "ud2"]
    FRAME_BYTES, RETURN_SLOT, FUNCTION_SLOT, ARGUMENT_SLOT = 56, 48, 16, 24
elif platform.machine().lower() in ("aarch64", "arm64") and sys.platform != "win32":
    _PAIRS = [f"x{k}, x{k + 1}" for k in range(19, 31, 2)] + [f"d{k}, d{k + 1}" for k in range(8, 16, 2)]
    _SWITCH = ["sub sp, sp, #160", *(f"stp {pair}, [sp, #{16 * k}]" for k, pair in enumerate(_PAIRS))]
    _SWITCH += ["mov x9, sp", "str x9, [x0]", "mov sp, x1"]
    _SWITCH += [*(f"ldp {pair}, [sp, #{16 * k}]" for k, pair in enumerate(_PAIRS)), "add sp, sp, #160", "ret"]
    _START = ["mov x0, x19", "blr x20", "brk #1"]
    FRAME_BYTES, RETURN_SLOT, FUNCTION_SLOT, ARGUMENT_SLOT = 160, 88, 8, 0
else:
    where = f"this is {platform.machine()} with {platform.system()}"
    raise ImportError(f"The emulator runs on x86-64 and AArch64 with Linux or macOS; {where}")


def _define(name: str, lines: list[str]) -> str:
    """Return *lines* as the function *name*, in assembly that LLVM does not look into."""
    return "\n".join(f'module asm "{line}"' for line in (f".globl {name}", f"{name}:", *lines))


# A name that begins with \\01 is the same in the object files of all systems.
SWITCH_IR = f"""
module asm ".text"
{_define("autolink_switch", _SWITCH)}
{_define("autolink_start", _START)}
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
