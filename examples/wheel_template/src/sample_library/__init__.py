# SPDX-License-Identifier: BSD-2-Clause
"""Device functions for Numba-CUDA kernels: those in the namespace ``sample_library`` of the .cu files, the dtypes of
the structs that they take, and the variables that the host sets.

Call them by name in a kernel. Their code was built ahead of time, and is linked because they are called.
"""

from .functions import named

__all__ = sorted(named)
globals().update(named)


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(
        f"{__name__} has no function {name!r}\n  expected: {', '.join(__all__)}\n  what to do: declare it __device__ "
        f"in namespace {__name__}, neither static nor inline nor as a template; then build and install it again"
    )
