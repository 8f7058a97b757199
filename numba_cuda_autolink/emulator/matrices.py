# SPDX-License-Identifier: BSD-2-Clause
"""Matrices that a warp holds together: loads of 8 x 8 tiles from shared memory, and products.

The operands of a lane are in memory of its own (A of its record). For a load: the address of a row, and then the
registers that come of it. For a product: its elements of A, of B and of C as ``f64``; those of C become the result's.
"""
# ruff: noqa: F821
# mypy: disable-error-code="index, name-defined"

from __future__ import annotations

from .access import checked_pointer
from .floats import NEAREST
from .forms import Modifiers, form
from .function_builder import FunctionBuilder
from .native import native, u32, u64
from .parser import TYPES, Instruction, split_operands
from .state import Thread
from .synchronisation import let_lanes_meet

FIRST, SECOND, ADDEND, RECORD_BYTES = 0, 128, 192, 224


@native()
def gather_matrix(first: Thread, lanes: u64, kind: u64):
    """Lane 8 k + r holds the address of row r of matrix k; lane l gets 2 elements of row l / 4 from 2 (l mod 4) on."""
    count = u32(first.b) & 7
    transposed = first.b & 8 != 0
    for lane in range(u32(32)):
        mine = first[lane].a
        for matrix in range(count):
            word = u32(0)
            for half in range(u32(2)):
                pair = (lane & 3) * 2 + half
                row = pair if transposed else lane >> 2
                column = lane >> 2 if transposed else pair
                holder = first[matrix * 8 + row].a
                word |= u32(load_u16(load_u64(holder, 0), u64(column) * 2)) << (half * 16)
            store_u32(mine, u64(8 + matrix * 4), word)


@native()
def element(first: Thread, row: u32, column: u32, group: u32, tall: bool) -> u64:
    """Return where an element of a matrix is: the address of its lane's first, and 8 bytes for each element before it.

    A lane holds *group* neighbouring columns of a row, of every eighth row and of every 4 *group*-th column.
    """
    lane = (row & 7) * 4 + column // group % 4
    block = column // (group * 4)
    if tall:
        block = block * 2 + (row >> 3)
    return first[lane].a + u64(block * group + column % group) * 8


@native()
def multiply_matrices(first: Thread, lanes: u64, kind: u64):
    """Compute A B + C for A of m x k, B of k x n; m, n, k and the group of A and B are in B of the first lane's
    record."""
    shape = first.b
    m = u32(shape & 255)
    group = u32(shape >> 24)
    for row in range(m):
        for column in range(u32(shape >> 8 & 255)):
            mine = element(first, row, column, 2, m > 8)
            total = load_f64(mine, ADDEND)
            for inner in range(u32(shape >> 16 & 255)):
                a = load_f64(element(first, row, inner, group, m > 8), FIRST)
                total = fma(a, load_f64(element(first, column, inner, group, False), SECOND), total)
            store_f64(mine, ADDEND, total)


_SHAPES: dict[str, tuple[str, ...]] = dict.fromkeys(("f16", "bf16"), ("m16n8k8", "m16n8k16"))
_SHAPES |= dict.fromkeys(("s8", "u8"), ("m16n8k16", "m16n8k32")) | {"tf32": ("m16n8k4", "m16n8k8")}
_SHAPES["f64"] = ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")


@form("ldmatrix", r"\.sync\.aligned\.m8n8\.x(?P<count>[124])(?P<transposed>\.trans)?(?:\.shared(?:::cta)?)?\.b16")
def load_matrix(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    space = "shared" if ".shared" in i.opcode else "generic"
    pointer = checked_pointer(f, i.operands[1], space, 16, reads=True, writes=False)
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
    record, width = f.scratch(RECORD_BYTES), 64 if result == "f64" else 32
    for offset, name, operand in zip((FIRST, SECOND, ADDEND), (a, b, result), i.operands[1:], strict=True):
        bits = TYPES[name].bits
        registers = [f.bits(each, TYPES[f"b{width}"]) for each in split_operands(operand.strip("{}"))]
        elements = [each for register in registers for each in f.split(register, bits, width // bits)]
        for k, each in enumerate(elements):
            f.store(record, offset + 8 * k, _widen(f, name, each), "double")
    rows, columns, inner = (int(part) for part in shape[1:].replace("n", "k").split("k"))
    sizes = rows | columns << 8 | inner << 16 | max(1, 32 // TYPES[a].bits) << 24
    let_lanes_meet(f, "multiply_matrices", 0, "-1", f.temporary(f"ptrtoint ptr {record} to i64"), sizes)
    bits, offset = TYPES[result].bits, ADDEND
    for target in split_operands(i.operands[0].strip("{}")):
        end = offset + 8 * (width // bits)
        numbers = [_narrow(f, result, f.load(record, at, "double")) for at in range(offset, end, 8)]
        f.assign(target, f"b{width}", f.join(numbers, bits))
        offset = end


def _widen(f: FunctionBuilder, name: str, bits: str) -> str:
    """Return the number of the type *name* with these *bits* as a double."""
    type = TYPES[name]
    if type.bits == 16:
        return f.call(f"widen_{name}", bits)
    if type.kind in ("s", "u"):
        return f.temporary(f"{type.kind}itofp {type.llvm} {bits} to double")
    if name == "tf32":
        bits = f.temporary(f"and i32 {bits}, {0xFFFFE000}")
    value = f.bitcast(bits, type.integer, "double" if type.bits == 64 else "float")
    return value if type.bits == 64 else f.temporary(f"fpext float {value} to double")


def _narrow(f: FunctionBuilder, name: str, value: str) -> str:
    """Return the bits of a double in the type *name*; an integer wraps around."""
    if name == "f16":
        return f.call("narrow_f16", value, NEAREST)
    if name == "s32":
        return f.resize(f.temporary(f"fptosi double {value} to i64"), 64, 32)
    if name == "f32":
        return f.bitcast(f.temporary(f"fptrunc double {value} to float"), "float", "i32")
    return f.bitcast(value, "double", "i64")
