# SPDX-License-Identifier: BSD-2-Clause
"""C functions that are called with nothing but plain numbers and addresses.

Kernels of numba-cuda-mlir declare functions without what LLVM needs to pass structs as C++ does, or numbers shorter
than 32 bits. For a C function that takes or returns one, a small function in LLVM IR takes structs by address and short
numbers as 32 bits. Link-time optimisation leaves nothing of it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from llvmlite import ir as llvm
from numba.cuda.cudadrv import nvvm
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CPrototype, CType
from numba.cuda.cudadrv.external_code.platform.target import Target
from numba.cuda.descriptor import cuda_target

from ...c_abi.llvm_values import POINTER, llvm_type, new_function
from ...device_functions.canonical_code import NAMELESS, NamedModules

_WORD = llvm.IntType(32)


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
    returned = llvm.VoidType() if results else _taken(module, prototype.returns)
    function = llvm.Function(module, llvm.FunctionType(returned, [*results, *taken]), NAMELESS)
    function.attributes.add("convergent")
    _write_body(function, called, prototype)
    nvvm.add_ir_version(module)
    return NamedModules.of(f"{callee}_by_address", [str(module)], target)


def _taken(module: Any, c_type: CType) -> Any:
    if c_type.kind in ("struct", "pointer"):
        return POINTER
    return _WORD if is_short(c_type) else llvm_type(module, c_type)


def _write_body(function: Any, called: Any, prototype: CPrototype) -> None:
    builder = llvm.IRBuilder(function.append_basic_block())
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
