# SPDX-License-Identifier: BSD-2-Clause
"""Arrays of other libraries as views of device memory: address, shape, strides, element type.

CuPy's, PyTorch's and numba-cuda's arrays are read by their attributes, without their array interfaces, which take
longer. As with the kernels of these libraries, only the stream of the launch orders it. What other libraries export
with a stream (``__cuda_array_interface__``, DLPack) is waited for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .driver import Device, bindings, called
from .parameters import ElementType, described_type, element_type, item_size, type_name

_TORCH = {"uint8": "|u1", "int8": "|i1", "bool": "|b1", "float16": "<f2", "float32": "<f4", "float64": "<f8"}
_TORCH |= {f"{sign}int{8 * size}": f"<{sign or 'i'}{size}" for sign in ("", "u") for size in (2, 4, 8)}
_TORCH |= {"complex64": "<c8", "complex128": "<c16"}
_DLPACK = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_ON_DEVICE = (2, 13)  # DLPack's CUDA and managed memory
_LEGACY = (0, 1)  # two handles of one stream


class Misfit(Exception):
    """An argument does not fit: what it is, and what to do."""

    def __init__(self, got: str, remedy: str = ""):
        super().__init__(got)
        self.got, self.remedy = got, remedy


class View(NamedTuple):
    """Memory that an array shows. ``strides`` are in bytes, ``None`` for C-contiguous arrays. ``dtype`` is ``None`` for
    bytes without a type. ``device`` is the number of the device if the library tells it."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: ElementType | None
    readonly: bool = False
    device: int | None = None

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for length in self.shape:
            count *= length
        return count

    def is_contiguous(self, layout: str, itemsize: int) -> bool:
        """Return whether it has *layout*, ``C`` or ``F``. Strides of dimensions of length 1 do not count."""
        if self.strides is None:
            return layout == "C" or sum(length != 1 for length in self.shape) < 2 or not self.size
        pairs = zip(self.shape, contiguous_strides(self.shape, itemsize, layout), self.strides, strict=True)
        return not self.size or all(length == 1 or expected == stride for length, expected, stride in pairs)

    def __str__(self) -> str:
        if self.dtype is None:
            return f"{self.shape[0]} bytes"
        itemsize = item_size(self.dtype)
        layout = next((each for each in "CF" if self.is_contiguous(each, itemsize)), "A")
        kind = "read-only array" if self.readonly else "array"
        return f"{kind}({type_name(self.dtype)}, {len(self.shape)}d, {layout})"


def contiguous_strides(shape: tuple[int, ...], itemsize: int, layout: str) -> tuple[int, ...]:
    """Return the strides in bytes of an array of *layout* ``C`` or ``F``."""
    strides, step = [], itemsize
    for length in reversed(shape) if layout == "C" else shape:
        strides.append(step)
        step *= length
    return tuple(reversed(strides) if layout == "C" else strides)


def library_of(kind: type) -> str:
    """Return whose array class *kind* is: ``cupy``, ``torch``, ``numba``, or ``""``."""
    package, name = kind.__module__.partition(".")[0], kind.__name__
    if package == "torch" and name in ("Tensor", "Parameter"):
        return "torch"
    if package == "cupy" and name == "ndarray":
        return "cupy"
    return "numba" if package == "numba" and name in ("DeviceNDArray", "MappedNDArray", "ManagedNDArray") else ""


def view_of(value: Any, stream: int, device: Device) -> View:
    """Return the memory that *value* shows to a launch on *stream* of *device*. Raise `Misfit` if there is none."""
    read = _READERS.get(library_of(type(value)))
    view = read(value) if read is not None else _other(value, stream, device)
    if view.size and not view.pointer:
        raise Misfit(f"{view} whose memory was freed")
    if view.device is not None and view.device != device.ordinal:
        raise Misfit(f"{view} on device {view.device}", f"copy it to device {device.ordinal}, or launch on its device")
    return view


def _cupy(value: Any) -> View:
    strides = None if value.flags.c_contiguous else value.strides
    return View(value.data.ptr, value.shape, strides, element_type(value.dtype), False, value.data.device_id)


