# SPDX-License-Identifier: BSD-2-Clause
"""Objects' Python counterparts in the simulator (``NUMBA_ENABLE_CUDASIM=1``)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numba.cuda.core import config


def simulated(function: Callable[..., Any]) -> Callable[..., Any]:
    """*function*, in which the name ``cuda`` stands for the simulated GPU while a kernel calls it.

    The simulator arranges that for the globals of the kernel and its device functions only, and an object's Python
    counterpart stands as often in another module.
    """
    if not (config.ENABLE_CUDASIM and hasattr(function, "__globals__")):
        return function
    from numba.cuda.simulator.kernel import _get_kernel_context
    from numba.cuda.simulator.kernelapi import swapped_cuda_module

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        kernel = _get_kernel_context()
        if kernel is None:
            return function(*args, **kwargs)
        with swapped_cuda_module(function, kernel):
            return function(*args, **kwargs)

    return call
