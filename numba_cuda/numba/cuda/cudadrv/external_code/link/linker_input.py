# SPDX-License-Identifier: BSD-2-Clause
"""The parts of a link, its inputs as the linker takes them, compiled; and its options."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cuda.core import LinkerOptions

from ..inputs import kinds
from ..inputs.c_prototypes import CalledFunction
from ..inputs.kinds import Kind
from ..inputs.link_input import LinkInput
from ..plan.link_plan import KernelCode, LinkPlan, PlannedInput
from .link_record import CompiledCode


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


def list_origins(parts: Sequence[Part]) -> str:
    return "; ".join(part.origin for part in parts)


Linkable: TypeAlias = LinkInput | Part


def options_for(inputs: Iterable[Linkable], arch: str, **options: Any) -> tuple[str, ...]:
    """Return nvJitLink's options for a link of *inputs*; *options* are more of `cuda.core.LinkerOptions`."""
    lto = any(item.kind is kinds.LTO_IR for item in inputs)
    as_bytes = LinkerOptions(arch=arch, link_time_optimization=lto or None, **options).as_bytes()
    return tuple(map(os.fsdecode, as_bytes))
