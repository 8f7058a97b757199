# SPDX-License-Identifier: BSD-2-Clause
"""Whole programs without a GPU: numba-cuda on a driver whose kernels run on the CPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.target import ComputeCapability, ComputeCapabilityLike
from numba_cuda_autolink.emulated_driver import activation


@contextlib.contextmanager
def emulated(cc: ComputeCapabilityLike = (9, 0), *, checks: bool = False) -> Iterator[None]:
    """Run what numba-cuda launches on the CPU: kernels with all the external code that they link.

    Within it there is one device, which `numba.cuda` uses as it uses a GPU: launches, arrays, copies, streams, events,
    `load` and `bind`. What was made within it is for use within it. ``NUMBA_CUDA_AUTOLINK_EMULATE=1`` does the same for
    a whole program.

    Parameters
    ----------
    cc:
        The compute capability of the device.
    checks:
        Whether kernels are also checked for reads of uninitialised memory and races in shared memory, which takes
        longer. Accesses out of bounds or misaligned, and barriers that not all threads reach, are always errors.

    Raises
    ------
    LaunchError
        If this process has loaded NVIDIA's driver, or this system cannot have another one (it is for Linux).
    RuntimeError
        In the simulator (``NUMBA_ENABLE_CUDASIM=1``).
    """
    if config.ENABLE_CUDASIM:
        raise RuntimeError("emulated() runs compiled kernels, and the simulator (NUMBA_ENABLE_CUDASIM=1) has none")
    from .frontends import emulated_driver

    if emulated_driver.active():
        yield
        return
    activation.start(ComputeCapability.parse(cc).base, all_checks=checks)
    emulated_driver.activate()
    try:
        yield
    finally:
        emulated_driver.deactivate()
        activation.stop()
