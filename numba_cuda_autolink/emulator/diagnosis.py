# SPDX-License-Identifier: BSD-2-Clause
"""Errors of kernels in words: what happened, where, in which thread, and next to which array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from . import memory
from .errors import EmulationError
from .source_lines import describe_lines, source_lines
from .state import FIRST_SHARED_ADDRESS, Error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .linked_texts import LinkedTexts
    from .parser import Function, Instruction


class NamedMemory(Protocol):
    """The label of the memory that begins at an address."""

    @property
    def address(self) -> int: ...
    @property
    def label(self) -> str: ...
    @property
    def itemsize(self) -> int: ...


@dataclass(frozen=True)
class Failure:
    """What a worker recorded: an `Error`, and the place."""

    code: int
    block: int
    thread: int
    site: int
    address: int
    nbytes: int
    detail: int
    shared: int
    shared_bytes: int


def describe_failure(
    failure: Failure,
    kernel: str,
    linked: LinkedTexts,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    names: Sequence[NamedMemory],
) -> EmulationError:
    """Return the error to raise for *failure*."""
    function, instruction = _find(linked, failure.site)
    lines = source_lines(linked.texts[function.text], instruction.location)
    is_access = failure.code in (Error.OUT_OF_BOUNDS, Error.MISALIGNED, Error.UNINITIALISED, Error.RACE)
    first = _diagnosis(failure, instruction, linked, block)
    block_index, thread_index = _index(failure.block, grid), _index(failure.thread, block)
    message = f"{first}\n  in kernel {kernel}, block {block_index}, thread {thread_index}"
    if is_access:
        message += f"\n  address {failure.address:#x}: {_describe_address(failure, names)}"
    message += f"\n  instruction {instruction.text}{describe_lines(lines)}"
    return EmulationError(
        message,
        kernel=kernel,
        block=block_index,
        thread=thread_index,
        address=failure.address if is_access else None,
        lines=lines,
    )


def _find(linked: LinkedTexts, site: int) -> tuple[Function, Instruction]:
    text, number = linked.texts[site >> 24], site & 0xFFFFFF
    for function in text.functions.values():
        if function.code and function.code[0].number <= number <= function.code[-1].number:
            return function, function.code[number - function.code[0].number]
    raise AssertionError(f"no instruction {number}")


def _index(number: int, sizes: tuple[int, int, int]) -> tuple[int, int, int]:
    return number % sizes[0], number // sizes[0] % sizes[1], number // sizes[0] // sizes[1]


def _diagnosis(failure: Failure, instruction: Instruction, linked: LinkedTexts, block: tuple[int, int, int]) -> str:
    name = instruction.opcode.partition(".")[0]
    access = {"ld": "read", "ldu": "read", "st": "write", "atom": "atomic access", "red": "atomic access"}.get(
        name, "access"
    )
    size = f"{failure.nbytes} byte" + "s" * (failure.nbytes != 1)
    code = failure.code
    if code == Error.OUT_OF_BOUNDS:
        allocation = memory.find(failure.address)
        if allocation is not None and allocation.freed:
            return f"A {access} of {size} after the memory was freed"
        return f"A {access} of {size} out of bounds"
    if code == Error.MISALIGNED:
        return f"A misaligned {access} of {size}"
    if code == Error.UNINITIALISED:
        return f"A {access} of {size} that were never written"
    if code == Error.RACE:
        other = "an atomic access" if failure.detail == 0xFFFF else f"thread {_index(failure.detail, block)}"
        return f"A race: this {access} of {size} and {other} have no barrier between them"
    if code == Error.DIVERGED_BARRIER:
        text, at = _find(linked, failure.detail)
        lines = source_lines(linked.texts[text.text], at.location)
        return f"Threads of a block wait at different barriers: some at {lines[0] if lines else at.text}"
    return {
        Error.STUCK: "Threads wait for others that wait elsewhere or have returned: not all reach the barrier",
        Error.TRAP: "The kernel executed a trap",
        Error.NOT_IN_MASK: f"A thread is not in the mask {failure.address:#010x} of its warp operation",
        Error.BAD_CALL: f"A call or branch through {failure.address:#x}, where there is no code",
        Error.STACK_OVERFLOW: "The stack is full: the recursion is too deep",
        Error.EXITED_BARRIER: "Threads wait at a barrier that others left out: they have returned",
        Error.BAD_BARRIER: f"There is no barrier {failure.address}: the numbers are 0 to 15",
        Error.READ_FROM_ABSENT_LANE: "A shuffle reads from a lane that does not take part",
    }[code]


def _describe_address(failure: Failure, names: Sequence[NamedMemory]) -> str:
    address = failure.address
    offset = address - failure.shared - FIRST_SHARED_ADDRESS
    if -4096 <= offset < failure.shared_bytes + 4096:
        return f"byte {offset} of {failure.shared_bytes} bytes of shared memory"
    allocation = memory.find(address) or memory.find_nearest(address)
    if allocation is None:
        return "there is no memory that kernels may access"
    named = next(
        (n for n in names if allocation.address <= n.address < max(allocation.end, allocation.address + 1)), None
    )
    label = (named.label if named else allocation.label) or "an array"
    base, itemsize = (named.address, named.itemsize) if named else (allocation.address, 1)
    distance, nbytes = address - base, allocation.end - base
    where = f"{label} at {base:#x}, of {nbytes} bytes"
    if itemsize > 1:
        return f"element {distance // itemsize} of {nbytes // itemsize} of {where}"
    if distance < 0:
        return f"{-distance} bytes before {where}"
    if address >= allocation.end:
        return f"{address - allocation.end} bytes after the end of {where}"
    return f"byte {distance} of {where}"
