# SPDX-License-Identifier: BSD-2-Clause
"""Launches: the records of a grid, workers that share its blocks, and what comes of an error."""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from . import memory
from .access import ACCESS_BYTES
from .compiler import NativeCode
from .diagnosis import Failure, Region, Size, describe_failure, list_frames, readable_name
from .errors import LaunchSizeError
from .host_services import HostServices
from .program import Program, parameter_offsets
from .state import FIRST_SHARED_ADDRESS, Block, Launch, Thread

_FEW_THREADS = 2048
_RESIDENT_BLOCKS, _RESIDENT_THREADS = 256, 32768
_DIRECT_STACK_BYTES = 1 << 20
_WORKSPACE_BYTES = 32  # behind the parameters
_grid_ids = itertools.count(1)
_HOST_CALL = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)


class _Arenas:
    """Memory of workers that have ended, for the next: pages that were touched are not made again."""

    _KEPT, _LARGEST = 8, 128 << 20

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.kept: list[np.ndarray] = []

    def take(self, nbytes: int) -> np.ndarray:
        with self.lock:
            for k, arena in enumerate(self.kept):
                if nbytes <= arena.nbytes <= 2 * nbytes:
                    return self.kept.pop(k)
        return np.empty(nbytes, np.uint8)

    def give_back(self, arena: np.ndarray) -> None:
        if arena.nbytes > self._LARGEST:
            return
        with self.lock:
            self.kept = [*self.kept[1 - self._KEPT :], arena]


_arenas = _Arenas()


