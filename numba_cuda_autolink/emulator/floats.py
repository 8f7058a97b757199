# SPDX-License-Identifier: BSD-2-Clause
"""The meaning of floating instructions: half precision as bits, extremes, roundings, approximations.

Half precision is computed in ``f64``, where sums and products of two halves are exact and a fused multiply-add is
rounded to odd, so that the one rounding to half precision is right.
"""
# ruff: noqa: F811, F821
# mypy: disable-error-code="name-defined"

from __future__ import annotations

from .native import T, f32, f64, i32, i64, native, native_for, u16, u32, u64

NAN_32 = 0x7FFFFFFF
NAN_16 = 0x7FFF
NEAREST, ZERO, DOWN, UP, AWAY = 0, 1, 2, 3, 4

_HALVES = ("f16", "bf16")
# Of each type: infinity, and of half precision, the bits of the mantissa, and the exponent of 1
INFINITY_f16, INFINITY_bf16, INFINITY_f32, INFINITY_f64 = 0x7C00, 0x7F80, 0x7F800000, 0x7FF0000000000000
MANTISSA_f16, MANTISSA_bf16 = 10, 7
BIAS_f16, BIAS_bf16 = 15, 127


@native_for("f32", "f64")
def flush(x: T) -> T:
    """Subnormal numbers become zeros of their sign."""
    return copysign(T(0.0), x) if bits_U(x) & INFINITY_T == 0 else x


@native
def flush_f16_as_f32(x: f32) -> f32:
    return copysign(f32(0.0), x) if fabs(x) < f32(6.103515625e-05) else x


@native_for("f32", "f64")
def saturate(x: T) -> T:
    """Clamp to [0, 1]; NaN becomes 0."""
    if x > 1.0:
        return T(1.0)
    return x if x > 0.0 else T(0.0)


@native
def canonical_f32(x: f32) -> f32:
    return x if x == x else bits_f32(u32(NAN_32))


@native
def canonical_f64(x: f64) -> f64:
    """In double precision, NaN keeps its bits but becomes quiet."""
    return x if x == x else bits_f64(bits_u64(x) | 0x8000000000000)


@native_for("f32", "f64")
def neg(x: T) -> T:
    return -x if x == x else canonical_T(x)


@native_for("f32", "f64")
def abs(x: T) -> T:
    return fabs(x) if x == x else canonical_T(x)


@native
def canonical_of_f64(result: f64, operand: f64) -> f64:
    """Return *result*, or the *operand* if it is NaN."""
    return result if operand == operand else canonical_f64(operand)


@native
def flush_tiny_f32(x: f32, scaled: f32) -> f32:
    """Flush a result that would be subnormal if it were rounded with any exponent, as *scaled*, 2**32 times it, is."""
    return copysign(f32(0.0), x) if fabs(scaled) < f32(5.048709793414476e-29) else x


@native
def add_in_global_f32(a: f32, b: f32) -> f32:
    """Where atomic operations of global memory add, subnormal numbers are zero."""
    return canonical_f32(flush_f32(flush_f32(a) + flush_f32(b)))


@native
def add_in_global_f64(a: f64, b: f64) -> f64:
    """Where atomic operations of global memory add, signalling NaN remains as it is."""
    if b != b:
        return b
    return a + b if a == a else a


# Half precision


@native
def widen_bf16(x: u16) -> f32:
    return bits_f32(u32(x) << 16)


@native
def widen_f16(x: u16) -> f32:
    exponent = u32(x) >> 10 & 31
    mantissa = u32(x) & 1023
    sign = (u32(x) & 0x8000) << 16
    if exponent == 31:
        return bits_f32(sign | 0x7F800000 | mantissa << 13)
    if exponent == 0:
        return bits_f32(bits_u32(f32(mantissa) * f32(5.960464477539063e-08)) | sign)
    return bits_f32(sign | (exponent + 112) << 23 | mantissa << 13)


@native
def round_off(kept: u64, rest: u64, half: u64, negative: bool, mode: u32) -> u64:
    """Return *kept* or the next: *rest* was cut off, and *half* is half of a unit."""
    if rest == 0:
        return kept
    if mode == NEAREST:
        return kept + u64(rest > half or (rest == half and kept & 1 == 1))
    if mode == AWAY:
        return kept + u64(rest >= half)
    if mode == UP:
        return kept + u64(not negative)
    if mode == DOWN:
        return kept + u64(negative)
    return kept


