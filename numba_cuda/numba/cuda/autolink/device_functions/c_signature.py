# SPDX-License-Identifier: BSD-2-Clause
"""The types of a Python function that C++ calls, in Python and in C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numba.cuda import types
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CType

from ..c_abi.c_types import CABIError, ctype, pointer_to
from ..c_abi.structs import is_struct, struct_ctype

STATE = pointer_to("const void")


@dataclass(frozen=True)
class CSignature:
    """The Numba types of the arguments that C++ passes by value, of the state, whose addresses it passes after them,
    and of the result. Raises `CABIError` if C++ can neither pass an argument nor return the result."""

    arguments: tuple[Any, ...]
    state: tuple[Any, ...]
    returns: Any

    def __post_init__(self) -> None:
        for number, argument in enumerate(self.arguments, 1):
            _by_value(argument, f"argument {number}")
            if argument == types.none:
                raise CABIError(f"argument {number} is None, which C++ cannot pass")
        _by_value(self.returns, "the result")

    @property
    def c_arguments(self) -> tuple[CType, ...]:
        """The C types of the arguments, without the state."""
        return tuple(_by_value(argument, "an argument") for argument in self.arguments)

    @property
    def c_parameters(self) -> tuple[CType, ...]:
        """The C types of all parameters."""
        return (*self.c_arguments, *(STATE for _ in self.state))

    @property
    def c_returns(self) -> CType:
        """The C type of the result."""
        return _by_value(self.returns, "the result")


def _by_value(numba_type: Any, what: str) -> CType:
    if is_struct(numba_type):
        return struct_ctype(numba_type)
    if isinstance(numba_type, types.Array):
        raise CABIError(
            f"{what} is {numba_type}, which C++ cannot pass or return with its shape\n"
            "  what to do: pass the array as state=, or a pointer to its elements,"
            f" types.CPointer(types.{numba_type.dtype})"
        )
    if isinstance(numba_type, types.Optional):
        raise CABIError(
            f"{what} is {numba_type}: C++ has no value for None\n  what to do: return a number in each case"
        )
    try:
        return ctype(numba_type)
    except CABIError as error:
        raise CABIError(f"{what}: {error}") from None
