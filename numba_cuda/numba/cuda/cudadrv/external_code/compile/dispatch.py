# SPDX-License-Identifier: BSD-2-Clause
"""Compile the inputs that cannot be linked as they are: CUDA C++ with NVRTC, LLVM bitcode with NVVM."""

from __future__ import annotations

from collections.abc import Collection

from ..inputs import kinds
from ..inputs.link_input import LinkInput
from ..target import Target
from . import programs
from .programs import Program


def compiled(link_input: LinkInput, target: Target, referenced: Collection[str] | None = None) -> Program:
    """Return *link_input*, CUDA C++ or bitcode, compiled for *target*, from a cache or now. Of bitcode, only the
    *referenced* functions and what they need, or all of it for ``None``.

    Raises
    ------
    CompileError
        If it does not compile.
    """
    if link_input.kind is kinds.BITCODE:
        from . import bitcode

        return bitcode.compiled(link_input, target, referenced)
    return programs.compiled(link_input, target)


def fingerprint(link_input: LinkInput, target: Target) -> bytes:
    """Return the digest of *link_input* as it is now: of CUDA C++, that of its source, options and headers."""
    if link_input.kind is kinds.CUDA:
        return programs.fingerprint(link_input, target)
    return bytes.fromhex(link_input.digest)
