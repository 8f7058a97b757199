# SPDX-License-Identifier: BSD-2-Clause
"""Errors of kernels in words: what happened, where, in which thread, and next to which array."""

from __future__ import annotations

import ctypes
import math
import os
import re
import struct
from dataclasses import replace
from typing import Any, TypeAlias

from ..given_sources import place_in_python
from ..short_tracebacks import place_of_user
from ..source_locations import shown_file, with_place
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
        filename, line = place_in_python(text.files.get(location.file, "?"), location.line)
        lines.append(f"{filename}:{line}")
        location = location.inlined_at
    return tuple(line for line in lines if not _is_generated(line)) or tuple(lines)


def _is_generated(line: str) -> bool:
    """Return whether the *line* is of a text that autolink gave the compiler, which is in no file, or of no place."""
    file, _, number = line.rpartition(":")
    name = os.path.basename(file)
    return number == "0" or ((name == "prelude" or "(" in name) and not os.path.exists(file))


def with_lines(message: str, lines: tuple[str, ...], word: str = "at") -> str:
    """Return *message* with *lines* from its second line on: the source of the first that is not of an installed
    package is shown."""
    if not lines:
        return message
    packages = {"site-packages", "dist-packages"}
    own = next((number for number, each in enumerate(lines) if packages.isdisjoint(each.split("/"))), 0)
    file, _, line = lines[own].rpartition(":")
    first, *others = message.split("\n")
    within = [f"  in: {lines[0]}"] if own else []
    message = "\n".join([first, *within, *(f"  inlined at: {each}" for each in lines[own + 1 :]), *others])
    return with_place(message, f"{word}: {shown_file(file)}:{line}", file, int(line), is_call=False)


_ACCESSES = {"ld": "read", "ldu": "read", "st": "write", "atom": "atomic access", "red": "atomic access"}
_OF_ACCESSES = (Error.OUT_OF_BOUNDS, Error.MISALIGNED, Error.UNINITIALISED, Error.RACE)
_FAULTS = (Error.OUT_OF_BOUNDS, Error.MISALIGNED, Error.RACE, Error.TRAP, Error.BAD_CALL)
_FAR, _NEAR = 1 << 20, 4096
Size: TypeAlias = "tuple[int, int, int]"
_MOST_DIMENSIONS = 8
_MOST_SHOWN = 4  # variables
_MOST_CALLS, _MOST_FRAMES = 4, 1 << 17  # calls besides the outermost
_NO_LINES = (
    "\n  what to do: to see the lines of Python and C++, write @cuda.jit(lineinfo=True), and with numba-cuda-mlir"
    "\n    @cuda.jit(lineinfo=True, lto=False); autolink.build takes these options too"
)


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
        self.variables_end = max((each.end for each in self.variables), default=0)
        self.linked = program.linked.with_lines()
        self.instruction, self.lines = _locate(self.linked, block.error_site)
        self.is_access = self.code in _OF_ACCESSES
        waits_elsewhere = self.code == Error.STUCK and block.other_thread != block.error_thread
        self.has_other = waits_elsewhere or self.code in (Error.RACE, Error.DIVERGED_BARRIER)
        # An address that cannot be meant to be in shared memory
        self.is_of_other_memory = (
            self.code == Error.OUT_OF_BOUNDS
            and ".shared" in self.instruction.opcode
            and not self.shared.is_near(self.address, _FAR)
        )

    def list_calls(self) -> list[tuple[str, ...]]:
        """Return the source lines of the calls that the thread is in, the newest first; of a deep recursion, few."""
        calls = [frame.address for frame in self.frames if not frame.nbytes]
        return [_locate(self.linked, site)[1] for site in (*calls[:_MOST_CALLS], *calls[_MOST_CALLS:][-1:])]


def describe_failure(
    record: Block, program: Program, grid: Size, block: Size, arguments: bytes, assertions: dict[int, tuple[str, str]]
) -> EmulationError:
    """Return the error to raise for what the *record* of a block says, after a launch with the packed *arguments*;
    *assertions* are the words and the places of those that failed, by the address of the block."""
    failure = Failure(record, program)
    kernel, lines, called = program.kernel.name, failure.lines, failure.list_calls()
    block_index, thread_index = _index(record.index, grid), _index(record.error_thread, block)
    if failure.code == Error.HOST:
        message, where = assertions[ctypes.addressof(record)]
        lines = lines if where in lines else (where, *lines)
    else:
        message = _diagnosis(failure, block)
    message += "".join(f"\n  called at: {line}" for call in called for line in call)
    message += f"\n  thread: {thread_index} of block {block_index} of kernel {readable_name(kernel)}"
    if failure.is_access:
        message += f"\n  address: {failure.address:#x}, {_describe_address(failure, arguments)}"
        message += _describe_dynamic(failure, program)
    if failure.code != Error.HOST:
        message += f"\n  instruction: {failure.instruction.text}"
    if failure.has_other:
        other, there = _locate(failure.linked, record.other_site)
        message += "\n" + with_lines(f"  the other: {other.text}", there)
    if lines:
        message = with_lines(message, lines)
    else:
        message = with_lines(message, ("{}:{}".format(*place_of_user()),), "launched at") + _NO_LINES
    raised = FaultError if failure.code in _FAULTS else EmulationError
    if failure.code in (Error.STUCK, Error.DIVERGED_BARRIER):
        raised = BarrierError
    return (AddressSpaceError if failure.is_of_other_memory else raised)(
        message,
        kernel=kernel,
        block=block_index,
        thread=thread_index,
        address=failure.address if failure.is_access else None,
        lines=sum(called, lines),
    )


