# SPDX-License-Identifier: BSD-2-Clause
"""LLVM IR of a function in the making, and the operands of PTX: registers, constants, symbols and addresses.

Registers are integers in stack slots, which LLVM turns into values.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from ..source_locations import with_lines
from .diagnosis import source_lines
from .errors import UnsupportedInstruction
from .ir_text import IRText
from .native import LLVM, Record, compile_native
from .parser import TYPES, Function, Instruction, PTXType, parse_constant, split_operands
from .program import Program
from .state import Block, Frame, Launch, Thread

_ADDRESS = re.compile(r"\[\s*([\w%$@.]+|-?\d+)\s*(?:\+\s*(-?(?:0[xX])?[\da-fA-F]+))?\s*\]")
_REGISTER = re.compile(r"%[\w$]+")
_RECORDS: dict[str, type[Record]] = {"thread": Thread, "block": Block, "launch": Launch}


class Value(str):
    """The name of a value, of a *type*."""

    type: PTXType


class FunctionBuilder(IRText):
    """The text of one function as it grows: instructions of LLVM, and operands of PTX as values."""

    thread = "%thread.address"  # of its record

    def __init__(self, program: Program, function: Function):
        super().__init__()
        self.program, self.function = program, function
        self.declarations = program.declarations
        self.instruction: Instruction = function.code[0]
        self.index, self.site = 0, str(self.instruction.number)  # by which messages find the instruction
        local = {n: v for n, v in function.local_variables.items() if v.space == "local" and v.nbytes}
        taken = any(i.opcode.startswith("cvta.local") for i in function.code)
        self.frame_variables = local if taken or len(local) > 1 or program.checks.initialised else {}
        # The caller makes a parameter's memory, which is local memory where the function takes its address.
        moved = {operand for i in function.code if i.opcode.startswith("mov") for operand in i.operands}
        parameters = {v.name: v for v in function.parameters if v.name in moved and not function.is_entry}
        self.frame_variables = self.frame_variables | parameters
        passed = () if function.is_entry else (*function.parameters, *function.results)
        self.passed = {variable.name: f'%"p.{variable.name}"' for variable in passed}
        self.frames_below = ""
        self.local_variable = next(iter(local), None)

    @functools.cached_property
    def copied(self) -> dict[str, str]:
        """The registers that one load writes and only stores read, or nothing if others come with them, and the sites
        of the loads."""
        loads: dict[str, str] = {}
        stored: set[str] = set()
        used: set[str] = set()
        for each in self.function.code:
            name, operands = each.opcode.partition(".")[0], list(each.operands)
            if name in ("ld", "ldu"):
                targets = split_operands(operands.pop(0).strip("{}"))
                used.update(loads.keys() & targets)
                loads.update(dict.fromkeys(targets, str(each.number)))
                stored.update(targets if len(targets) > 1 else ())
            elif name == "st" and not each.opcode.startswith("st.param"):
                stored.update(_REGISTER.findall(operands.pop(1)))
            used.update(_REGISTER.findall(" ".join((each.predicate, *operands))))
        return {register: site for register, site in loads.items() if register in stored - used}

    @functools.cached_property
    def compared(self) -> set[str]:
        """The registers that compare-and-swap compares, by way of others too: it fails if a value is out of date."""
        moves: dict[str, list[str]] = {}
        for each in self.function.code:
            if each.opcode.startswith("mov"):
                moves.setdefault(each.operands[0], []).append(each.operands[1])
        found, pending = set(), [each.operands[2] for each in self.function.code if ".cas." in each.opcode]
        while pending:
            found.add(register := pending.pop())
            pending += (source for source in moves.get(register, ()) if source not in found)
        return found

    def leave_function(self) -> None:
        if self.frame_variables:
            self.set_frames(self.frames_below)
        self.leave("ret void")

    def call(self, name: str, *arguments: str | int) -> str:
        """Call the native function *name*; return its result."""
        compiled = compile_native(name)
        self.program.natives.add(name)
        values = (int(each) if isinstance(each, int) else each for each in arguments)
        typed = (f"{LLVM[type]} {value}" for type, value in zip(compiled.parameters, values, strict=True))
        return self.call_symbol(LLVM[compiled.returns], f'@"native.{name}"', *typed)

    def call_unless(self, good: str, name: str, *arguments: str | int) -> None:
        """Call the native function *name* in the rare case that *good* does not hold."""
        with self.when(good, fails=True):
            self.call(name, *arguments)

    def refuse(self, why: str = "the emulator does not have this form") -> UnsupportedInstruction:
        instruction, text = self.instruction, self.program.linked.texts[self.function.text]
        lines = source_lines(text, instruction.location)
        message = f"The emulator cannot run `{instruction.text}`: {why}\n  in: {self.function.name}"
        return UnsupportedInstruction(with_lines(message, lines), kernel=self.program.kernel.name, lines=lines)

    def field_pointer(self, name: str, part: int = 0) -> str:
        """Return a pointer to the field *name* (``thread.tid``), or to the *part* of it of 4 bytes."""
        record, _, field = name.partition(".")
        offset = getattr(_RECORDS[record], field).offset + 4 * part
        return self.temporary(f"getelementptr i8, ptr %{record}, i64 {offset}")

    def field(self, name: str) -> str:
        record, _, field = name.partition(".")
        bits = 8 * getattr(_RECORDS[record], field).size
        return self.temporary(f"load i{bits}, ptr {self.field_pointer(name)}")

    def load(self, record: str, offset: int | str, llvm: str = "i64") -> str:
        """Return what the *record* (a pointer) holds at the byte *offset*."""
        pointer = self.temporary(f"getelementptr i8, ptr {record}, i64 {offset}")
        return self.temporary(f"load {llvm}, ptr {pointer}")

    def store(self, record: str, offset: int, value: str, llvm: str = "i64") -> None:
        pointer = self.temporary(f"getelementptr i8, ptr {record}, i64 {offset}")
        self.emit(f"store {llvm} {value}, ptr {pointer}")

    def note_fence(self) -> None:
        """Tell the check of races that what the thread did before is done for those that have seen it."""
        if self.program.checks.races:
            self.call("note_fence", self.thread)

    def scratch(self, nbytes: int) -> str:
        """Return a pointer to *nbytes* of the function's stack."""
        self.count += 1
        return self.slot(f"s{self.count}", f"[{nbytes} x i8], align 16")

    def push_frame(self, below: str, address: str, nbytes: int, shadow: str) -> str:
        """Make a record the newest of the thread's frames; return its address."""
        frame = self.scratch(Frame.SIZE)
        for k, value in enumerate((below, address, str(nbytes), shadow)):
            self.store(frame, 8 * k, value)
        newest = self.temporary(f"ptrtoint ptr {frame} to i64")
        self.set_frames(newest)
        return newest

    def set_frames(self, newest: str) -> None:
        self.emit(f"store i64 {newest}, ptr {self.field_pointer('thread.locals')}")

    def join(self, parts: Sequence[str], bits: int) -> str:
        """Return numbers of so many *bits*, the lowest first, as one number."""
        width, result = bits * len(parts), "0"
        for k, part in enumerate(parts):
            shifted = self.temporary(f"shl i{width} {self.resize(part, bits, width)}, {k * bits}")
            result = self.temporary(f"or i{width} {result}, {shifted}")
        return result

    def split(self, value: str, bits: int, count: int) -> list[str]:
        """Return the *count* numbers of so many *bits*, the lowest first, of which *value* consists."""
        width = bits * count
        parts = (self.temporary(f"lshr i{width} {value}, {k * bits}") for k in range(count))
        return [self.resize(part, width, bits) for part in parts]

    # Operands

    def register(self, name: str) -> PTXType | None:
        type = self.function.registers.get(name)
        if type is None:
            return None
        self.slot(f"r.{name}", TYPES[type].integer)
        return TYPES[type]

    def value(self, operand: str, type: PTXType | str) -> Value:
        """Return *operand* as a value of *type*."""
        if isinstance(type, str):
            type = TYPES[type]
        bits = self.bits(operand.lstrip("! "), type)
        if operand.startswith("!"):
            bits = self.temporary(f"xor i1 {bits}, true")
        value = Value(self.bitcast(bits, type.integer, type.llvm))
        value.type = type
        return value

    def bitcast(self, value: str, source: str, target: str) -> str:
        return value if source == target else self.temporary(f"bitcast {source} {value} to {target}")

    def bits(self, operand: str, type: PTXType) -> str:
        """Return *operand* as an integer of the width of *type*."""
        register = self.register(operand)
        if register is not None:
            value = self.temporary(f'load {register.integer}, ptr %"r.{operand}"')
            return self.resize(value, register.bits, type.bits)
        number = parse_constant(operand, type)
        if number is not None:
            return str(number)
        if operand.startswith("%"):
            special = special_register(self, operand)
            if special is None:
                raise self.refuse(f"the emulator does not have the register {operand}")
            return self.resize(special[0], special[1], type.bits)
        return self.resize(self.symbol_address(operand), 64, type.bits)

    def resize(self, value: str, width: int, to: int, *, signed: bool = False) -> str:
        if width == to:
            return value
        operation = "trunc" if width > to else "sext" if signed else "zext"
        return self.temporary(f"{operation} i{width} {value} to i{to}")

    def assign(self, operand: str, type: PTXType | str, value: str) -> None:
        """Store *value* of *type* in the register *operand*; a wider register is extended by the type's sign."""
        if operand == "_":
            return
        if isinstance(type, str):
            type = TYPES[type]
        register = self.register(operand)
        if register is None:
            raise self.refuse(f"{operand} is not a register")
        bits = self.bitcast(value, type.llvm, type.integer)
        bits = self.resize(bits, type.bits, register.bits, signed=type.is_signed)
        self.emit(f'store {register.integer} {bits}, ptr %"r.{operand}"')

    def symbol_address(self, operand: str) -> str:
        """Return the address of a variable, parameter or function as i64; of a shared variable, its shared address."""
        found = re.fullmatch(r"([\w$@]+)\s*(?:\+\s*(-?\w+))?", operand)
        if found is None:
            raise self.refuse(f"{operand} was not understood")
        name, program, function = found[1], self.program, self.function
        text, variable = program.linked.find_variable(function.text, name)
        callee = program.linked.find_function(function.text, name)
        if (pointer := self.pointer_of(name)) is not None:
            address = self.temporary(f"ptrtoint ptr {pointer} to i64")
        elif variable is not None and variable.space == "shared":
            address = str(program.shared[text, name].address)
        elif variable is not None:
            address = self.load("%variables", 8 * program.linked.variable_numbers[text, name])
        elif callee is not None:
            address = str(program.linked.function_address(callee))
        else:
            raise self.refuse(f"{name} is not declared")
        return self.temporary(f"add i64 {address}, {int(found[2] or '0', 0)}")

    def pointer_of(self, name: str) -> str | None:
        """Return a pointer to the bytes of a local variable or a parameter."""
        if (variable := self.function.local_variables.get(name)) is not None:
            return self.slot(f"v.{name}", f"[{max(1, variable.nbytes)} x i8], align {max(variable.align, 1)}")
        if self.function.is_entry and name in self.function.parameter_offsets[0]:
            offset = self.function.parameter_offsets[0][name]
            return self.temporary(f"getelementptr i8, ptr %parameters, i64 {offset}")
        return self.passed.get(name)

    def address(self, operand: str) -> tuple[str, int]:
        """Return base and offset of an address in brackets."""
        found = _ADDRESS.fullmatch(operand)
        if found is None:
            raise self.refuse(f"the address {operand} was not understood")
        return found[1], int(found[2] or "0", 0)


