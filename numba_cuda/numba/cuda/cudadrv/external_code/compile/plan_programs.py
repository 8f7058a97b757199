# SPDX-License-Identifier: BSD-2-Clause
"""The compile stage of a link: the programs of a plan's sources and bitcode, and the keys that stand for them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Sequence
from typing import TypeAlias

from numba.cuda.cudadrv import nvvm

from ..cache.entry import CacheKey
from ..diagnostics import progress, timeline
from ..inputs import kinds
from ..inputs.c_prototypes import CalledFunction
from ..inputs.link_input import LinkInput
from ..plan.link_plan import KernelCode, LinkPlan, LLVMModules, PlannedInput
from ..plan.plan_checks import with_variables_checked
from ..platform.target import Target
from . import programs
from .nvrtc import CompileError
from .programs import Program, SourceError

# Functions that are not checked in a unit of the plan, by its index: it does not define them.
Ignored: TypeAlias = Collection[tuple[int, CalledFunction]]


def compile_plan(plan: LinkPlan, kernel_code: KernelCode, ignored: Ignored = ()) -> list[Program | None]:
    """Return for each of the plan's units its program, from a cache or compiled now; ``None`` for what is linked as it
    is. The types of the functions that the kernel calls are checked, but for those *ignored*.

    Raises `SourceError`, with the index of the unit, if one does not compile.
    """
    found: list[Program | None] = [None] * len(plan.units)
    numbers = [number for number, unit in enumerate(plan.units) if unit.input.kind is kinds.CUDA]
    sources = sources_of(plan, kernel_code)
    checked = [
        tuple(each for each in called if (number, each) not in ignored)
        for number, (_, called) in zip(numbers, sources, strict=True)
    ]
    try:
        compiled = programs.all_compiled([source for source, _ in sources], plan.target, checked)
    except SourceError as error:
        others = [SourceError(numbers[each.number], each.error) for each in error.others]
        raise SourceError(numbers[error.number], error.error, others) from error.error
    for number, program in zip(numbers, compiled, strict=True):
        found[number] = program
    needed = _functions_needed(plan, kernel_code)
    for number, unit in enumerate(plan.units):
        if unit.input.kind is kinds.BITCODE:
            try:
                with progress.step(f"compiling {os.path.basename(unit.input.name)} for {plan.target.arch}"):
                    found[number] = programs.compiled(unit.input, plan.target, needed)
            except CompileError as error:
                raise SourceError(number, error) from error
    return found


def sources_of(plan: LinkPlan, kernel_code: KernelCode) -> list[tuple[LinkInput, tuple[CalledFunction, ...]]]:
    """Return the plan's sources as they are compiled, with the functions whose types are checked in them."""
    called = called_in(plan, kernel_code)
    return [
        (_checked_source(plan, number), called[number])
        for number, unit in enumerate(plan.units)
        if unit.input.kind is kinds.CUDA
    ]


def write_debug_sources(plan: LinkPlan) -> None:
    """Write the files that debuggers and profilers look for, of a plan that is not compiled."""
    for number, unit in enumerate(plan.units):
        if unit.input.kind is kinds.CUDA:
            programs.write_debug_sources(_checked_source(plan, number), plan.target)


def recorded_keys(plan: LinkPlan) -> list[bytes | None]:
    """Return for each of the plan's units what stands for the code that it becomes: for a source, the digest of its
    program's key, which contains its headers as they are now; ``None`` if they are not on record."""
    return [
        programs.program_digest(_checked_source(plan, number), plan.target, on_record=True)
        if unit.input.kind is kinds.CUDA
        else _key(unit.input, plan.target)
        for number, unit in enumerate(plan.units)
    ]


def keys_of(plan: LinkPlan, compiled: Sequence[Program | None]) -> list[bytes]:
    """Return the same once the plan was *compiled*. Where the headers are not known, a program's code stands for it."""
    return [
        _key(unit.input, plan.target)
        if program is None or unit.input.kind is not kinds.CUDA
        else program.key or hashlib.sha256(program.code).digest()
        for unit, program in zip(plan.units, compiled, strict=True)
    ]


def describe_program(plan: LinkPlan, number: int) -> CacheKey:
    """Return the key of the program of a source of the plan, or what describes one that is not cached."""
    return programs.describe(_checked_source(plan, number), plan.target)


def _key(link_input: LinkInput, target: Target) -> bytes:
    if link_input.kind is kinds.BITCODE:
        from . import bitcode

        return bitcode.digest(link_input, target)
    return bytes.fromhex(link_input.digest)


def _checked_source(plan: LinkPlan, number: int) -> LinkInput:
    """Return a source of the plan, which checks the types of the variables that the host sets."""
    return with_variables_checked(plan.units[number].input, [variable for _, variable in plan.variables])


def called_in(plan: LinkPlan, kernel_code: KernelCode) -> list[tuple[CalledFunction, ...]]:
    """Return for each of the plan's units the functions in it that calls in Python reference and whose types are
    checked: calls of objects that returned the source; and if an object returned none, those whose names are in its
    text."""
    units = plan.units
    found: list[dict[CalledFunction, None]] = [{} for _ in units]
    checked = [number for number, each in enumerate(units) if each.input.kind is kinds.CUDA]
    returned: dict[str, list[int]] = {}
    for number in checked:
        for origin in units[number].origins:
            returned.setdefault(origin, []).append(number)
    for symbol, sites in kernel_code.sites.items():
        for site in sites:
            by_call = {number for call in site.asked for number in returned.get(call, ())}
            for number in by_call or [number for number in checked if _mentions(units[number], symbol)]:
                found[number].setdefault(site.called(symbol))
    return [tuple(functions) for functions in found]


def _mentions(source: PlannedInput, symbol: str) -> bool:
    return symbol.encode() in source.input.code or any(symbol in text for _, text in source.input.options.defines)


def _functions_needed(plan: LinkPlan, kernel_code: KernelCode) -> tuple[str, ...] | None:
    """Return the functions of bitcode that are linked: those that the kernel calls, if no other code that is linked
    could call any; ``None`` for all."""
    callers = [planned for planned in plan.units if not planned.is_runtime]
    return kernel_code.undefined if len(callers) == 1 else None


def compile_own_code(kernel_code: KernelCode) -> tuple[LinkInput, ...]:
    return tuple(_compile_modules(each) if isinstance(each, LLVMModules) else each for each in kernel_code.inputs)


def _compile_modules(modules: LLVMModules) -> LinkInput:
    with timeline.span("NVVM", modules.name):
        ltoir = nvvm.compile_ir(list(modules.texts), **dict(modules.options), **{"gen-lto": None})
    return LinkInput(kinds.LTO_IR, bytes(ltoir), name=modules.name)
