# SPDX-License-Identifier: BSD-2-Clause
"""Fingerprints of linkable code: equal where the code is, found without compiling it."""

from __future__ import annotations

from ..compile import programs
from ..inputs import kinds
from ..inputs.link_input import LinkInput
from ..target import Target
from .plan import LinkPlan


def code_fingerprint(link_input: LinkInput, target: Target) -> bytes:
    """Return the digest of finished code; of CUDA C++, that of its source, options and headers."""
    if link_input.kind is kinds.CUDA:
        return programs.fingerprint(link_input, target)
    return bytes.fromhex(link_input.digest)


def plan_fingerprints(plan: LinkPlan) -> tuple[bytes, ...]:
    """Return the fingerprints of all inputs of a link."""
    return tuple(code_fingerprint(planned.input, plan.target) for planned in plan.units)
