# SPDX-License-Identifier: BSD-2-Clause
"""Device functions for Numba-CUDA kernels: every ``extern "C" __device__`` function of the package's .cu files, and the
dtypes of the structs that they take.

Call them by name in a kernel. Their code was built ahead of time, and is linked because they are called.
"""

from .functions import named

__all__ = sorted(named)
globals().update(named)
