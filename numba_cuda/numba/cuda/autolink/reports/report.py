# SPDX-License-Identifier: BSD-2-Clause
"""`Report`: the records of a kernel in every form that they can be shown in; as JSON they can be read again."""

from __future__ import annotations

import dataclasses
import functools
import json
import shutil
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TextIO

from numba_cuda_autolink.errors import of_type
from numba_cuda_autolink.printable_texts import number_of

from . import comparison, graph, html_page, text, trace
from .records import KernelReport

FORMAT = "numba-cuda-autolink report"
VERSION = 4  # raised when a reader of the previous version would misread
_FORMS_OF_CHANGES: dict[str, Callable[[KernelReport, KernelReport], str]] = {
    "text": comparison.to_text,
    "html": html_page.changes_to_html,
    "json": comparison.to_json,
}
_hints = functools.cache(typing.get_type_hints)


@dataclass(frozen=True, repr=False)
class Report(KernelReport):
    """What a kernel's calls returned, how it was linked, and the result.

    ``str`` gives plain text, `show` prints it as the terminal allows, and notebooks show it as HTML.

    Its attributes are those of `numba.cuda.autolink.reports.records.KernelReport`.
    """

    __rich__ = text.to_tree
    _repr_html_ = html_page.to_fragment

    def to_html(self) -> str:
        """Return the report as an HTML page that loads nothing from elsewhere."""
        return html_page.to_html(self)

    def to_svg(self) -> str:
        """Return the graph of kernel, calls, inputs and result as the text of an SVG image."""
        return html_page.to_svg(self)

    def to_dot(self) -> str:
        """Return the graph of kernel, calls, inputs and result for Graphviz."""
        return graph.to_dot(self)

    def changes_since(self, before: KernelReport, form: Literal["text", "html", "json"] = "text") -> str:
        """Return what differs from the report *before*, as lines of text, an HTML page or JSON: registers, stack,
        shared memory, sizes of functions, inlining, the functions that are called, options and versions. Times are not
        compared."""
        if form not in _FORMS_OF_CHANGES:
            raise ValueError(f"changes_since() knows the forms {', '.join(_FORMS_OF_CHANGES)}, got {form!r:.80}")
        of_type("changes_since()", before, KernelReport, "a report, such as linked.report")
        return _FORMS_OF_CHANGES[form](before, self)

    def to_trace(self) -> str:
        """Return the timeline of the build as the text of a trace file, which https://ui.perfetto.dev and
        ``chrome://tracing`` open: what was done when, how long it took, and in which process."""
        return trace.to_trace(self)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the report as JSON, from which `from_json` makes an equal one: an object with the fields of the
        records, a ``format`` and its ``version``."""
        fields = {"format": FORMAT, "version": VERSION, **dataclasses.asdict(self)}
        return json.dumps(fields, indent=indent, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Return the report that `to_json` made *text* of.

        Raises `ValueError` if *text* is not a report, or is one in a format that this version does not know.
        """
        try:
            data = json.loads(text)
        except ValueError as error:
            raise ValueError(f"the text is not a report, since it is not JSON: {error}") from None
        if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
            raise ValueError(f'the text is not a report: expected a JSON object with "format": "{FORMAT}"')
        if (version := data.pop("version", None)) != VERSION:
            raise ValueError(f"the report's format is version {version!r}; expected version {VERSION}")
        try:
            return _value(cls, data)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise ValueError(f"the text is not a whole report: {type(error).__name__}: {error}") from error

    def __str__(self) -> str:
        return text.to_text(self)

    def __repr__(self) -> str:
        arches = ", ".join(build.arch for build in self.builds)
        calls = number_of(len(self.builds[0].calls), "call")
        return f"<Report of {self.kernel}{self.signature} for {arches}: {calls} of external code>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def show(self, file: TextIO | None = None) -> None:
        """Print it to *file* (default: stdout): in colour on a terminal, as plain text elsewhere, no wider than the
        ``COLUMNS`` of the environment."""
        file, width = sys.stdout if file is None else file, text.WIDTH
        if file is sys.stdout:
            width = min(width, shutil.get_terminal_size((width, 1)).columns)
        if file.isatty():
            from rich.console import Console

            console = Console(file=file)
            console.print(text.to_tree(self, console.width))
        else:
            print(text.to_text(self, width), file=file)


def _value(hint: Any, value: Any) -> Any:
    """Return the *value* of a field with the type *hint*."""
    origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = _hints(hint)
        return hint(**{name: _value(hints[name], each) for name, each in value.items()})
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _value(arguments[0], value)
    if origin is tuple:
        kinds = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        return tuple(_value(each, item) for each, item in zip(kinds, value, strict=True))
    return value
