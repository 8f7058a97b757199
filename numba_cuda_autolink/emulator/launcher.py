# SPDX-License-Identifier: BSD-2-Clause
"""Launches: the records of a grid, workers that share its blocks, and what comes of an error."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import itertools
import math
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..launch_limits import MOST_BLOCKS, MOST_THREADS
from ..mangled_names import short_name
from ..printable_texts import number_of
from . import memory
from .access import ACCESS_BYTES
from .compiler import NativeCode
from .diagnosis import Size, describe_failure
from .errors import LaunchSizeError
from .host_services import HostServices
from .program import Program
from .state import Barrier, Block, Facts, Launch, Thread

_FEW_THREADS = 2048
_RESIDENT_BLOCKS, _RESIDENT_THREADS = 256, 32768
_WORKSPACE_BYTES = 32  # behind the parameters
_GUARD_BYTES = 256  # before them: no array that a kernel exceeds ends at them
_grid_ids = itertools.count(1)
_HOST_CALL = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)


# Memory of workers that have ended, for the next: its pages are there already
_arenas: collections.deque[np.ndarray] = collections.deque(maxlen=8)
_LARGEST_ARENA = 128 << 20


def _take_arena(nbytes: int) -> np.ndarray:
    with contextlib.suppress(IndexError):
        arena = _arenas.pop()
        if arena.nbytes >= nbytes:
            return arena
    return np.empty(nbytes, np.uint8)


class _Worker:
    """The memory with which one core runs blocks of a *launch*, *resident* blocks at a time."""

    def __init__(
        self, launch: int, grid: Size, block: Size, shared: int, program: Program, facts: Facts, resident: int
    ):
        threads = math.prod(block)
        stacks, stack_bytes = threads if facts.suspends else 1, program.stack_bytes
        areas = {
            "threads": threads * Thread.SIZE,
            "barriers": 16 * Barrier.SIZE,
            "live_lanes": 4 * (threads // 32 + 1),
            "stacks": stacks * stack_bytes,
            "shared": shared + 64,
            "shared_written": shared * program.checks.initialised,
            "shared_accesses": shared * ACCESS_BYTES * program.checks.races,
        }
        ends = list(itertools.accumulate(-(-nbytes // 1024) * 1024 for nbytes in areas.values()))
        self.blocks = (Block * resident)()
        self.caches = np.zeros(2 * facts.slot_count + 2, np.uint64)
        self.arena = _take_arena(ends[-1] * resident + 1024)
        base = -(-self.arena.ctypes.data // 1024) * 1024
        for k in range(resident):
            begins = (base + ends[-1] * k + offset for offset in (0, *ends))
            at = {field: begin if nbytes else 0 for (field, nbytes), begin in zip(areas.items(), begins, strict=False)}
            for area in ("threads", "shared_accesses"):  # which may be those of an earlier launch
                ctypes.memset(at[area], 0, areas[area])
            at |= {"launch": launch, "caches": self.caches.ctypes.data}
            numbers = {"shared_bytes": shared, "stack_bytes": stack_bytes, "count": stacks}
            self.blocks[k] = Block(**at, **numbers, ntid=tuple(block), nctaid=tuple(grid))


def _core_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the threads of *process* that run blocks; a forked child makes its own."""
    return ThreadPoolExecutor(_core_count(), thread_name_prefix="emulator")