def describe_shared_memory(program: Program, most: int) -> SharedMemoryError:
    """Return the error to raise for a kernel that has more than *most* bytes of static shared memory."""
    name, nbytes = readable_name(program.kernel.name), program.static_shared_bytes
    largest = sorted((each for each in program.shared.values() if each.nbytes), key=lambda each: -each.nbytes)
    listed = ", ".join(f"{readable_name(each.label)} of {each.nbytes}" for each in largest[:_MOST_SHOWN])
    message = f"{name} needs {nbytes} bytes of static shared memory, and has at most {most}\n  variables: {listed}"
    message = with_lines(message, ("{}:{}".format(*place_of_user()),), "launched at")
    message += "\n  what to do: use dynamic shared memory, whose size a launch gives, or fewer threads or items"
    return SharedMemoryError(message, kernel=program.kernel.name)


def readable_name(symbol: str) -> str:
    """Return the name of a function or variable of C++ or Numba without types: ``m.f`` for ``_ZN1m1f…``, ``t of f`` for
    the variable ``_ZZ1fiE1t``; or *symbol* itself."""
    if local := re.fullmatch(r"_Z(Z.+)E\d+([A-Za-z_]\w*)", symbol):
        return f"{local[2]} of {readable_name('_' + local[1])}"
    if re.fullmatch(r"_ZZ.+ENKUl.+E_cl\w+", symbol):
        return "a lambda"
    found = re.match(r"_ZN?(?=\d)", symbol)
    rest, parts = symbol[found.end() :] if found else "", []
    while length := re.match(r"\d+", rest):
        end = length.end() + int(length[0])
        parts.append(re.sub(r"_(3[ce])", lambda code: chr(int(code[1], 16)), rest[length.end() : end]))
        rest = rest[end:]
        if symbol[:3] != "_ZN":
            break
    return ".".join(parts) or symbol


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
        if failure.is_of_other_memory:
            where = "of shared memory at an address of other memory"
        return f"{access} of {size} {where}"
    if code == Error.MISALIGNED:
        return f"A misaligned {name} of {size}"
    if code == Error.UNINITIALISED:
        is_in_variable = any(variable.is_near(failure.address) for variable in failure.variables)
        if failure.shared.is_near(failure.address) and failure.address < failure.variables_end and not is_in_variable:
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


def _describe_address(failure: Failure, arguments: bytes) -> str:
    address = failure.address
    if failure.stack.is_near(address):
        frame = nearest((frame for frame in failure.frames if frame.nbytes), address)
        if frame is None:
            return "local memory"
        return f"byte {address - frame.address} of {frame.nbytes} bytes of local memory"
    if failure.shared.is_near(address, _NEAR):
        place = f"byte {address - failure.shared.address} of {failure.shared.nbytes} bytes of shared memory"
        if variable := nearest(failure.variables, address):
            place += f"; byte {address - variable.address} of {variable.nbytes} of {readable_name(variable.label)}"
        return place
    allocation = memory.find(address) or memory.find_nearest(address)
    if allocation is None or not allocation.is_near(address, _FAR):
        return "not near any memory that kernels may access"
    where = f"{readable_name(allocation.label) or 'an array'} at {allocation.address:#x}, of {allocation.nbytes} bytes"
    where += _describe_index(arguments, allocation, address)
    if address < allocation.address:
        return f"{allocation.address - address} bytes before {where}"
    if address >= allocation.end:
        return f"{address - allocation.end} bytes after the end of {where}"
    return f"byte {address - allocation.address} of {where}"


def _describe_dynamic(failure: Failure, program: Program) -> str:
    """Return the lines for an access past the dynamic shared memory that the launch gave."""
    offset = failure.address - failure.shared.address
    if failure.code != Error.OUT_OF_BOUNDS or not (
        len(failure.variables) < len(program.shared)
        and program.static_shared_bytes <= offset < failure.shared.nbytes + _FAR
    ):
        return ""
    given = Launch.from_address(failure.block.launch).dynamic_shared
    return (
        f"\n  dynamic shared memory: the launch gives {given} bytes"
        "\n  what to do: launch with its size in bytes: kernel[grid, block, stream, nbytes](...)"
    )


def _describe_index(parameters: bytes, allocation: Region, address: int) -> str:
    """Return the index of the element at *address* of the array in *allocation* that is among the packed *parameters*.

    numba-cuda packs two unused words, the number of elements, their size, the address of the first, the shape, and the
    strides in bytes; numba-cuda-mlir the address twice, an offset, the shape, and the strides in elements: of an array
    that fills its memory, their size follows. The address may be outside: the index of the longest stride is then.
    """
    words = struct.unpack(f"<{len(parameters) // 8}q", parameters[: len(parameters) // 8 * 8])
    for k in (k for k in range(1, len(words)) if allocation.is_near(words[k])):
        is_of_mlir = words[k - 1 : k + 2] == (allocation.address, allocation.address, 0)
        for dimensions in range(1, _MOST_DIMENSIONS + 1):
            shape, strides = (words[k + 1 + is_of_mlir + n * dimensions :][:dimensions] for n in range(2))
            count, itemsize = math.prod(shape), words[k - 1]
            if len(strides) < dimensions or count < 1:
                continue
            if is_of_mlir:
                itemsize = allocation.nbytes // count
                strides = tuple(stride * itemsize for stride in strides)
                last = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
                is_whole = last + itemsize == allocation.nbytes
            else:
                is_whole = k > 3 and words[k - 2] == count and itemsize > 0
            if is_whole and all(stride and stride % itemsize == 0 for stride in strides):
                index, offset = [0] * dimensions, address - words[k]
                for axis in sorted(range(dimensions), key=[-abs(stride) for stride in strides].__getitem__):
                    index[axis], offset = divmod(offset, strides[axis])
                return f"; index {tuple(index)} of the shape {shape}"
    return ""
