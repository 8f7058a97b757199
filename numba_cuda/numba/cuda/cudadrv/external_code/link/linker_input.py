# SPDX-License-Identifier: BSD-2-Clause
"""The parts of a link: its inputs as the linker takes them, compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..inputs import kinds
from ..inputs.kinds import Kind
from ..inputs.link_input import LinkInput
from ..plan.kernel_code import KernelCode
from ..plan.link_plan import LinkPlan, PlannedInput
from .link_record import CompiledCode, LinkedInput, sha256


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
<<<<<<< HEAD
=======


def _external_parts(plan: LinkPlan, kernel_code: KernelCode) -> Iterator[Part]:
    from_sources = iter(_from_sources(plan, _sources_of(plan), kernel_code))
    from_bitcode = _from_bitcode(plan, kernel_code)
    for number, planned in enumerate(plan.units, 1):
        kind, code, compiled = planned.input.kind, planned.input.code, None
        if kind.is_compiled:
            program = next(from_sources if kind is kinds.CUDA else from_bitcode)
            kind, code = program.kind, program.code
            compiled = CompiledCode(kind.name, len(code), sha256(code), program.origin, program.seconds)
        # nvJitLink's messages refer to inputs by name, so names are unique.
        yield Part(kind, code, f"{planned.input.name} (input {number})", planned, compiled)


def _from_sources(plan: LinkPlan, sources: Sequence[PlannedInput], kernel_code: KernelCode) -> list[Program]:
    """Compile *sources*, and check the types of the functions that the kernel calls."""
    inputs, called = _checked_sources(plan, sources, kernel_code)
    while True:
        try:
            return programs.all_compiled(inputs, plan.target, called)
        except SourceError as error:
            from ..compile.prototype_assertions import PrototypeError
            from ..explain.source_errors import defined_among, does_not_compile, wrong_types

            planned = sources[error.number]
            if planned.origins == (NAMED_EXPLICITLY,) and error.error.__cause__ is not None:
                raise error.error.__cause__ from None  # what numba-cuda raises for link=
            if not isinstance(error.error, PrototypeError):
                others = [(sources[each.number], each.error) for each in error.others]
                raise does_not_compile(plan, planned, kernel_code, error.error, others) from error.error
            if defined := defined_among(planned.input, error.error.wrong, plan.target):
                raise wrong_types(plan, planned, error.error, defined) from error.error
            ignored = {each.called for each in error.error.wrong}
            called = [
                tuple(each for each in of_it if number != error.number or each not in ignored)
                for number, of_it in enumerate(called)
            ]


def programs_of(plan: LinkPlan, kernel_code: KernelCode) -> list[tuple[LinkInput, tuple[CalledFunction, ...]]]:
    """Return the sources that the link compiles, with the functions whose types it checks in them."""
    return list(zip(*_checked_sources(plan, _sources_of(plan), kernel_code), strict=True))


def _sources_of(plan: LinkPlan) -> list[PlannedInput]:
    return [unit for unit in plan.units if unit.input.kind is kinds.CUDA]


def _checked_sources(
    plan: LinkPlan, sources: Sequence[PlannedInput], kernel_code: KernelCode
) -> tuple[list[LinkInput], list[tuple[CalledFunction, ...]]]:
    variables = [variable for _, variable in plan.variables]
    return [with_variables_checked(each.input, variables) for each in sources], _called_in(sources, kernel_code)


def _called_in(sources: Sequence[PlannedInput], kernel_code: KernelCode) -> list[tuple[CalledFunction, ...]]:
    """Return for each of *sources* the functions in it that calls in Python reference: calls of objects that
    returned the source; and if an object returned none, those whose names are in its text.

    Sources given as ``link=`` are as numba-cuda takes them: with whatever types.
    """
    found: list[dict[CalledFunction, None]] = [{} for _ in sources]
    checked = [number for number, each in enumerate(sources) if each.origins != (NAMED_EXPLICITLY,)]
    returned: dict[str, list[int]] = {}
    for number in checked:
        for origin in sources[number].origins:
            returned.setdefault(origin, []).append(number)
    for symbol, sites in kernel_code.sites.items():
        for site in sites:
            by_call = {number for call in site.asked for number in returned.get(call, ())}
            for number in by_call or [number for number in checked if _mentions(sources[number], symbol)]:
                found[number].setdefault(site.called(symbol))
    return [tuple(functions) for functions in found]


def _mentions(source: PlannedInput, symbol: str) -> bool:
    return symbol.encode() in source.input.code or any(symbol in text for _, text in source.input.options.defines)


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
                f"{planned.input.kind} {planned.input.name!r} cannot be compiled for {plan.target.arch}",
                f"at fault: {planned}",
                "what to do: for architectures before sm_100, NVVM reads bitcode of LLVM 7 only; else make it with a"
                " clang no newer than llvmlite's LLVM",
                log=error.log,
            ) from error
>>>>>>> main
