# SPDX-License-Identifier: BSD-2-Clause
"""Views of arrays in C++: ``cuda::std::span`` and ``cuda::std::mdspan``, with the shape and the strides of an array.

A span is passed by value. An ``mdspan`` consists of nested classes of CCCL, whose types in LLVM differ between
versions, and would not be inlined by value. So a reference to one in local memory is passed, which disappears when the
function is inlined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numba.cuda import types
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CType

from .c_types import CABIError, element_ctype, pointer_to
from .structs import CStruct

_LAYOUTS = {"C": "layout_right", "F": "layout_left"}
_SIZE = CType("unsigned long long", "uint", 8, 8)


@dataclass(frozen=True)
class ArrayView:
    """How an array is passed: as a ``"span"`` or as an ``"mdspan"``."""

    name: str

    def __repr__(self) -> str:
        return f"autolink.{self.name}"

    def ctype(self, array: Any) -> CType:
        """Return the C++ type of a parameter that takes an *array* of this Numba type. Raise `CABIError` if there is
        none."""
        if not isinstance(array, types.Array) or array.ndim == 0:
            raise CABIError(f"{array} has no {self.name}: it is not an array with elements")
        if isinstance(array.dtype, types.Record):
            raise CABIError(f"an array of records has no {self.name}: only C++ knows their struct\n  got: {array}")
        element = ("" if array.mutable else "const ") + element_ctype(array.dtype).cxx
        if self.name == "span":
            if array.layout not in _LAYOUTS:
                raise CABIError(f"{array} has no span: it may be strided\n  what to do: pass it as autolink.mdspan")
            members = pointer_to(element), _SIZE
            return CStruct(f"cuda::std::span<{element}>", "struct", 16, 8, None, members, (0, 8))
        extents = f"cuda::std::dextents<long long, {array.ndim}>"
        layout = _LAYOUTS.get(array.layout, "layout_stride")
        mdspan = f"cuda::std::mdspan<{element}, {extents}, cuda::std::{layout}>"
        return CType(f"const {mdspan}&", "pointer", 8, 8)


span = ArrayView("span")
"""Passes a contiguous array as a ``cuda::std::span<T>`` of all its elements, in the ``args`` of an `Extern`."""

mdspan = ArrayView("mdspan")
"""Passes an array as a ``const cuda::std::mdspan<T, cuda::std::dextents<long long, ndim>, layout>&``, in the ``args``
of an `Extern`. The layout is that of the array's type: ``cuda::std::layout_right`` in C order, ``layout_left`` in
Fortran order, and ``layout_stride`` otherwise. Strides are multiples of the size of an element."""