@native
def round_magnitude(x: f64, mantissa_bits: u32, bias: i32, mode: u32) -> u64:
    """Return exponent and mantissa of a finite number, rounded to a format with *mantissa_bits*, whose exponents have
    the bias *bias*, and any number of bits."""
    bits = bits_u64(x)
    negative = bits >> 63 == 1
    exponent = i32(bits >> 52 & 2047)
    mantissa = bits & 0xFFFFFFFFFFFFF
    if exponent == 0:
        exponent = 1
    else:
        mantissa |= u64(1) << 52
    target = exponent - 1023 + bias
    drop = i32(52) - i32(mantissa_bits)
    if target <= 0:
        drop = drop + 1 - target
        target = i32(0)
    if mantissa == 0:
        return u64(0)
    if drop > 62:
        return round_off(u64(0), u64(1), u64(2), negative, mode)
    kept = mantissa >> u64(drop)
    rest = mantissa & ((u64(1) << u64(drop)) - 1)
    result = round_off(kept, rest, u64(1) << (u64(drop) - 1), negative, mode)
    if target > 0:
        result += u64(target - 1) << u64(mantissa_bits)
    return result


@native
def round_to_16_bits(x: f64, mantissa_bits: u32, bias: i32, mode: u32) -> u16:
    """Round to a format of 16 bits with *mantissa_bits*, whose exponents have the bias *bias*."""
    negative = bits_u64(x) >> 63 == 1
    infinity = u64(2 * bias + 1) << u64(mantissa_bits)
    result = infinity
    if x != x:
        return NAN_16
    if x - x == 0.0:
        result = round_magnitude(x, mantissa_bits, bias, mode)
        if result >= infinity:
            result = infinity
            if mode == ZERO or (mode == UP and negative) or (mode == DOWN and not negative):
                result = infinity - 1
    return u16(u64(negative) << 15 | result)


@native
def narrow_8(x: f64, mantissa_bits: u32, bias: i32, largest: u64) -> u16:
    """Round to the nearest number of a format of 8 bits, or the *largest*."""
    result = largest
    if x != x:
        return 0x7F
    if x - x == 0.0:
        result = round_magnitude(x, mantissa_bits, bias, NEAREST)
        if result > largest:
            result = largest
    return u16(bits_u64(x) >> 63 << 7 | result)


@native
def widen_e4m3(x: u16) -> u16:
    """Return the half with the value of *x*, of which only the lower 8 bits count."""
    if x & 0x7F == 0x7F:
        return NAN_16
    magnitude = bits_f32(u32(x & 0x7F) << 20) * f32(1.329227995784916e36)
    return narrow_f16(f64(magnitude), NEAREST) | (x & 0x80) << 8


@native
def widen_e5m2(x: u16) -> u16:
    return u16(NAN_16) if x & 0x7F > 0x7C else x << 8


@native_for(*_HALVES)
def narrow(x: f64, mode: u32) -> T:
    return round_to_16_bits(x, MANTISSA_T, BIAS_T, mode)


@native_for(*_HALVES)
def narrow_f64_to(x: f64, mode: u32) -> T:
    """NaN of double precision keeps its sign and the upper bits of its payload, and becomes quiet."""
    bits = bits_u64(x) | 1 << 51
    return (
        narrow_T(x, mode)
        if x == x
        else T(bits >> 48 & 0x8000 | INFINITY_T | bits >> (52 - MANTISSA_T) & ~INFINITY_T & 0x7FFF)
    )


