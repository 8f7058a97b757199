# SPDX-License-Identifier: BSD-2-Clause
"""The errors of sources: they do not compile, or a function has other types than a call passes."""

from __future__ import annotations

import collections
import os
import re
from collections.abc import Sequence

from cuda.core._utils.cuda_utils import NVRTCError

from ..compile import nvrtc_log, programs
from ..compile.nvrtc import CompileError
from ..compile.programs import SourceError
from ..compile.prototype_assertions import PrototypeError, WrongFunction
from ..compile.translation_unit import toolkit_include_paths
from ..formats.symbols import find_defined
from ..headers.preprocessor import Directives
from ..inputs import kinds
from ..inputs.c_prototypes import CalledFunction
from ..inputs.link_input import LinkInput
from ..link.ltoir_probes import defined_in_ltoir
from ..plan.errors import LinkError, link_error
from ..plan.link_plan import NAMED_EXPLICITLY, KernelCode, LinkPlan, PlannedInput
from ..plan.variable_checks import declaration_error, undeclared_variable
from ..platform.target import Target
from .unsupported_instruction import unsupported_in, unsupported_in_source


class _ExplicitSourceError(LinkError, NVRTCError):
    """A source of ``link=`` does not compile: numba-cuda raises cuda.core's error for that, with NVRTC's log."""


def find_declared_only(plan: LinkPlan, kernel_code: KernelCode, error: SourceError) -> set[tuple[int, CalledFunction]]:
    """Return the functions that a unit of the plan declares with other types than the calls have, and does not define,
    with the index of the unit: those types do not matter. Raises what any other *error* of the compile stage means."""
    planned, cause = plan.units[error.number], error.error
    if planned.input.kind is kinds.BITCODE:
        raise link_error(
            plan,
            f"{planned.input.kind} {planned.input.name!r} cannot be compiled for {plan.target.arch}",
            f"at fault: {planned}",
            "what to do: for architectures before sm_100, NVVM reads bitcode of LLVM 7 only; for later ones, make"
            " it with a clang no newer than llvmlite's LLVM",
            log=cause.log,
        ) from cause
    if not isinstance(cause, PrototypeError):
        others = [(plan.units[each.number], each.error) for each in error.others]
        raise does_not_compile(plan, planned, kernel_code, cause, others) from cause
    if defined := find_defined_among(planned.input, cause.wrong, plan.target):
        raise wrong_types(plan, planned, cause, defined) from cause
    return {(error.number, each.called) for each in cause.wrong}


def find_defined_among(source: LinkInput, wrong: Sequence[WrongFunction], target: Target) -> list[WrongFunction]:
    """Return those of the *wrong* functions that *source* defines: others it only declares, or they are C++ functions
    that have the name of another input's C function."""
    program = programs.compiled(source, target)
    if program.kind is kinds.LTO_IR:
        return [each for each in wrong if defined_in_ltoir(program.code, [each.called.symbol], target.arch)]
    names = find_defined(program.kind.name, program.code)
    return [each for each in wrong if each.called.symbol in names]


def does_not_compile(
    plan: LinkPlan,
    planned: PlannedInput,
    kernel_code: KernelCode,
    error: CompileError,
    others: Sequence[tuple[PlannedInput, CompileError]],
) -> LinkError:
    if (found := unsupported_in(error.log)) is not None:
        return unsupported_in_source(plan, planned, kernel_code, found, error.log)
    if (wrong_size := declaration_error(plan, planned, error.log)) is not None:
        return wrong_size
    path = nvrtc_log.saved(planned.input.text.encode(), planned.input.name)
    options = planned.input.options
    macros = [name for name, _ in options.defines]
    todo = undeclared_variable(plan, error.log) or nvrtc_log.remedy(error.log, options.include_paths, macros)
    explicit = planned.origins == (NAMED_EXPLICITLY,)
    shown = "\n".join(nvrtc_log.errors_in(each.log) for each in (error, *(each for _, each in others)))
    return link_error(
        plan,
        f"{planned.input.name!r} does not compile: {nvrtc_log.first_error(error.log, planned.input.name)}",
        f"at fault: {planned}",
        f"source: {path or 'could not be saved'}",
        *describe_chain(error.log, planned.input.text, planned.input.name, options.include_paths),
        f"what to do: {todo}",
        *(f"does not compile either: {each}" for each, _ in others),
        log="\n".join([error.log, *(each.log for _, each in others)]),
        source_path=path,
        shown=None if explicit else shown,
        kind=_ExplicitSourceError if explicit else LinkError,
    )


