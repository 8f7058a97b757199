# SPDX-License-Identifier: BSD-2-Clause
"""Errors of kernels in words: what happened, where, in which thread, and next to which array."""

from __future__ import annotations

import ctypes
import os
from dataclasses import replace
from typing import Any, TypeAlias

from ..errors import at_call
from ..fault_remedies import with_fault_remedy
from ..given_sources import place_in_python
from ..mangled_names import short_name
from ..plain_types import find_element
from ..printable_texts import number_of
from ..source_locations import name_of_file, name_of_shared_array, shown_place, with_lines, without_generated
from . import memory
from .errors import AddressSpaceError, BarrierError, EmulationError, FaultError, SharedMemoryError
from .linked_texts import LinkedTexts
from .memory import Region, nearest
from .parser import Instruction, Location, Text
from .program import Program
from .state import ATOMIC, FIRST_SHARED_ADDRESS, SEVERAL, Block, Error, Frame, Launch, Thread


def source_lines(text: Text, location: Location | None) -> tuple[str, ...]:
    """Return the chain of *location* as ``file:line``, innermost first, without the lines of generated code."""
    lines: list[str] = []
    while location is not None and len(lines) < 32:
        filename, line = place_in_python(name_of_file(text.files.get(location.file, "?")), location.line)
        lines.append(f"{filename}:{line}")
        location = location.inlined_at
    return without_generated(lines)


_ACCESSES = {"ld": "read", "ldu": "read", "st": "write", "atom": "atomic access", "red": "atomic access"}
_OF_ACCESSES = (Error.OUT_OF_BOUNDS, Error.MISALIGNED, Error.UNINITIALISED, Error.RACE)
_RAISED = dict.fromkeys((Error.OUT_OF_BOUNDS, Error.MISALIGNED, Error.RACE, Error.TRAP, Error.BAD_CALL), FaultError)
_RAISED |= dict.fromkeys((Error.STUCK, Error.DIVERGED_BARRIER), BarrierError)
_FAR, _NEAR = 1 << 20, 4096
Size: TypeAlias = "tuple[int, int, int]"
_MOST_SHOWN = 4  # variables
_MOST_CALLS, _MOST_FRAMES = 4, 1 << 17  # calls besides the outermost


class Failure:
    """What a worker recorded in its *block*: the *code* of an `Error`, and the place.

    *frames* are those of the thread, the newest first, where calls have no size; *variables* those of shared memory
    whose size is known.
    """

    def __init__(self, block: Any, program: Program):
        self.block, self.code = block, block.error
        self.address, self.nbytes = block.error_address, block.error_bytes
        thread: Any = Thread.from_address(block.threads + Thread.SIZE * (block.error_thread % block.count))
        self.shared, self.stack = Region(block.shared, block.shared_bytes), Region(thread.stack, block.stack_bytes)
        self.frames: list[Region] = []
        below = thread.locals
        while below and len(self.frames) < _MOST_FRAMES:
            frame: Any = Frame.from_address(below)
            self.frames.append(Region(frame.address, frame.size))
            below = frame.below
        begin = block.shared - FIRST_SHARED_ADDRESS
        sized = (each for each in program.shared.values() if each.nbytes)
        self.variables = [replace(each, address=begin + each.address) for each in sized]
        self.linked = program.linked.with_lines()
        self.instruction, self.lines = _locate(self.linked, block.error_site)
        self.is_access = self.code in _OF_ACCESSES
        waits_elsewhere = self.code == Error.STUCK and block.other_thread != block.error_thread
        self.has_other = waits_elsewhere or self.code in (Error.RACE, Error.DIVERGED_BARRIER)

        is_in_shared = ".shared" in self.instruction.opcode
        self.is_of_shared = self.shared.is_near(self.address, _FAR if is_in_shared else _NEAR)
        self.raised: type[EmulationError] = _RAISED.get(self.code, EmulationError)
        if self.code == Error.OUT_OF_BOUNDS and is_in_shared and not self.is_of_shared:
            self.raised = AddressSpaceError

    def list_calls(self) -> list[tuple[str, ...]]:
        """Return the source lines of the calls that the thread is in, the newest first; of a deep recursion, few."""
        calls = [frame.address for frame in self.frames if not frame.nbytes]
        return [_locate(self.linked, site)[1] for site in (*calls[:_MOST_CALLS], *calls[_MOST_CALLS:][-1:])]


