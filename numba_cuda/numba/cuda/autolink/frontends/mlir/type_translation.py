# SPDX-License-Identifier: BSD-2-Clause
"""Numba types of numba-cuda-mlir as those of numba-cuda, and back; and the front end's vocabulary.

The list of classes that are translated is closed. A type of any other class becomes a `ForeignValue`, which C has no
counterpart for, or a `ForeignConstant`, which is not passed to C.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from numba import cuda
from numba.cuda import types
from numba.cuda.descriptor import cuda_target
from numba.cuda.typing.typeof import typeof, typeof_impl
from numba_cuda_mlir import cuda as mlir_cuda
from numba_cuda_mlir.descriptor import MLIRDispatcher, MLIRDispatcherType, mlir_target
from numba_cuda_mlir.numba_cuda import types as mlir_types
from numba_cuda_mlir.numba_cuda.core import ir, ir_utils, sigutils, typed_passes
from numba_cuda_mlir.numba_cuda.typing import typeof as mlir_typeof

from ...c_abi.record_values import RecordValue, make_enumerator_type
from ...device_callable.object_type import DeviceCallableType
from ...frontend_api.front_end import Vocabulary


class ForeignValue(types.Type):
    """A type of numba-cuda-mlir without a counterpart in numba-cuda."""

    def __init__(self, original: Any):
        self.original = original
        super().__init__(name=str(original))

    @property
    def key(self) -> Any:
        return self.original


class ForeignConstant(ForeignValue, types.Dummy):
    """A type of numba-cuda-mlir whose values only the compiler knows."""


_COUNTERPART, _ORIGINAL = "_autolink_counterpart", "_autolink_original"
_Translate = Callable[[Any], Any]
# The fields by which a type of a class is made again: of plain values, and of types.
_BY_NAME = ("Integer", "Float", "Complex")
_MADE_OF: dict[str, Callable[[Any, Any, _Translate], Any]] = {
    "Boolean": lambda t, to, _: to.boolean,
    "NoneType": lambda t, to, _: to.none,
    "Bfloat16": lambda t, to, _: to.bfloat16,
    "UnicodeType": lambda t, to, _: to.unicode_type,
    "Bytes": lambda t, to, tr: to.Bytes(tr(t.dtype), t.ndim, t.layout, readonly=not t.mutable),
    "RawPointer": lambda t, to, _: to.voidptr,
    "Array": lambda t, to, tr: to.Array(tr(t.dtype), t.ndim, t.layout, readonly=not t.mutable, aligned=t.aligned),
    "NestedArray": lambda t, to, tr: to.NestedArray(tr(t.dtype), t.shape),
    "CPointer": lambda t, to, tr: to.CPointer(tr(t.dtype), t.addrspace),
    "Optional": lambda t, to, tr: to.Optional(tr(t.type)),
    "DType": lambda t, to, tr: to.DType(tr(t.dtype)),
    "NumberClass": lambda t, to, tr: to.NumberClass(tr(t.instance_type)),
    "TypeRef": lambda t, to, tr: to.TypeRef(tr(t.instance_type)),
    "CharSeq": lambda t, to, _: to.CharSeq(t.count),
    "UnicodeCharSeq": lambda t, to, _: to.UnicodeCharSeq(t.count),
    "NPDatetime": lambda t, to, _: to.NPDatetime(t.unit),
    "NPTimedelta": lambda t, to, _: to.NPTimedelta(t.unit),
    "EnumMember": lambda t, to, tr: to.EnumMember(t.instance_class, tr(t.dtype)),
    "IntEnumMember": lambda t, to, tr: to.IntEnumMember(t.instance_class, tr(t.dtype)),
    "Tuple": lambda t, to, tr: to.Tuple(tuple(map(tr, t.types))),
    "UniTuple": lambda t, to, tr: to.UniTuple(tr(t.dtype), t.count),
    "NamedTuple": lambda t, to, tr: to.NamedTuple(tuple(map(tr, t.types)), t.instance_class),
    "NamedUniTuple": lambda t, to, tr: to.NamedUniTuple(tr(t.dtype), t.count, t.instance_class),
    "StarArgTuple": lambda t, to, tr: to.StarArgTuple(tuple(map(tr, t.types))),
    "StarArgUniTuple": lambda t, to, tr: to.StarArgUniTuple(tr(t.dtype), t.count),
    "Record": lambda t, to, tr: _record(t, to, tr),
    "IntegerLiteral": lambda t, to, _: to.literal(t.literal_value),
    "BooleanLiteral": lambda t, to, _: to.literal(t.literal_value),
    "StringLiteral": lambda t, to, _: to.literal(t.literal_value),
}


def _record(record: Any, to: Any, translate: _Translate) -> Any:
    fields = [(name, {**each._asdict(), "type": translate(each.type)}) for name, each in record.fields.items()]
    return to.Record(fields, record.size, record.aligned)


def _translate(numba_type: Any, source: Any, goal: Any, translate: _Translate) -> Any:
    """Return *numba_type* of the module *source* in the module *goal*; None if its class is on no list."""
    name = type(numba_type).__name__
    if type(numba_type) is not getattr(source, name, None) and numba_type not in (source.bfloat16,):
        return None
    if name in _BY_NAME:
        found = getattr(goal, numba_type.name, None)
        return found if getattr(source, numba_type.name, None) == numba_type else None
    if name == "Omitted":
        return goal.Omitted(numba_type.value)
    return _MADE_OF[name](numba_type, goal, translate) if name in _MADE_OF else None


def _counterpart(dispatcher: Any) -> Any:
    found = vars(dispatcher).get(_COUNTERPART)
    if found is None:
        found = vars(dispatcher)[_COUNTERPART] = cuda.jit(device=True)(dispatcher.py_func)
        setattr(found, _ORIGINAL, weakref.ref(dispatcher))
    return found


@typeof_impl.register(MLIRDispatcher)
def _typeof_dispatcher(dispatcher: Any, context: Any) -> Any:
    """Return the type of a device function that a function refers to which numba-cuda compiles for C++."""
    return typeof_impl(_counterpart(dispatcher), context)


def _function_type(typing_context: Any, numba_type: Any) -> Any:
    """Return the type of a function that both front ends know, such as an operator; None if one does not."""
    try:
        return typing_context.resolve_value_type(numba_type.typing_key)
    except Exception:  # of whatever kind the front end raises for an object that it does not know
        return None


def to_core(numba_type: Any) -> Any:
    if not isinstance(numba_type, mlir_types.Type):
        return numba_type
    if isinstance(core := getattr(numba_type, "core", None), DeviceCallableType):
        return DeviceCallableType.of(core.numba_cuda_link_object)
    if (record := getattr(getattr(numba_type, "instance_class", None), "_of_record", None)) is not None:
        return RecordValue(record)
    if (underlying := getattr(getattr(numba_type, "instance_class", None), "underlying", None)) is not None:
        return make_enumerator_type(numba_type.instance_class.cxx_type, underlying)
    if isinstance(numba_type, (MLIRDispatcherType, mlir_types.Dispatcher)):
        return typeof(_counterpart(numba_type.dispatcher))
    if type(numba_type) is mlir_types.Function:
        cuda_target.typing_context.refresh()  # numba-cuda may not have compiled anything yet
        found = _function_type(cuda_target.typing_context, numba_type)
    else:
        found = _translate(numba_type, mlir_types, types, to_core)
    if found is not None:
        return found
    compile_time = (mlir_types.Dummy, mlir_types.Callable, mlir_types.DTypeSpec)
    return (ForeignConstant if isinstance(numba_type, compile_time) else ForeignValue)(numba_type)


def from_core(numba_type: Any) -> Any:
    """Return a type of numba-cuda as that of numba-cuda-mlir. Raise `TypeError` if it has none."""
    if isinstance(numba_type, mlir_types.Type):
        return numba_type
    if isinstance(numba_type, ForeignValue):
        return numba_type.original
    if isinstance(numba_type, DeviceCallableType):
        return mlir_typeof.typeof(numba_type.numba_cuda_link_object)
    if isinstance(numba_type, types.Dispatcher):
        original = getattr(numba_type.dispatcher, _ORIGINAL, None)
        return mlir_typeof.typeof(original() if original is not None else numba_type.dispatcher)
    if type(numba_type) is types.Function and (made := _function_type(mlir_target.typing_context, numba_type)):
        return made
    if isinstance(numba_type, RecordValue):
        return mlir_types.NamedTuple(tuple(map(from_core, numba_type.types)), numba_type.instance_class)
    if isinstance(numba_type, types.IntEnumMember):  # or that of an enumerator of C++
        return mlir_types.IntEnumMember(numba_type.instance_class, from_core(numba_type.dtype))
    found = _translate(numba_type, types, mlir_types, from_core)
    if found is None:
        raise TypeError(f"numba-cuda-mlir has no type {numba_type}, which numba-cuda has")
    return found


#: The vocabulary of numba-cuda-mlir, in which this project reads its types and its IR.
MLIR = Vocabulary(
    "numba-cuda-mlir",
    mlir_types,
    ir,
    ir_utils,
    mlir_typeof,
    typed_passes,
    sigutils,
    mlir_cuda.jit(device=True),
    lambda: mlir_cuda,
    f"{__package__}.front_end",
    to_core,
    from_core,
    MLIRDispatcher,
)
