# SPDX-License-Identifier: BSD-2-Clause
"""Values in memory, where a call passes their address: as C++ has them, and views of arrays and state of Python
functions as numba-cuda has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numba.cuda import types
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CType
from numba_cuda_mlir import lowering_utilities
from numba_cuda_mlir._mlir import ir
from numba_cuda_mlir._mlir.dialects import arith, llvm, memref
from numba_cuda_mlir._mlir.extras import types as T
from numba_cuda_mlir.lowering_utilities import (
    complex_to_llvm_struct,
    convert,
    get_type_size_bytes,
    is_complex_type,
    llvm_struct_to_complex,
)

from ...c_abi.c_types import CABIError, Layout, layout_of_fields, memory_layout
from ...c_abi.conversions import ArrayView
from ...c_abi.structs import CArray, CStruct, field_types
from .type_translation import from_core

_DYNAMIC_INDEX = -(2**31)  # in a constant list of MLIR, of an index that is a value
_POINTERS = (types.CPointer, types.RawPointer, types.Record)
_NUMBERS = (types.Number, types.Boolean, types.EnumMember)


def allocate(builder: Any, size: int, align: int) -> Any:
    with builder.alloca_insertion_point():
        count = arith.constant(T.i64(), size)
        return ir.Value(llvm.alloca(llvm.PointerType.get(), count, T.i8(), alignment=max(align, 1)))


def at(address: Any, offset: Any) -> Any:
    """Return the address that is *offset* bytes further, a number or a value."""
    if not isinstance(offset, int):
        further = offset
    elif offset:
        further = arith.constant(T.i64(), offset)
    else:
        return address
    return llvm.getelementptr(address.type, address, [further], [_DYNAMIC_INDEX], T.i8(), None)


def data_pointer(array: Any) -> Any:
    if (of_pointer := getattr(lowering_utilities, "memref_data_pointer", None)) is not None:
        return of_pointer(array)
    index = lowering_utilities.memref_data_pointer_as_index(array)  # numba-cuda-mlir before 0.5.3
    return ir.Value(llvm.inttoptr(llvm.PointerType.get(), convert(index, T.i64())))


def store(builder: Any, core: Any, value: Any, address: Any) -> None:
    layout = memory_layout(core, as_in_cxx=False)
    if isinstance(core, types.Record):
        data = llvm.load(ir.Type.parse(f"!llvm.array<{layout.size} x i8>"), value)
        llvm.store(data, address, alignment=1)
    elif isinstance(core, types.BaseTuple):
        for part, element, offset in zip(field_types(core), value, layout.offsets, strict=True):
            store(builder, part, element, at(address, offset))
    else:
        _store_number(builder, core, value, address, layout.align)


def _store_number(builder: Any, core: Any, value: Any, address: Any, align: int) -> None:
    data = builder.as_storage(from_core(core), value)
    if is_complex_type(data.type):
        data = complex_to_llvm_struct(data)
    llvm.store(data, address, alignment=align)


def load(builder: Any, core: Any, c_type: CType, address: Any) -> Any:
    """Return the value of *core* that C has as a *c_type* at an *address*."""
    if isinstance(c_type, CArray):
        elements = enumerate(core.types)
        return tuple(load(builder, each, c_type.element, at(address, c_type.element.size * n)) for n, each in elements)
    if isinstance(c_type, CStruct):
        parts = zip(core.types, c_type.members, c_type.offsets, strict=True)
        return tuple(load(builder, part, member, at(address, offset)) for part, member, offset in parts)
    numba_type = from_core(core)
    data_type = builder.get_storage_type(numba_type)
    if is_complex_type(data_type):
        part = data_type.element_type
        loaded = llvm.load(llvm.StructType.get_literal([part, part]), address, alignment=c_type.align)
        return llvm_struct_to_complex(loaded, data_type)
    return builder.from_storage(numba_type, llvm.load(data_type, address, alignment=c_type.align))


def view(builder: Any, how: ArrayView, core: Any, value: Any) -> Any:
    shape, strides = _shape_and_strides(value)
    of_mdspan = shape if core.layout in "CF" else [*shape, *strides]
    words = [_product(shape)] if how.name == "span" else of_mdspan
    memory = allocate(builder, 8 * (1 + len(words)), 8)
    _store_words([data_pointer(value), *words], memory)
    return memory


def state(builder: Any, core: Any, value: Callable[[], Any]) -> Any:
    """Return the address of what *value* returns, as functions have it that numba-cuda compiles."""
    layout = _layout_in_python(core)
    memory = allocate(builder, layout.size, layout.align)
    _store_for_python(builder, core, value(), memory)
    return memory


def _layout_in_python(core: Any) -> Layout:
    if isinstance(core, types.Array):
        return Layout(40 + 16 * core.ndim, 8)
    if isinstance(core, _POINTERS):
        return Layout(8, 8)
    if isinstance(core, types.BaseTuple):
        return layout_of_fields(map(_layout_in_python, core.types))
    if not isinstance(core, _NUMBERS):
        raise CABIError(f"a value of {core} cannot be passed as autolink.state in a kernel of numba-cuda-mlir")
    layout = memory_layout(core)
    # A complex number is a struct of two, with the alignment of one.
    return Layout(layout.size, layout.size // 2) if isinstance(core, types.Complex) else layout


def _store_for_python(builder: Any, core: Any, value: Any, address: Any) -> None:
    layout = _layout_in_python(core)
    if isinstance(core, types.Array):
        size = memory_layout(core.dtype).size
        if get_type_size_bytes(ir.MemRefType(value.type).element_type) != size:
            raise CABIError(
                f"an array of {core.dtype} cannot be passed as autolink.state in a kernel of numba-cuda-mlir\n"
                "  what to do: pass a pointer to its elements, and its shape as numbers"
            )
        shape, strides = _shape_and_strides(value)
        item = arith.constant(T.i64(), size)
        nothing = arith.constant(T.i64(), 0)
        in_bytes = [arith.muli(stride, item) for stride in strides]
        data = data_pointer(value)
        _store_words([nothing, nothing, _product(shape), item, data, *shape, *in_bytes], address)
    elif isinstance(core, _POINTERS):
        llvm.store(value, address, alignment=8)
    elif isinstance(core, types.BaseTuple):
        for part, element, offset in zip(core.types, value, layout.offsets, strict=True):
            _store_for_python(builder, part, element, at(address, offset))
    else:
        _store_number(builder, core, value, address, layout.align)


def _shape_and_strides(value: Any) -> tuple[list[Any], list[Any]]:
    metadata = list(memref.extract_strided_metadata(value))[2:]
    numbers = [convert(each, T.i64()) for each in metadata]
    return numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]


def _product(numbers: Sequence[Any]) -> Any:
    found = arith.constant(T.i64(), 1)
    for each in numbers:
        found = arith.muli(found, each)
    return found


def _store_words(words: Sequence[Any], address: Any) -> None:
    for number, word in enumerate(words):
        llvm.store(word, at(address, 8 * number), alignment=8)
