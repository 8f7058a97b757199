# SPDX-License-Identifier: BSD-2-Clause
"""The Python functions that stand for objects in the simulator (``NUMBA_ENABLE_CUDASIM=1``)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numba.cuda.core import config


def simulated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return *function*, with the simulated GPU under the name ``cuda`` while a kernel calls it.

    The simulator does this only for the globals of the kernel and of its device functions, while the Python function
    of an object is often in another module.
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
