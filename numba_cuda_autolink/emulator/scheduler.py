# SPDX-License-Identifier: BSD-2-Clause
"""How the threads of a block take turns: native functions that start, suspend and resume threads, and barriers.

A worker runs one block after another (all of its share at once in a cooperative grid). A thread runs on a stack of its
own until it waits at a barrier or for other lanes, yields, calls the host, or returns; then the scheduler resumes the
next thread that is ready. Where threads never wait, the first one runs them all.
"""
# ruff: noqa: F821, SIM102
# mypy: disable-error-code="name-defined, index"

from __future__ import annotations

from .native import native, u32, u64
from .state import Block, Error, Frame, Status, Thread
from .switching import ARGUMENT_SLOT, FRAME_BYTES, FUNCTION_SLOT, RETURN_SLOT


@native(inline=False)
def suspend(thread: Thread):
    """Let other threads run; this returns when the scheduler resumes *thread*."""
    switch(address_of(thread.stack_pointer), thread.block.scheduler)


@native(inline=False)
def fail(thread: Thread, error: u32, site: u32, address: u64, nbytes: u32):
    """Record the first error of the block; this does not return."""
    record_error(thread.block, error, thread.index, site, address, nbytes)
    suspend(thread)


@native()
def record_error(block: Block, error: u32, thread: u32, site: u32, address: u64, nbytes: u32):
    if block.error == 0:
        block.error = error
        block.error_thread = thread
        block.error_site = site
        block.error_address = address
        block.error_bytes = nbytes


@native(inline=False)
def yield_thread(thread: Thread):
    """Let other threads run, also those of other workers."""
    thread.status = Status.YIELDED
    suspend(thread)


@native()
def count_back_edge(thread: Thread, most: u64, between: u64, site: u32):
    """Fail where a thread went back in its loops more than *most* times; yield where no bit of *between* is in their
    number."""
    thread.back_edges += 1
    if thread.back_edges > most:
        fail(thread, Error.ENDLESS, site, most, 0)
    if thread.back_edges & between == 0:
        yield_thread(thread)


@native(inline=False)
def host_call(thread: Thread, operation: u32, arguments: u64, site: u32) -> u64:
    """Ask the host (printing, allocation), on the scheduler's stack; *arguments* is the address of integers."""
    thread.operation = operation
    thread.a = arguments
    thread.site = site
    thread.status = Status.HOST
    suspend(thread)
    return thread.result


# Threads


