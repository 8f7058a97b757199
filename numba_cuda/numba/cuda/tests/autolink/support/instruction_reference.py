# SPDX-License-Identifier: BSD-2-Clause
"""What instructions compute, in Python's integers and fractions: slow, exact, and independent of the emulator."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from instruction_cases import Case, width_of

FORMATS = {"f16": (10, 5), "bf16": (7, 8), "f32": (23, 8), "f64": (52, 11)}
CANONICAL = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}
NAN = "nan"


def decode(bits: int, type: str):
    """Return the number that *bits* are: a Fraction with its sign, an infinity, or NaN."""
    mantissa_bits, exponent_bits = FORMATS[type]
    sign = -1 if bits >> (mantissa_bits + exponent_bits) & 1 else 1
    exponent = bits >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = bits & (1 << mantissa_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    if exponent == (1 << exponent_bits) - 1:
        return NAN if mantissa else sign * math.inf
    if exponent:
        mantissa |= 1 << mantissa_bits
    value = Fraction(mantissa) * Fraction(2) ** (max(exponent, 1) - bias - mantissa_bits)
    return -0.0 if sign < 0 and not value else sign * value


def encode(value, type: str, mode: str = "rn") -> int:
    """Return the bits of *value*, rounded as *mode* says."""
    mantissa_bits, exponent_bits = FORMATS[type]
    bias, sign_bit = (1 << exponent_bits - 1) - 1, 1 << mantissa_bits + exponent_bits
    infinity = (1 << exponent_bits) - 1 << mantissa_bits
    if value == NAN:
        return CANONICAL.get(type, 0x7FF8000000000000)
    negative = math.copysign(1, value) < 0 if isinstance(value, float) else value < 0
    sign = sign_bit if negative else 0
    if isinstance(value, float) and math.isinf(value):
        return sign | infinity
    magnitude = abs(Fraction(value))
    if not magnitude:
        return sign
    exponent = max(magnitude.numerator.bit_length() - magnitude.denominator.bit_length() - 1, -bias)
    while magnitude >= Fraction(2) ** (exponent + 1):
        exponent += 1
    exponent = max(exponent, 1 - bias)
    scaled = magnitude / Fraction(2) ** (exponent - mantissa_bits)
    kept, rest = divmod(scaled, 1)
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and kept % 2 == 1),
        "rz": False,
        "rm": negative and rest > 0,
        "rp": not negative and rest > 0,
    }[mode]
    kept = int(kept) + up
    bits = kept + ((exponent - 1 + bias) << mantissa_bits)
    if bits >= infinity:
        to_largest = mode == "rz" or (mode == "rm" and not negative) or (mode == "rp" and negative)
        bits = infinity - 1 if to_largest else infinity
    return sign | bits


def _is_zero(x) -> bool:
    return x != NAN and x == 0


def _is_negative(x) -> bool:
    return math.copysign(1, x) < 0 if isinstance(x, float) else x < 0


def _add(a, b, mode: str):
    if NAN in (a, b):
        return NAN
    if (isinstance(a, float) and math.isinf(a)) or (isinstance(b, float) and math.isinf(b)):
        total = float(a if isinstance(a, float) and math.isinf(a) else 0) + float(
            b if isinstance(b, float) and math.isinf(b) else 0
        )
        return NAN if math.isnan(total) else total
    total = Fraction(a) + Fraction(b)
    if total:
        return total
    if _is_zero(a) and _is_zero(b) and _is_negative(a) == _is_negative(b):
        return -0.0 if _is_negative(a) else Fraction(0)
    return -0.0 if mode == "rm" else Fraction(0)


def _signed(magnitude, negative: bool):
    if isinstance(magnitude, float):
        return -magnitude if negative else magnitude
    return (-0.0 if not magnitude else -magnitude) if negative else magnitude


def _multiply(a, b):
    if NAN in (a, b):
        return NAN
    negative = _is_negative(a) != _is_negative(b)
    infinite = any(isinstance(x, float) and math.isinf(x) for x in (a, b))
    if infinite:
        return NAN if _is_zero(a) or _is_zero(b) else _signed(math.inf, negative)
    return _signed(abs(Fraction(a) * Fraction(b)), negative)


def _divide(a, b):
    if NAN in (a, b):
        return NAN
    negative = _is_negative(a) != _is_negative(b)
    infinite = [isinstance(x, float) and math.isinf(x) for x in (a, b)]
    if all(infinite) or (_is_zero(a) and _is_zero(b)):
        return NAN
    if infinite[0] or _is_zero(b):
        return _signed(math.inf, negative)
    return _signed(Fraction(0) if infinite[1] else abs(Fraction(a) / Fraction(b)), negative)


def _square_root(a):
    """Return the root, to more digits than any format has."""
    if a == NAN or _is_zero(a):
        return a
    if _is_negative(a):
        return NAN
    if isinstance(a, float):
        return a
    scale = 1 << 2400
    root = math.isqrt(int(a * scale * scale))
    exact = Fraction(root, scale)
    return exact if exact * exact == a else exact + Fraction(1, scale * 4)


def _extreme(a, b, largest: bool):
    if NAN in (a, b):
        return b if a == NAN else a
    key = lambda x: (float(x) if isinstance(x, float) else x, not _is_negative(x))  # noqa: E731
    return max(a, b, key=key) if largest else min(a, b, key=key)


def _flush(x, type: str):
    exponent_bits = FORMATS[type][1]
    smallest = Fraction(2) ** (2 - (1 << exponent_bits - 1))
    if x == NAN or isinstance(x, float) or abs(x) >= smallest:
        return x
    return _signed(Fraction(0), _is_negative(x))


def _saturate(x):
    if x == NAN or _is_negative(x) or _is_zero(x):
        return Fraction(0)
    return Fraction(1) if x > 1 else x


def signed(bits: int, width: int) -> int:
    return bits - (1 << width) if bits >> (width - 1) & 1 else bits


_MODES = ("rn", "rz", "rm", "rp")
_COMPARISONS = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def float_result(case: Case, operands: list[int]) -> int | None:
    """Return the bits that a floating form gives, or None where this module does not know it."""
    name, *modifiers = case.form.split(".")
    type = modifiers[-1]
    mode = next((m for m in modifiers if m in _MODES), "rn")
    unknown = {"approx", "relu", "NaN", "xorsign", "tf32"} & set(modifiers) or (name == "cvt" and "ftz" in modifiers)
    if type.endswith("x2") or unknown or name in ("mov", "selp", "atom", "set", "slct", "testp"):
        return None
    values = [decode(bits, type) for bits in operands] if type in FORMATS else []
    ftz = "ftz" in modifiers
    if ftz:
        values = [_flush(v, type) for v in values]
    if name == "setp" and type in FORMATS:
        return _compare(modifiers[0], *values)
    if name == "cvt":
        return _convert(modifiers, operands[0], mode)
    if type not in FORMATS:
        return None
    if name == "neg" or name == "abs" or name == "copysign":
        top = 1 << width_of(type) - 1
        if name == "copysign":
            return operands[1] & ~top | operands[0] & top
        if values[0] == NAN and type in CANONICAL:
            return CANONICAL[type]
        if ftz:
            operands = [encode(v, type) for v in values]
        return operands[0] ^ top if name == "neg" else operands[0] & ~top
    functions = {
        "add": lambda: _add(*values, mode), "sub": lambda: _add(values[0], _negate(values[1]), mode),
        "mul": lambda: _multiply(*values), "div": lambda: _divide(*values),
        "fma": lambda: _add(_multiply(*values[:2]), values[2], mode), "sqrt": lambda: _square_root(values[0]),
        "rcp": lambda: _divide(Fraction(1), values[0]),
        "min": lambda: _extreme(*values, False), "max": lambda: _extreme(*values, True),
    }  # fmt: skip
    if name not in functions:
        return None
    result = functions[name]()
    if "sat" in modifiers:
        result = _saturate(result)
    return encode(_flush(result, type) if ftz else result, type, mode)


def _negate(x):
    return x if x == NAN else _signed(abs(x), not _is_negative(x))


def _compare(test: str, a, b) -> int:
    unordered = NAN in (a, b)
    if test in ("num", "nan"):
        return int(unordered == (test == "nan"))
    if test.endswith("u") and len(test) == 3:
        return int(unordered or _COMPARISONS[{"equ": "eq", "neu": "ne"}.get(test, test[:2])](a, b))
    return int(not unordered and _COMPARISONS[test](a, b))


_INTEGRAL = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}


def _to_integral(x, mode: str) -> Fraction:
    floor = x.numerator // x.denominator
    rest = x - floor
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and floor % 2 == 1),
        "rz": x < 0 and rest > 0,
        "rm": False,
        "rp": rest > 0,
    }[mode]
    return Fraction(floor + up)


def _range(type: str) -> tuple[int, int]:
    width = width_of(type)
    return (-(1 << width - 1), (1 << width - 1) - 1) if type[0] == "s" else (0, (1 << width) - 1)


def _convert(modifiers: list[str], bits: int, mode: str) -> int | None:
    to, source = modifiers[-2:]
    integral = next((m for m in modifiers if m in _INTEGRAL), None)
    if source not in FORMATS:
        width = width_of(source)
        number = signed(bits, width) if source[0] == "s" else bits
        if "sat" in modifiers:
            low, high = _range(to)
            number = min(max(number, low), high)
        if to in FORMATS:
            return encode(Fraction(number), to, mode)
        return number & (1 << max(16, width_of(to))) - 1 if width_of(to) >= 16 else None
    value = decode(bits, source)
    if to not in FORMATS:
        width = width_of(to)
        low, high = _range(to)
        if value == NAN:
            number = -(1 << width - 1) if width == 64 or source == "f64" else 0
        elif isinstance(value, float) and math.isinf(value):
            number = high if value > 0 else low
        else:
            number = min(max(int(_to_integral(Fraction(value), _INTEGRAL[integral or "rzi"])), low), high)
        return number & (1 << max(16, width)) - 1
    if integral and value != NAN and not (isinstance(value, float) and math.isinf(value)):
        value = _signed(abs(_to_integral(Fraction(value), _INTEGRAL[integral])), _is_negative(value))
    if "sat" in modifiers:
        value = _saturate(value)
    if value == NAN and to == "f64":
        return None
    if value == NAN and source == "f64":
        mantissa_bits, exponent_bits = FORMATS[to]
        top = ((1 << exponent_bits) - 1 << 1 | 1) << mantissa_bits - 1
        payload = (bits & (1 << 52) - 1) >> 52 - mantissa_bits
        return bits >> 63 << mantissa_bits + exponent_bits | top | payload
    return encode(value, to, mode)


def integer_result(case: Case, operands: list[int]) -> int | None:
    """Return what an integer form gives, or None where this module does not know it."""
    name, *modifiers = case.form.split(".")
    type = modifiers[-1]
    if (
        type in FORMATS
        or type.endswith("x2")
        or name in ("cvt", "atom", "shfl", "vote", "match", "redux", "activemask")
    ):
        return None
    if not re.fullmatch(r"[bus](8|16|32|64)|pred", type):
        return None
    width = width_of(type)
    mask = (1 << width) - 1
    a = [signed(x, width) if type[0] == "s" else x for x in operands]
    if {"cc", "wrap"} & set(modifiers) or name in ("addc", "subc", "madc"):
        return None
    if "sat" in modifiers:
        if name == "mad":
            return None
        low, high = _range(type)
        return min(max(a[0] + a[1] if name == "add" else a[0] - a[1], low), high) & mask
    if name == "mul" or name == "mad":
        product = a[0] * a[1]
        part = modifiers[0]
        if part == "wide":
            wide = width * 2
            return product + (operands[2] if name == "mad" else 0) & (1 << wide) - 1
        low = product >> width if part == "hi" else product
        return low + (a[2] if name == "mad" else 0) & mask
    if name in ("div", "rem"):
        if a[1] == 0:
            return mask
        quotient = abs(a[0]) // abs(a[1]) * (1 if (a[0] < 0) == (a[1] < 0) else -1)
        return (quotient if name == "div" else a[0] - quotient * a[1]) & mask
    if name == "setp":
        test = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(modifiers[0], modifiers[0])
        return int(_COMPARISONS[test](a[0], a[1]))
    simple = {
        "add": lambda: a[0] + a[1], "sub": lambda: a[0] - a[1], "and": lambda: a[0] & a[1], "or": lambda: a[0] | a[1],
        "xor": lambda: a[0] ^ a[1], "not": lambda: ~a[0], "neg": lambda: -a[0], "abs": lambda: abs(a[0]),
        "min": lambda: min(a[0], a[1]), "max": lambda: max(a[0], a[1]), "mov": lambda: a[0],
        "shl": lambda: a[0] << a[1], "shr": lambda: a[0] >> operands[1], "popc": lambda: operands[0].bit_count(),
        "clz": lambda: width - operands[0].bit_length(), "brev": lambda: int(f"{operands[0]:0{width}b}"[::-1], 2),
        "selp": lambda: a[0] if operands[2] else a[1], "sad": lambda: abs(a[0] - a[1]) + a[2],
    }  # fmt: skip
    if name in simple:
        return simple[name]() & ((1 << width_of(case.results[0])) - 1)
    if name == "bfi":
        position, length = (v & 255 if width == 32 else min(v, 64) for v in operands[2:])
        field = ((1 << length) - 1 << position) & mask
        return operands[1] & ~field | operands[0] << position & field
    if name == "prmt" and modifiers == ["b32"]:
        both = (operands[1] << 32 | operands[0]).to_bytes(8, "little")
        chosen = [operands[2] >> 4 * k & 15 for k in range(4)]
        return int.from_bytes(
            bytes((0xFF if both[s & 7] & 128 else 0) if s & 8 else both[s & 7] for s in chosen), "little"
        )
    if name == "bmsk":
        return ((1 << min(operands[1], 64)) - 1 << operands[0]) & mask if operands[0] < 32 else 0
    if name == "bfind":
        magnitude = ~a[0] if a[0] < 0 else a[0]
        if not magnitude:
            return 0xFFFFFFFF
        top = magnitude.bit_length() - 1
        return width - 1 - top if "shiftamt" in modifiers else top
    return None