# Special registers: indices and sizes of the grid, lanes, clocks

_FIELDS = {
    f"{name}.{axis}": (field, k)
    for names, field in (
        ("%tid", "thread.tid"),
        ("%ntid", "block.ntid"),
        ("%ctaid %clusterid", "block.ctaid"),
        ("%nctaid %nclusterid", "block.nctaid"),
    )
    for name in names.split()
    for k, axis in enumerate("xyz")
}
_FIELDS |= {"%gridid": ("launch.grid_id", 0), "%dynamic_smem_size": ("launch.dynamic_shared", 0)}
_FIELDS |= dict.fromkeys(("%total_smem_size", "%aggr_smem_size"), ("block.shared_bytes", 0))
_FIELDS |= {"%envreg1": ("launch.workspace", 1), "%envreg2": ("launch.workspace", 0)}  # an address
_CONSTANTS = {"%nsmid": 1, "%smid": 0, "%is_explicit_cluster": 0, "%cluster_ctarank": 0, "%cluster_nctarank": 1}
_CONSTANTS |= {f"%cluster_{name}.{axis}": value for name, value in (("ctaid", 0), ("nctaid", 1)) for axis in "xyz"}
_CLOCKS = ("%clock", "%clock64", "%globaltimer", "%clock_hi", "%globaltimer_lo", "%globaltimer_hi")


