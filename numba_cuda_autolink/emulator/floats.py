# SPDX-License-Identifier: BSD-2-Clause
"""Floating arithmetic: extremes, roundings, approximations, half precision and less.

Numbers of 16 and 8 bits are computed as ``f64``, where products of two halves are exact and sums are rounded to odd, so
that the one rounding at the end is right. The processor's rounding mode changes for one operation.
"""
# ruff: noqa: F811, F821
# mypy: disable-error-code="name-defined"

from __future__ import annotations

from collections.abc import Callable

from .forms import Handler, Modifiers, computes, form
from .function_builder import FunctionBuilder, Value
from .ir_text import SUFFIXES
from .native import T, f32, f64, i32, i64, native, u8, u16, u32, u64
from .parser import TYPES, PTXType

NAN_32 = 0x7FFFFFFF
NEAREST, ZERO, DOWN, UP, AWAY = 0, 1, 2, 3, 4

_HALVES = ("f16", "bf16")
INFINITY_f16, INFINITY_bf16, INFINITY_f32, INFINITY_f64 = 0x7C00, 0x7F80, 0x7F800000, 0x7FF0000000000000
# Of 16 bits and less: the bits of the mantissa, the exponent of 1, and what is rounded to the least normal number
MANTISSA_f16, MANTISSA_bf16, MANTISSA_e4m3, MANTISSA_e5m2 = 10, 7, 3, 2
BIAS_f16, BIAS_bf16, BIAS_e4m3, BIAS_e5m2 = 15, 127, 7, 15
LARGEST_e4m3, LARGEST_e5m2 = 126, 123
LEAST_f16, LEAST_bf16 = 2.0**-14 - 2.0**-26, 2.0**-126 - 2.0**-135
# What makes numbers of the bits of smaller formats, whose exponents of 1 are less
FROM_f16, FROM_e4m3 = 2.0**1008, 2.0**1016


@native("f32", "f64")
def flush(x: T) -> T:
    """Subnormal numbers become zeros of their sign."""
    return copysign(T(0.0), x) if bits_U(x) & INFINITY_T == 0 else x


@native(*_HALVES)
def flush(x: f64) -> f64:
    return copysign(f64(0.0), x) if fabs(x) < LEAST_T else x


@native("f32", "f64")
def saturate(x: T) -> T:
    """Clamp to [0, 1]; NaN becomes 0."""
    if x > 1.0:
        return T(1.0)
    return x if x > 0.0 else T(0.0)


@native()
def relu(x: f64) -> f64:
    return f64(0.0) if x <= 0.0 else x


@native()
def canonical_f32(x: f32) -> f32:
    return x if x == x else bits_f32(u32(NAN_32))


@native()
def canonical_f64(x: f64) -> f64:
    """In double precision, NaN keeps its bits but becomes quiet."""
    return x if x == x else bits_f64(bits_u64(x) | 0x8000000000000)


@native("f32", "f64")
def extreme(a: T, b: T, largest: bool, keeps_nan: bool, has_sign_of_product: bool) -> T:
    """Return the less or the *largest*: -0.0 is less than 0.0, and a number wins over NaN unless the NaN is kept."""
    product = bits_U(a) ^ bits_U(b)
    if has_sign_of_product:
        a = fabs(a)
        b = fabs(b)
    result = a if (a > b) == largest else b
    if a == b:
        result = bits_T(bits_U(a) & bits_U(b)) if largest else bits_T(bits_U(a) | bits_U(b))
    if a != a or b != b:
        result = b if (a != a) != keeps_nan else a
    return canonical_T(copysign(result, bits_T(product)) if has_sign_of_product else result)


@native()
def canonical_of_f64(result: f64, operand: f64) -> f64:
    """Return *result*, or the *operand* if it is NaN."""
    return result if operand == operand else canonical_f64(operand)


@native()
def flush_tiny_f32(x: f32, scaled: f32) -> f32:
    """Flush a result that would be subnormal if it were rounded with any exponent, as *scaled*, 2**32 times it, is."""
    return copysign(f32(0.0), x) if fabs(scaled) < f32(5.048709793414476e-29) else x


@native()
def add_in_global_f32(a: f32, b: f32) -> f32:
    """Where atomic operations of global memory add, subnormal numbers are zero."""
    return canonical_f32(flush_f32(flush_f32(a) + flush_f32(b)))


@native()
def add_in_global_f64(a: f64, b: f64) -> f64:
    """Where atomic operations of global memory add, signalling NaN remains as it is."""
    if b != b:
        return b
    return a + b if a == a else a


