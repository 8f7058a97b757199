# SPDX-License-Identifier: BSD-2-Clause
"""LLVM IR for calls of device callables: C functions, declared and called as NVRTC and nvcc compile them.

These rules make it the same function for both compilers, in PTX and under link-time optimisation (the tests compare):

- ``bool`` is 8 bits wide: a function with an ``i1`` parameter is not inlined.
- Small integers are extended to 32 bits by the caller, which the callee relies on.
- Structs by value are identified types, with their C++ alignment as an ``align`` annotation. A literal struct has the
  alignment of its fields, so the caller would pass its bytes in other registers than those that the callee reads.
- Pointers are ``i8*``, except in functions with structs by value: there they have their C++ types, since otherwise
  nvJitLink before 13.1 takes the types of the two functions for different ones and inlines nothing.
- The functions are ``convergent``, since they may contain barriers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from llvmlite import ir as llvm
from numba.cuda import cgutils, types
from numba.cuda.core.errors import LoweringError
from numba.cuda.extending import lower_builtin, lower_getattr_generic, lower_setattr_generic

from ..compilation import compilation
from .attributes import attribute
from .c_abi import CType, memory_layout
from .extern import Passed, Prototype
from .numba_types import DeviceCallableType

_BYTE = llvm.IntType(8)
_POINTER = _BYTE.as_pointer()
_POINTEES = {
    "bool": _BYTE,
    "float": llvm.FloatType(),
    "double": llvm.DoubleType(),
    **{name: llvm.IntType(bits) for name, bits in (("short", 16), ("int", 32), ("long long", 64))},
}
_STRUCTS = {
    "float2": (llvm.FloatType(), llvm.FloatType()),
    "double2": (llvm.DoubleType(), llvm.DoubleType()),
    "__half": (llvm.IntType(16),),
    "__nv_bfloat16": (llvm.IntType(16),),
}


@lower_builtin(DeviceCallableType, types.VarArg(types.Any))
def _call(context: Any, builder: Any, sig: Any, args: Sequence[Any], loc: Any = None) -> Any:
    callee, *argtypes = sig.args
    # An intrinsic that asks the context for the function passes only the arguments.
    values = args if len(args) == len(argtypes) else args[1:]
    c_function = callee.prototype(context.typing_context, argtypes)
    if c_function.cooperative:
        context.active_code_library.use_cooperative = True
    in_progress = compilation()
    if in_progress is not None:
        in_progress.prototypes.append((c_function.symbol, c_function.c_prototype))
    function = _declared(builder, c_function, loc)
    passed = []
    for arg, llvm_type in zip(c_function.args, function.type.pointee.args, strict=True):
        value = _to_c(context, builder, arg, argtypes[arg.index], values[arg.index])
        passed.append(builder.bitcast(value, llvm_type) if isinstance(llvm_type, llvm.PointerType) else value)
    return _from_c(context, builder, c_function, builder.call(function, passed))


def _declared(builder: Any, c_function: Prototype, loc: Any) -> Any:
    module, returns = builder.module, c_function.return_ctype
    c_types = [arg.c_type for arg in c_function.args]
    typed_pointers = any(c_type.kind == "struct" for c_type in (returns, *c_types))
    returned, *taken = (_llvm_type(module, c_type, typed_pointers) for c_type in (returns, *c_types))
    function_type = llvm.FunctionType(returned, taken)
    function = module.globals.get(c_function.symbol)
    if function is None:
        function = llvm.Function(module, function_type, c_function.symbol)
        function.attributes.add("convergent")
        values = (function.return_value, *function.args)
        for number, (value, c_type) in enumerate(zip(values, (returns, *c_types), strict=True)):
            _annotate(module, function, number, value, c_type)
        return function
    declared = getattr(function, "ftype", None)
    if declared == function_type:
        return function
    if declared is not None and _with_untyped_pointers(declared) == _with_untyped_pointers(function_type):
        return builder.bitcast(function, function_type.as_pointer())
    raise LoweringError(
        f"the symbol {c_function.symbol!r} is already declared with another prototype\n  this call: {c_function}\n"
        "  what to do: put the types that differ into the symbol",
        loc=loc,
    )


def _with_untyped_pointers(function_type: Any) -> list[Any]:
    parts = (function_type.return_type, *function_type.args)
    return [_POINTER if isinstance(each, llvm.PointerType) else each for each in parts]


def _llvm_type(module: Any, c_type: CType, typed_pointers: bool = False) -> Any:
    if c_type.kind == "pointer" and typed_pointers:
        pointee = c_type.cxx.removesuffix("*").removeprefix("const ").removeprefix("unsigned ").removeprefix("signed ")
        if pointee in _STRUCTS:
            return _llvm_type(module, CType(pointee, "struct", 0, 0)).as_pointer()
        return _POINTEES.get(pointee, _BYTE).as_pointer()
    if c_type.kind == "struct":
        # In a context of the module's own: all types of a context are printed with every module in it.
        if module.context is llvm.context.global_context:
            module.context = llvm.Context()
        struct = module.context.get_identified_type(f"struct.{c_type.cxx}")
        if struct.is_opaque:
            struct.set_body(*_STRUCTS[c_type.cxx])
        return struct
    if c_type.kind == "float":
        return llvm.FloatType() if c_type.size == 4 else llvm.DoubleType()
    if c_type.kind == "void":
        return llvm.VoidType()
    return _POINTER if c_type.kind == "pointer" else llvm.IntType(8 * c_type.size)


def _annotate(module: Any, function: Any, number: int, value: Any, c_type: CType) -> None:
    """Annotate a parameter of *function*: *number* 0 is the return value, 1 the first parameter."""
    if c_type.kind == "struct":
        align = llvm.Constant(llvm.IntType(32), number << 16 | c_type.align)
        module.add_named_metadata("nvvm.annotations", [function, "align", align])
    elif c_type.kind in ("int", "uint", "bool") and c_type.size < 4:
        value.add_attribute("signext" if c_type.kind == "int" else "zeroext")


def _to_c(context: Any, builder: Any, arg: Passed, given: Any, value: Any) -> Any:
    kind, numba_type = arg.c_type.kind, arg.numba_type
    value = context.cast(builder, value, given, numba_type)
    if kind == "pointer":
        return _pointer(context, builder, numba_type, value)
    if kind == "bool":
        return builder.zext(value, _BYTE)
    if kind == "struct":
        parts = [value] if isinstance(value.type, llvm.IntType) else cgutils.unpack_tuple(builder, value)
        return _filled(builder, _llvm_type(builder.module, arg.c_type), parts)
    return value


def _from_c(context: Any, builder: Any, c_function: Prototype, result: Any) -> Any:
    kind, numba_type = c_function.return_ctype.kind, c_function.returns
    if kind == "void":
        return context.get_dummy_value()
    if kind == "bool":
        return builder.icmp_unsigned("!=", result, result.type(0))
    if kind == "struct":
        parts = cgutils.unpack_tuple(builder, result)
        value_type = context.get_value_type(numba_type)
        return parts[0] if isinstance(value_type, llvm.IntType) else _filled(builder, value_type, parts)
    return builder.bitcast(result, context.get_value_type(numba_type)) if kind == "pointer" else result


def _filled(builder: Any, struct_type: Any, parts: Sequence[Any]) -> Any:
    struct = llvm.Constant(struct_type, llvm.Undefined)
    for index, part in enumerate(parts):
        struct = builder.insert_value(struct, part, index)
    return struct


def _pointer(context: Any, builder: Any, numba_type: Any, value: Any) -> Any:
    if numba_type == types.none:
        return _POINTER(None)
    if isinstance(numba_type, (types.Number, types.Boolean)):
        data = context.get_value_as_data(builder, numba_type, value)
        memory = cgutils.alloca_once(builder, data.type)
        memory.align = memory_layout(numba_type).align
        builder.store(data, memory, align=memory.align)
        return builder.bitcast(memory, _POINTER)
    if isinstance(numba_type, types.Array):
        value = context.make_array(numba_type)(context, builder, value).data
    elif isinstance(numba_type, types.BaseTuple):
        layout = memory_layout(numba_type)
        memory = cgutils.alloca_once(builder, llvm.ArrayType(_BYTE, layout.size))
        memory.align = layout.align
        address = builder.bitcast(memory, _POINTER)
        _store(context, builder, numba_type, value, address)
        return address
    if value.type.addrspace:
        value = builder.addrspacecast(value, value.type.pointee.as_pointer())
    return builder.bitcast(value, _POINTER)


def _store(context: Any, builder: Any, numba_type: Any, value: Any, address: Any) -> None:
    layout = memory_layout(numba_type)
    if isinstance(numba_type, types.BaseTuple):
        elements = cgutils.unpack_tuple(builder, value)
        for element_type, element, offset in zip(numba_type.types, elements, layout.offsets, strict=True):
            place = builder.gep(address, [llvm.Constant(llvm.IntType(32), offset)])
            _store(context, builder, element_type, element, place)
    else:
        data = context.get_value_as_data(builder, numba_type, value)
        builder.store(data, builder.bitcast(address, data.type.as_pointer()), align=layout.align)


@lower_getattr_generic(DeviceCallableType)
def _getattr(context: Any, builder: Any, typ: Any, value: Any, name: str) -> Any:
    constant, numba_type = attribute(typ.numba_cuda_link_object, name)
    return context.get_constant_generic(builder, numba_type, constant)


@lower_setattr_generic(DeviceCallableType)
def _setattr(context: Any, builder: Any, sig: Any, args: Any, name: str) -> NoReturn:
    raise LoweringError(
        f"cannot assign to the attribute {name!r} in a kernel: attributes of device callables are constants\n"
        f"  object: {sig.args[0]}"
    )
