# SPDX-License-Identifier: BSD-2-Clause
"""What a function that numba-cuda-mlir compiled needs linked. It travels with the function, up to the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from numba.cuda.cudadrv.external_code.diagnostics.timeline import Timeline
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CalledFunction, CPrototype
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.link.link_record import LinkRecord
from numba.cuda.cudadrv.external_code.plan.kernel_code import KernelCode, SymbolSite
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkPlan
from numba.cuda.cudadrv.external_code.platform.target import Target

from ..frontends.numba_cuda.linking_files import Entry, OrderedSet, inputs_of
from ..protocol.ask import AskedCall
from ..protocol.call_sites import CallSite
from .call_graph import Calls
from .called_symbols import SymbolSites

# The key of a function's metadata under which numba-cuda-mlir keeps it.
KEY = "numba_cuda_autolink"


class ExternalCode:
    """The external code of one compiled function and of all that it calls: its `CallSite`\\ s with their answers, what
    ``link=`` names, and the functions of C++ that its calls go through; each once, in order of first use."""

    def __init__(self, name: str, target: Target, timeline: Timeline):
        self.name = name
        self.target = target
        self.timeline = timeline
        self.calls = Calls()
        self.link_records: dict[tuple[Any, str], LinkRecord] = {}
        self.entry_name = ""
        self.link_options: dict[str, Any] = {}  # of the kernel, besides those of the target
        self._entries = OrderedSet()
        self._glue = OrderedSet()
        self._symbols = SymbolSites()

    @property
    def call_sites(self) -> tuple[CallSite, ...]:
        """The call sites of linkable code in this function and all that it calls, in order of first use."""
        return tuple(entry for entry in self._entries if isinstance(entry, CallSite))

    def add_call(self, call: AskedCall) -> None:
        """Link what the called object provides."""
        self._entries.add(call)
        self.calls.sites.add(call)

    def add_item(self, item: Entry | LinkInput) -> None:
        """Link what ``link=`` names."""
        self._entries.add(item)

    def add_glue(self, link_input: LinkInput) -> None:
        """Link a function of C++ that a call goes through."""
        self._glue.add(link_input)

    def add_callee(self, callee: ExternalCode, line: int | None) -> None:
        """Link what a function needs that is called at *line*."""
        self._entries.update(callee._entries)
        self._glue.update(callee._glue)
        self.calls.lines.setdefault(callee, line)
        self._symbols.note_all(callee._symbols)

    def note_prototypes(
        self, prototypes: Sequence[tuple[str, CPrototype]], call: str, asked: Sequence[CallSite], text: Any
    ) -> None:
        """Remember the C functions that a *call* of the objects *asked* calls; *text* writes their prototypes."""
        for symbol, prototype in prototypes:
            self._symbols.note(symbol, SymbolSite(text(prototype), call, prototype), asked)

    def plan(self) -> LinkPlan:
        """Return what is linked into a kernel that is this function. Raise `LinkError` if a file is missing, or two
        functions call one symbol with different prototypes."""
        name = self.name.rpartition("<locals>.")[2]  # without those of the functions that enclose it
        self._symbols.check(name)
        return LinkPlan.of(f"kernel {name!r}", self.target, self._provided())

    def _provided(self) -> Iterator[tuple[str, LinkInput]]:
        origin = "link="
        for entry in self._entries:
            for origin, link_input in inputs_of(entry, self.target):
                yield origin, link_input
        for glue in self._glue:
            yield origin, glue

    def kernel_code(self, own: bytes, lto: bool) -> KernelCode:
        """Return the kernel's own side of the link: its code, LTO-IR or PTX."""
        link_input = LinkInput(kinds.LTO_IR if lto else kinds.PTX, own, name=self.name)
        symbols = tuple(self._symbols)
        sites = {symbol: tuple(found) for symbol, found in self._symbols.items()}
        return KernelCode((link_input,), self.entry_name, symbols, sites, self.link_options)

    @property
    def prototypes(self) -> dict[str, str]:
        """The LLVM function types of the C functions that calls in Python reference: of the first such call."""
        return {symbol: sites[0].prototype for symbol, sites in self._symbols.items()}

    @property
    def called_functions(self) -> tuple[CalledFunction, ...]:
        """These functions, once for each set of types that calls pass and expect."""
        return tuple(site.called(symbol) for symbol, sites in self._symbols.items() for site in sites)

    # What a report reads

    def own_undefined(self) -> tuple[str, ...]:
        """The functions that the kernel's own code calls and does not define."""
        return tuple(self._symbols)

    def linker_log(self, cc: Any) -> str:
        """What the linker printed."""
        record = self.link_records.get((cc, "cubin"))
        return record.log if record is not None else ""

    def target_for(self, cc: Any) -> Target:
        """The target of the link."""
        return self.target