@native()
def upper_half(x: f64) -> f64:
    """Round to the upper 32 bits; GPUs leave the lower ones zero in some approximations."""
    bits = bits_u64(x)
    if bits & 0x7FF0000000000000 == 0x7FF0000000000000:
        return x
    return bits_f64((bits + 0x80000000) & 0xFFFFFFFF00000000)


# 16 bits and less


@native()
def widen_bf16(x: u16) -> f64:
    return f64(bits_f32(u32(x) << 16))


@native()
def widen_f16(x: u16) -> f64:
    bits = u64(x & 0x7FFF) << 42
    magnitude = bits_f64(bits) * FROM_f16
    if x & INFINITY_f16 == INFINITY_f16:
        magnitude = canonical_f64(bits_f64(bits | INFINITY_f64))
    return copysign(magnitude, bits_f64(u64(x) << 48))


@native()
def widen_e5m2(x: u8) -> f64:
    return widen_f16(u16(x) << 8)


@native()
def widen_e4m3(x: u8) -> f64:
    magnitude = bits_f64(u64(x & 0x7F) << 49) * FROM_e4m3
    return copysign(magnitude, bits_f64(u64(x) << 56)) if x & 0x7F != 0x7F else bits_f64(~u64(0))


@native()
def narrow_to(x: f64, mantissa_bits: u32, bias: i32, highest: u64, sign: u64, mode: u32) -> u64:
    """Return *x* in a format with *mantissa_bits* and the *sign* at this bit, whose exponents have the bias *bias*.

    Numbers beyond its range become *highest*, infinity or the largest number.
    """
    bits = bits_u64(x)
    negative = bits >> 63 == 1
    if x != x:
        return (u64(1) << sign) - 1
    if x - x != 0.0:
        return u64(negative) << sign | highest
    exponent = i32(bits >> 52 & 2047) - 1023 + bias
    if exponent < 1:
        exponent = i32(1)
    # In units of the last place: a normal number has 2**mantissa_bits of them, or more
    units = fabs(x) * bits_f64(u64(1023 + bias + i32(mantissa_bits) - exponent) << 52)
    result = u64(units)
    rest = units - f64(result)
    if mode == NEAREST:
        result += u64(rest > 0.5 or (rest == 0.5 and result & 1 == 1))
    elif mode == AWAY:
        result += u64(rest >= 0.5)
    elif mode == UP:
        result += u64(rest != 0.0 and not negative)
    elif mode == DOWN:
        result += u64(rest != 0.0 and negative)
    result += u64(exponent - 1) << u64(mantissa_bits)
    if result >= highest:
        result = highest
        if mode == ZERO or (mode == UP and negative) or (mode == DOWN and not negative):
            result = highest - 1
    return u64(negative) << sign | result


@native(*_HALVES)
def narrow(x: f64, mode: u32) -> T:
    return T(narrow_to(x, MANTISSA_T, BIAS_T, INFINITY_T, 15, mode))


@native("e4m3", "e5m2")
def narrow(x: f64, mode: u32) -> u8:
    return u8(narrow_to(x, MANTISSA_T, BIAS_T, LARGEST_T, 7, mode))


@native(*_HALVES)
def narrow_f64_to(x: f64, mode: u32) -> T:
    """NaN of double precision keeps its sign and the upper bits of its payload, and becomes quiet."""
    bits = bits_u64(x) | 1 << 51
    return (
        narrow_T(x, mode)
        if x == x
        else T(bits >> 48 & 0x8000 | INFINITY_T | bits >> (52 - MANTISSA_T) & ~INFINITY_T & 0x7FFF)
    )


@native()
def to_tf32(x: f32, mode: u32) -> u32:
    if x != x and mode == AWAY:
        return bits_u32(x) & ~u32(0x1FFF)
    return u32(narrow_to(f64(x), 10, 127, 0x3FC00, 18, mode)) << 13


@native()
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


@native(*_HALVES)
def add(a: T, b: T) -> T:
    return narrow_T(add_to_odd(widen_T(a), widen_T(b)), NEAREST)


@native()
def u64_to_odd_f64(x: u64) -> f64:
    """Return *x* with at most 53 bits; the last is 1 if any was cut off, so that it can be rounded again."""
    return f64((x & ~u64(0x7FF)) | u64(x & 0x7FF != 0) << 11) if x >> 53 != 0 else f64(x)


@native()
def s64_to_odd_f64(x: i64) -> f64:
    return -u64_to_odd_f64(u64(-x)) if x < 0 else u64_to_odd_f64(u64(x))


_ROUND = r"(?:\.(?P<round>rn|rz|rm|rp))?"
_FTZ = r"(?P<ftz>\.ftz(?!.*\.bf16))?"
_SAT = r"(?P<sat>\.sat)?"
_HALF = "f16|bf16|f16x2|bf16x2"


