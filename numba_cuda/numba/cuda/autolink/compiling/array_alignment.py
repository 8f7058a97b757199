# SPDX-License-Identifier: BSD-2-Clause
"""The alignment of arrays in memory that external code reads and writes."""

from __future__ import annotations

from typing import Any

from llvmlite import ir as llvm

_COMPLEX = {(llvm.FloatType(), llvm.FloatType()): 8, (llvm.DoubleType(), llvm.DoubleType()): 16}


def align_arrays(builder: Any) -> None:
    """Align the local and shared arrays of the function that *builder* builds as C++ expects.

    Numba aligns complex numbers and records like their parts: ``complex64`` to 4 bytes, where ``float2`` needs 8.
    """
    variables = [
        *(i for i in builder.function.entry_basic_block.instructions if isinstance(i, llvm.AllocaInstr)),
        *(g for g in builder.module.globals.values() if isinstance(g, llvm.GlobalVariable)),
    ]
    for variable in variables:
        array = variable.type.pointee
        if isinstance(array, llvm.ArrayType):
            variable.align = max(variable.align or 0, _cxx_alignment(array.element)) or None


def _cxx_alignment(element: Any) -> int:
    """Return the alignment in bytes of an array element of LLVM type *element*, or 0 where Numba's is right."""
    if isinstance(element, llvm.LiteralStructType):
        return _COMPLEX.get(tuple(element.elements), 0)
    if isinstance(element, llvm.ArrayType) and element.element == llvm.IntType(8):
        # A record. The size of a struct is a multiple of its alignment.
        return min(16, element.count & -element.count)
    return 0
