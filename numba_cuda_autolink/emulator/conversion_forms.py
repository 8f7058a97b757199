# SPDX-License-Identifier: BSD-2-Clause
"""Conversions between types (cvt)."""

from __future__ import annotations

from .floats import AWAY, DOWN, NEAREST, UP, ZERO, rounded
from .forms import Modifiers, computes, form
from .function_builder import FunctionBuilder, Value
from .ir_text import SUFFIXES
from .parser import TYPES, Instruction, PTXType

_INT = "[us](?:8|16|32|64)"
_FLOAT = "f16|f32|f64|bf16"
_MODES = {"rn": NEAREST, "rz": ZERO, "rm": DOWN, "rp": UP, "rna": AWAY}
_INTEGRAL = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


@form("cvt", rf"(?P<sat>\.sat)?\.(?P<to>{_INT})\.(?P<type>{_INT})")
@computes("to", "type")
def integer_to_integer(f: FunctionBuilder, m: Modifiers, value: Value) -> str:
    to, source, result = TYPES[m["to"]], value.type, str(value)
    if m["sat"]:  # to the nearest number of the type, in the width of the source
        lowest, highest = (-(1 << to.bits - 1) if to.is_signed else 0), (1 << to.bits - to.is_signed) - 1
        if source.is_signed and lowest > -(1 << source.bits - 1):
            result = f.intrinsic("smax", source.llvm, result, str(lowest))
        if highest < (1 << source.bits - source.is_signed) - 1:
            result = f.intrinsic("smin" if source.is_signed else "umin", source.llvm, result, str(highest))
    return f.resize(result, source.bits, to.bits, signed=source.is_signed)


@form("cvt", rf"\.(?P<round>rn|rz|rm|rp)(?P<sat>\.sat)?\.(?P<to>{_FLOAT})\.(?P<type>{_INT})")
@computes("to", "type")
def integer_to_float(f: FunctionBuilder, m: Modifiers, value: Value) -> str:
    to, source, sign = TYPES[m["to"]], value.type, "s" if value.type.is_signed else "u"
    if to.bits == 16:
        wide = f.resize(value, source.bits, 64, signed=source.is_signed)
        return _convert(f, m, f.call(f"{sign}64_to_odd_f64", wide), TYPES["f64"], to)
    bits = max(32, source.bits)
    wide = f.resize(value, source.bits, bits, signed=source.is_signed)
    result = rounded(f, f"{sign}itofp", m["round"], to.llvm, f"i{bits}", wide)
    return f.call(f"saturate_{to.name}", result) if m["sat"] else result


def _widen(f: FunctionBuilder, source: PTXType, value: str) -> tuple[str, str]:
    """Return half precision and less as a float or double; the value and its LLVM type."""
    if source.name == "bf16":
        return f.bitcast(f.join(["0", value], 16), "i32", "float"), "float"
    return (f.call(f"widen_{source.name}", value), "double") if source.bits < 32 else (value, source.llvm)


@form("cvt", rf"\.(?P<round>rni|rzi|rmi|rpi)(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<to>{_INT})\.(?P<type>{_FLOAT})")
@computes("to", "type")
def float_to_integer(f: FunctionBuilder, m: Modifiers, value: Value) -> str:
    """Numbers out of range become the nearest limit.

    NaN becomes 0; of double precision or in 64 bits, the number whose first bit alone is set.
    """
    to, source = TYPES[m["to"]], value.type
    number, llvm = _widen(f, source, value)
    if m["ftz"]:
        if source.name != "f32":
            raise f.refuse()
        number = f.call("flush_f32", number)
    number = f.intrinsic(_INTEGRAL[m["round"]], llvm, number)
    name = f"fpto{'s' if to.is_signed else 'u'}i.sat.{to.llvm}.{SUFFIXES[llvm]}"
    result = f.call_intrinsic(name, to.llvm, f"{llvm} {number}")
    if 64 not in (to.bits, source.bits):
        return result
    is_nan = f.temporary(f"fcmp uno {llvm} {number}, {number}")
    return f.temporary(f"select i1 {is_nan}, {to.llvm} {-(1 << to.bits - 1)}, {to.llvm} {result}")


