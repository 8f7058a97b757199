# SPDX-License-Identifier: BSD-2-Clause
"""Integers, bits, predicates, comparisons, selections and moves: native functions, and forms that LLVM has."""
# ruff: noqa: F811, F821
# mypy: disable-error-code="name-defined"

from __future__ import annotations

from .forms import Modifiers, computes, form, instruction
from .function_builder import FunctionBuilder, Value
from .native import T, U, W, i32, native, u32, u64
from .parser import TYPES, Instruction, split_operands

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


@native()
def shf(a: u32, b: u32, count: u32, to_left: bool) -> u32:
    wide = u64(b) << 32 | u64(a)
    return u32(wide << u64(count) >> 32) if to_left else u32(wide >> u64(count))


@native()
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


_INT = r"\.(?P<type>[us](?:16|32|64))"
_BITS = r"\.(?P<type>b(?:16|32|64)|pred)"


@form("add sub", _INT)
@form("neg", r"\.(?P<type>s(?:16|32|64))")
@form("and or xor not", _BITS)
@computes("type")
def simple_integer(f: FunctionBuilder, m: Modifiers, a: Value, b: str = "-1") -> str:
    """Forms that are one instruction of LLVM."""
    name = {"not": "xor", "neg": "mul"}.get(m["name"], m["name"])
    return f.temporary(f"{name} {a.type.llvm} {a}, {b}")


_CARRY = "carry"


def add_with_carry(f: FunctionBuilder, m: Modifiers, a: Value, b: str) -> str:
    """Add or subtract in twice the width; the register of the carry holds a borrow after a subtraction."""
    f.function.registers[_CARRY] = "pred"
    name, type, wide = m["name"], a.type, f"i{a.type.bits * 2}"
    operation = "sub" if name.startswith("sub") else "add"
    x, y = (f.temporary(f"zext {type.llvm} {v} to {wide}") for v in (a, b))
    result = f.temporary(f"{operation} {wide} {x}, {y}")
    if name.endswith("c"):
        carry = f.temporary(f"zext i1 {f.value(_CARRY, 'pred')} to {wide}")
        result = f.temporary(f"{operation} {wide} {result}, {carry}")
    result, upper = f.split(result, type.bits, 2)
    if m["out"]:
        f.assign(_CARRY, "pred", f.temporary(f"trunc {type.llvm} {upper} to i1"))
    return result


form("add addc sub subc", r"(?P<out>\.cc)?\.(?P<type>[us](?:32|64))")(computes("type")(add_with_carry))


