# SPDX-License-Identifier: BSD-2-Clause
"""Local and shared arrays of records, such as objects of C++, which numba-cuda-mlir cannot make itself."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from numba_cuda_mlir import cuda
from numba_cuda_mlir._mlir import ir
from numba_cuda_mlir._mlir.dialects import arith, memref
from numba_cuda_mlir._mlir.extras import types as T
from numba_cuda_mlir.lowering_utilities import try_extract_constant
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core.errors import LoweringError

_LOCAL, _SHARED = cuda.local.array, cuda.shared.array
_number = itertools.count()  # the code of device functions is merged; `linker` numbers the names in a kernel
_DYNAMIC = ir.ShapedType.get_dynamic_size()
_DYNAMIC_STRIDE = ir.ShapedType.get_dynamic_stride_or_offset()


def lower_record_array(
    builder: Any, target: Any, function: Any, args: Sequence[Any], kws: Sequence[tuple[str, Any]], loc: Any
) -> bool:
    """Return whether a call of the variable *function* makes an array of records, and lower it to *target* if it does.

    The array is what numba-cuda-mlir has for arrays of records that are arguments: bytes, with strides in bytes. Raise
    `LoweringError` for more than one dimension, and for a size that is not constant.
    """
    makes = getattr(builder.get_numba_type(function.name), "typing_key", None)
    array = builder.get_numba_type(target.name)
    if makes not in (_LOCAL, _SHARED) or not isinstance(getattr(array, "dtype", None), types.Record):
        return False
    given = {**dict(zip(("shape", "dtype", "alignment"), args, strict=False)), **dict(kws)}
    count = _constant(builder, given["shape"])
    if array.ndim != 1 or not count:
        raise LoweringError(
            "in numba-cuda-mlir, a local or shared array of records has one dimension and a constant size\n"
            f"  got: {array}\n"
            "  what to do: make it one-dimensional, or compile the kernel with numba-cuda",
            loc=loc,
        )
    size = array.dtype.size
    align = max(_alignment(builder, given, loc), min(16, size & -size))
    made = (_local if makes is _LOCAL else _shared)(builder, count * size, align)
    strided = ir.StridedLayoutAttr.get(_DYNAMIC_STRIDE, [_DYNAMIC_STRIDE])
    records = memref.reinterpret_cast(
        ir.MemRefType.get([_DYNAMIC], T.i8(), layout=strided),
        made,
        offsets=[arith.constant(T.index(), 0)],
        sizes=[arith.constant(T.index(), count)],
        strides=[arith.constant(T.index(), size)],
        static_offsets=[_DYNAMIC_STRIDE],
        static_sizes=[_DYNAMIC],
        static_strides=[_DYNAMIC_STRIDE],
    )
    builder.store_var(target, records)
    return True


def _constant(builder: Any, given: Any) -> Any:
    value = builder.load_var(given) if hasattr(given, "name") else given
    if isinstance(value, tuple):
        value = value[0] if len(value) == 1 else None
    return try_extract_constant(value)


def _alignment(builder: Any, given: Mapping[str, Any], loc: Any) -> int:
    asked = given.get("alignment", given.get("alignas"))
    if asked is None or (hasattr(asked, "name") and isinstance(builder.get_numba_type(asked.name), types.NoneType)):
        return 8
    align = _constant(builder, asked)
    if not isinstance(align, int) or align < 8 or align & (align - 1):
        raise LoweringError(f"alignment: got {align}, expected a power of two that is a multiple of 8", loc=loc)
    return align


def _local(builder: Any, size: int, align: int) -> Any:
    with builder.alloca_insertion_point():
        return memref.alloca(ir.MemRefType.get([size], T.i8()), [], [], alignment=align)


def _shared(builder: Any, size: int, align: int) -> Any:
    memory = ir.MemRefType.get([size], T.i8(), memory_space=ir.Attribute.parse("#gpu.address_space<workgroup>"))
    name = f"static_shared_records_{next(_number)}"
    with ir.InsertionPoint(builder.mlir_gpu_module.bodyRegion.blocks[0]):
        memref.global_(name, memory, sym_visibility="private", alignment=align)
    return memref.memory_space_cast(ir.MemRefType.get([size], T.i8()), memref.get_global(memory, name))
