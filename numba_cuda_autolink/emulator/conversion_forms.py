# SPDX-License-Identifier: BSD-2-Clause
"""Conversions between types (cvt)."""

from __future__ import annotations

from .float_forms import convert_rounded
from .floats import AWAY, DOWN, NEAREST, UP, ZERO
from .forms import Modifiers, form, type_of
from .function_builder import FunctionBuilder
from .parser import Instruction
from .ptx_types import PTXType, ptx_type

_INT = "[us](?:8|16|32|64)"
_FLOAT = "f16|f32|f64|bf16"
_MODES = {"rn": NEAREST, "rz": ZERO, "rm": DOWN, "rp": UP, "rna": AWAY, None: NEAREST}
_INTEGRAL = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


def _types(m: Modifiers) -> tuple[PTXType, PTXType]:
    return type_of(m, "to"), type_of(m)


@form("cvt", rf"(?P<sat>\.sat)?\.(?P<to>{_INT})\.(?P<type>{_INT})")
def integer_to_integer(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    to, source = _types(m)
    value = f.value(i.operands[1], source)
    if m["sat"]:
        value = _clamp(f, value, source, to)
    value = f.resize(value, source.bits, to.bits, signed=source.is_signed)
    f.assign(i.operands[0], to, value)


def _clamp(f: FunctionBuilder, value: str, source: PTXType, to: PTXType) -> str:
    """Return the nearest number of type *to*, in the width of *source*."""
    lowest = -(1 << to.bits - 1) if to.is_signed else 0
    highest = (1 << to.bits - to.is_signed) - 1
    if source.is_signed and lowest > -(1 << source.bits - 1):
        value = f.intrinsic("smax", source.llvm, value, str(lowest))
    if highest < (1 << source.bits - source.is_signed) - 1:
        value = f.intrinsic("smin" if source.is_signed else "umin", source.llvm, value, str(highest))
    return value


@form("cvt", rf"\.(?P<round>rn|rz|rm|rp)(?P<sat>\.sat)?\.(?P<to>{_FLOAT})\.(?P<type>{_INT})")
def integer_to_float(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    to, source = _types(m)
    value, mode = f.value(i.operands[1], source), m["round"] or ""
    operation = "sitofp" if source.is_signed else "uitofp"
    if to.bits == 16:
        wide = f.resize(value, source.bits, 64, signed=source.is_signed)
        number = f.call(f"{'s' if source.is_signed else 'u'}64_to_odd_f64", wide)
        result = f.call(f"narrow_{to.name}", number, str(_MODES[mode]))
    elif mode == "rn":
        result = f.temporary(f"{operation} {source.llvm} {value} to {to.llvm}")
    else:
        if source.bits < 32:
            value = f.resize(value, source.bits, 32, signed=source.is_signed)
        llvm = f"i{max(32, source.bits)}"
        result = convert_rounded(f, operation, mode, llvm, to.llvm, value)
    if m["sat"]:
        result = f.call(f"saturate_{to.name}", result)
    f.assign(i.operands[0], to, result)


def _as_float(f: FunctionBuilder, source: PTXType, value: str) -> tuple[str, str]:
    """Return half precision as float; the value and its LLVM type."""
    if source.bits == 16:
        return f.call(f"widen_{source.name}", value), "float"
    return value, source.llvm


@form("cvt", rf"\.(?P<round>rni|rzi|rmi|rpi)(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<to>{_INT})\.(?P<type>{_FLOAT})")
def float_to_integer(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """Numbers out of range become the nearest limit.

    NaN becomes 0; of double precision or in 64 bits, the number whose first bit alone is set.
    """
    to, source = _types(m)
    value, llvm = _as_float(f, source, f.value(i.operands[1], source))
    if m["ftz"]:
        if source.name != "f32":
            raise f.refuse()
        value = f.call("flush_f32", value)
    value = f.intrinsic(_INTEGRAL[m["round"] or ""], llvm, value)
    suffix = {"float": "f32", "double": "f64"}[llvm]
    name = f"@llvm.fpto{'s' if to.is_signed else 'u'}i.sat.{to.llvm}.{suffix}"
    f.declare(f"declare {to.llvm} {name}({llvm})")
    result = f.temporary(f"call {to.llvm} {name}({llvm} {value})")
    if 64 in (to.bits, source.bits):
        is_nan = f.temporary(f"fcmp uno {llvm} {value}, {value}")
        result = f.temporary(f"select i1 {is_nan}, {to.llvm} {-(1 << to.bits - 1)}, {to.llvm} {result}")
    f.assign(i.operands[0], to, result)


_BOTH = rf"\.(?P<to>{_FLOAT})\.(?P<type>{_FLOAT})"


@form("cvt", rf"(?:\.(?P<round>rni?|rzi?|rmi?|rpi?))?(?P<ftz>\.ftz)?(?P<relu>\.relu)?(?P<sat>\.sat)?{_BOTH}")
def float_to_float(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    to, source = _types(m)
    integral = _INTEGRAL.get(m["round"] or "")
    if (
        (m["ftz"] and "f32" not in (to.name, source.name))
        or (m["relu"] and to.bits != 16)
        or (integral and to != source)
    ):
        raise f.refuse()
    value = f.value(i.operands[1], source)
    if m["ftz"] and source.name == "f32":
        value = f.call("flush_f32", value)
    if integral:
        wide, llvm = _as_float(f, source, value)
        value = f.intrinsic(integral, llvm, wide)
        if source.bits == 16:
            value = f.call(f"narrow_{to.name}", f.temporary(f"fpext float {value} to double"), "0")
        elif to.name == "f32":
            value = f.call("canonical_f32", value)
    elif to != source or m["round"]:
        original, value = value, _convert_float(f, value, source, to, m["round"])
        if m["ftz"] and source.bits == 64:
            scaled = f.temporary(f"fmul double {original}, 0x41F0000000000000")
            value = f.call("flush_tiny_f32", value, _convert_float(f, scaled, source, to, m["round"]))
    elif to.name == "f32":
        value = f.call("canonical_f32", value)
    if m["ftz"] and to.name == "f32":
        value = f.call("flush_f32", value)
    for key, name in (("sat", "saturate"), ("relu", "relu")):
        if m[key]:
            value = f.call(f"{name}_{to.name}", value)
    f.assign(i.operands[0], to, value)


def _convert_float(f: FunctionBuilder, value: str, source: PTXType, to: PTXType, mode: str | None) -> str:
    value, llvm = _as_float(f, source, value)
    if to.bits == 16:
        if llvm == "double":
            return f.call(f"narrow_f64_to_{to.name}", value, str(_MODES[mode]))
        return f.call(f"narrow_{to.name}", f.temporary(f"fpext float {value} to double"), str(_MODES[mode]))
    if llvm == to.llvm:
        return value if source.name == "bf16" else f.call("canonical_f32", value)
    if to.bits == 64:
        return f.temporary(f"fpext float {value} to double")
    if mode in (None, "rn"):
        return f.temporary(f"fptrunc double {value} to float")
    return convert_rounded(f, "fptrunc", mode, "double", "float", value)


@form("cvt", r"\.(?P<round>rn|rz)(?P<relu>\.relu)?\.(?P<to>f16x2|bf16x2)\.f32")
def floats_to_pair(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    one = (m["to"] or "").removesuffix("x2")
    types = ptx_type("f32"), ptx_type(one)
    halves = [_convert_float(f, f.value(operand, "f32"), *types, m["round"]) for operand in i.operands[1:]]
    if m["relu"]:
        halves = [f.call(f"relu_{one}", half) for half in halves]
    f.assign(i.operands[0], "b32", f.pack(halves, 16))


_OF_8_BITS = {"e4m3": ("3", "7", "126"), "e5m2": ("2", "15", "123")}  # the mantissa's bits, the bias, the largest


@form("cvt", r"\.rn\.satfinite(?P<relu>\.relu)?\.(?P<to>e4m3|e5m2)x2\.(?P<type>f32|f16x2)")
def pair_to_bytes(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """The first operand, or the upper half, becomes the upper byte."""
    if m["type"] == "f32":
        floats = [f.value(operand, "f32") for operand in i.operands[1:]]
    else:
        floats = [f.call("widen_f16", half) for half in f.unpack(f.value(i.operands[1], "b32"), 16)]
    parts = []
    for value in floats:
        value = f.temporary(f"fpext float {value} to double")
        if m["relu"]:
            is_negative = f.temporary(f"fcmp ole double {value}, 0.0")
            value = f.temporary(f"select i1 {is_negative}, double 0.0, double {value}")
        parts.append(f.call("narrow_8", value, *_OF_8_BITS[m["to"] or ""]))
    f.assign(i.operands[0], "b16", f.pack(parts, 8))


@form("cvt", r"\.rn(?P<relu>\.relu)?\.f16x2\.(?P<type>e4m3|e5m2)x2")
def bytes_to_pair(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    halves = [f.call(f"widen_{m['type']}", half) for half in f.unpack(f.value(i.operands[1], "b16"), 8)]
    if m["relu"]:
        halves = [f.call("relu_f16", half) for half in halves]
    f.assign(i.operands[0], "b32", f.pack(halves, 16))


@form("cvt", r"\.(?P<round>rna|rn|rz)\.tf32\.f32")
def float_to_tf32(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    value = f.value(i.operands[1], "f32")
    f.assign(i.operands[0], "b32", f.call("to_tf32", value, str(_MODES[m["round"]])))
