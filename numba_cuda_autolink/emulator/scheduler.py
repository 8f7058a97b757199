# SPDX-License-Identifier: BSD-2-Clause
"""How the threads of a block take turns: native functions that start, suspend and resume threads, and barriers.

A worker runs one block after another (all of its share at once in a cooperative grid). A thread runs on a stack of its
own until it waits at a barrier or for other lanes, yields, calls the host, or returns; then the scheduler resumes the
next thread that is ready. A stack is given back when its thread returns, so kernels that never wait use one.
"""
# ruff: noqa: F821, SIM102
# mypy: disable-error-code="name-defined"

from __future__ import annotations

from .native import native, u8, u32, u64
from .state import FUEL, Block, Error, Launch, Status, Thread
from .switching import ARGUMENT_SLOT, FRAME_BYTES, FUNCTION_SLOT, RETURN_SLOT


@native
def status_of(block: u64, thread: u32) -> u8:
    return load_u8(load_u64(block, Block.STATUS), u64(thread))


@native
def set_status(block: u64, thread: u32, status: u8):
    store_u8(load_u64(block, Block.STATUS), u64(thread), status)


@native
def thread_at(block: u64, thread: u32) -> u64:
    return load_u64(block, Block.THREADS) + u64(thread) * Thread.BYTES


@native(inline=False)
def suspend(thread: u64):
    """Let other threads run; this returns when the scheduler resumes *thread*."""
    switch(thread + Thread.STACK_POINTER, load_u64(load_u64(thread, Thread.BLOCK), Block.SCHEDULER))


@native(inline=False)
def fail(thread: u64, error: u32, site: u32, address: u64, nbytes: u32):
    """Record the first error of the block; this does not return."""
    block = load_u64(thread, Thread.BLOCK)
    if error != Error.RACE:
        report_unwritten(block)
    record_error(block, error, load_u32(thread, Thread.INDEX), site, address, nbytes)
    suspend(thread)


@native
def record_error(block: u64, error: u32, thread: u32, site: u32, address: u64, nbytes: u32):
    if load_u32(block, Block.ERROR) == 0:
        store_u32(block, Block.ERROR, error)
        store_u32(block, Block.ERROR_THREAD, thread)
        store_u32(block, Block.ERROR_SITE, site)
        store_u64(block, Block.ERROR_ADDRESS, address)
        store_u32(block, Block.ERROR_BYTES, nbytes)


@native
def report_unwritten(block: u64):
    """Record the read of unwritten shared memory, if there is one."""
    nbytes = load_u32(block, Block.UNWRITTEN_BYTES)
    if nbytes != 0:
        site = load_u32(block, Block.UNWRITTEN_SITE)
        address = load_u64(block, Block.UNWRITTEN_ADDRESS)
        record_error(block, Error.UNINITIALISED, load_u32(block, Block.UNWRITTEN_THREAD), site, address, nbytes)


@native
def wait_as(thread: u64, status: u8):
    """Let other threads run until the scheduler does what *status* asks for."""
    set_status(load_u64(thread, Thread.BLOCK), load_u32(thread, Thread.INDEX), status)
    suspend(thread)


@native(inline=False)
def yield_thread(thread: u64):
    """Let other threads run, also those of other workers."""
    wait_as(thread, Status.YIELDED)


@native
def burn_fuel(thread: u64):
    """Yield once in a while; called where a loop may wait for another thread."""
    fuel = load_u32(thread, Thread.FUEL) - 1
    if fuel == 0:
        fuel = u32(FUEL)
        yield_thread(thread)
    store_u32(thread, Thread.FUEL, fuel)


@native
def count_back_edge(thread: u64, most: u64, site: u32):
    """Fail where a thread went back in its loops more than *most* times."""
    count = load_u64(thread, Thread.BACK_EDGES) + 1
    store_u64(thread, Thread.BACK_EDGES, count)
    if count > most:
        fail(thread, Error.ENDLESS, site, most, 0)


