# SPDX-License-Identifier: BSD-2-Clause
"""What is remembered of a build: plain data, which outlives the compiler's own, and goes with a kernel into a cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numba.cuda.compiler import ExternFunction
from numba.cuda.cudadrv.external_code.formats.llvm_ir import undefined_functions
from numba.cuda.cudadrv.external_code.formats.symbols import Symbols
from numba.cuda.cudadrv.external_code.link.record import LinkRecord
from numba.cuda.cudadrv.external_code.target import Target

from ..compiling.call_graph import CallGraph, Frame, call_graph
from ..protocol.asking import ask
from ..protocol.callee import Callee
from ..protocol.errors import HookError

_LONGEST = 40


@dataclass(frozen=True)
class CallFacts:
    """A call of an object that provides code. ``text`` is what the link's records call it by."""

    text: str
    object: str
    name: str
    argtypes: tuple[str, ...]
    filename: str
    line: int
    chain: tuple[Frame, ...]
    function: int
    seconds: float | None
    stored: bool


@dataclass(frozen=True)
class BuildFacts:
    """A kernel built for *target*. ``link`` is ``None`` where numba-cuda linked it alone; ``own_symbols`` are those of
    the kernel's code before the link."""

    kernel: str
    entry_name: str
    target: Target
    graph: CallGraph
    calls: tuple[CallFacts, ...]
    link: LinkRecord | None
    log: str
    own_symbols: Symbols
    restored: bool = False


def facts_of(library: Any, cc: tuple[Any, ...], output: str = "cubin") -> BuildFacts:
    """The facts of a kernel's library that was linked for *cc*: to a ``"cubin"`` or ``"ptx"``, or not (``"ltoir"``)."""
    target = library._target_for(cc)
    graph, chains = call_graph(library)
    calls = []
    for site in library.call_sites:
        chain, function = chains.get(site, ((Frame(site.function, site.filename, site.line),), 0))
        try:
            answer = ask(site.callee, site.argtypes, target)
            seconds, stored = answer.seconds, answer.stored
        except HookError:
            seconds, stored = None, False
        calls.append(
            CallFacts(
                str(site),
                str(site.callee),
                _short(site.callee),
                tuple(map(str, site.argtypes)),
                site.filename,
                site.line,
                chain,
                function,
                seconds,
                stored,
            )
        )
    return BuildFacts(
        library.name,
        library._entry_name,
        target,
        graph,
        tuple(calls),
        library.link_records.get((cc, output)),
        ((library._linkerinfo_cache.get(cc) if output == "cubin" else None) or "").replace("\0", "").strip(),
        Symbols.of((), undefined_functions(library.llvm_strs)),
    )


def _short(callee: Callee) -> str:
    """A name for diagrams: of a declared function its own, the object's repr if that is short and its own, its type."""
    if isinstance(callee.obj, ExternFunction):
        return str(callee.obj.name)
    text = str(callee)
    return callee.name if text.startswith("<") or len(text) > _LONGEST else text
