# SPDX-License-Identifier: BSD-2-Clause
"""The records that compiled kernels and Python share: byte offsets of their fields, and the codes in them.

A *thread* is one CUDA thread of the block that a worker runs; a *block* is a worker's current block (its address is
also that of the worker); a *launch* belongs to all workers. All fields are of 64 bits or, where it is said, of 32.
"""

from __future__ import annotations


class Thread:
    STACK_POINTER = 0
    BLOCK = 8
    CACHES = 16
    SHARED = 24  # the generic address of shared address 0
    INDEX = 32  # u32: its place in the block
    TID = 36  # 3 x u32
    OPERATION = 48  # u32: what it waits for the host or its warp to do, with which lanes and operands
    MASK = 52  # u32
    A = 56
    B = 64
    C = 72
    RESULT = 80
    RESULT_2 = 88
    SITE = 96  # u32: the instruction that it waits in
    FUEL = 100  # u32: back edges until it yields
    LOCALS = 104  # the newest of its frames: local memory of functions, and calls
    STACK = 112  # the lower end of its stack
    BARRIER = 120  # u32
    WARP_EPOCH = 124  # u32
    BACK_EDGES = 128
    LAST_FENCE = 136  # u32: how many fences the block had passed with it
    FUNCTION = 144  # of what the warp does
    BYTES = 152


class Block:
    SHARED = 0  # the generic address of shared address 0
    SHARED_BYTES = 8
    LAUNCH = 16
    THREADS = 24
    STATUS = 32  # one byte per thread
    CACHES = 40
    SCHEDULER = 48  # the stack pointer of the scheduler
    ALIVE = 56  # u32: threads that have not returned
    COUNT = 60  # u32: threads
    NTID = 64  # 3 x u32
    CTAID = 76  # 3 x u32
    NCTAID = 88  # 3 x u32
    INDEX = 100  # u32
    STACKS = 104  # the addresses of the stacks that are free
    FREE_STACKS = 112  # u32: how many
    STACK_BYTES = 116  # u32
    LIVE_LANES = 120  # u32 per warp
    ERROR = 128  # u32: a code of `Error`
    ERROR_THREAD = 132  # u32
    ERROR_ADDRESS = 136
    ERROR_SITE = 144  # u32
    ERROR_BYTES = 148  # u32
    ERROR_DETAIL = 152
    EPOCH = 160  # u32: barriers passed and blocks begun
    SHARED_WRITTEN = 168  # a byte per byte of shared memory: whether it was written
    SHARED_ACCESSES = 176  # for races: a record per byte of shared memory
    FENCES = 184  # u32: of all threads
    DONE = 188  # u32
    BARRIERS = 192  # 16 x 32 bytes: arrived, expected, the last that came and its site, reduction (u32 each)
    UNWRITTEN_THREAD = 704  # u32: the first read of unwritten shared memory since the last barrier
    UNWRITTEN_SITE = 708  # u32
    UNWRITTEN_ADDRESS = 712
    UNWRITTEN_BYTES = 720  # u32: 0 if there is none
    BYTES = 728


class Launch:
    PARAMETERS = 0
    PARAMETER_BYTES = 8
    ALLOCATIONS = 16  # pairs of address and end, sorted
    ALLOCATION_COUNT = 24
    NEXT_BLOCK = 32  # u32
    BLOCKS = 36  # u32
    FAILED = 40  # u32
    GRID_ARRIVED = 44  # u32
    GRID_GENERATION = 48  # u32
    BLOCKS_DONE = 52  # u32
    VARIABLES = 56  # the addresses of the variables of the module
    HOST_CALL = 64  # a function of C: block, thread -> 0, or an error
    KERNEL = 72  # the kernel: a function of C that takes a thread
    DYNAMIC_SHARED = 80  # u32
    GRID_ID = 84  # u32
    CHECKS = 88  # u32: 1 for barriers, 2 for threads that have exited
    WORKSPACE = 96  # where cooperative groups of C++ count the blocks that wait for each other
    BYTES = 104


class Status:
    NEW = 0
    READY = 1
    YIELDED = 2
    BARRIER = 3
    WARP = 4
    ACTIVE = 5
    HOST = 6
    DONE = 7


class Error:
    OUT_OF_BOUNDS = 1
    MISALIGNED = 2
    STUCK = 3
    TRAP = 4
    NOT_IN_MASK = 5
    BAD_CALL = 6
    STACK_OVERFLOW = 7
    UNINITIALISED = 8
    RACE = 9
    DIVERGED_BARRIER = 10
    EXITED_BARRIER = 11
    HOST = 12
    BAD_BARRIER = 13
    READ_FROM_ABSENT_LANE = 14
    ENDLESS = 15


class Frame:
    """Of local memory whose address is taken, or of a call: on the thread's stack."""

    BELOW = 0  # the frame below
    ADDRESS = 8  # of local memory, or the instruction of the call
    SIZE = 16  # 0 for a call
    SHADOW = 24  # of memory, where reads of what is not written are checked
    BYTES = 32


FIRST_SHARED_ADDRESS = 1024
FIRST_FUNCTION_ADDRESS = 1 << 56
FUEL = 32
