# SPDX-License-Identifier: BSD-2-Clause
"""Ahead-of-time builds of finished kernels, on machines with or without a GPU and a driver."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from numba import cuda
from numba.cuda import dispatcher
from numba.cuda.core import config
from numba.cuda.core.compiler_lock import global_compiler_lock
from numba.cuda.cudadrv import nvrtc
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr
from numba.cuda.cudadrv.external_code.diagnostics.timeline import Span, Timeline, recording
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CalledFunction
from numba.cuda.cudadrv.external_code.plan.errors import LinkError
from numba.cuda.cudadrv.external_code.plan.link_plan import PlannedInput
from numba.cuda.cudadrv.external_code.plan.link_request import LinkRequest
from numba.cuda.cudadrv.external_code.platform.cuda_libraries import why_missing
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, ComputeCapabilityLike

from ..compilation.context import without_device
from ..compilation.kernel_events import KernelEvent, announce
from ..finished_kernels.saving import LaunchFacts, check_runtime, layout_of, save
from ..frontend_api.front_end import vocabulary_of_kernel
from ..function_code.build_record import BuildFacts
from ..protocol.call_sites import CallSite
from ..protocol.kernel_signatures import kernel_argument_types
from ..reports import formatting
from .emulated_build import EmulatedTexts, emulated_kernel

if TYPE_CHECKING:
    from numba.cuda.cudadrv.external_code.link.link_record import LinkRecord

    from numba_cuda_autolink.launch.emulated_kernel import EmulatedKernel

    from ..reports.report import Report

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_OUTPUTS = ("cubin", "ptx", "ltoir")


@dataclass(frozen=True)
class RanLink:
    """What a link made, as data that can be pickled: the code, the record of the link, and how long its parts took."""

    code: bytes
    record: LinkRecord
    timeline: tuple[Span, ...]

    @classmethod
    def of(cls, request: LinkRequest) -> RanLink:
        """Run the link that is requested. Raises `LinkError`."""
        from numba.cuda.cudadrv.external_code.pipeline import run_link

        timeline = Timeline()
        with recording(timeline):
            linked = run_link(request)
        return cls(bytes(linked.code.code), linked.record, tuple(timeline.spans))


@dataclass(frozen=True, repr=False)
class LinkedKernel:
    """A kernel that was built ahead of time.

    Attributes
    ----------
    code:
        The linked cubin; for ``output="ptx"`` the linked PTX; for ``output="ltoir"`` the kernel's own LTO-IR.
    entry_name:
        The kernel's name in the code, for ``cuModuleGetFunction`` or ``cuda.core``'s ``get_kernel``.
    cc:
        The `ComputeCapability` that it was built for, equal to ``(9, 0)`` or ``(9, 0, "a")``.
    output:
        ``"cubin"``, ``"ptx"`` or ``"ltoir"``.
    call_sites, inputs:
        The calls whose objects provided code, in order of first use; the code that was linked besides the kernel's own.
    prototypes:
        The functions that its calls reference, with the LLVM function types of the calls.
    called_functions:
        These functions once for each set of types that calls pass and expect, as C sees them.
    signature:
        The types of its arguments, as text.
    launch_facts:
        What a launch must know besides the code: callbacks, options of the kernel.
    report:
        A `Report` of the build, made when it is first read.
    """

    code: bytes
    entry_name: str
    cc: ComputeCapability
    output: str
    call_sites: tuple[CallSite, ...]
    inputs: tuple[PlannedInput, ...]
    prototypes: Mapping[str, str] = field(compare=False)
    signature: str
    launch_facts: LaunchFacts = field(compare=False)
    _facts: BuildFacts = field(compare=False)
    called_functions: tuple[CalledFunction, ...] = field(default=(), compare=False)
    _texts: EmulatedTexts | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        what = f"{self._facts.graph.functions[0].name}{self.signature} for {self._facts.target.arch}"
        calls = formatting.count(len(self.call_sites), "call")
        size = formatting.size(len(self.code))
        return f"<LinkedKernel {what}: {self.output} of {size}, {calls} of external code>"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the launch on the CPU, which is of this process."""
        return {name: value for name, value in vars(self).items() if name != "emulate"}

    @functools.cached_property
    def report(self) -> Report:
        """What each call provided, how it was linked, and the result."""
        from ..reports.collect import of_facts

        return of_facts(self._facts, self.signature, lambda: self.inputs, self.code, self.output)

    @functools.cached_property
    def emulate(self) -> EmulatedKernel:
        """The kernel on the CPU: ``linked.emulate[grid, block, stream, shared](*args)`` runs the linked code, with all
        external code in it, on arrays of NumPy. See `numba_cuda_autolink.EmulatedKernel`.

        Raises `FinishedKernelError` if it links machine code, which cannot be emulated, or if what it needs at run time
        only its front end has.
        """
        check_runtime(self.launch_facts)
        parameters = self.launch_facts.parameters
        _, leaves = layout_of(self, parameters)
        return emulated_kernel(self, parameters, leaves, self._texts)

    def with_link(self, ran: RanLink) -> LinkedKernel:
        """Return the kernel with the code that a link of it made."""
        log = ran.record.log.replace("\0", "").strip() if self.output == "cubin" else ""
        timeline = (*self._facts.timeline, *ran.timeline)
        facts = dataclasses.replace(self._facts, link=ran.record, log=log, timeline=timeline)
        return dataclasses.replace(self, code=ran.code, _facts=facts)

    def save(self, path: str | bytes | os.PathLike[Any]) -> None:
        """Write the kernel to a file, for `numba_cuda_autolink.load`; `save` describes the errors."""
        save(path, self)


