# SPDX-License-Identifier: BSD-2-Clause
"""What structs are in kernels that C functions return: tuples, with the names of the fields of a record.

A tuple is a value. A record is a reference to memory, which the next call would overwrite. And what values of
enumerations of C++ are.
"""

from __future__ import annotations

import collections
import enum
import functools
import operator
from typing import Any

from llvmlite import ir as llvm
from numba.cuda import cgutils, types
from numba.cuda.datamodel import models
from numba.cuda.extending import lower_builtin, lower_cast, register_model
from numba.cuda.typeconv import Conversion
from numba.cuda.typing.templates import signature

from .c_types import memory_layout
from .structs import field_names, field_types, is_struct

# What no type's alignment exceeds.
_MOST_ALIGNED = 128


class RecordValue(types.Tuple, types.BaseNamedTuple):
    """The type of a record that a function returned by value: a named tuple of its fields.

    It can be assigned to an element of an array of these records.
    """

    def __new__(cls, record: Any) -> RecordValue:
        # types.Tuple.__new__ would return another type for equal elements.
        return object.__new__(cls)

    def __init__(self, record: Any):
        super().__init__([result_type(each) for each in field_types(record)])
        self.of_record = record
        self.fields = tuple(field_names(record))
        self.instance_class = collections.namedtuple("Record", self.fields, rename=True)  # type: ignore[misc]
        self.instance_class._of_record = record  # type: ignore[attr-defined]
        self.name = f"value of {record}"

    @property
    def key(self) -> Any:
        return self.of_record

    def __unliteral__(self) -> RecordValue:
        return self

    def can_convert_to(self, typing_context: Any, other: Any) -> Any:
        """Allow an assignment to an element of an array; no variable may be one or the other."""
        return Conversion.unsafe if other == self.of_record else None


register_model(RecordValue)(models.TupleModel)


def result_type(numba_type: Any) -> Any:
    """Return the Numba type in a kernel of a result of *numba_type*, or of a part of one."""
    if isinstance(numba_type, types.Record):
        return RecordValue(numba_type)
    if isinstance(numba_type, types.NestedArray):
        found = result_type(numba_type.dtype)
        for count in reversed(numba_type.shape):
            found = types.UniTuple(found, count)
        return found
    if isinstance(numba_type, types.BaseTuple):
        elements = [result_type(each) for each in numba_type.types]
        return types.BaseTuple.from_types(elements, getattr(numba_type, "instance_class", None))
    return numba_type


@lower_cast(RecordValue, types.Record)
def _to_record(context: Any, builder: Any, fromty: Any, toty: Any, value: Any) -> Any:
    memory = cgutils.alloca_once(builder, context.get_value_type(toty).pointee)
    memory.align = find_alignment(toty)
    store(context, builder, toty, value, builder.bitcast(memory, cgutils.voidptr_t))
    return memory