def describe_failure(
    record: Block,
    program: Program,
    grid: Size,
    block: Size,
    arguments: bytes,
    assertions: dict[int, tuple[str, str, int]],
) -> EmulationError:
    """Return the error to raise for what the *record* of a block says, after a launch with the packed *arguments*;
    *assertions* are the words and the places of those that failed, by the address of the block."""
    failure = Failure(record, program)
    kernel, lines, called = program.kernel.name, failure.lines, failure.list_calls()
    block_index, thread_index = _index(record.index, grid), _index(record.error_thread, block)
    if failure.code == Error.HOST:
        message, file, line = assertions[ctypes.addressof(record)]
        where = "{}:{}".format(*place_in_python(file, line))
        is_text = not (os.path.isfile(file) or file.endswith(".py"))  # that autolink gave the compiler
        lines = lines if where in lines or (lines and is_text) else (where, *lines)
    else:
        message = _diagnosis(failure, block)
    message += "".join(f"\n  called at: {shown_place(line)}" for call in called for line in call)
    message += f"\n  thread: {thread_index} of block {block_index} of kernel {short_name(kernel)}"
    if failure.is_access:
        message += (
            f"\n  address: {failure.address:#x}, {_describe_address(failure, program, arguments, sum(called, lines))}"
        )
    if failure.code != Error.HOST:
        message += f"\n  instruction: {failure.instruction.text}"
    if failure.has_other:
        other, there = _locate(failure.linked, record.other_site)
        message += "\n" + with_lines(f"  the other: {other.text}", there)
    message = with_fault_remedy(message, Error(failure.code).name, has_lines=bool(lines))
    message = with_lines(message, lines) if lines else at_call(message, "launched at")
    return failure.raised(
        message,
        kernel=kernel,
        block=block_index,
        thread=thread_index,
        address=failure.address if failure.is_access else None,
        lines=sum(called, lines),
    )


def describe_shared_memory(program: Program, most: int) -> SharedMemoryError:
    """Return the error to raise for a kernel that has more than *most* bytes of static shared memory."""
    name, nbytes = short_name(program.kernel.name), program.static_shared_bytes
    largest = sorted((each for each in program.shared.values() if each.nbytes), key=lambda each: -each.nbytes)
    labels, (_, lines) = [each.label for each in largest], _locate(program.linked, program.kernel.code[0].number)
    named = [(name_of_shared_array(each.label, labels, lines), each.nbytes) for each in largest[:_MOST_SHOWN]]
    listed = ", ".join(f"{variable} of {number_of(size, 'byte')}" for variable, size in named)
    message = f"{name} needs {nbytes} bytes of static shared memory, and has at most {most}\n  variables: {listed}"
    message = at_call(message, "launched at")
    message += "\n  what to do: use dynamic shared memory, whose size a launch gives, or fewer threads or items"
    return SharedMemoryError(message, kernel=program.kernel.name)


def _locate(linked: LinkedTexts, site: int) -> tuple[Instruction, tuple[str, ...]]:
    """Return the instruction of *site*, and its source lines."""
    text = linked.texts[site >> 24]
    for function in text.functions.values():
        if function.code and function.code[0].number <= site <= function.code[-1].number:
            instruction = function.code[site - function.code[0].number]
            places = (each.location for each in (instruction, *function.code))
            place = next((each for each in places if each is not None and each.line), instruction.location)
            return instruction, source_lines(text, place)
    raise AssertionError(f"no instruction {site}")


def _index(number: int, sizes: Size) -> Size:
    return number % sizes[0], number // sizes[0] % sizes[1], number // sizes[0] // sizes[1]


