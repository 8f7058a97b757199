# SPDX-License-Identifier: BSD-2-Clause
"""Matrices of a warp: loads from shared memory, and products."""

from __future__ import annotations

from .forms import Modifiers, form
from .function_builder import FunctionBuilder
from .matrices import ADDEND, FIRST, KINDS, RECORD_BYTES, RESULT, SECOND
from .parser import Instruction, split_operands
from .pointers import checked_pointer
from .ptx_types import ptx_type
from .synchronisation_forms import warp_operation

_SHAPES: dict[str, tuple[str, ...]] = dict.fromkeys(("f16", "bf16"), ("m16n8k8", "m16n8k16"))
_SHAPES |= dict.fromkeys(("s8", "u8"), ("m16n8k16", "m16n8k32")) | {"tf32": ("m16n8k4", "m16n8k8")}
_SHAPES["f64"] = ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")


@form("ldmatrix", r"\.sync\.aligned\.m8n8\.x(?P<count>[124])(?P<transposed>\.trans)?(?:\.shared(?:::cta)?)?\.b16")
def load_matrix(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    space = "shared" if ".shared" in i.opcode else "generic"
    pointer = checked_pointer(f, i.operands[1], space, 16, writes=False, atomic=False)
    record = f.scratch(24)
    f.emit(f"store ptr {pointer}, ptr {record}")
    what = int(m["count"]) | 8 * bool(m["transposed"])
    warp_operation(f, "gather_matrix", 0, "-1", f.temporary(f"ptrtoint ptr {record} to i64"), what)
    for k, target in enumerate(split_operands(i.operands[0].strip("{}"))):
        f.assign(target, "b32", f.load(record, 8 + 4 * k, "i32"))


@form(
    "mma",
    r"\.sync\.aligned\.(?P<shape>m\d+n\d+k\d+)\.row\.col\.(?P<d>f16|f32|f64|s32)\.(?P<a>\w+)\.(?P<b>\w+)\.(?P<c>f16|f32|f64|s32)",
)
def multiply(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    a, b, shape, result = (m[key] for key in ("a", "b", "shape", "d"))
    results = {"f16": ("f16", "f32"), "f64": ("f64",), "s8": ("s32",), "u8": ("s32",)}.get(a, ("f32",))
    same = a == b or {a, b} == {"s8", "u8"}
    if shape not in _SHAPES.get(a, ()) or not same or result not in results or m["c"] != result:
        raise f.refuse()
    record = f.scratch(RECORD_BYTES)
    type = ptx_type("b64" if result == "f64" else "b32")
    for offset, operand in zip((FIRST, SECOND, ADDEND), i.operands[1:], strict=True):
        for k, register in enumerate(split_operands(operand.strip("{}"))):
            f.store(record, offset + k * type.nbytes, f.bits(register, type), type.integer)
    m_, n_, k_ = (int(part) for part in shape[1:].replace("n", "k").split("k"))
    kinds = KINDS.index(a) << 24 | KINDS.index(b) << 32 | KINDS.index(result) << 40
    address = f.temporary(f"ptrtoint ptr {record} to i64")
    warp_operation(f, "multiply_matrices", 0, "-1", address, m_ | n_ << 8 | k_ << 16 | kinds)
    for k, target in enumerate(split_operands(i.operands[0].strip("{}"))):
        f.assign(target, type, f.load(record, RESULT + k * type.nbytes, type.integer))
