# SPDX-License-Identifier: BSD-2-Clause
"""Python values as compile-time constants of a kernel: the types that make them usable as shapes and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.cuda import cgutils, types
from numba.cuda.core.errors import NumbaError
from numba.cuda.datamodel import models
from numba.cuda.extending import lower_cast, register_model
from numba.cuda.typing.typeof import Purpose, typeof


class LiteralNamedTuple(types.Tuple, types.BaseNamedTuple):
    """The type of a named tuple of constant integers: a shape, as a plain tuple of them is, that has fields too."""

    def __new__(cls, literals: Any, instance_class: type) -> LiteralNamedTuple:
        # types.Tuple's would return another type for equal elements.
        return object.__new__(cls)

    def __init__(self, literals: Any, instance_class: type):
        super().__init__(literals)
        self.fields = tuple(instance_class._fields)  # type: ignore[attr-defined]
        self.instance_class = instance_class

    @property
    def key(self) -> Any:
        """The class and the elements."""
        return self.instance_class, self.types


register_model(LiteralNamedTuple)(models.TupleModel)


@lower_cast(LiteralNamedTuple, types.BaseTuple)
def _cast(context: Any, builder: Any, fromty: Any, toty: Any, value: Any) -> Any:
    """To a plain tuple, as which Numba passes a shape on."""
    elements = zip(cgutils.unpack_tuple(builder, value), fromty.types, toty.types, strict=True)
    return context.make_tuple(builder, toty, [context.cast(builder, *element) for element in elements])


def as_constant(value: Any) -> Any:
    """*value* with NumPy's integers and bools as Python's, which alone have literal types."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, tuple):
        elements = map(as_constant, value)
        return type(value)(*elements) if hasattr(value, "_fields") else tuple(elements)
    return value


def constant_type(value: Any) -> Any:
    """The Numba type of *value*, made by `as_constant`, as a constant; None if there is no such constant.

    Integers, bools and strings have their literal types, tuples those of their elements, arrays are read-only.
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
    if any(element is None for element in elements):
        return None
    if not hasattr(value, "_fields"):
        return types.Tuple(elements)
    if elements and all(isinstance(element, types.IntegerLiteral) for element in elements):
        return LiteralNamedTuple(elements, type(value))
    return types.BaseTuple.from_types([types.unliteral(element) for element in elements], type(value))
