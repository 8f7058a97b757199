# SPDX-License-Identifier: BSD-2-Clause
"""Exchange values between the threads of a block or of a warp, in the simulator."""

from __future__ import annotations

import threading

from numba import cuda
from numba.cuda import autolink

_TIMEOUT = 60  # seconds


class Meeting(autolink.DeviceCallable):
    """``rank, values = meeting(value)``: the values of all threads, in order, and this thread's rank among them.

    Blocks run one after another in the simulator, so one `Meeting` serves all blocks of a kernel.
    """

    def __init__(self, block_dim, threads_in_warp=None):
        self.block_dim = block_dim
        threads = block_dim[0] * block_dim[1] * block_dim[2]
        self.members = threads_in_warp or threads
        self.values = [None] * threads
        self.of_block = threads_in_warp is None
        self.barriers: dict[int, threading.Barrier] = {}
        self.lock = threading.Lock()

    def __call__(self, value):
        block_dim = (cuda.blockDim.x, cuda.blockDim.y, cuda.blockDim.z)
        if block_dim != self.block_dim:
            raise ValueError(f"block: got a launch with blocks of {block_dim} threads, expected {self.block_dim}")
        thread = cuda.threadIdx.x + block_dim[0] * (cuda.threadIdx.y + block_dim[1] * cuda.threadIdx.z)
        group, rank = divmod(thread, self.members)
        self.wait(group)
        self.values[thread] = value
        self.wait(group)
        return rank, self.values[group * self.members : (group + 1) * self.members]

    def wait(self, group):
        if self.of_block:
            cuda.syncthreads()
            return
        with self.lock:
            if group not in self.barriers or self.barriers[group].broken:
                self.barriers[group] = threading.Barrier(self.members)
        try:
            self.barriers[group].wait(_TIMEOUT)
        except threading.BrokenBarrierError:
            raise RuntimeError(f"not all {self.members} threads of logical warp {group} make the call") from None
