# SPDX-License-Identifier: BSD-2-Clause
"""A report as HTML: a page, and a fragment for notebooks. Both fetch nothing from elsewhere. A script sorts and filters
the tables; where scripts do not run, all rows are there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

from numba.cuda.cudadrv.external_code.formats.cxx_names import readable

from ..notebook_cells import cell_name, shown_file
from . import by_class, formatting, html_listings, html_table, svg, timeline_drawing, trace
from .html_table import Cell, table
from .outline import full_name, numbers
from .records import BuildReport, CallReport, CodeReport, KernelReport
from .theme import CLASS, FONT, style, variables

_STYLE = f"""
div& {{ all: initial; display: block; box-sizing: border-box; background: var(--nca-back); color: var(--nca-text);
  font: 13px/1.45 {FONT}; border: 1px solid var(--nca-line); border-radius: 6px; padding: 14px 18px; overflow: hidden;
  text-align: left; container-type: inline-size; color-scheme: inherit; }}
& :where(*:not(svg, svg *, style, script)) {{ all: revert; font-family: inherit; box-sizing: border-box; }}
& style, & script {{ display: none; }}
& h3 {{ font-size: 16px; margin: 0; overflow-wrap: anywhere; }}
& h4 {{ font-size: 13px; margin: 20px 0 6px; }}
& h3 small {{ color: var(--nca-faint); font-weight: normal; font-size: 13px; }}
& p {{ margin: 2px 0; overflow-wrap: anywhere; }}
& .faint {{ color: var(--nca-faint); }}
& a {{ color: var(--nca-kernel); text-decoration: none; }}
& a:hover {{ text-decoration: underline; }}
& code, & pre {{ font: 12px/1.45 ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace;
  overflow-wrap: anywhere; }}
& pre {{ white-space: pre-wrap; margin: 4px 0 0; }}
& .facts {{ display: flex; flex-wrap: wrap; gap: 8px; margin: 6px 0 0; }}
& .facts div {{ background: var(--nca-node); border: 1px solid var(--nca-line); border-radius: 6px;
  padding: 4px 12px; }}
& .facts b {{ display: block; font-size: 14px; }}
& .graph {{ overflow-x: auto; margin-top: 12px; border: 1px solid var(--nca-line); border-radius: 6px; }}
& .graph svg {{ display: block; width: var(--nca-width); max-width: none; height: auto; }}
& details {{ margin-top: 8px; }}
& td > div > details {{ margin: 0; }}
& summary {{ cursor: pointer; color: var(--nca-faint); }}
& .end {{ margin-top: 12px; }}
& .swatch {{ display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 7px;
  background: var(--nca-swatch); }}
@container (max-width: 560px) {{
& .graph svg {{ width: max(var(--nca-width), 560px); }}
}}
"""
_WITH_NUMBER = re.compile(r"(\D*)(\d*)")
_PAGE = f"""
body {{ margin: 0; padding: 24px; }}
body.{CLASS}-page {{ background: Canvas; color-scheme: light dark; }}
div.{CLASS} {{ max-width: 1400px; margin: 0 auto !important; }}
@media (max-width: 600px) {{ body {{ padding: 0; }} }}
"""


def to_html(report: KernelReport) -> str:
    """Return the report as a page that is complete in itself."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(formatting.function(report.kernel))}: what it is linked from</title>"
        f'<style>{_PAGE}</style></head><body class="{CLASS}-page">{to_fragment(report)}</body></html>\n'
    )


def to_fragment(report: KernelReport) -> str:
    """Return the report as the element that notebooks show."""
    versions = escape(", ".join(map(" ".join, report.versions)))
    file = report.filename
    place = _place(file, report.line, f"{shown_file(file)}:{report.line}") if file else ""
    parts = [
        f'<div class="{CLASS}">',
        f"<style>{variables()}\n{style(svg.STYLE + _STYLE + html_table.STYLE + html_listings.STYLE)}</style>",
        f"<h3>{escape(formatting.function(report.kernel))}<small>{escape(report.signature)}</small></h3>",
        f'<p class="faint">{place}</p>',
        f'<div class="graph">{svg.drawing(report)}</div>',
        *(part for build in report.builds for part in _build(build)),
        f'<p class="faint end">Made with {versions}</p><script>{html_table.SCRIPT}</script></div>',
    ]
    return "\n".join(parts)


