# SPDX-License-Identifier: BSD-2-Clause
"""What tells linkable code apart, without compiling it."""

from __future__ import annotations

from numba.cuda.cudadrv.external_code.compile import programs as program_cache
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.link.plan import LinkPlan
from numba.cuda.cudadrv.external_code.target import Target


def code_fingerprint(link_input: LinkInput, target: Target) -> bytes:
    """Of finished code its digest; of CUDA C++ the source, its options and the current content of every header."""
    if link_input.kind is kinds.CUDA:
        return program_cache.fingerprint(link_input, target)
    return bytes.fromhex(link_input.digest)


def plan_fingerprints(plan: LinkPlan) -> tuple[bytes, ...]:
    """The fingerprints of all inputs of a link."""
    return tuple(code_fingerprint(planned.input, plan.target) for planned in plan.units)