def _diagnosis(failure: Failure, block: Size) -> str:
    name = _ACCESSES.get(failure.instruction.opcode.partition(".")[0], "access")
    access = f"{'An' if name[0] == 'a' else 'A'} {name}"
    size = f"{failure.nbytes} byte" + "s" * (failure.nbytes != 1)
    code, other = failure.code, failure.block.other_thread
    if code == Error.OUT_OF_BOUNDS:
        allocation = memory.find(failure.address)
        where = "after the memory was freed" if allocation is not None and allocation.freed else "out of bounds"
        if _is_null(failure.address):
            where = "through a null pointer"
        elif failure.raised is AddressSpaceError:
            where = "of shared memory at an address of other memory"
        return f"{access} of {size} {where}"
    if code == Error.MISALIGNED:
        return f"A misaligned {name} of {size}"
    if code == Error.UNINITIALISED:
        is_in_variable = any(variable.is_near(failure.address) for variable in failure.variables)
        is_before_one = any(failure.address < variable.address for variable in failure.variables)
        if failure.shared.is_near(failure.address) and is_before_one and not is_in_variable:
            return f"{access} of {size} between the variables of shared memory"
        return f"{access} of {size} that {'was' if failure.nbytes == 1 else 'were'} never written"
    if code == Error.RACE:
        who = "atomic accesses" if other == SEVERAL else f"thread {_index(other & ~ATOMIC, block)}"
        return f"A race: this {name} of {size} and {who} have no barrier between them"
    if failure.has_other:
        where = "at different barriers" if code == Error.DIVERGED_BARRIER else "in different places"
        return f"Threads of a block wait {where}: this one and thread {_index(other, block)}"
    return {
        Error.STUCK: "Threads wait for others that wait elsewhere or have returned: not all reach the barrier",
        Error.TRAP: "The kernel executed a trap",
        Error.NOT_IN_MASK: f"A thread is not in the mask {failure.address:#010x} of its warp operation",
        Error.BAD_CALL: f"A call or branch through {failure.address:#x}, where there is no code",
        Error.STACK_OVERFLOW: "The stack is full: the recursion is too deep",
        Error.EXITED_BARRIER: "Threads wait at a barrier that others left out: they have returned",
        Error.BAD_BARRIER: f"There is no barrier {failure.address}: the numbers are 0 to 15",
        Error.ENDLESS: f"A thread goes back in loops more than {failure.address} times",
        Error.READ_FROM_ABSENT_LANE: "A shuffle reads from a lane that does not take part",
    }[code]


def _is_null(address: int) -> bool:
    return 0 <= address < _NEAR


def _describe_address(failure: Failure, program: Program, arguments: bytes, lines: tuple[str, ...]) -> str:
    address = failure.address
    if _is_null(address):
        return f"{address} bytes after null" if address else "null"
    if failure.stack.is_near(address) or ".local" in failure.instruction.opcode:
        frame = nearest((frame for frame in failure.frames if frame.nbytes), address)
        if frame is None:
            return "local memory"
        return f"byte {address - frame.address} of {frame.nbytes} bytes of local memory"
    if failure.is_of_shared:
        place = f"byte {address - failure.shared.address} of {failure.shared.nbytes} bytes of shared memory"
        if variable := nearest(failure.variables, address):
            name = name_of_shared_array(variable.label, [each.label for each in program.shared.values()], lines)
            place += f"; byte {address - variable.address} of {variable.nbytes} of {name}"
        is_beyond = address >= failure.shared.address + program.static_shared_bytes
        if failure.code == Error.OUT_OF_BOUNDS and is_beyond and len(failure.variables) < len(program.shared):
            given = Launch.from_address(failure.block.launch).dynamic_shared
            place += f"\n  dynamic shared memory: the launch gives {given} bytes"
        return place
    allocation = memory.find(address) or memory.find_nearest(address)
    if allocation is None or not allocation.is_near(address, _FAR):
        return "not near any memory that kernels may access"
    where = f"{short_name(allocation.label) or 'an array'} at {allocation.address:#x}, of {allocation.nbytes} bytes"
    if found := find_element(arguments, allocation.address, allocation.nbytes, address):
        where += "; index {} of the shape {}".format(*found)
    if address < allocation.address:
        return f"{allocation.address - address} bytes before {where}"
    if address >= allocation.end:
        return f"{address - allocation.end} bytes after the end of {where}"
    return f"byte {address - allocation.address} of {where}"