@native
def add_to_odd(a: f64, b: f64) -> f64:
    """Return the sum rounded to odd: if it is inexact, its last bit is 1, so that it can be rounded again."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    bits = bits_i64(total)
    if error != 0.0 and bits & 1 == 0 and bits & 0x7FF0000000000000 != 0x7FF0000000000000:
        towards_larger = (error > 0.0) == (total > 0.0)
        bits += i64(1) if towards_larger else i64(-1)
    return bits_f64(bits)


@native_for(*_HALVES)
def add(a: T, b: T) -> T:
    return narrow_T(add_to_odd(f64(widen_T(a)), f64(widen_T(b))), NEAREST)


@native_for(*_HALVES)
def sub(a: T, b: T) -> T:
    return narrow_T(add_to_odd(f64(widen_T(a)), -f64(widen_T(b))), NEAREST)


@native_for(*_HALVES)
def mul(a: T, b: T) -> T:
    return narrow_T(f64(widen_T(a)) * f64(widen_T(b)), NEAREST)


@native_for(*_HALVES)
def fma(a: T, b: T, c: T) -> T:
    return narrow_T(add_to_odd(f64(widen_T(a)) * f64(widen_T(b)), f64(widen_T(c))), NEAREST)


@native
def narrow_ftz_f16(x: f64) -> u16:
    """Flush what would be subnormal if it were rounded with any exponent."""
    is_tiny = narrow_f16(x * 256.0, NEAREST) & 0x7FFF < 0x2400
    return u16(bits_u64(x) >> 48 & 0x8000) if is_tiny else narrow_f16(x, NEAREST)


@native
def mul_ftz_f16(a: u16, b: u16) -> u16:
    return narrow_ftz_f16(f64(widen_f16(a)) * f64(widen_f16(b)))


@native
def fma_ftz_f16(a: u16, b: u16, c: u16) -> u16:
    return narrow_ftz_f16(add_to_odd(f64(widen_f16(a)) * f64(widen_f16(b)), f64(widen_f16(c))))


@native_for(*_HALVES)
def neg(a: T) -> T:
    return NAN_16 if a & 0x7FFF > INFINITY_T else a ^ 0x8000


@native_for(*_HALVES)
def abs(a: T) -> T:
    return NAN_16 if a & 0x7FFF > INFINITY_T else a & 0x7FFF


@native_for(*_HALVES)
def flush(a: T) -> T:
    return a & 0x8000 if a & INFINITY_T == 0 else a


@native_for(*_HALVES)
def saturate(a: T) -> T:
    return narrow_T(f64(saturate_f32(widen_T(a))), NEAREST)


@native_for(*_HALVES)
def relu(a: T) -> T:
    """Negative numbers become 0; NaN is canonical."""
    if a & 0x7FFF > INFINITY_T:
        return NAN_16
    return u16(0) if a & 0x8000 != 0 else a


# Extremes: of 0.0 and -0.0, the latter is less; a number wins over NaN


@native_for("f32", "f64")
def extreme(a: T, b: T, largest: bool) -> T:
    if a != a:
        return canonical_T(b)
    if b != b:
        return a
    if a == b:
        return bits_T(bits_U(a) & bits_U(b)) if largest else bits_T(bits_U(a) | bits_U(b))
    return a if (a > b) == largest else b


@native_for(*_HALVES)
def extreme(a: T, b: T, largest: bool) -> T:
    return narrow_T(f64(extreme_f32(widen_T(a), widen_T(b), largest)), NEAREST)


@native_for("f32", "f64", *_HALVES)
def min(a: T, b: T) -> T:
    return extreme_T(a, b, False)


@native_for("f32", "f64", *_HALVES)
def max(a: T, b: T) -> T:
    return extreme_T(a, b, True)


@native
def inc_u32(a: u32, b: u32) -> u32:
    return u32(0) if a >= b else a + 1


@native
def dec_u32(a: u32, b: u32) -> u32:
    return b if a == 0 or a > b else a - 1


# Approximations, in twice the precision; the fields that GPUs leave zero are zero


@native
def tanh_f32(x: f32) -> f32:
    return f32(tanh(f64(x)))


@native_for(*_HALVES)
def tanh(x: T) -> T:
    return narrow_T(tanh(f64(widen_T(x))), NEAREST)


@native_for(*_HALVES)
def exp2(x: T) -> T:
    return narrow_T(exp2(f64(widen_T(x))), NEAREST)


@native
def upper_half(x: f64) -> f64:
    """Round to the upper 32 bits."""
    bits = bits_u64(x)
    if bits & 0x7FF0000000000000 == 0x7FF0000000000000:
        return x
    return bits_f64((bits + 0x80000000) & 0xFFFFFFFF00000000)


@native
def rcp_ftz_f64(x: f64) -> f64:
    return upper_half(flush_f64(f64(1.0) / flush_f64(x)))


@native
def rsqrt_ftz_f64(x: f64) -> f64:
    return upper_half(f64(1.0) / sqrt(flush_f64(x)))


@native_for("f32", "f64")
def rsqrt(x: T) -> T:
    return T(f64(1.0) / sqrt(f64(x)))


# Conversions


@native
def u64_to_odd_f64(x: u64) -> f64:
    """Return *x* with at most 53 bits; the last is 1 if any was cut off, so that it can be rounded again."""
    return f64((x & ~u64(0x7FF)) | u64(x & 0x7FF != 0) << 11) if x >> 53 != 0 else f64(x)


@native
def s64_to_odd_f64(x: i64) -> f64:
    return -u64_to_odd_f64(u64(-x)) if x < 0 else u64_to_odd_f64(u64(x))


@native
def to_tf32(x: f32, mode: u32) -> u32:
    bits = bits_u32(x)
    if x != x and mode != AWAY:
        return u32(0x7FFFE000)
    if bits & 0x7F800000 == 0x7F800000:
        return bits & ~u32(0x1FFF)
    kept = round_off(u64(bits & 0x7FFFFFFF) >> 13, u64(bits & 0x1FFF), 0x1000, bits >> 31 == 1, mode)
    return bits & 0x80000000 | u32(kept) << 13
