# SPDX-License-Identifier: BSD-2-Clause
"""The records that a report is made of. All are frozen, and hold nothing but text, numbers and each other."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, TextIO

from ..compiling.call_graph import CallGraph, Frame


@dataclass(frozen=True)
class CompiledReport:
    """What a compiler made of a CUDA C++ source.

    ``origin`` is ``"built"``, or the cache that it was found in: ``"memory"`` or ``"disk"``.
    """

    kind: str
    size: int
    sha256: str
    origin: str
    seconds: float


@dataclass(frozen=True)
class CodeReport:
    """One piece of code that was linked.

    Attributes
    ----------
    kind, name:
        What it is (``"CUDA C++ source"``, ``"LTO-IR"``, ...), and what messages call it.
    size, sha256:
        Of its bytes.
    brought_by:
        Which calls, or ``link=``; nobody for the kernel's own code.
    compiled:
        For source: what it was compiled to.
    unit, parts:
        Several sources may be compiled as one translation unit: the unit has ``parts``, each of which names the
        ``unit``, has what the unit was compiled to, and no symbols of its own.
    defines, wants:
        The symbols that it defines for others, and that it wants of others; ``None`` where its format does not let one
        see. LTO-IR shows only those that other code in the link wants.
    """

    kind: str
    name: str
    size: int
    sha256: str
    brought_by: tuple[str, ...] = ()
    compiled: CompiledReport | None = None
    defines: tuple[str, ...] | None = None
    wants: tuple[str, ...] | None = None
    unit: str | None = None
    parts: tuple[CodeReport, ...] = ()

    @property
    def own(self) -> bool:
        """Whether it is the kernel's own code."""
        return not self.brought_by


@dataclass(frozen=True)
class CallReport:
    """One call of an object that provides code.

    Attributes
    ----------
    object, name:
        The object's repr, and a short name.
    argtypes:
        The types that it was asked with.
    filename, line:
        Where the call stands.
    chain:
        The functions from the kernel to the call, each with the line at which it calls the next; the last line is
        that of the call itself.
    function:
        The index in the report's functions of that which makes the call.
    seconds, stored:
        How long the answer took; and whether it was given before, for the same link key, and the object not asked.
    returned:
        What it returned, in order.
    """

    object: str
    name: str
    argtypes: tuple[str, ...]
    filename: str
    line: int
    chain: tuple[Frame, ...]
    function: int
    seconds: float | None
    stored: bool
    returned: tuple[CodeReport, ...]

    @property
    def call(self) -> str:
        """The call as text."""
        return f"{self.object}({', '.join(self.argtypes)})"


@dataclass(frozen=True)
class LinkReport:
    """A link.

    Attributes
    ----------
    lto, why:
        Whether it ran with link-time optimisation, and why.
    options:
        The linker's, as text; ``None`` where numba-cuda linked alone, since nothing external was called.
    inputs:
        In the order in which the linker got them, the kernel's own code first.
    log:
        What the linker printed.
    origin, seconds:
        ``"built"``, or the cache that it was found in: ``"memory"`` or ``"disk"``; and how long that took.
    """

    lto: bool
    why: str
    options: tuple[str, ...] | None
    inputs: tuple[CodeReport, ...]
    log: str
    origin: str
    seconds: float | None


@dataclass(frozen=True)
class ResultReport:
    """What came of it. Sizes are in bytes; what cannot be told is ``None``.

    Attributes
    ----------
    kind, size, sha256:
        ``"cubin"``, ``"PTX"`` or ``"LTO-IR"``, and of its bytes.
    registers:
        Per thread.
    shared:
        Static shared memory per block.
    stack:
        Stack per thread, in local memory.
    spill_stores, spill_loads:
        How much registers are spilled, as ptxas counts.
    """

    kind: str
    size: int
    sha256: str
    registers: int | None = None
    shared: int | None = None
    stack: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None


@dataclass(frozen=True)
class BuildReport:
    """The kernel built for one architecture. ``entry_name`` is what it is called in the code.

    ``restored`` tells that the finished kernel came out of the disk cache of ``cuda.jit(cache=True)``: times and
    origins are then those of the process that built it.
    """

    arch: str
    entry_name: str
    restored: bool
    calls: tuple[CallReport, ...]
    link: LinkReport
    result: ResultReport


@dataclass(frozen=True, repr=False)
class Report:
    """What a kernel's calls brought, how it was linked, and what came of it.

    ``str`` gives plain text, `show` prints it as the terminal allows, and notebooks show it as HTML.

    Attributes
    ----------
    kernel, filename, line:
        The kernel's Python function.
    signature:
        The types of its arguments, as text.
    graph:
        The functions from the kernel to the calls. The first one is the kernel.
    builds:
        One for each architecture.
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

    def __repr__(self) -> str:
        arches = ", ".join(build.arch for build in self.builds)
        calls = len(self.builds[0].calls)
        return (
            f"<Report of {self.kernel}{self.signature} for {arches}: {calls} call{'s'[: calls != 1]} of external code>"
        )

    def __str__(self) -> str:
        from .text import text

        return text(self)

    def show(self, file: TextIO | None = None) -> None:
        """Print it to *file* (default: stdout): in colour on a terminal, plain elsewhere."""
        file = sys.stdout if file is None else file
        if not file.isatty():
            print(self, file=file)
            return
        from rich.console import Console

        Console(file=file).print(self)

    def to_json(self, *, indent: int | None = 2) -> str:
        """The report as JSON; `from_json` makes an equal one of it."""
        from .serialization import to_json

        return to_json(self, indent)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """The report that *text* was made of.

        Raises
        ------
        ValueError
            If it is no report, or one in a format that this version does not know.
        """
        from .serialization import from_json

        return from_json(text)

    def to_dot(self) -> str:
        """The call graph for Graphviz: kernel, functions, objects, code and result."""
        from .dot import dot

        return dot(self)

    def to_svg(self) -> str:
        """The call graph drawn: the text of an SVG image."""
        from .svg import svg

        return svg(self)

    def to_html(self) -> str:
        """A page with the report, complete in itself."""
        from .html import page

        return page(self)

    def _repr_html_(self) -> str:
        from .html import fragment

        return fragment(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def __rich__(self) -> Any:
        from .terminal import renderable

        return renderable(self)
