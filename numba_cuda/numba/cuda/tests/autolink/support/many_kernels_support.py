# SPDX-License-Identifier: BSD-2-Clause
"""Shared by the tests of many kernels: jobs that have programs in common, and leave a line where they are generated."""

from __future__ import annotations

import os

import cloudpickle
from numba.cuda import autolink
from numba.cuda.autolink.many_kernels import pickling
from numba.cuda.autolink.many_kernels.jobs import Job

SIGNATURE = "void(float32[::1])"


class Scale(autolink.DeviceCallable):
    """Multiplies by a number, in CUDA C++ that it generates, of which it leaves a line in the file *log*."""

    def __init__(self, factor, log, header=""):
        # As bytes: the content of a file whose path it holds as text would be part of what its answer depends on.
        self.factor, self.log, self.header = factor, os.fsencode(log), header

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"scale_{self.factor}", returns=x)

    def __numba_cuda_link_key__(self, x):
        return self.factor, self.header

    def __numba_cuda_link__(self, x):
        with open(self.log, "a") as log:
            print(self.factor, file=log)
        name = f"scale_{self.factor}"
        code = f'extern "C" __device__ float {name}(float x) {{ return {self.factor} * x; }}'
        return autolink.CUDASource(self.header + code, name=f"{name}.cu")


def scaling(scale, number):
    """A kernel, a closure, which calls *scale*; kernels of other numbers are other code."""

    def kernel(x):
        x[0] = scale(x[0]) + number

    return kernel


def jobs(kernels, programs, log, header=""):
    """So many jobs, which have so many programs in common."""
    scales = [Scale(factor, log, header) for factor in range(2, programs + 2)]
    return [Job(scaling(scales[number % programs], number), SIGNATURE, (9, 0)) for number in range(kernels)]


def pickled(jobs):
    """*jobs* as workers get them, by value: the module of this file is not installed where they run."""
    import sys

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        return [pickling.pickled(job) for job in jobs]
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
