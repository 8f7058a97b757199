# SPDX-License-Identifier: BSD-2-Clause
"""Floating arithmetic, its roundings, and approximations."""

from __future__ import annotations

from . import floats
from .forms import Modifiers, form, type_of
from .function_builder import FunctionBuilder
from .parser import Instruction
from .ptx_types import PTXType, ptx_type
from .rounding import rounded

_ROUND = r"(?:\.(?P<round>rn|rz|rm|rp))?"
_FTZ = r"(?P<ftz>\.ftz)?"
_SAT = r"(?P<sat>\.sat)?"
_OPERATIONS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "rcp": "fdiv", "mad": "fma"}
_OPERATIONS |= {"fma": "fma", "sqrt": "sqrt"}


def flush(f: FunctionBuilder, m: Modifiers, type: PTXType, value: str) -> str:
    """Flush a subnormal number where the instruction says so."""
    if not m.get("ftz"):
        return value
    return f.call(f"flush_{type.name}", value)


def _finish(f: FunctionBuilder, i: Instruction, m: Modifiers, type: PTXType, result: str) -> None:
    """Flush, make NaN canonical, clamp, and assign."""
    result = flush(f, m, type, result)
    if m.get("sat"):
        result = f.call(f"saturate_{type.name}", result)
    elif type.name == "f32":
        result = f.call("canonical_f32", result)
    f.assign(i.operands[0], type, result)


def _operands(f: FunctionBuilder, i: Instruction, m: Modifiers, type: PTXType) -> list[str]:
    return [flush(f, m, type, f.value(operand, type)) for operand in i.operands[1:]]


