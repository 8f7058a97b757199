# SPDX-License-Identifier: BSD-2-Clause
"""Memory of the emulated driver: what a program allocates, registers, copies and sets."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass

from ..emulator import memory
from .c_functions import (
    INVALID_VALUE,
    NOT_SUPPORTED,
    OUT_OF_MEMORY,
    Handles,
    Refused,
    c_function,
    constant_function,
    put,
    put_handle,
    put_int,
)
from .device import current_context
from .streams import in_order

_LARGEST = 16 << 30
_HOST, _DEVICE = 1, 2  # CU_MEMORYTYPE_HOST, DEVICE


@dataclass(frozen=True)
class _Region:
    """Memory that a program allocated or registered."""

    nbytes: int
    kind: int
    is_managed: bool = False


_regions: dict[int, _Region] = {}


def _allocate(nbytes: int, what: str, kind: int = _DEVICE, *, is_managed: bool = False) -> int:
    if nbytes == 0:
        raise Refused(INVALID_VALUE)
    if nbytes > _LARGEST:
        raise Refused(OUT_OF_MEMORY)
    try:
        address = memory.allocate(nbytes, label=what)
    except MemoryError:
        raise Refused(OUT_OF_MEMORY) from None
    _regions[address] = _Region(nbytes, kind, is_managed)
    return address


def _free(address: int) -> None:
    if _regions.pop(address, None) is None:
        raise Refused(INVALID_VALUE)
    memory.free(address)


@c_function("pp")
def cuMemAlloc(address: int, nbytes: int) -> None:
    put_handle(address, _allocate(nbytes, "device memory"))


@c_function("ppp")
def cuMemAllocAsync(address: int, nbytes: int, stream: int) -> None:
    put_handle(address, _allocate(nbytes, "device memory") if nbytes else 0)


@c_function("pppp")
def cuMemAllocFromPoolAsync(address: int, nbytes: int, pool: int, stream: int) -> None:
    _pools[pool]
    cuMemAllocAsync(address, nbytes, stream)


@c_function("ppu")
def cuMemAllocManaged(address: int, nbytes: int, flags: int) -> None:
    put_handle(address, _allocate(nbytes, "managed memory", is_managed=True))


@c_function("pp", "cuMemAllocHost", "cuMemHostAlloc")
def cuMemAllocHost(address: int, nbytes: int) -> None:
    put_handle(address, _allocate(nbytes, "pinned memory", _HOST))


@c_function("p", "cuMemFree", "cuMemFreeHost")
def cuMemFree(address: int) -> None:
    if address:
        _free(address)


@c_function("pp")
def cuMemFreeAsync(address: int, stream: int) -> None:
    if address:
        in_order(stream, lambda: _free(address))


@c_function("ppu")
def cuMemHostRegister(address: int, nbytes: int, flags: int) -> None:
    if not nbytes or address in _regions:
        raise Refused(INVALID_VALUE)
    memory.register(address, nbytes, f"registered memory of {nbytes} bytes")
    _regions[address] = _Region(nbytes, _HOST)


@c_function("p")
def cuMemHostUnregister(address: int) -> None:
    if _regions.pop(address, None) is None:
        raise Refused(INVALID_VALUE)
    memory.unregister(address)


@c_function("ppu")
def cuMemHostGetDevicePointer(device_address: int, address: int, flags: int) -> None:
    put_handle(device_address, address)


@c_function("ppp")
def cuMemGetAddressRange(base: int, size: int, address: int) -> None:
    start, region = _region_of(address)
    put_handle(base, start)
    put_handle(size, region.nbytes)


def _region_of(address: int) -> tuple[int, _Region]:
    """Return where the memory begins that *address* is in, and what it is."""
    found = memory.find(address)
    if found is None or found.freed:
        raise Refused(INVALID_VALUE)
    known = _regions.get(found.address)
    return found.address, known or _Region(found.nbytes, _DEVICE)


# Attributes of addresses, by their numbers in cuda.h


@c_function("pip")
def cuPointerGetAttribute(data: int, attribute: int, address: int) -> None:
    _put_attribute(data, attribute, address)


@c_function("uppp")
def cuPointerGetAttributes(count: int, attributes: int, data: int, address: int) -> None:
    kinds = (ctypes.c_int * count).from_address(attributes)
    targets = (ctypes.c_size_t * count).from_address(data)
    for attribute, target in zip(kinds, targets, strict=True):
        try:
            _put_attribute(target, attribute, address)
        except Refused:  # memory that the driver does not know has zeros, and no device
            put_int(target, -2 if attribute == 9 else 0)


def _put_attribute(data: int, attribute: int, address: int) -> None:
    start, region = _region_of(address)
    if attribute in (1, 3, 4, 11, 12, 17):  # CONTEXT, DEVICE_POINTER, HOST_POINTER, RANGE_START_ADDR, RANGE_SIZE, pool
        values = {1: current_context(), 3: address, 4: address, 11: start, 12: region.nbytes, 17: 0}
        if attribute == 4 and region.kind == _DEVICE and not region.is_managed:
            raise Refused(INVALID_VALUE)
        put_handle(data, values[attribute])
    elif attribute in (2, 9):  # MEMORY_TYPE, DEVICE_ORDINAL
        put_int(data, region.kind if attribute == 2 else 0)
    elif attribute in (8, 10, 13):  # IS_MANAGED, IS_LEGACY_CUDA_IPC_CAPABLE, MAPPED
        put(data, ctypes.c_ubyte, int(attribute == 13 or (attribute == 8 and region.is_managed)))
    elif attribute == 7:  # BUFFER_ID
        put_handle(data, start)
    else:
        raise Refused(NOT_SUPPORTED)


# Copies


def _check(address: int, nbytes: int) -> None:
    """Raise `Refused` if not all of these bytes are memory of the device."""
    if nbytes:
        start, region = _region_of(address)
        if address + nbytes > start + region.nbytes:
            raise Refused(INVALID_VALUE)


def _copy(target: int, source: int, nbytes: int, stream: int = 0) -> None:
    in_order(stream, lambda: ctypes.memmove(target, source, nbytes))


def _host_to_device(target: int, source: int, nbytes: int, stream: int = 0) -> None:
    _check(target, nbytes)
    _copy(target, source, nbytes, stream)


def _device_to_host(target: int, source: int, nbytes: int, stream: int = 0) -> None:
    _check(source, nbytes)
    _copy(target, source, nbytes, stream)


def _device_to_device(target: int, source: int, nbytes: int, stream: int = 0) -> None:
    _check(source, nbytes)
    _host_to_device(target, source, nbytes, stream)


for _name, _function in {
    "cuMemcpyHtoD": _host_to_device,
    "cuMemcpyDtoH": _device_to_host,
    "cuMemcpyDtoD": _device_to_device,
    "cuMemcpy": _copy,
}.items():
    for _suffix, _types in (("", "ppp"), ("Async", "pppp")):
        c_function(_types, _name + _suffix)(_function)


def _set(format: str, address: int, value: int, count: int, stream: int = 0) -> None:
    one = struct.pack(format, value)
    _check(address, len(one) * count)
    in_order(stream, lambda: ctypes.memmove(address, one * count, len(one) * count))


def _register_set(bits: int, format: str, kind: str) -> None:
    def memset(address: int, value: int, count: int, stream: int = 0) -> None:
        _set(format, address, value, count, stream)

    c_function(f"p{kind}p", f"cuMemsetD{bits}")(memset)
    c_function(f"p{kind}pp", f"cuMemsetD{bits}Async")(memset)


for _bits, _format, _kind in ((8, "B", "b"), (16, "H", "h"), (32, "I", "u")):
    _register_set(_bits, _format, _kind)


# Pools: memory is taken and given back at once

_pools = Handles(INVALID_VALUE)
_default_pool = _pools.add("default")
for _name in ("cuDeviceGetMemPool", "cuDeviceGetDefaultMemPool"):
    constant_function(_name, "Pd", _default_pool)


@c_function("ip")
def cuDeviceSetMemPool(device: int, pool: int) -> None:
    _pools[pool]


@c_function("pp")
def cuMemPoolCreate(pool: int, properties: int) -> None:
    put_handle(pool, _pools.add("created"))


@c_function("p")
def cuMemPoolDestroy(pool: int) -> None:
    _pools.remove(pool)


@c_function("pip")
def cuMemPoolGetAttribute(pool: int, attribute: int, value: int) -> None:
    _pools[pool]
    put_handle(value, 0)


@c_function("p", "cuMemPoolTrimTo", "cuMemPoolSetAttribute")
def cuMemPoolTrimTo(pool: int) -> None:
    _pools[pool]
