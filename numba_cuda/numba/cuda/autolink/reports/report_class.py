# SPDX-License-Identifier: BSD-2-Clause
"""`Report`: the record of a kernel in every form that it can be shown in."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, TextIO

from . import formatting, graph, html, outline, serialization, svg
from .records import KernelReport


@dataclass(frozen=True, repr=False)
class Report(KernelReport):
    """What a kernel's calls returned, how it was linked, and the result.

    ``str`` gives plain text, `show` prints it as the terminal allows, and notebooks show it as HTML.

    Its attributes are those of `numba.cuda.autolink.reports.records.KernelReport`.
    """

    __str__ = outline.to_text
    __rich__ = outline.to_tree
    _repr_html_ = html.to_fragment
    to_html = html.to_html
    to_svg = svg.to_svg
    to_dot = graph.to_dot
    to_json = serialization.to_json

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Return the report that `to_json` made *text* of. Raise `ValueError` if *text* is not a report, or is one in a
        format that this version does not know."""
        return serialization.from_json(cls, text)

    def __repr__(self) -> str:
        arches = ", ".join(build.arch for build in self.builds)
        calls = formatting.count(len(self.builds[0].calls), "call")
        return f"<Report of {self.kernel}{self.signature} for {arches}: {calls} of external code>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def show(self, file: TextIO | None = None) -> None:
        """Print it to *file* (default: stdout): in colour on a terminal, as plain text elsewhere."""
        file = sys.stdout if file is None else file
        if file.isatty():
            from rich.console import Console

            Console(file=file).print(self)
        else:
            print(self, file=file)
