# SPDX-License-Identifier: BSD-2-Clause
"""Call a block FFT written in CUDA C++ from a Numba kernel, as ``fft(thread_data, shared_mem)``.

The library is fft/block_fft.cuh. `FFT` makes it callable: one method names the C function for a call, another returns
its source, and the attributes are constants that kernels use as array sizes. Kernels pass no ``link=``.

    python examples/fft.py

transforms batches of every size from 2 to 4096 (in the emulator, of 128 alone), forward and inverse, in both
precisions, and compares with NumPy.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from _frontend import cuda
from _memory import memory
from _run import on_cpu, relative_error, run, simulated
from numba.cuda import autolink

HERE = Path(__file__).resolve().parent
SIZES = [2**k for k in range(1, 13)]
DIRECTIONS = ("forward", "inverse")


class FFT(autolink.DeviceCallable):
    """A complex-to-complex FFT by the threads of a block. Each thread holds some elements of a row.

    A call ``fft(thread_data, shared_mem)`` transforms `ffts_per_block` rows. The threads with ``threadIdx.y == row``
    transform that row. Thread ``t = threadIdx.x`` holds element ``t + i * stride`` of its row in ``thread_data[i]``,
    before and after the call. All threads of the block must make the call. As in cuFFT, nothing is scaled: a forward
    and then an inverse transform multiply by `size`.

    Parameters
    ----------
    size : int
        Length of a row: a power of two from 2 to 4096.
    precision : numpy.float32 or numpy.float64
        Precision of the real and imaginary parts.
    direction : "forward" or "inverse"
        Sign of the exponent: -1 or +1.
    elements_per_thread : int, optional
        2, 4, 8 or 16, at most `size`. A row has at most 1024 threads.
    ffts_per_block : int, optional
        Rows that a block transforms. By default a block has 128 threads, or one row if a row has more.

    Attributes
    ----------
    value_type : numpy.dtype
        complex64 or complex128: the element type of both arguments.
    storage_size : int
        Length of ``thread_data``.
    stride : int
        Distance between a thread's elements in their row, which is also the number of threads per row.
    block_dim : tuple of int
        Threads of a block: ``(stride, ffts_per_block, 1)``.
    shared_memory_size : int
        Bytes of ``shared_mem``, to be requested at launch.
    shared_size : int
        The same size in elements of `value_type`, for ``cuda.shared.array(fft.shared_size, fft.value_type)``.
    """

    def __init__(
        self,
        size,
        precision: type[np.floating] = np.float32,
        direction="forward",
        elements_per_thread=None,
        ffts_per_block=None,
    ):
        if size not in SIZES:
            raise ValueError(f"size: got {size!r}, expected a power of two from 2 to 4096")
        if precision not in (np.float32, np.float64):
            raise ValueError(f"precision: got {precision!r}, expected numpy.float32 or numpy.float64")
        if direction not in DIRECTIONS:
            raise ValueError(f"direction: got {direction!r}, expected 'forward' or 'inverse'")
        if elements_per_thread is None:
            # These need few exchanges between threads, and access at least 32 consecutive bytes of a row at a time.
            elements_per_thread = 2 if size <= 8 else 4 if size == 16 else 8 if size <= 64 else 16
        choices = [n for n in (2, 4, 8, 16) if size <= 1024 * n and n <= size]
        if elements_per_thread not in choices:
            raise ValueError(
                f"elements_per_thread: got {elements_per_thread!r}, expected one of {choices} for size {size}"
            )
        stride = size // elements_per_thread
        if ffts_per_block is None:
            ffts_per_block = max(1, 128 // stride)
        if ffts_per_block not in range(1, 1024 // stride + 1):
            raise ValueError(
                f"ffts_per_block: got {ffts_per_block!r}, expected 1 to {1024 // stride}, since each takes"
                f" {stride} of a block's 1024 threads"
            )
        self.size = int(size)
        self.precision = np.dtype(precision)
        self.direction = direction
        self.elements_per_thread = self.storage_size = int(elements_per_thread)
        self.ffts_per_block = int(ffts_per_block)
        self.stride = stride
        self.block_dim = (stride, self.ffts_per_block, 1)
        self.value_type = np.dtype(np.complex64 if precision == np.float32 else np.complex128)
        self.shared_memory_size = _row_size(size, stride, self.precision.itemsize) * self.ffts_per_block
        self.shared_size = self.shared_memory_size // self.value_type.itemsize
        self.real = "float" if precision == np.float32 else "double"
        self.symbol = f"block_fft_{direction}_{size}_{self.real}_{elements_per_thread}_{ffts_per_block}"

    def __repr__(self):
        return (
            f"FFT(size={self.size}, precision=np.{self.precision}, direction={self.direction!r},"
            f" elements_per_thread={self.elements_per_thread}, ffts_per_block={self.ffts_per_block})"
        )

    def __numba_cuda_call__(self, thread_data, shared_mem):
        for name, array in ("thread_data", thread_data), ("shared_mem", shared_mem):
            if str(getattr(array, "dtype", None)) != str(self.value_type):
                raise TypeError(f"{name}: got {array}, expected an array of {self.value_type}")
        return autolink.Extern(self.symbol)

    def __numba_cuda_link__(self, thread_data, shared_mem):
        inverse = str(self.direction == "inverse").lower()
        return autolink.CUDASource(
            f"""
            #include "block_fft.cuh"

            extern "C" __device__ void {self.symbol}({self.real}* thread_data, {self.real}* shared_mem) {{
                using fft = block_fft::transform<
                    {self.real}, {self.size}, {self.elements_per_thread}, {self.ffts_per_block}, {inverse}>;
                static_assert(fft::shared_bytes == {self.shared_memory_size}, "Python and C++ disagree");
                fft::run(thread_data, shared_mem);
            }}
            """,
            name=f"{self.symbol}.cu",
            include_paths=[HERE / "fft"],
        )

    def __call__(self, thread_data, shared_mem):
        """Do the same in Numba's simulator: the threads share their row, and each transforms all of it."""
        own = slice(cuda.threadIdx.x, None, self.stride)
        row = np.array(thread_data)
        if self.stride > 1:
            row = np.empty(self.size, self.value_type)
            plane = shared_mem.view(self.precision)[cuda.threadIdx.y * self.size :][: self.size]
            for part in "real", "imag":
                cuda.syncthreads()
                plane[own] = getattr(thread_data, part)
                cuda.syncthreads()
                setattr(row, part, plane)
        forward = self.direction == "forward"
        thread_data[:] = (np.fft.fft(row) if forward else np.fft.ifft(row, norm="forward"))[own]


