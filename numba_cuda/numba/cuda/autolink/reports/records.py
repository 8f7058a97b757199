# SPDX-License-Identifier: BSD-2-Clause
"""The records that a report consists of. All are frozen and hold only text, numbers and each other."""

from __future__ import annotations

from dataclasses import dataclass

from numba.cuda.cudadrv.external_code.link.record import CompiledCode
from numba.cuda.cudadrv.external_code.timeline import Span

from ..compiling.call_graph import CallGraph, Frame


@dataclass(frozen=True)
class CodeReport:
    """One piece of linked code: what it is (``"CUDA C++ source"``, ``"LTO-IR"``, ...), what messages call it, its size
    in bytes and its digest, and what source was ``compiled`` to.

    Attributes
    ----------
    brought_by:
        The call sites that returned it, or ``link=``; empty for the kernel's own code.
    defines, undefined:
        The symbols that it defines for others, and those that it references without defining them; ``None`` where the
        format does not show them. LTO-IR shows only the definitions that other code in the link references.
    unit, parts:
        Several sources may be compiled as one translation unit. The unit has ``parts``; each part names its ``unit``,
        has the unit's ``compiled``, and no symbols of its own.
    """

    kind: str
    name: str
    size: int
    sha256: str
    brought_by: tuple[str, ...] = ()
    compiled: CompiledCode | None = None
    defines: tuple[str, ...] | None = None
    undefined: tuple[str, ...] | None = None
    unit: str | None = None
    parts: tuple[CodeReport, ...] = ()

    @property
    def own(self) -> bool:
        """Whether it is the kernel's own code."""
        return not self.brought_by

    @property
    def linked_kind(self) -> str:
        """The kind of code that the linker was given."""
        return self.compiled.kind if self.compiled else self.kind


@dataclass(frozen=True)
class CallReport:
    """One call of an object that provides code: the call site as text, as in `CodeReport.brought_by`; the object's
    repr, a short name that no other object of the report has, its class, and the argument types that it was asked
    about; the place of the call, and the text of that line.

    Attributes
    ----------
    chain, function:
        The functions from the kernel to the call, each with the line at which it calls the next, or that of the call
        itself; and the index of the last one among the report's functions.
    seconds, stored, returned:
        How long the answer took; whether it had been stored under its link key, so that the object was not asked; and
        the code that the object returned, in order.
    inlined:
        Whether the function that is called is part of its callers; ``False`` if a call of it is left somewhere in the
        result, and ``None`` where that is not known.
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
    returned: tuple[CodeReport, ...] = ()
    inlined: bool | None = None

    @property
    def call(self) -> str:
        """The call as text."""
        return f"{self.object}({', '.join(self.argtypes)})"


@dataclass(frozen=True)
class LinkReport:
    """A link: whether it ran with link-time optimisation, and ``why``; the linker's options as text, ``None`` where
    numba-cuda linked alone because no external code was called; its inputs in order, of which the kernel's own code is
    the first; and what it printed. ``origin`` is ``"built"``, or the level of the cache that held it: ``"memory"``,
    ``"disk"``, ``"image"`` or ``"remote"``; ``seconds`` is how long that took."""

    lto: bool
    why: str
    options: tuple[str, ...] | None
    inputs: tuple[CodeReport, ...]
    log: str
    origin: str
    seconds: float | None


@dataclass(frozen=True)
class FunctionReport:
    """A function of the result, which was not inlined everywhere, and its bytes of machine code."""

    name: str
    size: int


@dataclass(frozen=True)
class ListingReport:
    """What one piece of code became: its *name*; its *source*, CUDA C++ or Python; its *ptx*, as the linker's compiler
    makes it of that code alone; and its *sass*, the machine code in the result that comes from it. With ``lineinfo``
    that includes what was inlined. ``None`` stands for what cannot be shown."""

    name: str
    source: str | None
    ptx: str | None
    sass: str | None


@dataclass(frozen=True)
class ResultReport:
    """The result of a build: a ``"cubin"``, ``"PTX"`` or ``"LTO-IR"``, its size and digest, the registers per thread,
    the static shared memory per block, the stack per thread in local memory, and the register spills as ptxas counts
    them; and the functions in a cubin, the kernel's first. Sizes are in bytes; ``None`` stands for an unknown
    number."""

    kind: str
    size: int
    sha256: str
    registers: int | None = None
    shared: int | None = None
    stack: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None
    functions: tuple[FunctionReport, ...] = ()


@dataclass(frozen=True)
class BuildReport:
    """The kernel built for one architecture, ``arch`` (``"sm_90a"``); in the code it is called ``entry_name``.

    ``restored`` is whether the finished kernel came from the disk cache of ``cuda.jit(cache=True)``: times and origins
    are then those of the process that built it. The rest are its calls of external code, its link, the result, and the
    timeline of what the build did, in the order in which that ended; links for other architectures of a kernel that was
    launched are in it too. ``listings`` show what the code became, if `report` was asked for them.
    """

    arch: str
    entry_name: str
    restored: bool
    calls: tuple[CallReport, ...]
    link: LinkReport
    result: ResultReport
    timeline: tuple[Span, ...] = ()
    listings: tuple[ListingReport, ...] = ()


@dataclass(frozen=True, repr=False)
class KernelReport:
    """What a kernel's calls returned, how it was linked, and the result.

    Its records are the kernel's Python function, its place, and the types of its arguments as text; in ``graph`` the
    functions from the kernel, which is the first, to the calls; one build for each architecture; and in ``versions``
    pairs of a library and its version.
    """

    kernel: str
    filename: str | None
    line: int | None
    signature: str
    graph: CallGraph
    builds: tuple[BuildReport, ...]
    versions: tuple[tuple[str, str], ...]
