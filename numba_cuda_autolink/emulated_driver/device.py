# SPDX-License-Identifier: BSD-2-Clause
"""The one device of the emulated driver, and its contexts, of which each thread has a stack."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass, field

from ..emulator import Checks
from ..emulator.compiler import prepare_runtime
from ..launch_limits import MOST_BLOCKS, MOST_THREADS
from .c_functions import (
    INVALID_CONTEXT,
    INVALID_VALUE,
    NO_DEVICE,
    NOT_FOUND,
    Handles,
    Refused,
    address_of,
    c_function,
    constant_function,
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


@dataclass
class Settings:
    """Whether programs see the device, its compute capability, and what kernels that are loaded now are checked for."""

    is_there: bool = False
    compute_capability: tuple[int, int] = (9, 0)
    checks: Checks = field(default_factory=Checks)

    def zeros_of_config(self) -> list[str]:
        """Return the settings of the front ends that are 0: they warn of no small grids and copies, and where all is
        checked they free memory at once, so that accesses are found."""
        names = ["CUDA_LOW_OCCUPANCY_WARNINGS", "CUDA_WARN_ON_IMPLICIT_COPY"]
        return [*names, "CUDA_DEALLOCS_COUNT"] if self.checks.initialised else names


settings = Settings()


# Attributes by their numbers in cuda.h; all others are 0.
_ATTRIBUTES = {
    1: MOST_THREADS[0],  # MAX_THREADS_PER_BLOCK
    **dict(enumerate((*MOST_THREADS, *MOST_BLOCKS), 2)),  # MAX_BLOCK_DIM_X, Y, Z; MAX_GRID_DIM_X, Y, Z
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
    if not settings.is_there:
        raise Refused(NO_DEVICE)
    prepare_runtime()  # while the program compiles its first kernel


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
    put_int(count, int(settings.is_there))


@c_function("pid")
def cuDeviceGetName(name: int, size: int, device: int) -> None:
    _write_text(name, size, NAME)


@c_function("pid")
def cuDeviceGetPCIBusId(name: int, size: int, device: int) -> None:
    _write_text(name, size, "0000:01:00.0")


def _write_text(address: int, size: int, text: str) -> None:
    content = text.encode()[: size - 1] + b"\0"
    ctypes.memmove(address, content, len(content))


@c_function("pd")
def cuDeviceGetUuid(uuid: int, device: int) -> None:
    ctypes.memmove(uuid, b"emulated\0\0\0\0\0\0\0\0", 16)


@c_function("pid")
def cuDeviceGetAttribute(value: int, attribute: int, device: int) -> None:
    if attribute in _COMPUTE_CAPABILITY:
        put_int(value, settings.compute_capability[_COMPUTE_CAPABILITY.index(attribute)])
    else:
        put_int(value, _ATTRIBUTES.get(attribute, 0))


# Contexts

_contexts = Handles(INVALID_CONTEXT)
_primary = _contexts.add("primary")


class _Stack(threading.local):
    def __init__(self) -> None:
        self.handles: list[int] = []


_stack = _Stack()


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


for _name, _types, *_values in (
    ("cuDriverGetVersion", "I", _DRIVER_VERSION),
    ("cuDeviceGet", "Id", 0),
    ("cuDeviceTotalMem", "Pd", _MEMORY),
    ("cuMemGetInfo", "PP", _MEMORY // 2, _MEMORY),
    ("cuDeviceCanAccessPeer", "Idd", 0),
    ("cuDevicePrimaryCtxRetain", "Pd", _primary),
    ("cuDevicePrimaryCtxGetState", "dII", 0, 1),
    ("cuDevicePrimaryCtxRelease", "d"),
    ("cuDevicePrimaryCtxReset", "d"),
    ("cuCtxGetStreamPriorityRange", "II", 0, -5),
    ("cuCtxGetFlags", "I", 0),
    ("cuCtxSynchronize", ""),  # everything ends before the function that begins it returns
    ("cuProfilerStart", ""),
    ("cuProfilerStop", ""),
    ("cuThreadExchangeStreamCaptureMode", "p"),  # every mode allows everything
    ("cuModuleGetLoadingMode", "I", 1),
    ("cuStreamGetDevice", "pI", 0),
    ("cuMemHostGetFlags", "Ip", 0),
):
    constant_function(_name, _types, *_values)
