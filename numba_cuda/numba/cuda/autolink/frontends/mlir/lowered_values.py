# SPDX-License-Identifier: BSD-2-Clause
"""What numba-cuda-mlir does not lower, or not right: named tuples that kernels make, operators of enumerators of C++,
structs that C functions returned and enumerators that kernels assign to elements of arrays, and local and shared arrays
of records, such as objects of C++."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from numba_cuda_mlir import cuda
from numba_cuda_mlir._mlir import ir
from numba_cuda_mlir._mlir.dialects import arith, memref
from numba_cuda_mlir._mlir.extras import types as T
from numba_cuda_mlir.extending import lowering_registry, typing_registry
from numba_cuda_mlir.lowering_utilities import convert, try_extract_constant
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core import ir as numba_ir
from numba_cuda_mlir.numba_cuda.core.errors import LoweringError
from numba_cuda_mlir.numba_cuda.typing.templates import AbstractTemplate, signature

from ...c_abi.record_values import Enumerator, RecordValue
from .memory_values import at, data_pointer, store
from .type_translation import to_core


@typing_registry.register_global(operator.setitem)
class _SetElement(AbstractTemplate):
    key = operator.setitem

    def generic(self, args: Any, kws: Any) -> Any:
        array, index, value = args
        if not isinstance(array, types.Array) or not isinstance(getattr(array, "dtype", None), types.Record):
            return None
        core = to_core(value)
        is_element = isinstance(core, RecordValue) and core.of_record == to_core(array.dtype)
        if not is_element or array.ndim != 1 or not isinstance(index, types.Integer) or not array.mutable:
            return None
        return signature(types.none, array, index, value)


@lowering_registry.lower(operator.setitem, types.Array, types.Integer, types.BaseNamedTuple)
def _lower_set_element(builder: Any, target: Any, args: Any, kws: Any) -> None:
    array, index, value = map(builder.load_var, args)
    core = to_core(builder.get_numba_type(args[2].name))
    number = convert(index, T.i64())
    count = convert(memref.dim(array, arith.constant(T.index(), 0)), T.i64())
    is_negative = arith.cmpi(arith.CmpIPredicate.slt, number, arith.constant(T.i64(), 0))
    number = arith.select(is_negative, arith.addi(number, count), number)
    size = arith.constant(T.i64(), core.of_record.size)
    store(builder, core, value, at(data_pointer(array), arith.muli(number, size)))


@lowering_registry.lower(operator.setitem, types.Array, types.Integer, types.IntEnumMember)
def _lower_set_enumerator(builder: Any, target: Any, args: Any, kws: Any) -> None:
    """Store the number of an enumerator."""
    numbers = [number_of(builder, each) for each in args]
    stored = signature(types.none, *(builder.get_numba_type(each.name) for each in numbers))
    builder.get_registered_builder(operator.setitem, stored)(builder, target, numbers, [])


def lower_enumerator(builder: Any, target: Any, value: Any) -> bool:
    """Return whether *value* is an operator of an enumerator of C++, or one that becomes a number, and lower it to
    *target* if it is."""
    is_operator = isinstance(value, numba_ir.Expr) and value.op in ("binop", "inplace_binop", "unary")
    operands = value.list_vars() if is_operator else [value] if isinstance(value, numba_ir.Var) else []
    found = [builder.get_numba_type(each.name) for each in operands]
    goal = builder.get_numba_type(target.name)
    if not any(_is_of_cxx(each) for each in found) or (not is_operator and goal == found[0]):
        return False
    numbers = [number_of(builder, each) for each in operands]
    if not is_operator:
        builder.store_var(target, builder.lower_cast(found[0].dtype, goal, builder.load_var(numbers[0])))
    elif value.op == "unary":
        builder.lower_unary_expr_assign(target, value.fn, *numbers)
    else:
        builder.lower_binop_expr_assign(target, value.fn, *numbers)
    return True


def _is_of_cxx(numba_type: Any) -> bool:
    return isinstance(numba_type, types.IntEnumMember) and issubclass(numba_type.instance_class, Enumerator)


def number_of(builder: Any, value: Any) -> Any:
    """Return a variable with the number of an enumerator; any other variable as it is."""
    if not isinstance(enumerator := builder.get_numba_type(value.name), types.IntEnumMember):
        return value
    number = value.scope.redefine("$number", value.loc)
    builder.fndesc.typemap[number.name] = enumerator.dtype
    builder.store_var(number, builder.load_var(value))
    return number


def lower_named_tuple(builder: Any, target: Any, function: Any, args: Any, kws: Any) -> bool:
    """Return whether a call of the variable *function* makes a named tuple, and lower it to *target* if it does."""
    made = builder.get_numba_type(function.name)
    if not isinstance(made, types.NamedTupleClass):
        return False
    named = dict(zip(made.instance_class._fields, args, strict=False)) | dict(kws)
    goals = builder.get_numba_type(target.name).types
    if len(named) < len(goals):  # others are defaults
        return False
    given = (named[name] for name in made.instance_class._fields)
    values = ((builder.get_numba_type(each.name), builder.load_var(each)) for each in given)
    cast = (builder.lower_cast(of, goal, value) for (of, value), goal in zip(values, goals, strict=True))
    builder.store_var(target, tuple(cast))
    return True


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
