# SPDX-License-Identifier: BSD-2-Clause
"""Values of enumerations that calls return: in a kernel they are members of an ``IntEnum``, which C++ takes again."""

from __future__ import annotations

import enum
from typing import Any

from numba.cuda import types
from numba.cuda.extending import lower_cast


class Enumerator(enum.IntEnum):
    """A value of an enumeration of C++: a number, and for calls a value of any enumeration."""


def make_enumerator_type(underlying: types.Type) -> types.Type:
    """Return the Numba type of the values of an enumeration with this *underlying* type; itself, if that is bool."""
    return types.IntEnumMember(Enumerator, underlying) if isinstance(underlying, types.Integer) else underlying


@lower_cast(types.IntEnumMember, types.Float)
@lower_cast(types.IntEnumMember, types.Complex)
@lower_cast(types.IntEnumMember, types.Boolean)
def _to_number(context: Any, builder: Any, fromty: Any, toty: Any, value: Any) -> Any:
    return context.cast(builder, value, fromty.dtype, toty)