@lower_builtin(operator.setitem, types.Array, types.Any, RecordValue)
def _set_element(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Store the fields in the element, which Numba would copy byte by byte."""
    array, index, value = sig.args
    getitem = context.get_function(operator.getitem, signature(value.of_record, array, index))
    element = getitem(builder, args[:2])
    store(context, builder, value.of_record, args[2], builder.bitcast(element, cgutils.voidptr_t))
    return context.get_dummy_value()


def find_alignment(numba_type: types.Type) -> int:
    """Return an alignment that suffices for a record or a tuple, whatever that of C++ is: one that divides its size."""
    size = memory_layout(numba_type, as_in_cxx=False).size
    return min(size & -size, _MOST_ALIGNED) if size else 1


def store(context: Any, builder: Any, numba_type: Any, value: Any, address: Any, align: int = _MOST_ALIGNED) -> None:
    """Store the *value* of a tuple, a number or a pointer at an *address*, where C expects a *numba_type*: a tuple, a
    record, or a part of one. The address is a multiple of *align*, if that is less than the alignment of the type."""
    layout = memory_layout(numba_type, as_in_cxx=False)
    align = min(align, layout.align)
    if isinstance(numba_type, types.NestedArray):
        size = layout.size // numba_type.shape[0]
        shape = numba_type.shape[1:]
        element = types.NestedArray(numba_type.dtype, shape) if shape else numba_type.dtype
        parts = [(element, size * number) for number in range(numba_type.shape[0])]
    elif is_struct(numba_type):
        parts = list(zip(field_types(numba_type), layout.offsets, strict=True))
    else:
        data = context.get_value_as_data(builder, numba_type, value)
        builder.store(data, builder.bitcast(address, data.type.as_pointer()), align=align)
        return
    for (part, offset), element in zip(parts, cgutils.unpack_tuple(builder, value), strict=True):
        place = builder.gep(address, [llvm.Constant(llvm.IntType(32), offset)])
        store(context, builder, part, element, place, align)


class Enumerator(enum.IntEnum):
    """A value of an enumeration of C++: a number, and for calls an enumerator. Each enumeration is a class of its own,
    with what C++ calls it and its underlying type."""


class EnumeratorType(types.IntEnumMember):
    """The type of such a value. A variable may have this and members of enumerations of Python whose numbers are all
    values of the underlying type."""

    def can_convert_from(self, typing_context: Any, other: Any) -> Any:
        """Allow members of an ``IntEnum`` or ``IntFlag``."""
        is_number = isinstance(other, types.EnumMember) and issubclass(other.instance_class, int)
        if not is_number or issubclass(other.instance_class, Enumerator):
            return None
        least, most = find_range(other.instance_class)
        return Conversion.safe if self.dtype.minval <= least and most <= self.dtype.maxval else None

    @property
    def cxx_type(self) -> str:
        """What C++ calls the enumeration, at global scope."""
        return str(self.instance_class.cxx_type)

    @property
    def underlying(self) -> types.Type:
        """Its underlying type. The number of an enumerator of bool is a ``uint8``."""
        found: types.Type = self.instance_class.underlying
        return found


register_model(EnumeratorType)(models.EnumModel)


@functools.cache
def make_enumerator_type(cxx_type: str, underlying: types.Type) -> EnumeratorType:
    """Return the Numba type of the values of the enumeration that C++ calls *cxx_type*, with this *underlying* type."""

    class Named(Enumerator):
        pass

    Named.__name__ = Named.__qualname__ = cxx_type
    Named.cxx_type, Named.underlying = cxx_type, underlying  # type: ignore[attr-defined]
    return EnumeratorType(Named, types.uint8 if underlying == types.boolean else underlying)


def find_range(enumeration: type[enum.Enum]) -> tuple[int, int]:
    """Return the least and the greatest number that members of an *enumeration* of Python have."""
    numbers = [int(each.value) for each in enumeration]
    if issubclass(enumeration, enum.Flag):
        numbers.append(functools.reduce(operator.or_, numbers, 0))
    return min(numbers), max(numbers)


def list_members(enumeration: type[enum.Enum]) -> dict[int, str]:
    """Return the members of an *enumeration* of Python by their numbers; of flags, those of one bit."""
    members = {int(each.value): each.name for each in enumeration}
    if issubclass(enumeration, enum.Flag):
        return {number: name for number, name in members.items() if number.bit_count() == 1}
    return members


@lower_cast(types.IntEnumMember, types.Float)
@lower_cast(types.IntEnumMember, types.Complex)
@lower_cast(types.IntEnumMember, types.Boolean)
def _to_number(context: Any, builder: Any, fromty: Any, toty: Any, value: Any) -> Any:
    return context.cast(builder, value, fromty.dtype, toty)


@lower_cast(types.EnumMember, EnumeratorType)
def _to_enumerator(context: Any, builder: Any, fromty: Any, toty: Any, value: Any) -> Any:
    return context.cast(builder, value, fromty.dtype, toty.dtype)
