# SPDX-License-Identifier: BSD-2-Clause
"""Call cuFFTDx from a Numba kernel, as ``fft.execute(...)``, through nvmath-python's own code generation.

`nvmath.device.FFT` describes an FFT, and `compile_fft_execute` generates its LTO-IR. nvmath-python 1.0.0 makes that
callable with 194 lines of Numba types, models, overloads and lowering: 96 in ``nvmath/device/cufftdx_numba.py`` and the
98 of ``nvmath/device/common_numba.py`` that it uses. (These are lines of code, without blank lines, comments and
docstrings, and without the 185 lines of ``vector_types_numba.py`` for its array types.) `CuFFTDx` takes 20. libmathdx
takes seconds to generate the code. With `CuFFTDx` this happens once per machine, with nvmath-python's own binding in
each process.

    pip install nvmath-python==1.0.0 nvidia-libmathdx-cu13==0.4.1.15
    python examples/nvmath_fft.py

Importing nvmath-python loads the NVIDIA driver library, so this example needs a driver, and cannot run in the
simulator. If the driver or nvmath-python is missing, it prints a message and exits with 2.
"""

from __future__ import annotations

import sys

import numpy as np
from _frontend import cuda
from _memory import memory
from _nvmath import FFT, ComputeCapability, code_type, compile_fft_execute, key_of
from _run import compare, show
from numba.cuda import autolink


class CuFFTDx(autolink.DeviceCallable):
    """``fft.execute(thread_data, shared_mem)``: a cuFFTDx block FFT. Keywords are those of `nvmath.device.FFT`."""

    def __init__(self, precision, sm, **knobs):
        self.fft = FFT(precision=precision, sm=ComputeCapability(*sm), fft_type="c2c", execution="Block", **knobs)
        self.key = key_of("fft", np.dtype(precision).name, *sm, *sorted(knobs.items()))
        self.value_type = np.dtype(np.complex64 if precision == np.float32 else np.complex128)
        for name in "size", "direction", "storage_size", "shared_memory_size", "stride", "block_dim", "ffts_per_block":
            setattr(self, name, getattr(self.fft, name))

    @autolink.device_method
    def execute(self, thread_data, shared_mem):
        return autolink.Extern(f"fft_{self.key}")

    @execute.link_key
    def _(self, thread_data, shared_mem):  # the LTO-IR is generated once per machine
        return self.key

    @execute.link
    def _(self, thread_data, shared_mem):
        code, symbol = compile_fft_execute(self.fft, code_type(autolink.current_target()), "register_memory")
        yield cuda.LTOIR(code.data)
        yield autolink.CUDASource(f"""
            extern "C" __device__ void {symbol}(void*, void*);
            extern "C" __device__ void fft_{self.key}(void* data, void* shared) {{ {symbol}(data, shared); }}""")


def make_kernel(fft):
    """Return a kernel that transforms the rows of `x` in place. cuFFTDx accesses whole complex numbers."""

    @cuda.jit
    def transform_rows(x):
        row = cuda.blockIdx.x * fft.ffts_per_block + cuda.threadIdx.y
        thread_data = cuda.local.array(fft.storage_size, fft.value_type, alignment=16)
        shared_mem = cuda.shared.array(0, fft.value_type, alignment=16)
        if row < x.shape[0]:
            for i in range(fft.storage_size):
                thread_data[i] = memory.load(x[row], cuda.threadIdx.x + i * fft.stride)
        fft.execute(thread_data, shared_mem)
        if row < x.shape[0]:
            for i in range(fft.storage_size):
                memory.store(x[row], cuda.threadIdx.x + i * fft.stride, thread_data[i])

    return transform_rows


def ffts(sm):
    return [
        CuFFTDx(np.float32, sm, size=128, direction="forward", elements_per_thread=8, ffts_per_block=8),
        CuFFTDx(np.float64, sm, size=1024, direction="inverse", elements_per_thread=8, ffts_per_block=1),
    ]


def check(fft, rows=1000):
    rng = np.random.default_rng(fft.size)
    x = (rng.standard_normal((rows, fft.size)) + 1j * rng.standard_normal((rows, fft.size))).astype(fft.value_type)
    device = cuda.to_device(x)
    blocks = -(-rows // fft.ffts_per_block)
    make_kernel(fft)[blocks, tuple(fft.block_dim), 0, fft.shared_memory_size](device)
    wide = x.astype(np.clongdouble)
    exact = np.fft.fft(wide) if fft.direction == "forward" else np.fft.ifft(wide, norm="forward")
    title = f"cuFFTDx, {fft.size} points, {fft.value_type}, {fft.direction}"
    return compare(title, device.copy_to_host(), exact, 1e-6 if fft.value_type == np.complex64 else 1e-14)


def main():
    if cuda.is_available():
        print("On the GPU, compared with NumPy:")
        sm = cuda.get_current_device().compute_capability
        sys.exit(0 if all([check(fft) for fft in ffts(sm)]) else 1)
    print("No GPU was found, so the kernels are linked for sm_90:")
    for fft in ffts((9, 0)):
        title = f"cuFFTDx, {fft.size} points, {fft.value_type}"
        show(title, autolink.build(make_kernel(fft), f"void({fft.value_type}[:, ::1])", cc=(9, 0)))


if __name__ == "__main__":
    main()
