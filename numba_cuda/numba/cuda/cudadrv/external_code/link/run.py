# SPDX-License-Identifier: BSD-2-Clause
"""Runs a link plan: compiles what is source, links through nvJitLink, and says what went wrong."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from cuda.core import Linker, LinkerOptions, ObjectCode

from .. import progress, toolkit
from ..cache import store as cache_store
from ..cache.key import CacheKey
from ..compile import diagnostics as compile_failure
from ..compile import programs as program_cache
from ..compile.nvrtc import CompileError
from ..compile.programs import Program, SourceError
from ..formats.structure import misfit
from ..inputs import kinds
from ..inputs.link_input import LinkInput
from ..toolkit import why_missing
from . import device_runtime, explain
from .duplicates import defined_twice
from .errors import LinkError, Part
from .plan import DEVICE_RUNTIME, HOSTS_OWN, NAMED_EXPLICITLY, LinkPlan, PlannedInput
from .record import CompiledCode, LinkedInput, LinkRecord
from .signatures import mismatch

_TIMES = re.compile(r"^.*\btime\b.*(?:\n|$)", re.MULTILINE | re.IGNORECASE)

__all__ = ["LinkError", "Linked", "link"]


@dataclass(frozen=True)
class Linked:
    """What came of a link: a cubin or PTX, the linker's log, and how it came about."""

    code: ObjectCode
    log: str
    record: LinkRecord | None = None

    def packed(self) -> bytes:
        """Code and log as bytes, for a cache."""
        log = self.log.encode()
        return len(log).to_bytes(8, "little") + log + bytes(self.code.code)

    @classmethod
    def unpacked(cls, data: bytes, output: str, name: str) -> Linked:
        """What was packed."""
        start = 8 + int.from_bytes(data[:8], "little")
        make = ObjectCode.from_cubin if output == "cubin" else ObjectCode.from_ptx
        return cls(make(data[start:], name=name), data[8:start].decode())


@dataclass(frozen=True)
class _Part(Part):
    """A part of the link, and what is remembered of it."""

    record: LinkedInput


def link(
    plan: LinkPlan,
    own: Sequence[LinkInput],
    wanted_by: Mapping[str, str],
    *,
    prototypes: Mapping[str, str] = MappingProxyType({}),
    output: str = "cubin",
    entry: str = "",
    drop_unused_variables: bool = False,
    calls: Callable[[], Collection[str]] | None = None,
) -> Linked:
    """Link a kernel's *own* code with what is planned.

    *wanted_by* tells which call brought in a symbol, for messages, and *prototypes* the LLVM function type with which
    it is called. *output* is ``"cubin"`` or ``"ptx"`` (LTO only).
    With *drop_unused_variables*, LTO takes for granted that nothing outside of the code reads or sets a variable, or
    calls another kernel than *entry*. *calls* gives the symbols that the own code declares, and bitcode is linked for.

    Raises
    ------
    LinkError
        If something does not compile, a symbol is missing or defined twice, an input does not fit the target or a call,
        nvJitLink refuses one, or NVRTC or nvJitLink is not installed.
    """
    _refuse_without_libraries(plan)
    _refuse_misfits(plan)
    parts = [_Part(item.kind, item.code, "the kernel's own code", item.name, LinkedInput.of_own(item)) for item in own]
    parts += _external_parts(plan, calls)
    try:
        return _linked(plan, parts, wanted_by, prototypes, output, entry, drop_unused_variables)
    except _WantsDeviceRuntimeError as wants:
        found = device_runtime.archive()
        if found is None:
            raise wants.error from wants.error.__cause__
        planned = PlannedInput(found, (DEVICE_RUNTIME,))
        parts.append(_Part(found.kind, found.code, str(planned), found.name, LinkedInput.of(planned)))
        return _linked(plan, parts, wanted_by, prototypes, output, entry, drop_unused_variables)


class _WantsDeviceRuntimeError(Exception):
    """A link failed with *error* for want of the device runtime, it seems."""

    def __init__(self, error: LinkError):
        self.error = error
        super().__init__(str(error))


