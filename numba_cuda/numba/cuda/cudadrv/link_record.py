# SPDX-License-Identifier: BSD-2-Clause
"""What happened in a link, as plain data: what went in, in which order, where it came from and how long it took."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from numba.cuda.cudadrv.link_inputs import LinkInput

Origin = Literal["memory", "disk", "built"]


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
    """

    kind: str
    name: str
    size: int
    sha256: str
    origins: tuple[str, ...] = ()
    compiled: CompiledCode | None = None

    @classmethod
    def of(cls, item: LinkInput, origins: tuple[str, ...] = (), compiled: CompiledCode | None = None) -> LinkedInput:
        """The record of *item*."""
        return cls(item.kind.name, item.name, len(item.code), sha256(item.code), origins, compiled)


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
