# SPDX-License-Identifier: BSD-2-Clause
"""Generate 1 GiB of uniform float32 by Philox, with cuRAND's device functions and with cuRAND's host library."""

from __future__ import annotations

import functools

import numpy as np
from curand import HostGenerator, Philox
from numba import cuda
from numba.cuda import autolink, types

from contests.timing import in_turn, line

COUNT = 1 << 28
THREADS = 256
philox = Philox()


class StoreFour(autolink.DeviceCallable):
    """``store(x, i, four)``: store four float32 to ``x[i : i + 4]`` in one access."""

    def __numba_cuda_call__(self, x, i, four):
        return autolink.Extern("store_four", args={"x": None, "i": types.int64, "four": None})

    def __numba_cuda_link__(self, x, i, four):
        return autolink.CUDASource("""
            extern "C" __device__ void store_four(float* x, long long i, const float* four) {
                *(float4*)(x + i) = make_float4(four[0], four[1], four[2], four[3]);
            }""")


store = StoreFour()


@cuda.jit
def fill(x, seed):
    """Fill *x*. In each round, thread i of the grid writes elements 4 i to 4 i + 3, from its own subsequence."""
    thread, threads = cuda.grid(1), cuda.gridsize(1)
    state = cuda.local.array(1, philox.state_type)
    four = cuda.local.array(4, np.float32, alignment=16)
    philox.init(state, seed, thread)
    for i in range(4 * thread, x.size, 4 * threads):
        philox.uniform4(state, four)
        store(x, i, four)


def run():
    x = {name: cuda.device_array(COUNT, np.float32) for name in ("ours", "native")}
    generator = HostGenerator("philox", seed=7, on_device=True)
    address = x["native"].device_ctypes_pointer.value
    blocks = 8 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    launches = {
        "ours": functools.partial(fill[blocks, THREADS], x["ours"], np.uint64(7)),
        "native": functools.partial(generator.fill, "curandGenerateUniform", address, COUNT),
    }
    rates = {name: 4 * COUNT / seconds / 1e9 for name, seconds in in_turn(launches).items()}
    error, own_error = (abs(float(each.copy_to_host().mean(dtype=np.float64)) - 0.5) for each in x.values())
    what = "cuRAND's host library (errors: of the mean)"
    line("uniform numbers, Philox", "GB/s", rates["ours"], rates["native"], error, own_error, what)
