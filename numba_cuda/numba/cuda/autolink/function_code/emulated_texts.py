# SPDX-License-Identifier: BSD-2-Clause
"""The code of a kernel for the emulator, which runs PTX: that of the whole link, or of each part without LTO."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any

from numba.cuda.cudadrv.external_code.compile import programs
from numba.cuda.cudadrv.external_code.compile.programs import compile_unit
from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit
from numba.cuda.cudadrv.external_code.diagnostics.timeline import recording
from numba.cuda.cudadrv.external_code.formats.symbols import find_undefined
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.pipeline import run_link
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkPlan, PlannedInput, link_error
from numba.cuda.cudadrv.external_code.platform.target import Target

from .function_code import FunctionCode

_LINKED = (kinds.LTO_IR, kinds.CUDA, kinds.BITCODE)
# As numba-cuda-mlir reads where a thread is.
_SPECIAL_REGISTER = re.compile(
    r"^\t// begin inline asm\n\tmov\.u32 %r\d+, %n?(?:tid|ctaid)\.[xyz];\n\t// end inline asm$", re.MULTILINE
)


def emulated_texts(code: FunctionCode, target: Target, own: Sequence[Any]) -> list[str]:
    """Return the PTX of a kernel for *target*: of its *own* inputs, and of all that its *code* links.

    Raises `LinkError` if nothing defines a function that is called, or an input is machine code, which cannot be
    emulated.
    """
    plan = code.plan(target)
    others = dict(_other_texts(code, plan))
    if target.lto:
        in_link = tuple(each for each in plan.inputs if each not in others and each.input.kind in _LINKED)
        request = code.request(target, own, "ptx")
        request = dataclasses.replace(request, plan=dataclasses.replace(plan, inputs=in_link))
        with recording(code.timeline):
            texts = [bytes(run_link(request).code.code)]
    else:
        texts = [each.code for each in own]
    found = [text.rstrip("\0") for text in (*(each.decode() for each in texts), *others.values())]
    is_given = any(each.input.kind is kinds.PTX and not each.is_runtime for each in plan.inputs)  # written by anyone
    if is_given or not can_link(found):
        run_link(code.request(target, own))  # the error says what nothing defines, or which instruction is wrong
    return found


def can_link(texts: Sequence[str]) -> bool:
    """Whether a link of *texts* of PTX cannot fail: they, or the emulator, which synchronises grids, define all that
    they call and read, and the compiler wrote all of it, not assembly in C++, in which ptxas finds mistakes."""
    text = _SPECIAL_REGISTER.sub("", "\n".join(texts))
    undefined = find_undefined("PTX", text.encode())
    return "// begin inline asm" not in text and all(name.startswith("cudaCG") for name in undefined)


def _other_texts(code: FunctionCode, plan: LinkPlan) -> Iterator[tuple[PlannedInput, str]]:
    callers = [planned for planned in plan.units if not planned.is_runtime]
    ptx = [planned.input.code for planned in plan.units if planned.input.kind is kinds.PTX]
    is_called = any(find_undefined("PTX", text) for text in ptx)  # by PTX: the link would drop it
    for planned in plan.units:
        kind = planned.input.kind
        if kind is kinds.PTX:
            yield planned, planned.input.code.decode()
        elif kind is kinds.CUDA and (is_called or not plan.target.lto):
            target = dataclasses.replace(plan.target, lto=False)
            unit = dataclasses.replace(TranslationUnit.of(planned.input, target), output="ptx")
            yield planned, compile_unit(unit).code.decode()
        elif kind is kinds.BITCODE:
            needed = code.own_undefined() if len(callers) == 1 else None
            program = programs.compiled(planned.input, plan.target, needed)
            if program.kind is kinds.PTX:
                yield planned, program.code.decode()
        elif not (planned.is_runtime or (plan.target.lto and kind in _LINKED)):
            raise _machine_code(plan, planned)


def _machine_code(plan: LinkPlan, planned: PlannedInput) -> Exception:
    todo = "provide CUDA C++ or PTX; LTO-IR and bitcode too, in kernels with link-time optimisation: a Prebuilt with"
    todo += " prefer='LTO-IR'"
    if not plan.target.lto:
        todo = f"leave out lto=False, or build with lineinfo=True, for which a Prebuilt gives its source; or {todo}"
    return link_error(
        plan,
        f"the emulator runs PTX, and {planned.input.name!r} is linked as {planned.input.kind}",
        f"at fault: {planned}",
        f"what to do: {todo}",
    )