def _linked(
    plan: LinkPlan,
    parts: Sequence[_Part],
    wanted_by: Mapping[str, str],
    prototypes: Mapping[str, str],
    output: str,
    entry: str,
    drop_unused_variables: bool,
) -> Linked:
    target = plan.target
    has_ltoir = any(part.kind is kinds.LTO_IR for part in parts)
    options = LinkerOptions(
        arch=target.arch,
        max_register_count=target.max_registers or None,
        lineinfo=target.lineinfo or None,
        link_time_optimization=has_ltoir or None,
        ptx=(has_ltoir and output == "ptx") or None,
        optimize_unused_variables=(has_ltoir and drop_unused_variables) or None,
        kernels_used=[entry] if has_ltoir and drop_unused_variables else None,
        verbose=True,  # ptxas then tells what it spilled, in no measurable time
    )

    # nvJitLink gives no log of a link that it remembers.
    how = dataclasses.replace(options, no_cache=True) if cache_store.store().settings.verify else options

    def run() -> bytes:
        _refuse_double_definitions(plan, parts, prototypes)
        _refuse_wrong_signatures(plan, parts, wanted_by, prototypes)
        try:
            return _run(parts, how, output, wanted_by).packed()
        except Exception as error:
            explained = explain.explained(plan, parts, wanted_by, prototypes, str(error))
            explained.__cause__ = error
            if device_runtime.is_wanted(str(error)) and not any(part.origin.endswith(DEVICE_RUNTIME) for part in parts):
                raise _WantsDeviceRuntimeError(explained) from error
            raise explained from error

    with progress.step(f"linking {plan.kernel} for {target.arch}"):
        fetched = cache_store.fetch(_key(plan, parts, options, output), run)
    linked = Linked.unpacked(fetched.data, output, plan.kernel)
    record = LinkRecord(
        target.arch,
        output,
        has_ltoir,
        tuple(os.fsdecode(option) for option in options.as_bytes()),
        tuple(part.record for part in parts),
        linked.log,
        fetched.origin,
        fetched.seconds,
    )
    return dataclasses.replace(linked, record=record)


def _key(plan: LinkPlan, parts: Sequence[_Part], options: LinkerOptions, output: str) -> CacheKey:
    """What a link depends on: all code by content and in order, the options, and the linker."""
    return CacheKey(
        "link",
        plan.kernel,
        (
            ("nvJitLink", toolkit.nvjitlink_build()),
            ("output", output),
            ("options", b"\0".join(options.as_bytes())),
            *((f"input {number}", f"{part.kind} ".encode() + part.code) for number, part in enumerate(parts)),
        ),
    )


_failed = False


def _run(parts: Sequence[_Part], options: LinkerOptions, output: str, wanted_by: Mapping[str, str]) -> Linked:
    global _failed
    linker = None
    try:
        linker = Linker(*[part.object_code() for part in parts], options=options)
        code = linker.link(output)
        log = linker.get_info_log()
        if output == "cubin" and (symbol := passed_undefined(bytes(code.code), wanted_by)):
            raise RuntimeError(f"nvJitLink let it pass: Undefined reference to '{symbol}'")
    except Exception:
        _failed = True
        raise
    finally:
        if linker is not None:
            linker.close()
    # The log is cached with the code: what differs from run to run is no part of it.
    return Linked(code, _TIMES.sub("", log.replace("\0", "")).strip())


def passed_undefined(cubin: bytes, wanted: Collection[str]) -> str | None:
    """A symbol of *wanted* that a linked *cubin* calls and lacks. Where one link has failed in a process, nvJitLink
    (at least 12.9 to 13.5) can let that pass in the next ones; before, nothing is looked at."""
    if not _failed:
        return None
    from ..formats import symbols as code_symbols

    found = code_symbols.in_elf(cubin)
    return next((name for name in found.wanted if name in wanted), None) if found is not None else None


def _external_parts(plan: LinkPlan, calls: Callable[[], Collection[str]] | None) -> list[_Part]:
    sources = [planned for planned in plan.units if planned.input.kind is kinds.CUDA]
    programs = iter(_programs(plan, sources))
    libraries = [planned for planned in plan.units if planned.input.kind is kinds.BITCODE]
    from_bitcode = _from_bitcode(plan, libraries, calls)
    parts = []
    for number, planned in enumerate(plan.units, 1):
        kind, code, compiled = planned.input.kind, planned.input.code, None
        if kind.is_compiled:
            program = next(programs if kind is kinds.CUDA else from_bitcode)
            kind, code = program.kind, program.code
            compiled = CompiledCode.of(kind.name, code, program.origin, program.seconds)
        record = LinkedInput.of(planned, compiled)
        # Names are what nvJitLink's messages go by, so no two are the same.
        parts.append(_Part(kind, code, str(planned), f"{planned.input.name} (input {number})", record))
    return parts


