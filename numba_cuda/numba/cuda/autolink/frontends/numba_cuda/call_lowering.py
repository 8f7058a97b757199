# SPDX-License-Identifier: BSD-2-Clause
"""LLVM IR for calls of device callables: of C functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir as llvm
from numba.cuda import cgutils, types
from numba.cuda.core.errors import LoweringError
from numba.cuda.extending import lower_builtin, lower_getattr_generic

from ...c_abi.c_types import memory_layout
from ...c_abi.conversions import ArrayView, State
from ...c_abi.extern import Passed, Prototype
from ...c_abi.llvm_values import BYTE, POINTER, from_c, function_type, llvm_type, new_function, to_c
from ...c_abi.record_values import find_alignment, result_type, store
from ...compilation.context import compilation
from ...device_callable.constant_expressions import attribute
from ...device_callable.object_type import DeviceCallableType, PythonBody
from ...protocol.errors import typing_error
from .code_library import LinkingCodeLibrary


@lower_builtin(DeviceCallableType, types.VarArg(types.Any))
def _call(context: Any, builder: Any, sig: Any, args: Sequence[Any], loc: Any = None) -> Any:
    callee, *argtypes = sig.args
    # An intrinsic that asks the context for the function passes only the arguments.
    values = args if len(args) == len(argtypes) else args[1:]
    meaning = callee.meaning(context.typing_context, argtypes)
    if isinstance(library := context.active_code_library, LinkingCodeLibrary):
        library.function_code.calls.meanings[callee, tuple(argtypes)] = callee.returned(argtypes)
    if isinstance(meaning, PythonBody):
        return meaning.lower(context, builder, argtypes, values)
    return _call_c_function(context, builder, meaning, (argtypes, values), loc)


def _call_c_function(context: Any, builder: Any, c_function: Prototype, arguments: Any, loc: Any) -> Any:
    argtypes, values = arguments
    if c_function.cooperative:
        context.active_code_library.use_cooperative = True
    in_progress = compilation()
    if in_progress is not None:
        in_progress.prototypes.append((c_function.symbol, c_function.with_read_only(in_progress.read_only)))
    function = _declare(builder, c_function, loc)
    passed = []
    for arg, expected in zip(c_function.args, function.type.pointee.args, strict=True):
        value = _to_c(context, builder, arg, argtypes[arg.index], values[arg.index])
        passed.append(builder.bitcast(value, expected) if isinstance(expected, llvm.PointerType) else value)
    returned = builder.call(function, passed)
    return from_c(context, builder, c_function.return_ctype, result_type(c_function.returns), returned)


def _declare(builder: Any, c_function: Prototype, loc: Any) -> Any:
    module, returns = builder.module, c_function.return_ctype
    c_types = [arg.c_type for arg in c_function.args]
    function = module.globals.get(c_function.symbol)
    if function is None:
        return new_function(module, c_function.symbol, returns, c_types)
    declared, expected = getattr(function, "ftype", None), function_type(module, returns, c_types)
    if declared == expected:
        return function
    if declared is not None and _with_untyped_pointers(declared) == _with_untyped_pointers(expected):
        return builder.bitcast(function, expected.as_pointer())
    raise typing_error(
        f"the symbol {c_function.symbol!r} is already declared with another prototype\n  this call: {c_function}\n"
        "  what to do: put the types that differ into the symbol",
        loc=loc,
        error=LoweringError,
    )


def _with_untyped_pointers(function_type: Any) -> list[Any]:
    parts = (function_type.return_type, *function_type.args)
    return [POINTER if isinstance(each, llvm.PointerType) else each for each in parts]


def _to_c(context: Any, builder: Any, arg: Passed, given: Any, value: Any) -> Any:
    numba_type = arg.numba_type
    if isinstance(arg.asked_for, ArrayView):
        return view(context, builder, arg.asked_for, numba_type, value)
    value = context.cast(builder, value, given, numba_type)
    if isinstance(arg.asked_for, State):
        return builder.bitcast(cgutils.alloca_once_value(builder, value), POINTER)
    if arg.c_type.kind == "pointer":
        return _pointer(context, builder, numba_type, value)
    return to_c(builder, arg.c_type, numba_type, value)


def _pointer(context: Any, builder: Any, numba_type: Any, value: Any) -> Any:
    if numba_type == types.none:
        return POINTER(None)
    if isinstance(numba_type, (types.Number, types.Boolean)):
        data = context.get_value_as_data(builder, numba_type, value)
        memory = cgutils.alloca_once(builder, data.type)
        memory.align = memory_layout(numba_type).align
        builder.store(data, memory, align=memory.align)
        return builder.bitcast(memory, POINTER)
    if isinstance(numba_type, types.Array):
        value = context.make_array(numba_type)(context, builder, value).data
    elif isinstance(numba_type, types.BaseTuple):
        size = memory_layout(numba_type, as_in_cxx=False).size
        memory = cgutils.alloca_once(builder, llvm.ArrayType(BYTE, size))
        memory.align = find_alignment(numba_type)
        address = builder.bitcast(memory, POINTER)
        store(context, builder, numba_type, value, address)
        return address
    if value.type.addrspace:
        value = builder.addrspacecast(value, value.type.pointee.as_pointer())
    return builder.bitcast(value, POINTER)


@lower_getattr_generic(DeviceCallableType)
def _getattr(context: Any, builder: Any, typ: Any, value: Any, name: str) -> Any:
    constant, numba_type = attribute(typ.numba_cuda_link_object, name)
    return context.get_constant_generic(builder, numba_type, constant)


_INT64 = llvm.IntType(64)


def view(context: Any, builder: Any, how: ArrayView, numba_type: Any, value: Any) -> Any:
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
