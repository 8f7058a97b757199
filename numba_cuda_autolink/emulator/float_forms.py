# SPDX-License-Identifier: BSD-2-Clause
"""Floating arithmetic, its roundings, and approximations. The processor's rounding mode changes for one operation."""

from __future__ import annotations

from collections.abc import Callable

from .floats import NEAREST
from .forms import Handler, Modifiers, computes, form
from .function_builder import FunctionBuilder, Value
from .ir_text import SUFFIXES
from .ptx_types import PTXType, ptx_type

_ROUND = r"(?:\.(?P<round>rn|rz|rm|rp))?"
_FTZ = r"(?P<ftz>\.ftz(?!.*\.bf16))?"
_SAT = r"(?P<sat>\.sat)?"
_HALVES = "f16|bf16|f16x2|bf16x2"


def elementwise(compute: Callable[..., str]) -> Handler:
    """Make a handler of a function of a type and values: operands are flushed and the result clamped as modifiers say.

    Halves, also the two of a pair, are computed as ``f64``.
    """

    @computes("type")
    def apply(f: FunctionBuilder, m: Modifiers, *operands: Value) -> str:
        type = operands[0].type
        is_pair = type.kind.endswith("x2")
        one = ptx_type(type.kind[:-2]) if is_pair else type
        computed = ptx_type("f64") if one.bits == 16 else one
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
_OPERATIONS |= {"fma": "fma", "sqrt": "sqrt"}


@form("add sub mul mad", rf"{_ROUND}{_FTZ}{_SAT}\.(?P<type>f32)")
@form("add sub mul", rf"{_ROUND}\.(?P<type>f64)")
@form("fma", rf"\.(?P<round>rn|rz|rm|rp){_FTZ}{_SAT}\.(?P<type>f32)")
@form("div rcp sqrt", rf"\.(?P<round>rn|rz|rm|rp){_FTZ}\.(?P<type>f32)")
@form("div rcp sqrt fma mad", r"\.(?P<round>rn|rz|rm|rp)\.(?P<type>f64)")
@form("div", rf"\.full{_FTZ}\.(?P<type>f32)")
@form("div rcp sqrt", rf"\.approx{_FTZ}\.(?P<type>f32)")
@elementwise
def arithmetic(f: FunctionBuilder, m: Modifiers, type: PTXType, *operands: str) -> str:
    operation, mode = _OPERATIONS[m["name"]], m.get("round", "")
    if m["name"] == "rcp":
        operands = ("1.0", *operands)
    result = rounded(f, operation, mode, type, *operands)
    if m.get("ftz") and operation in ("fmul", "fdiv", "fma"):  # other results that are subnormal are exact
        scaled = [f.temporary(f"fmul float {each}, 0x41F0000000000000") for each in operands[::2]]
        factors = [scaled[0], operands[1], *scaled[1:]]
        result = f.call("flush_tiny_f32", result, rounded(f, operation, mode, type, *factors))
    return result


@form("add sub mul", rf"(?:\.rn)?{_FTZ}{_SAT}\.(?P<type>{_HALVES})")
@form("fma", rf"\.rn{_FTZ}(?:{_SAT}|(?P<relu>\.relu))\.(?P<type>{_HALVES})")
@elementwise
def half_arithmetic(f: FunctionBuilder, m: Modifiers, type: PTXType, a: str, b: str, *more: str) -> str:
    """Each is a product and a sum."""
    terms = {"add": (a, "1.0", b), "sub": (b, "-1.0", a), "mul": (a, b, "-0.0"), "fma": (a, b, *more)}
    x, y, z = terms[m["name"]]
    return f.call("add_to_odd", f.temporary(f"fmul double {x}, {y}"), z)


@form("ex2 lg2 sin cos rsqrt", rf"\.approx{_FTZ}\.(?P<type>f32)")
@form("rsqrt", r"\.approx\.(?P<type>f64)")
@form("rcp rsqrt", r"\.approx(?P<ftz>\.ftz)\.(?P<type>f64)")
@form("tanh", rf"\.approx\.(?P<type>f32|{_HALVES})")
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
@form("abs neg", rf"{_FTZ}\.(?P<type>f32|{_HALVES})")
@form("min max", rf"{_FTZ}(?P<nan>\.NaN)?(?P<xorsign>\.xorsign\.abs)?\.(?P<type>f32|{_HALVES})")
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


def rounded(f: FunctionBuilder, operation: str, mode: str, type: PTXType, *operands: str) -> str:
    """Return the result of *operation* on *operands*, rounded as *mode* (``rn``, ``rz``, ``rm``, ``rp``) says."""
    llvm = type.llvm
    if mode not in ("", "rn"):
        result = _call_rounded(f, mode, f"{operation}.f{type.bits}", llvm, *(f"{llvm} {each}" for each in operands))
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
    if mode in ("", "rn"):
        return f.temporary(f"{operation} {source} {value} to {target}")
    intrinsic = f"{operation}.{SUFFIXES[target]}.{SUFFIXES.get(source, source)}"
    return _call_rounded(f, mode, intrinsic, target, f"{source} {value}")


def _call_rounded(f: FunctionBuilder, mode: str, intrinsic: str, result: str, *operands: str) -> str:
    """Call a function that sets the rounding mode for the constrained *intrinsic*; *operands* are after their types."""
    name, constrained = f"@rounded.{intrinsic}.{mode}", f"@llvm.experimental.constrained.{intrinsic}"
    types = [operand.partition(" ")[0] for operand in operands]
    f.declarations.add(f"declare {result} {constrained}({', '.join(types)}, metadata, metadata)")
    f.declarations.add("declare void @llvm.set.rounding(i32)")
    parameters = ", ".join(f"{type} %{k}" for k, type in enumerate(types))
    f.program.helpers[name] = f"""define internal {result} {name}({parameters}) noinline nounwind strictfp {{
 call void @llvm.set.rounding(i32 {_MODES[mode]}) strictfp
 %r = call {result} {constrained}({parameters}, metadata !"round.dynamic", metadata !"fpexcept.strict") strictfp
 call void @llvm.set.rounding(i32 1) strictfp
 ret {result} %r
}}
"""
    return f.call_symbol(result, name, *operands)
