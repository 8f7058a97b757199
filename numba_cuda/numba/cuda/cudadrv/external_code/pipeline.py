# SPDX-License-Identifier: BSD-2-Clause
"""The way from a link plan and a kernel's own code to a cubin: from the cache, in one look-up, or compiled, linked, and
explained where that fails.

The key of a link stands for all that is compiled and linked, so that of a kernel that was linked before no program is
read: it contains the kernel's LLVM IR, the keys of the programs of sources, which contain their headers, other inputs
by content, the types of the calls, options, and the builds of the tools. Nothing of Python is in it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

import cuda.core
from cuda import pathfinder
from cuda.core import ObjectCode

from numba_cuda_autolink.package_versions import version_of
from numba_cuda_autolink.short_tracebacks import warn_user

from .cache.entry import CacheKey
from .cache.store import Fetched, current_store
from .compile.plan_programs import called_in, keys_of, recorded_keys, write_debug_sources
from .diagnostics import progress, timeline
from .diagnostics.signal_handlers import interrupts_unchanged
from .inputs import kinds
from .inputs.link_input import LinkInput, from_item
from .link.linker_input import CompiledCode, LinkedInput, LinkRecord, sha256
from .link_facts import link_facts, link_lines
from .plan.link_plan import (
    DEVICE_RUNTIME,
    NAMED_EXPLICITLY,
    LinkPlan,
    LinkRequest,
    LLVMModules,
    PlannedInput,
    link_error,
)
from .plan.plan_checks import check_variables, misfit
from .plan.python_cells import place_of_kernel
from .platform import cuda_libraries

# What compiles, links and explains is imported where it is needed: a kernel that is linked already starts without it.
if TYPE_CHECKING:
    from .compile.programs import Program
    from .link.linker_input import LinkJob, Part

# Part of the cache's key: goes up when the meaning of what is cached changes.
_FORMAT = "13"


@dataclass(frozen=True)
class Linked:
    """The result of a link: a cubin or PTX, and the record of the link."""

    code: ObjectCode
    record: LinkRecord


@interrupts_unchanged()
def run_link(request: LinkRequest) -> Linked:
    """Run the link that is requested.

    Raises `LinkError` if something does not compile, a symbol is undefined or defined twice, an input does not fit the
    target or a call, nvJitLink refuses one, or NVRTC or nvJitLink is not installed."""
    _check(request.plan)
    link = _Link(request)
    record, code = link.fetch()
    if not code and (library := device_runtime()) is not None:
        link = _Link(request, library)
        record, code = link.fetch()
    if not code:
        raise link.explain(link.job(link.compile()), record.log) from RuntimeError(record.log)
    make = ObjectCode.from_cubin if request.output == "cubin" else ObjectCode.from_ptx
    return Linked(make(code, name=request.plan.kernel), record)


def device_runtime() -> LinkInput | None:
    """Return ``cudadevrt`` from the installed packages or the toolkit; ``None`` if there is none. As with nvcc, nobody
    has to name it: it is linked if something calls it, as kernels that launch kernels do."""
    try:
        return from_item(pathfinder.find_static_lib("cudadevrt"))
    except (pathfinder.StaticLibNotFoundError, RuntimeError):
        return None


@dataclass(frozen=True)
class _Link:
    """One link, with the *runtime* library of devices if it is needed."""

    request: LinkRequest
    runtime: LinkInput | None = None

    @property
    def plan(self) -> LinkPlan:
        """What is linked besides the kernel's own code."""
        return self.request.plan

    @property
    def units(self) -> tuple[PlannedInput, ...]:
        """The inputs besides the kernel's own code."""
        runtime = () if self.runtime is None else (PlannedInput(self.runtime, (DEVICE_RUNTIME,)),)
        return (*self.plan.units, *runtime)

    def fetch(self) -> tuple[LinkRecord, bytes]:
        """Return the record of the link and its code, none if it needs the device runtime: from the cache, or made
        now."""
        store = current_store()
        programs: list[Program | None] | None = None
        seconds = 0.0

        def build() -> bytes | None:
            nonlocal programs, seconds
            if programs is None:
                programs = self.compile()
                if keys_of(self.plan, programs) != keys:
                    return None
            job = self.job(programs)
            with timeline.span("link", self.plan.kernel) as span:
                data = self._link(job, programs)
            seconds = span.seconds
            return data

        recorded = recorded_keys(self.plan)
        keys = [key for key in recorded if key is not None]
        if len(keys) < len(recorded):
            programs = self.compile()
            keys = keys_of(self.plan, programs)
        fetched = store.fetch(self._key(keys), build)
        if fetched is None:  # a header was edited after the key was made
            assert programs is not None
            keys = keys_of(self.plan, programs)
            fetched = store.fetch(self._key(keys), build)
            assert fetched is not None
        if fetched.origin == "built":
            assert programs is not None
            return self._read(Fetched(fetched.data, "built", seconds), programs)
        timeline.record("link", self.plan.kernel, fetched.seconds, fetched.origin)
        write_debug_sources(self.plan)
        return self._read(fetched, programs or ())

    def explain(self, job: LinkJob, log: str) -> Exception:
        """Return the error of a link that failed with *log*."""
        from .explain.link_log import explain_failure

        return explain_failure(job, log)

    def _key(self, keys: Sequence[bytes]) -> CacheKey:
        """Return the key of the link, where *keys* stand for the plan's units."""
        plan, kernel_code, output = self.plan, self.request.kernel_code, self.request.output
        called = called_in(plan, kernel_code)
        units = [
            (f"input {number}", key + repr((_role(unit), [(each.symbol, each.types) for each in functions])).encode())
            for number, (unit, key, functions) in enumerate(zip(plan.units, keys, called, strict=True))
        ]
        if self.runtime is not None:
            units.append(("device runtime", self.runtime.code))
        calls = [(name, [site.called(name).types for site in sites]) for name, sites in kernel_code.sites.items()]
        return CacheKey(
            "link",
            plan.kernel,
            (
                ("format", _FORMAT),
                ("numba-cuda-autolink", version_of("numba-cuda-autolink")),
                ("nvJitLink", cuda_libraries.nvjitlink_build()),
                ("cuda.core", cuda.core.__version__),
                ("output", output),
                ("target", repr(plan.target)),
                ("entry", kernel_code.entry),
                ("options", repr((sorted(kernel_code.options.items()), self.request.drop_unused_variables))),
                ("undefined", "\n".join(kernel_code.undefined)),
                ("calls", repr(sorted(calls))),
                *(part for number, each in enumerate(kernel_code.inputs) for part in _own_parts(number, each)),
                *units,
            ),
            facts=functools.partial(link_facts, self.request),
            lines=functools.partial(link_lines, self.request),
            subject=self._subject(),
            state=self._state,
            uses=tuple(keys),
        )

    def _subject(self) -> tuple[str, ...]:
        """Return what tells the kernel, its types, its front end, its target and its output from others."""
        code = self.request.kernel_code
        if code.python is None:
            return ("link", self.plan.kernel, self.plan.target.arch, self.request.output)
        python = code.python
        of_function = place_of_kernel(python.functions[0].path), python.name, python.types, python.front_end
        return ("link", *of_function, self.plan.target.arch, self.request.output)

    def _state(self) -> str:
        python = self.request.kernel_code.python
        return "" if python is None else python.state

    def compile(self) -> list[Program | None]:
        """Return the programs of the plan's units, if they have one. Raises `LinkError` if something does not
        compile."""
        from .compile.plan_programs import compile_plan
        from .compile.programs import SourceError

        kernel_code = self.request.kernel_code
        ignored: set[Any] = set()
        while True:
            try:
                return compile_plan(self.plan, kernel_code, ignored)
            except SourceError as error:
                from .explain.source_errors import find_declared_only

                ignored |= find_declared_only(self.plan, kernel_code, error)

    def job(self, programs: Sequence[Program | None]) -> LinkJob:
        """Return what is linked: *programs*, and the kernel's own code, which is compiled now."""
        from .compile.plan_programs import compile_own_code
        from .link.linker_input import LinkJob, Part

        own = [Part(item.kind, item.code, item.name) for item in compile_own_code(self.request.kernel_code)]
        programs = programs if self.runtime is None else (*programs, None)
        units = [_part(*each) for each in zip(range(1, len(self.units) + 1), self.units, programs, strict=True)]
        from_sources = {(part.kind, part.code) for part in units if part.compiled is not None}
        # What cuda.compile_all returns of a function contains the code that the kernel's calls bring as sources.
        once = [part for part in units if part.compiled is not None or (part.kind, part.code) not in from_sources]
        return LinkJob(self.plan, self.request.kernel_code, (*own, *once))

    def _link(self, job: LinkJob, programs: Sequence[Program | None]) -> bytes:
        """Link what was compiled, with the *programs* of the plan's units: return the entry of the cache."""
        from .link.checked_link import DefinedTwiceError, LinkFailedError, link_checked

        plan = self.plan
        options = self._options(job)
        with progress.step(f"linking {plan.kernel} for {plan.target.arch}"):
            try:
                code, log = link_checked(job, options, self.request.output)
            except LinkFailedError as error:
                raise self.explain(job, error.log) from RuntimeError(error.whole)
            except DefinedTwiceError as error:
                from .explain.double_definitions import explain_difference, explain_duplicate

                explain = explain_difference if error.form else explain_duplicate
                raise explain(job, error.duplicate, error.form) from None
        inputs = [
            {"unit": None, "own": [part.kind.name, part.name, len(part.code), sha256(part.code)]}
            if part.planned is None
            else {"unit": self.units.index(part.planned), "compiled": part.compiled and astuple(part.compiled)[:3]}
            for part in job.parts
        ]
        warnings = {number: each.warning for number, each in enumerate(programs) if each is not None and each.warning}
        facts = {"lto": job.has_ltoir, "options": options, "inputs": inputs, "log": log, "warnings": warnings}
        return json.dumps(facts).encode() + b"\0" + code

    def _options(self, job: LinkJob) -> tuple[str, ...]:
        from .link.linker_input import options_for

        target, kernel_code = self.plan.target, self.request.kernel_code
        # nvJitLink drops variables that only machine code uses, too, and then says that they are undefined.
        drop = self.request.drop_unused_variables and all(part.kind is kinds.LTO_IR for part in job.provided)
        return options_for(
            job.parts,
            target.arch,
            max_register_count=target.max_registers or None,
            lineinfo=target.lineinfo or None,
            ptx=(job.has_ltoir and self.request.output == "ptx") or None,
            optimize_unused_variables=drop or None,
            # One that Python calls as a function must not be dropped unseen.
            kernels_used=[kernel_code.entry, *kernel_code.sites] if drop and not self.plan.named_explicitly else None,
            verbose=True,  # ptxas then reports what it spills, in no measurable time
            no_cache=True,  # else nvJitLink may take code from the driver's cache, and has no report of ptxas
            **kernel_code.options,
        )

    def _read(self, fetched: Fetched, programs: Sequence[Program | None] = ()) -> tuple[LinkRecord, bytes]:
        """Return the record and the code of an entry: where its programs come from is known if they were just compiled,
        as *programs*. What was said of others when they were compiled is said now."""
        head, _, code = fetched.data.partition(b"\0")
        facts = json.loads(head)
        if not programs and facts["warnings"]:
            from .compile.nvrtc_log import in_python

            for number, warning in facts["warnings"].items():
                source = self.units[int(number)].input
                warn_user(in_python(warning, source.text, source.name))
        inputs = []
        for each in facts["inputs"]:
            number, compiled = each["unit"], None
            if number is None:
                inputs.append(LinkedInput(*each["own"]))
                continue
            if each["compiled"]:
                program = programs[number] if programs else None
                how = (fetched.origin, 0.0) if program is None else (program.origin, program.seconds)
                compiled = CompiledCode(*each["compiled"], *how)
            inputs.append(LinkedInput.of(self.units[number], compiled))
        what = (
            self.plan.target.arch,
            self.request.output,
            facts["lto"],
            tuple(facts["options"]),
            tuple(inputs),
            facts["log"],
        )
        return LinkRecord(*what, fetched.origin, fetched.seconds), code