def elementwise(compute: Callable[..., str]) -> Handler:
    """Make a handler of a function of a type and values: operands are flushed and the result clamped as modifiers say.

    Halves, also the two of a pair, are computed as ``f64``.
    """

    @computes("type")
    def apply(f: FunctionBuilder, m: Modifiers, *operands: Value) -> str:
        type = operands[0].type
        is_pair = type.kind.endswith("x2")
        one = TYPES[type.kind[:-2]] if is_pair else type
        computed = TYPES["f64"] if one.bits == 16 else one
        results = []
        for values in zip(*(f.split(v, 16, 2) if is_pair else [v] for v in operands), strict=True):
            if one.bits == 16:
                values = tuple(f.call(f"widen_{one.name}", v) for v in values)
            if m.get("ftz"):
                values = tuple(f.call(f"flush_{one.name}", v) for v in values)
            result = compute(f, m, computed, *values)
            if m.get("ftz"):
                result = f.call(f"flush_{one.name}", result)
            if m.get("sat"):
                result = f.call(f"saturate_{computed.name}", result)
            if m.get("relu"):
                result = f.call("relu", result)
            if one.bits == 16:
                result = f.call(f"narrow_{one.name}", result, NEAREST)
            elif one.name == "f32":
                result = f.call("canonical_f32", result)
            results.append(result)
        return f.join(results, 16) if is_pair else results[0]

    return apply


_OPERATIONS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "rcp": "fdiv", "mad": "fma"}


@form("add sub mul mad", rf"{_ROUND}{_FTZ}{_SAT}\.(?P<type>f32)")
@form("add sub mul", rf"{_ROUND}\.(?P<type>f64)")
@form("fma", rf"\.(?P<round>rn|rz|rm|rp){_FTZ}{_SAT}\.(?P<type>f32)")
@form("div rcp sqrt", rf"\.(?P<round>rn|rz|rm|rp){_FTZ}\.(?P<type>f32)")
@form("div rcp sqrt fma mad", r"\.(?P<round>rn|rz|rm|rp)\.(?P<type>f64)")
@form("div", rf"\.full{_FTZ}\.(?P<type>f32)")
@form("div rcp sqrt", rf"\.approx{_FTZ}\.(?P<type>f32)")
@elementwise
def arithmetic(f: FunctionBuilder, m: Modifiers, type: PTXType, *operands: str) -> str:
    operation, mode = _OPERATIONS.get(m["name"], m["name"]), m.get("round", "")
    if m["name"] == "rcp":
        operands = ("1.0", *operands)
    result = rounded(f, operation, mode, type.llvm, type.llvm, *operands)
    if m.get("ftz") and operation in ("fmul", "fdiv", "fma"):  # other results that are subnormal are exact
        scaled = [f.temporary(f"fmul float {each}, 0x41F0000000000000") for each in operands[::2]]
        factors = [scaled[0], operands[1], *scaled[1:]]
        result = f.call("flush_tiny_f32", result, rounded(f, operation, mode, type.llvm, type.llvm, *factors))
    return result


@form("add sub mul", rf"(?:\.rn)?{_FTZ}{_SAT}\.(?P<type>{_HALF})")
@form("fma", rf"\.rn{_FTZ}(?:{_SAT}|(?P<relu>\.relu))\.(?P<type>{_HALF})")
@elementwise
def half_arithmetic(f: FunctionBuilder, m: Modifiers, type: PTXType, a: str, b: str, *more: str) -> str:
    """Each is a product and a sum."""
    terms = {"add": (a, "1.0", b), "sub": (b, "-1.0", a), "mul": (a, b, "-0.0"), "fma": (a, b, *more)}
    x, y, z = terms[m["name"]]
    return f.call("add_to_odd", f.temporary(f"fmul double {x}, {y}"), z)


@form("ex2 lg2 sin cos rsqrt", rf"\.approx{_FTZ}\.(?P<type>f32)")
@form("rsqrt", r"\.approx\.(?P<type>f64)")
@form("rcp rsqrt", r"\.approx(?P<ftz>\.ftz)\.(?P<type>f64)")
@form("tanh", rf"\.approx\.(?P<type>f32|{_HALF})")
@form("ex2", r"\.approx\.(?P<type>f16|f16x2)")
@form("ex2", r"\.approx(?P<ftz>\.ftz)\.(?P<type>bf16|bf16x2)")
@elementwise
def approximation(f: FunctionBuilder, m: Modifiers, type: PTXType, x: str) -> str:
    name, wide = m["name"], x if type.bits == 64 else f.temporary(f"fpext float {x} to double")
    if name in ("rcp", "rsqrt"):
        divisor = f.intrinsic("sqrt", "double", wide) if name == "rsqrt" else wide
        wide = f.temporary(f"fdiv double 1.0, {divisor}")
    else:
        wide = f.intrinsic({"ex2": "exp2", "lg2": "log2"}.get(name, name), "double", wide)
    if m["type"] == "f64" and m.get("ftz"):
        return f.call("upper_half", f.call("flush_f64", wide))
    return wide if type.bits == 64 else f.temporary(f"fptrunc double {wide} to float")


