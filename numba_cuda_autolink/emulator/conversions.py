# SPDX-License-Identifier: BSD-2-Clause
"""The meaning of conversions: integers as numbers that can be rounded again."""
# ruff: noqa: F821
# mypy: disable-error-code="name-defined"

from __future__ import annotations

from .floats import AWAY, round_off
from .native import f32, f64, i64, native, u32, u64


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
