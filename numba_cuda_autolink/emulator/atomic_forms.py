# SPDX-License-Identifier: BSD-2-Clause
"""Atomic operations and reductions in memory.

One worker runs a block, so those of shared memory could do without atomic instructions; but a generic address may be of
either, so all use them.
"""

from __future__ import annotations

from .float_forms import rounded
from .forms import Modifiers, form
from .function_builder import FunctionBuilder
from .memory_forms import plain_space
from .parser import Instruction, split_operands
from .pointers import checked_pointer
from .ptx_types import TYPES, PTXType, ptx_type

_BITS, _INTEGERS = frozenset(("b16", "b32", "b64", "b128")), frozenset(("u32", "s32", "u64", "s64"))
_FLOATS = frozenset(("f32", "f64", "f16", "bf16", "f16x2", "bf16x2"))
_TYPES = dict.fromkeys(("and", "or", "xor", "exch", "cas"), _BITS) | dict.fromkeys(("min", "max"), _INTEGERS)
_TYPES |= {"add": _INTEGERS | _FLOATS, "inc": frozenset(("u32",)), "dec": frozenset(("u32",))}
_OTHER_NAMES = {"exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap"}
_MODIFIERS = (
    r"(?P<order>relaxed|acquire|release|acq_rel|sc)|cta|cluster|gpu|sys|(?P<space>global|shared(?:::cta|::cluster)?)"
    rf"|(?P<operation>{'|'.join(_TYPES)})|noftz|L2::cache_hint|v2|v4|v8|(?P<type>{'|'.join(TYPES)})"
)


@form("atom red", rf"(?:\.(?:{_MODIFIERS}))*")
def atomic(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """Compilers write the modifiers in several orders. Of a vector, each element is updated by itself."""
    operation, is_reduction = m["operation"], m["name"] == "red"
    if m["type"] not in _TYPES.get(operation, ()) or (is_reduction and operation in ("exch", "cas")):
        raise f.refuse()
    type = ptx_type(m["type"])
    target, *operands = ("_", *i.operands) if is_reduction else i.operands
    is_fence = m["order"] not in ("", "relaxed")
    if is_fence:
        f.note_fence()
    values = [[f.bits(each, type) for each in split_operands(operand.strip("{}"))] for operand in operands[1:3]]
    nbytes = type.nbytes * len(values[0])
    pointer = checked_pointer(f, operands[0], plain_space(m), nbytes, writes=True, atomic=True)
    old = []
    for k, numbers in enumerate(zip(*values, strict=False)):
        element = f.temporary(f"getelementptr i8, ptr {pointer}, i64 {k * type.nbytes}")
        old.append(_update(f, operation, type, element, *numbers))
    if is_fence:
        f.note_fence()
    for register, bits in zip(split_operands(target.strip("{}")), old, strict=False):
        f.assign(register, ptx_type(f"b{type.bits}"), bits)


def _update(f: FunctionBuilder, operation: str, type: PTXType, pointer: str, *values: str) -> str:
    """Do the *operation* in memory; return the old bits."""
    if operation == "cas":
        return _compare_and_swap(f, type, pointer, *values)[0]
    if type.name in _FLOATS:
        return _add_in_loop(f, type, pointer, values[0])
    is_unsigned = operation in ("min", "max") and not type.is_signed
    name = f"u{operation}" if is_unsigned else _OTHER_NAMES.get(operation, operation)
    return f.temporary(f"atomicrmw {name} ptr {pointer}, {type.integer} {values[0]} seq_cst, align {type.nbytes}")


def _add_in_loop(f: FunctionBuilder, type: PTXType, pointer: str, value: str) -> str:
    """Add a floating number to memory; return the old bits."""
    llvm, loop, done = type.integer, f.label(), f.label()
    old_slot = f.scratch(type.nbytes)
    f.emit(f"store {llvm} {f.temporary(f'load {llvm}, ptr {pointer}, align {type.nbytes}')}, ptr {old_slot}")
    f.emit(f"br label %{loop}")
    f.start_block(loop)
    old = f.temporary(f"load {llvm}, ptr {old_slot}")
    seen, success = _compare_and_swap(f, type, pointer, old, _add(f, type, pointer, old, value))
    f.emit(f"store {llvm} {seen}, ptr {old_slot}")
    f.emit(f"br i1 {success}, label %{done}, label %{loop}")
    f.start_block(done)
    return old


def _compare_and_swap(f: FunctionBuilder, type: PTXType, pointer: str, old: str, new: str) -> list[str]:
    """Return what memory held, and whether it was *old* and is now *new*."""
    llvm, order = type.integer, f"seq_cst seq_cst, align {type.nbytes}"
    pair = f.temporary(f"cmpxchg ptr {pointer}, {llvm} {old}, {llvm} {new} {order}")
    return [f.temporary(f"extractvalue {{ {llvm}, i1 }} {pair}, {k}") for k in range(2)]


def _add(f: FunctionBuilder, type: PTXType, pointer: str, old: str, value: str) -> str:
    """Return the sum of floating numbers as bits; of single and double precision, as memory at *pointer* adds them."""
    if type.bits == 16:
        return f.call(f"add_{type.name}", old, value)
    if type.kind.endswith("x2"):
        halves = zip(f.split(old, 16, 2), f.split(value, 16, 2), strict=True)
        return f.join([f.call(f"add_{type.kind[:-2]}", *pair) for pair in halves], 16)
    values = tuple(f.bitcast(bits, type.integer, type.llvm) for bits in (old, value))
    in_shared = rounded(f, "fadd", "", type, *values[::-1])
    if type.name == "f32":
        in_shared = f.call("canonical_f32", in_shared)
    in_global = f.call(f"add_in_global_{type.name}", *values)
    choice = f.call("is_in_shared", f.thread, f.temporary(f"ptrtoint ptr {pointer} to i64"))
    result = f.temporary(f"select i1 {choice}, {type.llvm} {in_shared}, {type.llvm} {in_global}")
    return f.bitcast(result, type.llvm, type.integer)
