# SPDX-License-Identifier: BSD-2-Clause
"""The parameters of kernels and the variables of device code as plain data: what a parameter accepts and is passed as;
name, element type, shape and memory of a variable.

numba-cuda passes an array as 5 + 2 * ndim values of 8 bytes (two pointers of its runtime, the number of items, their
size, the address, the shape, the strides in bytes), numba-cuda-mlir as 3 + 2 * ndim (the address twice, an offset, the
shape, the strides in items; of records, which are bytes for it, in bytes). Both pass a record as its address, a complex
number as two numbers, a tuple as its items, and numbers by their size; numba-cuda passes ``None`` as one value of 8
bytes that nobody reads.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Union

# An element type is a NumPy type string such as "<f4", or the fields of a record.
ElementType = Union[str, "RecordType"]

_CODES = {"i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q", "f2": "e", "f4": "f"}
_CODES |= {"f8": "d", "b1": "B", "m8": "q", "M8": "q"}
_MOST_DIMENSIONS = 8  # of an array that `find_element` finds
_SHORT = {"i": "int", "u": "uint", "f": "float", "c": "complex", "m": "timedelta", "M": "datetime"}


class RecordType(NamedTuple):
    """A record: its size in bytes, and name, offset, type and shape of each field."""

    itemsize: int
    fields: tuple[tuple[str, int, ElementType, tuple[int, ...]], ...]


class Leaf(NamedTuple):
    """One value in the bytes of a kernel's parameters: its `struct` code and its offset."""

    code: str
    offset: int

    @property
    def size(self) -> int:
        return struct.calcsize(self.code)


class ArrayForm(NamedTuple):
    """How an array is passed: the `struct` codes of the values before its shape and strides, and which of these values
    are its address, the number of items and their size; 0 is passed for the others."""

    codes: str
    addresses: tuple[int, ...]
    items: int | None
    item_size: int | None


# Of numba-cuda; of numba-cuda-mlir, which is MLIR's descriptor of a memref.
ARRAY_FORMS = {
    "array": ArrayForm("QQqqQ", (4,), 2, 3),
    "memref": ArrayForm("QQq", (0, 1), None, None),
}


class Parameter(NamedTuple):
    """One parameter of a kernel.

    ``array`` and ``memref`` are arrays, in two forms. ``dtype`` is that of its elements or of its value, ``None`` for
    tuples, pointers and ``None``. ``items`` are the parameters of a tuple, whose ``name`` is an index or the name of a
    field.
    """

    kind: str
    name: str
    dtype: ElementType | None = None
    ndim: int = 0
    layout: str = "A"
    readonly: bool = False
    items: tuple[Parameter, ...] = ()

    def __str__(self) -> str:
        if self.form is not None:
            return f"{'read-only ' if self.readonly else ''}array({type_name(self.dtype)}, {self.ndim}d, {self.layout})"
        if self.kind == "tuple":
            return f"tuple({', '.join(map(str, self.items))})"
        return self.kind if self.dtype is None else type_name(self.dtype)

    @property
    def form(self) -> ArrayForm | None:
        return ARRAY_FORMS.get(self.kind)

    @property
    def stride_unit(self) -> int:
        """The bytes that a stride counts, of an array."""
        assert self.dtype is not None
        in_items = self.kind == "memref" and isinstance(self.dtype, str)
        return max(item_size(self.dtype), 1) if in_items else 1

    @property
    def codes(self) -> Iterator[str]:
        """The `struct` codes of the values that it is passed as."""
        for value in self.values:
            yield from value

    @property
    def values(self) -> Iterator[str]:
        """The same, with the two parts of a complex number together."""
        if self.form is not None:
            yield from self.form.codes + "q" * (2 * self.ndim)
        elif self.kind == "tuple":
            for item in self.items:
                yield from item.values
        elif self.kind in ("record", "pointer", "none"):
            yield "Q"
        elif self.kind == "complex":
            yield "ff" if self.dtype == "<c8" else "dd"
        else:
            yield _CODES[str(self.dtype)[1:3]]


def leaves(parameters: Iterable[Parameter]) -> tuple[Leaf, ...]:
    """Return the values that *parameters* are passed as, at their offsets in C."""
    found, end = [], 0
    for parameter in parameters:
        for code in parameter.codes:
            size = struct.calcsize(code)
            offset = (end + size - 1) // size * size
            found.append(Leaf(code, offset))
            end = offset + size
    return tuple(found)


def end_of(leaves: Iterable[Leaf]) -> int:
    """Return where *leaves* end: the size in bytes of the parameters that are passed as them."""
    return max((leaf.offset + leaf.size for leaf in leaves), default=0)


def place_leaves(parameters: Iterable[Parameter], layout: Sequence[tuple[int, int]]) -> tuple[Leaf, ...] | None:
    """Return the values that *parameters* are passed as, at the offsets of *layout*, which has offset and size of each;
    ``None`` if their sizes are others. Both parts of a complex number may be one entry of *layout*."""
    found: list[Leaf] = []
    at = 0
    for value in (value for parameter in parameters for value in parameter.values):
        part, count = struct.calcsize(value[0]), len(value)
        own = layout[at : at + count]
        if count > 1 and own and own[0][1] == part * count:
            own = [(own[0][0] + part * number, part) for number in range(count)]
            at += 1
        else:
            at += count
        if [size for _, size in own] != [part] * count:
            return None
        found += (Leaf(code, offset) for code, (offset, _) in zip(value, own, strict=True))
    return tuple(found) if at == len(layout) else None