@form("mul mad", rf"\.(?P<part>lo|hi|wide){_INT}")
@form("mad", r"\.(?P<part>hi)\.(?P<sat>sat)\.(?P<type>s32)")
@form("mad madc", r"\.(?P<part>lo|hi)(?P<out>\.cc)?\.(?P<type>[us](?:32|64))")
@form("mul24 mad24", r"\.(?P<part>lo|hi)\.(?P<type>[us]32)")
def multiply(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """Of 24 bits, the upper part is the product's without the lower 16 bits."""
    type, part, name = TYPES[m["type"]], m["part"], m["name"]
    if part == "wide" and type.bits == 64:
        raise f.refuse()
    result = TYPES[f"{type.kind}{type.bits * 2}"] if part == "wide" else type
    wide, factors = f"i{type.bits * 2}", []
    for operand in i.operands[1:3]:
        factor = f.resize(f.value(operand, type), type.bits, 2 * type.bits, signed=type.is_signed)
        if name.endswith("24"):
            factor = f.temporary(f"shl {wide} {factor}, 40")
            factor = f.temporary(f"{'ashr' if type.is_signed else 'lshr'} {wide} {factor}, 40")
        factors.append(factor)
    product = f.temporary(f"mul {wide} {factors[0]}, {factors[1]}")
    if part == "hi":
        product = f.temporary(f"lshr {wide} {product}, {16 if name.endswith('24') else type.bits}")
    product = f.resize(product, 2 * type.bits, result.bits)
    if name.startswith("mad"):
        c = f.value(i.operands[3], result)
        if m.get("sat"):
            product = f.intrinsic("sadd.sat", "i32", product, c)
        elif m.get("out") or name == "madc":
            product = add_with_carry(f, m, c, product)
        else:
            product = f.temporary(f"add {result.llvm} {product}, {c}")
    f.assign(i.operands[0], result, product)


@form("shl", r"\.(?P<type>b(?:16|32|64))")
@form("shr", r"\.(?P<type>[bus](?:16|32|64))")
@computes("type", "type", "u32")
def shift(f: FunctionBuilder, m: Modifiers, value: Value, amount: str) -> str:
    """Shifts beyond the width leave zeros, or copies of the sign."""
    type = value.type
    operation = "shl" if m["name"] == "shl" else "ashr" if type.is_signed else "lshr"
    clamped = f.intrinsic("umin", "i32", amount, str(type.bits - 1))
    result = f.temporary(f"{operation} {type.llvm} {value}, {f.resize(clamped, 32, type.bits)}")
    if type.is_signed:
        return result
    inside = f.temporary(f"icmp ult i32 {amount}, {type.bits}")
    return f.temporary(f"select i1 {inside}, {type.llvm} {result}, {type.llvm} 0")


@form("shf", r"\.(?P<kind>[lr])\.(?P<limit>clamp|wrap)\.b32")
@form("bmsk", r"\.(?P<limit>clamp|wrap)\.b32")
@form("szext", r"\.(?P<limit>clamp|wrap)\.(?P<kind>[us]32)")
@computes("u32")
def native_words(f: FunctionBuilder, m: Modifiers, *operands: str) -> str:
    """Forms of 32 bits, whose counts wrap or end at 32; masks and extensions are fields of bits."""
    values, name = list(operands), m["name"]
    for k in range({"bmsk": 0, "szext": 1, "shf": 2}[name], len(values)):
        limited = m["limit"] == "clamp"
        values[k] = f.intrinsic("umin", "i32", values[k], "32") if limited else f.temporary(f"and i32 {values[k]}, 31")
    if name == "bmsk":
        return f.call("bfi_b32", "-1", "0", *values)
    if name == "szext":
        return f.call(f"bfe_{m['kind']}", values[0], "0", values[1])
    return f.call("shf", *values, m["kind"] == "l")


# The selectors of bytes that each mode stands for: of the numbers 0 to 3, from the lower end on
_SELECTORS = {
    "f4e": 0x6543_5432_4321_3210,
    "b4e": 0x0123_7012_6701_5670,
    "rc8": 0x3333_2222_1111_0000,
    "ecl": 0x3333_3222_3211_3210,
    "ecr": 0x3210_2210_1110_0000,
    "rc16": 0x3232_1010_3232_1010,
}


@form("prmt", r"\.b32(?:\.(?P<mode>f4e|b4e|rc8|ecl|ecr|rc16))?")
@computes("u32")
def permute_bytes(f: FunctionBuilder, m: Modifiers, a: str, b: str, selector: str) -> str:
    if m["mode"]:
        number = f.resize(f.temporary(f"and i32 {selector}, 3"), 32, 64)
        selectors = f.temporary(f"lshr i64 {_SELECTORS[m['mode']]}, {f.temporary(f'shl i64 {number}, 4')}")
        selector = f.resize(selectors, 64, 32)
    return f.call("prmt", a, b, selector)


@form("lop3", r"\.b32")
@computes("u32")
def logic_of_three(f: FunctionBuilder, m: Modifiers, a: str, b: str, c: str, table: str) -> str:
    if not table.isdigit():
        raise f.refuse("the table is not a constant")
    result = "0"
    for k in range(8):
        if int(table) >> k & 1:
            x, y, z = (v if k & bit else f.temporary(f"xor i32 {v}, -1") for v, bit in ((a, 4), (b, 2), (c, 1)))
            term = f.temporary(f"and i32 {f.temporary(f'and i32 {x}, {y}')}, {z}")
            result = f.temporary(f"or i32 {result}, {term}")
    return result


@form("dp4a", r"\.(?P<a>[us]32)\.(?P<b>[us]32)")
@form("dp2a", r"\.(?P<part>lo|hi)\.(?P<a>[us]32)\.(?P<b>[us]32)")
@computes("u32")
def dot_product(f: FunctionBuilder, m: Modifiers, a: str, b: str, c: str) -> str:
    """Return the sum of *c* and the products of four bytes, or of two halves and the lower or upper two bytes."""
    count, first = 4 if m["name"] == "dp4a" else 2, 2 if m.get("part") == "hi" else 0
    for x, y in zip(f.split(a, 32 // count, count), f.split(b, 8, 4)[first:], strict=False):
        x = f.resize(x, 32 // count, 32, signed=m["a"] == "s32")
        y = f.resize(y, 8, 32, signed=m["b"] == "s32")
        c = f.temporary(f"add i32 {c}, {f.temporary(f'mul i32 {x}, {y}')}")
    return c


_INTRINSICS = {"popc": "ctpop", "clz": "ctlz", "brev": "bitreverse", "abs": "abs"}


@form("min max", _INT)
@form("add sub", r"(?P<sat>\.sat)\.(?P<type>s32)")
@form("abs", r"\.(?P<type>s(?:16|32|64))")
@form("popc clz brev", r"\.(?P<type>b(?:32|64))")
@computes("type")
def intrinsic(f: FunctionBuilder, m: Modifiers, a: Value, *more: str) -> str:
    """Forms that are intrinsics of LLVM."""
    name = _INTRINSICS.get(m["name"]) or f"{a.type.kind}{m['name']}{m.get('sat', '')}"
    return f.intrinsic(name, a.type.llvm, a, *more)


@form("mov", r"\.(?P<type>pred|[bus](?:16|32|64)|f32|f64|b128)")
def move(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    type = TYPES[m["type"]]
    target, source = i.operands
    whole = type if type.bits == 1 else TYPES[f"b{type.bits}"]
    parts = split_operands(next((each for each in i.operands if each[0] == "{"), "").strip("{}"))
    if not parts:
        f.assign(target, whole, f.bits(source, type))
        return
    part = TYPES[f"b{type.bits // len(parts)}"]
    if target[0] == "{":
        for name, value in zip(parts, f.split(f.bits(source, type), part.bits, len(parts)), strict=True):
            f.assign(name, part, value)
    else:
        f.assign(target, whole, f.join([f.bits(name, part) for name in parts], part.bits))


_SELECTED = r"\.(?P<type>[bus](?:16|32|64)|f32|f64)"


@form("selp", _SELECTED)
@form("slct", rf"(?P<ftz>\.ftz(?=.*\.f32$))?{_SELECTED}\.(?P<by>s32|f32)")
def select(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """Select by a predicate, or by the sign of a number."""
    type = TYPES[m["type"]]
    a, b = (f.bits(operand, type) for operand in i.operands[1:3])
    condition: str = f.value(i.operands[3], m.get("by") or "pred")
    if m.get("ftz"):
        condition = f.call("flush_f32", condition)
    if m.get("by"):
        test = "icmp sge i32 {}, 0" if m["by"] == "s32" else "fcmp oge float {}, 0.0"
        condition = f.temporary(test.format(condition))
    result = f.temporary(f"select i1 {condition}, {type.integer} {a}, {type.integer} {b}")
    f.assign(i.operands[0], TYPES[f"b{type.bits}"], result)


_UNSIGNED_TESTS = {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}
_FLOAT_TESTS = {f"{test}u": f"u{test}" for test in ("eq", "ne", "lt", "le", "gt", "ge")} | {"num": "ord", "nan": "uno"}
_COMPARISON = r"\.(?P<test>eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan)"
_COMBINED = r"(?:\.(?P<combine>and|or|xor))?(?P<ftz>\.ftz)?"
_COMPARED = r"\.(?P<type>[bus](?:16|32|64)|f16|f32|f64|bf16)"


@form("setp", rf"{_COMPARISON}{_COMBINED}{_COMPARED}")
@form("set", rf"{_COMPARISON}{_COMBINED}\.(?P<result>u32|s32|f32|f16|bf16|u16){_COMPARED}")
def compare(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """A second target gets the inverse, which is combined as the result is."""
    type, test = TYPES[m["type"]], m["test"]
    is_float, llvm = type.kind in ("f", "bf"), type.llvm
    if test in (_UNSIGNED_TESTS if is_float else _FLOAT_TESTS) or (m["ftz"] and type.name not in ("f16", "f32")):
        raise f.refuse()
    values: list[str] = [f.value(operand, type) for operand in i.operands[1:3]]
    if is_float and type.bits == 16:
        values, llvm = [f.call(f"widen_{type.name}", v) for v in values], "double"
    if m["ftz"]:
        values = [f.call(f"flush_{type.name}", v) for v in values]
    if is_float:
        test = _FLOAT_TESTS.get(test, f"o{test}")
    elif test not in ("eq", "ne"):
        test = _UNSIGNED_TESTS.get(test) or f"{'s' if type.is_signed else 'u'}{test}"
    result = f.temporary(f"{'fcmp' if is_float else 'icmp'} {test} {llvm} {', '.join(values)}")
    results = [result, f.temporary(f"xor i1 {result}, true")]
    if m["combine"]:
        other = f.value(i.operands[3], "pred")
        results = [f.temporary(f"{m['combine']} i1 {each}, {other}") for each in results]
    if m["name"] == "setp":
        for target, each in zip(i.operands[0].split("|"), results, strict=False):
            f.assign(target.strip(), "pred", each)
        return
    type = TYPES[m["result"]]
    one = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(type.name, -1)
    bits = f.temporary(f"select i1 {results[0]}, {type.integer} {one}, {type.integer} 0")
    f.assign(i.operands[0], TYPES[f"b{type.bits}"], bits)