def special_register(f: FunctionBuilder, name: str) -> tuple[str, int] | None:
    """Return the value and the width of the register *name*, or None if the emulator does not have it."""
    if name in _FIELDS:
        return f.temporary(f"load i32, ptr {f.field_pointer(*_FIELDS[name])}"), 32
    if name in _CONSTANTS:
        return str(_CONSTANTS[name]), 32
    if name in _CLOCKS:
        value = f.call_intrinsic("readcyclecounter", "i64")
        return f.temporary(f"lshr i64 {value}, {32 if name.endswith('_hi') else 0}"), 64
    if name == "%nwarpid":
        x, y, z = (f.temporary(f"load i32, ptr {f.field_pointer('block.ntid', k)}") for k in range(3))
        threads = f.temporary(f"mul i32 {x}, {f.temporary(f'mul i32 {y}, {z}')}")
        return f.temporary(f"lshr i32 {f.temporary(f'add i32 {threads}, 31')}, 5"), 32
    index = f.field("thread.index")
    lane = f.temporary(f"and i32 {index}, 31")
    bit, two = (f.temporary(f"shl i32 {number}, {lane}") for number in (1, 2))
    formulas = {"%warpid": f"lshr i32 {index}, 5", "%laneid": f"add i32 {lane}, 0", "%lanemask_eq": f"add i32 {bit}, 0"}
    formulas |= {"%lanemask_lt": f"sub i32 {bit}, 1", "%lanemask_le": f"sub i32 {two}, 1"}
    formulas |= {"%lanemask_ge": f"sub i32 0, {bit}", "%lanemask_gt": f"sub i32 0, {two}"}
    return (f.temporary(formulas[name]), 32) if name in formulas else None