@form("abs neg min max", r"\.(?P<type>f64)")
@form("abs neg", rf"{_FTZ}\.(?P<type>f32|{_HALF})")
@form("min max", rf"{_FTZ}(?P<nan>\.NaN)?(?P<xorsign>\.xorsign\.abs)?\.(?P<type>f32|{_HALF})")
@elementwise
def native_float(f: FunctionBuilder, m: Modifiers, type: PTXType, first: str, *others: str) -> str:
    """Forms that are native functions; ``.NaN`` lets NaN win, ``.xorsign`` gives the sign of the product."""
    if m["name"] in ("abs", "neg"):
        is_abs = m["name"] == "abs"
        result = f.intrinsic("fabs", type.llvm, first) if is_abs else f.temporary(f"fneg {type.llvm} {first}")
        return f.call("canonical_of_f64", result, first) if type.bits == 64 else result
    for other in others:
        first = f.call(
            f"extreme_{type.name}", first, other, m["name"] == "max", bool(m.get("nan")), bool(m.get("xorsign"))
        )
    return first


@form("copysign", r"\.(?P<type>f32|f64)")
@computes("type")
def copy_sign(f: FunctionBuilder, m: Modifiers, sign: Value, value: str) -> str:
    return f.intrinsic("copysign", sign.type.llvm, value, sign)


# Zeros are normal, too
_CLASSES = {"finite": 0x1F8, "infinite": 0x204, "number": 0x3FC, "notanumber": 3, "normal": 0x168, "subnormal": 0x90}


@form("testp", rf"\.(?P<test>{'|'.join(_CLASSES)})\.(?P<type>f32|f64)")
@computes("pred", "type")
def test_property(f: FunctionBuilder, m: Modifiers, value: Value) -> str:
    classes = f"i32 {_CLASSES[m['test']]}"
    return f.call_intrinsic(f"is.fpclass.f{value.type.bits}", "i1", f"{value.type.llvm} {value}", classes)


# Rounding modes

_MODES = {"rz": 0, "rp": 2, "rm": 3}  # of LLVM's set.rounding; 1 is to nearest


def rounded(f: FunctionBuilder, operation: str, mode: str, target: str, source: str, *operands: str) -> str:
    """Return the result of *operation* in the LLVM type *target*, of *operands* in the type *source*, rounded as *mode*
    (``rn``, ``rz``, ``rm``, ``rp``) says."""
    if mode not in ("", "rn"):
        result = _call_rounded(f, operation, mode, target, source, operands)
    elif operation in ("fma", "sqrt"):
        result = f.intrinsic(operation, target, *operands)
    else:
        converted = "" if source == target else f" to {target}"
        result = f.temporary(f"{operation} {source} {', '.join(operands)}{converted}")
    if source == "double" and operation in ("fadd", "fsub", "fmul", "fma"):
        for operand in operands[:0:-1]:  # of several NaN, the second, then the third
            result = f.call("canonical_of_f64", result, operand)
    return result


def _call_rounded(
    f: FunctionBuilder, operation: str, mode: str, target: str, source: str, operands: tuple[str, ...]
) -> str:
    """Call a function that sets the rounding mode for a constrained intrinsic."""
    intrinsic = ".".join([operation, *(SUFFIXES.get(each, each) for each in dict.fromkeys((target, source)))])
    name, constrained = f"@rounded.{intrinsic}.{mode}", f"@llvm.experimental.constrained.{intrinsic}"
    f.declarations.add(f"declare {target} {constrained}({f'{source}, ' * len(operands)}metadata, metadata)")
    f.declarations.add("declare void @llvm.set.rounding(i32)")
    parameters = ", ".join(f"{source} %{k}" for k in range(len(operands)))
    f.program.helpers[name] = f"""define internal {target} {name}({parameters}) noinline nounwind strictfp {{
 call void @llvm.set.rounding(i32 {_MODES[mode]}) strictfp
 %r = call {target} {constrained}({parameters}, metadata !"round.dynamic", metadata !"fpexcept.strict") strictfp
 call void @llvm.set.rounding(i32 1) strictfp
 ret {target} %r
}}
"""
    return f.call_symbol(target, name, *(f"{source} {each}" for each in operands))
