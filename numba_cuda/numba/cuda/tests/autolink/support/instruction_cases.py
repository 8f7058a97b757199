# SPDX-License-Identifier: BSD-2-Clause
"""One kernel for each form of instruction, and operands for it: random ones, and the special values of each type.

A thread reads its operands from an array of 8 bytes per thread and operand, and writes the results in the same way.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from emulator_support import HEAD, kernel_of, launch

# What compilers wrote of the project's examples and tests, and forms beyond it; with the digest of what those compute
# that are not approximations
_LINES = Path(__file__).with_name("instruction_forms.txt").read_text().splitlines()
FORMS = {form: digest for form, _, digest in (line.partition(" ") for line in _LINES)}
_INT = r"[us](?:8|16|32|64)"
_ANY = rf"(?:{_INT}|b(?:16|32|64)|f(?:16|32|64)|bf16|f16x2|bf16x2|pred)"


@dataclass(frozen=True)
class Case:
    """A form with the types of its results and operands; *text* is the instruction with ``{d0}``, ``{a0}``…."""

    form: str
    results: tuple[str, ...]
    operands: tuple[str, ...]
    text: str
    before: str = ""
    after: str = ""


def _plain(form: str, result: str, *operands: str, target: str = "{d0}", extra: str = "") -> Case:
    listed = ", ".join(f"{{a{k}}}" for k in range(len(operands)))
    return Case(form, (result,), operands, f"{form} {target}, {listed}{extra};")


def case_of(form: str) -> Case | None:
    """Return the case of *form*, or None for what computes nothing by itself (memory, control, barriers)."""
    name, *modifiers = form.split(".")
    type = modifiers[-1] if modifiers else ""
    if name in ("prmt", "fns", "shf", "lop3", "dp4a", "dp2a", "testp", "slct", "szext", "mul24", "mad24", "bfe"):
        return _other(form, name, modifiers)
    if not re.fullmatch(_ANY, type) or name in ("ld", "st", "bar", "cvta", "isspacep", "nanosleep", "mbarrier"):
        return None
    if name in ("shfl", "vote", "match", "redux", "activemask"):
        return _of_warp(form, name, modifiers)
    if name == "atom":
        return _atomic(form, modifiers)
    if "cc" in modifiers or name in ("addc", "subc", "madc"):
        return _carry(form, name, type, "cc" in modifiers)
    if name in ("setp", "set"):
        result = "pred" if name == "setp" else modifiers[-2]
        return _plain(form, result, type, type)
    if name == "cvt":
        return _plain(form, modifiers[-2], type)
    if name in ("mul", "mad") and modifiers[0] == "wide":
        wide = type[0] + str(2 * int(type[1:]))
        return _plain(form, wide, type, type, *([wide] if name == "mad" else []))
    if name in ("fma", "mad", "sad"):
        return _plain(form, type, type, type, type)
    if name in ("shl", "shr"):
        return _plain(form, type, type, "shift")
    if name in ("popc", "clz", "bfind"):
        return _plain(form, "u32", type)
    if name == "bfi":
        return _plain(form, type, type, type, "u32", "u32")
    if name == "selp":
        return _plain(form, type, type, type, "pred")
    if name == "bmsk":
        return _plain(form, "b32", "shift", "shift")
    single = ("mov", "neg", "abs", "not", "cnot", "sqrt", "rsqrt", "rcp", "ex2", "lg2", "sin", "cos", "tanh", "brev")
    if name in single:
        return _plain(form, type, type)
    if name in ("add", "sub", "mul", "div", "rem", "min", "max", "and", "or", "xor", "copysign"):
        return _plain(form, type, type, type)
    return None


def _other(form: str, name: str, modifiers: list[str]) -> Case:
    type = modifiers[-1]
    if name == "testp":
        return _plain(form, "pred", type)
    if name == "slct":
        return _plain(form, modifiers[-2], modifiers[-2], modifiers[-2], type)
    if name == "bfe":
        return _plain(form, type, type, "shift", "shift")
    if name == "fns":
        return _plain(form, "b32", "b32", "lane", "few")
    if name == "lop3":
        return _plain(form, "b32", "b32", "b32", "b32", extra=", 0xCA")
    if name == "szext":
        return _plain(form, type, type, "shift")
    if name == "mul24":
        return _plain(form, type, type, type)
    kind = type if name == "mad24" else "b32"
    return _plain(form, kind, kind, kind, "shift" if name == "shf" else kind)


def _carry(form: str, name: str, type: str, sets: bool) -> Case:
    """The carry comes of an addition or subtraction before it, and is read after it."""
    is_subtraction = name.startswith("sub")
    operands = (type,) * (3 if name.startswith("mad") else 2)
    listed = ", ".join(f"{{a{k}}}" for k in range(len(operands)))
    first = "sub" if is_subtraction else "add"
    last = "subc" if is_subtraction else "addc"
    before = f"{first}.cc.{type} %t{type[1:]}, {{x0}}, {{x1}};"
    after = f"{last}.{type} {{d1}}, 0, 0;" if sets else f"mov.{type} {{d1}}, 0;"
    return Case(form, (type, type), (*operands, type, type), f"{form} {{d0}}, {listed};", before, after)


def _of_warp(form: str, name: str, modifiers: list[str]) -> Case:
    if name == "activemask":
        return Case(form, ("b32",), (), f"{form} {{d0}};")
    if name == "shfl":
        clamp = "0" if modifiers[1] == "up" else "31"
        text = f"{form} {{d0}}|%q, {{a0}}, {{a1}}, {clamp}, -1; selp.b32 {{d1}}, 1, 0, %q;"
        return Case(form, ("b32", "b32"), ("b32", "lane"), text)
    if name == "vote":
        return _plain(form, modifiers[-1], "pred", extra=", -1")
    if name == "match":
        target = "{d0}|%q" if modifiers[0] == "all" else "{d0}"
        return _plain(form, "b32", "few" if modifiers[-1] == "b32" else "b64", target=target, extra=", -1")
    return _plain(form, modifiers[-1], modifiers[-1], extra=", -1")


def _atomic(form: str, modifiers: list[str]) -> Case:
    """Each thread has its own location: in global or in shared memory, beginning with the first operand."""
    type = modifiers[-1]
    space = ".shared" if "shared" in modifiers else ".global"
    address = "%s" if "shared" in modifiers else "%g"
    count = 2 if "cas" in modifiers else 1
    listed = ", ".join(f"{{a{k + 1}}}" for k in range(count))
    bits = f"b{width_of(type)}"
    store, load = f"st{space}.{bits} [{address}], {{a0}};", f"ld{space}.{bits} {{d1}}, [{address}];"
    text = f"{store} {form} {{d0}}, [{address}], {listed}; {load}"
    return Case(form, (type, type), (type,) * (1 + count), text)


def width_of(type: str) -> int:
    if type in ("shift", "lane", "few"):
        return 32
    if type == "pred":
        return 1
    return 32 if type.endswith("x2") else int(re.sub(r"\D", "", type))


def kernel_text(case: Case, name: str = "k") -> str:
    """Return the module with the kernel of *case*: (operands, results, threads)."""
    names, lines = {}, []
    count = len(case.operands)
    for k, type in enumerate(case.operands):
        width = width_of(type)
        register = f"%a{k}"
        lines.append(f".reg .{'pred' if width == 1 else f'b{max(16, width)}'} {register};")
        offset = f"[%in+{8 * k}]"
        if width == 1:
            lines.append(f"ld.global.u32 %t32, {offset}; setp.ne.u32 {register}, %t32, 0;")
        elif width == 8:
            lines.append(f"ld.global.{type} {register}, {offset};")
        else:
            lines.append(f"ld.global.b{width} {register}, {offset};")
        key = f"a{k}" if not case.before or k < count - 2 else f"x{k - count + 2}"
        names[key] = register
    for k, type in enumerate(case.results):
        width = width_of(type)
        names[f"d{k}"] = f"%d{k}"
        lines.append(f".reg .{'pred' if width == 1 else f'b{max(16, width)}'} %d{k};")
    lines += [part.format(**names) for part in (case.before, case.text, case.after)]
    for k, type in enumerate(case.results):
        width = width_of(type)
        if width == 1:
            lines.append(f"selp.b32 %t32, 1, 0, %d{k}; st.global.b32 [%out+{8 * k}], %t32;")
        else:
            lines.append(f"st.global.b{max(16, width)} [%out+{8 * k}], %d{k};")
    body = "\n".join(lines)
    return f"""{HEAD}
