# SPDX-License-Identifier: BSD-2-Clause
"""The code of a kernel for the emulator, which runs PTX: that of the whole link, or of each part without LTO."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any

from cuda.core import ObjectCode
from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit, compile_unit
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.link.errors import link_error
from numba.cuda.cudadrv.external_code.link.plan import LinkPlan, PlannedInput

from .code_library import LinkingCodeLibrary


def emulated_texts(library: Any, cc: Any) -> list[str]:
    """Return the PTX of a kernel's code *library* for *cc*.

    Raises `LinkError` if an input is machine code, which cannot be emulated.
    """
    texts = list(_own_texts(library, cc))
    if isinstance(library, LinkingCodeLibrary):
        texts += _other_texts(library.plan(cc), library._lto)
    return texts


def emulated_code(library: Any) -> ObjectCode:
    """Return the same for the current device, and set the callbacks of its module."""
    cc = library._ensure_cc(None)
    if isinstance(library, LinkingCodeLibrary):
        plan = library.plan(cc)
        library._setup_functions, library._teardown_functions = list(plan.setup_callbacks), list(plan.teardown_callbacks)
    code = ObjectCode.from_ptx("\n".join(emulated_texts(library, cc)).encode(), name=library.name)
    library._cubin_cache["emulated", cc] = code
    return code


def _own_texts(library: Any, cc: Any) -> Iterator[str]:
    if library._lto:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Not adding", UserWarning)  # PTX is not left out here
            yield library.get_lto_ptx(cc=cc).rstrip("\0")
    else:
        yield from library.get_asm_strs(cc=cc)


def _other_texts(plan: LinkPlan, lto: bool) -> Iterator[str]:
    """Yield the PTX of the inputs that take no part in link-time optimisation."""
    for planned in plan.units:
        kind = planned.input.kind
        if kind is kinds.PTX:
            yield planned.input.code.decode().rstrip("\0")
        elif kind is kinds.CUDA and not lto:
            unit = TranslationUnit.of(planned.input, plan.target)
            yield compile_unit(dataclasses.replace(unit, output="ptx")).code.decode().rstrip("\0")
        elif not (planned.is_runtime or (lto and kind in (kinds.CUDA, kinds.LTO_IR, kinds.BITCODE))):
            raise _machine_code(plan, planned)


def _machine_code(plan: LinkPlan, planned: PlannedInput) -> Exception:
    return link_error(
        plan,
        f"the emulator runs PTX, and {planned.input.name!r} is linked as {planned.input.kind}",
        f"at fault: {planned}",
        "what to do: provide CUDA C++ or PTX; LTO-IR and bitcode too, in kernels with link-time optimisation",
    )
