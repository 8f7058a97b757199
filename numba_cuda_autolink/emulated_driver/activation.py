# SPDX-License-Identifier: BSD-2-Clause
"""Starting and stopping the emulated driver."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import types
from collections.abc import Iterator
from typing import Any

from ..errors import LaunchError
from ..printable_texts import did_you_mean
from ..short_tracebacks import print_short

VARIABLE = "NUMBA_CUDA_AUTOLINK_EMULATE"
_NAME = "libcuda.so.1"
_VALUES = ("1", "checks")
_DEFAULT = (9, 0)
_DESTROY = (
    *("cuDevicePrimaryCtxRelease", "cuCtxDestroy", "cuMemFree", "cuMemFreeAsync", "cuMemFreeHost", "cuMemPoolDestroy"),
    *("cuStreamDestroy", "cuEventDestroy", "cuGraphDestroy", "cuGraphExecDestroy", "cuLibraryUnload", "cuModuleUnload"),
)
_loaded: Any = None
_imported_before: frozenset[str] = frozenset()


def is_wanted() -> bool:
    """Return whether the environment asks for the emulated driver. Raise `ValueError` if it says something else."""
    value = os.environ.get(VARIABLE, "").strip() or "0"
    if value not in ("0", *_VALUES):
        near = did_you_mean(value, _VALUES)
        error = ValueError(f"{VARIABLE} is {value!r:.40}{near}\n  expected: {' or '.join(_VALUES)}, or 0 for the GPU")
        print_short(error)
        raise error
    return value != "0"


def start_if_wanted() -> None:
    if is_wanted() and not is_active():
        start(all_checks=os.environ[VARIABLE].strip() == "checks")


def start(compute_capability: tuple[int, int] | None = None, *, all_checks: bool = False) -> None:
    """Be the CUDA driver of this process, with one device of *compute_capability* (default: 9.0), whose kernels run on
    the CPU.

    Raises
    ------
    LaunchError
        If the process has loaded another driver, or the loader of this system cannot take one from here.
    """
    global _loaded, _imported_before
    from .shared_library import load, why_impossible

    if _loaded is None:
        if why := why_impossible():
            raise LaunchError(
                f"the CUDA driver cannot be emulated here: {why}"
                "\n  what to do: use a kernel's own emulation, build(...).emulate or load(..., emulate=True)"
            )
        if _is_loaded():
            raise LaunchError(
                "the CUDA driver cannot be emulated here: this process has loaded NVIDIA's driver"
                f"\n  what to do: set {VARIABLE}=1 before Python starts, or use build(...).emulate"
            )
        from . import c_functions, code, device, memory, streams  # noqa: F401  what defines the functions

        c_functions.close_when_python_ends(_DESTROY)
        functions = c_functions.addresses()
        _imported_before = frozenset(sys.modules)
        _loaded = load(_NAME, {**functions, "cuGetProcAddress_v2": functions["cuGetProcAddress"]})
    from ..emulator import Checks
    from .device import settings

    settings.is_there, settings.compute_capability = True, compute_capability or _DEFAULT
    settings.checks = Checks.all() if all_checks else Checks()


def stop() -> None:
    """Be a driver without a device. What was allocated stays valid."""
    if _loaded is not None:
        from .device import settings

        settings.is_there = False


def is_active() -> bool:
    if _loaded is None:
        return False
    from .device import settings

    return settings.is_there


def was_imported_before(module: str) -> bool:
    """Return whether *module* was imported before this driver was there, and so cannot have found it then."""
    return module in _imported_before


@contextlib.contextmanager
def as_driver_library(module: Any, compute_capability: tuple[int, int]) -> Iterator[Any]:
    """Give code in the emulator as an object that callbacks take, whose ``handle`` is the driver's: of this one, which
    is there meanwhile. Raises `LaunchError` as `start` does."""
    was_active = is_active()
    if not was_active:
        start(compute_capability)
    from .code import handle_of

    try:
        with handle_of(module) as handle:
            yield types.SimpleNamespace(handle=handle)
    finally:
        if not was_active:
            stop()


def _is_loaded() -> bool:
    try:
        ctypes.CDLL(_NAME, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        return False
    return True
