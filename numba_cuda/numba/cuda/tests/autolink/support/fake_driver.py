# SPDX-License-Identifier: BSD-2-Clause
"""A driver without a GPU: it has the calls that launching makes, and remembers what was launched."""

from __future__ import annotations

import ctypes
import enum
from types import SimpleNamespace
from typing import Any, NamedTuple


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906


class Launched(NamedTuple):
    """One launch: its configuration, the function, and the bytes of the parameters."""

    config: Any
    function: Any
    packed: bytes


class _Names:
    """An enumeration whose members are their names."""

    def __getattr__(self, name: str) -> str:
        return name


class FakeDriver:
    """Stands for the module ``cuda.bindings.driver``.

    ``launches`` and ``attributes`` are what was launched and set, ``loaded`` the code that was loaded. ``memory`` maps
    the addresses that are known to devices; ``None`` knows all. ``errors`` are returned by the next launches.
    ``globals`` are the bytes of variables by library, context and name, for those whose size is in ``sizes``.
    ``capturing`` is whether a stream is being captured.
    """

    CUresult = CUresult
    CUdevice_attribute = CUfunction_attribute = CUlaunchAttributeID = _Names()
    CUstreamCaptureMode = CUevent_flags = CUstream_flags = _Names()
    CUcontext = CUstream = int

    def __init__(self, capability=(9, 0), devices=1, shared=227 << 10, max_threads=1024, static_shared=0):
        self.launches: list[Launched] = []
        self.loaded: list[bytes] = []
        self.unloaded: list[Any] = []
        self.attributes: list[tuple[Any, str, int]] = []
        self.waits: list[tuple[int, int]] = []
        self.errors: list[CUresult] = []
        self.memory: dict[int, int] | None = None
        self.context = 0x100
        self.sizes: dict[str, int] = {}
        self.globals: dict[tuple[Any, int, str], bytearray] = {}
        self.copies: list[tuple[str, Any]] = []
        self.capturing = False
        types = ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.c_int, ctypes.c_uint64
        self._pointer_attribute = ctypes.CFUNCTYPE(*types)(self._attribute_of_pointer)
        self._devices = devices
        self._numbers = {
            "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR": capability[0],
            "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR": capability[1],
            "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": shared,
            "CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS": 0,
            "CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK": max_threads,
            "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES": static_shared,
        }

    def CUlaunchConfig(self):
        return SimpleNamespace()

    def CUlaunchAttribute(self):
        return SimpleNamespace(id=None, value=SimpleNamespace(clusterDim=SimpleNamespace()))

    def cuInit(self, flags):
        return (CUresult.CUDA_SUCCESS,)

    def cuDeviceGetCount(self):
        return 0, self._devices

    def cuDeviceGet(self, ordinal):
        return 0, ordinal

    def cuDevicePrimaryCtxRetain(self, device):
        return 0, 0x100 + device

    def cuCtxSetCurrent(self, context):
        self.context = context
        return (0,)

    def cuCtxGetCurrent(self):
        return 0, self.context

    def cuCtxGetDevice(self):
        return 0, self.context - 0x100

    def cuDeviceGetAttribute(self, attribute, device):
        return 0, self._numbers[attribute]

    def cuFuncGetAttribute(self, attribute, function):
        return 0, self._numbers[attribute]

    def cuFuncSetAttribute(self, function, attribute, value):
        self.attributes.append((function, attribute.removeprefix("CU_FUNC_ATTRIBUTE_"), value))
        return (0,)

    def cuGetProcAddress(self, symbol, version, flags):
        assert symbol == b"cuPointerGetAttribute"
        return 0, ctypes.cast(self._pointer_attribute, ctypes.c_void_p).value, "found"

    def _attribute_of_pointer(self, found, attribute, pointer):
        assert attribute == 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        if self.memory is not None and pointer not in self.memory:
            return int(CUresult.CUDA_ERROR_INVALID_VALUE)
        found[0] = self.context - 0x100 if self.memory is None else self.memory[pointer]
        return 0

    def cuThreadExchangeStreamCaptureMode(self, mode):
        return 0, mode

    def cuLibraryLoadData(self, code, *options):
        self.loaded.append(bytes(code))
        return 0, len(self.loaded)

    def cuLibraryGetKernel(self, library, name):
        return 0, (library, name.decode())

    def cuKernelGetFunction(self, kernel):
        return 0, (*kernel, self.context)

    def cuLibraryUnload(self, library):
        self.unloaded.append(library)
        return (0,)

    def cuCtxPushCurrent(self, context):
        if context - 0x100 >= self._devices:
            return (CUresult.CUDA_ERROR_INVALID_CONTEXT,)
        self._below, self.context = self.context, context
        return (0,)

    def cuCtxPopCurrent(self):
        popped, self.context = self.context, self._below
        return 0, popped

    def cuLibraryGetGlobal(self, library, name):
        name = name.decode()
        if name not in self.sizes:
            return CUresult.CUDA_ERROR_NOT_FOUND, 0, 0
        key = int(library), self.context, name
        self.globals.setdefault(key, bytearray(self.sizes[name]))
        return 0, key, self.sizes[name]

    def cuLibraryGetManaged(self, library, name):
        _, (library, _, name), size = self.cuLibraryGetGlobal(library, name)
        self.globals.setdefault((library, 0, name), bytearray(size))  # one for all contexts
        return 0, (library, 0, name), size

    def cuMemcpyHtoDAsync(self, address, data, size, stream):
        self.globals[address][:] = ctypes.string_at(data, size)
        self.copies.append((address[2], stream))
        return (0,)

    def cuMemcpyDtoHAsync(self, data, address, size, stream):
        ctypes.memmove(data, bytes(self.globals[address]), size)
        return (0,)

    def cuStreamCreate(self, flags):
        return 0, flags

    def cuStreamDestroy(self, stream):
        return (0,)

    def cuStreamSynchronize(self, stream):
        return (0,)

    def cuStreamIsCapturing(self, stream):
        return (CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT if self.capturing else 0), 0

    def cuEventCreate(self, flags):
        return 0, "event"

    def cuEventRecord(self, event, stream):
        self._recorded = stream
        return (0,)

    def cuStreamWaitEvent(self, stream, event, flags):
        self.waits.append((stream, self._recorded))
        return (0,)

    def cuEventDestroy(self, event):
        return (0,)

    def cuGetErrorName(self, error):
        return 0, error.name.encode()

    def cuGetErrorString(self, error):
        return 0, b"what the driver says"

    def cuLaunchKernelEx(self, config, function, parameters, extra):
        if self.errors:
            return (self.errors.pop(0),)
        pointers = (ctypes.c_void_p * 5).from_address(extra)
        assert (pointers[0], pointers[2], pointers[4]) == (1, 2, None)
        size = ctypes.c_size_t.from_address(pointers[3]).value
        self.launches.append(Launched(config, function, ctypes.string_at(pointers[1], size)))
        return (CUresult.CUDA_SUCCESS,)


class DeviceArray:
    """An array of a library of its own, which shows its memory as the array interface does."""

    def __init__(self, pointer=0x7000, shape=(8,), typestr="<f4", **more):
        self.__cuda_array_interface__ = {
            "data": (pointer, False),
            "shape": shape,
            "typestr": typestr,
            "version": 3,
            **more,
        }