class _Worker:
    """The memory with which one core runs blocks of *threads* threads; *resident* blocks at a time."""

    def __init__(self, threads: int, shared: int, program: Program, resident: int):
        stack_bytes = program.stack_bytes if program.suspends else max(_DIRECT_STACK_BYTES, program.stack_bytes)
        stacks = threads if program.suspends else 1
        shadow_written = shared if program.checks.initialised else 0
        shadow_races = shared * ACCESS_BYTES if program.checks.races else 0
        per_block = (
            ("threads", threads * Thread.BYTES),
            ("status", threads + 32),
            ("lanes", 4 * (threads // 32 + 1)),
            ("free", 8 * stacks),
            ("stacks", stacks * stack_bytes),
            ("shared", shared + 64),
            ("written", shadow_written),
            ("races", shadow_races),
        )
        offsets, end = {}, 0
        for name, nbytes in per_block:
            offsets[name] = end
            end += -(-nbytes // 1024) * 1024 if nbytes else 0
        self.blocks = np.zeros(Block.BYTES * resident, np.uint8)
        self.caches = np.zeros(2 * program.slot_count + 2, np.uint64)
        self.arena = _arenas.take(end * resident + 1024)
        base = -(-self.arena.ctypes.data // 1024) * 1024
        for k in range(resident):
            record = self.blocks[k * Block.BYTES : (k + 1) * Block.BYTES]
            at = {name: base + end * k + offset for name, offset in offsets.items()}
            _put64(record, Block.SHARED, at["shared"] - FIRST_SHARED_ADDRESS)
            _put64(record, Block.SHARED_BYTES, shared)
            _put64(record, Block.THREADS, at["threads"])
            _put64(record, Block.STATUS, at["status"])
            _put64(record, Block.CACHES, self.caches.ctypes.data)
            _put64(record, Block.LIVE_LANES, at["lanes"])
            _put64(record, Block.STACKS, at["free"])
            _put32(record, Block.FREE_STACKS, stacks)
            _put32(record, Block.STACK_BYTES, stack_bytes)
            _put64(record, Block.SHARED_WRITTEN, at["written"] if shadow_written else 0)
            _put64(record, Block.SHARED_ACCESSES, at["races"] if shadow_races else 0)
            ctypes.memset(at["races"], 0, shadow_races)
            free = np.ctypeslib.as_array((ctypes.c_uint64 * stacks).from_address(at["free"]))
            free[:] = np.arange(stacks - 1, -1, -1, dtype=np.uint64) * np.uint64(stack_bytes) + np.uint64(at["stacks"])

    @property
    def address(self) -> int:
        return int(self.blocks.ctypes.data)

    def prepare(self, launch: np.ndarray, number: int, count: int, grid: Size, block: Size) -> None:
        """Fill the records of its blocks for a *launch*, as the worker *number* of *count*."""
        for k, start in enumerate(range(0, len(self.blocks), Block.BYTES)):
            one = self.blocks[start : start + Block.BYTES]
            _put64(one, Block.LAUNCH, launch.ctypes.data)
            _put32(one, Block.COUNT, block[0] * block[1] * block[2])
            _put32(one, Block.INDEX, number + k * count)
            for axis in range(3):
                _put32(one, Block.NTID + 4 * axis, block[axis])
                _put32(one, Block.NCTAID + 4 * axis, grid[axis])


def _put64(record: np.ndarray, offset: int, value: int) -> None:
    record[offset : offset + 8].view(np.uint64)[0] = value


def _put32(record: np.ndarray, offset: int, value: int) -> None:
    record[offset : offset + 4].view(np.uint32)[0] = value


def _get32(record: np.ndarray, offset: int) -> int:
    return int(record[offset : offset + 4].view(np.uint32)[0])


def _get64(record: np.ndarray, offset: int) -> int:
    return int(record[offset : offset + 8].view(np.uint64)[0])


def _core_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Pool:
    """The threads of the process that run blocks; a forked child makes its own."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.executor: ThreadPoolExecutor | None = None
        self.process = 0

    def get(self) -> ThreadPoolExecutor:
        with self.lock:
            if self.executor is None or self.process != os.getpid():
                self.executor = ThreadPoolExecutor(_core_count(), thread_name_prefix="emulator")
                self.process = os.getpid()
            return self.executor


_pool = _Pool()


def launch(
    code: NativeCode,
    program: Program,
    variables: np.ndarray,
    grid: Size,
    block: Size,
    arguments: bytes,
    shared: int,
    cooperative: bool,
) -> None:
    """Run a kernel; raise `EmulationError` for the first error of any of its threads."""
    _check_sizes(program, grid, block, arguments)
    threads, blocks = block[0] * block[1] * block[2], grid[0] * grid[1] * grid[2]
    if not blocks:
        return
    shared_bytes = max(16, -(-(program.static_shared_bytes + shared) // 16) * 16)
    # Blocks may wait for each other in loops: GPUs hold small grids at once, and so do workers.
    cooperative |= program.spins and blocks <= _RESIDENT_BLOCKS and blocks * threads <= _RESIDENT_THREADS
    few = blocks * threads < _FEW_THREADS and not cooperative
    count = 1 if few else min(_core_count(), blocks)
    resident = [-(-(blocks - k) // count) for k in range(count)] if cooperative else [1] * count
    workers = [_Worker(threads, shared_bytes, program, number) for number in resident]
    parameters = np.zeros(-(-len(arguments) // 16) * 16 + _WORKSPACE_BYTES, np.uint8)
    parameters[: len(arguments)] = np.frombuffer(arguments, np.uint8)
    table = memory.pack_table()
    services = HostServices()
    host_call = _HOST_CALL(services.serve)
    record = np.zeros(Launch.BYTES, np.uint8)
    for field, value in (
        (Launch.PARAMETERS, parameters.ctypes.data),
        (Launch.PARAMETER_BYTES, parameters.nbytes),
        (Launch.ALLOCATIONS, table.ctypes.data),
        (Launch.ALLOCATION_COUNT, len(table)),
        (Launch.VARIABLES, variables.ctypes.data),
        (Launch.HOST_CALL, ctypes.cast(host_call, ctypes.c_void_p).value or 0),
        (Launch.KERNEL, code.addresses["kernel"]),
        (Launch.WORKSPACE, parameters.ctypes.data + parameters.nbytes - _WORKSPACE_BYTES),
    ):
        _put64(record, field, value)
    for field, value in (
        (Launch.BLOCKS, blocks),
        (Launch.DYNAMIC_SHARED, shared),
        (Launch.GRID_ID, next(_grid_ids) & 0xFFFFFFFF),
        (Launch.CHECKS, program.checks.flags),
    ):
        _put32(record, field, value)
    services.attach(record, [worker.caches for worker in workers])
    for number, worker in enumerate(workers):
        worker.prepare(record, number, count, grid, block)
    jobs = [_job(code, program, worker, number, cooperative) for worker, number in zip(workers, resident, strict=True)]
    _run(jobs, record, interruptible=program.spins)
    for worker in workers:
        _arenas.give_back(worker.arena)
    sys.stdout.flush() if services.has_printed else None
    if services.error is not None:
        raise services.error
    _raise_first_error(program, workers, grid, block, arguments)


def _job(code: NativeCode, program: Program, worker: _Worker, resident: int, cooperative: bool):
    if cooperative and program.suspends:
        function = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint32)(code.addresses["run_resident_blocks"])
        return lambda: function(worker.address, resident)
    name = "run_blocks" if program.suspends else "run_direct"
    direct = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(code.addresses[name])
    return lambda: direct(worker.address)


def _run(jobs: list, record: np.ndarray, *, interruptible: bool) -> None:
    if len(jobs) == 1 and not interruptible:
        jobs[0]()
        return
    futures = [_pool.get().submit(job) for job in jobs]
    try:
        for future in futures:
            future.result()
    except BaseException:
        _put32(record, Launch.FAILED, 1)
        for future in futures:
            future.exception()
        raise


def _check_sizes(program: Program, grid: Size, block: Size, arguments: bytes) -> None:
    threads = block[0] * block[1] * block[2]
    limits, nbytes = program.kernel.directives, parameter_offsets(program.kernel)[1]
    name, where = readable_name(program.kernel.name), f"; the block is {block}"
    cluster, most, exact = (limits.get(word) for word in ("reqnctapercluster", "maxntid", "reqntid"))
    why = ""
    if min(block) < 1 or min(grid) < 0 or threads > 1024 or block[2] > 64:
        why = f"A block of {threads} threads cannot be launched: at most 1024{where}"
    elif cluster not in (None, (1, 1, 1)):
        why = f"{name} runs in clusters of {cluster} blocks; the emulator has no clusters"
    elif most is not None and threads > most[0] * most[1] * most[2]:
        why = f"{name} is compiled for blocks of at most {most} threads (.maxntid){where}"
    elif exact is not None and tuple(block) != exact:
        why = f"{name} is compiled for blocks of exactly {exact} threads (.reqntid){where}"
    elif len(arguments) != nbytes:
        why = f"{name} takes {nbytes} bytes of parameters; {len(arguments)} were passed"
    if why:
        raise LaunchSizeError(why, kernel=program.kernel.name)


def _raise_first_error(program: Program, workers: list[_Worker], grid: Size, block: Size, arguments: bytes) -> None:
    for worker in workers:
        for start in range(0, len(worker.blocks), Block.BYTES):
            one = worker.blocks[start : start + Block.BYTES]
            code = _get32(one, Block.ERROR)
            if code:
                number = _get32(one, Block.ERROR_THREAD)
                thread = _get64(one, Block.THREADS) + Thread.BYTES * number * program.suspends
                shared = _get64(one, Block.SHARED)
                failure = Failure(
                    code,
                    _get32(one, Block.INDEX),
                    number,
                    _get32(one, Block.ERROR_SITE),
                    _get64(one, Block.ERROR_ADDRESS),
                    _get32(one, Block.ERROR_BYTES),
                    _get64(one, Block.ERROR_DETAIL),
                    Region(shared + FIRST_SHARED_ADDRESS, _get64(one, Block.SHARED_BYTES)),
                    Region(memory.word_at(thread + Thread.STACK), _get32(one, Block.STACK_BYTES)),
                    list_frames(memory.word_at(thread + Thread.LOCALS)),
                    tuple(Region(shared + at, nbytes, name) for name, at, nbytes in program.list_shared_variables()),
                )
                raise describe_failure(failure, program, grid, block, arguments)