def _build(build: BuildReport) -> Iterator[str]:
    result, link = build.result, build.link
    yield f"<h4>{escape(build.arch)}</h4>"
    if build.restored:
        yield f'<p class="faint">{escape(formatting.RESTORED)}</p>'
    took = formatting.origin(link.origin, link.seconds)
    facts = [(result.kind, formatting.size(result.size)), *numbers(result), ("link", took)]
    shown = (f"<div>{_faint(label)}<b>{escape(value)}</b></div>" for label, value in facts)
    yield f'<div class="facts">{"".join(shown)}</div>'
    if len(build.calls) >= by_class.MANY:
        totals = by_class.by_class(build)
        most = max(total.machine_code for total in totals), max(total.seconds for total in totals)
        yield "<h4>By class</h4>"
        titles = ("class", "calls", "not inlined", "machine code", "inputs", "linked size", "compiled in")
        yield table(titles, (_class(total, *most) for total in totals))
    if build.calls:
        yield f"<h4>{formatting.count(len(build.calls), 'call')} of external code</h4>"
        yield table(("object", "called at", "by way of", "returned", "inlined"), map(_call, build.calls))
    yield f"<h4>Link {'with' if link.lto else 'without'} LTO</h4>"
    yield f'<p class="faint">{escape(link.why)}</p>'
    if link.inputs:
        yield table(("input", "kind", "bytes", "compiled", "defines", "undefined"), map(_input, link.inputs))
    entry = dict.fromkeys((readable(build.entry_name), build.entry_name))
    more = [("Entry name", "\n".join(entry)), ("Options", " ".join(link.options or ())), ("Log", link.log)]
    printed = "".join(f'<p class="faint">{label}</p><pre>{escape(text)}</pre>' for label, text in more if text)
    if build.timeline:
        yield "<h4>Timeline of the build</h4>"
        yield f'<div class="graph">{timeline_drawing.drawing(build.timeline)}</div>'
        yield table(("work", "number", "time", "from"), map(_total, trace.totals(build.timeline)))
    yield from html_listings.listings(build)
    yield f"<details><summary>Entry name, linker options and log</summary>{printed}</details>"


def _faint(text: str) -> str:
    return f'<span class="faint">{escape(text)}</span>'


def _place(filename: str | None, line: int | None, text: str) -> str:
    """Return *text* as a link to a line of a file, if the file's path is a full one."""
    if filename is None or not Path(filename).is_absolute() or cell_name(filename):
        return escape(text)
    fragment = f"#L{line}" if line is not None else ""
    return f'<a href="{escape(Path(filename).as_uri())}{fragment}" title="{escape(filename)}">{escape(text)}</a>'


def _call(call: CallReport) -> Iterator[Cell]:
    what = f"{full_name(call)}({', '.join(call.argtypes)})"
    of_class = f"<span hidden>class:{escape(call.type_name)}</span>"
    yield Cell(f'<code title="{escape(call.object)}">{escape(what)}</code>{of_class}')
    line = f"<br><code>{escape(call.text)}</code>" if call.text else ""
    yield Cell(_place(call.filename, call.line, f"{formatting.file(call.filename)}:{call.line}") + line, call.line)
    yield Cell(escape(formatting.chain(call.chain)))
    returned = "<br>".join(map(_name, call.returned)) or _faint("nothing to link")
    if call.seconds is not None:
        returned += " " + _faint(f"in {formatting.time(call.seconds)}{', stored' if call.stored else ''}")
    yield Cell(returned, call.seconds)
    yield Cell({True: "yes", False: "no", None: ""}[call.inlined])


def _class(total: by_class.ClassTotal, most_machine_code: int, most_seconds: float) -> Iterator[Cell]:
    yield Cell(f'<code data-filter="class:{escape(total.name)}">{escape(total.name)}</code>')
    yield Cell(str(total.calls), total.calls)
    yield Cell("" if total.called is None else str(total.called), total.called)
    yield Cell(formatting.size(total.machine_code), total.machine_code, total.machine_code / (most_machine_code or 1))
    yield Cell(str(total.inputs), total.inputs)
    yield Cell(formatting.size(total.linked), total.linked)
    yield Cell(formatting.time(total.seconds), total.seconds, total.seconds / (most_seconds or 1))


def _total(total: trace.Total) -> Iterator[Cell]:
    colour = f"--nca-swatch: var(--nca-{timeline_drawing.colour(total.kind)})"
    yield Cell(f'<span class="swatch" style="{colour}"></span>{escape(total.kind)}')
    yield Cell(str(total.number), total.number)
    yield Cell(formatting.time(total.seconds), total.seconds)
    yield Cell(escape(formatting.origins(total.origins)))


def _name(code: CodeReport) -> str:
    return f'<span title="sha256 {code.sha256}">{escape(formatting.file(formatting.function(code.name)))}</span>'


def _input(code: CodeReport) -> Iterator[Cell]:
    yield Cell("the kernel's own code" if code.own else _name(code))
    yield Cell(escape(code.kind))
    yield Cell(f"{formatting.size(code.size)}<br>{_faint(code.sha256[:12])}", code.size)
    made = code.compiled
    yield Cell(escape(formatting.compiled(made)), made.seconds) if made is not None else Cell("")
    yield _symbols(() if code.own else code.defines)
    yield _symbols(code.undefined)


def _numerically(name: str) -> list[tuple[str, int]]:
    """Return a key that sorts ``f_2`` before ``f_10``."""
    return [(text, int(digits or 0)) for text, digits in _WITH_NUMBER.findall(name)]


def _symbols(names: Iterable[str] | None) -> Cell:
    if names is None:
        return Cell(_faint("not readable"))
    shown = [
        f'<code title="{escape(name)}">{escape(readable(name))}</code>' for name in sorted(names, key=_numerically)
    ]
    text = "<br>".join(shown[:4])
    if len(shown) > 4:
        text += f"<details><summary>and {len(shown) - 4} more</summary>{'<br>'.join(shown[4:])}</details>"
    return Cell(text, len(shown))
