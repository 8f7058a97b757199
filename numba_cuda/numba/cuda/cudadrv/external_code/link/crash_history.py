# SPDX-License-Identifier: BSD-2-Clause
"""Which inputs nvJitLink has survived on this machine: others are linked in a child process first.

Damaged machine code or LTO-IR can crash or hang nvJitLink. So can sound code, if one part defines a variable that
another calls as a function, for example. So parts that refer to each other are doubted together. What was compiled here
is not doubted otherwise, nor are the toolkit's and numba-cuda's own libraries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..cache.key import CacheKey
from ..cache.store import current_store
from ..formats.containers import has_compressed_piece
from ..formats.symbols import find_defined, find_undefined
from ..inputs import kinds
from ..platform import cuda_libraries
from .linker_input import LinkJob, Part

_SURVIVED = b"survived"


def find_doubted(job: LinkJob) -> list[Part]:
    """Return the parts from outside that were not linked on this machine before, with this toolkit and for this
    architecture; those that refer to each other, and were not linked together; and those whose symbols and prototypes
    cannot be read, which a link may report to stderr alone."""
    store = current_store()
    found = [
        part
        for part in _external(job)
        if part.compiled is None
        and (has_compressed_piece(part.kind.name, part.code) or store.get(_key(job, (part,))) != _SURVIVED)
    ]
    together = _find_references(job)
    if together and store.get(_key(job, together)) != _SURVIVED:
        found += [part for part in together if part not in found]
    return found


def remember(job: LinkJob, parts: Iterable[Part]) -> None:
    parts = list(parts)
    for part in parts:
        current_store().put(_key(job, (part,)), _SURVIVED)
    if parts and (together := _find_references(job)):
        current_store().put(_key(job, together), _SURVIVED)


def _external(job: LinkJob) -> list[Part]:
    return [part for part in job.provided if part.planned is not None]


def _find_references(job: LinkJob) -> list[Part]:
    """Return the parts of machine code or PTX that refer to other parts, with those that they may refer to. What LTO-IR
    defines cannot be read."""
    parts = _external(job)
    if len(parts) < 2:
        return []
    wanted = {id(part): find_undefined(part.kind.name, part.code) for part in parts}
    if not any(wanted.values()):
        return []
    found: dict[int, Part] = {}
    for other in parts:
        defined = None if other.kind is kinds.LTO_IR else find_defined(other.kind.name, other.code)
        for part in parts:
            symbols = wanted[id(part)]
            if part is not other and (symbols if defined is None else symbols & defined):
                found |= {id(part): part, id(other): other}
    return [part for part in parts if id(part) in found]


def _key(job: LinkJob, parts: Sequence[Part]) -> CacheKey:
    return CacheKey(
        "survival",
        " with ".join(part.name for part in parts),
        (
            ("format", "2"),
            ("nvJitLink", cuda_libraries.nvjitlink_build()),
            ("architecture", job.plan.target.arch),
            ("LTO", f"{job.has_ltoir}"),
            *((f"kind {number}", part.kind.name) for number, part in enumerate(parts)),
            *((f"code {number}", part.code) for number, part in enumerate(parts)),
        ),
    )
