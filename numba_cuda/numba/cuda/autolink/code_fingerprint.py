# SPDX-License-Identifier: BSD-2-Clause
"""What tells linkable code apart, without compiling it."""

from __future__ import annotations

from numba.cuda.cudadrv import link_inputs, program_cache
from numba.cuda.cudadrv.link_inputs import LinkInput
from numba.cuda.cudadrv.link_plan import LinkPlan

from .target import Target


def code_fingerprint(link_input: LinkInput, target: Target) -> bytes:
    """Of finished code its digest; of CUDA C++ the source, its options and the current content of every header."""
    if link_input.kind is link_inputs.CUDA:
        return program_cache.fingerprint(link_input, target)
    return bytes.fromhex(link_input.digest)


def plan_fingerprints(plan: LinkPlan) -> tuple[bytes, ...]:
    """The fingerprints of all inputs of a link."""
    return tuple(code_fingerprint(planned.input, plan.target) for planned in plan.units)
