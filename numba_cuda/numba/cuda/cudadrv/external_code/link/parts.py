# SPDX-License-Identifier: BSD-2-Clause
"""The parts of a link: the inputs as the linker takes them. Here sources and bitcode are compiled."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .. import progress
from ..compile import diagnostics, programs
from ..compile.nvrtc import CompileError
from ..compile.programs import Program, SourceError
from ..inputs import kinds
from ..inputs.kinds import Kind
from ..inputs.link_input import LinkInput
from .errors import LinkError, link_error
from .kernel_code import KernelCode
from .plan import NAMED_EXPLICITLY, LinkPlan, PlannedInput
from .record import CompiledCode, LinkedInput, sha256


@dataclass(frozen=True, eq=False)
class Part:
    """One input as the linker takes it. *planned* is what it was made from; ``None`` for the kernel's own code."""

    kind: Kind
    code: bytes = field(repr=False)
    name: str
    planned: PlannedInput | None = None
    compiled: CompiledCode | None = None

    @property
    def origin(self) -> str:
        """Where it comes from, for messages."""
        return "the kernel's own code" if self.planned is None else str(self.planned)

    @property
    def record(self) -> LinkedInput:
        """What is remembered of it."""
        if self.planned is not None:
            return LinkedInput.of(self.planned, self.compiled)
        return LinkedInput(self.kind.name, self.name, len(self.code), sha256(self.code))


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

    @classmethod
    def of(cls, plan: LinkPlan, kernel_code: KernelCode) -> LinkJob:
        """Compile what is not compiled yet. Raises `LinkError` if something does not compile."""
        own = [Part(item.kind, item.code, item.name) for item in kernel_code.inputs]
        return cls(plan, kernel_code, (*own, *_external_parts(plan, kernel_code)))

    @property
    def has_ltoir(self) -> bool:
        """Whether the link needs link-time optimisation."""
        return any(part.kind is kinds.LTO_IR for part in self.parts)

    def with_runtime(self, library: LinkInput, origin: str) -> LinkJob:
        """Return the job with a runtime *library* added."""
        part = Part(library.kind, library.code, library.name, PlannedInput(library, (origin,)))
        return LinkJob(self.plan, self.kernel_code, (*self.parts, part))


def listed(parts: Sequence[Part]) -> str:
    """Return the origins of *parts*, for a message."""
    return "; ".join(part.origin for part in parts)


def _external_parts(plan: LinkPlan, kernel_code: KernelCode) -> Iterator[Part]:
    from_sources = iter(_from_sources(plan, [unit for unit in plan.units if unit.input.kind is kinds.CUDA]))
    from_bitcode = _from_bitcode(plan, kernel_code)
    for number, planned in enumerate(plan.units, 1):
        kind, code, compiled = planned.input.kind, planned.input.code, None
        if kind.is_compiled:
            program = next(from_sources if kind is kinds.CUDA else from_bitcode)
            kind, code = program.kind, program.code
            compiled = CompiledCode(kind.name, len(code), sha256(code), program.origin, program.seconds)
        # nvJitLink's messages refer to inputs by name, so names are unique.
        yield Part(kind, code, f"{planned.input.name} (input {number})", planned, compiled)


def _from_sources(plan: LinkPlan, sources: Sequence[PlannedInput]) -> list[Program]:
    try:
        return programs.all_compiled([planned.input for planned in sources], plan.target)
    except SourceError as error:
        planned = sources[error.number]
        if planned.origins == (NAMED_EXPLICITLY,) and error.error.__cause__ is not None:
            raise error.error.__cause__ from None  # what numba-cuda raises for link=
        raise _does_not_compile(plan, planned, error.error) from error.error


def _from_bitcode(plan: LinkPlan, kernel_code: KernelCode) -> Iterator[Program]:
    """Compile bitcode: only what the kernel calls, if no other code that is linked could call any of it."""
    callers = [planned for planned in plan.units if not planned.is_runtime]
    needed = kernel_code.undefined if len(callers) == 1 else None
    for planned in plan.units:
        if planned.input.kind is not kinds.BITCODE:
            continue
        try:
            with progress.step(f"compiling {os.path.basename(planned.input.name)}"):
                yield programs.compiled(planned.input, plan.target, needed)
        except CompileError as error:
            raise link_error(
                plan,
                f"the {planned} cannot be compiled for {plan.target.arch}",
                "what to do: for architectures before sm_100, NVVM reads bitcode of LLVM 7 only; else make it with a"
                " clang no newer than llvmlite's LLVM",
                log=error.log,
            ) from error


def _does_not_compile(plan: LinkPlan, planned: PlannedInput, error: CompileError) -> LinkError:
    path = diagnostics.saved(planned.input.code, planned.input.name)
    return link_error(
        plan,
        f"the {planned} does not compile",
        f"source: {path or 'could not be saved'}",
        f"what to do: {diagnostics.remedy(error.log, planned.input.options.include_paths)}",
        log=error.log,
        source_path=path,
        shown=diagnostics.errors_in(error.log),
    )