def _torch(value: Any) -> View:
    if not value.is_cuda:
        raise _on_host(value, "tensor.cuda()")
    dtype = str(value.dtype).rpartition(".")[2]
    if dtype not in _TORCH:
        raise Misfit(f"a tensor of {dtype}, which kernels have no type for")
    if value.is_conj() or value.is_neg():
        raise Misfit("a tensor whose values are not computed yet", "pass tensor.resolve_conj().resolve_neg()")
    itemsize = value.element_size()
    strides = None if value.is_contiguous() else tuple(itemsize * stride for stride in value.stride())
    return View(value.data_ptr(), tuple(value.shape), strides, _TORCH[dtype], False, value.get_device())


def _numba(value: Any) -> View:
    try:
        is_alive = getattr(getattr(value.gpu_data, "_finalizer", None), "alive", True)
    except ReferenceError:
        is_alive = False
    if not is_alive:
        raise Misfit("an array whose memory was freed")
    pointer = value.device_ctypes_pointer.value or 0
    device = getattr(getattr(value.gpu_data, "context", None), "device", None)
    number = None if device is None else int(device.id)
    return View(pointer, value.shape, value.strides, element_type(value.dtype), False, number)


_READERS = {"cupy": _cupy, "torch": _torch, "numba": _numba}


def _other(value: Any, stream: int, device: Device) -> View:
    interface = getattr(value, "__cuda_array_interface__", None)
    name, package = type(value).__name__, type(value).__module__.partition(".")[0]
    if interface is not None:
        view = _interface(interface, stream)
    elif package == "cuda" and name == "Buffer":
        view = View(int(value.handle or 0), (value.size,), None, None)
        if not view.pointer and not value.size:
            raise Misfit("a buffer that was closed")
    elif hasattr(value, "__dlpack__") and not hasattr(value, "__array_interface__"):
        view = _dlpack(value, stream)
    elif hasattr(value, "__array_interface__") or hasattr(value, "__array__") or package == "numpy":
        raise _on_host(value, "cuda.to_device(...), cupy.asarray(...)")
    else:
        raise Misfit(f"{name} {value!r:.40}")
    return view._replace(device=_device_of(view, device)) if view.size and view.pointer else view


def _interface(interface: Any, stream: int) -> View:
    pointer, readonly = interface["data"]
    shape = tuple(interface["shape"])
    if interface.get("mask") is not None:
        raise Misfit("a masked array")
    producer = interface.get("stream")
    if producer is not None and producer != stream and not (producer in _LEGACY and stream in _LEGACY):
        _wait(stream, int(producer))
    dtype = described_type(interface["typestr"], interface.get("descr"))
    return View(int(pointer or 0), shape, interface.get("strides"), dtype, bool(readonly))


def _wait(stream: int, producer: int) -> None:
    """Make *stream* wait for what *producer* was given so far."""
    api = bindings()
    event = called(api.cuEventCreate, api.CUevent_flags.CU_EVENT_DISABLE_TIMING)
    try:
        called(api.cuEventRecord, event, producer)
        called(api.cuStreamWaitEvent, stream, event, 0)
    finally:
        called(api.cuEventDestroy, event)


def _dlpack(value: Any, stream: int) -> View:
    from .dlpack import read_capsule

    kind, number = value.__dlpack_device__()
    if int(kind) not in _ON_DEVICE:
        raise _on_host(value, "a copy on the device")
    capsule = value.__dlpack__(stream=stream or 1)  # 0 has no meaning there: 1 is the default stream
    tensor = read_capsule(capsule)
    if tensor.lanes != 1 or tensor.code not in _DLPACK:
        raise Misfit(f"a DLPack array of type {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes")
    size = tensor.bits // 8
    dtype = f"{'|' if size == 1 else '<'}{_DLPACK[tensor.code]}{size}"
    strides = tensor.strides and tuple(size * stride for stride in tensor.strides)
    return View(tensor.pointer, tensor.shape, strides, dtype, False, None if int(kind) == 13 else int(number))


def _device_of(view: View, device: Device) -> int:
    """Return the device of the memory, as the driver knows it."""
    if view.device is not None:
        return view.device
    api = bindings()
    attribute = api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    error, ordinal = api.cuPointerGetAttribute(attribute, view.pointer)
    if int(error) != 0:
        if device.reads_host_memory:
            return device.ordinal
        raise Misfit(f"{view} whose memory was freed, or is not the device's")
    return int(ordinal) if int(ordinal) >= 0 else device.ordinal  # managed memory has no device


def _on_host(value: Any, copy: str) -> Misfit:
    return Misfit(f"{type(value).__name__} in host memory", f"copy it to the device first: {copy}")
