# SPDX-License-Identifier: BSD-2-Clause
"""Arrays of other libraries as views of device memory.

CuPy's, PyTorch's and numba-cuda's arrays are read by their attributes, without their array interfaces, which take
longer. As with the kernels of these libraries, only the stream of the launch orders it. What other libraries export
with a stream (``__cuda_array_interface__``, DLPack) is waited for.
"""

from __future__ import annotations

from typing import Any

from ..errors import LaunchError
from ..types.parameters import element_type
from .array_interface import read_interface
from .driver import Device, bindings, called, ordinal_of
from .views import Misfit, View, shown

_TORCH = {"uint8": "|u1", "int8": "|i1", "bool": "|b1", "float16": "<f2", "float32": "<f4", "float64": "<f8"}
_TORCH |= {f"{sign}int{8 * size}": f"<{sign or 'i'}{size}" for sign in ("", "u") for size in (2, 4, 8)}
_TORCH |= {"complex64": "<c8", "complex128": "<c16"}
_DLPACK = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_ON_DEVICE = (2, 13)  # DLPack's CUDA and managed memory
_LEGACY = (0, 1)  # two handles of one stream


def library_of(kind: type) -> str:
    """Return whose array class *kind* is: ``cupy``, ``torch``, ``numba``, or ``""``."""
    package, name = kind.__module__.partition(".")[0], kind.__name__
    if package == "torch" and name in ("Tensor", "Parameter"):
        return "torch"
    if package == "cupy" and name == "ndarray":
        return "cupy"
    return "numba" if package == "numba" and name in ("DeviceNDArray", "MappedNDArray", "ManagedNDArray") else ""


def view_of(value: Any, stream: int | None, device: Device) -> View:
    """Return the memory that *value* shows to a launch on *stream* of *device*. Raise `Misfit` if there is none.

    *stream* waits for the stream that *value* names; without one nothing waits.
    """
    read = _READERS.get(library_of(type(value)))
    try:
        view = read(value) if read is not None else _other(value, stream, device)
    except (Misfit, LaunchError):
        raise
    except Exception as error:  # foreign objects raise whatever they like
        why = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise Misfit(f"{type(value).__name__} that does not show its memory: {why}") from None
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


def _other(value: Any, stream: int | None, device: Device) -> View:
    interface = getattr(value, "__cuda_array_interface__", None)
    if device.is_emulated and hasattr(value, "__array_interface__"):
        view, _ = read_interface(value.__array_interface__)
        return view._replace(device=device.ordinal, dtype=element_type(value.dtype))
    name, package = type(value).__name__, type(value).__module__.partition(".")[0]
    if interface is not None:
        view, producer = read_interface(interface)
        _wait(stream, producer)
        if package == "numba_cuda_mlir":  # its interface leaves out the fields of records
            view = view._replace(dtype=element_type(value.dtype))
    elif package == "cuda" and name == "Buffer":
        view = View(int(value.handle or 0), (value.size,), None, None)
        if not view.pointer and not value.size:
            raise Misfit("a buffer that was closed")
    elif hasattr(value, "__dlpack__") and not hasattr(value, "__array_interface__"):
        view = _dlpack(value, stream)
    elif hasattr(value, "__array_interface__") or hasattr(value, "__array__") or package == "numpy":
        raise _on_host(value, "cuda.to_device(...), cupy.asarray(...)")
    else:
        raise Misfit(shown(value))
    return view._replace(device=_device_of(view, device)) if view.size and view.pointer else view


def _wait(stream: int | None, producer: int | None) -> None:
    """Make *stream* wait for what *producer* was given so far."""
    if stream is None or producer is None or producer == stream or (producer in _LEGACY and stream in _LEGACY):
        return
    api = bindings()
    event = called(api.cuEventCreate, api.CUevent_flags.CU_EVENT_DISABLE_TIMING)
    try:
        called(api.cuEventRecord, event, producer)
        called(api.cuStreamWaitEvent, stream, event, 0)
    finally:
        called(api.cuEventDestroy, event)


def _dlpack(value: Any, stream: int | None) -> View:
    from .dlpack import read_capsule

    kind, number = value.__dlpack_device__()
    if int(kind) not in _ON_DEVICE:
        raise _on_host(value, "a copy on the device")
    # There, 1 is the default stream, and -1 asks for no order.
    capsule = value.__dlpack__(stream=-1 if stream is None else stream or 1)
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
    ordinal = ordinal_of(view.pointer)
    if ordinal is None and not device.reads_host_memory:
        raise Misfit(f"{view} whose memory was freed, or is not the device's")
    return device.ordinal if ordinal is None or ordinal < 0 else ordinal


def _on_host(value: Any, copy: str) -> Misfit:
    return Misfit(f"{type(value).__name__} in host memory", f"copy it to the device first: {copy}")