.visible .entry {name}(.param .u64 p0, .param .u64 p1, .param .u32 p2)
{{
.reg .pred %q, %past; .reg .b16 %t16; .reg .b32 %t32, %i, %n, %s; .reg .b64 %t64, %in, %out, %g, %w;
.shared .align 8 .b8 words[2048];
mov.u32 %i, %ctaid.x; mov.u32 %t32, %ntid.x; mul.lo.u32 %i, %i, %t32; mov.u32 %t32, %tid.x; add.u32 %i, %i, %t32;
ld.param.u32 %n, [p2]; setp.ge.u32 %past, %i, %n; @%past ret;
mov.u32 %s, words; shl.b32 %t32, %t32, 3; add.u32 %s, %s, %t32;
ld.param.u64 %in, [p0]; mul.wide.u32 %w, %i, {8 * max(1, count)}; add.u64 %in, %in, %w;
ld.param.u64 %out, [p1]; mul.wide.u32 %w, %i, 24; add.u64 %out, %out, %w; add.u64 %g, %out, 16;
{body}
ret;
}}
"""


_SPECIAL_FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-3, 255.5, 65504.0, 1e9, -1e9]
_SPECIAL_FLOATS += [2.0**31, 2.0**63, -(2.0**31), 2.0**32]
_MANTISSAS = {"f16": 10, "f32": 23, "f64": 52, "bf16": 7}


def random_operand(type: str, count: int, generator: np.random.RandomState) -> np.ndarray:
    """Return *count* operands of *type* in 8 bytes each."""
    if type.endswith("x2"):
        low, high = (random_operand(type[:-2], count, generator) for _ in range(2))
        return low | high << np.uint64(16)
    if type == "shift":
        return generator.randint(0, 70, count).astype(np.uint64)
    if type in ("lane", "few"):
        return generator.randint(0, 32 if type == "lane" else 3, count).astype(np.uint64)
    width = width_of(type)
    raw = generator.randint(0, 1 << 64, count, dtype=np.uint64) >> np.uint64(64 - width)
    if type in _MANTISSAS:
        return _floats(type, width, raw, count, generator)
    small = generator.randint(-40, 40, count).astype(np.int64).view(np.uint64)
    limits = np.array([0, 1, 2, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1], np.uint64)
    chosen = generator.randint(0, 4, count)
    values = np.where(chosen == 0, generator.choice(limits, count), np.where(chosen == 1, small, raw))
    return values & np.uint64((1 << width) - 1) if width > 1 else values & np.uint64(1)


def _floats(type: str, width: int, raw: np.ndarray, count: int, generator: np.random.RandomState) -> np.ndarray:
    """Random bits, special values, subnormal numbers, and numbers near 1."""
    mantissa = _MANTISSAS[type]
    special = np.array(_SPECIAL_FLOATS, np.float64)
    near = generator.normal(0, 100, count)
    with np.errstate(all="ignore"):
        bits = [_bits(values, type) for values in (generator.choice(special, count), near)]
    subnormal = raw & np.uint64((1 << mantissa) - 1 | 1 << (width - 1))
    chosen = generator.randint(0, 8, count)
    return np.select([chosen == 0, chosen == 1, chosen < 5], [bits[0], subnormal, bits[1]], raw)


def _corners(type: str, count: int, generator: np.random.RandomState) -> list[np.ndarray]:
    """Return two operands: both NaN, or factors and quotients that are about the least normal number; and a third that
    is often zero."""
    if type.endswith("x2"):
        halves = (_corners(type[:-2], count, generator) for _ in range(2))
        return [low | high << np.uint64(16) for low, high in zip(*halves, strict=True)]
    mantissa, width = _MANTISSAS[type], width_of(type)
    bias, ones = (1 << width - mantissa - 2) - 1, (1 << mantissa) - 1
    exponent = generator.randint(1, bias, count)
    sum_or_difference = np.where(generator.randint(0, 2, count), bias - exponent, exponent + bias - 1)
    partner = np.clip(sum_or_difference + generator.randint(-1, 2, count), 1, 2 * bias)
    is_nan, operands = generator.randint(0, 8, count) == 0, []
    for exponents in (exponent, partner):
        few, payload = generator.randint(0, 4, count), generator.randint(1, 1 << mantissa, count)
        digits = np.where(is_nan, payload, np.where(generator.randint(0, 2, count), ones - few, few))
        bits = np.where(is_nan, 2 * bias + 1, exponents) << mantissa | digits
        operands.append((bits | generator.randint(0, 2, count) << width - 1).astype(np.uint64))
    third = random_operand(type, count, generator)
    return [*operands, np.where(is_nan | (generator.randint(0, 3, count) == 0), third, 0).astype(np.uint64)]


def _bits(values: np.ndarray, type: str) -> np.ndarray:
    if type == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint64)
    kind = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[type]
    unsigned = {"f16": np.uint16, "f32": np.uint32, "f64": np.uint64}[type]
    return values.astype(kind).view(unsigned).astype(np.uint64)


def random_operands(case: Case, count: int) -> np.ndarray:
    """Return operands for *count* threads: an array of (threads, operands), the same for each call."""
    generator = np.random.RandomState(sum(case.form.encode()))  # whose numbers are the same with each NumPy
    columns = [random_operand(type, count, generator) for type in case.operands]
    if len(columns) > 1 and case.operands[0] == case.operands[1] and case.operands[0].removesuffix("x2") in _MANTISSAS:
        for column, corners in zip(columns, _corners(case.operands[0], count // 8, generator), strict=False):
            column[: count // 8] = corners
    return np.stack(columns, 1) if columns else np.zeros((count, 1), np.uint64)


def digest_of(case: Case, results: np.ndarray) -> str:
    """Return a digest of *results*, in which all NaNs of 64 bits are one: which it is depends on the processor."""
    results = results.copy()
    for number, type in enumerate(case.results):
        if type == "f64":
            values = results[:, number].copy().view(np.float64)
            results[np.isnan(values), number] = 0x7FF8 << 48
    return hashlib.sha256(np.ascontiguousarray(results).tobytes()).hexdigest()[:16]


def emulate(case: Case, operands: np.ndarray) -> np.ndarray:
    """Return the results of *case*: (threads, results)."""
    count = len(operands)
    out = np.zeros((count, 3), np.uint64)
    launch(kernel_of(kernel_text(case)), -(-count // 256), 256, operands, out, count)
    return out[:, : len(case.results)]
