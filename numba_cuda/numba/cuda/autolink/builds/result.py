# SPDX-License-Identifier: BSD-2-Clause
"""The result of a build as users get it: its record, with the report that it makes, the file that it is saved
to, and its launch in the emulator."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numba.cuda.cudadrv.external_code.diagnostics.timeline import Span, Timeline, recording
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkRequest

from numba_cuda_autolink.errors import FinishedKernelError, at_call
from numba_cuda_autolink.printable_texts import number_of, public_names
from numba_cuda_autolink.short_tracebacks import without_warnings

from ..compilation.context import without_device
from ..finished_kernels.saving import check_runtime, layout_of, save
from ..function_code.build_record import BuildRecord
from ..reports import formatting

if TYPE_CHECKING:
    from numba.cuda.cudadrv.external_code.link.linker_input import LinkRecord

    from numba_cuda_autolink.launch.emulated_kernel import EmulatedKernel

    from ..reports.report import Report


@dataclass(frozen=True)
class RanLink:
    """What a link made, as data that can be pickled: the code, the record of the link, and how long its parts took."""

    code: bytes
    record: LinkRecord
    timeline: tuple[Span, ...]

    @classmethod
    def of(cls, request: LinkRequest) -> RanLink:
        from numba.cuda.cudadrv.external_code.pipeline import run_link

        timeline = Timeline()
        with recording(timeline):
            linked = run_link(request)
        return cls(bytes(linked.code.code), linked.record, tuple(timeline.spans))


@dataclass(frozen=True, repr=False)
class LinkedKernel(BuildRecord):
    """A kernel that was built ahead of time. Its attributes are those of the record of its build.

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

    def __repr__(self) -> str:
        what = f"{self.facts.graph.functions[0].name}{self.signature} for {self.facts.target.arch}"
        calls, size = number_of(len(self.call_sites), "call"), formatting.size(len(self.code))
        return f"<LinkedKernel {what}: {self.output} of {size}, {calls} of external code>"

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the launch on the CPU, which is of this process."""
        return {name: value for name, value in vars(self).items() if name != "emulate"}

    def __dir__(self) -> list[str]:
        """Return the names for users."""
        return sorted({*public_names(super().__dir__())} - {"emulated_texts", "facts"})

    def _repr_html_(self) -> str:
        return self.report._repr_html_()

    if not TYPE_CHECKING:  # so that type checkers refuse it too

        def __getitem__(self, configuration: Any) -> Any:
            """Raise `TypeError`: it has no launch of its own."""
            raise TypeError(
                at_call(
                    f"what build() returned of {self.launch_facts.name} is not launched itself"
                    "\n  what to do: write linked.emulate[grid, block](...) to run it on the CPU; for a GPU, launch the"
                    " function of cuda.jit, or save the kernel and load it"
                )
            )

    @functools.cached_property
    def report(self) -> Report:
        """What each call provided, how it was linked, and the result."""
        from ..reports.collect import report_of

        return report_of(self)

    @functools.cached_property
    def emulate(self) -> EmulatedKernel:
        """The kernel on the CPU: ``linked.emulate[grid, block, stream, shared](*args)`` runs the linked code, with all
        external code in it, on arrays of NumPy. See `numba_cuda_autolink.EmulatedKernel`.

        Raises `FinishedKernelError` if it links machine code, which cannot be emulated, or if what it needs at run time
        only its front end has.
        """
        from numba_cuda_autolink.launch.emulated_kernel import EmulatedCode, EmulatedKernel

        facts, name, texts = self.launch_facts, self.launch_facts.name, self.emulated_texts
        if self.output == "ltoir":
            raise FinishedKernelError(
                f"{name} cannot be emulated: it is LTO-IR, which is not linked"
                "\n  what to do: build it with output='ptx', or as a cubin"
            )
        check_runtime(facts)
        _, leaves = layout_of(self, facts.parameters)
        if texts is None and self.output != "ptx":
            raise FinishedKernelError(
                f"{name} cannot be emulated: it is a cubin that was built in another process"
                "\n  what to do: build it here, by autolink.build(), which finds it in the cache; or with output='ptx'"
            )
        code = EmulatedCode(
            self.signature,
            facts.parameters,
            leaves,
            self.entry_name,
            self.cc.base,
            facts.cooperative,
            texts or (lambda: [self.code.decode().rstrip("\0")]),
            facts.setup,
            facts.teardown,
            [variable.memory for variable in facts.variables],
            getattr(texts, "make_lined", None),
        )
        return EmulatedKernel(name, lambda: [code], written="linked.emulate")

    def save(self, path: str | bytes | os.PathLike[Any]) -> None:
        """Write the kernel to a file, for `numba_cuda_autolink.load`; `save` describes the errors."""
        save(path, self)


def with_link(kernel: LinkedKernel, ran: RanLink) -> LinkedKernel:
    """Return *kernel* with the code that a link of it made."""
    log = ran.record.log.replace("\0", "").strip() if kernel.output == "cubin" else ""
    timeline = (*kernel.facts.timeline, *ran.timeline)
    facts = dataclasses.replace(kernel.facts, link=ran.record, log=log, timeline=timeline)
    return dataclasses.replace(kernel, code=ran.code, facts=facts)


class EmulatedTexts:
    """The PTX of a kernel that was built in this process, for the compute capability *cc*, which *make* makes when it
    is first asked for. A pickle has none. ``make_lined`` builds the kernel again, with the lines of its source."""

    make_lined: Callable[[], list[str]] | None = None

    def __init__(self, make: Callable[[], list[str]], cc: tuple[Any, ...]):
        self._make, self._cc = make, cc

    def __call__(self) -> list[str]:
        with without_device(self._cc), without_warnings():
            return self._make()

    def __reduce__(self) -> Any:
        return type(None), ()
