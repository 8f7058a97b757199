# SPDX-License-Identifier: BSD-2-Clause
"""A C function around a compiled Python function, in LLVM IR."""

from __future__ import annotations

import os
import re
import types as pytypes
from typing import Any

from llvmlite import ir as llvm
from numba.cuda import cgutils, types

from ..c_abi.c_types import memory_layout
from ..c_abi.llvm_values import BYTE, POINTER, from_c, new_function, to_c
from ..c_abi.record_values import result_type, store
from .c_signature import CSignature

# A function that raises returns a code other than those for success and for None.
_RAISES = re.compile(r"^\s*ret i32 (?!0\b|-2\b)-?\d", re.MULTILINE)


def can_raise(texts: list[str]) -> bool:
    return any(_RAISES.search(text) for text in texts)


def wrap(symbol: str, compiled: Any, signature: CSignature, raising: pytypes.CodeType | None) -> Any:
    """Return an LLVM module with the C function *symbol*, which calls a *compiled* Python function.

    An exception of Python cannot pass through C++. If the function can raise one, *raising* is its code: the kernel
    then ends as for a failed assertion in C++, with a message that names it.
    """
    context, descriptor = compiled.target_context, compiled.fndesc
    module = context.codegen().create_library(symbol).create_ir_module(symbol)
    function = new_function(module, symbol, signature.c_returns, signature.c_parameters)
    builder = llvm.IRBuilder(function.append_basic_block("entry"))
    passed, state = function.args[: len(signature.arguments)], function.args[len(signature.arguments) :]
    values = [
        _argument(context, builder, c_type, numba_type, value)
        for c_type, numba_type, value in zip(signature.c_arguments, signature.arguments, passed, strict=True)
    ]
    for numba_type, address in zip(signature.state, state, strict=True):
        pointer = builder.bitcast(address, context.get_value_type(numba_type).as_pointer())
        values.append(builder.load(pointer))
    called = descriptor.declare_function(module)
    argtypes = (*signature.arguments, *signature.state)
    status, result = descriptor.call_conv.call_function(builder, called, signature.returns, argtypes, values)
    if raising is not None:
        with builder.if_then(status.is_error, likely=False):
            _fail(context, builder, raising)
    if signature.returns == types.none:
        builder.ret_void()
    else:
        returned = to_c(builder, signature.c_returns, signature.returns, result)
        builder.ret(builder.bitcast(returned, function.ftype.return_type) if _is_pointer(returned) else returned)
    return module


def _is_pointer(value: Any) -> bool:
    return isinstance(value.type, llvm.PointerType)


def _argument(context: Any, builder: Any, c_type: Any, numba_type: Any, value: Any) -> Any:
    """Return what C++ passes as Python takes it: of a record, the address."""
    found = from_c(context, builder, c_type, result_type(numba_type), value)
    if not isinstance(numba_type, types.Record):
        return found
    memory = cgutils.alloca_once(builder, context.get_value_type(numba_type).pointee)
    memory.align = memory_layout(numba_type).align
    store(context, builder, numba_type, found, builder.bitcast(memory, POINTER))
    return memory


def _fail(context: Any, builder: Any, code: pytypes.CodeType) -> None:
    """End the kernel as ``assert`` in C++ does, which prints a message and makes each later CUDA call fail."""
    words, size = llvm.IntType(32), llvm.IntType(64)
    kind = llvm.FunctionType(llvm.VoidType(), (POINTER, POINTER, words, POINTER, size))
    fail = cgutils.get_or_insert_function(builder.module, kind, "__assertfail")
    fail.attributes.add("noreturn")
    texts = "a Python exception, which cannot pass through C++", os.path.basename(code.co_filename), code.co_name
    message, place, function = (context.insert_string_const_addrspace(builder, text) for text in texts)
    builder.call(fail, [message, place, words(code.co_firstlineno), function, size(BYTE.width // 8)])
    builder.unreachable()