@native()
def set_indices(target: u64, number: u32, sizes: u64):
    """Store the three indices of *number* in a block or grid of the *sizes*."""
    nx = load_u32(sizes, 0)
    ny = load_u32(sizes, 4)
    rest = number // nx
    store_u32(target, 0, number - rest * nx)
    store_u32(target, 4, rest % ny)
    store_u32(target, 8, rest // ny)


@native()
def prepare_thread(block: Block, thread: Thread, index: u32):
    """Let *thread* begin in `run_thread`, on its stack. Tops differ, or all would meet in few cache sets."""
    thread.index = index
    set_indices(address_of(thread.tid), index, address_of(block.ntid))
    thread.block = block
    thread.locals = Frame(0)
    thread.back_edges = 0
    thread.warp_epoch = 0
    thread.stack = block.stacks + u64(index) * u64(block.stack_bytes)
    top = (thread.stack + u64(block.stack_bytes) - (u64(index) & 15) * 192) & ~u64(15)
    pointer = top - 64 - FRAME_BYTES
    store_u64(pointer, RETURN_SLOT, start_address())
    store_u64(pointer, FUNCTION_SLOT, address_of(run_thread))
    store_u64(pointer, ARGUMENT_SLOT, u64(thread))
    thread.stack_pointer = pointer


@native(inline=False)
def run_thread(thread: Thread):
    """Run the kernel: where threads never wait, on the only stack of a block, for all of them, one after another."""
    block = thread.block
    kernel = block.launch.kernel
    if block.count != 1:
        call_address(kernel, thread)
        exit_thread(thread)
    tid = address_of(thread.tid)
    ntid = address_of(block.ntid)
    number = u32(0)
    for z in range(load_u32(ntid, 8)):
        store_u32(tid, 8, z)
        for y in range(load_u32(ntid, 4)):
            store_u32(tid, 4, y)
            for x in range(load_u32(ntid, 0)):
                store_u32(tid, 0, x)
                thread.index = number
                thread.back_edges = 0
                number += 1
                call_address(kernel, thread)
    thread.index = 0
    exit_thread(thread)


@native(inline=False)
def exit_thread(thread: Thread):
    """End *thread*: what waits for it may go on. This does not return."""
    block = thread.block
    warp = thread.index >> 5
    thread.status = Status.DONE
    block.alive -= 1
    live = load_u32(block.live_lanes, u64(warp) * 4) & ~(u32(1) << (thread.index & 31))
    store_u32(block.live_lanes, u64(warp) * 4, live)
    for lane in bits(live):
        if block.threads[warp * 32 + lane].status == Status.WARP:
            complete_warp(block.threads[warp * 32 + lane])
    for number in range(u32(16)):
        complete_barrier(block, number)
    suspend(thread)


@native(inline=False)
def resume(block: Block, index: u32):
    thread = block.threads[index]
    if thread.status == Status.NEW:
        prepare_thread(block, thread, index)
    thread.status = Status.READY
    switch(address_of(block.scheduler), thread.stack_pointer)


# Barriers


@native()
def complete_barrier(block: Block, number: u32):
    """Release the threads that wait at the barrier *number* if all that it waits for have come."""
    barrier = block.barriers[number]
    expected = barrier.expected if barrier.expected != 0 else block.alive
    if barrier.arrived != 0 and barrier.arrived >= expected:
        release_barrier(block, number)


@native(inline=False)
def release_barrier(block: Block, number: u32):
    barrier = block.barriers[number]
    if barrier.expected == 0 and block.launch.checks & 2 == 2 and block.alive != block.count:
        report_waiting(block, Error.EXITED_BARRIER)
    for index in range(block.count):
        thread = block.threads[index]
        if thread.status == Status.BARRIER and thread.barrier == number:
            thread.result = u64(barrier.ones)
            thread.result_2 = u64(barrier.arrived)
            thread.status = Status.READY
    barrier.arrived = 0
    barrier.ones = 0
    block.epoch += 1


@native(inline=False)
def arrive_at_barrier(thread: Thread, number: u32, count: u32, predicate: bool, waits: bool, aligned: bool, site: u32):
    """Arrive, and wait where *waits*; *count* is 0 where all threads of the block take part.

    Afterwards *result* holds for how many threads *predicate* held, and *result_2* how many came.
    """
    block = thread.block
    if number > 15:
        fail(thread, Error.BAD_BARRIER, site, u64(number), 0)
    barrier = block.barriers[number]
    if block.launch.checks & 1 == 1 and aligned and count == 0:
        if barrier.arrived != 0 and barrier.site != site:
            block.other_thread = barrier.last
            block.other_site = barrier.site
            fail(thread, Error.DIVERGED_BARRIER, site, u64(number), 0)
    barrier.arrived += 1
    barrier.expected = count
    barrier.last = thread.index
    barrier.site = site
    barrier.ones += u32(predicate)
    thread.barrier = number
    thread.site = site
    if waits:
        thread.status = Status.BARRIER
    complete_barrier(block, number)
    if waits and thread.status == Status.BARRIER:
        suspend(thread)


@native(inline=False)
def grid_sync(thread: Thread, site: u32):
    """Wait until all threads of the grid have come."""
    launch = thread.block.launch
    arrive_at_barrier(thread, 15, 0, False, True, False, site)
    if thread.index == 0:
        generation = launch.grid_generation
        if atomic_add(launch.grid_arrived, 1) + 1 == launch.blocks:
            launch.grid_arrived = 0
            atomic_add(launch.grid_generation, 1)
        while atomic_add(launch.grid_generation, 0) == generation:
            if atomic_add(launch.blocks_done, 0) != 0 and atomic_add(launch.grid_generation, 0) == generation:
                fail(thread, Error.STUCK, site, 0, 0)
            yield_thread(thread)
    arrive_at_barrier(thread, 15, 0, False, True, False, site)


# Blocks


@native(inline=False)
def start_block(block: Block, index: u32):
    block.index = index
    set_indices(address_of(block.ctaid), index, address_of(block.nctaid))
    block.alive = block.count
    block.epoch += 1
    for thread in range(block.count):
        block.threads[thread].status = Status.NEW
    for warp in range((block.count + 31) // 32):
        store_u32(block.live_lanes, u64(warp) * 4, ~u32(0) >> (32 - umin(block.count - warp * 32, 32)))
    for number in range(u32(16)):
        block.barriers[number].arrived = 0
        block.barriers[number].ones = 0
    if block.shared_written != 0:
        for byte in range(block.shared_bytes):
            store_u8(block.shared_written, byte, 0)


@native(inline=False)
def release_active(block: Block, first: u32, last: u32) -> bool:
    """No lane of a warp can run: those that wait in one instruction for the mask of active lanes get it."""
    for index in range(first, last):
        if block.threads[index].status == Status.ACTIVE:
            mask = u32(0)
            for other in range(first, last):
                thread = block.threads[other]
                if thread.status == Status.ACTIVE and thread.site == block.threads[index].site:
                    mask |= u32(1) << (other & 31)
            for lane in bits(mask):
                block.threads[first + lane].result = u64(mask)
                block.threads[first + lane].status = Status.READY
            return True
    return False


@native(inline=False)
def run_warp(block: Block, first: u32, last: u32) -> bool:
    """Run the lanes of a warp until all wait; return whether any ran."""
    ran = False
    again = True
    runnable = u32(Status.YIELDED)
    while again:
        again = False
        for index in range(first, last):
            thread = block.threads[index]
            if thread.status <= runnable:
                again = True
                ran = True
                resume(block, index)
                if block.error == 0 and thread.status == Status.HOST:
                    thread.status = Status.READY
                    if call_address(block.launch.host_call, block, thread) != 0:
                        record_error(block, Error.HOST, index, thread.site, 0, 0)
                if block.error != 0 or block.launch.failed != 0:
                    return True
        runnable = u32(Status.READY)
        if not again:
            again = release_active(block, first, last)
    return ran


@native(inline=False)
def step_block(block: Block):
    """Let each thread of *block* run as far as it can, once."""
    ran = False
    for warp in range((block.count + 31) // 32):
        ran = run_warp(block, warp * 32, umin(warp * 32 + 32, block.count)) or ran
        if block.error != 0 or block.launch.failed != 0:
            return
    if block.alive != 0 and not ran:
        report_waiting(block, Error.STUCK)


@native(inline=False)
def report_waiting(block: Block, error: u32):
    """Record *error* for the first thread that has not returned, and for one that waits elsewhere, or itself."""
    for index in range(block.count):
        thread = block.threads[index]
        if thread.status != Status.DONE:
            if block.error == 0:
                record_error(block, error, index, thread.site, 0, 0)
                block.other_thread = index
            elif thread.site != block.error_site:
                block.other_thread = index
                block.other_site = thread.site
                return


@native(inline=False)
def run_blocks(block: Block, count: u32):
    """The work of one worker: *count* blocks, one after another in memory, take turns."""
    launch = block.launch
    running = True
    while running:
        running = False
        for k in range(count):
            one = block[k]
            if one.alive == 0 and launch.failed == 0 and launch.next_block < launch.blocks:
                index = atomic_add(launch.next_block, 1)
                if index < launch.blocks:
                    start_block(one, index)
            if one.alive != 0:
                running = True
                step_block(one)
                if one.error != 0:
                    launch.failed = 1
                if launch.failed != 0:
                    return
                if one.alive == 0:
                    atomic_add(launch.blocks_done, 1)
