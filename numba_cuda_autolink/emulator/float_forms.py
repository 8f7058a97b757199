# SPDX-License-Identifier: BSD-2-Clause
"""Floating arithmetic, its roundings, and approximations. The processor's rounding mode changes for one operation."""

from __future__ import annotations

from . import floats
from .forms import Modifiers, form, type_of
from .function_builder import FunctionBuilder
from .parser import Instruction
from .ptx_types import PTXType, ptx_type

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
    operands, operation = [*first, *_operands(f, i, m, type)], _OPERATIONS[m["name"] or ""]
    result = rounded(f, operation, m.get("round"), type, *operands)
    if m.get("ftz") and operation in ("fmul", "fdiv", "fma"):  # other results that are subnormal are exact
        scaled = [f.temporary(f"fmul float {each}, 0x41F0000000000000") for each in operands[::2]]
        factors = [scaled[0], operands[1], *scaled[1:]]
        result = f.call("flush_tiny_f32", result, rounded(f, operation, m.get("round"), type, *factors))
    _finish(f, i, m, type, result)


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


@form("copysign", r"\.(?P<type>f32|f64)")
def copy_sign(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    type = type_of(m)
    a, b = _operands(f, i, m, type)
    f.assign(i.operands[0], type, f.intrinsic("copysign", type.llvm, b, a))


@form("rcp rsqrt", r"\.approx(?P<coarse>\.ftz)\.(?P<type>f64)")
@form("abs neg", rf"{_FTZ}\.(?P<type>f32)")
@form("min max", rf"{_FTZ}(?P<nan>\.NaN)?(?P<xorsign>\.xorsign\.abs)?\.(?P<type>f32)")
@form("abs neg min max", r"\.(?P<type>f64)")
def native_float(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """Forms that are native functions."""
    type, name = type_of(m), f"{m['name']}_ftz" if m.get("coarse") else m["name"]
    values = _operands(f, i, m, type)
    result = _extreme(f, m, type, values) if name in ("min", "max") else f.call(f"{name}_{type.name}", *values)
    f.assign(i.operands[0], type, result)


def _extreme(f: FunctionBuilder, m: Modifiers, type: PTXType, values: list[str]) -> str:
    """Return the least or the greatest of *values*; ``.NaN`` lets NaN win, ``.xorsign`` gives it the sign of the
    product."""
    integer, highest = type.integer, (1 << type.bits - 1) - 1

    def keep_nan(one: str, other: str) -> str:
        magnitude = f.temporary(f"and {integer} {f.to_bits(one, type)}, {highest}")
        is_nan = f.temporary(f"icmp ugt {integer} {magnitude}, {getattr(floats, f'INFINITY_{type.name}')}")
        nan = f.call(f"{m['name']}_{type.name}", one, one)
        return f.temporary(f"select i1 {is_nan}, {type.llvm} {nan}, {type.llvm} {other}")

    if m.get("xorsign"):
        bits = [f.to_bits(v, type) for v in values]
        sign = f.temporary(f"and {integer} {f.temporary(f'xor {integer} {bits[0]}, {bits[1]}')}, {-highest - 1}")
        values = [f.from_bits(f.temporary(f"and {integer} {v}, {highest}"), type) for v in bits]
    result = values[0]
    for other in values[1:]:
        extreme = f.call(f"{m['name']}_{type.name}", result, other)
        result = keep_nan(result, keep_nan(other, extreme)) if m.get("nan") else extreme
    if m.get("xorsign"):
        signed = f.temporary(f"or {integer} {f.to_bits(result, type)}, {sign}")
        result = keep_nan(result, f.from_bits(signed, type))
    return result


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
        if m["name"] in ("min", "max"):
            result = _extreme(f, m, ptx_type(one), list(values))
        else:
            exact = "_ftz" if m.get("ftz") and m["name"] in ("mul", "fma") else ""
            result = f.call(f"{m['name']}{exact}_{one}", *values)
        if m.get("ftz"):
            result = f.call("flush_f16", result)
        for key, name in (("sat", "saturate"), ("relu", "relu")):
            if m.get(key):
                result = f.call(f"{name}_{one}", result)
        return result

    _pairwise(f, i, type, apply)


# Rounding modes

_MODES = {"rz": 0, "rp": 2, "rm": 3}  # of LLVM's set.rounding; 1 is to nearest


def rounded(f: FunctionBuilder, operation: str, mode: str | None, type: PTXType, *operands: str) -> str:
    """Return the result of *operation* on *operands*, rounded as *mode* (``rn``, ``rz``, ``rm``, ``rp``) says."""
    llvm = type.llvm
    if mode not in (None, "rn"):
        name, types = f"{operation}.{mode}.{type.name}", [llvm] * len(operands)
        result = _call_wrapper(f, name, mode, f"{operation}.f{type.bits}", llvm, types, operands)
    elif operation in ("fma", "sqrt"):
        result = f.intrinsic(operation, llvm, *operands)
    else:
        result = f.temporary(f"{operation} {llvm} {operands[0]}, {operands[1]}")
    if type.bits == 64 and operation in ("fadd", "fsub", "fmul", "fma"):
        for operand in operands[:0:-1]:  # of several NaN, the second, then the third
            result = f.call("canonical_of_f64", result, operand)
    return result


def convert_rounded(f: FunctionBuilder, operation: str, mode: str, source: str, target: str, value: str) -> str:
    """Convert *value* from the LLVM type *source* to *target* with ``sitofp``, ``uitofp`` or ``fptrunc`` in *mode*."""
    suffix = {"float": "f32", "double": "f64"}
    intrinsic = f"{operation}.{suffix[target]}.{suffix.get(source, source)}"
    return _call_wrapper(f, f"{operation}.{mode}.{source}.{target}", mode, intrinsic, target, [source], (value,))


def _call_wrapper(
    f: FunctionBuilder, name: str, mode: str, intrinsic: str, result: str, types: list[str], operands: tuple[str, ...]
) -> str:
    intrinsic = f"@llvm.experimental.constrained.{intrinsic}"
    f.declare(f"declare {result} {intrinsic}({', '.join(types)}, metadata, metadata)")
    parameters = ", ".join(f"{type} %{k}" for k, type in enumerate(types))
    f.declare("declare void @llvm.set.rounding(i32)")
    f.program.helpers[name] = f"""define internal {result} @rounded.{name}({parameters}) noinline nounwind strictfp {{
 call void @llvm.set.rounding(i32 {_MODES[mode]}) strictfp
 %r = call {result} {intrinsic}({parameters}, metadata !"round.dynamic", metadata !"fpexcept.strict") strictfp
 call void @llvm.set.rounding(i32 1) strictfp
 ret {result} %r
}}
"""
    arguments = ", ".join(f"{t} {v}" for t, v in zip(types, operands, strict=True))
    return f.temporary(f"call {result} @rounded.{name}({arguments})")
