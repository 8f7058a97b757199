# SPDX-License-Identifier: BSD-2-Clause
"""A Python function that C++ calls: its types in Python and in C, its declaration, and a functor that calls it."""

from __future__ import annotations

import os
import re
import types as pytypes
from dataclasses import dataclass
from typing import Any

from llvmlite import ir as llvm
from numba.cuda import cgutils, types
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CType

from ..c_abi.c_types import HEADERS, CABIError, ctype, memory_layout, pointer_to
from ..c_abi.llvm_values import BYTE, POINTER, from_c, new_function, to_c
from ..c_abi.record_values import result_type, store
from ..c_abi.structs import is_struct, struct_ctype

STATE = pointer_to("const void")


@dataclass(frozen=True)
class CSignature:
    """The Numba types of the arguments that C++ passes by value, of the state, whose addresses it passes after them,
    and of the result. Raises `CABIError` if C++ can neither pass an argument nor return the result."""

    arguments: tuple[Any, ...]
    state: tuple[Any, ...]
    returns: Any

    def __post_init__(self) -> None:
        for number, argument in enumerate(self.arguments, 1):
            _by_value(argument, f"argument {number}")
            if argument == types.none:
                raise CABIError(f"argument {number} is None, which C++ cannot pass")
        _by_value(self.returns, "the result")

    @property
    def c_arguments(self) -> tuple[CType, ...]:
        return tuple(_by_value(argument, "an argument") for argument in self.arguments)

    @property
    def c_parameters(self) -> tuple[CType, ...]:
        return (*self.c_arguments, *(STATE for _ in self.state))

    @property
    def c_returns(self) -> CType:
        return _by_value(self.returns, "the result")


def _by_value(numba_type: Any, what: str) -> CType:
    if is_struct(numba_type):
        return struct_ctype(numba_type)
    if isinstance(numba_type, types.Array):
        raise CABIError(
            f"{what} is {numba_type}, which C++ cannot pass or return with its shape\n"
            "  what to do: pass the array as state=, or a pointer to its elements,"
            f" types.CPointer(types.{numba_type.dtype})"
        )
    if isinstance(numba_type, types.UnicodeType):
        raise CABIError(f"{what} is a text, which C++ does not get from Python\n  what to do: return a number")
    if isinstance(numba_type, types.Optional):
        raise CABIError(
            f"{what} is {numba_type}: C++ has no value for None\n  what to do: return a number in each case"
        )
    try:
        return ctype(numba_type)
    except CABIError as error:
        raise CABIError(f"{what}: {error}") from None


def functor_name(symbol: str) -> str:
    return f"{symbol}_functor"


def declaration(symbol: str, signature: CSignature) -> str:
    """Return the declaration of the C function *symbol* and its functor, which may be repeated in a unit."""
    structs: dict[Any, str] = {}
    names = [_cxx(symbol, structs, *each) for each in zip(signature.arguments, signature.c_arguments, strict=True)]
    returns = _cxx(symbol, structs, signature.returns, signature.c_returns)
    parameters = ", ".join([*names, *("const void*" for _ in signature.state)])
    headers = sorted({HEADERS[name] for name in (*names, returns) if name in HEADERS})
    lines = [
        f"#ifndef AUTOLINK_{symbol}",
        f"#define AUTOLINK_{symbol}",
        *(f"#include <{header}>" for header in headers),
        *structs.values(),
        f'extern "C" __device__ {returns} {symbol}({parameters});',
        *_functor(symbol, names, returns, signature),
        "#endif",
    ]
    return "\n".join(("", *lines, ""))


def _cxx(symbol: str, structs: dict[Any, str], numba_type: Any, c_type: CType) -> str:
    """Return the C++ type of a value; a struct gets a name, and its definition is added to *structs*."""
    if not is_struct(numba_type):
        return c_type.cxx
    if c_type not in structs:
        structs[c_type] = f"struct {symbol}_struct{len(structs)} {c_type.cxx.removeprefix('struct ')};"
    return structs[c_type].split()[1]


def _functor(symbol: str, names: list[str], returns: str, signature: CSignature) -> list[str]:
    """Return the lines of the functor. It takes structs as any class of their size, and returns the class that it was
    given for a struct of the same type."""
    name = functor_name(symbol)
    states = [f"nca_state{number}" for number in range(len(signature.state))]
    given, classes, passed = [], [], []
    result, result_of = returns, "{}"
    for number, (argument, cxx) in enumerate(zip(signature.arguments, names, strict=True)):
        if not is_struct(argument):
            given.append(f"{cxx} nca_a{number}")
            passed.append(f"nca_a{number}")
            continue
        classes.append(f"class nca_T{number}")
        given.append(f"const nca_T{number}& nca_a{number}")
        passed.append(f"__builtin_bit_cast({cxx}, nca_a{number})")
        if cxx == returns and result == returns:
            result, result_of = f"nca_T{number}", f"__builtin_bit_cast(nca_T{number}, {{}})"
    call = result_of.format(f"{symbol}({', '.join([*passed, *states])})")
    members = [f"    const void* {state};" for state in states]
    if states:
        parameters = ", ".join(f"const void* {state}" for state in states)
        values = ", ".join(f"{state}({state})" for state in states)
        members.append(f"    __device__ explicit {name}({parameters}) : {values} {{}}")
    else:  # C++ that passes state on does so for every function
        members += [f"    {name}() = default;", f"    __device__ explicit {name}(const void*) {{}}"]
    template = [f"    template <{', '.join(classes)}>"] if classes else []
    operator = f"    __device__ {result} operator()({', '.join(given)}) const {{ return {call}; }}"
    return [f"struct {name} {{", *members, *template, operator, "};"]


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
        builder.ret(
            builder.bitcast(returned, function.ftype.return_type)
            if isinstance(returned.type, llvm.PointerType)
            else returned
        )
    return module


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
