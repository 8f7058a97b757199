# SPDX-License-Identifier: BSD-2-Clause
"""What a front end is told by the emulated driver: the error of a kernel, in place of the driver's code for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba_cuda_autolink.emulated_driver.c_functions import take_failure
from numba_cuda_autolink.emulator import LaunchSizeError
from numba_cuda_autolink.short_tracebacks import short_traceback


def raise_failures(function: Callable[..., Any], *args: Any) -> Any:
    """Return what *function* returns. Where a kernel fails in it, raise what was raised there."""
    take_failure()
    with short_traceback():
        try:
            return function(*args)
        except Exception as error:
            failure = take_failure()
            if isinstance(failure, LaunchSizeError):  # programs may expect the error of a GPU
                raise error from failure
            if failure is not None:
                raise failure from None
            raise
