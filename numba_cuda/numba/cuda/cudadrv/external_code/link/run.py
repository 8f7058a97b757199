# SPDX-License-Identifier: BSD-2-Clause
"""Runs a link plan: checks the parts, and links them through nvJitLink, or finds the result in the cache."""

from __future__ import annotations

import dataclasses
import os
import re
from dataclasses import dataclass

from cuda.core import Linker, LinkerOptions, ObjectCode

from .. import progress, toolkit
from ..cache.key import CacheKey
from ..cache.log import logger
from ..cache.store import current_store
from ..child_process import ChildStartError
from ..formats.symbols import symbols_of
from ..inputs import kinds
from ..toolkit import why_missing
from . import device_runtime
from .duplicates import check_duplicates
from .errors import LinkError, message
from .fit import misfit
from .kernel_code import KernelCode
from .parts import LinkJob, Part, listed, trials_of
from .plan import DEVICE_RUNTIME, LinkPlan
from .record import LinkRecord
from .signatures import check_signatures
from .survival import doubted, remember
from .trial import Outcome, TrialError, link_in_helper

_TIMES = re.compile(r"^.*\btime\b.*(?:\n|$)", re.MULTILINE | re.IGNORECASE)
# What nvJitLink prints, and does not report, of machine code that it links into something wrong.
_PRINTED_ERROR = re.compile(r"@E@|\berror *:|Prototype doesn't match|Multiple definition of")
# Part of the cache's key: goes up when the meaning of `_Outcome` changes.
_FORMAT = "2"


@dataclass(frozen=True)
class LinkOptions:
    """How to link.

    Attributes
    ----------
    output:
        ``"cubin"`` or, with LTO only, ``"ptx"``.
    drop_unused_variables:
        Whether LTO may assume that no other code reads or sets a variable, or calls another kernel than the entry.
    """

    output: str = "cubin"
    drop_unused_variables: bool = False


@dataclass(frozen=True)
class Linked:
    """The result of a link: a cubin or PTX, the linker's log, and the record of the link."""

    code: ObjectCode
    log: str
    record: LinkRecord


@dataclass(frozen=True)
class _Outcome:
    """What a link ended with: code, or none if it needs the device runtime; and the linker's log."""

    code: bytes
    log: str

    def packed(self) -> bytes:
        """Return it as bytes, for the cache."""
        log = self.log.encode()
        return len(log).to_bytes(8, "little") + log + self.code

    @classmethod
    def unpacked(cls, data: bytes) -> _Outcome:
        """Return what was packed."""
        start = 8 + int.from_bytes(data[:8], "little")
        return cls(data[start:], data[8:start].decode())


def link(plan: LinkPlan, kernel_code: KernelCode, options: LinkOptions | None = None) -> Linked:
    """Link a kernel's own code with what is planned. Raises `LinkError` if something does not compile, a symbol is
    undefined or defined twice, an input does not fit the target or a call, nvJitLink refuses one, or NVRTC or nvJitLink
    is not installed."""
    options = options or LinkOptions()
    _check_libraries(plan)
    _check_fit(plan)
    job = LinkJob.of(plan, kernel_code)
    outcome, record = _outcome(job, options)
    if not outcome.code:
        library = device_runtime.archive()
        if library is None:
            raise _explained(job, outcome.log)
        outcome, record = _outcome(job.with_runtime(library, DEVICE_RUNTIME), options)
    make = ObjectCode.from_cubin if options.output == "cubin" else ObjectCode.from_ptx
    return Linked(make(outcome.code, name=plan.kernel), outcome.log, record)


def _outcome(job: LinkJob, options: LinkOptions) -> tuple[_Outcome, LinkRecord]:
    """Return what a link ends with, from the cache or run now."""
    target = job.plan.target
    linker_options = _linker_options(job, options)
    as_text = linker_options.as_bytes()
    with progress.step(f"linking {job.plan.kernel} for {target.arch}"):
        key = _key(job, as_text, options)
        fetched = current_store().fetch(key, lambda: _run(job, linker_options, options.output).packed())
    outcome = _Outcome.unpacked(fetched.data)
    record = LinkRecord(
        target.arch,
        options.output,
        job.has_ltoir,
        tuple(map(os.fsdecode, as_text)),
        tuple(part.record for part in job.parts),
        outcome.log,
        fetched.origin,
        fetched.seconds,
    )
    return outcome, record


def _linker_options(job: LinkJob, options: LinkOptions) -> LinkerOptions:
    target, lto = job.plan.target, job.has_ltoir
    drop = lto and options.drop_unused_variables
    return LinkerOptions(
        arch=target.arch,
        max_register_count=target.max_registers or None,
        lineinfo=target.lineinfo or None,
        link_time_optimization=lto or None,
        ptx=(lto and options.output == "ptx") or None,
        optimize_unused_variables=drop or None,
        kernels_used=[job.kernel_code.entry] if drop else None,
        verbose=True,  # ptxas then reports what it spills, in no measurable time
    )


