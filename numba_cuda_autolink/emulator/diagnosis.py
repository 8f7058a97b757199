# SPDX-License-Identifier: BSD-2-Clause
"""Errors of kernels in words: what happened, where, in which thread, and next to which array."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..short_tracebacks import place_of_user
from . import memory
from .errors import AddressSpaceError, BarrierError, EmulationError, FaultError, SharedMemoryError
from .linked_texts import LinkedTexts
from .parser import Function, Instruction
from .program import Program
from .source_lines import source_lines, with_lines
from .state import FIRST_SHARED_ADDRESS, Block, Error, Frame, Launch, Thread

_ACCESSES = {"ld": "read", "ldu": "read", "st": "write", "atom": "atomic access", "red": "atomic access"}
_OF_ACCESSES = (Error.OUT_OF_BOUNDS, Error.MISALIGNED, Error.UNINITIALISED, Error.RACE)
_FAULTS = (Error.OUT_OF_BOUNDS, Error.MISALIGNED, Error.RACE, Error.TRAP, Error.BAD_CALL)
_ATOMIC, _SEVERAL = 0x8000, 0xFFFF
_FAR, _NEAR = 1 << 20, 4096
Size: TypeAlias = "tuple[int, int, int]"
_HEADER = 4  # words of an array before the address: two that are unused, the number of elements, and their size
_MOST_DIMENSIONS = 8
_MOST_SHOWN = 4  # variables
_MOST_CALLS, _MOST_FRAMES = 4, 1 << 17  # calls besides the outermost
_NO_LINES = (
    "\n  what to do: build it with lineinfo=True, and for numba-cuda-mlir lto=False, to see the lines of Python and C++"
)


@dataclass(frozen=True)
class Region:
    """The *nbytes* at *address*, of the variable *name*."""

    address: int
    nbytes: int
    name: str = ""

    def is_near(self, address: int, distance: int = 0) -> bool:
        """Return whether *address* is in it, or within *distance* bytes of it."""
        return -distance <= address - self.address < self.nbytes + distance


class Failure:
    """What a worker recorded in its *block*: the code of an `Error`, and the place.

    *frames* are those of the thread, the newest first, where calls have no size; *variables* those of shared memory
    whose size is known.
    """

    def __init__(self, block: int, program: Program):
        self.code, self.site, self.nbytes, self.thread, self.block = (
            memory.half_at(block + offset)
            for offset in (Block.ERROR, Block.ERROR_SITE, Block.ERROR_BYTES, Block.ERROR_THREAD, Block.INDEX)
        )
        self.address, self.detail, shared, nbytes, threads = (
            memory.word_at(block + offset)
            for offset in (Block.ERROR_ADDRESS, Block.ERROR_DETAIL, Block.SHARED, Block.SHARED_BYTES, Block.THREADS)
        )
        thread = threads + Thread.BYTES * self.thread * program.suspends
        self.shared = Region(shared + FIRST_SHARED_ADDRESS, nbytes)
        self.stack = Region(memory.word_at(thread + Thread.STACK), memory.half_at(block + Block.STACK_BYTES))
        self.frames: list[Region] = []
        frame = memory.word_at(thread + Thread.LOCALS)
        while frame and len(self.frames) < _MOST_FRAMES:
            self.frames.append(Region(memory.word_at(frame + Frame.ADDRESS), memory.word_at(frame + Frame.SIZE)))
            frame = memory.word_at(frame + Frame.BELOW)
        self.variables = [Region(shared + at, nbytes, name) for name, at, nbytes in program.list_shared_variables()]

    @property
    def is_between_variables(self) -> bool:
        """Whether the address is in shared memory, in none of its variables."""
        known = bool(self.variables) and self.address < self.variables[-1].address + self.variables[-1].nbytes
        return known and self.shared.is_near(self.address) and not any(v.is_near(self.address) for v in self.variables)


def describe_failure(record: int, program: Program, grid: Size, block: Size, arguments: bytes) -> EmulationError:
    """Return the error to raise for what the *record* of a block says, after a launch with the packed *arguments*."""
    failure = Failure(record, program)
    kernel, linked = program.kernel.name, program.linked.with_lines()
    _, instruction, lines = _locate(linked, failure.site)
    is_access = failure.code in _OF_ACCESSES
    block_index, thread_index = _index(failure.block, grid), _index(failure.thread, block)
    message = _diagnosis(failure, instruction, block)
    called: tuple[str, ...] = ()
    for call in _list_calls(failure, linked):
        message += "".join(f"\n  called at: {line}" for line in call)
        called += call
    message += f"\n  thread: {thread_index} of block {block_index} of kernel {readable_name(kernel)}"
    if is_access:
        message += f"\n  address: {failure.address:#x}, {_describe_address(failure, arguments)}"
        message += _describe_dynamic(failure, program, memory.word_at(record + Block.LAUNCH))
    message += f"\n  instruction: {instruction.text}"
    if failure.code in (Error.RACE, Error.DIVERGED_BARRIER):
        _, other, there = _locate(linked, failure.detail >> 32 if failure.code == Error.RACE else failure.detail)
        message += "\n" + with_lines(f"  the other: {other.text}", there)
    if lines:
        message = with_lines(message, lines)
    else:
        message = with_lines(message, ("{}:{}".format(*place_of_user()),), "launched at") + _NO_LINES
    lines += called
    raised = FaultError if failure.code in _FAULTS else EmulationError
    if failure.code in (Error.STUCK, Error.DIVERGED_BARRIER):
        raised = BarrierError
    if _is_of_other_memory(failure, instruction):
        raised = AddressSpaceError
    return raised(
        message,
        kernel=kernel,
        block=block_index,
        thread=thread_index,
        address=failure.address if is_access else None,
        lines=lines,
    )


def _is_of_other_memory(failure: Failure, instruction: Instruction) -> bool:
    """Return whether an access to shared memory got an address that cannot be meant to be there."""
    to_shared = ".shared" in instruction.opcode and not failure.shared.is_near(failure.address, _FAR)
    return failure.code == Error.OUT_OF_BOUNDS and to_shared


def describe_shared_memory(program: Program, most: int) -> SharedMemoryError:
    """Return the error to raise for a kernel that has more than *most* bytes of static shared memory."""
    name, nbytes = readable_name(program.kernel.name), program.static_shared_bytes
    largest = sorted(program.list_shared_variables(), key=lambda each: -each[2])[:_MOST_SHOWN]
    listed = ", ".join(f"{readable_name(variable)} of {size}" for variable, _, size in largest)
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


def describe_assertion(text: str, where: str, thread: int, program: Program) -> EmulationError:
    """Return the error to raise for an assertion at *where* that failed in the *thread* with that record."""
    block_index, thread_index = (
        (memory.half_at(address), memory.half_at(address + 4), memory.half_at(address + 8))
        for address in (memory.word_at(thread + Thread.BLOCK) + Block.CTAID, thread + Thread.TID)
    )
    message = f"Assertion {text}\n  thread: {thread_index} of block {block_index} of kernel "
    message += readable_name(program.kernel.name)
    lines = _locate(program.linked.with_lines(), memory.half_at(thread + Thread.SITE))[2]
    lines = lines if where in lines else (where, *lines)
    kernel = program.kernel.name
    return EmulationError(
        with_lines(message, lines), kernel=kernel, block=block_index, thread=thread_index, lines=lines
    )


def _locate(linked: LinkedTexts, site: int) -> tuple[Function, Instruction, tuple[str, ...]]:
    """Return the instruction of *site*, its function, and its source lines."""
    text, number = linked.texts[site >> 24], site & 0xFFFFFF
    for function in text.functions.values():
        if function.code and function.code[0].number <= number <= function.code[-1].number:
            instruction = function.code[number - function.code[0].number]
            places = (each.location for each in (instruction, *function.code))
            place = next((each for each in places if each is not None and each.line), instruction.location)
            return function, instruction, source_lines(text, place)
    raise AssertionError(f"no instruction {number}")


def _list_calls(failure: Failure, linked: LinkedTexts) -> list[tuple[str, ...]]:
    """Return the source lines of the calls that the thread is in, the newest first; of a deep recursion, few."""
    if failure.code == Error.UNINITIALISED and failure.shared.is_near(failure.address):
        return []  # the thread has gone on
    calls = [frame.address for frame in failure.frames if not frame.nbytes]
    return [_locate(linked, site)[2] for site in (*calls[:_MOST_CALLS], *calls[_MOST_CALLS:][-1:])]


def _index(number: int, sizes: Size) -> Size:
    return number % sizes[0], number // sizes[0] % sizes[1], number // sizes[0] // sizes[1]


def _diagnosis(failure: Failure, instruction: Instruction, block: Size) -> str:
    name = _ACCESSES.get(instruction.opcode.partition(".")[0], "access")
    access = f"{'An' if name[0] == 'a' else 'A'} {name}"
    size = f"{failure.nbytes} byte" + "s" * (failure.nbytes != 1)
    code = failure.code
    if code == Error.OUT_OF_BOUNDS:
        allocation = memory.find(failure.address)
        where = "after the memory was freed" if allocation is not None and allocation.freed else "out of bounds"
        if _is_of_other_memory(failure, instruction):
            where = "of shared memory at an address of other memory"
        return f"{access} of {size} {where}"
    if code == Error.MISALIGNED:
        return f"A misaligned {name} of {size}"
    if code == Error.UNINITIALISED and failure.is_between_variables:
        return f"{access} of {size} between the variables of shared memory"
    if code == Error.UNINITIALISED:
        return f"{access} of {size} that {'was' if failure.nbytes == 1 else 'were'} never written"
    if code == Error.RACE:
        other = failure.detail & _SEVERAL
        who = "atomic accesses" if other == _SEVERAL else f"thread {_index(other & ~_ATOMIC, block)}"
        return f"A race: this {name} of {size} and {who} have no barrier between them"
    if code == Error.DIVERGED_BARRIER:
        return "Threads of a block wait at different barriers"
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
        return _describe_local(failure)
    if failure.shared.is_near(address, _NEAR):
        return _describe_shared(failure)
    allocation = memory.find(address) or memory.find_nearest(address)
    if allocation is None or min(abs(address - allocation.address), abs(address - allocation.end)) > _FAR:
        return "not near any memory that kernels may access"
    array = find_array(arguments, allocation.address, allocation.end)
    where = f"{readable_name(allocation.label) or 'an array'} at {allocation.address:#x}, of {allocation.nbytes} bytes"
    index = f"; index {array.index_of(address)} of the shape {array.shape}" if array is not None else ""
    if address < allocation.address:
        return f"{allocation.address - address} bytes before {where}{index}"
    if address >= allocation.end:
        return f"{address - allocation.end} bytes after the end of {where}{index}"
    return f"byte {address - allocation.address} of {where}{index}"


def _describe_shared(failure: Failure) -> str:
    offset = failure.address - failure.shared.address
    place = f"byte {offset} of {failure.shared.nbytes} bytes of shared memory"
    if not failure.variables:
        return place
    variable = _nearest(failure.variables, failure.address)
    offset = failure.address - variable.address
    return f"{place}; byte {offset} of {variable.nbytes} of {readable_name(variable.name)}"


def _describe_dynamic(failure: Failure, program: Program, launch: int) -> str:
    """Return the lines for an access past the dynamic shared memory that the *launch* gave."""
    offset = failure.address - failure.shared.address
    if failure.code != Error.OUT_OF_BOUNDS or not (
        program.has_dynamic_shared and program.static_shared_bytes <= offset < failure.shared.nbytes + _FAR
    ):
        return ""
    given = memory.half_at(launch + Launch.DYNAMIC_SHARED)
    return (
        f"\n  dynamic shared memory: the launch gives {given} bytes"
        "\n  what to do: launch with its size in bytes: kernel[grid, block, stream, nbytes](...)"
    )


def _nearest(regions: Sequence[Region], address: int) -> Region:
    return min(regions, key=lambda r: max(r.address - address, address - r.address - r.nbytes))


def _describe_local(failure: Failure) -> str:
    frames = [frame for frame in failure.frames if frame.nbytes]
    if not frames:
        return "local memory"
    frame = _nearest(frames, failure.address)
    return f"byte {failure.address - frame.address} of {frame.nbytes} bytes of local memory"


# Numba's arrays among the packed parameters


@dataclass(frozen=True)
class PackedArray:
    """An array: the *address* of its first element, its shape, and its strides in bytes."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def index_of(self, address: int) -> tuple[int, ...]:
        """Return the index of the element at *address*, which may be outside: of the longest stride then."""
        index, offset = [0] * len(self.shape), address - self.address
        for axis in sorted(range(len(self.shape)), key=lambda axis: -abs(self.strides[axis])):
            if self.strides[axis]:
                index[axis], offset = divmod(offset, self.strides[axis])
        return tuple(index)


def find_array(parameters: bytes, low: int, high: int) -> PackedArray | None:
    """Return the array among the packed *parameters* whose memory begins between the addresses *low* and *high*."""
    words = struct.unpack(f"<{len(parameters) // 8}q", parameters[: len(parameters) // 8 * 8])
    found = (array for k in range(_HEADER, len(words)) if low <= words[k] < high for array in _read_arrays(words, k))
    return next(found, None)


def _read_arrays(words: tuple[int, ...], k: int) -> Iterator[PackedArray]:
    """Yield what the address at *k* can be the array of: the elements of its shape are as many as it says."""
    count, itemsize = words[k - 2], words[k - 1]
    for dimensions in range(1, _MOST_DIMENSIONS + 1):
        shape = words[k + 1 : k + 1 + dimensions]
        strides = words[k + 1 + dimensions : k + 1 + 2 * dimensions]
        is_whole = len(strides) == dimensions and count > 0 and itemsize > 0
        if is_whole and math.prod(shape) == count and all(s and s % itemsize == 0 for s in strides):
            yield PackedArray(words[k], shape, strides)