@overload
def build(
    kernel: Any,
    signature: Any,
    *,
    cc: list[Any],
    output: str = ...,
    entry_name: str | None = ...,
    **jit_options: Any,
) -> list[LinkedKernel]: ...
@overload
def build(
    kernel: Any,
    signature: Any,
    *,
    cc: ComputeCapabilityLike | None = ...,
    output: str = ...,
    entry_name: str | None = ...,
    **jit_options: Any,
) -> LinkedKernel: ...
def build(
    kernel: Any,
    signature: Any,
    *,
    cc: ComputeCapabilityLike | list[Any] | None = None,
    output: str = "cubin",
    entry_name: str | None = None,
    **jit_options: Any,
) -> LinkedKernel | list[LinkedKernel]:
    """Compile and link *kernel* for one signature and compute capability, or a list of them; no GPU is needed.

    Parameters
    ----------
    kernel:
        A Python function, or a kernel made of it by ``cuda.jit``, whose options then are the defaults: numba-cuda's or
        numba-cuda-mlir's. A function is compiled by numba-cuda.
    signature:
        As for ``cuda.jit``: ``"void(float32[::1])"``, ``(float32[::1],)`` or ``void(float32[::1])``.
    cc:
        What `ComputeCapability.parse` accepts: ``(9, 0)``, ``"9.0"``, ``"sm_90"``, ``90``; with the suffix ``a``
        (``"9.0a"``) for architecture-specific code. For a list of them, a list is returned, with one `LinkedKernel` for
        each. Default: that of the current GPU, as a launch would build for it.
    output:
        ``"cubin"``; ``"ptx"``, the PTX after link-time optimisation, without inputs that cannot take part in it; or
        ``"ltoir"``, the kernel's own LTO-IR, to be linked later with ``inputs``.
    entry_name:
        The kernel's name in the code, a C identifier. Default: Numba's name, which contains the signature and the
        options.
    **jit_options:
        Options of ``cuda.jit``: ``link``, ``lto``, ``debug``, ``lineinfo``, ``fastmath``, ``max_registers`` ...

    Raises
    ------
    TypeError, ValueError
        If *kernel* is not a kernel; for an unknown option or output; for a compute capability that the CUDA toolkit
        does not know, or an empty list of them; for an entry name that is not a C identifier or is taken.
    numba.core.errors.TypingError, numba.cuda.cudadrv.driver.LinkerError
        If the kernel does not compile for the signature, or a called object rejects its arguments; if the link fails.
    """
    how = output, entry_name, jit_options
    if isinstance(cc, list):
        if not cc:
            raise ValueError(
                "cc is an empty list, so that there is nothing to build"
                "\n  what to do: pass compute capabilities, as in cc=[(8, 0), (9, 0)]; without cc=, the current GPU's"
            )
        return [prepare(kernel, signature, each, *how).link() for each in cc]
    return prepare(kernel, signature, cc, *how).link()


@dataclass(frozen=True)
class PreparedBuild:
    """A kernel that its front end has compiled: the kernel without code, and the link that makes it; without *request*,
    the finished kernel."""

    kernel: LinkedKernel
    request: LinkRequest | None

    @global_compiler_lock
    def link(self) -> LinkedKernel:
        """Link the kernel. Raises what `build` describes."""
        return self.kernel if self.request is None else self.kernel.with_link(RanLink.of(self.request))


def prepare(
    kernel: Any,
    signature: Any,
    cc: ComputeCapabilityLike | None,
    output: str,
    entry_name: str | None,
    jit_options: dict[str, Any],
) -> PreparedBuild:
    """Compile *kernel* as `build` does, and do not link it. Raises what `build` describes."""
    if output not in _OUTPUTS:
        raise ValueError(f"output must be one of {', '.join(map(repr, _OUTPUTS))}, not {output!r}")
    if entry_name is not None and not (isinstance(entry_name, str) and _IDENTIFIER.fullmatch(entry_name)):
        raise ValueError(f"entry_name must be a C identifier, not {entry_name!r}")
    if config.ENABLE_CUDASIM:
        raise RuntimeError("build() compiles for a GPU, and the simulator (NUMBA_ENABLE_CUDASIM=1) has no compiler")
    announce(KernelEvent(kernel, signature, cc, output, entry_name, jit_options))
    return _prepared(kernel, signature, cc, output, entry_name, jit_options)


