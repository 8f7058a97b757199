# SPDX-License-Identifier: BSD-2-Clause
"""What to do about the faults of kernels that the emulator reports."""

from __future__ import annotations

_SYNCHRONISE = "call cuda.syncthreads() where all threads of the block come, outside of conditions that some fail"
_LINES = (
    "to see the lines of Python and C++, write @cuda.jit(lineinfo=True), and with numba-cuda-mlir"
    "\n    @cuda.jit(lineinfo=True, lto=False); autolink.build takes these options too"
)
_REMEDIES = {  # by the names of `emulator.state.Error`
    "OUT_OF_BOUNDS": "access elements only where the index is in the array, as in if i < x.size",
    "MISALIGNED": "access it by a pointer to a type that is aligned there, or copy its bytes with memcpy",
    "UNINITIALISED": "write the memory before it is read; if other threads read it, call cuda.syncthreads() between",
    "RACE": "call cuda.syncthreads() between the two accesses, within a warp cuda.syncwarp(); or make both atomic",
    "TRAP": "see what that line, or the function that it calls, checks before it stops the kernel",
    "HOST": "pass values for which the condition is true, or correct it",
    "STUCK": _SYNCHRONISE,
    "DIVERGED_BARRIER": _SYNCHRONISE,
    "EXITED_BARRIER": f"{_SYNCHRONISE}, and return after it",
    "NOT_IN_MASK": "give the mask of the lanes that make this call: 0xffffffff for a whole warp",
    "READ_FROM_ABSENT_LANE": "read from a lane that makes this call and is in its mask",
    "BAD_CALL": "pass functions that are linked into this kernel",
    "STACK_OVERFLOW": "end the recursion earlier, or write it as a loop",
    "BAD_BARRIER": "give a number from 0 to 15",
    "ENDLESS": "let the condition of the loop become false",
}
_BY_PHRASE = {  # of a message, which says more than the error's name
    "after the memory was freed": "keep the array, as in a variable, until the last kernel that uses it has run",
    "at an address of other memory": "pass an array of cuda.shared.array where C++ expects __shared__ memory",
    "through a null pointer": "pass an array, which None is not; or test the pointer before it is used",
    "not near any memory": "pass an array, or a pointer into one: kernels do not reach the memory of the host",
    "dynamic shared memory: ": "launch with its size in bytes: kernel[grid, block, stream, nbytes](...)",
}


def with_fault_remedy(message: str, error: str, *, has_lines: bool) -> str:
    """Return the *message* of a fault, whose number has the name *error*, with what to do as the last line; where the
    code has no lines, also how to get these."""
    remedy = next((each for phrase, each in _BY_PHRASE.items() if phrase in message), _REMEDIES[error])
    return f"{message}\n  what to do: {remedy}" + ("" if has_lines else f";\n    {_LINES}")
