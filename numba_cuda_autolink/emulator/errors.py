# SPDX-License-Identifier: BSD-2-Clause
"""What the emulator reports: a kernel that misbehaves, and an instruction that the emulator does not have."""

from __future__ import annotations

from ..errors import UserError


class EmulationError(UserError, RuntimeError):
    """A kernel has a fault in the emulator: one of those on a GPU, or one that a check finds.

    `kernel` is its name; `block` and `thread` are indices (x, y, z); `address` the device address, or None; `lines` the
    source lines as ``file:line``, innermost first: of inlined code, the line of the callee comes before the caller's.
    """

    __module__ = "numba_cuda_autolink"  # as tracebacks show it

    def __init__(
        self,
        message: str,
        *,
        kernel: str = "",
        block: tuple[int, int, int] | None = None,
        thread: tuple[int, int, int] | None = None,
        address: int | None = None,
        lines: tuple[str, ...] = (),
    ):
        super().__init__(message)
        self.kernel, self.block, self.thread, self.address, self.lines = kernel, block, thread, address, lines

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__:
            cls.__module__ = EmulationError.__module__


class FaultError(EmulationError):
    """A fault of a thread: an access out of bounds or misaligned, a race, a trap, a call of an invalid address."""


class AddressSpaceError(FaultError):
    """An access to shared memory with an address of other memory."""


class BarrierError(FaultError):
    """A barrier, or a synchronisation of a warp, that not all threads reach."""


class LaunchSizeError(EmulationError):
    """A launch whose block, grid or parameters have a size that the kernel or the device does not allow."""

    driver_code = 1  # CUDA_ERROR_INVALID_VALUE, as on a GPU


class SharedMemoryError(EmulationError):
    """A kernel has more static shared memory than GPUs give it."""

    driver_code = 218  # CUDA_ERROR_INVALID_PTX, of a driver that compiles it


class UnsupportedInstruction(EmulationError):
    """PTX that the emulator refuses; the message names the instruction with its modifiers and the source line."""


class PTXSyntaxError(EmulationError):
    """A text cannot be read as PTX."""
