# SPDX-License-Identifier: BSD-2-Clause
"""The kernel of the C and C++ programs, which calls a function written in CUDA C++."""

from numba import cuda
from numba.cuda import autolink


class Smooth(autolink.DeviceCallable):
    """A smooth step from 0 to 1, in CUDA C++."""

    def __numba_cuda_call__(self, x):
        return autolink.Extern("smooth", returns=x)

    def __numba_cuda_link__(self, x):
        T = autolink.cxx_type(x)
        return autolink.CUDASource(
            f'extern "C" __device__ {T} smooth({T} x) {{ return x * x * (3 - 2 * x); }}', name="smooth.cu"
        )


smooth = Smooth()


@cuda.jit
def fade(image, strength):
    """Fade a two-dimensional image out to the right."""
    row, column = cuda.grid(2)
    if row < image.shape[0] and column < image.shape[1]:
        image[row, column] *= 1 - strength * smooth(column / image.shape[1])
