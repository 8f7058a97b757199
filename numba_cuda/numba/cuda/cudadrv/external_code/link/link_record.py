# SPDX-License-Identifier: BSD-2-Clause
"""The record of a link, as plain data: its inputs in order, where each came from, and how long it took."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ..cache.store import Origin
from ..plan.link_plan import PlannedInput


@dataclass(frozen=True)
class CompiledCode:
    """What a source was compiled to, from which cache or whether it was built, and in how many seconds."""

    kind: str
    size: int
    sha256: str
    origin: Origin
    seconds: float


@dataclass(frozen=True)
class LinkedInput:
    """One input of a link: its *size* in bytes and *sha256* as it was provided; *origins*, which are call sites, or
    ``link=``, and empty for the kernel's own code; what a source or bitcode was *compiled* to; and as *parts* the
    sources of a translation unit made of several."""

    kind: str
    name: str
    size: int
    sha256: str
    origins: tuple[str, ...] = ()
    compiled: CompiledCode | None = None
    parts: tuple[LinkedInput, ...] = ()

    @classmethod
    def of(cls, planned: PlannedInput, compiled: CompiledCode | None = None) -> LinkedInput:
        item, parts = planned.input, tuple(map(cls.of, planned.members))
        return cls(item.kind.name, item.name, len(item.code), sha256(item.code), planned.origins, compiled, parts)


@dataclass(frozen=True)
class LinkRecord:
    """One link: for which *arch* (``"sm_90a"``), to which *output* (``"cubin"`` or ``"ptx"``), with which *options* of
    the linker, of which *inputs* in order, with what *log*, from which cache (*origin*) and in how many *seconds*."""

    arch: str
    output: str
    lto: bool
    options: tuple[str, ...]
    inputs: tuple[LinkedInput, ...]
    log: str
    origin: Origin
    seconds: float


def sha256(code: bytes) -> str:
    return hashlib.sha256(code).hexdigest()
