# SPDX-License-Identifier: BSD-2-Clause
"""The parts of a link, its inputs as the linker takes them, compiled; its options; and the record of a link, as plain
data: its inputs in order, where each came from, and how long it took."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cuda.core import LinkerOptions

from ..cache.store import Origin
from ..inputs import kinds
from ..inputs.c_prototypes import CalledFunction
from ..inputs.kinds import Kind
from ..inputs.link_input import LinkInput
from ..plan.link_plan import KernelCode, LinkPlan, PlannedInput
from ..platform import cuda_libraries


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
    ``link=``, and empty for the kernel's own code; what a source or bitcode was *compiled* to; as *parts* the sources
    of a translation unit made of several; and the compile *options* of a source, as pairs of a name and a text."""

    kind: str
    name: str
    size: int
    sha256: str
    origins: tuple[str, ...] = ()
    compiled: CompiledCode | None = None
    parts: tuple[LinkedInput, ...] = ()
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, planned: PlannedInput, compiled: CompiledCode | None = None) -> LinkedInput:
        item, parts = planned.input, tuple(map(cls.of, planned.members))
        what = item.kind.name, item.name, len(item.code), sha256(item.code), planned.origins, compiled, parts
        return cls(*what, item.options.texts)


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


@dataclass(frozen=True, eq=False)
class Part:
    """One input as the linker takes it. *planned* is what it was made from; ``None`` for the kernel's own code. Of the
    functions that are *hidden*, the structs by value were not compared with those of the calls."""

    kind: Kind
    code: bytes = field(repr=False)
    name: str
    planned: PlannedInput | None = None
    compiled: CompiledCode | None = None
    hidden: tuple[CalledFunction, ...] = ()

    @property
    def origin(self) -> str:
        return "the kernel's own code" if self.planned is None else str(self.planned)


@dataclass(frozen=True)
class LinkJob:
    """All that goes into one link."""

    plan: LinkPlan
    kernel_code: KernelCode
    parts: tuple[Part, ...]

    @property
    def provided(self) -> list[Part]:
        """The parts that the kernel or a user provides, without runtime libraries."""
        return [part for part in self.parts if part.planned is None or not part.planned.is_runtime]

    @property
    def has_ltoir(self) -> bool:
        return any(part.kind is kinds.LTO_IR for part in self.parts)


def parts_of_key(format: str, job: LinkJob, part: Part, names: Collection[str]) -> tuple[tuple[str, str | bytes], ...]:
    """Return the parts of the key of what a link of *part* alone shows, where code references *names*: an entry in this
    *format*."""
    return (
        ("format", format),
        ("nvJitLink", cuda_libraries.nvjitlink_build()),
        ("architecture", job.plan.target.arch),
        ("kind", part.kind.name),
        ("names", json.dumps(sorted(names))),
        ("code", part.code),
    )


def list_origins(parts: Sequence[Part]) -> str:
    return "; ".join(part.origin for part in parts)


Linkable: TypeAlias = LinkInput | Part


def options_for(inputs: Iterable[Linkable], arch: str, **options: Any) -> tuple[str, ...]:
    """Return nvJitLink's options for a link of *inputs*; *options* are more of `cuda.core.LinkerOptions`."""
    lto = any(item.kind is kinds.LTO_IR for item in inputs)
    as_bytes = LinkerOptions(arch=arch, link_time_optimization=lto or None, **options).as_bytes()
    return tuple(map(os.fsdecode, as_bytes))
