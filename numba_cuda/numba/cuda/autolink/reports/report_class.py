# SPDX-License-Identifier: BSD-2-Clause
"""`Report`: the record of a kernel in every form that it can be shown in."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from . import formatting
from .graph import to_dot
from .html import to_fragment, to_page
from .outline import to_text, to_tree
from .records import KernelReport
from .serialization import from_json, to_json
from .svg import to_svg

if TYPE_CHECKING:
    from rich.tree import Tree


@dataclass(frozen=True, repr=False)
class Report(KernelReport):
    """What a kernel's calls returned, how it was linked, and the result.

    ``str`` gives plain text, `show` prints it as the terminal allows, and notebooks show it as HTML.

    Its attributes are those of `numba.cuda.autolink.reports.records.KernelReport`.
    """

    def __repr__(self) -> str:
        arches = ", ".join(build.arch for build in self.builds)
        calls = formatting.count(len(self.builds[0].calls), "call")
        return f"<Report of {self.kernel}{self.signature} for {arches}: {calls} of external code>"

    def __str__(self) -> str:
        return to_text(self)

    def show(self, file: TextIO | None = None) -> None:
        """Print it to *file* (default: stdout): in colour on a terminal, as plain text elsewhere."""
        file = sys.stdout if file is None else file
        if file.isatty():
            from rich.console import Console

            Console(file=file).print(self)
        else:
            print(self, file=file)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the report as JSON, from which `from_json` makes an equal one."""
        return to_json(self, indent)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Return the report that `to_json` made *text* of.

        Raises
        ------
        ValueError
            If *text* is not a report, or is one in a format that this version does not know.
        """
        return from_json(cls, text)

    def to_dot(self) -> str:
        """Return the call graph for Graphviz: kernel, functions, objects, code and result."""
        return to_dot(self)

    def to_svg(self) -> str:
        """Return the call graph as the text of an SVG image."""
        return to_svg(self)

    def to_html(self) -> str:
        """Return the report as an HTML page that loads nothing from elsewhere."""
        return to_page(self)

    def _repr_html_(self) -> str:
        return to_fragment(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def __rich__(self) -> Tree:
        return to_tree(self)
