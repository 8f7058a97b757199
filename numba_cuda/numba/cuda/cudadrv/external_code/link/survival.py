# SPDX-License-Identifier: BSD-2-Clause
"""Which inputs nvJitLink has survived on this machine: others are linked in a child process first.

Damaged machine code or LTO-IR can crash or hang nvJitLink. What was compiled here is not doubted, nor are the toolkit's
and numba-cuda's own libraries.
"""

from __future__ import annotations

from collections.abc import Iterable

from .. import toolkit
from ..cache.key import CacheKey
from ..cache.store import current_store
from ..formats.pieces import has_compressed_piece
from .parts import LinkJob, Part

_SURVIVED = b"survived"


def doubted(job: LinkJob) -> list[Part]:
    """Return the parts from outside that were not linked on this machine before, with this toolkit and for this
    architecture; and those whose symbols and prototypes cannot be read, which a link may report to stderr alone."""
    outside = (part for part in job.provided if part.planned is not None and part.compiled is None)
    return [
        part
        for part in outside
        if has_compressed_piece(part.kind.name, part.code) or current_store().get(_key(job, part)) != _SURVIVED
    ]


def remember(job: LinkJob, parts: Iterable[Part]) -> None:
    """Note that a link with *parts* succeeded."""
    for part in parts:
        current_store().put(_key(job, part), _SURVIVED)


def _key(job: LinkJob, part: Part) -> CacheKey:
    return CacheKey(
        "survival",
        part.name,
        (
            ("format", "1"),
            ("nvJitLink", toolkit.nvjitlink_build()),
            ("architecture", job.plan.target.arch),
            ("LTO", f"{job.has_ltoir}"),
            ("kind", part.kind.name),
            ("code", part.code),
        ),
    )
