# SPDX-License-Identifier: BSD-2-Clause
"""Whole programs without a GPU: front ends on a driver whose kernels run on the CPU."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.diagnostics.messages import suggest_names
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, ComputeCapabilityLike

from numba_cuda_autolink.emulated_driver import activation


@suggest_names
class emulated(contextlib.ContextDecorator):
    """``with autolink.emulated():`` runs what numba-cuda and numba-cuda-mlir launch on the CPU: kernels with all code
    that they link.

    Within it there is one device, which `numba.cuda` uses as it uses a GPU: launches, arrays, copies, streams, events,
    `load` and `bind`. What was made within it is for use within it. `start` and `stop` do the same without ``with``,
    and ``NUMBA_CUDA_AUTOLINK_EMULATE=1`` for a whole program.

    Parameters
    ----------
    cc:
        The compute capability of the device.
    checks:
        Whether kernels are also checked for reads of uninitialised memory and for races in shared memory, which takes
        longer. Accesses out of bounds or misaligned, and barriers that not all threads reach, are always errors.

    Raises
    ------
    LaunchError
        When it starts: if this process has loaded NVIDIA's driver, or the system cannot have another one (Linux can).
    RuntimeError
        In the simulator (``NUMBA_ENABLE_CUDASIM=1``).
    """

    def __init__(self, cc: ComputeCapabilityLike = (9, 0), *, checks: bool = False):
        self._cc, self._checks = ComputeCapability.parse(cc).base, checks
        self._started: list[bool] = []

    def start(self) -> None:
        """Begin. Within another one this does nothing."""
        if config.ENABLE_CUDASIM:
            raise RuntimeError("emulated() runs compiled kernels, and the simulator (NUMBA_ENABLE_CUDASIM=1) has none")
        from . import emulated_driver

        is_first = not emulated_driver.active()
        if is_first:
            activation.start(self._cc, all_checks=self._checks)
            emulated_driver.activate()
            if second := _of_second_front_end():
                second.activate()
        self._started.append(is_first)

    def stop(self) -> None:
        """End."""
        if self._started and self._started.pop():
            from . import emulated_driver

            if second := _of_second_front_end():
                second.deactivate()
            emulated_driver.deactivate()
            activation.stop()

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: Any) -> None:
        self.stop()


def _of_second_front_end() -> Any:
    """Return the seams of numba-cuda-mlir with the emulated driver, if it is active here."""
    return sys.modules.get("numba.cuda.autolink.frontends.mlir.emulated_driver")
