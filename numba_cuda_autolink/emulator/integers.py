# SPDX-License-Identifier: BSD-2-Clause
"""The meaning of integer instructions: native functions named after the instruction and its type."""
# ruff: noqa: F811, F821
# mypy: disable-error-code="name-defined"

from __future__ import annotations

from .forms import instruction
from .native import T, U, W, i32, native, u32, u64

_UNSIGNED, _SIGNED = ("u16", "u32", "u64"), ("s16", "s32", "s64")


@instruction(*_UNSIGNED)
def div(a: T, b: T) -> T:
    return ~T(0) if b == 0 else a // (b | T(b == 0))


@instruction(*_SIGNED)
def div(a: T, b: T) -> T:
    """Division by zero gives ones; the one quotient that does not fit wraps around."""
    if b == 0:
        return -1
    if b == -1:
        return -a
    return a // b


@instruction(*_UNSIGNED, *_SIGNED)
def rem(a: T, b: T) -> T:
    """A remainder by zero is all ones."""
    return ~T(0) if b == 0 else a - div_T(a, b) * b


@instruction(*_UNSIGNED, *_SIGNED)
def sad(a: T, b: T, c: T) -> T:
    return c + (a - b if a > b else b - a)


@instruction("b16", "b32", "b64")
def cnot(a: T) -> T:
    return T(a == 0)


@instruction("u32", "u64", "s32", "s64", opcode="bfind.shiftamt")
def bfind_shift(a: T) -> u32:
    """Return how far the first bit that is not the sign's is from the upper end, or ones if there is none."""
    bits = U(~a if a < 0 else a)
    return u32(ctlz(bits)) if bits != 0 else ~u32(0)


@instruction("u32", "u64", "s32", "s64")
def bfind(a: T) -> u32:
    shift = bfind_shift_T(a)
    return shift if shift == ~u32(0) else u32(ctlz(U(1))) - shift


@instruction("u64", "s64")
def bfe(a: T, position: u32, length: u32) -> T:
    """Bits beyond the end are zeros, or copies of the sign. Of *position* and *length*, the lower 8 bits count."""
    position &= 255
    length &= 255
    field = a >> T(position) if position < 64 else a >> 63 >> 1
    if length == 0 or position + length >= 64:
        return T(0) if length == 0 else field
    unused = T(64) - T(length)
    return field << unused >> unused


@instruction("u32", "s32")
def bfe(a: T, position: u32, length: u32) -> T:
    return T(bfe_W(W(a), position, length))


@instruction("b64")
def bfi(a: u64, b: u64, position: u32, length: u32) -> u64:
    if position > 63 or length == 0:
        return b
    mask = ~u64(0) >> u64(64 - umin(length, 64)) << u64(position)
    return (b & ~mask) | ((a << u64(position)) & mask)


@instruction("b32")
def bfi(a: u32, b: u32, position: u32, length: u32) -> u32:
    """Only the lower 8 bits of *position* and *length* count; with 64 bits, all do."""
    return u32(bfi_b64(u64(a), u64(b), position & 255, length & 255))


@instruction("b32")
def fns(mask: u32, base: u32, offset: i32) -> u32:
    """The position of the offset-th set bit at or above (below, if negative) *base*."""
    if base > 31:
        return ~u32(0)
    down = offset < 0
    mask = bitreverse(mask) if down else mask
    start = 31 - base if down else base
    count = u32(-offset if down else offset)
    rest = mask >> start << start
    if offset == 0:
        count = 1
        rest &= u32(1) << start
    for position in bits(rest):
        count -= 1
        if count == 0:
            return 31 - position if down else position
    return ~u32(0)


@native
def shf(a: u32, b: u32, count: u32, to_left: bool) -> u32:
    wide = u64(b) << 32 | u64(a)
    return u32(wide << u64(count) >> 32) if to_left else u32(wide >> u64(count))


@native
def prmt(a: u32, b: u32, c: u32) -> u32:
    wide = u64(b) << 32 | u64(a)
    result = u32(0)
    for k in range(u32(4)):
        selector = c >> (k * 4) & 15
        byte = u32(wide >> u64((selector & 7) * 8)) & 255
        if selector & 8 != 0:
            byte = (byte >> 7) * 255
        result |= byte << (k * 8)
    return result


@native
def part(a: u32, k: u32, bits: u32, signed: bool) -> i32:
    """Return the k-th of the numbers of so many *bits* that *a* holds."""
    top = a << (32 - bits - k * bits)
    return i32(top) >> i32(32 - bits) if signed else i32(top >> (32 - bits))


@native
def dot(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool, count: u32, first: u32) -> u32:
    """Return the sum of *c* and *count* products: of numbers of *a*, and of bytes of *b* from the *first* on."""
    result = c
    for k in range(count):
        result += u32(part(a, k, 32 // count, a_signed) * part(b, k + first, 8, b_signed))
    return result
