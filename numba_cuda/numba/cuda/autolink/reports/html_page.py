# SPDX-License-Identifier: BSD-2-Clause
"""Reports as HTML, a page or a fragment for notebooks, and their graph as SVG. Both fetch nothing from elsewhere. The
texts are in ``templates/``, which escape all values. A script sorts and filters the tables; where scripts do not run,
all rows are there."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numba_cuda_autolink.mangled_names import readable
from numba_cuda_autolink.printable_texts import number_of
from numba_cuda_autolink.source_locations import cell_name, shown_file

from . import call_items, comparison, formatting, graph, summary, trace
from .records import NOT_LINKED, KernelReport

if TYPE_CHECKING:
    from jinja2 import Environment

CLASS = "numba-cuda-autolink"
_MANY = 24  # rows of a table, from which on it scrolls
_WITH_NUMBER = re.compile(r"(\D*)(\d*)")


def to_html(report: KernelReport) -> str:
    """Return the report as a page that is complete in itself."""
    title = f"{formatting.function(report.kernel)}: what it is linked from"
    return _rendered("page.html", report, title=title, content="report.html")


def to_fragment(report: KernelReport) -> str:
    """Return the report as the element that notebooks show."""
    return _rendered("report.html", report)


def to_svg(report: KernelReport) -> str:
    return _rendered("graph.svg", report, is_alone=True)


def changes_to_html(before: KernelReport, now: KernelReport) -> str:
    title = f"{formatting.function(now.kernel)}: what changed"
    found = comparison.changes(before, now)
    return _rendered("page.html", now, title=title, content="changes.html", changes=found)


def _rendered(template: str, report: KernelReport, **values: Any) -> str:
    return _environment().get_template(template).render(report=report, **values)


@functools.cache
def _environment() -> Environment:
    """Return the templates, with what they call."""
    import jinja2  # which a process that makes no HTML does without
    import markupsafe

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    shown = (
        "size",
        "time",
        "origin",
        "origins",
        "came_from",
        "digest",
        "stack",
        "function",
        "chain",
        "compiled",
        "file",
        "options",
        "kernel_options",
        "occupancy_range",
        "inlined",
    )
    environment.filters |= {name: getattr(formatting, name) for name in shown}
    others = (readable, shown_file, number_of)
    environment.filters |= {
        "address": _address,
        "in_order": _in_order,
        "with_content": _with_content,
        **{each.__name__: each for each in others},
    }
    environment.filters["breakable"] = lambda name: markupsafe.Markup("_<wbr>").join(name.split("_"))
    called = (
        trace.lanes,
        trace.totals_of,
        call_items.full_name,
        call_items.whole_name,
        call_items.inlining,
        call_items.differing_calls,
        summary.boxes,
        graph.draw,
    )
    environment.globals |= {function.__name__: function for function in called}
    environment.tests["absolute"] = os.path.isabs
    environment.globals |= {"titles": formatting.titles, "zip": zip}
    environment.globals |= {"CLASS": CLASS, "KINDS": trace.KINDS, "MANY": _MANY, "RESTORED": formatting.RESTORED}
    environment.globals["NOT_LINKED"] = NOT_LINKED
    environment.globals["style"] = markupsafe.Markup(_important("graph.css") + _important("report.css"))
    environment.globals["graph_style"] = markupsafe.Markup(_important("graph.css"))
    return environment


def _important(name: str) -> str:
    """Return a style sheet whose declarations win over those of the page around a report."""
    return _template(name).replace(";", " !important;")


def _template(name: str) -> str:
    return resources.files(__package__).joinpath(f"templates/{name}").read_text("utf-8")


def _address(filename: str | None, line: int | None) -> str:
    """Return the address of a line of a file; empty for what is not a file with a full path."""
    if filename is None or not Path(filename).is_absolute() or cell_name(filename):
        return ""
    return Path(filename).as_uri() + (f"#L{line}" if line is not None else "")


def _with_content(titles: Mapping[str, str], rows: Sequence[object]) -> dict[str, str]:
    """Return those of *titles*, by field, of which one of the *rows* has something."""
    return {name: title for name, title in titles.items() if any(getattr(row, name) for row in rows)}


def _in_order(names: tuple[str, ...]) -> list[str]:
    """Return *names* sorted, ``f_2`` before ``f_10``."""
    return sorted(names, key=lambda name: [(part, int(digits or 0)) for part, digits in _WITH_NUMBER.findall(name)])
