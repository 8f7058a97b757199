# SPDX-License-Identifier: BSD-2-Clause
"""What nvJitLink's log means: which input is at fault, what it is, what was expected, and what to do."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence

from numba_cuda_autolink.errors import FormatError
from numba_cuda_autolink.mangled_names import readable
from numba_cuda_autolink.printable_texts import number_of
from numba_cuda_autolink.source_locations import name_of_shared_array
from numba_cuda_autolink.source_syntax import find_call

from ..formats.containers import read_lto_ir
from ..inputs import kinds
from ..link.duplicate_symbols import duplicate_of
from ..link.linker_input import LinkJob, Part, list_origins
from ..link.ltoir_symbols import linked_code
from ..link.nvjitlink import Outcome, TrialError, multiply_defined, run_trials
from ..plan.link_plan import LinkError, link_error
from .double_definitions import explain_duplicate
from .source_errors import unsupported_in, unsupported_in_link, wrong_assembly, wrong_ptx
from .undefined_symbol import missing_symbol_error, symbol_in_log, symbol_in_parts

_TOO_NEW = re.compile(r"OUTDATED_LIBRARY|nvvmAddNVVMContainerToProgram")
_PTX_VERSION = re.compile(r"Unsupported \.version ([\d.]+); current version is '([\d.]+)'")
_PTX_TARGET = re.compile(
    r"SM version specified by \.target|PTX with \.target '(\w+)' cannot|Unsupported \.target '(\w+)'"
)
_TOO_MUCH = re.compile(r"uses too much (shared|global constant) data \((0x[0-9a-f]+) bytes, (0x[0-9a-f]+) max\)")
_REMEDIES = {
    "shared": ("static shared", "use dynamic shared memory, whose size a launch gives, or fewer threads or items"),
    "global constant": ("constant", "make the __constant__ variables smaller, or keep them in global memory"),
}
_SHARED = re.compile(r"\.shared (?:\.align \d+ )?\.b8 ([\w$]+)\[(\d+)\]")
_MOST_VARIABLES = 4
_PTX_LINE = re.compile(r"ptx input, line (\d+)")


def explain_failure(job: LinkJob, log: str) -> LinkError:
    if found := _TOO_MUCH.search(log):
        memory, remedy = _REMEDIES[found[1]]
        used, most = (int(size, 16) for size in found.group(2, 3))
        why = f"{job.plan.kernel} needs {number_of(used, 'byte')} of {memory} memory, and has at most {most}"
        defined_at = job.plan.defined_at
        at = defined_at and find_call(*defined_at, "shared.array") if found[1] == "shared" else None
        variables = _largest_shared(job) if found[1] == "shared" else []
        details = (*variables, f"linked: {list_origins(job.parts)}", f"what to do: {remedy}")
        return link_error(job.plan, why, *details, log=log, at=at, shown="")
    if (unsupported := unsupported_in(log)) is not None:
        return unsupported_in_link(job, unsupported, log)
    symbol = multiply_defined(log)
    if symbol is not None and (duplicate := duplicate_of(symbol, job.parts, job.plan.target.arch)) is not None:
        return explain_duplicate(job, duplicate, log)
    if (symbol := symbol_in_log(log)) is not None:
        return missing_symbol_error(job, symbol, log)
    if _TOO_NEW.search(log):
        return _too_new(job, log)
    arch = job.plan.target.arch
    at_fault = [part for part in job.parts if part.name and part.name in log]
    if version := _PTX_VERSION.search(log):
        why = f"PTX has .version {version[1]}, and this toolkit knows versions up to {version[2]}"
        remedy = "compile the PTX with this toolkit or an older one, or update nvJitLink"
        return _refused(job, why, remedy, at_fault, log)
    if _PTX_TARGET.search(log):
        why = f"PTX is for an architecture that {arch} does not run"
        remedy = f"compile it for {arch} or an older architecture (in the hook: autolink.current_target().arch)"
        return _refused(job, why, remedy, at_fault, log)
    if (wrong := wrong_assembly(job, log) or wrong_ptx(job, log)) is not None:
        return wrong
    if (symbol := symbol_in_parts(job)) is not None:
        return missing_symbol_error(job, symbol, log)
    return _unexplained(job, at_fault, log)


def _largest_shared(job: LinkJob) -> list[str]:
    """Return a line with the largest variables of static shared memory in the linked PTX; none if that is not known."""
    ptx = [part.code for part in job.parts if part.kind is kinds.PTX]
    if lto := [part for part in job.parts if part.kind is kinds.LTO_IR]:
        ptx.append(linked_code(lto, job.plan.target.arch, "ptx") or b"")
    found = _SHARED.findall(b"\n".join(ptx).decode("utf-8", "replace"))
    largest = sorted(found, key=lambda each: -int(each[1]))[:_MOST_VARIABLES]
    at = job.plan.defined_at
    labels, places = [name for name, _ in found], [f"{at[0]}:{at[1]}"] if at else []
    named = [
        (name if (name := readable(label)) != label else name_of_shared_array(label, labels, places), nbytes)
        for label, nbytes in largest
    ]
    listed = ", ".join(f"{name} of {number_of(nbytes, 'byte')}" for name, nbytes in named)
    return [f"variables: {listed}"] if listed else []


def _refused(job: LinkJob, why: str, remedy: str, at_fault: Sequence[Part], log: str) -> LinkError:
    fault = list_origins(at_fault) or f"one of: {list_origins(job.parts)}"
    return link_error(job.plan, why, f"at fault: {fault}", f"what to do: {remedy}", log=log)


def _too_new(job: LinkJob, log: str) -> LinkError:
    headers = {}
    for part in job.parts:
        if part.kind is kinds.LTO_IR:
            with contextlib.suppress(FormatError):
                headers[part] = read_lto_ir(part.code)
    linker = ".".join(map(str, job.plan.target.nvjitlink_version or ("?",)))
    own = headers.get(job.parts[0])
    newer = [part for part, header in headers.items() if own is not None and header.is_newer_than(own)]
    if own is None or not newer:
        external = [part for part in headers if part.planned is not None]
        nvrtc, nvjitlink = job.plan.target.nvrtc_version, job.plan.target.nvjitlink_version
        if nvrtc and nvjitlink and nvrtc > nvjitlink:
            from numba_cuda_autolink.installed_packages import describe_older_nvjitlink

            why, remedy = describe_older_nvjitlink(nvrtc, nvjitlink)
            return link_error(job.plan, why, f"what to do: {remedy}", log=log)
        why = f"some LTO-IR is of a newer toolkit than nvJitLink {linker}"
        remedy = f"make the LTO-IR with a toolkit no newer than {linker}, or update nvJitLink"
        return _refused(job, why, remedy, external, log)
    return link_error(
        job.plan,
        f"LTO-IR was made by a newer toolkit than nvJitLink {linker} can read",
        *(f"at fault: {part.origin}" for part in newer),
        f"got: LTO-IR of {headers[newer[0]].version}",
        f"expected: no newer than nvJitLink {linker}; the kernel's own LTO-IR, made here, is of {own.version}",
        f"what to do: update nvJitLink, make the LTO-IR with a toolkit no newer than {linker}, or return CUDA C++ or"
        " PTX of an older version",
        log=log,
    )


def _unexplained(job: LinkJob, at_fault: list[Part], log: str) -> LinkError:
    if not at_fault:
        at_fault, tried = _found_by_trial(job)
        log += tried
    details = [f"at fault: {part.origin}" for part in at_fault]
    for part in at_fault:
        if (line := _PTX_LINE.search(log)) and part.kind is kinds.PTX:
            for text in part.code.decode("utf-8", "replace").splitlines()[int(line[1]) - 1 :][:1]:
                details.append(f"its line {line[1]}: {text.strip()}")
    if not at_fault or len(job.parts) > len(at_fault):
        details.append(f"linked: {list_origins(job.parts)}")
    if at_fault and at_fault[0].planned is not None:
        details.append(
            f"what to do: rebuild that {at_fault[0].kind} for {job.plan.target.arch} with this toolkit; the log shows"
            " what the linker found wrong with it"
        )
    rejected = "the inputs together"
    if at_fault:
        planned = at_fault[0].planned
        rejected = f"{planned.input.kind} {planned.input.name!r}" if planned else "its own code"
    return link_error(job.plan, f"nvJitLink rejects {rejected}", *details, log=log)


def _found_by_trial(job: LinkJob) -> tuple[list[Part], str]:
    with contextlib.suppress(TrialError):
        outcomes = run_trials(job.parts, [[index] for index in range(len(job.parts))], job.plan.target.arch)
        if (index := worst(outcomes)) is not None:
            part, outcome = job.parts[index], outcomes[index]
            reported = outcome.log or f"it crashes the linker ({outcome.crash})"
            return [part], f"\nof {part.name} alone: {reported}"
    return [], ""


def worst(alone: Sequence[Outcome]) -> int | None:
    """Return which of the inputs linked alone crashed, or else failed for more than missing the others."""
    faulty = [index for index, outcome in enumerate(alone) if outcome.is_faulty]
    return min(faulty, key=lambda index: not alone[index].crash, default=None)
