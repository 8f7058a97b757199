# SPDX-License-Identifier: BSD-2-Clause
"""What a front end is told by the emulated driver: the error of a kernel, in place of the driver's code for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from numba_cuda_autolink.emulated_driver.c_functions import take_failure
from numba_cuda_autolink.emulator import LaunchSizeError
from numba_cuda_autolink.short_tracebacks import (
    message_of,
    place_of_user,
    print_short,
    raised_by_front_end,
    short_traceback,
)
from numba_cuda_autolink.source_locations import shown_file, with_place

_RAISED_IN_KERNEL = re.compile(r"(?:In function .*, file .*, line \d+, )?tid=\[")  # a message of front ends


def raise_failures(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Return what *function* returns. Where a kernel fails in it, raise what was raised there."""
    take_failure()
    with short_traceback(_refused_launch):
        try:
            return function(*args, **named)
        except Exception as error:
            failure = take_failure()
            if isinstance(failure, LaunchSizeError):  # programs may expect the error of a GPU
                error.args = (_placed(f"{failure}\n  for the driver: {error}"),)
                print_short(error)
            elif failure is not None:
                raise failure from None
            elif _RAISED_IN_KERNEL.match(str(error)):
                print_short(error)
            raise


def _placed(text: str) -> str:
    filename, line = place_of_user()
    return with_place(text, f"launched at: {shown_file(filename)}:{line}", filename, line)


def _refused_launch(error: Exception) -> str | None:
    """Return the message of an *error* that Python raised in a front end, or in what it calls, over the arguments or
    the configuration of a launch; of any other, the one that it has."""
    known = message_of(error)
    is_of_python = type(error).__module__ == "builtins" and raised_by_front_end(error)
    return _placed(str(error)) if known is None and is_of_python else known
