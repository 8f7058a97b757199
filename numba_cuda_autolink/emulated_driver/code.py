# SPDX-License-Identifier: BSD-2-Clause
"""Code of the emulated driver: PTX that a program loads, its kernels, and their launches."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..emulator import Kernel, Module
from ..emulator.errors import LaunchSizeError
from ..errors import LaunchError
from ..mangled_names import short_name
from .c_functions import (
    COOPERATIVE_LAUNCH_TOO_LARGE,
    FILE_NOT_FOUND,
    INVALID_HANDLE,
    INVALID_VALUE,
    NO_BINARY_FOR_GPU,
    NOT_FOUND,
    NOT_SUPPORTED,
    Handles,
    Refused,
    c_function,
    put_handle,
    put_int,
    text_at,
)
from .device import MOST_SHARED, MULTIPROCESSORS, THREADS_OF_MULTIPROCESSOR, settings
from .streams import in_order

_WITHOUT_ASKING = 48 << 10  # bytes of dynamic and static shared memory
_MAX_THREADS, _SHARED_SIZE, _CONSTANT_SIZE, _LOCAL_SIZE = range(4)  # function attributes; others are 0
_PTX_VERSION, _BINARY_VERSION, _MAX_DYNAMIC_SHARED, _CARVEOUT = 5, 6, 8, 9
_COOPERATIVE, _CLUSTER = 2, 4  # launch attributes
_END, _BUFFER, _BUFFER_SIZE = 0, 1, 2  # CU_LAUNCH_PARAM_*
_TEXTS = re.compile(r"^(?=\.version\b)", re.MULTILINE)


class _MachineCodeError(LaunchError):
    driver_code = NO_BINARY_FOR_GPU


class _UnloadedCodeError(LaunchError):
    driver_code = INVALID_HANDLE


@dataclass(eq=False)
class _Function:
    """A kernel of loaded code, and the attributes that a program set."""

    kernel: Kernel
    library: int
    name: Any
    attributes: dict[int, int] = field(default_factory=dict)


@dataclass(eq=False)
class _Library:
    module: Module
    functions: dict[str, int] = field(default_factory=dict)


_libraries, _functions = Handles(), Handles()
_unloaded: dict[int, str] = {}  # names of kernels


def _load(code: bytes) -> int:
    if not code.startswith((b"/", b".", b"\n", b" ")):
        raise _MachineCodeError(
            "machine code was loaded, and the emulator runs PTX alone"
            f"\n  got: code that begins with {code[:4]!r}"
            "\n  what to do: build or save it as PTX, with output='ptx'"
        )
    texts = [text for text in _TEXTS.split(code.decode()) if ".version" in text]
    if settings.checks.initialised:
        gc.collect()  # errors that the compiler caught, whose frames hold the arrays of the launch
    return _libraries.add(_Library(Module(texts, checks=settings.checks)))


@contextlib.contextmanager
def handle_of(module: Module) -> Iterator[int]:
    """Give a handle of *module*, as of a library that a program loaded."""
    handle = _libraries.add(_Library(module))
    try:
        yield handle
    finally:
        _libraries.remove(handle)


@c_function("pp", "cuLibraryLoadData", "cuModuleLoadData", "cuModuleLoadDataEx")
def cuLibraryLoadData(library: int, code: int) -> None:
    put_handle(library, _load(ctypes.string_at(code)))


@c_function("pp")
def cuLibraryLoadFromFile(library: int, path: int) -> None:
    try:
        with open(text_at(path), "rb") as file:
            put_handle(library, _load(file.read()))
    except OSError:
        raise Refused(FILE_NOT_FOUND) from None


@c_function("p", "cuLibraryUnload", "cuModuleUnload")
def cuLibraryUnload(library: int) -> None:
    for name, handle in _libraries.remove(library).functions.items():
        _functions.remove(handle)
        _unloaded[handle] = name


@c_function("pp")
def cuLibraryGetModule(module: int, library: int) -> None:
    _libraries[library]
    put_handle(module, library)


@c_function("pp")
def cuLibraryGetKernelCount(count: int, library: int) -> None:
    put_int(count, len(_libraries[library].module.kernels))


@c_function("ppp", "cuLibraryGetKernel", "cuModuleGetFunction")
def cuLibraryGetKernel(kernel: int, library: int, name: int) -> None:
    found, text = _libraries[library], text_at(name)
    if text not in found.functions:
        if text not in found.module.kernels:
            raise Refused(NOT_FOUND)
        kept = ctypes.create_string_buffer(text.encode())
        found.functions[text] = _functions.add(_Function(found.module.kernels[text], library, kept))
    put_handle(kernel, found.functions[text])


@c_function("pppp", "cuLibraryGetGlobal", "cuLibraryGetManaged", "cuModuleGetGlobal")
def cuLibraryGetGlobal(address: int, nbytes: int, library: int, name: int) -> None:
    variable = _libraries[library].module.find_variable(text_at(name))
    if variable is None:
        raise Refused(NOT_FOUND)
    put_handle(address, variable.address)
    put_handle(nbytes, variable.nbytes)


# Kernels


@c_function("pp")
def cuKernelGetFunction(function: int, kernel: int) -> None:
    _functions[kernel]
    put_handle(function, kernel)


@c_function("pp", "cuKernelGetLibrary", "cuFuncGetModule")
def cuKernelGetLibrary(library: int, kernel: int) -> None:
    put_handle(library, _functions[kernel].library)


@c_function("pp", "cuKernelGetName", "cuFuncGetName")
def cuKernelGetName(name: int, kernel: int) -> None:
    put_handle(name, ctypes.addressof(_functions[kernel].name))


@c_function("pppp", "cuKernelGetParamInfo", "cuFuncGetParamInfo")
def cuKernelGetParamInfo(kernel: int, number: int, offset: int, size: int) -> None:
    parameters = _functions[kernel].kernel.parameters
    if number >= len(parameters):
        raise Refused(INVALID_VALUE)
    put_handle(offset, parameters[number][0])
    put_handle(size, parameters[number][1])


@c_function("pip", "cuFuncGetAttribute", "cuKernelGetAttribute")
def cuFuncGetAttribute(value: int, attribute: int, function: int) -> None:
    found = _functions[function]
    known, (major, minor) = found.kernel, settings.compute_capability
    values = {
        _MAX_THREADS: known.max_threads,
        _SHARED_SIZE: known.shared_bytes,
        _CONSTANT_SIZE: known.constant_bytes,
        _LOCAL_SIZE: known.local_bytes,
        _PTX_VERSION: 10 * major + minor,
        _BINARY_VERSION: 10 * major + minor,
        _MAX_DYNAMIC_SHARED: _WITHOUT_ASKING - known.shared_bytes,
        _CARVEOUT: -1,
    }
    put_int(value, found.attributes.get(attribute, values.get(attribute, 0)))


@c_function("pii")
def cuFuncSetAttribute(function: int, attribute: int, value: int) -> None:
    found = _functions[function]
    if attribute == _MAX_DYNAMIC_SHARED and value + found.kernel.shared_bytes > MOST_SHARED:
        raise Refused(INVALID_VALUE)
    found.attributes[attribute] = value


@c_function("iipi")
def cuKernelSetAttribute(attribute: int, value: int, kernel: int, device: int) -> None:
    cuFuncSetAttribute(kernel, attribute, value)


@c_function("p", "cuFuncLoad", "cuFuncSetCacheConfig", "cuKernelSetCacheConfig")
def cuFuncLoad(function: int) -> None:
    _functions[function]


def _blocks_of_multiprocessor(function: _Function, threads: int, shared: int) -> int:
    used = function.kernel.shared_bytes + shared
    by_memory = (MOST_SHARED + (1 << 10)) // (used + (1 << 10))
    return min(THREADS_OF_MULTIPROCESSOR // max(threads, 1), by_memory, 32)


@c_function(
    "ppip", "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"
)
def cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: int, function: int, threads: int, shared: int) -> None:
    put_int(blocks, _blocks_of_multiprocessor(_functions[function], threads, shared))


@c_function("pppppi")
def cuOccupancyMaxPotentialBlockSize(
    grid: int, threads: int, function: int, shared_of: int, shared: int, limit: int
) -> None:
    most = _functions[function].kernel.max_threads
    put_int(threads, min(most, limit or most))
    put_int(grid, MULTIPROCESSORS)


@c_function("ppii")
def cuOccupancyAvailableDynamicSMemPerBlock(size: int, function: int, blocks: int, threads: int) -> None:
    put_handle(size, MOST_SHARED // max(blocks, 1) - _functions[function].kernel.shared_bytes)


# Launches

_Size = tuple[int, int, int]


def _launch(
    function: int, grid: _Size, block: _Size, shared: int, stream: int, parameters: int, extra: int, cooperative: bool
) -> None:
    if function in _unloaded:
        raise _UnloadedCodeError(
            f"{short_name(_unloaded[function])} is launched after its code was unloaded"
            "\n  what to do: unload code, as numba-cuda's Context.reset() does, only when its kernels are done"
            "\n  what to do: define the kernel again after that"
        )
    found = _functions[function]
    kernel, threads = found.kernel, block[0] * block[1] * block[2]
    name = short_name(kernel.name)
    allowed = found.attributes.get(_MAX_DYNAMIC_SHARED, _WITHOUT_ASKING - kernel.shared_bytes)
    if shared > max(allowed, 0):
        text = f"{name} cannot be launched with {shared} bytes of dynamic shared memory: it may use {allowed}"
        raise LaunchSizeError(f"{text}\n  what to do: launch it with fewer bytes", kernel=kernel.name)
    resident = MULTIPROCESSORS * _blocks_of_multiprocessor(found, threads, shared)
    if cooperative and grid[0] * grid[1] * grid[2] > resident:
        raise Refused(COOPERATIVE_LAUNCH_TOO_LARGE)
    arguments = _packed(kernel, parameters, extra)
    in_order(stream, lambda: kernel.launch(grid, block, arguments, shared=shared, cooperative=cooperative))


def _packed(kernel: Kernel, parameters: int, extra: int) -> bytes:
    """Return the bytes of the parameters: from the addresses of each, or from one buffer."""
    if extra:
        found = {}
        while key := ctypes.c_size_t.from_address(extra).value:
            found[key] = ctypes.c_size_t.from_address(extra + 8).value
            extra += 16
        size = ctypes.c_size_t.from_address(found[_BUFFER_SIZE]).value
        return ctypes.string_at(found[_BUFFER], size)
    end = max((offset + size for offset, size in kernel.parameters), default=0)
    packed = bytearray(end)
    for number, (offset, size) in enumerate(kernel.parameters):
        address = ctypes.c_size_t.from_address(parameters + 8 * number).value
        packed[offset : offset + size] = ctypes.string_at(address, size)
    return bytes(packed)


def _sizes(numbers: Sequence[int]) -> tuple[_Size, _Size]:
    """Return the sizes of a grid and of a block."""
    return (numbers[0], numbers[1], numbers[2]), (numbers[3], numbers[4], numbers[5])


class _Config(ctypes.Structure):
    """``CUlaunchConfig``."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_size_t),
        ("attributes", ctypes.c_size_t),
        ("count", ctypes.c_uint),
    )


