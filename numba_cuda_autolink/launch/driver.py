# SPDX-License-Identifier: BSD-2-Clause
"""The CUDA driver through cuda.bindings: its errors, and the device of the current context."""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import functools
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..errors import LaunchError, at_call

SHARED_WITHOUT_ASKING = 48 << 10  # bytes of shared memory that each kernel may use
_PACKAGE = "numba_cuda_autolink"
_DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
_NO_CONTEXT = (201, 400, 709)  # CUDA_ERROR_INVALID_CONTEXT, INVALID_HANDLE, CONTEXT_IS_DESTROYED
# What to do for some errors. Those of kernels are reported by a later call.
_REMEDIES = dict.fromkeys(
    (700, 702, 710, 714, 715, 716, 717, 718, 719), "find the earlier launch that failed, with compute-sanitizer"
)
_REMEDIES |= {
    209: "save the kernel for this GPU too, or as PTX",
    222: "update the driver, or build PTX with an earlier toolkit",
    701: "use fewer threads in a block, or build with max_registers=",
    720: "use fewer blocks: all blocks of a cooperative launch must run at a time",
}


class DriverError(LaunchError):
    """The driver returned an error. ``code`` is its number."""

    def __init__(self, message: str, code: int = 0):  # a pickle has the message alone, and the attributes
        super().__init__(message)
        self.code = code

    @property
    def is_of_context(self) -> bool:
        """Whether it can mean that a function belongs to another context than the current one."""
        return self.code in _NO_CONTEXT


class Device(NamedTuple):
    """The device of a context. In the emulator, arrays are those in host memory."""

    ordinal: int
    compute_capability: tuple[int, int]
    most_shared: int
    reads_host_memory: bool
    is_emulated: bool = False


@functools.cache
def bindings() -> Any:
    """Return the module ``cuda.bindings.driver``, with the driver initialized: the emulated one, if the environment
    asks for it."""
    from ..emulated_driver.activation import start_if_wanted

    start_if_wanted()
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise LaunchError(
            f"cuda-bindings, which launches kernels, cannot be imported: {error}"
            "\n  what to do: pip install cuda-bindings, of the CUDA version of the driver or an earlier one"
        ) from error
    try:
        call_driver(driver.cuInit, 0, api=driver)
    except RuntimeError as error:
        if isinstance(error, DriverError):
            raise
        raise LaunchError(
            f"there is no CUDA driver: {error}"
            "\n  what to do: run this where a GPU is, or kernels saved as PTX on the CPU: load(path, emulate=True)"
        ) from error
    return driver


def call_driver(function: Any, *args: Any, api: Any = None) -> Any:
    """Return what a *function* of the driver returns for *args* besides its error code. Raise `DriverError` for one."""
    error, *results = function(*args)
    if int(error) != 0:
        raise driver_error(api or bindings(), function.__name__, int(error))
    return results[0] if len(results) == 1 else tuple(results)


def driver_error(api: Any, what: str, code: int) -> BaseException:
    """Return the error for *what*, which failed with *code*: of the emulated driver, what failed in it."""
    emulated = sys.modules.get(f"{_PACKAGE}.emulated_driver.c_functions")
    if emulated is not None and (failure := emulated.take_failure()) is not None:
        return failure
    error = api.CUresult(code)
    text = [_text(function(error)[1]) for function in (api.cuGetErrorName, api.cuGetErrorString)]
    hint = f"\n  what to do: {_REMEDIES[code]}" if code in _REMEDIES else ""
    return DriverError(at_call(f"{what} failed: {text[0]} ({text[1]}){hint}"), code)


def current_context() -> tuple[int, bool]:
    """Return the current context, and whether it became current here: without one, the primary context of device 0
    becomes current, as in CUDA's runtime."""
    api = bindings()
    context = int(call_driver(api.cuCtxGetCurrent))
    if context:
        return context, False
    created = call_driver(api.cuDevicePrimaryCtxRetain, call_driver(api.cuDeviceGet, 0))
    call_driver(api.cuCtxSetCurrent, created)
    return int(created), True


@functools.cache
def device_of(context: int) -> Device:
    """Return the device of *context*, which is current."""
    api = bindings()
    handle = call_driver(api.cuCtxGetDevice)
    names = ("COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR", "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
    major, minor, shared, reads = (
        call_driver(api.cuDeviceGetAttribute, getattr(api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), handle)
        for name in (*names, "PAGEABLE_MEMORY_ACCESS")
    )
    return Device(int(handle), (major, minor), shared, bool(reads))


_emulated: contextvars.ContextVar[Device | None] = contextvars.ContextVar("_emulated", default=None)


def current_device() -> Device:
    """Return the device of the current context, or that of the emulator's launch."""
    return _emulated.get() or device_of(current_context()[0])


@contextlib.contextmanager
def on_device(emulated: Device) -> Iterator[None]:
    """Let `current_device` be that of the emulator."""
    token = _emulated.set(emulated)
    try:
        yield
    finally:
        _emulated.reset(token)


@functools.cache
def device_count() -> int:
    return int(call_driver(bindings().cuDeviceGetCount))


def ordinal_of(pointer: int) -> int | None:
    """Return the number of the device whose memory is at *pointer*, which is negative for managed memory that no device
    has yet, or ``None`` if the driver does not know the memory."""
    ordinal = ctypes.c_int(-1)
    return None if _pointer_attribute()(ctypes.byref(ordinal), _DEVICE_ORDINAL, pointer) else ordinal.value


@functools.cache
def _pointer_attribute() -> Any:
    """Return the driver's ``cuPointerGetAttribute``: that of some versions of cuda.bindings says 0 for every device."""
    address, _ = call_driver(bindings().cuGetProcAddress, b"cuPointerGetAttribute", 12000, 0)
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64)(int(address))


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
