# SPDX-License-Identifier: BSD-2-Clause
"""What happened in a link, as plain data: what went in, in which order, where it came from and how long it took."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass

from ..cache.store import Origin
from ..inputs.link_input import LinkInput
from .plan import PlannedInput


@dataclass(frozen=True)
class CompiledCode:
    """What a compiler made of a CUDA C++ source, or where it was found, and in how many seconds."""

    kind: str
    size: int
    sha256: str
    origin: Origin
    seconds: float

    @classmethod
    def of(cls, kind: str, code: bytes, origin: Origin, seconds: float) -> CompiledCode:
        """The record of *code*."""
        return cls(kind, len(code), sha256(code), origin, seconds)


@dataclass(frozen=True)
class LinkedInput:
    """One input of a link. Sizes are in bytes.

    Attributes
    ----------
    kind, name:
        What it is, and what messages call it.
    size, sha256:
        Of the code as it was handed over.
    origins:
        Who brought it: call sites as text, or ``link=``. Nobody for the kernel's own code.
    compiled:
        What came of it, for CUDA C++ source.
    parts:
        The sources that were put together, for a translation unit made of several.
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
        """The record of what was *planned*."""
        parts = tuple(cls.of(part) for part in planned.together)
        return dataclasses.replace(cls.of_own(planned.input), origins=planned.origins, compiled=compiled, parts=parts)

    @classmethod
    def of_own(cls, item: LinkInput) -> LinkedInput:
        """The record of the kernel's own code."""
        return cls(item.kind.name, item.name, len(item.code), sha256(item.code))


@dataclass(frozen=True)
class LinkRecord:
    """One link.

    Attributes
    ----------
    arch, output:
        What for: ``"sm_90a"``, ``"cubin"`` or ``"ptx"``.
    lto:
        Whether it ran with link-time optimisation.
    options:
        The linker's, as text.
    inputs:
        In the order in which the linker got them.
    log:
        What the linker printed.
    origin, seconds:
        Whether it was linked or found in a cache, and how long that took.
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
    """The content's digest, as ``sha256sum`` prints it for a file."""
    return hashlib.sha256(code).hexdigest()
