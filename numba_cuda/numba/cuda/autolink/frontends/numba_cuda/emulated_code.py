# SPDX-License-Identifier: BSD-2-Clause
"""The code of a kernel for the emulator, which runs PTX: that of the whole link, or of each part without LTO."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from cuda.core import ObjectCode
from numba.cuda.cudadrv.external_code.compile import programs
from numba.cuda.cudadrv.external_code.compile.programs import compile_unit
from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit
from numba.cuda.cudadrv.external_code.diagnostics.timeline import recording
from numba.cuda.cudadrv.external_code.formats.symbols import undefined_in
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.pipeline import run_link
from numba.cuda.cudadrv.external_code.plan.errors import link_error
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkPlan, PlannedInput

_LINKED = (kinds.LTO_IR, kinds.CUDA, kinds.BITCODE)


def emulated_texts(library: Any, cc: Any) -> list[str]:
    """Return the PTX of a kernel's code *library* for *cc*.

    Raises `LinkError` if nothing defines a function that is called, or an input is machine code, which cannot be
    emulated.
    """
    if not getattr(library, "_entries", ()):
        own = [library.get_lto_ptx(cc=cc)] if library._lto else library.get_asm_strs(cc=cc)
        return [text.rstrip("\0") for text in own]
    plan = library.plan(cc)
    others = dict(_other_texts(library, plan))
    if library._lto:
        in_link = tuple(each for each in plan.inputs if each not in others and each.input.kind in _LINKED)
        request = library.function_code.request(plan.target, library.own_inputs(cc), "ptx")
        request = dataclasses.replace(request, plan=dataclasses.replace(plan, inputs=in_link))
        with recording(library.function_code.timeline):
            own = [bytes(run_link(request).code.code).decode()]
    else:
        own = library.get_asm_strs(cc=cc)
    texts = [text.rstrip("\0") for text in (*own, *others.values())]
    if not library.function_code.referenced.keys().isdisjoint(undefined_in("PTX", "\n".join(texts).encode())):
        library.get_cubin(cc=cc)  # the error says what nothing defines
    return texts


def emulated_code(library: Any) -> ObjectCode:
    """Return the same for the current device, and set the callbacks of its module."""
    cc = library._ensure_cc(None)
    if hasattr(library, "plan"):  # it is ours
        plan = library.plan(cc)
        library._setup_functions, library._teardown_functions = (
            list(plan.setup_callbacks),
            list(plan.teardown_callbacks),
        )
    code = ObjectCode.from_ptx("\n".join(emulated_texts(library, cc)).encode(), name=library.name)
    library.emulated_code = code
    return code


def _other_texts(library: Any, plan: LinkPlan) -> Iterator[tuple[PlannedInput, str]]:
    """Yield the inputs that take no part in link-time optimisation, with their PTX."""
    callers = [planned for planned in plan.units if not planned.is_runtime]
    for planned in plan.units:
        kind = planned.input.kind
        if kind is kinds.PTX:
            yield planned, planned.input.code.decode()
        elif kind is kinds.CUDA and not library._lto:
            unit = dataclasses.replace(TranslationUnit.of(planned.input, plan.target), output="ptx")
            yield planned, compile_unit(unit).code.decode()
        elif kind is kinds.BITCODE:
            needed = library.function_code.own_undefined() if len(callers) == 1 else None
            program = programs.compiled(planned.input, plan.target, needed)
            if program.kind is kinds.PTX:
                yield planned, program.code.decode()
        elif not (planned.is_runtime or (library._lto and kind in _LINKED)):
            raise _machine_code(plan, planned)


def _machine_code(plan: LinkPlan, planned: PlannedInput) -> Exception:
    return link_error(
        plan,
        f"the emulator runs PTX, and {planned.input.name!r} is linked as {planned.input.kind}",
        f"at fault: {planned}",
        "what to do: provide CUDA C++ or PTX; LTO-IR and bitcode too, in kernels with link-time optimisation",
    )
