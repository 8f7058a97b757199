# SPDX-License-Identifier: BSD-2-Clause
"""PTX functions as LLVM IR: the order of instructions, predicates, frames.

A function of PTX becomes a function that takes its thread, and a pointer to the bytes of each parameter and result; a
kernel takes the thread alone.
"""

from __future__ import annotations

import contextlib

from . import (  # noqa: F401
    control_forms,
    conversion_forms,
    floats,
    integers,
    matrices,
    memory_forms,
    synchronisation,
)
from .forms import find_form
from .function_builder import FunctionBuilder
from .native import list_texts
from .parser import Instruction
from .program import Program
from .state import FIRST_SHARED_ADDRESS, Error

_STACK_RESERVE = 16384  # for what a function calls besides itself
# What each function loads first
_LOADED = (
    ("block", "ptr", "thread.block"),
    ("shared.first", "i64", "block.shared"),
    ("caches", "i64", "block.caches"),
    ("launch", "ptr", "block.launch"),
    ("shared.bytes", "i64", "block.shared_bytes"),
    ("parameters", "ptr", "launch.parameters"),
    ("variables", "ptr", "launch.variables"),
)


class FunctionLowering(FunctionBuilder):
    """Lowers one function."""

    def lower(self) -> str:
        """Return the text of the function."""
        code = self.function.code
        targets = {*self.function.labels.values(), len(code)}
        self.emit("%thread.address = ptrtoint ptr %thread to i64")
        for name, type, field in _LOADED:
            self.emit(f"%{name} = load {type}, ptr {self.field_pointer(field)}")
        self.emit(f"%shared = sub i64 %shared.first, {FIRST_SHARED_ADDRESS}")
        if self.program.may_recurse and not self.function.is_entry:
            here = self.temporary(f"ptrtoint ptr {self.call_intrinsic('frameaddress.p0', 'ptr', 'i32 0')} to i64")
            left = self.temporary(f"sub i64 {here}, {self.field('thread.stack')}")
            fits = self.temporary(f"icmp uge i64 {left}, {_STACK_RESERVE + self.program.frame_bytes}")
            self.call_unless(fits, "fail", self.thread, Error.STACK_OVERFLOW, self.site, 0, 0)
        if self.frame_variables:
            self.push_frames()
        for k, instruction in enumerate(code):
            self.instruction, self.index, self.site = instruction, k, str(instruction.number)
            if k in targets:
                self.go_to(f"b{k}")
            self.lower_instruction(instruction)
        self.go_to(f"b{len(code)}")
        self.leave_function()
        self.emit("unreachable")
        linkage, name = "" if self.function.is_entry else "internal ", self.program.function_symbol(self.function)
        signature = ", ".join(["ptr %thread", *(f"ptr {pointer}" for pointer in self.passed.values())])
        head = f"define {linkage}void {name}({signature}) nounwind {{\nentry:"
        return "\n".join([head, *self.slots.values(), *self.lines, "}\n"])

    def lower_instruction(self, instruction: Instruction) -> None:
        found = find_form(instruction.opcode)
        if found is None:
            raise self.refuse()
        handler, modifiers = found
        predicate = instruction.predicate
        with self.when(self.value(predicate, "pred")) if predicate else contextlib.nullcontext():
            handler(self, instruction, modifiers)

    def push_frames(self) -> None:
        """Make the function's local memory known to the checks."""
        newest = self.frames_below = self.field("thread.locals")
        for name, variable in self.frame_variables.items():
            nbytes, shadow = variable.nbytes, "0"
            if self.program.checks.initialised and variable.space == "local":
                pointer = self.scratch(nbytes)
                self.call_intrinsic("memset.p0.i64", "void", f"ptr {pointer}", "i8 0", f"i64 {nbytes}", "i1 false")
                shadow = self.temporary(f"ptrtoint ptr {pointer} to i64")
            address = self.temporary(f"ptrtoint ptr {self.pointer_of(name)} to i64")
            newest = self.push_frame(newest, address, nbytes, shadow)


def lower_program(program: Program) -> str:
    """Return the text of the kernel of *program* as a module of LLVM."""
    functions = [FunctionLowering(program, function).lower() for function in program.functions]
    table = [
        f"ptr {program.function_symbol(f)}" if f in program.functions and not f.is_entry else "ptr null"
        for f in program.linked.functions
    ]
    table.append("ptr null")  # for what is no address of a function
    texts, declarations = list_texts(sorted(program.natives))
    facts = map(int, (program.suspends, program.loops, program.spins, len(program.slots)))
    head = [
        f"@functions = internal constant [{len(table)} x ptr] [{', '.join(table)}]",
        f"@facts = constant [4 x i32] [{', '.join(f'i32 {fact}' for fact in facts)}]",
        *sorted(declarations | program.declarations),
    ]
    return "\n".join(
        [*head, *texts, *program.helpers.values(), *functions, '!0 = !{!"branch_weights", i32 1000, i32 1}', ""]
    )
