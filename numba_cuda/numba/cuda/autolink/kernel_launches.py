# SPDX-License-Identifier: BSD-2-Clause
"""``kernel[grid, block, stream, shared](*args)``: faster for kernels that are launched often, and with as much dynamic
shared memory as the device has."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from numba.cuda.cudadrv.driver import CudaAPIError, binding, driver

from numba_cuda_autolink.driver import SHARED_WITHOUT_ASKING

if TYPE_CHECKING:
    from .packed_launches import PackedLaunches

_BEFORE_PACKED = 50  # launches take as long as preparing faster ones


class KernelLaunches:
    """What is known of the launches of one of numba-cuda's kernels."""

    def __init__(self) -> None:
        self._count = 0
        self._packed: PackedLaunches | None = None
        self._shared: dict[int, int] = {}

    def launch(self, kernel: Any, args: tuple[Any, ...], how: tuple[Any, Any, Any, int]) -> bool:
        """Launch *kernel* with *how*: grid, block, stream and dynamic shared memory. Return whether it was launched; if
        not, numba-cuda launches it."""
        if how[3]:
            self._allow_shared(kernel._codelibrary.get_cufunc(), how[3])
        if self._count < _BEFORE_PACKED:
            self._count += 1
            if self._count == _BEFORE_PACKED:
                self._packed = _packed_launches(kernel)
            return False
        return self._packed is not None and self._packed.launch(kernel._codelibrary, args, how)

    def _allow_shared(self, function: Any, size: int) -> None:
        """Ask the driver for *size* bytes of dynamic shared memory where that is more than it allows by itself."""
        device = function.device.id
        if size > self._shared.get(device, SHARED_WITHOUT_ASKING - function.attrs.shared):
            attribute = binding.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            with contextlib.suppress(CudaAPIError):  # more than the device has, which the launch reports
                driver.cuKernelSetAttribute(attribute, size, function.handle, device)
                self._shared[device] = size


def _packed_launches(kernel: Any) -> PackedLaunches | None:
    from numba_cuda_autolink.errors import FinishedKernelError

    from .packed_launches import PackedLaunches

    try:
        return PackedLaunches(kernel)
    except FinishedKernelError:  # a type that finished kernels do not take
        return None
