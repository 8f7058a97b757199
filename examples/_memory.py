# SPDX-License-Identifier: BSD-2-Clause
"""Load and store complex numbers in one memory access each.

Numba loads a complex number as two real numbers, because an array may have any alignment. A kernel that mainly moves
complex numbers is a few percent faster with half as many accesses of twice the size. Device memory has the alignment
that this needs, unless an array is a view of bytes at an unaligned offset.
"""

from __future__ import annotations

from numba.cuda import autolink


class Memory(autolink.DeviceCallable):
    """``memory.load(x, i)`` and ``memory.store(x, i, value)`` for a contiguous array ``x`` of complex numbers."""

    @autolink.device_method
    def load(self, x, i):
        return autolink.Extern(f"load_{x.dtype}_{i}", returns=x.dtype)

    @load.link
    def _(self, x, i):
        T, index = autolink.cxx_type(x.dtype), autolink.cxx_type(i)
        code = f'extern "C" __device__ {T} load_{x.dtype}_{i}(const {T}* x, {index} i) {{ return x[i]; }}'
        return autolink.CUDASource(code, name="load.cu", unit="memory")

    @load.python
    def _(self, x, i):
        return x[i]

    @autolink.device_method
    def store(self, x, i, value):
        return autolink.Extern(f"store_{x.dtype}_{i}", args={"x": None, "i": None, "value": x.dtype})

    @store.link
    def _(self, x, i, value):
        T, index = autolink.cxx_type(x.dtype), autolink.cxx_type(i)
        code = f'extern "C" __device__ void store_{x.dtype}_{i}({T}* x, {index} i, {T} value) {{ x[i] = value; }}'
        return autolink.CUDASource(code, name="store.cu", unit="memory")

    @store.python
    def _(self, x, i, value):
        x[i] = value


memory = Memory()
