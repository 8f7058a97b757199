# SPDX-License-Identifier: BSD-2-Clause
"""Numba's types of a kernel's arguments as the plain parameters that finished kernels are launched with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numba.cuda import types
from numba.cuda.core.errors import NumbaError
from numba.cuda.np import numpy_support

from numba_cuda_autolink.errors import FinishedKernelError
from numba_cuda_autolink.types.parameters import Parameter, element_type

_ARRAYS = {"numba-cuda": "array", "numba-cuda-mlir": "memref"}


def kernel_parameters(
    names: Iterable[str], argtypes: Iterable[Any], front_end: str = "numba-cuda"
) -> tuple[Parameter, ...]:
    """Return the parameters *names* of the types *argtypes*, numba-cuda's, as kernels of the *front_end* take them.
    Raise `FinishedKernelError` for a type whose values cannot be passed to a kernel at run time."""
    return tuple(_parameter(name, each, front_end) for name, each in zip(names, argtypes, strict=True))


def _parameter(name: str, numba_type: Any, front_end: str) -> Parameter:
    if isinstance(numba_type, types.Array):
        dtype = _element_type(name, numba_type.dtype)
        if front_end != "numba-cuda":
            _check_elements(name, numba_type, front_end)
        return Parameter(_ARRAYS[front_end], name, dtype, numba_type.ndim, numba_type.layout, not numba_type.mutable)
    if isinstance(numba_type, types.EnumMember):
        return _parameter(name, numba_type.dtype, front_end)
    if isinstance(numba_type, types.Boolean):
        return Parameter("bool", name, "|b1")
    if isinstance(numba_type, types.BaseTuple):
        fields = getattr(numba_type, "fields", None) or map(str, range(len(numba_type)))
        return Parameter("tuple", name, items=kernel_parameters(fields, numba_type.types, front_end))
    if isinstance(numba_type, (types.CPointer, types.RawPointer)):
        return Parameter("pointer", name)
    if numba_type == types.none:
        if front_end != "numba-cuda":
            raise _refusal(name, numba_type, f"a kernel of {front_end} has no parameter for it")
        return Parameter("none", name)
    kinds = {
        "complex": types.Complex,
        "datetime": (types.NPDatetime, types.NPTimedelta),
        "record": types.Record,
        "number": (types.Integer, types.Float),
    }
    for kind, classes in kinds.items():
        if isinstance(numba_type, classes) and not isinstance(numba_type, types.Literal):
            return Parameter(kind, name, _element_type(name, numba_type))
    if isinstance(numba_type, types.Literal):
        raise _refusal(name, numba_type, "its value is part of the code")
    has_none = isinstance(numba_type, (types.Dummy, types.Callable, types.DTypeSpec, types.Omitted))
    raise _refusal(name, numba_type, "it has no value at run time" if has_none else "finished kernels do not take it")


def _check_elements(name: str, array: types.Array, front_end: str) -> None:
    """Raise `FinishedKernelError` for an array that kernels of the second front end do not read by its strides."""
    if isinstance(array.dtype, types.Record):
        if (array.ndim, array.layout) != (1, "C"):
            raise _refusal(name, array, f"kernels of {front_end} do not use the strides of arrays of records")
    elif not isinstance(array.dtype, (types.Number, types.Boolean)):
        raise _refusal(name, array, "finished kernels do not take it")


def _element_type(name: str, numba_type: Any) -> Any:
    try:
        return element_type(numpy_support.as_dtype(numba_type))
    except (NotImplementedError, NumbaError):
        raise _refusal(name, numba_type, "NumPy has no such type") from None


def _refusal(name: str, numba_type: Any, why: str) -> FinishedKernelError:
    return FinishedKernelError(
        f"parameter {name!r} cannot be passed: {why}\n  type: {numba_type}\n"
        "  what to do: make it a global or closure variable of the kernel, or give it a type that has values"
    )
