# SPDX-License-Identifier: BSD-2-Clause
"""What numba-cuda-mlir does not lower, or not right: named tuples that kernels make, operators of enumerators of C++,
and structs that C functions returned and enumerators that kernels assign to elements of arrays."""

from __future__ import annotations

import operator
from typing import Any

from numba_cuda_mlir._mlir.dialects import arith, memref
from numba_cuda_mlir._mlir.extras import types as T
from numba_cuda_mlir.extending import lowering_registry, typing_registry
from numba_cuda_mlir.lowering_utilities import convert
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core import ir
from numba_cuda_mlir.numba_cuda.typing.templates import AbstractTemplate, signature

from ...c_abi.enumerators import Enumerator
from ...c_abi.record_values import RecordValue
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
    is_operator = isinstance(value, ir.Expr) and value.op in ("binop", "inplace_binop", "unary")
    operands = value.list_vars() if is_operator else [value] if isinstance(value, ir.Var) else []
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
    return getattr(numba_type, "instance_class", None) is Enumerator


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
