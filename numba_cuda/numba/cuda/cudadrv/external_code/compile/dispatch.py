# SPDX-License-Identifier: BSD-2-Clause
"""Compiles what goes into a link as another kind: CUDA C++ by NVRTC, LLVM bitcode by NVVM."""

from __future__ import annotations

from collections.abc import Collection

from ..inputs import kinds
from ..inputs.link_input import LinkInput
from ..target import Target
from . import programs as program_cache
from .programs import Program


def compiled(link_input: LinkInput, target: Target, wanted: Collection[str] | None = None) -> Program:
    """*link_input*, of a kind that is compiled, as it goes into a link for *target*, from a cache or built. Of bitcode
    only the functions that are *wanted*, unless that is ``None``.

    Raises
    ------
    CompileError
        If it does not compile.
    """
    if link_input.kind is kinds.BITCODE:
        from . import bitcode as bitcode_compile

        return bitcode_compile.compiled(link_input, target, wanted)
    return program_cache.compiled(link_input, target)
