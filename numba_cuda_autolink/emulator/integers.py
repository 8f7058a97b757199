# SPDX-License-Identifier: BSD-2-Clause
"""The meaning of integer instructions: native functions named after the instruction and its type."""
# ruff: noqa: F811, F821
# mypy: disable-error-code="name-defined"

from __future__ import annotations

from .native import T, U, i32, i64, native, native_for, u32, u64

_UNSIGNED, _SIGNED = ("u16", "u32", "u64"), ("s16", "s32", "s64")


@native_for(*_UNSIGNED)
def div(a: T, b: T) -> T:
    return ~T(0) if b == 0 else a // (b | T(b == 0))


@native_for(*_SIGNED)
def div(a: T, b: T) -> T:
    """Division by zero gives ones; the one quotient that does not fit wraps around."""
    if b == 0:
        return -1
    if b == -1:
        return -a
    return a // b


@native_for(*_UNSIGNED, *_SIGNED)
def rem(a: T, b: T) -> T:
    """A remainder by zero is all ones."""
    return ~T(0) if b == 0 else a - div_T(a, b) * b


@native_for(*_SIGNED)
def abs(a: T) -> T:
    return -a if a < 0 else a


@native_for(*_SIGNED)
def neg(a: T) -> T:
    return -a


@native_for(*_UNSIGNED, *_SIGNED)
def sad(a: T, b: T, c: T) -> T:
    return c + (a - b if a > b else b - a)


@native_for("u32", "u64")
def popc(a: T) -> u32:
    return u32(ctpop(a))


@native_for("u32", "u64")
def clz(a: T) -> u32:
    return u32(ctlz(a))


@native_for("u32", "u64")
def brev(a: T) -> T:
    return bitreverse(a)


@native_for(*_UNSIGNED)
def cnot(a: T) -> T:
    return T(a == 0)


@native_for("u32", "u64")
def bfind_shift(a: T) -> u32:
    return u32(ctlz(a)) if a != 0 else ~u32(0)


@native_for("s32", "s64")
def bfind_shift(a: T) -> u32:
    return bfind_shift_U(U(~a if a < 0 else a))


@native_for("u32", "u64", "s32", "s64")
def bfind(a: T) -> u32:
    shift = bfind_shift_T(a)
    return shift if shift == ~u32(0) else u32(ctlz(U(1))) - shift


@native
def bfe_u64(a: u64, position: u32, length: u32) -> u64:
    position &= 255
    length &= 255
    if position > 63 or length == 0:
        return 0
    field = a >> u64(position)
    return field if length > 63 else field & ((u64(1) << u64(length)) - 1)


@native
def bfe_u32(a: u32, position: u32, length: u32) -> u32:
    return u32(bfe_u64(u64(a), position, length))


@native
def bfe_s64(a: i64, position: u32, length: u32) -> i64:
    """Bits beyond the end are copies of the sign, which is the field's last bit that exists."""
    position &= 255
    length &= 255
    if length == 0:
        return 0
    if position > 63:
        return a >> 63
    field = a >> i64(position)
    unused = i64(64) - i64(length)
    if length > 63 - position:
        return field
    return (field << unused) >> unused


@native
def bfe_s32(a: i32, position: u32, length: u32) -> i32:
    return i32(bfe_s64(i64(a), position, length))


@native
def bfi_u64(a: u64, b: u64, position: u32, length: u32) -> u64:
    if position > 63 or length == 0:
        return b
    mask = ~u64(0)
    if length < 64:
        mask = (u64(1) << u64(length)) - 1
    mask = mask << u64(position)
    return (b & ~mask) | ((a << u64(position)) & mask)


@native
def bfi_u32(a: u32, b: u32, position: u32, length: u32) -> u32:
    """Only the lower 8 bits of *position* and *length* count; with 64 bits, all do."""
    return u32(bfi_u64(u64(a), u64(b), position & 255, length & 255))


@native
def fns_u32(mask: u32, base: u32, offset: i32) -> u32:
    """The position of the offset-th set bit at or above (below, if negative) *base*."""
    if base > 31:
        return ~u32(0)
    if offset == 0:
        return base if mask >> base & 1 == 1 else ~u32(0)
    position = i32(base)
    step = i32(1) if offset > 0 else i32(-1)
    count = offset if offset > 0 else -offset
    while position >= 0 and position < 32:
        if mask >> u32(position) & 1 == 1:
            count -= 1
            if count == 0:
                return u32(position)
        position += step
    return ~u32(0)


@native
def shf_l(a: u32, b: u32, c: u32) -> u32:
    wide = u64(b) << 32 | u64(a)
    return u32((wide << u64(c)) >> 32)


@native
def shf_r(a: u32, b: u32, c: u32) -> u32:
    wide = u64(b) << 32 | u64(a)
    return u32(wide >> u64(c))


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
