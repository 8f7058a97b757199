# SPDX-License-Identifier: BSD-2-Clause
"""The one device of the emulated driver, and its contexts, of which each thread has a stack."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass, replace

from .c_functions import (
    INVALID_CONTEXT,
    INVALID_DEVICE,
    INVALID_VALUE,
    NO_DEVICE,
    NOT_FOUND,
    Handles,
    Refused,
    address_of,
    c_function,
    last_failure,
    put_handle,
    put_int,
    text_at,
)

NAME = "numba-cuda-autolink's emulator"
MULTIPROCESSORS = 4
THREADS_OF_MULTIPROCESSOR = 2048
MOST_SHARED = 227 << 10
_DRIVER_VERSION = 13990  # it takes the PTX of every toolkit
_MEMORY = 16 << 30


@dataclass(frozen=True)
class Settings:
    """What programs see of the device: whether it is there, and its compute capability."""

    is_there: bool = False
    compute_capability: tuple[int, int] = (9, 0)


_settings = Settings()


def settings() -> Settings:
    return _settings


def set_device(*, is_there: bool, compute_capability: tuple[int, int] | None = None) -> None:
    """Show the device to programs, or hide it."""
    global _settings
    found = compute_capability or _settings.compute_capability
    _settings = replace(_settings, is_there=is_there, compute_capability=found)


# Attributes by their numbers in cuda.h; all others are 0.
_ATTRIBUTES = {
    1: 1024,  # MAX_THREADS_PER_BLOCK
    **{2: 1024, 3: 1024, 4: 64},  # MAX_BLOCK_DIM_X, Y, Z
    **{5: 2**31 - 1, 6: 65535, 7: 65535},  # MAX_GRID_DIM_X, Y, Z
    8: 48 << 10,  # MAX_SHARED_MEMORY_PER_BLOCK
    9: 64 << 10,  # TOTAL_CONSTANT_MEMORY
    10: 32,  # WARP_SIZE
    12: 65536,  # MAX_REGISTERS_PER_BLOCK
    13: 1_000_000,  # CLOCK_RATE
    16: MULTIPROCESSORS,  # MULTIPROCESSOR_COUNT
    19: 1,  # CAN_MAP_HOST_MEMORY
    31: 1,  # CONCURRENT_KERNELS
    33: 1,  # PCI_BUS_ID
    39: THREADS_OF_MULTIPROCESSOR,  # MAX_THREADS_PER_MULTIPROCESSOR
    40: 1,  # ASYNC_ENGINE_COUNT
    41: 1,  # UNIFIED_ADDRESSING
    78: 1,  # STREAM_PRIORITIES_SUPPORTED
    81: 228 << 10,  # MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
    82: 65536,  # MAX_REGISTERS_PER_MULTIPROCESSOR
    83: 1,  # MANAGED_MEMORY
    89: 1,  # CONCURRENT_MANAGED_ACCESS
    91: 1,  # CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
    95: 1,  # COOPERATIVE_LAUNCH
    97: MOST_SHARED,  # MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    99: 1,  # HOST_REGISTER_SUPPORTED
    106: 32,  # MAX_BLOCKS_PER_MULTIPROCESSOR
    115: 1,  # MEMORY_POOLS_SUPPORTED
    129: 1,  # UNIFIED_FUNCTION_POINTERS
}
_COMPUTE_CAPABILITY = (75, 76)  # COMPUTE_CAPABILITY_MAJOR, MINOR


@c_function("u")
def cuInit(flags: int) -> None:
    if not _settings.is_there:
        raise Refused(NO_DEVICE)


@c_function("p")
def cuDriverGetVersion(version: int) -> None:
    put_int(version, _DRIVER_VERSION)


@c_function("ppipp")
def cuGetProcAddress(symbol: int, function: int, version: int, flags: int, status: int) -> None:
    put_handle(function, address_of(text_at(symbol).partition("_v")[0]))
    put_int(status, 0)


_empty_table = (ctypes.c_size_t * 1)(8)  # a table of functions begins with its size in bytes
_OF_NVRTC = frozenset(map(bytes.fromhex, ("da9151d33ae6cc41a5c04f26d533e328", "1734dc26800d47458726c0f1e7dd8bca")))


@c_function("pp")
def cuGetExportTable(table: int, number: int) -> None:
    """Give NVRTC an empty table: it looks for functions in one whenever there is a driver. Others, such as the CUDA
    runtime of CuPy and PyTorch, call what they expect in theirs: they get none, and raise an error."""
    if ctypes.string_at(number, 16) not in _OF_NVRTC:
        put_handle(table, 0)
        raise Refused(NOT_FOUND)
    put_handle(table, ctypes.addressof(_empty_table))


_texts: dict[str, ctypes.Array[ctypes.c_char]] = {}


def _put_text(address: int, text: str) -> None:
    kept = _texts.setdefault(text, ctypes.create_string_buffer(text.encode()))
    put_handle(address, ctypes.addressof(kept))


@c_function("ip")
def cuGetErrorName(error: int, text: int) -> None:
    _put_text(text, _error_name(error))


@c_function("ip")
def cuGetErrorString(error: int, text: int) -> None:
    failure = last_failure()
    _put_text(text, str(failure) if failure is not None and error else _error_name(error))


def _error_name(error: int) -> str:
    from cuda.bindings.driver import CUresult

    try:
        return str(CUresult(error).name)
    except ValueError:
        raise Refused(INVALID_VALUE) from None


# The device


@c_function("p")
def cuDeviceGetCount(count: int) -> None:
    put_int(count, int(_settings.is_there))


@c_function("pi")
def cuDeviceGet(device: int, ordinal: int) -> None:
    _check(ordinal)
    put_int(device, 0)


def _check(device: int) -> None:
    if device != 0 or not _settings.is_there:
        raise Refused(INVALID_DEVICE)


@c_function("pii")
def cuDeviceGetName(name: int, size: int, device: int) -> None:
    _check(device)
    _write_text(name, size, NAME)


@c_function("pii")
def cuDeviceGetPCIBusId(name: int, size: int, device: int) -> None:
    _check(device)
    _write_text(name, size, "0000:01:00.0")


def _write_text(address: int, size: int, text: str) -> None:
    content = text.encode()[: size - 1] + b"\0"
    ctypes.memmove(address, content, len(content))


@c_function("pi")
def cuDeviceGetUuid(uuid: int, device: int) -> None:
    _check(device)
    ctypes.memmove(uuid, b"emulated\0\0\0\0\0\0\0\0", 16)


@c_function("pi")
def cuDeviceTotalMem(size: int, device: int) -> None:
    _check(device)
    put_handle(size, _MEMORY)


@c_function("pii")
def cuDeviceGetAttribute(value: int, attribute: int, device: int) -> None:
    _check(device)
    if attribute in _COMPUTE_CAPABILITY:
        put_int(value, _settings.compute_capability[_COMPUTE_CAPABILITY.index(attribute)])
    else:
        put_int(value, _ATTRIBUTES.get(attribute, 0))


@c_function("pii")
def cuDeviceCanAccessPeer(can: int, device: int, peer: int) -> None:
    _check(device)
    _check(peer)
    put_int(can, 0)


# Contexts

_contexts = Handles(INVALID_CONTEXT)
_primary = _contexts.add("primary")


class _Stack(threading.local):
    def __init__(self) -> None:
        self.handles: list[int] = []


_stack = _Stack()


@c_function("pi")
def cuDevicePrimaryCtxRetain(context: int, device: int) -> None:
    _check(device)
    put_handle(context, _primary)


@c_function("i", "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset")
def cuDevicePrimaryCtxRelease(device: int) -> None:
    _check(device)


@c_function("ipp")
def cuDevicePrimaryCtxGetState(device: int, flags: int, active: int) -> None:
    _check(device)
    put_int(flags, 0)
    put_int(active, 1)


@c_function("p")
def cuCtxCreate(context: int) -> None:
    handle = _contexts.add("created")
    _stack.handles.append(handle)
    put_handle(context, handle)


@c_function("p")
def cuCtxDestroy(context: int) -> None:
    _contexts.remove(context)
    if _stack.handles and _stack.handles[-1] == context:
        _stack.handles.pop()


@c_function("p")
def cuCtxPushCurrent(context: int) -> None:
    _contexts[context]
    _stack.handles.append(context)


@c_function("p")
def cuCtxPopCurrent(context: int) -> None:
    if not _stack.handles:
        raise Refused(INVALID_CONTEXT)
    put_handle(context, _stack.handles.pop())


@c_function("p")
def cuCtxSetCurrent(context: int) -> None:
    if context:
        _contexts[context]
    if _stack.handles:
        _stack.handles.pop()
    if context:
        _stack.handles.append(context)


@c_function("p")
def cuCtxGetCurrent(context: int) -> None:
    put_handle(context, current_context())


def current_context() -> int:
    """Return the current context of this thread; 0 if there is none."""
    return _stack.handles[-1] if _stack.handles else 0


@c_function("p")
def cuCtxGetDevice(device: int) -> None:
    if not _stack.handles:
        raise Refused(INVALID_CONTEXT)
    put_int(device, 0)


@c_function("pp")
def cuCtxGetId(context: int, number: int) -> None:
    put_handle(number, context or current_context())


@c_function("pp")
def cuCtxGetStreamPriorityRange(least: int, greatest: int) -> None:
    put_int(least, 0)
    put_int(greatest, -5)


@c_function("p")
def cuCtxGetFlags(flags: int) -> None:
    put_int(flags, 0)


@c_function("", "cuCtxSynchronize", "cuProfilerStart", "cuProfilerStop")
def cuCtxSynchronize() -> None:
    """Everything ends before the function that begins it returns, and there is nothing to profile."""


@c_function("pp")
def cuMemGetInfo(free: int, total: int) -> None:
    put_handle(free, _MEMORY // 2)
    put_handle(total, _MEMORY)
