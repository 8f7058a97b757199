# SPDX-License-Identifier: BSD-2-Clause
"""Runs a link plan: checks the parts, and links them through nvJitLink, or finds the result in the cache."""

from __future__ import annotations

from dataclasses import dataclass

from cuda import pathfinder
from cuda.core import ObjectCode

from .cache.key import CacheKey
from .cache.store import current_store
from .diagnostics import progress, timeline
from .inputs import kinds
from .inputs.link_input import LinkInput, from_item
from .link.link_record import LinkRecord
from .link.linker_input import LinkJob
from .link.linker_options import options_for
from .plan.errors import link_error
from .plan.kernel_code import KernelCode
from .plan.link_plan import DEVICE_RUNTIME, LinkPlan
from .plan.link_request import LinkRequest
from .plan.target_fit import misfit
from .plan.variable_checks import check_variables
from .platform import cuda_libraries
from .signal_handlers import interrupts_unchanged

# Part of the cache's key: goes up when the meaning of what is cached changes.
_FORMAT = "6"


@dataclass(frozen=True)
class Linked:
    """The result of a link: a cubin or PTX, and the record of the link."""

    code: ObjectCode
    record: LinkRecord


@interrupts_unchanged()
def link(
    plan: LinkPlan, kernel_code: KernelCode, output: str = "cubin", *, drop_unused_variables: bool = False
) -> Linked:
    """Link a kernel's own code with what is planned, to a cubin or, with LTO only, to PTX (``"ptx"``). With
    *drop_unused_variables*, LTO may assume that no other code reads or sets a variable, or calls another kernel. If
    code is named explicitly, that goes for the variables of headers alone: weak ones with a mangled name.

    Raises `LinkError` if something does not compile, a symbol is undefined or defined twice, an input does not fit the
    target or a call, nvJitLink refuses one, or NVRTC or nvJitLink is not installed."""
    _check(plan)
    job = LinkJob.of(plan, kernel_code)
    # nvJitLink drops variables that only machine code uses, too, and then says that they are undefined.
    drop = drop_unused_variables and all(part.kind is kinds.LTO_IR for part in job.provided)
    options = options_for(
        job.parts,
        plan.target.arch,
        max_register_count=plan.target.max_registers or None,
        lineinfo=plan.target.lineinfo or None,
        ptx=(job.has_ltoir and output == "ptx") or None,
        optimize_unused_variables=drop or None,
        kernels_used=[kernel_code.entry] if drop and not plan.named_explicitly else None,
        verbose=True,  # ptxas then reports what it spills, in no measurable time
        **kernel_code.options,
    )
    code, record = _result(job, options, output)
    if not code and (library := device_runtime()) is not None:
        job = job.with_runtime(library, DEVICE_RUNTIME)
        code, record = _result(job, options, output)
    if not code:
        from .link.checked_link import failure

        raise failure(job, record.log) from RuntimeError(record.log)
    make = ObjectCode.from_cubin if output == "cubin" else ObjectCode.from_ptx
    return Linked(make(code, name=plan.kernel), record)


def run_link(request: LinkRequest) -> Linked:
    """Run the link that is requested, as `link` does."""
    return link(
        request.plan,
        request.kernel_code,
        request.output,
        drop_unused_variables=request.drop_unused_variables,
    )


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
            ("nvJitLink", cuda_libraries.nvjitlink_build()),
            ("output", output),
            ("options", "\0".join(options)),
            *((f"input {number}", f"{part.kind} ".encode() + part.code) for number, part in enumerate(job.parts)),
        ),
    )
    with progress.step(f"linking {job.plan.kernel} for {arch}"), timeline.span("link", job.plan.kernel) as span:
        fetched = current_store().fetch(key, lambda: _linked(job, options, output))
        span.origin = fetched.origin
    log, _, code = fetched.data.partition(b"\0")
    how = log.decode(), fetched.origin, fetched.seconds
    return code, LinkRecord(arch, output, job.has_ltoir, options, tuple(part.record for part in job.parts), *how)


def _linked(job: LinkJob, options: tuple[str, ...], output: str) -> bytes:
    from .link.checked_link import linked  # which a link that is in the cache goes without

    return linked(job, options, output)


def _check(plan: LinkPlan) -> None:
    """Check that the libraries are there, and that the inputs fit the target: those that hooks returned were checked
    then, those named explicitly were not."""
    needed = {"nvJitLink": "the link itself"}
    for planned in plan.inputs:
        if planned.input.kind is kinds.CUDA:
            needed.setdefault("NVRTC", str(planned))
    for library, what in needed.items():
        if missing := cuda_libraries.why_missing(library):
            text, error = missing
            raise link_error(plan, text, f"needed for: {what}", log=str(error)) from error
    for planned in plan.inputs:
        if why := misfit(planned.input, plan.target):
            raise link_error(plan, "an input does not fit the target", f"at fault: {planned}", f"reason: {why}")
    if plan.variables:
        check_variables(plan)
