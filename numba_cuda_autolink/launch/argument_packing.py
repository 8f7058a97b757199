# SPDX-License-Identifier: BSD-2-Clause
"""Python values as the bytes of a kernel's parameters: checked, and written in place.

The driver takes all parameters as one buffer. Each writer below checks a value and writes it at its offsets; the module
`launch_codegen` generates the function that does the common cases without calling them.
"""

from __future__ import annotations

import ctypes
import enum
import math
import numbers
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..errors import ArgumentError, at_call
from ..plain_types import ArrayForm, ElementType, Leaf, Parameter, item_size, type_name
from .arrays import Misfit, View, contiguous_strides, shown, view_of
from .driver import Device

_VIEWS = "qQiIhHbBfd"  # formats that a memoryview writes
_HALF = struct.Struct("<e")
# Larger floats are passed as infinity, as numba-cuda passes them. Only integers can be too large to become a float.
_LARGEST_FLOAT = dict.fromkeys("efd", "1.8e308")

# Of a value, for a launch configuration of the driver; for ``None``, of which no stream waits for anything.
Writer = Callable[[Any, Any], None]


class Buffer:
    """The bytes of a kernel's parameters. ``views`` writes one number: ``views["f"][3]`` is the one at byte 12.
    ``extra`` is the address of what ``cuLaunchKernelEx`` takes as ``extra``."""

    def __init__(self, size: int):
        self._bytes = ctypes.create_string_buffer((size + 7) // 8 * 8 or 8)
        view = memoryview(self._bytes).cast("B")
        self.views: dict[str, Any] = {code: view.cast(code) for code in _VIEWS}  # type: ignore[call-overload]
        self.bytes = view
        self._size = ctypes.c_size_t(size)
        # CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END
        addresses = 1, ctypes.addressof(self._bytes), 2, ctypes.addressof(self._size), 0
        self._extra = (ctypes.c_void_p * 5)(*addresses)
        self.extra = ctypes.addressof(self._extra)

    def write(self, leaf: Leaf, value: Any) -> None:
        if leaf.code == "e":
            try:
                _HALF.pack_into(self.bytes, leaf.offset, value)
            except OverflowError:
                _HALF.pack_into(self.bytes, leaf.offset, math.copysign(math.inf, value))
        else:
            self.views[leaf.code][leaf.offset // leaf.size] = value


class Place(NamedTuple):
    """The parameter that a writer is for, for messages."""

    kernel: str
    position: int
    name: str
    parameter: Parameter

    def inside(self, item: Parameter) -> Place:
        """Return the place of an *item* of this tuple."""
        return Place(self.kernel, self.position, f"{self.name}[{item.name}]", item)

    def misfit(self, got: str, remedy: str = "") -> ArgumentError:
        """Return the error for an argument that is *got* instead."""
        todo = f"\n  what to do: {remedy}" if remedy else ""
        error = ArgumentError(
            at_call(
                f"{self.kernel}: argument {self.position}, {self.name!r}, does not fit"
                f"\n  expected: {self.parameter}\n  got: {got}{todo}"
            )
        )
        error.position, error.parameter = self.position, self.name
        error.expected, error.got, error.remedy = str(self.parameter), got, remedy
        return error


def writers(
    kernel: str, parameters: Sequence[Parameter], leaves: Sequence[Leaf], buffer: Buffer, device: Device
) -> list[Writer]:
    """Return the writer of each of *parameters*, which are passed as *leaves*, for launches on *device*."""
    rest = iter(leaves)
    places = (Place(kernel, number, each.name, each) for number, each in enumerate(parameters, 1))
    return [_writer(place, rest, buffer, device) for place in places]


def _writer(place: Place, rest: Iterator[Leaf], buffer: Buffer, device: Device) -> Writer:
    parameter = place.parameter
    if parameter.kind == "tuple":
        return _tuple(place, [_writer(place.inside(item), rest, buffer, device) for item in parameter.items])
    own = [next(rest) for _ in parameter.codes]
    if parameter.form is not None:
        return _array(place, parameter.form, own, buffer, device)
    if parameter.kind in ("record", "pointer"):
        return _address(place, own[0], buffer, device)
    if parameter.kind == "none":
        return _none(place)
    convert = _CONVERSIONS[parameter.kind]
    dtype = parameter.dtype

    def write(value: Any, config: Any) -> None:
        if isinstance(value, enum.Enum):
            value = value.value
        try:
            for leaf, part in zip(own, convert(value, dtype), strict=True):
                buffer.write(leaf, part)
        except Misfit as error:
            raise place.misfit(error.got, error.remedy) from None
        except (ValueError, OverflowError):
            raise place.misfit(f"{shown(value)}, which is not between {_range(own[0].code)}") from None
        except Exception as error:  # a foreign number's own
            raise place.misfit(f"{shown(value)}, whose value cannot be read: {type(error).__name__}") from None

    return write


def limits(code: str) -> tuple[int, int]:
    """Return the least and the greatest integer of the `struct` *code*."""
    bits = 8 * struct.calcsize(code)
    return (0, (1 << bits) - 1) if code.isupper() else (-(1 << bits - 1), (1 << bits - 1) - 1)


def _range(code: str) -> str:
    if code in _LARGEST_FLOAT:
        return "-{0} and {0}".format(_LARGEST_FLOAT[code])
    return "{} and {}".format(*limits(code))


def _tuple(place: Place, items: list[Writer]) -> Writer:
    def write(value: Any, config: Any) -> None:
        if not isinstance(value, tuple):
            raise place.misfit(shown(value))
        if len(value) != len(items):
            raise place.misfit(f"a tuple of {len(value)}")
        for item, each in zip(items, value, strict=True):
            item(each, config)

    return write


def _none(place: Place) -> Writer:
    def write(value: Any, config: Any) -> None:
        if value is not None:
            raise place.misfit(shown(value))

    return write


# Numbers


def is_integer(value: Any) -> bool:
    """Return whether *value* is an integer."""
    return isinstance(value, numbers.Integral) and not _is_duration(value)


def _is_duration(value: Any) -> bool:
    return type(value).__name__ == "timedelta64"  # which NumPy says is an integer


def _number(value: Any, dtype: ElementType | None) -> tuple[Any]:
    if str(dtype)[1] == "f" and isinstance(value, numbers.Real) and not _is_duration(value):
        return (float(value),)
    if str(dtype)[1] != "f" and is_integer(value):
        return (int(value),)
    raise Misfit(shown(value))


def _complex(value: Any, dtype: ElementType | None) -> tuple[Any, Any]:
    if not isinstance(value, numbers.Complex) or _is_duration(value):
        raise Misfit(shown(value))
    number = complex(value)
    return number.real, number.imag


def _bool(value: Any, dtype: ElementType | None) -> tuple[Any]:
    is_bool = isinstance(value, bool) or (type(value).__module__, type(value).__name__[:4]) == ("numpy", "bool")
    if not is_bool and not (is_integer(value) and value in (0, 1)):
        raise Misfit(shown(value))
    return (int(bool(value)),)


def _datetime(value: Any, dtype: ElementType | None) -> tuple[Any]:
    if is_integer(value) and not isinstance(value, bool):
        return (int(value),)  # in units of the type
    given = getattr(value, "dtype", None)
    if getattr(given, "str", None) != dtype:
        raise Misfit(shown(value), f"pass a value of {type_name(dtype)}, or an integer in its unit")
    return (int(value.view("i8")),)


_CONVERSIONS: dict[str, Callable[[Any, ElementType | None], tuple[Any, ...]]] = {
    "number": _number,
    "complex": _complex,
    "bool": _bool,
    "datetime": _datetime,
}


# Memory


def _stream(config: Any) -> int | None:
    return None if config is None else int(config.hStream)


def _address(place: Place, leaf: Leaf, buffer: Buffer, device: Device) -> Writer:
    dtype = place.parameter.dtype

    def write(value: Any, config: Any) -> None:
        try:
            is_address = dtype is None and (is_integer(value) or type(value).__name__ == "CUdeviceptr")
            address = int(value) if is_address else _view(value, config).pointer
            if not 0 <= address < 1 << 64:
                raise Misfit(f"{shown(value)}, which is not an address")
        except Misfit as error:
            raise place.misfit(error.got, error.remedy) from None
        buffer.write(leaf, address)

    def _view(value: Any, config: Any) -> View:
        view = view_of(value, _stream(config), device)
        if dtype is not None and view.dtype != dtype:
            is_bytes = view.dtype is None or view.dtype in ("|u1", "|i1")
            if not is_bytes or view.size < item_size(dtype) or not view.is_contiguous("C", 1):
                raise Misfit(f"{view}", "pass a record on the device, or its bytes")
        return view

    return write


def _array(place: Place, form: ArrayForm, own: Sequence[Leaf], buffer: Buffer, device: Device) -> Writer:
    parameter = place.parameter
    dtype, ndim, layout = parameter.dtype, parameter.ndim, parameter.layout
    assert dtype is not None
    itemsize = item_size(dtype)

    def write(value: Any, config: Any) -> None:
        try:
            view = view_of(value, _stream(config), device)
            if view.dtype is None and itemsize and view.size % itemsize == 0:  # bytes without a type
                view = view._replace(shape=(view.size // itemsize,), dtype=dtype)
            if view.dtype != dtype or len(view.shape) != ndim:
                raise Misfit(f"{view}", _other_array(parameter, view, value))
            if layout != "A" and not view.is_contiguous(layout, itemsize):
                any_layout = f"{type_name(dtype)}[{', '.join([':'] * ndim)}]"
                raise Misfit(f"{view}", f"{_copy(parameter, value)}; or build the kernel for any layout, {any_layout}")
            if view.readonly and not parameter.readonly:
                raise Misfit(f"{view}", "copy it")
            strides = view.strides or contiguous_strides(view.shape, itemsize, "C" if layout == "A" else layout)
            strides = _in_units(strides, parameter, view, value)
        except Misfit as error:
            raise place.misfit(error.got, error.remedy) from None
        # The rest is 0: the memory of numba-cuda's runtime, of which arrays from outside have none, and an offset.
        head = [0] * len(form.codes)
        for index in form.addresses:
            head[index] = view.pointer
        if form.items is not None and form.item_size is not None:
            head[form.items], head[form.item_size] = view.size, itemsize
        for leaf, number in zip(own, (*head, *view.shape, *strides), strict=True):
            buffer.write(leaf, number)

    return write


def _other_array(parameter: Parameter, view: View, value: Any) -> str:
    """Return what to do where *view*, of the array *value*, has other elements or dimensions than a *parameter*; empty
    where only a kernel that is written for it would take it."""
    name, ndim, given, item = parameter.name, parameter.ndim, len(view.shape), type_name(parameter.dtype)
    if given == ndim and isinstance(view.dtype, str) and item.isidentifier():
        converted = f"{name}_copy = {name}.astype(np.{item}){_back(name)};" if hasattr(value, "astype") else ""
        return f"pass {converted or f'an array of {item},'} or build the kernel for its type, too"
    assert parameter.dtype is not None
    if given == ndim or view.dtype != parameter.dtype or not view.is_contiguous("C", item_size(parameter.dtype)):
        return ""
    sizes = "rows, columns" if ndim == 2 else f"{'1, ' * (ndim - 1)}-1"
    return f"pass {name}.reshape({sizes}), which is the same memory; or build the kernel for {given}d arrays, too"


def _copy(parameter: Parameter, value: Any) -> str:
    """Return how to pass a copy of *value*, an array for a *parameter*, that has the layout of this."""
    function = "asfortranarray" if parameter.layout == "F" else "ascontiguousarray"
    is_of_numpy = type(value).__module__.partition(".")[0] == "numpy"
    name = parameter.name
    return f"pass a contiguous copy{f', {name}_copy = np.{function}({name}){_back(name)}' if is_of_numpy else ''}"


def _back(name: str) -> str:
    return f", and if the kernel writes to it, copy back with {name}[...] = {name}_copy"


def _in_units(strides: Sequence[int], parameter: Parameter, view: View, value: Any) -> tuple[int, ...]:
    """Return *strides* in the unit of a *parameter*. Raise `Misfit` if they are not multiples of that."""
    unit = parameter.stride_unit
    if any(stride % unit and length > 1 for stride, length in zip(strides, view.shape, strict=True)):
        raise Misfit(f"{view} with strides of {', '.join(map(str, strides))} bytes", _copy(parameter, value))
    return tuple(stride // unit for stride in strides)
