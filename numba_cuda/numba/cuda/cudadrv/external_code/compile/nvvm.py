# SPDX-License-Identifier: BSD-2-Clause
"""A kernel's own LLVM IR, compiled by NVVM to LTO-IR or PTX."""

from __future__ import annotations

from numba.cuda.cudadrv import nvvm

from ..diagnostics import timeline
from ..inputs import kinds
from ..inputs.link_input import LinkInput
from ..plan.kernel_code import KernelCode, LLVMModules


def compile_own_code(kernel_code: KernelCode) -> tuple[LinkInput, ...]:
    """Return the kernel's own code as the linker takes it."""
    return tuple(_compile_modules(each) if isinstance(each, LLVMModules) else each for each in kernel_code.inputs)


def _compile_modules(modules: LLVMModules) -> LinkInput:
    with timeline.span("NVVM", modules.name):
        ltoir = nvvm.compile_ir(list(modules.texts), **dict(modules.options), **{"gen-lto": None})
    return LinkInput(kinds.LTO_IR, bytes(ltoir), name=modules.name)