def prepare_for_launch(
    kernel: Any, signature: Any, cc: ComputeCapability, jit_options: dict[str, Any]
) -> PreparedBuild:
    """Compile *kernel* exactly as a launch would, which then finds all of it in the cache."""
    return _prepared(kernel, signature, cc.as_launched, "cubin", None, jit_options, for_launch=True)


@global_compiler_lock
def _prepared(
    kernel: Any,
    signature: Any,
    cc: ComputeCapabilityLike | None,
    output: str,
    entry_name: str | None,
    jit_options: dict[str, Any],
    *,
    for_launch: bool = False,
) -> PreparedBuild:
    vocabulary = vocabulary_of_kernel(kernel)
    if (builds := vocabulary.builds) is not None:
        argtypes = kernel_argument_types(signature, kernel.py_func, vocabulary)
        capability = ComputeCapability(*compute_capability(cc))
        if for_launch or cc is None:  # a launch there builds no architecture-specific code
            capability = ComputeCapability(*capability.base)
        how = {"output": output, "entry_name": entry_name, "jit_options": jit_options, "for_launch": for_launch}
        linked: LinkedKernel = builds.build(kernel, argtypes, capability, **how)
        return PreparedBuild(linked, None)
    py_func, options = _function_and_options(kernel, jit_options)
    argtypes = kernel_argument_types(signature, py_func)
    parts = compute_capability(cc)
    if output != "cubin":
        options["lto"] = True
    with without_device(parts, for_launch=for_launch):
        try:
            compiled = dispatcher._Kernel(py_func, argtypes, **options)
        except TypeError as error:
            if unknown := re.search(r"unexpected keyword argument (.*)", str(error)):
                raise TypeError(
                    f"build() and cuda.jit have no option {unknown[1]}\n  what to do: correct its name, or leave it out"
                ) from error
            raise
        library = compiled._codelibrary
        if entry_name is not None:
            library.rename_entry(entry_name)
        request = library.link_request(parts, output) if output != "ltoir" else None
        if request is not None:
            code = b""
        elif output == "cubin":
            code = bytes(library.get_cubin(cc=parts).code)
        elif output == "ptx":
            code = library.get_lto_ptx(cc=parts).encode()
        else:
            code = bytes(library.get_ltoir(cc=parts))
        plan = library.plan(parts)
        facts = library.facts(parts, output)
    types = f"({', '.join(map(str, argtypes))})"
    function_code = library.function_code
    sites = tuple(call.site for call in function_code.call_sites)
    capability = ComputeCapability(*parts)
    name, prototypes = library._entry_name, function_code.prototypes
    called = function_code.called_functions
    launch = LaunchFacts.of(entry_name or py_func.__name__, compiled, plan)
    texts = EmulatedTexts(library, parts)
    described = sites, plan.inputs, prototypes, types, launch, facts, called, texts
    return PreparedBuild(LinkedKernel(code, name, capability, output, *described), request)


def _function_and_options(kernel: Any, jit_options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    if isinstance(kernel, dispatcher.CUDADispatcher):
        options = {**kernel.targetoptions, **jit_options}
        if "debug" in jit_options and "lto" not in jit_options:
            options.pop("lto", None)  # its default depends on debug
        kernel = kernel.py_func
    else:
        if not callable(kernel) or not hasattr(kernel, "__code__"):
            raise TypeError(
                "build() expects a Python function or a @cuda.jit kernel\n"
                f"  got: {type(kernel).__name__}, {safe_repr(kernel)}"
            )
        options = jit_options
    if options.get("device"):
        raise TypeError(f"build() builds kernels, and {kernel.__name__} is a device function")
    # cuda.jit fills in the defaults, and refuses options that contradict each other.
    options = {name: value for name, value in options.items() if name not in ("device", "cache")}
    targetoptions = dict(cuda.jit(kernel, **options).targetoptions)
    targetoptions["link"] = list(targetoptions.get("link") or ())
    return kernel, targetoptions


def compute_capability(cc: ComputeCapabilityLike | None) -> tuple[int, int, str]:
    """Return *cc* as major, minor and suffix; without it, what a launch on the current GPU is built for.

    Raise `ValueError` if *cc* is not a compute capability, the CUDA toolkit does not know it, or there is neither *cc*
    nor a GPU; `LinkError` if NVRTC is not installed.
    """
    if cc is None:
        try:
            return ComputeCapability.parse(cuda.get_current_device().compute_capability).as_launched.parts
        except Exception as error:
            raise ValueError(
                "cc is missing, and there is no GPU to build for by default\n"
                "  what to do: pass cc=, for example cc=(9, 0)"
            ) from error
    capability = ComputeCapability.parse(cc)
    if missing := why_missing("NVRTC"):
        raise LinkError(f"build() cannot start: {missing[0]}", str(missing[1])) from missing[1]
    known = nvrtc.get_supported_ccs()
    if capability.base not in known:
        names = ", ".join(f"{major}.{minor}" for major, minor in known)
        raise ValueError(f"compute capability {capability} is not known to this CUDA toolkit\n  known: {names}")
    return capability.parts
