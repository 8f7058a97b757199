# SPDX-License-Identifier: BSD-2-Clause
"""Atomic operations and reductions in memory.

One worker runs a block, so those of shared memory could do without atomic instructions; but a generic address may be of
either, so all use them.
"""

from __future__ import annotations

from .float_forms import rounded
from .forms import Modifiers, form, type_of
from .function_builder import FunctionBuilder
from .memory_forms import SCOPE, is_shared, plain_space
from .parser import Instruction
from .pointers import checked_pointer
from .ptx_types import PTXType, ptx_type

_ORDER = r"(?:\.(?P<order>relaxed|acquire|release|acq_rel|sc))?"
_SPACE = r"(?:\.(?P<space>global|shared(?:::cta|::cluster)?))?"


_BITS, _INTEGERS = frozenset(("b16", "b32", "b64", "b128")), frozenset(("u32", "s32", "u64", "s64"))
_FLOATS = frozenset(("f32", "f64", "f16", "bf16", "f16x2", "bf16x2"))
_TYPES = dict.fromkeys(("and", "or", "xor", "exch", "cas"), _BITS) | dict.fromkeys(("min", "max"), _INTEGERS)
_TYPES |= {"add": _INTEGERS | _FLOATS, "inc": frozenset(("u32",)), "dec": frozenset(("u32",))}
_OPERATION, _TYPE = rf"\.(?P<operation>{'|'.join(_TYPES)})(?:\.noftz)?", r"\.(?P<type>\w+)"


@form("atom red", rf"{_ORDER}{SCOPE}{_SPACE}{_OPERATION}(?:\.L2::cache_hint)?{_TYPE}")
@form("atom red", rf"{_SPACE}{_OPERATION}{_ORDER}{SCOPE}{_TYPE}")
def atomic(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    operation, is_reduction = m["operation"] or "", m["name"] == "red"
    if m["type"] not in _TYPES[operation] or (is_reduction and operation in ("exch", "cas")):
        raise f.refuse()
    type = type_of(m)
    target, operands = ("_", i.operands) if is_reduction else (i.operands[0], i.operands[1:])
    is_fence = m["order"] not in (None, "relaxed")
    if is_fence:
        f.note_fence()
    pointer = checked_pointer(f, operands[0], plain_space(m), type.nbytes, writes=True, atomic=True)
    values = [f.bits(operand, type) for operand in operands[1:3]]
    old = _update(f, operation, type, pointer, values)
    if is_fence:
        f.note_fence()
    f.assign(target, ptx_type(f"b{type.bits}"), old)


_DIRECT = {"add": "add", "and": "and", "or": "or", "xor": "xor", "exch": "xchg"}


def _update(f: FunctionBuilder, operation: str, type: PTXType, pointer: str, values: list[str]) -> str:
    """Update memory; return the old bits."""
    llvm, is_float = type.integer, type.kind in ("f", "bf", "f16x2", "bf16x2")
    if operation == "cas":
        return _compare_and_swap(f, type, pointer, *values)[0]
    if operation in _DIRECT and not is_float and type.bits < 128:
        return f.temporary(
            f"atomicrmw {_DIRECT[operation]} ptr {pointer}, {llvm} {values[0]} seq_cst, align {type.nbytes}"
        )
    if operation in ("min", "max") and not is_float:
        name = operation if type.is_signed else f"u{operation}"
        return f.temporary(f"atomicrmw {name} ptr {pointer}, {llvm} {values[0]} seq_cst, align {type.nbytes}")
    return _update_in_loop(f, operation, type, pointer, values[0])


def _compare_and_swap(f: FunctionBuilder, type: PTXType, pointer: str, old: str, new: str) -> tuple[str, str]:
    """Return what memory held, and whether it was *old* and is now *new*."""
    llvm, order = type.integer, f"seq_cst seq_cst, align {type.nbytes}"
    pair = f.temporary(f"cmpxchg ptr {pointer}, {llvm} {old}, {llvm} {new} {order}")
    seen, success = (f.temporary(f"extractvalue {{ {llvm}, i1 }} {pair}, {k}") for k in range(2))
    return seen, success


def _update_in_loop(f: FunctionBuilder, operation: str, type: PTXType, pointer: str, value: str) -> str:
    llvm = type.integer
    loop, done = f.label(), f.label()
    old_slot = f.scratch(type.nbytes)
    first = f.temporary(f"load {llvm}, ptr {pointer}, align {type.nbytes}")
    f.emit(f"store {llvm} {first}, ptr {old_slot}")
    f.emit(f"br label %{loop}")
    f.start_block(loop)
    old = f.temporary(f"load {llvm}, ptr {old_slot}")
    if operation == "exch":
        new = value
    elif operation in ("inc", "dec"):
        new = f.call(f"{operation}_u32", old, value)
    elif operation == "add" and type.name in ("f32", "f64"):
        values = f.from_bits(old, type), f.from_bits(value, type)
        in_shared = rounded(f, "fadd", None, type, *values[::-1])
        in_global = f.call(f"add_in_global_{type.name}", *values)
        if type.name == "f32":
            in_shared = f.call("canonical_f32", in_shared)
        choice = is_shared(f, f.temporary(f"ptrtoint ptr {pointer} to i64"))
        new = f.to_bits(f.temporary(f"select i1 {choice}, {type.llvm} {in_shared}, {type.llvm} {in_global}"), type)
    elif type.kind in ("f16x2", "bf16x2"):
        halves = zip(f.unpack(old, 16), f.unpack(value, 16), strict=True)
        new = f.pack([f.call(f"add_{type.kind[:-2]}", *pair) for pair in halves], 16)
    else:
        new = f.call(f"{operation}_{type.name}", old, value)
    seen, success = _compare_and_swap(f, type, pointer, old, new)
    f.emit(f"store {llvm} {seen}, ptr {old_slot}")
    f.emit(f"br i1 {success}, label %{done}, label %{loop}")
    f.start_block(done)
    return old