def _programs(plan: LinkPlan, sources: Sequence[PlannedInput]) -> list[Program]:
    try:
        return program_cache.all_compiled([planned.input for planned in sources], plan.target)
    except SourceError as error:
        planned = sources[error.number]
        if planned.origins == (NAMED_EXPLICITLY,) and error.error.__cause__ is not None:
            raise error.error.__cause__ from None  # what numba-cuda raises for link=
        raise _does_not_compile(plan, planned, error.error) from error.error


def _from_bitcode(
    plan: LinkPlan, libraries: Sequence[PlannedInput], calls: Callable[[], Collection[str]] | None
) -> Iterator[Program]:
    """Bitcode compiled: what the kernel calls, if nothing else in the link could call any of it."""
    if not libraries:
        return
    from ..compile import bitcode as bitcode_compile

    others = [planned for planned in plan.units if not set(planned.origins) <= HOSTS_OWN]
    wanted = calls() if calls is not None and len(others) == 1 else None
    for planned in libraries:
        try:
            with progress.step(f"compiling {os.path.basename(planned.input.name)}"):
                yield bitcode_compile.compiled(planned.input, plan.target, wanted)
        except CompileError as error:
            message = (
                f"{explain.failed(plan)}: the {planned} cannot be compiled for {plan.target.arch}\n"
                "  what to do: for architectures before sm_100, NVVM reads bitcode of LLVM 7 alone; else make it with a"
                " clang no newer than llvmlite's LLVM"
            )
            raise LinkError(message, error.log) from error


def _does_not_compile(plan: LinkPlan, planned: PlannedInput, error: CompileError) -> LinkError:
    path = compile_failure.saved(planned.input.code, planned.input.name)
    return LinkError(
        f"{explain.failed(plan)}: the {planned} does not compile\n"
        f"  source: {path or 'could be saved nowhere'}\n"
        f"  what to do: {compile_failure.remedy(error.log, planned.input.options.include_paths)}",
        error.log,
        source_path=path,
        shown=compile_failure.errors_in(error.log),
    )


def _refuse_without_libraries(plan: LinkPlan) -> None:
    needed = {"nvJitLink": ("the link itself", toolkit.nvjitlink_version)}
    for planned in plan.inputs:
        if planned.input.kind is kinds.CUDA:
            needed.setdefault("NVRTC", (str(planned), toolkit.nvrtc_version))
    for library, (what, version) in needed.items():
        if version() is None and (missing := why_missing(library)):
            message, error = missing
            raise LinkError(f"{explain.failed(plan)}: {message}\n  needed for: {what}", str(error)) from error


def _refuse_misfits(plan: LinkPlan) -> None:
    """What was asked for was looked at when it was asked for; what was named explicitly was not."""
    for planned in plan.inputs:
        if why := misfit(planned.input, plan.target):
            raise LinkError(f"{explain.failed(plan)}: an input does not fit\n  at fault: {planned}\n  reason: {why}")


def _refuse_double_definitions(plan: LinkPlan, parts: Sequence[_Part], called: Mapping[str, str]) -> None:
    """nvJitLink takes the first of two definitions in PTX and cubins without a word, or crashes."""
    hosts_own = {str(planned) for planned in plan.units if set(planned.origins) <= HOSTS_OWN}
    twice = defined_twice([part for part in parts if part.origin not in hosts_own], called, plan.target.arch)
    if twice is not None:
        raise explain.double_definition(plan, *twice)


def _refuse_wrong_signatures(
    plan: LinkPlan, parts: Sequence[_Part], wanted_by: Mapping[str, str], prototypes: Mapping[str, str]
) -> None:
    """nvJitLink links a caller with a callee that takes something else."""
    asked_for = {str(planned) for planned in plan.inputs if planned.origins != (NAMED_EXPLICITLY,)}
    for part in parts:
        if part.kind is kinds.PTX and part.origin in asked_for:
            found = mismatch(prototypes, part.code)
            if found is not None:
                raise explain.wrong_signature(plan, part, wanted_by, *found)
