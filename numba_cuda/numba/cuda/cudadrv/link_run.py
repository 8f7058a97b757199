# SPDX-License-Identifier: BSD-2-Clause
"""Runs a link plan: compiles what is source, links through nvJitLink, and says what went wrong."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cuda.core import Linker, LinkerOptions, ObjectCode
from numba.cuda.cudadrv import cache_store, link_inputs, link_symbols, program_cache, progress, toolkit
from numba.cuda.cudadrv.cache_key import CacheKey
from numba.cuda.cudadrv.driver import LinkerError
from numba.cuda.cudadrv.link_inputs import Kind, LinkInput
from numba.cuda.cudadrv.link_plan import NAMED_EXPLICITLY, LinkPlan, PlannedInput
from numba.cuda.cudadrv.link_record import CompiledCode, LinkedInput, LinkRecord
from numba.cuda.cudadrv.program_cache import Program, SourceError

_MAKE = {
    link_inputs.PTX: ObjectCode.from_ptx,
    link_inputs.LTO_IR: ObjectCode.from_ltoir,
    link_inputs.CUBIN: ObjectCode.from_cubin,
    link_inputs.FATBIN: ObjectCode.from_fatbin,
    link_inputs.OBJECT: ObjectCode.from_object,
    link_inputs.ARCHIVE: ObjectCode.from_library,
}
_UNDEFINED = re.compile(
    r"Unresolved extern (?:function|variable) '([^']+)'|Undefined reference to '([^']+)'|undefined symbol '?([\w$]+)"
)
_COMPILE_TIME = re.compile(r"^ptxas info +: Compile time = .*\n?", re.MULTILINE)


class LinkError(LinkerError):
    """A kernel's external code could not be compiled or linked.

    ``log`` is what the compiler or linker printed; its own exception is ``__cause__``.
    """

    def __init__(self, message: str, log: str = ""):
        self.log = log.replace("\0", "").strip()
        super().__init__(f"{message}\n  log: {self.log}" if self.log else message)


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
class _Part:
    """One input as the linker takes it. ``origin`` tells where it comes from, for messages; ``record`` is what is
    remembered of it."""

    kind: Kind
    code: bytes
    origin: str
    name: str
    record: LinkedInput

    def object_code(self) -> ObjectCode:
        return _MAKE[self.kind](self.code, name=self.name)


def link(
    plan: LinkPlan,
    own: Sequence[LinkInput],
    wanted_by: Mapping[str, str],
    *,
    output: str = "cubin",
    drop_unused_variables: bool = False,
) -> Linked:
    """Link a kernel's *own* code with what is planned.

    *wanted_by* tells which call brought in a symbol, for messages. *output* is ``"cubin"`` or ``"ptx"`` (LTO only).
    With *drop_unused_variables*, LTO takes for granted that nothing outside of the code reads or sets a variable.

    Raises
    ------
    LinkError
        If a source does not compile, a symbol is missing or defined twice, or nvJitLink refuses an input.
    """
    target = plan.target
    parts = [_Part(item.kind, item.code, "the kernel's own code", item.name, LinkedInput.of_own(item)) for item in own]
    parts += _external_parts(plan)
    has_ltoir = any(part.kind is link_inputs.LTO_IR for part in parts)
    options = LinkerOptions(
        arch=target.arch,
        max_register_count=target.max_registers or None,
        lineinfo=target.lineinfo or None,
        link_time_optimization=has_ltoir or None,
        ptx=(has_ltoir and output == "ptx") or None,
        optimize_unused_variables=(has_ltoir and drop_unused_variables) or None,
        verbose=True,  # ptxas then tells what it spilled, in no measurable time
    )

    def run() -> bytes:
        _refuse_double_definitions(plan, parts)
        return _run(plan, parts, options, output, wanted_by).packed()

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


def _run(
    plan: LinkPlan, parts: Sequence[_Part], options: LinkerOptions, output: str, wanted_by: Mapping[str, str]
) -> Linked:
    linker = None
    try:
        linker = Linker(*[part.object_code() for part in parts], options=options)
        code = linker.link(output)
        log = linker.get_info_log()
    except Exception as error:
        raise _explained(plan, parts, wanted_by, str(error)) from error
    finally:
        if linker is not None:
            linker.close()
    # The log is cached with the code: what differs from run to run is no part of it.
    return Linked(code, _COMPILE_TIME.sub("", log.replace("\0", "")).strip())


def _external_parts(plan: LinkPlan) -> list[_Part]:
    sources = [planned for planned in plan.units if planned.input.kind is link_inputs.CUDA]
    programs = iter(_programs(plan, sources))
    parts = []
    for number, planned in enumerate(plan.units, 1):
        kind, code, compiled = planned.input.kind, planned.input.code, None
        if kind is link_inputs.CUDA:
            program = next(programs)
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
        raise LinkError(f"{_failed(plan)}: the {planned} does not compile", error.error.log) from error.error


def _failed(plan: LinkPlan) -> str:
    return f"linking {plan.kernel} for {plan.target.arch} failed"


def _refuse_double_definitions(plan: LinkPlan, parts: Sequence[_Part]) -> None:
    """nvJitLink takes the first of two definitions in PTX and cubins without a word, or crashes."""
    defined: dict[str, _Part] = {}
    for part in parts:
        if part.kind is link_inputs.PTX:
            symbols = link_symbols.in_ptx(part.code)
        elif part.kind is link_inputs.CUBIN:
            symbols = link_symbols.in_cubin(part.code)
        else:
            continue
        for symbol in sorted(symbols):
            if symbol in defined:
                raise _double_definition(plan, symbol, defined[symbol], part)
            defined[symbol] = part
    for part in parts:
        if part.kind is link_inputs.LTO_IR and defined:
            twice = link_symbols.defined_in_ltoir(part.code, defined, plan.target.arch)
            if twice is not None:
                raise _double_definition(plan, twice, part, defined[twice])


def _double_definition(plan: LinkPlan, symbol: str, first: _Part, second: _Part, log: str = "") -> LinkError:
    return LinkError(
        f"{_failed(plan)}: {symbol!r} is defined twice\n"
        f"  first by: {first.origin}\n"
        f"  again by: {second.origin}\n"
        "  what to do: give the two functions different names (put what distinguishes them, such as sizes and types,"
        " into the symbol), or return equal code from both objects: equal code is linked once",
        log,
    )


def _explained(plan: LinkPlan, parts: Sequence[_Part], wanted_by: Mapping[str, str], log: str) -> LinkError:
    """The error that says what nvJitLink's *log* means."""
    symbol = link_symbols.multiply_defined(log)
    if symbol is not None:
        ltoir = [part for part in parts if part.kind is link_inputs.LTO_IR]
        for index, second in enumerate(ltoir):
            for first in ltoir[:index]:
                if link_symbols.clash(first.code, second.code, plan.target.arch) == symbol:
                    return _double_definition(plan, symbol, first, second, log)
    undefined = _UNDEFINED.search(log)
    if undefined:
        symbol = next(group for group in undefined.groups() if group)
        return LinkError(
            f"{_failed(plan)}: {symbol!r} is called but nothing that is linked defines it\n"
            f"  wanted by: {wanted_by.get(symbol, 'code that is linked, not by a call in Python')}\n"
            f"  linked: {_listed(parts)}\n"
            "  what to do: check the symbol's spelling; in CUDA C++ declare the function"
            ' extern "C" __device__, so that its name is not mangled',
            log,
        )
    named = [part for part in parts if part.name in log]
    fault = f"\n  at fault: {'; '.join(part.origin for part in named)}" if named else ""
    return LinkError(f"{_failed(plan)}{fault}\n  linked: {_listed(parts)}", log)


def _listed(parts: Sequence[_Part]) -> str:
    return "; ".join(part.origin for part in parts)
