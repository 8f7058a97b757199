# SPDX-License-Identifier: BSD-2-Clause
"""Values of enumerations of C++ in kernels."""

from __future__ import annotations

import enum
from typing import Any

from numba.cuda import types
from numba.cuda.datamodel import models
from numba.cuda.extending import lower_cast, register_model
from numba.cuda.typeconv import Conversion


class Enumerator(enum.IntEnum):
    """A value of an enumeration of C++: a number, and for calls a value of any enumeration."""


class EnumeratorType(types.IntEnumMember):
    """The type of such a value. A variable may have this and members of enumerations of Python."""

    def can_convert_from(self, typing_context: Any, other: Any) -> Any:
        """Allow members of an ``IntEnum`` or ``IntFlag``."""
        is_number = isinstance(other, types.EnumMember) and issubclass(other.instance_class, int)
        return Conversion.safe if is_number else None


register_model(EnumeratorType)(models.EnumModel)


def make_enumerator_type(underlying: types.Type) -> types.Type:
    """Return the Numba type of the values of an enumeration with this *underlying* type; itself, if that is bool."""
    return EnumeratorType(Enumerator, underlying) if isinstance(underlying, types.Integer) else underlying


@lower_cast(types.IntEnumMember, types.Float)
@lower_cast(types.IntEnumMember, types.Complex)
@lower_cast(types.IntEnumMember, types.Boolean)
def _to_number(context: Any, builder: Any, fromty: Any, toty: Any, value: Any) -> Any:
    return context.cast(builder, value, fromty.dtype, toty)


@lower_cast(types.EnumMember, EnumeratorType)
def _to_enumerator(context: Any, builder: Any, fromty: Any, toty: Any, value: Any) -> Any:
    return context.cast(builder, value, fromty.dtype, toty.dtype)
