# SPDX-License-Identifier: BSD-2-Clause
"""What is kept of a build: plain data that outlives the compiler's own, and is stored with a cached kernel."""

from __future__ import annotations

import linecache
from dataclasses import dataclass

from numba.cuda.compiler import ExternFunction
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr
from numba.cuda.cudadrv.external_code.diagnostics.timeline import Span
from numba.cuda.cudadrv.external_code.formats.symbol_record import Symbols
from numba.cuda.cudadrv.external_code.link.link_record import LinkRecord
from numba.cuda.cudadrv.external_code.platform.target import Target

from ..protocol.ask import with_answer
from ..protocol.call_sites import origins_of
from ..protocol.callee import Callee
from ..protocol.errors import HookError
from .call_graph import CallGraph, Frame, call_graph
from .function_code import FunctionCode
from .object_names import short_names

_LONGEST_REPR = 4000


@dataclass(frozen=True)
class CallRecord:
    """One call of an object that provides code: the call site as text; the object's repr, a short name that no other
    object of the kernel has, its class, and the argument types that it was asked about; the place of the call, and the
    text of that line.

    Attributes
    ----------
    chain, function:
        The functions from the kernel to the call, each with the line at which it calls the next, or that of the call
        itself; and the index of the last one among the functions of the call graph.
    seconds, stored:
        How long the answer took, and whether it had been stored under its link key, so that the object was not asked.
    """

    site: str
    object: str
    name: str
    type_name: str
    argtypes: tuple[str, ...]
    filename: str
    line: int
    text: str
    chain: tuple[Frame, ...]
    function: int
    seconds: float | None
    stored: bool

    @property
    def call(self) -> str:
        """The call as text."""
        return f"{self.object}({', '.join(self.argtypes)})"


@dataclass(frozen=True)
class BuildFacts:
    """A kernel built for one target: its name in the code, its calls, its link
    (``None`` where numba-cuda linked it alone), what the linker printed, the symbols of its own code before the link,
    whether the finished kernel came from the disk cache of ``cuda.jit(cache=True)``, and the timeline of the build."""

    entry_name: str
    target: Target
    graph: CallGraph
    calls: tuple[CallRecord, ...]
    link: LinkRecord | None
    log: str
    own_symbols: Symbols
    restored: bool = False
    timeline: tuple[Span, ...] = ()


def facts_of(code: FunctionCode, target: Target, output: str, log: str = "") -> BuildFacts:
    """Return the facts of a kernel that was linked for *target* to a ``"cubin"`` or ``"ptx"``; *output* is ``"ltoir"``
    if it was not linked. *log* is what a linker of the front end printed, where that linked it alone."""
    graph, chains = call_graph(code)
    calls = []
    sites = dict.fromkeys((*code.call_sites, *chains))
    names = short_names({site.callee: _names_of(site.callee) for site in sites})
    origins = code.origins if sites.keys() == code.origins.keys() else origins_of(sites)
    for site in sites:
        chain, function = chains.get(site, ((Frame(site.function, site.filename, site.line),), 0))
        try:
            answer = with_answer(site, target).answer
            how: tuple[float | None, bool] = answer.seconds, answer.stored
        except HookError:
            how = None, False
        obj = site.callee.obj
        what = origins[site], safe_repr(obj, _LONGEST_REPR), names[site.callee], type(obj).__name__
        where = site.filename, site.line, linecache.getline(site.filename, site.line).strip()
        calls.append(CallRecord(*what, tuple(map(str, site.argtypes)), *where, chain, function, *how))
    spans = tuple(code.timeline.spans)
    link, symbols = code.link_record(target, output), Symbols.of((), code.own_undefined())
    if link is not None and output == "cubin":
        log = link.log
    shown = log.replace("\0", "").strip()
    return BuildFacts(code.entry_name or "", target, graph, tuple(calls), link, shown, symbols, timeline=spans)


def _names_of(callee: Callee) -> tuple[str, str]:
    """Return a name for what has no readable repr, that of a function or a type, and the repr."""
    if isinstance(callee.obj, ExternFunction):
        return str(callee.obj.name), str(callee.obj.name)
    return callee.name, safe_repr(callee.obj, _LONGEST_REPR)
