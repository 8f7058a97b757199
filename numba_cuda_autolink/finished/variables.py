# SPDX-License-Identifier: BSD-2-Clause
"""Variables of device code that the host sets, in every loaded module that has them.

A module is loaded when a kernel is first launched on a device. A variable remembers its value for the modules that are
loaded later, and where it is in those that are loaded already, without keeping them loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import LaunchError
from ..launch.driver import DriverError, bindings, call_driver, current_context, device_of
from ..plain_types import VariableType, type_name
from ..printable_texts import number_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

_LEGACY = 0  # the default stream, which waits for all others but the non-blocking ones
_CAPTURES = (900, 901, 905, 906)  # CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, INVALIDATED, ISOLATION, IMPLICIT
_EMULATED = 0  # in place of a context, of modules in the emulator
_NOT_FOUND = 500  # CUDA_ERROR_NOT_FOUND: nothing in the module reads it


class _Copy(NamedTuple):
    """The variable in one module and one context. ``owner`` keeps the module loaded while it lives."""

    owner: weakref.ref[Any]
    library: Any
    context: int
    device: int


class Variable:
    """A variable of finished kernels: `KernelLibrary.variables` has them by name.

    Each kernel has its own copy of it, and each device. `set` sets them all, of kernels that are loaded and of those
    that will be.
    """

    _public = ("dtype", "get", "initial", "name", "set", "shape", "space")

    def __init__(self, type: VariableType, value: bytes | None = None):
        self.type = type
        self._lock = threading.RLock()
        self._copies: list[_Copy] = []
        self._value = value
        self._of_device: dict[int, bytes] = {}

    def __dir__(self) -> list[str]:
        """Return the names for users."""
        return sorted([*(name for name in super().__dir__() if name.startswith("__")), *self._public])

    @property
    def name(self) -> str:
        """Its name in C++."""
        return self.type.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.type.shape

    @property
    def space(self) -> str:
        """The memory that it is in: ``"constant"``, ``"device"`` or ``"managed"``."""
        return self.type.space

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of its elements."""
        return self.type.dtype

    @property
    def initial(self) -> bytes | None:
        """The bytes that it has in a module that is loaded now; ``None`` if it was never set, which are zeros."""
        return self._value

    def set(self, value: ArrayLike, *, device: int | None = None) -> None:
        """Set it in all kernels, loaded now and later, on all devices.

        This waits for the kernels that were launched before, other than in non-blocking streams: synchronize those
        first. Graphs that were captured see the value in their next launch.

        Parameters
        ----------
        value:
            An array in host memory of the variable's dtype and shape; or a number or (nested) lists of numbers.
        device:
            The number of one device, to set it there alone. Default: all.

        Raises
        ------
        TypeError, ValueError
            If the dtype or the shape is another one, or the array is on a device.
        LaunchError
            If a stream is being captured, or the driver refuses the copy.
        """
        data = self._bytes(value)
        with self._lock:
            copies = [copy for copy in self._alive() if device is None or copy[1].device == device]
            self._check_capture("set", copies)
            if device is None:
                self._value = data
                self._of_device.clear()
            else:
                self._of_device[device] = data
            for _, copy in copies:
                self._write(copy, data, _LEGACY)

    def get(self, kernel: Any = None, *, device: int | None = None) -> np.ndarray[Any, Any]:
        """Return the value as a NumPy array: as it is in memory, where kernels may have changed it.

        Before a kernel with it is loaded this is what was set, or zeros.

        Parameters
        ----------
        kernel:
            The kernel whose copy to read. Default: any that is loaded; all must have the same value.
        device:
            The number of the device. Default: the current one.

        Raises
        ------
        ValueError
            If loaded kernels have different values, and none was chosen.
        """
        return self._get_from(None if kernel is None else kernel._owners, device)

    def _get_from(self, owners: Iterable[Any] | None, device: int | None = None) -> Any:
        """Return the value in the modules that one of *owners* keeps loaded (default: in all); see `get`."""
        wanted = None if owners is None else set(map(id, owners))
        with self._lock:
            alive = [(owner, copy) for owner, copy in self._alive() if wanted is None or id(owner) in wanted]
            self._check_capture("read", alive)
            if device is None and any(copy.context != _EMULATED for _, copy in alive):
                device = device_of(current_context()[0]).ordinal
            elif alive and device is None:
                device = alive[0][1].device
            found = [data for _, copy in alive if copy.device == device and (data := self._read(copy)) is not None]
            if not found:
                value = self._value if device is None else self._of_device.get(device, self._value)
                found = [value or bytes(self.type.nbytes)]
        if any(data != found[0] for data in found):
            raise ValueError(
                f"{self.name!r} has different values in {len(found)} loaded kernels: each has its own copy\n"
                "  what to do: read the copy of one kernel, by get(kernel)"
            )
        return self._array(found[0])

    def _load(self, owner: Any, library: Any = None) -> None:
        """Set it in a module that was loaded into the current context: *library*, or the handle of *owner*, which keeps
        it loaded."""
        context = current_context()[0]
        handle = owner.handle if library is None else library
        copy = _Copy(weakref.ref(owner), handle, context, device_of(context).ordinal)
        with self._lock:
            others = [each for _, each in self._alive() if each.context != context or int(each.library) != int(handle)]
            self._copies = [*others, copy]
            value = self._of_device.get(copy.device, self._value)
            if value is not None:
                self._write(copy, value, None)

    def _emulate(self, module: Any) -> None:
        """Set it in a *module* of the emulator."""
        with self._lock:
            copy = _Copy(weakref.ref(module), None, _EMULATED, 0)
            self._copies.append(copy)
            if self._value is not None:
                self._write(copy, self._value, None)

    def _unload(self, owner: Any) -> None:
        """Forget the module that *owner* keeps loaded, before it is unloaded."""
        with self._lock:
            self._copies = [copy for copy in self._copies if copy.owner() is not owner]

    def _unload_all(self) -> None:
        """Forget all modules, before they are unloaded."""
        with self._lock:
            self._copies = []

    def _alive(self) -> list[tuple[Any, _Copy]]:
        """Return the copies in modules that are still loaded, with what keeps them loaded."""
        alive = [(owner, copy) for copy in self._copies if (owner := copy.owner()) is not None]
        self._copies = [copy for _, copy in alive]
        return alive

    def _check_capture(self, how: str, copies: list[tuple[Any, _Copy]]) -> None:
        """Raise `LaunchError` if accessing *copies* would take part in the capture of a stream, or end it."""
        for context in {copy.context for _, copy in copies if copy.context != _EMULATED}:
            api = bindings()
            with _current(context) as is_there:
                error, *status = api.cuStreamIsCapturing(api.CUstream(_LEGACY)) if is_there else (0, 0)
            if int(error) in _CAPTURES or (int(error) == 0 and int(status[0]) != 0):
                raise LaunchError(
                    f"{self.name!r} cannot be {how} while a stream is captured into a graph\n"
                    "  what to do: do it before or after; graphs use the value that it has when they are launched"
                )

    def _write(self, copy: _Copy, data: bytes, stream: int | None) -> None:
        """Write *data* in order with *stream*; without one, in order with nothing, although a stream is captured."""
        if copy.context == _EMULATED:
            if (place := self._place(copy)) is not None:
                ctypes.memmove(place, data, len(data))
            return
        api = bindings()
        host = ctypes.create_string_buffer(data, len(data))
        with _current(copy.context) as is_there:
            if not is_there or (address := self._address(copy)) is None:
                return
            if stream is not None:
                call_driver(api.cuMemcpyHtoDAsync, address, ctypes.addressof(host), len(data), stream)
                call_driver(api.cuStreamSynchronize, stream)
                return
            own = call_driver(api.cuStreamCreate, api.CUstream_flags.CU_STREAM_NON_BLOCKING)
            try:
                call_driver(api.cuMemcpyHtoDAsync, address, ctypes.addressof(host), len(data), own)
                call_driver(api.cuStreamSynchronize, own)
            finally:
                call_driver(api.cuStreamDestroy, own)

    def _read(self, copy: _Copy) -> bytes | None:
        if copy.context == _EMULATED:
            place = self._place(copy)
            return None if place is None else ctypes.string_at(place, self.type.nbytes)
        host = ctypes.create_string_buffer(self.type.nbytes)
        with _current(copy.context) as is_there:
            if not is_there or (address := self._address(copy)) is None:
                return None
            call_driver(bindings().cuMemcpyDtoHAsync, ctypes.addressof(host), address, self.type.nbytes, _LEGACY)
            call_driver(bindings().cuStreamSynchronize, _LEGACY)
        return host.raw

    def _address(self, copy: _Copy) -> Any:
        """Return where it is in a module, of the current context; ``None`` if the module lacks it."""
        api = bindings()
        look_up = api.cuLibraryGetManaged if self.space == "managed" else api.cuLibraryGetGlobal
        try:
            address, size = call_driver(look_up, copy.library, self.name.encode())
        except DriverError as error:
            if error.code == _NOT_FOUND:
                return None
            raise
        self._check_size(size)
        return address

    def _place(self, copy: _Copy) -> int | None:
        """Return the same in a module of the emulator."""
        module = copy.owner()
        found = None if module is None else module.find_variable(self.name)
        if found is None:
            return None
        self._check_size(found.nbytes)
        return int(found.address)

    def _check_size(self, size: int) -> None:
        if size != self.type.nbytes:
            raise LaunchError(
                f"{self.name!r} has {number_of(size, 'byte')} in its module, expected {self.type.nbytes}: {self.type}"
            )

    # Values

    def _bytes(self, value: Any) -> bytes:
        import numpy as np

        if hasattr(value, "__cuda_array_interface__"):
            raise TypeError(
                f"{self.name!r} is set from host memory, got {type(value).__name__} on a device\n"
                "  what to do: copy it to the host first: array.copy_to_host(), cupy.asnumpy(array), tensor.cpu()"
            )
        found = np.asarray(value)
        if found.shape != self.shape:
            raise ValueError(
                f"{self.name!r} has another shape than the value\n  got: {found.shape}\n  expected: {self.shape}"
            )
        if found.dtype != self.dtype:
            is_plain = isinstance(value, (int, float, complex, list, tuple)) and not isinstance(value, np.generic)
            converted = self._convert(found) if is_plain else None
            if converted is None:
                raise TypeError(
                    f"{self.name!r} holds {type_name(self.type.element)}, and the value is not of that type"
                    f"\n  got: {found.dtype}"
                    "\n  what to do: convert it: array.astype(variable.dtype)"
                )
            found = converted
        return bytes(found.tobytes())

    def _convert(self, found: Any) -> Any:
        """Return numbers of Python as an array of its dtype; ``None`` if they would be other numbers."""
        import numpy as np

        if not self.dtype.isbuiltin or not np.can_cast(found.dtype, self.dtype, "same_kind"):
            is_unsigned = self.dtype.kind == "u" and found.dtype.kind == "i"
            if not is_unsigned:
                return None
        converted = found.astype(self.dtype)
        if self.dtype.kind in "iu" and not (converted == found).all():
            return None
        return converted

    def _array(self, data: bytes) -> Any:
        import numpy as np

        return np.frombuffer(data, self.dtype).reshape(self.shape).copy()

    def __repr__(self) -> str:
        return f"<variable {self.name}: {self.type}>"


@contextlib.contextmanager
def _current(context: int) -> Iterator[bool]:
    """Make *context* current. Gives whether that worked: a context may have been destroyed."""
    if current_context()[0] == context:
        yield True
        return
    try:
        call_driver(bindings().cuCtxPushCurrent, bindings().CUcontext(context))
    except DriverError as error:
        if not error.is_of_context:
            raise
        yield False
        return
    try:
        yield True
    finally:
        call_driver(bindings().cuCtxPopCurrent)