def find_element(
    packed: bytes, begin: int, nbytes: int, address: int
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the index of the element at *address* of the array that fills the *nbytes* of memory from *begin* on and
    is among the *packed* values of parameters, whose types are not known; and its shape. The address may be outside:
    the index of the longest stride is then."""
    words = struct.unpack(f"<{len(packed) // 8}q", packed[: len(packed) // 8 * 8])
    for k in (k for k in range(1, len(words)) if begin <= words[k] < begin + nbytes):
        is_memref = words[k - 1 : k + 2] == (begin, begin, 0)
        for dimensions in range(1, _MOST_DIMENSIONS + 1):
            shape, strides = (words[k + 1 + is_memref + n * dimensions :][:dimensions] for n in range(2))
            count, itemsize = math.prod(shape), words[k - 1]
            if len(strides) < dimensions or count < 1:
                continue
            if is_memref:
                itemsize = nbytes // count
                strides = tuple(stride * itemsize for stride in strides)
                last = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
                is_whole = last + itemsize == nbytes
            else:
                is_whole = k > 3 and words[k - 2] == count and itemsize > 0
            if is_whole and all(stride and stride % itemsize == 0 for stride in strides):
                index, offset = [0] * dimensions, address - words[k]
                for axis in sorted(range(dimensions), key=[-abs(stride) for stride in strides].__getitem__):
                    index[axis], offset = divmod(offset, strides[axis])
                return tuple(index), shape
    return None


# Element types


def type_name(dtype: ElementType | None) -> str:
    """Return *dtype* for messages: ``float32``, ``record of 16 bytes``."""
    if isinstance(dtype, RecordType):
        return f"record({', '.join(name for name, *_ in dtype.fields)}; {dtype.itemsize} bytes)"
    text = str(dtype)
    if text[1:] in ("b1", "?"):
        return "bool"
    if text.startswith(">"):
        return f"big-endian {type_name('<' + text[1:])}"
    if text[1:3] in ("m8", "M8"):
        return f"{_SHORT[text[1]]}64{text[3:]}"
    if text[1:2] in _SHORT and text[2:].isdigit():
        return f"{_SHORT[text[1]]}{8 * int(text[2:])}"
    return text


def element_type(dtype: Any) -> ElementType:
    """Return the element type of a NumPy *dtype*."""
    if not dtype.names:
        return str(dtype.str)
    fields = []
    for name in dtype.names:
        field, offset = dtype.fields[name][:2]
        base, shape = field.subdtype or (field, ())
        fields.append((name, int(offset), element_type(base), tuple(map(int, shape))))
    return RecordType(dtype.itemsize, tuple(sorted(fields, key=lambda field: field[1])))


def item_size(dtype: ElementType) -> int:
    """Return the size of an element in bytes."""
    if isinstance(dtype, RecordType):
        return dtype.itemsize
    digits = dtype[2:].partition("[")[0]
    return int(digits) * (4 if dtype[1] == "U" else 1)


# As JSON


def to_json(parameter: Parameter) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": parameter.kind, "name": parameter.name}
    if parameter.dtype is not None:
        data["dtype"] = element_to_json(parameter.dtype)
    if parameter.form is not None:
        data |= {"ndim": parameter.ndim, "layout": parameter.layout, "readonly": parameter.readonly}
    if parameter.kind == "tuple":
        data["items"] = list(map(to_json, parameter.items))
    return data


def from_json(data: dict[str, Any]) -> Parameter:
    """Return the parameter of which `to_json` made *data*."""
    given = {**data, "items": tuple(map(from_json, data.get("items", ())))}
    if "dtype" in data:
        given["dtype"] = element_from_json(data["dtype"])
    return Parameter(**given)


def element_to_json(dtype: ElementType) -> Any:
    if isinstance(dtype, str):
        return dtype
    fields = [[name, offset, element_to_json(kind), shape] for name, offset, kind, shape in dtype.fields]
    return {"itemsize": dtype.itemsize, "fields": fields}


def element_from_json(data: Any) -> ElementType:
    if isinstance(data, str):
        return data
    fields = ((name, offset, element_from_json(kind), tuple(shape)) for name, offset, kind, shape in data["fields"])
    return RecordType(data["itemsize"], tuple(fields))


SPACES = ("constant", "device", "managed")
MOST_CONSTANT = 64 << 10  # bytes of constant memory that a module may have


class VariableType(NamedTuple):
    """What a variable is: its name in C++, its element type, its shape, and the memory that it is in."""

    name: str
    element: ElementType
    shape: tuple[int, ...]
    space: str

    @property
    def nbytes(self) -> int:
        return item_size(self.element) * math.prod(self.shape)

    @property
    def dtype(self) -> Any:
        """Its element type as a NumPy dtype."""
        return _dtype(self.element)

    def __str__(self) -> str:
        sizes = "".join(f"[{length}]" for length in self.shape)
        return f"{type_name(self.element)}{sizes} in {self.space} memory"


def variable_to_json(type: VariableType) -> dict[str, Any]:
    """Return *type* as plain data."""
    return {**type._asdict(), "element": element_to_json(type.element)}


def variable_from_json(data: dict[str, Any]) -> VariableType:
    """Return the type of which `variable_to_json` made *data*."""
    return VariableType(data["name"], element_from_json(data["element"]), tuple(data["shape"]), data["space"])


def _dtype(element: ElementType) -> Any:
    import numpy as np

    if not isinstance(element, RecordType):
        return np.dtype(element)
    names = [name for name, *_ in element.fields]
    formats = [np.dtype((_dtype(kind), shape)) if shape else _dtype(kind) for _, _, kind, shape in element.fields]
    offsets = [offset for _, offset, *_ in element.fields]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": element.itemsize})
