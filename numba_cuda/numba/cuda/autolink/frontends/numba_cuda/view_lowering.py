# SPDX-License-Identifier: BSD-2-Clause
"""LLVM IR that makes a view of an array, as C++ has it in memory."""

from __future__ import annotations

from typing import Any

from llvmlite import ir as llvm
from numba.cuda import cgutils

from ...c_abi.array_views import ArrayView
from ...c_abi.llvm_values import POINTER, llvm_type

_INT64 = llvm.IntType(64)


def view(context: Any, builder: Any, how: ArrayView, numba_type: Any, value: Any) -> Any:
    """Return the view of an array, as a parameter of C++ takes it."""
    array = context.make_array(numba_type)(context, builder, value)
    shape = cgutils.unpack_tuple(builder, array.shape, numba_type.ndim)
    data = array.data
    if data.type.addrspace:
        data = builder.addrspacecast(data, data.type.pointee.as_pointer())
    c_type: Any = how.ctype(numba_type)
    if how.name == "span":
        struct = llvm_type(builder.module, c_type)
        pointer = builder.bitcast(data, struct.elements[0])
        found = builder.insert_value(llvm.Constant(struct, llvm.Undefined), pointer, 0)
        return builder.insert_value(found, array.nitems, 1)
    parts = shape
    if numba_type.layout not in "CF":
        # C++ counts strides in elements.
        size = llvm.Constant(_INT64, context.get_abi_sizeof(context.get_data_type(numba_type.dtype)))
        strides = cgutils.unpack_tuple(builder, array.strides, numba_type.ndim)
        parts = [*shape, *(builder.sdiv(stride, size, flags=["exact"]) for stride in strides)]
    memory = cgutils.alloca_once(builder, llvm.ArrayType(_INT64, 1 + len(parts)))
    memory.align = 8
    words = builder.bitcast(memory, _INT64.as_pointer())
    builder.store(builder.bitcast(data, POINTER), builder.bitcast(words, POINTER.as_pointer()), align=8)
    for number, part in enumerate(parts, 1):
        builder.store(part, builder.gep(words, [llvm.Constant(llvm.IntType(32), number)]), align=8)
    return builder.bitcast(words, POINTER)
