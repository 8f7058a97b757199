# SPDX-License-Identifier: BSD-2-Clause
"""MLIR for calls of device callables, and for their attributes.

Kernels of numba-cuda-mlir declare functions without what LLVM needs to pass structs as C++ does, or numbers shorter
than 32 bits. For a C function that takes or returns one, a small function in LLVM IR takes structs by address and short
numbers as 32 bits. Link-time optimisation leaves nothing of it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from llvmlite import ir as llvm_ir
from numba.cuda import types as core_types
from numba.cuda.cudadrv import nvvm
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CPrototype, CType
from numba.cuda.cudadrv.external_code.platform.target import Target
from numba.cuda.descriptor import cuda_target
from numba_cuda_mlir._mlir import ir
from numba_cuda_mlir._mlir.dialects import arith, func, llvm
from numba_cuda_mlir._mlir.extras import types as T
from numba_cuda_mlir.lowering_utilities import get_or_insert_function
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core.errors import LoweringError

from ...c_abi.c_types import CABIError, memory_layout
from ...c_abi.conversions import ArrayView, State
from ...c_abi.extern import Passed, Prototype
from ...c_abi.llvm_values import POINTER, llvm_type, new_function
from ...c_abi.record_values import find_alignment, result_type
from ...compilation.context import compilation
from ...device_callable.constants import as_constant
from ...function_code.canonical_ir import NAMELESS, NamedModules
from ...function_code.function_code import FunctionCode
from .called_objects import Body
from .memory_values import allocate, data_pointer, load, state, store, view
from .type_translation import from_core, to_core


def lower_call(builder: Any, external: FunctionCode, target: Any, call: Any, args: Sequence[Any]) -> None:
    """Lower the *call* of a device callable to the variable *target*; *external* gets what must be linked."""
    callee = builder.get_numba_type(call.func.name)
    signature = builder.fndesc.calltypes[call]
    argtypes = tuple(map(to_core, signature.args))
    meaning = callee.calls.meaning(None, argtypes)
    bound = signature.pysig.bind(*args, **dict(call.kws))
    values = [bound.arguments.get(name, parameter.default) for name, parameter in signature.pysig.parameters.items()]
    if isinstance(meaning, Body):
        variables = [_variable(builder, call, *each) for each in zip(values, signature.args, strict=True)]
        builder.store_var(target, builder.build_user_defined_function_call(target, meaning.dispatcher, variables))
        return
    _call_c_function(builder, external, target, meaning, list(zip(values, signature.args, strict=True)), call.loc)


def _variable(builder: Any, call: Any, value: Any, numba_type: Any) -> Any:
    """Return the IR variable of an argument; a new one for a default."""
    if hasattr(value, "name") and value.name in builder.fndesc.typemap:
        return value
    variable = type(call.func)(call.func.scope, f"$default_{id(call)}_{len(builder.varmap)}", call.loc)
    builder.fndesc.typemap[variable.name] = numba_type
    builder.varmap[variable.name] = as_constant(value)
    return variable


def _call_c_function(
    builder: Any, external: FunctionCode, target: Any, c_function: Prototype, arguments: Any, loc: Any
) -> None:
    if c_function.cooperative:
        builder.metadata["use_cooperative"] = True
    prototype = c_function.c_prototype
    if (in_progress := compilation()) is not None:
        in_progress.prototypes.append((c_function.symbol, c_function.with_read_only(in_progress.read_only)))
    operands = [_operand(builder, arg, arguments[arg.index], loc) for arg in c_function.args]
    returns, symbol = c_function.return_ctype, c_function.symbol
    result = None
    if not is_plain(prototype):
        assert external.target is not None
        glue = by_address(c_function.symbol, prototype, external.target)
        for code in glue.compile_for(external.target, glue.symbol):
            external.add_glue(code)
        symbol = glue.symbol
        if is_struct(returns):
            result = allocate(builder, returns.size, returns.align)
            operands.insert(0, result)
    results = [] if returns.kind == "void" or result is not None else [_mlir_type(returns)]
    function_type = ir.FunctionType.get(inputs=[each.type for each in operands], results=results)
    callee = get_or_insert_function(symbol, function_type, builder.mlir_gpu_module)
    if [*map(str, callee.function_type.value.inputs)] != [str(each.type) for each in operands]:
        raise LoweringError(
            f"the symbol {c_function.symbol!r} is already declared with another prototype\n"
            f"  this call: {c_function}\n  what to do: put the types that differ into the symbol",
            loc=loc,
        )
    returned = func.call(result=results, callee=callee.name.value, operands_=operands)
    core = result_type(c_function.returns)
    if returns.kind == "void":
        value: Any = ir.NoneType.get()
    elif result is not None:
        value = load(builder, core, returns, result)
    else:
        value = _from_c(builder, returns, from_core(core), builder._call_results_tuple(returned)[0])
    builder.store_var(target, value)


def _mlir_type(c_type: CType) -> Any:
    if c_type.kind == "pointer":
        return llvm.PointerType.get()
    if c_type.kind == "float":
        return T.f32() if c_type.size == 4 else T.f64()
    return ir.IntegerType.get_signless(max(32, 8 * c_type.size))


def _from_c(builder: Any, c_type: CType, numba_type: Any, value: Any) -> Any:
    if c_type.kind == "bool":
        return arith.cmpi(arith.CmpIPredicate.ne, value, arith.constant(value.type, 0))
    if is_short(c_type):
        return arith.trunci(out=ir.IntegerType.get_signless(8 * c_type.size), in_=value)
    return value


def _operand(builder: Any, arg: Passed, argument: tuple[Any, Any], loc: Any) -> Any:
    """Return what the function is given for an *argument*: its variable, or the value of a default; and its type."""
    given, numba_type = argument
    if arg.numba_type == to_core(types.none):
        return llvm.mlir_zero(llvm.PointerType.get())
    if isinstance(arg.asked_for, State):
        return _state(builder, arg.numba_type, lambda: _value(builder, given), loc)
    goal = from_core(arg.numba_type)
    value = _value(builder, given)
    if not isinstance(goal, (types.Array, types.Record, types.CPointer, types.RawPointer)):
        value = builder.lower_cast(numba_type, goal, value)  # also of an equal type: a size is an index in MLIR
    if isinstance(arg.asked_for, ArrayView):
        return view(builder, arg.asked_for, arg.numba_type, value)
    c_type = arg.c_type
    if c_type.kind == "pointer":
        return _address(builder, arg.numba_type, goal, value)
    if is_struct(c_type):
        memory = allocate(builder, c_type.size, c_type.align)
        store(builder, arg.numba_type, value, memory)
        return memory
    if is_short(c_type):
        extend = arith.extsi if c_type.kind == "int" else arith.extui
        return extend(out=T.i32(), in_=value)
    return value


def _value(builder: Any, given: Any) -> Any:
    if hasattr(given, "name"):
        return builder.load_var(given)
    return builder.lower_literal_if_needed(as_constant(given))


def _state(builder: Any, core: Any, value: Any, loc: Any) -> Any:
    try:
        return state(builder, core, value)
    except CABIError as error:
        raise LoweringError(str(error), loc=loc) from None


def _address(builder: Any, core: Any, numba_type: Any, value: Any) -> Any:
    """Return the address that C gets of an array, a pointer, a record, a tuple, or a number in memory."""
    if isinstance(numba_type, types.Array):
        return data_pointer(value)
    if isinstance(numba_type, (types.CPointer, types.RawPointer, types.Record)):
        return value
    is_tuple = isinstance(core, core_types.BaseTuple)
    layout = memory_layout(core, as_in_cxx=False)
    memory = allocate(builder, layout.size, find_alignment(core) if is_tuple else layout.align)
    store(builder, core, value, memory)
    return memory


def llvm_prototype(prototype: CPrototype) -> str:
    """Return a prototype as LLVM writes it, for messages and for checks of what is linked."""
    parameters = ", ".join(map(_llvm_name, prototype.parameters))
    return f"{_llvm_name(prototype.returns)} ({parameters})"


def _llvm_name(c_type: CType) -> str:
    if c_type.kind in ("void", "float"):
        return "void" if c_type.kind == "void" else {4: "float", 8: "double"}[c_type.size]
    if c_type.kind in ("pointer", "struct"):
        return "i8*" if c_type.kind == "pointer" else f'%"struct.{c_type.cxx}"'
    return f"i{8 * c_type.size}"


_WORD = llvm_ir.IntType(32)


def is_struct(c_type: CType) -> bool:
    return c_type.kind == "struct"


def is_short(c_type: CType) -> bool:
    return c_type.kind in ("int", "uint", "bool") and c_type.size < 4


def is_plain(prototype: CPrototype) -> bool:
    return not any(is_struct(each) or is_short(each) for each in (prototype.returns, *prototype.parameters))


@functools.cache
def by_address(callee: str, prototype: CPrototype, target: Target) -> NamedModules:
    """Return a function that calls *callee*. Its first parameter is the address of the result, if that is a struct."""
    module = cuda_target.target_context.create_module("by_address")
    called = new_function(module, callee, prototype.returns, prototype.parameters)
    results = [POINTER] if is_struct(prototype.returns) else []
    taken = [_taken(module, each) for each in prototype.parameters]
    returned = llvm_ir.VoidType() if results else _taken(module, prototype.returns)
    function = llvm_ir.Function(module, llvm_ir.FunctionType(returned, [*results, *taken]), NAMELESS)
    function.attributes.add("convergent")
    _write_body(function, called, prototype)
    nvvm.add_ir_version(module)
    return NamedModules.of(f"{callee}_by_address", [str(module)], target)


def _taken(module: Any, c_type: CType) -> Any:
    if c_type.kind in ("struct", "pointer"):
        return POINTER
    return _WORD if is_short(c_type) else llvm_type(module, c_type)


def _write_body(function: Any, called: Any, prototype: CPrototype) -> None:
    builder = llvm_ir.IRBuilder(function.append_basic_block())
    given: Sequence[Any] = function.args[-len(called.args) :] if called.args else ()
    arguments = zip(prototype.parameters, given, called.args, strict=True)
    returned = builder.call(called, [_pass(builder, c_type, value, goal.type) for c_type, value, goal in arguments])
    returns = prototype.returns
    if is_struct(returns):
        builder.store(returned, builder.bitcast(function.args[0], returned.type.as_pointer()), align=returns.align)
    if is_struct(returns) or returns.kind == "void":
        builder.ret_void()
    elif is_short(returns):
        builder.ret(builder.sext(returned, _WORD) if returns.kind == "int" else builder.zext(returned, _WORD))
    else:
        builder.ret(builder.bitcast(returned, POINTER) if returns.kind == "pointer" else returned)


def _pass(builder: Any, c_type: CType, value: Any, goal: Any) -> Any:
    if is_struct(c_type):
        return builder.load(builder.bitcast(value, goal.as_pointer()), align=c_type.align)
    if is_short(c_type):
        return builder.trunc(value, goal)
    return builder.bitcast(value, goal) if c_type.kind == "pointer" else value
