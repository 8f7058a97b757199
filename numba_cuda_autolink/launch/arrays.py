# SPDX-License-Identifier: BSD-2-Clause
"""Arrays of other libraries as views of device memory: ``__cuda_array_interface__`` and DLPack.

CuPy's, PyTorch's and numba-cuda's arrays are read by their attributes, without their array interfaces, which take
longer. As with the kernels of these libraries, only the stream of the launch orders it. What other libraries export
with a stream (``__cuda_array_interface__``, DLPack) is waited for.
"""

from __future__ import annotations

import operator
import re
import struct
from typing import Any, NamedTuple

from ..errors import LaunchError
from ..plain_types import ElementType, RecordType, element_type, item_size, type_name
from .driver import Device, bindings, call_driver, ordinal_of

_TORCH = {"uint8": "|u1", "int8": "|i1", "bool": "|b1", "float16": "<f2", "float32": "<f4", "float64": "<f8"}
_TORCH |= {f"{sign}int{8 * size}": f"<{sign or 'i'}{size}" for sign in ("", "u") for size in (2, 4, 8)}
_TORCH |= {"complex64": "<c8", "complex128": "<c16"}
_CUDA, _MANAGED = 2, 13  # DLPack's kinds of memory
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
        array = "np.array(...)" if device.is_emulated else "cuda.to_device(np.array(...))"
        raise Misfit(shown(value), f"pass an array, as {array}")
    return view._replace(device=_device_of(view, device)) if view.size and view.pointer else view


def _wait(stream: int | None, producer: int | None) -> None:
    """Make *stream* wait for what *producer* was given so far."""
    if stream is None or producer is None or producer == stream or (producer in _LEGACY and stream in _LEGACY):
        return
    api = bindings()
    event = call_driver(api.cuEventCreate, api.CUevent_flags.CU_EVENT_DISABLE_TIMING)
    try:
        call_driver(api.cuEventRecord, event, producer)
        call_driver(api.cuStreamWaitEvent, stream, event, 0)
    finally:
        call_driver(api.cuEventDestroy, event)


def _dlpack(value: Any, stream: int | None) -> View:
    kind, number = value.__dlpack_device__()
    if int(kind) not in (_CUDA, _MANAGED):
        raise _on_host(value, "a copy on the device")
    from cuda.core.utils import StridedMemoryView  # which no other array needs

    # There, 1 is the default stream, and -1 asks for no order.
    found = StridedMemoryView.from_dlpack(value, stream_ptr=-1 if stream is None else stream or 1)
    dtype, device = found.dtype, None if int(kind) == _MANAGED else int(number)
    strides = found.strides and tuple(dtype.itemsize * stride for stride in found.strides)
    return View(found.ptr, found.shape, strides, element_type(dtype), found.readonly, device)


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


_TYPESTR = re.compile(r"[<>|][A-Za-z]\d{1,9}(\[\w+\])?")


def read_interface(interface: Any) -> tuple[View, int | None]:
    """Return the memory that an array *interface* shows, and the stream to wait for. Raise `Misfit` for a masked array,
    and whatever Python raises for what is no interface."""
    if interface.get("mask") is not None:
        raise Misfit("a masked array")
    pointer, is_readonly = interface["data"]
    shape, strides, stream = tuple(map(operator.index, interface["shape"])), interface.get("strides"), None
    if not _TYPESTR.fullmatch(typestr := interface["typestr"]):
        raise ValueError(f"its typestr is {typestr!r:.60}")
    if strides is not None:
        strides = tuple(map(operator.index, strides))
    if interface.get("stream") is not None:
        stream = operator.index(interface["stream"])
    # As a kernel gets them: as many lengths as strides, all of which fit.
    struct.pack(f"QQ{len(shape)}Q{len(shape)}q", pointer or 0, stream or 0, *shape, *(strides or shape))
    dtype = _type_of(typestr, interface.get("descr"))
    return View(pointer or 0, shape, strides, dtype, bool(is_readonly)), stream


def _type_of(typestr: str, descr: Any = None) -> ElementType:
    """Return the element type that an array interface describes. Fields without a name are padding."""
    if typestr[1:2] != "V" or not descr or (len(descr) == 1 and not descr[0][0]):
        return typestr
    fields, at = [], 0
    for name, inner, *shape in descr:
        dims = tuple(map(int, shape[0])) if shape else ()
        kind = inner if isinstance(inner, str) else _type_of("|V0", inner)
        size = item_size(kind)
        for length in dims:
            size *= length
        if name:
            fields.append((name[1] if isinstance(name, tuple) else name, at, kind, dims))
        at += size
    return RecordType(int(typestr[2:]) or at, tuple(fields))


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


def shown(value: Any) -> str:
    """Return *value* for messages, in a few words: ``float 1.5``, ``list [1, 2]``."""
    if value is None:
        return "None"
    try:
        return f"{type(value).__name__} {value!r:.60}"
    except Exception:  # a foreign object's own, and integers with thousands of digits
        return type(value).__name__
