# SPDX-License-Identifier: BSD-2-Clause
"""The records that a report consists of. All are frozen and hold only text, numbers and each other."""

from __future__ import annotations

from dataclasses import dataclass

from numba.cuda.cudadrv.external_code.diagnostics.timeline import Span
from numba.cuda.cudadrv.external_code.inputs.kinds import CUDA
from numba.cuda.cudadrv.external_code.link.linker_input import CompiledCode
from numba.cuda.cudadrv.external_code.plan.python_functions import PythonFunction

from ..function_code.build_record import CallRecord
from ..function_code.call_graph import CallGraph

# Instead of a function's name: the digest of a whole source of which other architectures may have other code.
FOR_ARCHITECTURES = "__CUDA_ARCH__"
NOT_LINKED = "not linked"  # the origin of a link that is left to others


@dataclass(frozen=True)
class CodeReport:
    """One piece of linked code: what it is (``"CUDA C++ source"``, ``"LTO-IR"``, ...), what messages call it, its size
    in bytes and its digest, and what source was ``compiled`` to.

    Attributes
    ----------
    brought_by:
        The call sites that returned it, of what a call ``returned`` that of the call alone, or ``link=``; empty for the
        kernel's own code.
    defines, undefined:
        The symbols that it defines for others, and those that it needs of other code in the link; ``None`` where the
        format does not show them. LTO-IR shows only the definitions that other code in the link references.
    content:
        The digest of the functions that the kernel calls in it, as they are for one architecture, whatever else the
        code contains; ``None`` where the format does not show them.
    source:
        The digest of a source's text and of the headers that it reads besides CUDA's, without comments, or of the
        Python function that C++ calls; ``None`` of other code, and where the headers were edited since the build.
    functions:
        The functions and variables that its called functions lead to, with these, as pairs of a name and a digest,
        which can be compared between architectures; empty where they cannot be read, of a translation unit with
        ``parts``, and of functions in Python.
    definitions:
        The definitions of ``functions``, and of the types, macros, variables and functions that these name, as the
        files have them: the name with namespaces and without arguments, the file, which is empty for the source's own
        text, and a digest.
    unit, parts:
        Several sources may be compiled as one translation unit. The unit has ``parts``; each part names its ``unit``,
        has the unit's ``compiled``, and of its symbols only the functions that the kernel calls.
    detail:
        What tells a Python function that C++ calls from others of its name: `` at ops.py:3``, `` with n=2.0``.
    files:
        The files that a source reads besides CUDA's, that of its library included, as pairs of a name and a digest
        without comments.
    options:
        The compile options of a source, as pairs of a name and a text: ``("use_fast_math", "True")``, ``("-DTILE",
        "16")``.
    """

    kind: str
    name: str
    size: int
    sha256: str
    brought_by: tuple[str, ...] = ()
    compiled: CompiledCode | None = None
    defines: tuple[str, ...] | None = None
    undefined: tuple[str, ...] | None = None
    content: str | None = None
    source: str | None = None
    functions: tuple[tuple[str, str], ...] = ()
    unit: str | None = None
    parts: tuple[CodeReport, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    detail: str = ""
    definitions: tuple[tuple[str, str, str], ...] = ()

    @property
    def title(self) -> str:
        """Its name, with what tells it from others of that name."""
        return self.name + self.detail

    @property
    def own(self) -> bool:
        """Whether it is the kernel's own code."""
        return not self.brought_by

    @property
    def is_python(self) -> bool:
        """Whether it is the kernel's own code or a Python function that C++ calls."""
        return self.own or (self.kind != CUDA.name and self.source is not None)

    @property
    def linked_kind(self) -> str:
        """The kind of code that the linker was given."""
        return self.compiled.kind if self.compiled else self.kind


@dataclass(frozen=True)
class CallReport(CallRecord):
    """A call with the code that the object *returned*, in order, and whether it was *inlined* as a whole into all of
    its callers: ``False`` if a call of it, or of a function that it leads to, is left somewhere in the result, ``None``
    where that is not known. Where it was inlined itself, ``called`` are the functions that it leads to and that were
    not. Where several calls lead to one function, and it is not known which of them are ``left``, these are the number
    of its ``CALL`` instructions and of the calls."""

    returned: tuple[CodeReport, ...] = ()
    inlined: bool | None = None
    called: tuple[str, ...] = ()
    left: tuple[int, int] | None = None

    @property
    def may_be_left(self) -> bool:
        """Whether it is known that it was not inlined, or that it may not have been."""
        return self.inlined is False or self.left is not None


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
    """A function of the result, which was not inlined everywhere, its bytes of instructions, without padding, and their
    digest, in which names and line information are not; empty in a report that was written without it. ``calls`` is the
    number of its ``CALL`` instructions in the result, ``None`` without ``nvdisasm``; ``registers`` and ``stack`` in
    bytes are those of a function that has its own, and the register spills in bytes those of one that ptxas compiled in
    the link; ``None`` for others, and for the kernel."""

    name: str
    size: int
    sha256: str = ""
    calls: int | None = None
    registers: int | None = None
    stack: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None

    @property
    def code(self) -> tuple[str, int, str]:
        """Its name and what its machine code is."""
        return self.name, self.size, self.sha256


@dataclass(frozen=True)
class LineReport:
    """A line of a source: its number, its text, and the instructions of the result that come from it."""

    number: int
    text: str
    sass: tuple[str, ...] = ()


@dataclass(frozen=True)
class ListingReport:
    """What a source or a piece of code became. *name* is a file, a Python file with the line where a text
    of C++ begins, a Python function or the name of the code, with that of the object that returned it if other code has
    the same; *lines* are those of the source, for a long file only
    those with machine code and their neighbours; *ptx* is what the linker's compiler makes of the code alone; *sass* is
    machine code in the result that no line is known for. Line information (``lineinfo=True``) says which line an
    instruction comes from, inlined ones included. ``None`` stands for what cannot be shown. *note* says why the lines
    of a Python function have no machine code."""

    name: str
    lines: tuple[LineReport, ...] = ()
    ptx: str | None = None
    sass: str | None = None
    note: str = ""

    @property
    def has_lines(self) -> bool:
        """Whether machine code is known to come from one of its lines."""
        return any(line.sass for line in self.lines)

    @property
    def has_machine_code(self) -> bool:
        """Whether it has any machine code."""
        return self.sass is not None or self.has_lines


@dataclass(frozen=True)
class OccupancyReport:
    """How many *blocks* of *threads* a multiprocessor holds, the *share* of its warps that they make up, from 0 to 1,
    and the *limit*: ``"registers"``, ``"shared memory"``, ``"blocks"``, ``"warps"`` or ``"launch bounds"``. A block of
    which it holds none cannot be launched."""

    threads: int
    blocks: int
    share: float
    limit: str


@dataclass(frozen=True)
class ResultReport:
    """The result of a build: a ``"cubin"``, ``"PTX"`` or ``"LTO-IR"``, its size and digest, the registers per thread,
    the static shared memory per block, the stack per thread in local memory, what variables take of constant and of
    global memory, the digest of their initial values as ``data``, and the register spills as ptxas counts them; the
    functions in a cubin, the kernel's first; and the ``occupancy`` for blocks of several sizes without dynamic shared
    memory. Sizes are in bytes; ``None`` stands for an unknown number, which the ``stack`` of a kernel with recursion
    is."""

    kind: str
    size: int
    sha256: str
    registers: int | None = None
    shared: int | None = None
    stack: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None
    constant_memory: int | None = None
    global_memory: int | None = None
    data: str | None = None
    functions: tuple[FunctionReport, ...] = ()
    occupancy: tuple[OccupancyReport, ...] = ()


@dataclass(frozen=True)
class BuildReport:
    """The kernel built for one architecture, ``arch`` (``"sm_90a"``); in the code it is called ``entry_name``.

    ``restored`` is whether the finished kernel came from the disk cache of ``cuda.jit(cache=True)``: times and origins
    are then those of the process that built it. The rest are its calls of external code, its link, the result, and the
    timeline of what the build did, in the order in which that ended; links for other architectures of a kernel that was
    launched are in it too. ``listings`` show what the code became, if `report` was asked for them; of a kernel without
    line information they are those of a build with it (``listings_with_lineinfo``). ``options`` are the
    kernel's ``lto``, ``debug``, ``lineinfo``, ``fastmath`` and ``max_registers``, and what else ``cuda.jit`` was given
    that is not its default, as pairs of a name and a text: ``("launch_bounds", "1024")``.
    ``python`` are the Python functions that the kernel and what C++ calls are compiled from, with digests that can be
    compared in one version of Python.
    """

    arch: str
    entry_name: str
    restored: bool
    calls: tuple[CallReport, ...]
    link: LinkReport
    result: ResultReport
    timeline: tuple[Span, ...] = ()
    listings: tuple[ListingReport, ...] = ()
    listings_with_lineinfo: bool = False
    options: tuple[tuple[str, str], ...] = ()
    python: tuple[PythonFunction, ...] = ()


@dataclass(frozen=True, repr=False)
class KernelReport:
    """What a kernel's calls returned, how it was linked, and the result.

    Attributes
    ----------
    kernel:
        The name of the kernel's Python function, or the name by which the command ``explain`` was asked for it.
    filename, line:
        Where the function is defined.
    signature:
        The types of its arguments as text.
    graph:
        The functions from the kernel, which is the first, to the calls.
    builds:
        One build for each architecture.
    versions:
        Pairs of a library and its version.
    """

    kernel: str
    filename: str | None
    line: int | None
    signature: str
    graph: CallGraph
    builds: tuple[BuildReport, ...]
    versions: tuple[tuple[str, str], ...]
