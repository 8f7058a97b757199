# SPDX-License-Identifier: BSD-2-Clause
"""Matrices that a warp holds together: loads of 8 x 8 tiles from shared memory, and products.

The operands of a lane are in memory of its own (A of its record). For a load: the address of a row, and then the
registers that come of it. For a product: the registers of the result, of A, of B and of C, from fixed offsets on.
"""
# ruff: noqa: F821
# mypy: disable-error-code="index, name-defined"

from __future__ import annotations

from .access import checked_pointer
from .floats import NEAREST, widen_bf16, widen_f16
from .forms import Modifiers, form
from .function_builder import FunctionBuilder
from .native import f32, f64, i32, native, u32, u64
from .parser import TYPES, Instruction, split_operands
from .state import Thread
from .synchronisation import let_lanes_meet

RESULT, FIRST, SECOND, ADDEND, RECORD_BYTES = 0, 64, 128, 192, 256
KINDS = ("s8", "u8", "f16", "bf16", "f64", "tf32", "f32", "s32")
SIGNED_BYTE, BYTE, HALF, BFLOAT, DOUBLE, TF32, SINGLE, WORD = range(len(KINDS))


@native
def gather_matrix(first: Thread, lanes: u64, kind: u64):
    """Lane 8 k + r holds the address of row r of matrix k; lane l gets 2 elements of row l / 4 from 2 (l mod 4) on."""
    count = u32(first.b) & 7
    transposed = first.b & 8 != 0
    for lane in range(u32(32)):
        mine = first[lane].a
        for matrix in range(count):
            word = u32(0)
            for half in range(u32(2)):
                row = lane >> 2
                column = (lane & 3) * 2 + half
                if transposed:
                    row = (lane & 3) * 2 + half
                    column = lane >> 2
                holder = first[matrix * 8 + row].a
                word |= u32(load_u16(load_u64(holder, 0), u64(column) * 2)) << (half * 16)
            store_u32(mine, u64(8 + matrix * 4), word)


@native
def element_bytes(kind: u32) -> u32:
    """Return the size of a number, which is a digit for each of `KINDS`."""
    return u32(0x4448_2211) >> (kind * 4) & 15


@native
def element(address: u64, index: u32, kind: u32) -> f64:
    """Return element *index* of a lane's part of A, B or C."""
    at = u64(index) * u64(element_bytes(kind))
    if kind == DOUBLE:
        return load_f64(address, at)
    if kind == HALF:
        return widen_f16(load_u16(address, at))
    if kind == BFLOAT:
        return widen_bf16(load_u16(address, at))
    if kind == TF32:
        return f64(bits_f32(load_u32(address, at) & 0xFFFFE000))
    if kind == SINGLE:
        return f64(load_f32(address, at))
    if kind == WORD:
        return f64(load_i32(address, at))
    if kind == SIGNED_BYTE:
        return f64(i32(load_i8(address, at)))
    return f64(u32(load_u8(address, at)))


@native
def owner(row: u32, column: u32, group: u32, tall: bool) -> u64:
    """Return where an element of A or B is: the lane, and (from bit 32 on) its index among the lane's elements.

    A lane holds *group* neighbouring columns of a row, of every eighth row and of every 4 *group*-th column.
    """
    lane = (row & 7) * 4 + column // group % 4
    block = column // (group * 4)
    index = block * group + column % group
    if tall:
        index = (block * 2 + (row >> 3)) * group + column % group
    return u64(lane) | u64(index) << 32


@native
def multiply_matrices(first: Thread, lanes: u64, kind: u64):
    """Compute A B + C for A of m x k, B of k x n; m, n, k and the kinds are in B of the first lane's record."""
    shape = first.b
    m = u32(shape & 255)
    n = u32(shape >> 8 & 255)
    k = u32(shape >> 16 & 255)
    a_kind = u32(shape >> 24 & 255)
    b_kind = u32(shape >> 32 & 255)
    result_kind = u32(shape >> 40 & 255)
    group = u32(4) // element_bytes(a_kind)
    if group == 0:
        group = u32(1)
    for row in range(m):
        for column in range(n):
            place = owner(row, column, 2, m > 8)
            mine = first[place & 0xFFFFFFFF].a
            at = place >> 32
            total = element(mine + ADDEND, u32(at), result_kind)
            for inner in range(k):
                a_place = owner(row, inner, group, m > 8)
                b_place = owner(column, inner, group, False)
                a_lane = first[a_place & 0xFFFFFFFF].a
                b_lane = first[b_place & 0xFFFFFFFF].a
                a = element(a_lane + FIRST, u32(a_place >> 32), a_kind)
                total = fma(a, element(b_lane + SECOND, u32(b_place >> 32), b_kind), total)
            if result_kind == DOUBLE:
                store_f64(mine, RESULT + at * 8, total)
            elif result_kind == HALF:
                store_u16(mine, RESULT + at * 2, narrow_f16(total, NEAREST))
            elif result_kind == SINGLE:
                store_f32(mine, RESULT + at * 4, f32(total))
            else:
                rest = total - floor(total * f64(2.0**-32)) * f64(2.0**32)  # an integer that wraps around
                store_u32(mine, RESULT + at * 4, u32(u64(rest)))


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
    let_lanes_meet(f, "gather_matrix", 0, "-1", f.temporary(f"ptrtoint ptr {record} to i64"), what)
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
    type = TYPES["b64" if result == "f64" else "b32"]
    for offset, operand in zip((FIRST, SECOND, ADDEND), i.operands[1:], strict=True):
        for k, register in enumerate(split_operands(operand.strip("{}"))):
            f.store(record, offset + k * type.nbytes, f.bits(register, type), type.integer)
    m_, n_, k_ = (int(part) for part in shape[1:].replace("n", "k").split("k"))
    kinds = KINDS.index(a) << 24 | KINDS.index(b) << 32 | KINDS.index(result) << 40
    address = f.temporary(f"ptrtoint ptr {record} to i64")
    let_lanes_meet(f, "multiply_matrices", 0, "-1", address, m_ | n_ << 8 | k_ << 16 | kinds)
    for k, target in enumerate(split_operands(i.operands[0].strip("{}"))):
        f.assign(target, type, f.load(record, RESULT + k * type.nbytes, type.integer))