def wrong_types(
    plan: LinkPlan, planned: PlannedInput, error: PrototypeError, wrong: Sequence[WrongFunction]
) -> LinkError:
    if of_types := [each for each in wrong if each.declaration]:
        diagnosis = f"{of_types[0].called.symbol!r} is called with other types than it has"
        pairs = [
            (f"{each.called.declaration} for {each.called.call}", f"{each.declaration}, as it is defined")
            for each in of_types
        ]
        remedy = _remedy(of_types)
    else:
        diagnosis = (
            f"members of {wrong[0].members[0].struct}, in {wrong[0].called.symbol!r}, differ from the record's fields"
        )
        pairs = [
            (
                ", ".join(map(str, each.members)),
                f"{', '.join(it.expected for it in each.members)}, as in the record of {each.called.call}",
            )
            for each in wrong
        ]
        remedy = (
            "list the fields of the dtype as the struct lists its members: np.dtype([...], align=True). Members that"
            " have other names than the fields are not compared"
        )
    lines = [line for got, expected in pairs for line in (f"got: {got}", f"expected: {expected}")]
    details = (f"defined by: {planned}", *lines, f"what to do: {remedy}")
    return link_error(plan, diagnosis, *details, log=error.log, shown="")


def _remedy(wrong: Sequence[WrongFunction]) -> str:
    for each in wrong:
        passed = each.called.prototype.parameters
        if "char*" in each.declaration and "Literal[str]" in each.called.call:
            return (
                "call the function by name, autolink.cxx(...), which passes a constant string as const char*: Extern"
                " passes no strings"
            )
        if re.search(r"[*&]", each.declaration) and any(c.kind in ("int", "uint") and c.size == 8 for c in passed):
            return (
                "pass a number to a reference with args={...: autolink.by_reference(T)}, and an integer that is an"
                " address with args={...: types.voidptr}"
            )
    return (
        "give the function the types of the call (autolink.cxx_type(x) is the C++ type of a parameter), or let the call"
        " convert them (Extern's args and returns)"
    )


_MOST_HEADERS = 2000
_MISSING = re.compile(r'^(?P<place>.+)\(\d+\): .*cannot open source file "(?P<name>[^"]+)"', re.MULTILINE)


def describe_chain(log: str, code: str, name: str, include_paths: Sequence[str]) -> list[str]:
    """Return the line that shows how the source *name*, with this *code*, includes the header that NVRTC's *log* says
    is missing; nothing where it does so itself, or that is not found."""
    found = _MISSING.search(log)
    if found is None or not os.path.isfile(found["place"]) or found["place"].endswith(name):
        return []
    chain = _find(code.encode(), found["place"], (*include_paths, *toolkit_include_paths()))
    return [f"included: {' → '.join((name, *chain, found['name']))}"] if chain else []


def _find(code: bytes, header: str, folders: Sequence[str]) -> tuple[str, ...]:
    """Return the names on the shortest way from *code* to *header*, under whatever conditions."""
    waiting: collections.deque[tuple[tuple[str, ...], bytes, str]] = collections.deque([((), code, "")])
    seen: set[str] = set()
    while waiting and len(seen) < _MOST_HEADERS:
        chain, text, folder = waiting.popleft()
        for _, included in Directives.of(text).names:
            paths = (os.path.join(base, included) for base in (folder, *folders))
            path = next(filter(os.path.isfile, paths), None)
            if path is None or path in seen:
                continue
            if os.path.samefile(path, header):
                return (*chain, included)
            seen.add(path)
            with open(path, "rb") as file:
                waiting.append(((*chain, included), file.read(), os.path.dirname(path)))
    return ()