class _Attribute(ctypes.Structure):
    """``CUlaunchAttribute``."""

    _fields_ = (("kind", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_uint * 16))


@c_function("pppp")
def cuLaunchKernelEx(config: int, function: int, parameters: int, extra: int) -> None:
    given = _Config.from_address(config)
    attributes = (_Attribute * given.count).from_address(given.attributes) if given.count else ()
    values = {each.kind: tuple(each.value) for each in attributes}
    if values.get(_CLUSTER, (1, 1, 1))[:3] != (1, 1, 1):
        raise Refused(NOT_SUPPORTED)
    cooperative = bool(values.get(_COOPERATIVE, (0,))[0])
    sizes = _sizes([*given.grid, *given.block])
    _launch(function, *sizes, given.shared, given.stream, parameters, extra, cooperative)


@c_function("puuuuuuuppp")
def cuLaunchKernel(function: int, *rest: int) -> None:
    shared, stream, parameters, extra = rest[6:]
    _launch(function, *_sizes(rest), shared, stream, parameters, extra, False)


@c_function("puuuuuuupp")
def cuLaunchCooperativeKernel(function: int, *rest: int) -> None:
    shared, stream, parameters = rest[6:]
    _launch(function, *_sizes(rest), shared, stream, parameters, 0, True)