_BOTH = rf"\.(?P<to>{_FLOAT})\.(?P<type>{_FLOAT})"


@form("cvt", rf"(?:\.(?P<round>rni?|rzi?|rmi?|rpi?))?(?P<ftz>\.ftz)?(?P<relu>\.relu)?(?P<sat>\.sat)?{_BOTH}")
@computes("to", "type")
def float_to_float(f: FunctionBuilder, m: Modifiers, value: Value) -> str:
    to, source = TYPES[m["to"]], value.type
    if (
        (m["ftz"] and "f32" not in (to.name, source.name))
        or (m["relu"] and to.bits != 16)
        or (m["round"] in _INTEGRAL and to != source)
    ):
        raise f.refuse()
    number = f.call("flush_f32", value) if m["ftz"] and source.name == "f32" else value
    if to != source or to.name == "f32" or m["round"] or m["relu"] or m["sat"]:
        return _convert(f, m, number, source, to)
    return number


def _convert(f: FunctionBuilder, m: Modifiers, value: str, source: PTXType, to: PTXType) -> str:
    """Return *value* rounded, flushed and clamped as the modifiers say."""
    mode = m.get("round", "")
    value, llvm = _widen(f, source, value)
    if mode in _INTEGRAL:
        value = f.intrinsic(_INTEGRAL[mode], llvm, value)
    if llvm == "float" and to.name != "f32":
        value = f.temporary(f"fpext float {value} to double")
    if to.bits < 32:
        if m.get("sat"):
            value = f.call("saturate_f64", value)
        if m.get("relu"):
            value = f.call("relu", value)
        name = "narrow_f64_to" if source.bits == 64 else "narrow"
        return f.call(f"{name}_{to.name}", value, _MODES.get(mode, NEAREST))
    if llvm == "double" and to.name == "f32":
        wide, value = value, rounded(f, "fptrunc", mode, "float", "double", value)
        if m["ftz"] and source.bits == 64:
            scaled = f.temporary(f"fmul double {wide}, 0x41F0000000000000")
            scaled = rounded(f, "fptrunc", mode, "float", "double", scaled)
            value = f.call("flush_tiny_f32", value, scaled)
    if to.name == "f32" and source.name in ("f16", "f32"):
        value = f.call("canonical_f32", value)
    if m["ftz"] and to.name == "f32":
        value = f.call("flush_f32", value)
    return f.call(f"saturate_{to.name}", value) if m["sat"] else value


@form("cvt", r"\.(?P<round>rn|rz)(?P<relu>\.relu)?\.(?P<to>f16|bf16)x2\.(?P<type>f32)")
@form("cvt", r"\.rn\.satfinite(?P<relu>\.relu)?\.(?P<to>e4m3|e5m2)x2\.(?P<type>f32|f16x2)")
@form("cvt", r"\.rn(?P<relu>\.relu)?\.(?P<to>f16)x2\.(?P<type>e4m3|e5m2)x2")
def pairs(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """The first of two operands, or the upper half of one, becomes the upper half."""
    to, source = TYPES[m["to"]], TYPES[m["type"].removesuffix("x2")]
    if len(i.operands) == 3:
        numbers: list[str] = [f.value(operand, source) for operand in i.operands[:0:-1]]
    else:
        numbers = f.split(f.value(i.operands[1], f"b{2 * source.bits}"), source.bits, 2)
    results = [_convert(f, m, number, source, to) for number in numbers]
    f.assign(i.operands[0], f"b{2 * to.bits}", f.join(results, to.bits))


@form("cvt", r"\.(?P<round>rna|rn|rz)\.tf32\.f32")
@computes("b32", "f32")
def float_to_tf32(f: FunctionBuilder, m: Modifiers, value: str) -> str:
    return f.call("to_tf32", value, _MODES[m["round"]])
