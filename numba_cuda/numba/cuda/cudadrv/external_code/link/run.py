# SPDX-License-Identifier: BSD-2-Clause
"""Runs a link plan: checks the parts, and links them through nvJitLink, or finds the result in the cache."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cuda import pathfinder
from cuda.core import ObjectCode

from .. import progress, timeline, toolkit
from ..cache.key import CacheKey
from ..cache.log import logger
from ..cache.store import current_store
from ..child_process import ChildStartError
from ..formats.cubin import kernels_of
from ..formats.symbols import kernels_in, symbols_of
from ..inputs import kinds
from ..inputs.link_input import LinkInput, from_item
from .duplicates import check_readable_duplicates, duplicate_error, find_duplicate
from .errors import LinkError, link_error
from .fit import misfit
from .hidden_prototypes import all_prototypes
from .kernel_code import KernelCode
from .parts import LinkJob, listed
from .plan import DEVICE_RUNTIME, NAMED_EXPLICITLY, LinkPlan
from .record import LinkRecord
from .signatures import check_no_kernel_is_called, check_signatures
from .survival import doubted, remember
from .trial import TrialError, link_here, link_in_helper, options_for, run_trials
from .variables import check_variables, undefined_variable

_NEEDS_DEVICE_RUNTIME = re.compile(r"(?:Unresolved extern function|Undefined reference to) '(?:__cudaCDP2|cuda)\w*'")
_TIMES = re.compile(r"^.*\btime\b.*(?:\n|$)", re.MULTILINE | re.IGNORECASE)
# What nvJitLink prints, and does not report, of machine code that it links into something wrong.
_PRINTED_ERROR = re.compile(r"@E@|\berror *:|Prototype doesn't match|Multiple definition of")
# Part of the cache's key: goes up when the meaning of what is cached changes.
_FORMAT = "5"


@dataclass(frozen=True)
class Linked:
    """The result of a link: a cubin or PTX, and the record of the link."""

    code: ObjectCode
    record: LinkRecord


def link(
    plan: LinkPlan, kernel_code: KernelCode, output: str = "cubin", *, drop_unused_variables: bool = False
) -> Linked:
    """Link a kernel's own code with what is planned, to a cubin or, with LTO only, to PTX (``"ptx"``). With
    *drop_unused_variables*, LTO may assume that no other code reads or sets a variable, or calls another kernel.

    Raises `LinkError` if something does not compile, a symbol is undefined or defined twice, an input does not fit the
    target or a call, nvJitLink refuses one, or NVRTC or nvJitLink is not installed."""
    _check(plan)
    job = LinkJob.of(plan, kernel_code)
    drop = job.has_ltoir and drop_unused_variables
    options = options_for(
        job.parts,
        plan.target.arch,
        max_register_count=plan.target.max_registers or None,
        lineinfo=plan.target.lineinfo or None,
        ptx=(job.has_ltoir and output == "ptx") or None,
        optimize_unused_variables=drop or None,
        kernels_used=[kernel_code.entry] if drop else None,
        verbose=True,  # ptxas then reports what it spills, in no measurable time
    )
    code, record = _result(job, options, output)
    if not code and (library := device_runtime()) is not None:
        job = job.with_runtime(library, DEVICE_RUNTIME)
        code, record = _result(job, options, output)
    if not code:
        raise _explained(job, record.log) from RuntimeError(record.log)
    make = ObjectCode.from_cubin if output == "cubin" else ObjectCode.from_ptx
    return Linked(make(code, name=plan.kernel), record)


def device_runtime() -> LinkInput | None:
    """Return ``cudadevrt`` from the installed packages or the toolkit; ``None`` if there is none. As with nvcc, nobody
    has to name it: it is linked if something calls it, as kernels that launch kernels do."""
    try:
        return from_item(pathfinder.find_static_lib("cudadevrt"))
    except (pathfinder.StaticLibNotFoundError, RuntimeError):
        return None


def _result(job: LinkJob, options: tuple[str, ...], output: str) -> tuple[bytes, LinkRecord]:
    """Return what a link ends with, from the cache or run now: code, or none if it needs the device runtime."""
    arch = job.plan.target.arch
    # All code by content and in order, the options, and the linker.
    key = CacheKey(
        "link",
        job.plan.kernel,
        (
            ("format", _FORMAT),
            ("nvJitLink", toolkit.nvjitlink_build()),
            ("output", output),
            ("options", "\0".join(options)),
            *((f"input {number}", f"{part.kind} ".encode() + part.code) for number, part in enumerate(job.parts)),
        ),
    )
    with progress.step(f"linking {job.plan.kernel} for {arch}"), timeline.span("link", job.plan.kernel) as span:
        fetched = current_store().fetch(key, lambda: _run(job, options, output))
        span.origin = fetched.origin
    log, _, code = fetched.data.partition(b"\0")
    how = log.decode(), fetched.origin, fetched.seconds
    return code, LinkRecord(arch, output, job.has_ltoir, options, tuple(part.record for part in job.parts), *how)


def _run(job: LinkJob, options: tuple[str, ...], output: str) -> bytes:
    """Return the log of a link, a NUL, and the code: none if the device runtime is missing."""
    if current_store().settings.verify:
        options = (*options, "-no-cache")  # nvJitLink gives no log of a link that it remembers
    check_signatures(job, all_prototypes(job))
    check_no_kernel_is_called(job, *(kernels_in(part.kind.name, part.code) for part in job.provided))
    check_readable_duplicates(job)
    doubts, arch = doubted(job), job.plan.target.arch
    try:
        tried = link_in_helper(job.parts, options, output) if doubts else None
    except TrialError as error:
        if not isinstance(error.__cause__, ChildStartError):
            raise link_error(job.plan, "the process that links external code fails", f"{error}") from error
        logger.warning("external code is linked without a trial: %s", error)
        tried = None
    alone = []  # the doubted parts that nvJitLink does not survive alone either
    if tried is not None and tried.crash:
        outcomes = run_trials(doubts, [[index] for index in range(len(doubts))], arch)
        alone = [part for part, outcome in zip(doubts, outcomes, strict=True) if outcome.crash]
    if not alone:  # else what two parts define may be the reason
        is_isolated = tried is not None and not tried.ok
        duplicate = find_duplicate(job.provided, job.kernel_code.sites, arch, isolated=is_isolated)
        if duplicate is not None:
            raise duplicate_error(job, duplicate)
    if tried is not None and tried.crash:
        raise link_error(
            job.plan,
            f"nvJitLink does not survive it ({tried.crash})",
            *(f"at fault: {part.origin}" for part in alone or doubts),
            "what to do: rebuild the code: it is damaged, or it triggers a bug in nvJitLink (the link ran in another"
            " process)",
            log=tried.log,
        )
    if tried is not None and tried.ok and _PRINTED_ERROR.search(tried.printed):
        raise link_error(job.plan, "the linker reports an error", f"linked: {listed(job.parts)}", log=tried.log)
    outcome = tried or link_here(job.parts, options, output)
    log = outcome.log.replace("\0", "")
    if not outcome.ok:
        if _NEEDS_DEVICE_RUNTIME.search(log):
            return log.encode() + b"\0"
        raise _explained(job, log) from RuntimeError(log)
    remember(job, doubts)
    if undefined_variable(log) and any(each.origins != (NAMED_EXPLICITLY,) for each in job.plan.inputs):
        warnings = "\n".join(line for line in log.splitlines() if undefined_variable(line))
        raise _explained(job, warnings) from RuntimeError(log)
    if output == "cubin" and (symbol := _undefined_symbol(outcome.code, job.kernel_code)):
        raise _explained(job, f"Undefined reference to '{symbol}', which nvJitLink does not report")
    if output == "cubin":
        check_no_kernel_is_called(job, kernels_of(outcome.code))  # those of LTO-IR show only here
    # The log is cached with the code, so what differs from run to run is left out.
    return _TIMES.sub("", log).strip().encode() + b"\0" + outcome.code


def _undefined_symbol(cubin: bytes, kernel_code: KernelCode) -> str | None:
    """Return a symbol that a call in Python references and the linked *cubin* lacks, or ``None``. After ptxas has
    failed once in a process, nvJitLink (at least 12.9 to 13.5) can let that pass."""
    found = symbols_of("cubin", cubin) if kernel_code.sites else None
    return next((name for name in found.undefined if name in kernel_code.sites), None) if found is not None else None


def _explained(job: LinkJob, log: str) -> LinkError:
    from .explain import explained  # which a link that succeeds goes without

    return explained(job, log)


def _check(plan: LinkPlan) -> None:
    """Check that the libraries are there, and that the inputs fit the target: those that hooks returned were checked
    then, those named explicitly were not."""
    needed = {"nvJitLink": "the link itself"}
    for planned in plan.inputs:
        if planned.input.kind is kinds.CUDA:
            needed.setdefault("NVRTC", str(planned))
    for library, what in needed.items():
        if missing := toolkit.why_missing(library):
            text, error = missing
            raise link_error(plan, text, f"needed for: {what}", log=str(error)) from error
    for planned in plan.inputs:
        if why := misfit(planned.input, plan.target):
            raise link_error(plan, "an input does not fit the target", f"at fault: {planned}", f"reason: {why}")
    if plan.variables:
        check_variables(plan)
