# SPDX-License-Identifier: BSD-2-Clause
"""A CUDA driver without a GPU: programs run unchanged, and their kernels in the emulator.

It is a library with the driver's name, ``libcuda.so.1``, and the driver's functions, which are Python functions here.
What opens the driver in this process (cuda.bindings, cuda.core, numba-cuda, numba-cuda-mlir) gets this one: nothing of
them is replaced. Memory of the device is memory of the process; everything ends before the function that begins it
returns. Code is PTX: there is nothing that runs cubins. Functions that are not here return
``CUDA_ERROR_NOT_SUPPORTED``.
"""