@form("add sub mul mad", rf"{_ROUND}{_FTZ}{_SAT}\.(?P<type>f32)")
@form("add sub mul", rf"{_ROUND}\.(?P<type>f64)")
@form("fma", rf"\.(?P<round>rn|rz|rm|rp){_FTZ}{_SAT}\.(?P<type>f32)")
@form("div rcp sqrt", rf"\.(?P<round>rn|rz|rm|rp){_FTZ}\.(?P<type>f32)")
@form("div rcp sqrt fma mad", r"\.(?P<round>rn|rz|rm|rp)\.(?P<type>f64)")
@form("div", rf"\.full{_FTZ}\.(?P<type>f32)")
@form("div rcp sqrt", rf"\.approx{_FTZ}\.(?P<type>f32)")
def arithmetic(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    type, first = type_of(m), ["1.0"] if m["name"] == "rcp" else []
    operands = [*first, *_operands(f, i, m, type)]
    _finish(f, i, m, type, rounded(f, _OPERATIONS[m["name"] or ""], m.get("round"), type, *operands))


@form("rcp rsqrt", r"\.approx\.ftz\.f64")
def coarse_approximation(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.assign(i.operands[0], "f64", f.call(f"{m['name']}_ftz_f64", f.value(i.operands[1], "f64")))


_APPROXIMATIONS = {"ex2": "exp2", "lg2": "log2", "sin": "sin", "cos": "cos", "tanh": "tanh", "rsqrt": "rsqrt"}


@form("ex2 lg2 sin cos rsqrt", rf"\.approx{_FTZ}\.(?P<type>f32)")
@form("rsqrt", r"\.approx\.(?P<type>f64)")
@form("tanh", r"\.approx\.(?P<type>f32|f16|bf16|f16x2|bf16x2)")
@form("ex2", r"\.approx\.(?P<type>f16|f16x2)")
@form("ex2", r"\.approx(?P<ftz>\.ftz)\.(?P<type>bf16|bf16x2)")
def approximation(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    type, name = type_of(m), _APPROXIMATIONS[m["name"] or ""]
    if type.kind in ("f16x2", "bf16x2"):
        half = ptx_type(type.kind[:-2])
        _pairwise(f, i, type, lambda x: flush(f, m, half, f.call(f"{name}_{half.name}", x)))
        return
    operands = _operands(f, i, m, type)
    if type.name == "f32" and name in ("exp2", "log2", "sin", "cos"):
        wide = f.intrinsic(name, "double", f.temporary(f"fpext float {operands[0]} to double"))
        result = f.temporary(f"fptrunc double {wide} to float")
    else:
        result = f.call(f"{name}_{type.name}", *operands)
    _finish(f, i, m, type, result)


@form("abs neg", rf"{_FTZ}\.(?P<type>f32)")
@form("abs neg", r"\.(?P<type>f64)")
def sign(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    type = type_of(m)
    f.assign(i.operands[0], type, f.call(f"{m['name']}_{type.name}", *_operands(f, i, m, type)))


@form("copysign", r"\.(?P<type>f32|f64)")
def copy_sign(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    type = type_of(m)
    a, b = _operands(f, i, m, type)
    f.assign(i.operands[0], type, f.intrinsic("copysign", type.llvm, b, a))


@form("min max", rf"{_FTZ}(?P<nan>\.NaN)?(?P<xorsign>\.xorsign\.abs)?\.(?P<type>f32)")
@form("min max", r"\.(?P<type>f64)")
def extreme(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    type = type_of(m)
    values = _operands(f, i, m, type)
    sign = None
    if m.get("xorsign"):
        bits = [f.to_bits(v, type) for v in values]
        sign = f.temporary(f"xor i32 {bits[0]}, {bits[1]}")
        sign = f.temporary(f"and i32 {sign}, -2147483648")
        values = [f.intrinsic("fabs", type.llvm, v) for v in values]
    result = values[0]
    for other in values[1:]:
        smaller = f.call(f"{m['name']}_{type.name}", result, other)
        if m.get("nan"):
            unordered = f.temporary(f"fcmp uno float {result}, {other}")
            nan = f.from_bits(str(floats.NAN_32), type)
            smaller = f.temporary(f"select i1 {unordered}, float {nan}, float {smaller}")
        result = smaller
    if sign is not None:
        signed = f.from_bits(f.temporary(f"or i32 {f.to_bits(result, type)}, {sign}"), type)
        is_nan = f.temporary(f"fcmp uno float {result}, {result}")
        result = f.temporary(f"select i1 {is_nan}, float {result}, float {signed}")
    f.assign(i.operands[0], type, result)


# Zeros are normal, too
_CLASSES = {"finite": 0x1F8, "infinite": 0x204, "number": 0x3FC, "notanumber": 3, "normal": 0x168, "subnormal": 0x90}


@form("testp", rf"\.(?P<test>{'|'.join(_CLASSES)})\.(?P<type>f32|f64)")
def test_property(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    type = type_of(m)
    name = f"@llvm.is.fpclass.f{type.bits}"
    f.declare(f"declare i1 {name}({type.llvm}, i32 immarg)")
    value = f.value(i.operands[1], type)
    result = f.temporary(f"call i1 {name}({type.llvm} {value}, i32 {_CLASSES[m['test'] or '']})")
    f.assign(i.operands[0], "pred", result)


# Half precision


_HALF = r"\.(?P<type>f16|bf16|f16x2|bf16x2)"


def _pairwise(f: FunctionBuilder, i: Instruction, type: PTXType, operation: object) -> None:
    """Apply *operation* to the lower and the upper halves of the operands."""
    assert callable(operation)
    values = [f.value(operand, type) for operand in i.operands[1:]]
    if type.bits == 16:
        f.assign(i.operands[0], type, operation(*values))
        return
    results = [operation(*halves) for halves in zip(*(f.unpack(v, 16) for v in values), strict=True)]
    f.assign(i.operands[0], type, f.pack(results, 16))


@form("add sub mul", rf"(?:\.rn)?{_FTZ}{_SAT}{_HALF}")
@form("fma", rf"\.rn{_FTZ}(?:{_SAT}|(?P<relu>\.relu)){_HALF}")
@form("abs neg", rf"{_FTZ}{_HALF}")
@form("min max", rf"{_FTZ}(?P<nan>\.NaN)?(?P<xorsign>\.xorsign\.abs)?{_HALF}")
def half_arithmetic(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    type = type_of(m)
    one = type.kind.removesuffix("x2") if type.bits == 32 else type.name
    if one == "bf16" and m.get("ftz"):
        raise f.refuse()

    def apply(*values: str) -> str:
        if m.get("ftz"):
            values = tuple(f.call("flush_f16", v) for v in values)
        sign = None
        if m.get("xorsign"):
            sign = f.temporary(f"and i16 {f.temporary(f'xor i16 {values[0]}, {values[1]}')}, -32768")
            values = tuple(f.temporary(f"and i16 {v}, 32767") for v in values)
        result = f.call(f"{m['name']}_{one}", *values)
        if m.get("nan"):
            infinity = 0x7C00 if one == "f16" else 0x7F80
            for v in values:
                magnitude = f.temporary(f"and i16 {v}, 32767")
                is_nan = f.temporary(f"icmp ugt i16 {magnitude}, {infinity}")
                result = f.temporary(f"select i1 {is_nan}, i16 {floats.NAN_16}, i16 {result}")
        if m.get("ftz"):
            result = f.call("flush_f16", result)
        if sign is not None:
            is_nan = f.temporary(f"icmp ugt i16 {result}, {0x7C00 if one == 'f16' else 0x7F80}")
            result = f.temporary(f"select i1 {is_nan}, i16 {result}, i16 {f.temporary(f'or i16 {result}, {sign}')}")
        for key, name in (("sat", "saturate"), ("relu", "relu")):
            if m.get(key):
                result = f.call(f"{name}_{one}", result)
        return result

    _pairwise(f, i, type, apply)
