# SPDX-License-Identifier: BSD-2-Clause
"""The LLVM types of values as C sees them, the values in these types, and C functions as NVRTC and nvcc compile them.

A struct has the type that NVRTC and nvcc give it, without which nothing is inlined: its members, with bytes between
them only where LLVM would place a member elsewhere than C (the alignment of ``float2`` is 8 in C, 4 in LLVM), and bytes
up to its size at the end.

These rules make a function the same for Numba and NVRTC, in PTX and under link-time optimisation (the tests compare):

- ``bool`` is 8 bits wide: a function with an ``i1`` parameter is not inlined.
- The caller extends small integers to 32 bits, which the callee relies on.
- Structs by value are identified types, with their C++ alignment as an ``align`` annotation. A literal struct has the
  alignment of its fields, so the caller would pass its bytes in other registers than those that the callee reads.
- Pointers are ``i8*``, except in functions with structs by value: there they have their C++ types, since otherwise
  nvJitLink before 13.1 takes the types of the two functions for different ones and inlines nothing.
- The functions are ``convergent``, since they may contain barriers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from llvmlite import ir as llvm
from numba.cuda import cgutils, types
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CType

from .structs import CArray, CStruct

BYTE = llvm.IntType(8)
POINTER = BYTE.as_pointer()
_POINTEES = {
    "bool": BYTE,
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


def llvm_type(module: Any, c_type: CType, typed_pointers: bool = False) -> Any:
    """Return the type of a value in LLVM; structs have names in *module*."""
    if c_type.kind == "pointer" and typed_pointers:
        pointee = c_type.cxx.removesuffix("*").removeprefix("const ").removeprefix("unsigned ").removeprefix("signed ")
        if pointee in _STRUCTS:
            return llvm_type(module, CType(pointee, "struct", 0, 0)).as_pointer()
        return _POINTEES.get(pointee, BYTE).as_pointer()
    if isinstance(c_type, CArray):
        return llvm.ArrayType(llvm_type(module, c_type.element, typed_pointers), c_type.count)
    if isinstance(c_type, CStruct):
        parts = [BYTE if part is None else llvm_type(module, part, True) for part in _parts(c_type)]
        return _name(module, f"struct.{hashlib.sha256(str(parts).encode()).hexdigest()[:16]}", parts)
    if c_type.kind == "struct":
        return _name(module, f"struct.{c_type.cxx}", _STRUCTS[c_type.cxx])
    if c_type.kind == "float":
        return llvm.FloatType() if c_type.size == 4 else llvm.DoubleType()
    if c_type.kind == "void":
        return llvm.VoidType()
    return POINTER if c_type.kind == "pointer" else llvm.IntType(8 * c_type.size)


def _name(module: Any, name: str, parts: Sequence[Any]) -> Any:
    # In a context of the module's own: all types of a context are printed with every module in it.
    if module.context is llvm.context.global_context:
        module.context = llvm.Context()
    struct = module.context.get_identified_type(name)
    if struct.is_opaque:
        struct.set_body(*parts)
    return struct


def _parts(struct: CStruct) -> Iterator[CType | None]:
    """Yield the members of a struct in LLVM, and None for each byte of padding that is one."""
    end = 0
    for member, offset in zip(struct.members, struct.offsets, strict=True):
        if end + -end % _alignment(member) != offset:
            yield from [None] * (offset - end)
        yield member
        end = offset + member.size
    yield from [None] * (struct.size - end)


def _alignment(c_type: CType) -> int:
    if isinstance(c_type, CArray):
        return _alignment(c_type.element)
    if isinstance(c_type, CStruct):
        return max(map(_alignment, c_type.members))
    return c_type.size // len(_STRUCTS[c_type.cxx]) if c_type.kind == "struct" else c_type.align


def _numbered_members(c_type: Any) -> Iterator[tuple[int, CType]]:
    """Yield the members of a struct, or the elements of an array, with their places in LLVM."""
    parts = _parts(c_type) if isinstance(c_type, CStruct) else [c_type.element] * c_type.count
    return ((number, part) for number, part in enumerate(parts) if part is not None)


def to_c(builder: Any, c_type: CType, numba_type: Any, value: Any) -> Any:
    """Return the *value* of a number, pointer, record or tuple as C takes it."""
    if isinstance(c_type, (CStruct, CArray)):
        found = llvm.Constant(llvm_type(builder.module, c_type), llvm.Undefined)
        members = list(_numbered_members(c_type))
        if isinstance(numba_type, types.Record):
            values = _load(builder, c_type, value)
        else:
            elements = zip(members, numba_type.types, cgutils.unpack_tuple(builder, value), strict=True)
            values = (to_c(builder, member, *element) for (_, member), *element in elements)
        for (number, _), part in zip(members, values, strict=True):
            found = builder.insert_value(found, part, number)
        return found
    if c_type.kind == "bool":
        return builder.zext(value, BYTE)
    if c_type.kind == "pointer":
        return builder.bitcast(value, llvm_type(builder.module, c_type, True))
    if c_type.kind == "struct":
        parts = [value] if isinstance(value.type, llvm.IntType) else cgutils.unpack_tuple(builder, value)
        return _fill(builder, llvm_type(builder.module, c_type), parts)
    return value


def _load(builder: Any, struct: Any, record: Any) -> Iterator[Any]:
    address = builder.bitcast(record, POINTER)
    for member, offset in zip(struct.members, struct.offsets, strict=True):
        place = builder.gep(address, [llvm.Constant(llvm.IntType(32), offset)])
        pointer = builder.bitcast(place, llvm_type(builder.module, member, True).as_pointer())
        yield builder.load(pointer, align=member.align)


def from_c(context: Any, builder: Any, c_type: CType, numba_type: Any, value: Any) -> Any:
    """Return a *value* that C returned, or a part of it, as *numba_type*."""
    if isinstance(c_type, (CStruct, CArray)):
        parts = [
            from_c(context, builder, member, part, builder.extract_value(value, number))
            for (number, member), part in zip(_numbered_members(c_type), numba_type.types, strict=True)
        ]
        return context.make_tuple(builder, numba_type, parts)
    if c_type.kind == "void":
        return context.get_dummy_value()
    if c_type.kind == "bool":
        return builder.icmp_unsigned("!=", value, value.type(0))
    if c_type.kind == "struct":
        parts = cgutils.unpack_tuple(builder, value)
        value_type = context.get_value_type(numba_type)
        return parts[0] if isinstance(value_type, llvm.IntType) else _fill(builder, value_type, parts)
    return builder.bitcast(value, context.get_value_type(numba_type)) if c_type.kind == "pointer" else value


def _fill(builder: Any, struct_type: Any, parts: Sequence[Any]) -> Any:
    struct = llvm.Constant(struct_type, llvm.Undefined)
    for index, part in enumerate(parts):
        struct = builder.insert_value(struct, part, index)
    return struct


def function_type(module: Any, returns: CType, args: Sequence[CType]) -> Any:
    """Return the LLVM type of a function in *module* with a result and parameters of these C types."""
    typed_pointers = any(c_type.kind == "struct" for c_type in (returns, *args))
    returned, *taken = (llvm_type(module, c_type, typed_pointers) for c_type in (returns, *args))
    return llvm.FunctionType(returned, taken)


def new_function(module: Any, symbol: str, returns: CType, args: Sequence[CType]) -> Any:
    """Return a new function of *module*, declared with a result and parameters of these C types."""
    function = llvm.Function(module, function_type(module, returns, args), symbol)
    function.attributes.add("convergent")
    values = (function.return_value, *function.args)
    for number, (value, c_type) in enumerate(zip(values, (returns, *args), strict=True)):
        _annotate(module, function, number, value, c_type)
    return function


def _annotate(module: Any, function: Any, number: int, value: Any, c_type: CType) -> None:
    """Annotate a parameter of *function*: *number* 0 is the return value, 1 the first parameter."""
    if c_type.kind == "struct":
        align = llvm.Constant(llvm.IntType(32), number << 16 | c_type.align)
        module.add_named_metadata("nvvm.annotations", [function, "align", align])
    elif c_type.kind in ("int", "uint", "bool") and c_type.size < 4:
        value.add_attribute("signext" if c_type.kind == "int" else "zeroext")