def _part(number: int, planned: PlannedInput, program: Program | None) -> Part:
    from .link.linker_input import Part

    kind, code, compiled = planned.input.kind, planned.input.code, None
    if program is not None:
        kind, code = program.kind, program.code
        compiled = CompiledCode(kind.name, len(code), sha256(code), program.origin, program.seconds)
    # nvJitLink's messages refer to inputs by name, so names are unique.
    hidden = () if program is None else program.hidden
    return Part(kind, code, f"{planned.input.name} (input {number})", planned, compiled, hidden)


def _role(unit: PlannedInput) -> tuple[str, bool, bool]:
    """Return what a link makes of a unit besides its code: checks depend on where it comes from."""
    return unit.input.kind.name, unit.is_runtime, unit.origins == (NAMED_EXPLICITLY,)


def _own_parts(number: int, own: LinkInput | LLVMModules) -> Iterator[tuple[str, str | bytes]]:
    """Yield the parts of a key that stand for the kernel's own code."""
    if isinstance(own, LinkInput):
        yield f"own code {number}", f"{own.kind} ".encode() + own.code
        return
    tools = f"{cuda_libraries.nvvm_build()}, numba-cuda {version_of('numba-cuda')}"  # which prepares the IR
    yield f"NVVM {number}", tools
    yield f"NVVM's options {number}", repr(own.options)
    for index, text in enumerate(own.texts):
        yield f"LLVM IR {number}.{index}", text


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
            raise link_error(plan, text, f"needed for: {what}", log=str(error).partition("\n")[0]) from error
    for planned in plan.inputs:
        if why := misfit(planned.input, plan.target):
            raise link_error(plan, "an input does not fit the target", f"at fault: {planned}", f"reason: {why}")
    if plan.variables:
        check_variables(plan)