def launch(
    code: NativeCode, program: Program, grid: Size, block: Size, arguments: bytes, shared: int, cooperative: bool
) -> None:
    """Run a kernel; raise `EmulationError` for the first error of any of its threads."""
    _check_sizes(program, grid, block, arguments)
    threads, blocks = math.prod(block), math.prod(grid)
    shared_bytes = program.static_shared_bytes + shared
    # Blocks may wait for each other in loops: GPUs hold small grids at once, and so do workers.
    cooperative |= bool(code.facts.spins) and blocks <= _RESIDENT_BLOCKS and blocks * threads <= _RESIDENT_THREADS
    few = blocks * threads < _FEW_THREADS and not cooperative
    count = 1 if few else min(_core_count(), blocks)
    resident = [-(-(blocks - k) // count) for k in range(count)] if cooperative else [1] * count
    record = Launch(blocks=blocks, dynamic_shared=shared, grid_id=next(_grid_ids) & 0xFFFFFFFF)
    at = ctypes.addressof(record)
    workers = [_Worker(at, grid, block, shared_bytes, program, code.facts, number) for number in resident]
    parameters = np.zeros(_GUARD_BYTES - (-len(arguments) // 16) * 16 + _WORKSPACE_BYTES, np.uint8)[_GUARD_BYTES:]
    parameters[: len(arguments)] = np.frombuffer(arguments, np.uint8)
    table = memory.pack_table()
    services = HostServices(record, [worker.caches for worker in workers])
    host_call = _HOST_CALL(services.serve)
    record.parameters, record.parameter_bytes = parameters.ctypes.data, parameters.nbytes
    record.workspace = record.parameters + parameters.nbytes - _WORKSPACE_BYTES
    record.allocations, record.allocation_count = table.ctypes.data, len(table)
    record.variables, record.kernel = program.variables.ctypes.data, code.kernel
    record.host_call = ctypes.cast(host_call, ctypes.c_void_p).value or 0
    record.checks = program.checks.barriers | program.checks.exited << 1
    function = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint32)(code.run_blocks)
    jobs = [functools.partial(function, ctypes.addressof(w.blocks), len(w.blocks)) for w in workers]
    _run(jobs, record, interruptible=bool(code.facts.loops))
    for worker in workers:
        if worker.arena.nbytes <= _LARGEST_ARENA:
            _arenas.append(worker.arena)
    sys.stdout.flush() if services.has_printed else None
    if services.error is not None:
        raise services.error
    for failed in (one for worker in workers for one in worker.blocks if one.error):
        raise describe_failure(failed, program, grid, block, arguments, services.assertions)


def _run(jobs: list, record: Launch, *, interruptible: bool) -> None:
    if len(jobs) == 1 and not interruptible:
        jobs[0]()
        return
    futures = [_pool(os.getpid()).submit(job) for job in jobs]
    try:
        for future in futures:
            future.result()
    except BaseException:
        record.failed = 1
        for future in futures:
            future.exception()
        raise


def _check_sizes(program: Program, grid: Size, block: Size, arguments: bytes) -> None:
    threads = math.prod(block)
    limits, nbytes = program.kernel.directives, program.kernel.parameter_offsets[1]
    name, where = short_name(program.kernel.name), f"; the block is {block}"
    cluster, most, exact = (limits.get(word) for word in ("reqnctapercluster", "maxntid", "reqntid"))
    why = ""
    sizes = zip((*grid, *block), (*MOST_BLOCKS, *MOST_THREADS), strict=True)
    if threads > MOST_THREADS[0] or not all(1 <= size <= most for size, most in sizes):
        why = f"{name} cannot be launched with {grid} blocks of {block} threads"
        why += "\n  what to do: launch at least one block of 1 to 1024 threads, and more blocks for more threads"
        why += f"\n  limits: {MOST_BLOCKS} blocks of {MOST_THREADS} threads"
    elif cluster not in (None, (1, 1, 1)):
        why = f"{name} runs in clusters of {cluster} blocks; the emulator has no clusters"
    elif most is not None and threads > most[0] * most[1] * most[2]:
        why = f"{name} is compiled for blocks of at most {most} threads (.maxntid){where}"
    elif exact is not None and tuple(block) != exact:
        why = f"{name} is compiled for blocks of exactly {exact} threads (.reqntid){where}"
    elif len(arguments) != nbytes:
        why = f"{name} takes {number_of(nbytes, 'byte')} of parameters; {len(arguments)} were passed"
    if why:
        raise LaunchSizeError(why, kernel=program.kernel.name)
