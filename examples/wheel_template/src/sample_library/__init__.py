# SPDX-License-Identifier: BSD-2-Clause
"""Device functions for Numba-CUDA kernels: every ``extern "C" __device__`` function of the package's .cu files.

Call them by their names in a kernel; their code, built ahead of time, is linked because they are called.
"""

from .functions import functions

globals().update(functions)
__all__ = sorted(functions)