def _row_size(size, stride, itemsize):
    """Return the bytes of shared memory for a row, as ``transform::row_size`` in block_fft.cuh explains."""
    elements, banks = size // stride, 128 // itemsize
    lane = min(banks, stride)
    planes = 1 if size * itemsize > 16384 else 2
    longest, done = 0, 1
    while done * (radix := min(elements, size // done)) < size:
        padding = done if done < lane else 0
        longest = max(longest, size + size // max(lane, done * radix) * padding)
        done *= radix
    row = planes * longest
    if row and stride < banks:
        row += (stride - row) % banks or banks
    return row * itemsize


def make_kernel(fft):
    """Return a kernel that transforms the rows of `x` in place."""

    @cuda.jit
    def transform_rows(x):
        row = cuda.blockIdx.x * fft.ffts_per_block + cuda.threadIdx.y
        thread_data = cuda.local.array(fft.storage_size, fft.value_type)
        shared_mem = cuda.shared.array(0, fft.value_type)
        if row < x.shape[0]:
            for i in range(fft.storage_size):
                thread_data[i] = memory.load(x[row], cuda.threadIdx.x + i * fft.stride)
        fft(thread_data, shared_mem)
        if row < x.shape[0]:
            for i in range(fft.storage_size):
                memory.store(x[row], cuda.threadIdx.x + i * fft.stride, thread_data[i])

    return transform_rows


def transform(fft, x):
    """Return the transforms of the rows of `x`, computed by the kernel."""
    device = cuda.to_device(x)
    blocks = -(-len(x) // fft.ffts_per_block)
    make_kernel(fft)[blocks, fft.block_dim, 0, fft.shared_memory_size](device)
    return device.copy_to_host()


def error_of(fft, rows):
    """Return the relative error of the transforms of random rows, against NumPy in extended precision."""
    rng = np.random.default_rng(fft.size)
    x = (rng.standard_normal((rows, fft.size)) + 1j * rng.standard_normal((rows, fft.size))).astype(fft.value_type)
    wide = x.astype(np.clongdouble)
    expected = np.fft.fft(wide) if fft.direction == "forward" else np.fft.ifft(wide, norm="forward")
    return relative_error(transform(fft, x), expected)


TOLERANCE = {"complex64": 1e-6, "complex128": 1e-14}


def launch():
    print("  size   complex64 forward, inverse   complex128 forward, inverse   (relative errors)")
    right = True
    for size in SIZES if simulated() or not on_cpu() else [128]:
        print(f"  {size:>4}", end="")
        for precision in np.float32, np.float64:
            for direction in DIRECTIONS:
                fft = FFT(size, precision, direction)
                error = error_of(fft, rows=2 if simulated() else 20 if on_cpu() else 1000)
                print(f"{error:>14.1e}", end="", flush=True)
                right = right and error <= TOLERANCE[str(fft.value_type)]
        print()
    print("  All within" if right else "  WRONG: not all within", "1e-06 and 1e-14.")
    return right


def link():
    fft = FFT(128)
    yield f"{fft}", autolink.build(make_kernel(fft), f"void({fft.value_type}[:, ::1])", cc=(9, 0))


if __name__ == "__main__":
    run(launch, link)
