# SPDX-License-Identifier: BSD-2-Clause
"""Floating operations in each rounding mode: the processor's mode changes for one operation."""

from __future__ import annotations

import platform

from .function_builder import FunctionBuilder
from .ptx_types import PTXType

_IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
# The processor's rounding modes, as their bits in its control register
_MODES = {"rz": 0x6000, "rm": 0x2000, "rp": 0x4000} if _IS_X86 else {"rz": 3 << 22, "rm": 2 << 22, "rp": 1 << 22}


def _set_mode(value: str) -> str:
    if _IS_X86:
        return f' call void asm sideeffect "ldmxcsr $0", "*m,~{{memory}}"(ptr elementtype(i32) {value})'
    return f' call void asm sideeffect "msr fpcr, $0", "r,~{{memory}}"(i64 {value})'


def _wrapper(name: str, mode: str, operation: str, result: str, parameters: str) -> str:
    """Return a function that does *operation* (an instruction that sets %r) in *mode*."""
    before, after = f"{0x1F80 | _MODES[mode]}" if _IS_X86 else f"{_MODES[mode]}", "8064" if _IS_X86 else "0"
    lines = [f"define internal {result} @{name}({parameters}) noinline nounwind strictfp {{"]
    if _IS_X86:
        lines += [" %m = alloca i32", f" store i32 {before}, ptr %m", _set_mode("%m")]
    else:
        lines.append(_set_mode(before))
    lines.append(f" %r = {operation}")
    if _IS_X86:
        lines += [f" store i32 {after}, ptr %m", _set_mode("%m")]
    else:
        lines.append(_set_mode(after))
    return "\n".join([*lines, f" ret {result} %r", "}"]) + "\n"


def rounded(f: FunctionBuilder, operation: str, mode: str | None, type: PTXType, *operands: str) -> str:
    """Return the result of *operation* on *operands*, rounded as *mode* (``rn``, ``rz``, ``rm``, ``rp``) says."""
    llvm = type.llvm
    if mode in (None, "rn"):
        if operation in ("fma", "sqrt"):
            return f.intrinsic(operation, llvm, *operands)
        return f.temporary(f"{operation} {llvm} {operands[0]}, {operands[1]}")
    assert mode is not None
    name, types = f"{operation}.{mode}.{type.name}", [llvm] * len(operands)
    result = _call_wrapper(f, name, mode, f"{operation}.f{type.bits}", llvm, types, operands)
    if type.bits == 64 and operation in ("fmul", "fma"):  # of two NaN, the second
        is_nan = f.temporary(f"fcmp uno double {operands[1]}, 0.0")
        result = f.temporary(f"select i1 {is_nan}, double {f.call('canonical_f64', operands[1])}, double {result}")
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
    call = f'call {result} {intrinsic}({parameters}, metadata !"round.dynamic", metadata !"fpexcept.strict") strictfp'
    f.program.helpers[name] = _wrapper(f"rounded.{name}", mode, call, result, ", ".join(types))
    arguments = ", ".join(f"{t} {v}" for t, v in zip(types, operands, strict=True))
    return f.temporary(f"call {result} @rounded.{name}({arguments})")
