# SPDX-License-Identifier: BSD-2-Clause
"""PTX functions as LLVM IR: the order of instructions, predicates, frames.

A function of PTX becomes a function that takes its thread, and a pointer to the bytes of each parameter and result; a
kernel takes the thread alone.
"""

from __future__ import annotations

from . import (  # noqa: F401
    atomic_forms,
    control_forms,
    conversion_forms,
    float_forms,
    integer_forms,
    matrix_forms,
    memory_forms,
    synchronisation_forms,
)
from .forms import find_form
from .function_builder import FunctionBuilder
from .native import list_texts
from .parser import Instruction
from .program import Program
from .ptx_types import ptx_type
from .state import Block, Error, Launch, Thread

_STACK_RESERVE = 16384  # for what a function calls besides itself
_ENDS = ("bra", "ret", "exit", "trap", "brx")


class FunctionLowering(FunctionBuilder):
    """Lowers one function."""

    def lower(self) -> str:
        """Return the text of the function."""
        code = self.function.code
        starts = {*self.function.labels.values(), len(code)}
        starts |= {k + 1 for k, instruction in enumerate(code) if instruction.opcode.partition(".")[0] in _ENDS}
        falls_through = True
        if self.frame_variables:
            self.push_frames()
        for k, instruction in enumerate(code):
            self.instruction, self.index = instruction, k
            if k in starts:
                if falls_through:
                    self.emit(f'br label %"b{k}"')
                self.start_block(f"b{k}")
            falls_through = self.lower_instruction(k, instruction)
        if falls_through:
            self.emit(f'br label %"b{len(code)}"')
        self.start_block(f"b{len(code)}")
        self.emit_return()
        return self.assemble()

    def lower_instruction(self, index: int, instruction: Instruction) -> bool:
        """Lower one instruction; return whether control may fall through to the next."""
        found = find_form(instruction.opcode)
        if found is None:
            raise self.refuse()
        handler, modifiers = found
        ends = instruction.opcode.partition(".")[0] in _ENDS
        if not instruction.predicate:
            handler(self, instruction, modifiers)
            return not ends
        predicate = self.value(instruction.predicate, "pred")
        then = self.label()
        after = f"b{index + 1}" if ends else self.label()
        first, second = (after, then) if instruction.negated else (then, after)
        self.emit(f'br i1 {predicate}, label %"{first}", label %"{second}"')
        self.start_block(then)
        handler(self, instruction, modifiers)
        if not ends:
            self.emit(f'br label %"{after}"')
            self.start_block(after)
        return not ends

    def push_frames(self) -> None:
        """Make the function's local memory known to the checks."""
        newest = self.frames_below = self.load("%thread", Thread.LOCALS)
        for variable in self.frame_variables:
            is_parameter = variable in self.frame_parameters
            variables = self.frame_parameters if is_parameter else self.function.local_variables
            nbytes, shadow = variables[variable].nbytes, "0"
            if self.program.checks.initialised and not is_parameter:
                pointer = self.scratch(nbytes)
                self.emit(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {nbytes}, i1 false)")
                self.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
                shadow = self.temporary(f"ptrtoint ptr {pointer} to i64")
            address = self.temporary(f"ptrtoint ptr {self.pointer_of(variable)} to i64")
            newest = self.push_frame(newest, address, nbytes, shadow)

    def stack_check(self) -> list[str]:
        """Return what stops a recursion that would leave the stack."""
        self.declare("declare ptr @llvm.frameaddress.p0(i32)")
        self.program.natives.add("fail")
        error = Error.STACK_OVERFLOW
        return [
            " %here.p = call ptr @llvm.frameaddress.p0(i32 0)",
            " %here = ptrtoint ptr %here.p to i64",
            f" %stack.p = getelementptr i8, ptr %thread, i64 {Thread.STACK}",
            " %stack = load i64, ptr %stack.p",
            " %stack.left = sub i64 %here, %stack",
            f" %stack.full = icmp ult i64 %stack.left, {_STACK_RESERVE + self.program.frame_bytes}",
            ' br i1 %stack.full, label %"stack.overflow", label %"begin"',
            '"stack.overflow":',
            f' call void @"native.fail"(i64 %thread.address, i32 {error}, i32 {self.site}, i64 0, i32 0)',
            " unreachable",
        ]

    def assemble(self) -> str:
        function = self.function
        head = ["entry:"]
        for name in sorted(self.used_registers):
            type = ptx_type(function.registers[name]).integer
            head += [f' %"r.{name}" = alloca {type}', f' store {type} 0, ptr %"r.{name}"']
        for name, pointer in self.local_pointers.items():
            variable = function.local_variables[name]
            head.append(f" {pointer} = alloca [{max(1, variable.nbytes)} x i8], align {max(variable.align, 1)}")
        for name, type, record, offset in (
            ("shared", "i64", "%thread", Thread.SHARED),
            ("caches", "i64", "%thread", Thread.CACHES),
            ("block", "ptr", "%thread", Thread.BLOCK),
            ("launch", "ptr", "%block", Block.LAUNCH),
            ("shared.bytes", "i64", "%block", Block.SHARED_BYTES),
            ("parameters", "ptr", "%launch", Launch.PARAMETERS),
        ):
            head.append(f" %{name}.p = getelementptr i8, ptr {record}, i64 {offset}")
            head.append(f" %{name} = load {type}, ptr %{name}.p")
        head.append(" %thread.address = ptrtoint ptr %thread to i64")
        head += self.entry
        if self.program.may_recurse and not function.is_entry:
            head += self.stack_check()
        else:
            head.append(' br label %"begin"')
        signature = ", ".join(["ptr %thread", *(f"ptr {pointer}" for pointer in self.passed.values())])
        name = self.program.function_symbol(function)
        linkage = "" if function.is_entry else "internal "
        lines = [f"define {linkage}void {name}({signature}) nounwind {{", *head, '"begin":', *self.lines, "}"]
        return "\n".join(lines) + "\n"


def lower_program(program: Program) -> str:
    """Return the text of the kernel of *program* as a module of LLVM."""
    functions = [FunctionLowering(program, function).lower() for function in program.functions]
    table = ", ".join(
        f"ptr {program.function_symbol(f)}" if f in program.functions and not f.is_entry else "ptr null"
        for f in program.linked.functions
    )
    texts, declarations = list_texts(sorted(program.natives), runtime=False)
    count = len(program.linked.functions)
    head = [f"@functions = internal constant [{count} x ptr] [{table}]", *sorted(declarations | program.declarations)]
    return "\n".join(
        [*head, *texts, *program.helpers.values(), *functions, '!0 = !{!"branch_weights", i32 1000, i32 1}', ""]
    )