@native(inline=False)
def host_call(thread: u64, operation: u32, a: u64, b: u64, site: u32) -> u64:
    """Ask the host (printing, allocation), on the scheduler's stack."""
    store_u32(thread, Thread.OPERATION, operation)
    store_u64(thread, Thread.A, a)
    store_u64(thread, Thread.B, b)
    store_u32(thread, Thread.SITE, site)
    wait_as(thread, Status.HOST)
    return load_u64(thread, Thread.RESULT)


# Threads


@native(inline=False)
def prepare_stack(thread: u64, stack: u64, nbytes: u64, function: u64, argument: u64):
    """Give *thread* a new stack on which it begins in *function*. Tops differ, or all would meet in few cache sets."""
    top = (stack + nbytes - (u64(load_u32(thread, Thread.INDEX)) & 15) * 192) & ~u64(15)
    pointer = top - 64 - FRAME_BYTES
    store_u64(pointer, RETURN_SLOT, start_address())
    store_u64(pointer, FUNCTION_SLOT, function)
    store_u64(pointer, ARGUMENT_SLOT, argument)
    store_u64(thread, Thread.STACK_POINTER, pointer)
    store_u64(thread, Thread.STACK, stack)


@native
def set_indices(target: u64, number: u32, sizes: u64):
    """Store the three indices of *number* in a block or grid of the *sizes*."""
    nx = load_u32(sizes, 0)
    ny = load_u32(sizes, 4)
    rest = number // nx
    store_u32(target, 0, number - rest * nx)
    store_u32(target, 4, rest % ny)
    store_u32(target, 8, rest // ny)


@native
def prepare_thread(block: u64, thread: u64, index: u32):
    store_u32(thread, Thread.INDEX, index)
    set_indices(thread + Thread.TID, index, block + Block.NTID)
    store_u64(thread, Thread.BLOCK, block)
    store_u64(thread, Thread.CACHES, load_u64(block, Block.CACHES))
    store_u64(thread, Thread.SHARED, load_u64(block, Block.SHARED))
    store_u64(thread, Thread.LOCALS, 0)
    store_u64(thread, Thread.BACK_EDGES, 0)
    store_u32(thread, Thread.FUEL, FUEL)
    store_u32(thread, Thread.WARP_EPOCH, 0)


@native(inline=False)
def run_thread(thread: u64):
    call_address(load_u64(load_u64(load_u64(thread, Thread.BLOCK), Block.LAUNCH), Launch.KERNEL), thread)
    exit_thread(thread)


@native(inline=False)
def exit_thread(thread: u64):
    """End *thread*: what waits for it may go on. This does not return."""
    block = load_u64(thread, Thread.BLOCK)
    index = load_u32(thread, Thread.INDEX)
    warp = index >> 5
    set_status(block, index, Status.DONE)
    alive = load_u32(block, Block.ALIVE) - 1
    store_u32(block, Block.ALIVE, alive)
    lanes = load_u64(block, Block.LIVE_LANES)
    live = load_u32(lanes, u64(warp) * 4) & ~(u32(1) << (index & 31))
    store_u32(lanes, u64(warp) * 4, live)
    for lane in bits(live):
        if status_of(block, warp * 32 + lane) == Status.WARP:
            complete_warp(block, warp, thread_at(block, warp * 32 + lane))
    for barrier in range(u32(16)):
        complete_barrier(block, barrier, alive)
    free = load_u32(block, Block.FREE_STACKS)
    store_u64(load_u64(block, Block.STACKS), u64(free) * 8, load_u64(thread, Thread.STACK))
    store_u32(block, Block.FREE_STACKS, free + 1)
    suspend(thread)


@native(inline=False)
def resume(block: u64, index: u32):
    thread = thread_at(block, index)
    if status_of(block, index) == Status.NEW:
        prepare_thread(block, thread, index)
        free = load_u32(block, Block.FREE_STACKS) - 1
        store_u32(block, Block.FREE_STACKS, free)
        stack = load_u64(load_u64(block, Block.STACKS), u64(free) * 8)
        prepare_stack(thread, stack, u64(load_u32(block, Block.STACK_BYTES)), address_of_run_thread(), thread)
        set_status(block, index, Status.READY)
    switch(block + Block.SCHEDULER, load_u64(thread, Thread.STACK_POINTER))


# Barriers


@native
def complete_barrier(block: u64, barrier: u32, alive: u32):
    """Release the threads that wait at *barrier* if all that it waits for have come."""
    record = block + Block.BARRIERS + u64(barrier) * 32
    arrived = load_u32(record, 0)
    if arrived != 0:
        expected = load_u32(record, 4)
        if expected == 0:
            expected = alive
            checks = load_u32(load_u64(block, Block.LAUNCH), Launch.CHECKS)
            if checks & 2 == 2 and arrived >= alive and alive != load_u32(block, Block.COUNT):
                report_waiting(block, Error.EXITED_BARRIER)
        if arrived >= expected:
            release_barrier(block, barrier)


@native(inline=False)
def release_barrier(block: u64, barrier: u32):
    record = block + Block.BARRIERS + u64(barrier) * 32
    ones = load_u32(record, 16)
    arrived = load_u32(record, 0)
    for index in range(load_u32(block, Block.COUNT)):
        if status_of(block, index) == Status.BARRIER:
            thread = thread_at(block, index)
            if load_u32(thread, Thread.BARRIER) == barrier:
                store_u64(thread, Thread.RESULT, u64(ones))
                store_u64(thread, Thread.RESULT_2, u64(arrived))
                set_status(block, index, Status.READY)
    store_u32(record, 0, 0)
    store_u32(record, 16, 0)
    report_unwritten(block)
    store_u32(block, Block.EPOCH, load_u32(block, Block.EPOCH) + 1)


@native(inline=False)
def arrive_at_barrier(thread: u64, barrier: u32, count: u32, predicate: bool, waits: bool, aligned: bool, site: u32):
    """Arrive, and wait where *waits*; *count* is 0 where all threads of the block take part.

    Afterwards RESULT holds for how many threads *predicate* held, and RESULT_2 how many came.
    """
    block = load_u64(thread, Thread.BLOCK)
    if barrier > 15:
        fail(thread, Error.BAD_BARRIER, site, u64(barrier), 0)
    record = block + Block.BARRIERS + u64(barrier) * 32
    arrived = load_u32(record, 0)
    checks = load_u32(load_u64(block, Block.LAUNCH), Launch.CHECKS)
    if checks & 1 == 1 and aligned and count == 0:
        if arrived != 0 and load_u32(record, 12) != site:
            store_u64(block, Block.ERROR_DETAIL, load_u64(record, 8))
            fail(thread, Error.DIVERGED_BARRIER, site, u64(barrier), 0)
    arrived += 1
    store_u32(record, 0, arrived)
    store_u32(record, 4, count)
    index = load_u32(thread, Thread.INDEX)
    store_u32(record, 8, index)
    store_u32(record, 12, site)
    store_u32(record, 16, load_u32(record, 16) + u32(predicate))
    store_u32(thread, Thread.BARRIER, barrier)
    store_u32(thread, Thread.SITE, site)
    if waits:
        set_status(block, index, Status.BARRIER)
    complete_barrier(block, barrier, load_u32(block, Block.ALIVE))
    if waits and status_of(block, index) == Status.BARRIER:
        suspend(thread)


@native(inline=False)
def grid_sync(thread: u64, site: u32):
    """Wait until all threads of the grid have come."""
    block = load_u64(thread, Thread.BLOCK)
    launch = load_u64(block, Block.LAUNCH)
    arrive_at_barrier(thread, 15, 0, False, True, False, site)
    if load_u32(thread, Thread.INDEX) == 0:
        generation = load_u32(launch, Launch.GRID_GENERATION)
        arrived = atomic_add_u32(launch + Launch.GRID_ARRIVED, 1) + 1
        if arrived == load_u32(launch, Launch.BLOCKS):
            store_u32(launch, Launch.GRID_ARRIVED, 0)
            atomic_add_u32(launch + Launch.GRID_GENERATION, 1)
        while atomic_add_u32(launch + Launch.GRID_GENERATION, 0) == generation:
            ended = atomic_add_u32(launch + Launch.BLOCKS_DONE, 0)
            if ended != 0 and atomic_add_u32(launch + Launch.GRID_GENERATION, 0) == generation:
                fail(thread, Error.STUCK, site, 0, 0)
            yield_thread(thread)
    arrive_at_barrier(thread, 15, 0, False, True, False, site)


# Blocks


@native(inline=False)
def start_block(block: u64, index: u32):
    store_u32(block, Block.INDEX, index)
    set_indices(block + Block.CTAID, index, block + Block.NCTAID)
    count = load_u32(block, Block.COUNT)
    store_u32(block, Block.ALIVE, count)
    store_u32(block, Block.EPOCH, load_u32(block, Block.EPOCH) + 1)
    store_u32(block, Block.UNWRITTEN_BYTES, 0)
    store_u32(block, Block.DONE, 0)
    for thread in range(count):
        set_status(block, thread, Status.NEW)
        if load_u64(block, Block.SHARED_ACCESSES) != 0:
            store_u32(thread_at(block, thread), Thread.LAST_FENCE, 0)
    lanes = load_u64(block, Block.LIVE_LANES)
    for warp in range((count + 31) // 32):
        store_u32(lanes, u64(warp) * 4, ~u32(0) >> (32 - umin(count - warp * 32, 32)))
    for word in range(u64(64)):
        store_u64(block, u64(Block.BARRIERS) + word * 8, 0)
    shadow = load_u64(block, Block.SHARED_WRITTEN)
    if shadow != 0:
        for byte in range(load_u64(block, Block.SHARED_BYTES)):
            store_u8(shadow, byte, 0)


@native(inline=False)
def release_active(block: u64, first: u32, last: u32) -> bool:
    """No lane of a warp can run: those that wait in one instruction for the mask of active lanes get it."""
    for index in range(first, last):
        if status_of(block, index) == Status.ACTIVE:
            site = load_u32(thread_at(block, index), Thread.SITE)
            mask = u32(0)
            for other in range(first, last):
                if status_of(block, other) == Status.ACTIVE and load_u32(thread_at(block, other), Thread.SITE) == site:
                    mask |= u32(1) << (other & 31)
            for lane in bits(mask):
                store_u64(thread_at(block, first + lane), Thread.RESULT, u64(mask))
                set_status(block, first + lane, Status.READY)
            return True
    return False


@native(inline=False)
def run_warp(block: u64, first: u32, last: u32) -> bool:
    """Run the lanes of a warp until all wait; return whether any ran."""
    for index in range(first, last):
        if status_of(block, index) == Status.YIELDED:
            set_status(block, index, Status.READY)
    ran = False
    again = True
    while again:
        again = False
        for index in range(first, last):
            if status_of(block, index) <= Status.READY:
                again = True
                ran = True
                resume(block, index)
                if load_u32(block, Block.ERROR) != 0:
                    return True
                if status_of(block, index) == Status.HOST:
                    host = load_u64(load_u64(block, Block.LAUNCH), Launch.HOST_CALL)
                    if call_address(host, block, thread_at(block, index)) != 0:
                        record_error(block, Error.HOST, index, load_u32(thread_at(block, index), Thread.SITE), 0, 0)
                        return True
                    set_status(block, index, Status.READY)
        if not again:
            again = release_active(block, first, last)
    return ran


@native(inline=False)
def step_block(block: u64):
    """Let each thread of *block* run as far as it can, once; set DONE when all have returned."""
    count = load_u32(block, Block.COUNT)
    ran = False
    for warp in range((count + 31) // 32):
        ran = run_warp(block, warp * 32, umin(warp * 32 + 32, count)) or ran
        if load_u32(block, Block.ERROR) != 0:
            return
    if load_u32(block, Block.ALIVE) == 0:
        report_unwritten(block)
        store_u32(block, Block.DONE, 1)
    elif not ran:
        report_waiting(block, Error.STUCK)


@native(inline=False)
def report_waiting(block: u64, error: u32):
    """Record *error* for the first thread that has not returned."""
    for index in range(load_u32(block, Block.COUNT)):
        if status_of(block, index) != Status.DONE:
            record_error(block, error, index, load_u32(thread_at(block, index), Thread.SITE), 0, 0)
            return


@native
def next_block(launch: u64) -> u32:
    """Return the next block that nobody has taken, or the number of blocks."""
    blocks = load_u32(launch, Launch.BLOCKS)
    if load_u32(launch, Launch.FAILED) != 0 or load_u32(launch, Launch.NEXT_BLOCK) >= blocks:
        return blocks
    return atomic_add_u32(launch + Launch.NEXT_BLOCK, 1)


@native(inline=False)
def run_blocks(block: u64, count: u32):
    """The work of one worker whose threads may wait: *count* blocks, one after another in memory, take turns."""
    launch = load_u64(block, Block.LAUNCH)
    running = True
    while running:
        running = False
        for k in range(count):
            one = block + u64(k) * Block.BYTES
            if load_u32(one, Block.DONE) != 0:
                index = next_block(launch)
                if index < load_u32(launch, Launch.BLOCKS):
                    start_block(one, index)
            if load_u32(one, Block.DONE) == 0:
                running = True
                step_block(one)
                if load_u32(one, Block.ERROR) != 0:
                    store_u32(launch, Launch.FAILED, 1)
                if load_u32(launch, Launch.FAILED) != 0:
                    return
                if load_u32(one, Block.DONE) != 0:
                    atomic_add_u32(launch + Launch.BLOCKS_DONE, 1)


@native(inline=False)
def run_direct_blocks(block: u64):
    """The work of one worker whose threads never wait: they run one after another on one stack."""
    thread = load_u64(block, Block.THREADS)
    launch = load_u64(block, Block.LAUNCH)
    kernel = load_u64(launch, Launch.KERNEL)
    stack = load_u64(thread, Thread.STACK)
    nx = load_u32(block, Block.NTID)
    ny = load_u32(block, Block.NTID + 4)
    nz = load_u32(block, Block.NTID + 8)
    index = next_block(launch)
    while index < load_u32(launch, Launch.BLOCKS):
        start_block(block, index)
        prepare_thread(block, thread, 0)
        store_u64(thread, Thread.STACK, stack)
        number = u32(0)
        for z in range(nz):
            store_u32(thread, Thread.TID + 8, z)
            for y in range(ny):
                store_u32(thread, Thread.TID + 4, y)
                for x in range(nx):
                    store_u32(thread, Thread.TID, x)
                    store_u32(thread, Thread.INDEX, number)
                    store_u64(thread, Thread.BACK_EDGES, 0)
                    number += 1
                    call_address(kernel, thread)
        report_unwritten(block)
        if load_u32(block, Block.ERROR) != 0:
            suspend(thread)
        index = next_block(launch)
    suspend(thread)


@native(inline=False)
def run_direct(block: u64, count: u32):
    """Run `run_direct_blocks` on a stack of its own, so that an error can leave it at any depth."""
    thread = load_u64(block, Block.THREADS)
    store_u64(thread, Thread.BLOCK, block)
    store_u32(thread, Thread.INDEX, 0)
    stack = load_u64(load_u64(block, Block.STACKS), 0)
    prepare_stack(thread, stack, u64(load_u32(block, Block.STACK_BYTES)), address_of_run_direct_blocks(), block)
    switch(block + Block.SCHEDULER, load_u64(thread, Thread.STACK_POINTER))
    if load_u32(block, Block.ERROR) != 0:
        store_u32(load_u64(block, Block.LAUNCH), Launch.FAILED, 1)
