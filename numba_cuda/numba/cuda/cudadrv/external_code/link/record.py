# SPDX-License-Identifier: BSD-2-Clause
"""The record of a link, as plain data: its inputs in order, where each came from, and how long it took."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass

from ..cache.store import Origin
from .plan import PlannedInput


@dataclass(frozen=True)
class CompiledCode:
    """What a source was compiled to, from which cache or whether it was built, and in how many seconds."""

    kind: str
    size: int
    sha256: str
    origin: Origin
    seconds: float

    @classmethod
    def of(cls, kind: str, code: bytes, origin: Origin, seconds: float) -> CompiledCode:
        """Return the record of *code*."""
        return cls(kind, len(code), sha256(code), origin, seconds)


@dataclass(frozen=True)
class LinkedInput:
    """One input of a link. Sizes are in bytes.

    Attributes
    ----------
    kind, name:
        Its kind, and its name in messages.
    size, sha256:
        Of the code as it was provided.
    origins:
        Call sites as text, or ``link=``. Empty for the kernel's own code.
    compiled:
        What it was compiled to, if it is a source or bitcode.
    parts:
        The sources of a translation unit made of several.
    """

    kind: str
    name: str
    size: int
    sha256: str
    origins: tuple[str, ...] = ()
    compiled: CompiledCode | None = None
    parts: tuple[LinkedInput, ...] = ()

    @classmethod
    def of(cls, planned: PlannedInput, compiled: CompiledCode | None = None) -> LinkedInput:
        """Return the record of a *planned* input."""
        item = planned.input
        own = cls.of_code(item.kind.name, item.name, item.code)
        parts = tuple(map(cls.of, planned.members))
        return dataclasses.replace(own, origins=planned.origins, compiled=compiled, parts=parts)

    @classmethod
    def of_code(cls, kind: str, name: str, code: bytes) -> LinkedInput:
        """Return the record of *code* with no origin: the kernel's own."""
        return cls(kind, name, len(code), sha256(code))


@dataclass(frozen=True)
class LinkRecord:
    """One link.

    Attributes
    ----------
    arch, output:
        The architecture, ``"sm_90a"``, and ``"cubin"`` or ``"ptx"``.
    lto:
        Whether it ran with link-time optimisation.
    options:
        The linker's options, as text.
    inputs:
        In the order in which the linker got them.
    log:
        What the linker printed.
    origin, seconds:
        Whether it was linked or from which cache it came, and how long that took.
    """

    arch: str
    output: str
    lto: bool
    options: tuple[str, ...]
    inputs: tuple[LinkedInput, ...]
    log: str
    origin: Origin
    seconds: float


def sha256(code: bytes) -> str:
    """Return the digest of *code*, as ``sha256sum`` prints it for a file."""
    return hashlib.sha256(code).hexdigest()
