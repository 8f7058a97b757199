# SPDX-License-Identifier: BSD-2-Clause
"""Python values as compile-time constants of a kernel, with types that can be used as shapes and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.cuda import cgutils, types
from numba.cuda.core.errors import NumbaError
from numba.cuda.datamodel import models
from numba.cuda.extending import lower_cast, register_model
from numba.cuda.typing.typeof import Purpose, typeof


class LiteralNamedTuple(types.Tuple, types.BaseNamedTuple):
    """The type of a named tuple of constant integers: like a plain tuple of them a shape, but with fields."""

    def __new__(cls, literals: Any, instance_class: type) -> LiteralNamedTuple:
        # types.Tuple.__new__ would return another type for equal elements.
        return object.__new__(cls)

    def __init__(self, literals: Any, instance_class: type):
        super().__init__(literals)
        self.fields = tuple(instance_class._fields)  # type: ignore[attr-defined]
        self.instance_class = instance_class

    @property
    def key(self) -> Any:
        return self.instance_class, self.types


register_model(LiteralNamedTuple)(models.TupleModel)


@lower_cast(LiteralNamedTuple, types.BaseTuple)
def _cast(context: Any, builder: Any, fromty: Any, toty: Any, value: Any) -> Any:
    """Convert a shape to the plain tuple that Numba passes on."""
    elements = zip(cgutils.unpack_tuple(builder, value), fromty.types, toty.types, strict=True)
    return context.make_tuple(builder, toty, [context.cast(builder, *element) for element in elements])


def as_constant(value: Any) -> Any:
    """Return *value* with NumPy's integers and bools as Python's: only these have literal types."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, tuple):
        elements = map(as_constant, value)
        return type(value)(*elements) if hasattr(value, "_fields") else tuple(elements)
    return value


def constant_type(value: Any) -> Any:
    """Return the Numba type of the constant *value*, which `as_constant` made, or None if it cannot be a constant.

    Integers, bools and strings have literal types, tuples have the types of their elements, and arrays are read-only.
    """
    literal = types.maybe_literal(value)
    if literal is not None:
        return literal
    if isinstance(value, tuple):
        return _tuple_type(value)
    if hasattr(value, "__cuda_array_interface__"):
        return None
    try:
        numba_type = typeof(value, Purpose.constant)
    except (NumbaError, ValueError, NotImplementedError):
        return None
    if isinstance(numba_type, types.Array):
        return numba_type.copy(readonly=True)
    constants = (types.Number, types.Boolean, types.EnumMember, types.Record, types.Dummy, types.Callable)
    return numba_type if isinstance(numba_type, (*constants, types.DTypeSpec, types.TypeRef)) else None


def _tuple_type(value: tuple[Any, ...]) -> Any:
    elements = [constant_type(element) for element in value]
    if None in elements:
        return None
    if not hasattr(value, "_fields"):
        return types.Tuple(elements)
    if elements and all(isinstance(element, types.IntegerLiteral) for element in elements):
        return LiteralNamedTuple(elements, type(value))
    return types.BaseTuple.from_types([types.unliteral(element) for element in elements], type(value))
