# SPDX-License-Identifier: BSD-2-Clause
"""Kernels that are linked with C++ keep what NVRTC's code has."""

from __future__ import annotations

import re

import numpy as np
import pytest
from autolink_support import build
from numba import cuda
from numba.cuda import autolink

SOURCE = """
    extern "C" __device__ float neighbour(float x) {
        __shared__ float values[128];
        values[threadIdx.x] = x;
        __syncthreads();
        return values[threadIdx.x ^ 1];
    }"""


class Neighbour(autolink.DeviceCallable):
    """``neighbour(x)``: the x of the next thread, through shared memory of C++."""

    def __numba_cuda_call__(self, x):
        return autolink.Extern("neighbour", returns="float32")

    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(SOURCE)


neighbour = Neighbour()


def swap(x):
    i = cuda.threadIdx.x
    own = cuda.shared.array(128, np.float32)
    own[i] = neighbour(x[i])
    cuda.syncthreads()
    x[i] = own[127 - i]


def test_addresses_of_shared_memory_have_32_bits():
    """As in CUDA C++, also in what Python does with shared memory."""
    ptx = build(swap, "void(float32[::1])", output="ptx").code.decode()
    shared = re.findall(r"\.shared .*?([\w$]+)\[\d+\];", ptx)
    assert len(shared) == 2
    taken = re.findall(r"mov\.[ub](\d+)\s+%\w+, ([\w$]+);", ptx)
    assert sorted(bits for bits, name in taken if name in shared) == ["32", "32"]


@pytest.mark.gpu
def test_results_through_shared_memory_of_python_and_cxx():
    x = np.arange(128, dtype=np.float32)
    expected = x[np.arange(128)[::-1] ^ 1]
    cuda.jit(swap)[1, 128](x)
    assert np.array_equal(x, expected)
