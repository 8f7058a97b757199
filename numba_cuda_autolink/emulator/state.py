# SPDX-License-Identifier: BSD-2-Clause
"""The records that compiled kernels and Python share, and the codes in them.

A *thread* is one CUDA thread of the block that a worker runs; a *block* is a worker's current block (its address is
also that of the worker); a *launch* belongs to all workers. A field whose type is a record holds its address.
"""

from __future__ import annotations

from enum import IntEnum

from .native import Record, record, u32, u32x3, u64


@record
class Frame(Record):
    """Of local memory whose address is taken, or of a call: on the thread's stack."""

    below: Frame
    address: u64  # of local memory, or the instruction of the call
    size: u64  # 0 for a call
    shadow: u64  # of memory, where reads of what is not written are checked


@record
class Launch(Record):
    parameters: u64
    parameter_bytes: u64
    allocations: u64  # pairs of address and end, sorted
    allocation_count: u64
    next_block: u32
    blocks: u32
    failed: u32
    grid_arrived: u32
    grid_generation: u32
    blocks_done: u32
    variables: u64  # the addresses of the variables of the module
    host_call: u64  # a function of C: block, thread -> 0, or an error
    kernel: u64  # the kernel: a function of C that takes a thread
    dynamic_shared: u32
    grid_id: u32
    checks: u32  # 1 for barriers, 2 for threads that have exited
    workspace: u64  # where cooperative groups of C++ count the blocks that wait for each other


@record
class Facts(Record):
    """What the lowering of a kernel finds: whether threads may wait, loop and spin, and the number of its slots."""

    suspends: u32
    loops: u32
    spins: u32
    slot_count: u32


@record
class Barrier(Record):
    arrived: u32
    expected: u32
    last: u32  # the thread that came last, and the instruction where it did
    site: u32
    ones: u32  # for how many the predicate of a reduction held


@record
class Block(Record):
    shared: u64  # the generic address of its first byte
    shared_bytes: u64
    launch: Launch
    threads: Thread
    caches: u64
    scheduler: u64  # the stack pointer of the scheduler
    barriers: Barrier
    count: u32  # threads that have a stack: one if they never wait
    alive: u32  # those of them that have not returned
    ntid: u32x3
    ctaid: u32x3
    nctaid: u32x3
    index: u32
    stacks: u64  # one after another
    stack_bytes: u32
    live_lanes: u64  # u32 per warp
    epoch: u32  # barriers passed and blocks begun
    fences: u32  # of all threads
    shared_written: u64  # a byte per byte of shared memory: whether it was written
    shared_accesses: u64  # for races: three accesses per byte of shared memory
    error: u32  # a code of `Error`, which these describe
    error_thread: u32
    error_site: u32
    error_bytes: u32
    error_address: u64
    other_thread: u32  # in the errors of two threads
    other_site: u32


@record
class Thread(Record):
    stack_pointer: u64
    block: Block
    status: u32  # a code of `Status`
    index: u32  # its place in the block
    tid: u32x3
    operation: u32  # what it waits for the host or its warp to do, with which lanes and operands
    mask: u32
    site: u32  # the instruction that it waits in
    a: u64
    b: u64
    c: u64
    result: u64
    result_2: u64
    function: u64  # of what the warp does
    locals: Frame  # the newest of its frames: local memory of functions, and calls
    stack: u64  # the lower end of its stack
    back_edges: u64
    barrier: u32
    warp_epoch: u32
    last_fence: u32  # how many fences the block had passed with it


Status = IntEnum("Status", "NEW READY YIELDED BARRIER WARP ACTIVE HOST DONE", start=0)
Error = IntEnum(
    "Error",
    "OUT_OF_BOUNDS MISALIGNED STUCK TRAP NOT_IN_MASK BAD_CALL STACK_OVERFLOW UNINITIALISED RACE DIVERGED_BARRIER"
    " EXITED_BARRIER HOST BAD_BARRIER READ_FROM_ABSENT_LANE ENDLESS",
)

ATOMIC, SEVERAL = 0x8000, 0xFFFF  # an atomic access, by the thread of the other bits or by threads of several warps
FIRST_SHARED_ADDRESS = 1024
FIRST_FUNCTION_ADDRESS = 1 << 56
