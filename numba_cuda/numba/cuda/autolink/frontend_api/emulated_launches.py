# SPDX-License-Identifier: BSD-2-Clause
"""What a front end is told by the emulated driver: the error of a kernel, in place of the driver's code for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from numba_cuda_autolink.emulated_driver.c_functions import take_failure
from numba_cuda_autolink.emulator import LaunchSizeError
from numba_cuda_autolink.short_tracebacks import place_of_user, print_short, short_traceback
from numba_cuda_autolink.source_locations import shown_file, with_place

_RAISED_IN_KERNEL = re.compile(r"(?:In function .*, file .*, line \d+, )?tid=\[")  # a message of front ends


def raise_failures(function: Callable[..., Any], *args: Any) -> Any:
    """Return what *function* returns. Where a kernel fails in it, raise what was raised there."""
    take_failure()
    with short_traceback():
        try:
            return function(*args)
        except Exception as error:
            failure = take_failure()
            if isinstance(failure, LaunchSizeError):  # programs may expect the error of a GPU
                filename, line = place_of_user()
                text = f"{failure}\n  for the driver: {error}"
                error.args = (with_place(text, f"launched at: {shown_file(filename)}:{line}", filename, line),)
                print_short(error)
            elif failure is not None:
                raise failure from None
            elif _RAISED_IN_KERNEL.match(str(error)):
                print_short(error)
            raise
