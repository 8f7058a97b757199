# SPDX-License-Identifier: BSD-2-Clause
"""Transform batches of 1 GiB of complex64 in place: examples/fft.py and cuFFTDx against cuFFT and nvmath-python."""

from __future__ import annotations

import functools

import cupy as cp
import fft as block_fft
import numpy as np
import nvmath_fft
from numba import cuda
from nvmath.device import FFT

from contests.timing import Launch, in_turn, line

TOTAL = 1 << 27

# The fastest settings of each library: elements per thread and FFTs per block, found by trying all that fit.
BLOCK_FFT = {128: (8, 4), 512: (16, 8), 1024: (8, 2), 4096: (16, 1)}
CUFFTDX = {128: (8, 4), 512: (8, 1), 1024: (16, 2), 4096: (16, 1)}
NVMATH = {128: (8, 8), 512: (8, 2), 1024: (16, 1), 4096: (16, 1)}


def nvmath_kernel(fft):
    """Return nvmath-python's own kind of kernel: its vector types read and write whole complex numbers for cuFFTDx."""
    dtype, storage, stride, per_block = fft.value_type, fft.storage_size, fft.stride, fft.ffts_per_block

    @cuda.jit
    def transform_rows(x):
        row = cuda.blockIdx.x * per_block + cuda.threadIdx.y
        thread_data = cuda.local.array(storage, dtype, alignment=16)
        shared_mem = cuda.shared.array(0, dtype, alignment=16)
        if row < x.shape[0]:
            for i in range(storage):
                thread_data[i] = x[row, cuda.threadIdx.x + i * stride]
        fft.execute(thread_data, shared_mem)
        if row < x.shape[0]:
            for i in range(storage):
                x[row, cuda.threadIdx.x + i * stride] = thread_data[i]

    return transform_rows


def run():
    sm = cuda.get_current_device().compute_capability
    x = cp.ones(TOTAL, cp.complex64)
    for size in (128, 512, 1024, 4096):
        rows = x.reshape(-1, size)
        launches: dict[str, Launch] = {}
        for name in ("fft.py", "cuFFTDx", "nvmath"):
            fft, kernel = fft_and_kernel(name, size, sm)
            launch = kernel[len(rows) // fft.ffts_per_block, tuple(fft.block_dim), 0, fft.shared_memory_size]
            launches[name] = functools.partial(launch, cuda.as_cuda_array(rows))
        plan = cp.cuda.cufft.Plan1d(size, cp.cuda.cufft.CUFFT_C2C, len(rows))
        launches["cuFFT"] = functools.partial(plan.fft, rows, rows, cp.cuda.cufft.CUFFT_FORWARD)
        errors = {name: error_of(launch, rows) for name, launch in launches.items()}
        rates = {name: 2 * 8 * TOTAL / seconds / 1e9 for name, seconds in in_turn(launches).items()}
        for ours, native in (("fft.py", "cuFFT"), ("cuFFTDx", "cuFFT"), ("cuFFTDx", "nvmath")):
            title = f"FFT of {size} points, {ours}"
            what = "cuFFT" if native == "cuFFT" else "cuFFTDx in nvmath-python's own kernel"
            line(title, "GB/s", rates[ours], rates[native], errors[ours], errors[native], what)


def fft_and_kernel(name, size, sm):
    """Return the FFT object of a library, and the kernel that calls it."""
    if name == "fft.py":
        elements, per_block = BLOCK_FFT[size]
        own = block_fft.FFT(size, elements_per_thread=elements, ffts_per_block=per_block)
        return own, block_fft.make_kernel(own)
    elements, per_block = (CUFFTDX if name == "cuFFTDx" else NVMATH)[size]
    knobs = {"size": size, "direction": "forward", "elements_per_thread": elements, "ffts_per_block": per_block}
    if name == "cuFFTDx":
        ours = nvmath_fft.CuFFTDx(np.float32, sm, **knobs)
        return ours, nvmath_fft.make_kernel(ours)
    theirs = FFT(fft_type="c2c", execution="Block", precision=np.float32, **knobs)
    return theirs, nvmath_kernel(theirs)


def error_of(launch, rows):
    """Return the relative error of the first and the last rows against NumPy. Afterwards the input is zeros."""
    chosen = [*range(64), *range(len(rows) - 64, len(rows))]
    rng = np.random.default_rng(0)
    shape = len(chosen), rows.shape[1]
    values = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)
    rows[chosen] = cp.asarray(values)
    launch()
    result = rows[chosen].get()
    rows[:] = 0
    exact = np.fft.fft(values.astype(np.clongdouble))
    return float(np.linalg.norm((result - exact).astype(complex)) / np.linalg.norm(exact.astype(complex)))