def _key(job: LinkJob, linker_options: list[bytes], options: LinkOptions) -> CacheKey:
    """Return what a link depends on: all code by content and in order, the options, and the linker."""
    return CacheKey(
        "link",
        job.plan.kernel,
        (
            ("format", _FORMAT),
            ("nvJitLink", toolkit.nvjitlink_build()),
            ("output", options.output),
            ("options", b"\0".join(linker_options)),
            *((f"input {number}", f"{part.kind} ".encode() + part.code) for number, part in enumerate(job.parts)),
        ),
    )


def _run(job: LinkJob, options: LinkerOptions, output: str) -> _Outcome:
    if current_store().settings.verify:
        options = dataclasses.replace(options, no_cache=True)  # nvJitLink gives no log of a link that it remembers
    check_signatures(job)
    doubts = doubted(job)
    try:
        outcome = _try(job, options, output) if doubts else None
    except TrialError as error:
        if not isinstance(error.__cause__, ChildStartError):
            raise LinkError(message(job.plan, "the process that links external code fails", f"{error}")) from error
        logger.warning("external code is linked without a trial: %s", error)
        outcome = None
    if outcome is not None and outcome.crash:
        raise _explained_crash(job, doubts, outcome)
    if outcome is None or outcome.ok:
        check_duplicates(job)
    if outcome is None:
        outcome = _link(job, options, output)
    elif outcome.ok and _PRINTED_ERROR.search(outcome.printed):
        raise LinkError(message(job.plan, "the linker reports an error", f"linked: {listed(job.parts)}"), outcome.log)
    code, log = outcome.code, outcome.log
    if not outcome.ok:
        if device_runtime.is_missing(log) and not job.has_runtime(DEVICE_RUNTIME):
            return _Outcome(b"", log)
        raise _explained(job, log) from outcome.error or RuntimeError(log)
    remember(job, doubts)
    if output == "cubin" and (symbol := _undefined_symbol(code, job.kernel_code)):
        raise _explained(job, f"Undefined reference to '{symbol}', which nvJitLink does not report")
    # The log is cached with the code, so what differs from run to run is left out.
    return _Outcome(code, _TIMES.sub("", log.replace("\0", "")).strip())


def _try(job: LinkJob, options: LinkerOptions, output: str) -> Outcome:
    """Link in a child process."""
    inputs = [(part.kind, part.code, part.name) for part in job.parts]
    arguments = list(map(os.fsdecode, options.as_bytes()))
    return link_in_helper(inputs, arguments, output)


def _link(job: LinkJob, options: LinkerOptions, output: str) -> Outcome:
    """Link in this process."""
    linker = None
    try:
        linker = Linker(*[part.object_code() for part in job.parts], options=options)
        code = bytes(linker.link(output).code)
        return Outcome(True, linker.get_info_log(), code=code)
    except Exception as error:  # of several types, in the linker's own words
        return Outcome(False, str(error), error=error)
    finally:
        if linker is not None:
            linker.close()


def _explained_crash(job: LinkJob, doubts: list[Part], outcome: Outcome) -> LinkError:
    """Return the error for a link that ended the child process: the doubted part that does so alone is at fault."""
    alone = trials_of(doubts, [[index] for index in range(len(doubts))], job.plan.target.arch)
    at_fault = [part for part, one in zip(doubts, alone, strict=True) if one.crash] or doubts
    text = message(
        job.plan,
        f"nvJitLink does not survive it ({outcome.crash})",
        *(f"at fault: {part.origin}" for part in at_fault),
        "what to do: rebuild the code: it is damaged, or it triggers a bug in nvJitLink (the link ran in another"
        " process)",
    )
    return LinkError(text, outcome.log)


def _undefined_symbol(cubin: bytes, kernel_code: KernelCode) -> str | None:
    """Return a symbol that a call in Python references and the linked *cubin* lacks, or ``None``. After ptxas has
    failed once in a process, nvJitLink (at least 12.9 to 13.5) can let that pass."""
    if not kernel_code.sites:
        return None
    found = symbols_of("cubin", cubin)
    return next((name for name in found.undefined if name in kernel_code.sites), None) if found is not None else None


def _explained(job: LinkJob, log: str) -> LinkError:
    from .explain import explained  # which a link that succeeds goes without

    return explained(job, log)


def _check_libraries(plan: LinkPlan) -> None:
    needed = {"nvJitLink": ("the link itself", toolkit.nvjitlink_version)}
    for planned in plan.inputs:
        if planned.input.kind is kinds.CUDA:
            needed.setdefault("NVRTC", (str(planned), toolkit.nvrtc_version))
    for library, (what, version) in needed.items():
        if version() is None and (missing := why_missing(library)):
            text, error = missing
            raise LinkError(message(plan, text, f"needed for: {what}"), str(error)) from error


def _check_fit(plan: LinkPlan) -> None:
    """Check every input: those of hooks were checked when the hooks returned them, those named explicitly were not."""
    for planned in plan.inputs:
        if why := misfit(planned.input, plan.target):
            text = message(plan, "an input does not fit the target", f"at fault: {planned}", f"reason: {why}")
            raise LinkError(text)
