# SPDX-License-Identifier: BSD-2-Clause
"""A report as HTML: a page, and a fragment for notebooks. Both fetch nothing from elsewhere and run no script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from . import formatting, svg
from .outline import numbers
from .records import BuildReport, CallReport, CodeReport, KernelReport
from .theme import CLASS, FONT, variables

_STYLE = f"""
div.{CLASS} {{ background: var(--nca-back); color: var(--nca-text); font: 13px/1.45 {FONT};
  border: 1px solid var(--nca-line); border-radius: 6px; padding: 14px 18px; overflow: hidden; text-align: left; }}
.{CLASS} h3, .{CLASS} h4 {{ color: inherit; font-family: inherit; line-height: 1.3; }}
.{CLASS} h3 {{ font-size: 16px; margin: 0; }}
.{CLASS} h4 {{ font-size: 13px; margin: 20px 0 6px; }}
.{CLASS} h3 small {{ color: var(--nca-faint); font-weight: normal; font-size: 13px; }}
.{CLASS} p {{ margin: 2px 0; }}
.{CLASS} .faint {{ color: var(--nca-faint); }}
.{CLASS} code, .{CLASS} pre {{ font: 12px/1.45 ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace;
  color: inherit; background: none; padding: 0; border: 0; }}
.{CLASS} pre {{ white-space: pre-wrap; overflow-wrap: anywhere; margin: 4px 0 0; }}
.{CLASS} .facts {{ display: flex; flex-wrap: wrap; gap: 8px; margin: 6px 0 0; padding: 0; }}
.{CLASS} .facts div {{ background: var(--nca-node); border: 1px solid var(--nca-line); border-radius: 6px;
  padding: 4px 12px; }}
.{CLASS} .facts b {{ display: block; font-size: 14px; }}
.{CLASS} .wide {{ overflow-x: auto; }}
.{CLASS} .graph {{ max-height: 1240px; overflow: auto; margin-top: 12px;
  border: 1px solid var(--nca-line); border-radius: 6px; }}
.{CLASS} .graph svg {{ display: block; max-width: none; }}
.{CLASS} table {{ border-collapse: collapse; width: 100%; margin: 0; font-size: 13px; table-layout: auto; }}
.{CLASS} table tr, .{CLASS} table td, .{CLASS} table th {{ background: none !important; }}
.{CLASS} th, .{CLASS} td {{ text-align: left; vertical-align: top; padding: 4px 14px 4px 0; border: 0;
  border-bottom: 1px solid var(--nca-line); color: inherit; white-space: normal; overflow-wrap: anywhere; }}
.{CLASS} th {{ color: var(--nca-faint); font-weight: normal; white-space: nowrap; }}
.{CLASS} td.number {{ color: var(--nca-faint); width: 1em; white-space: nowrap; overflow-wrap: normal; }}
.{CLASS} tr:last-child > td {{ border-bottom: 0; }}
.{CLASS} details {{ margin-top: 8px; }}
.{CLASS} summary {{ cursor: pointer; color: var(--nca-faint); }}
"""
_PAGE = f"""
body {{ margin: 0; padding: 24px; }}
body.{CLASS} {{ background: var(--nca-back); }}
div.{CLASS} {{ max-width: 1400px; margin: 0 auto; }}
"""


def to_html(report: KernelReport) -> str:
    """Return the report as a page that is complete in itself."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(formatting.function(report.kernel))}: what it is linked from</title>"
        f'<style>{_PAGE}</style></head><body class="{CLASS}">{to_fragment(report)}</body></html>\n'
    )


def to_fragment(report: KernelReport) -> str:
    """Return the report as the element that notebooks show."""
    place = f"{report.filename}:{report.line}" if report.filename else ""
    versions = escape(", ".join(map(" ".join, report.versions)))
    parts = [
        f"<style>{variables()}{svg.STYLE}{_STYLE}</style>",
        f'<div class="{CLASS}">',
        f"<h3>{escape(formatting.function(report.kernel))}<small>{escape(report.signature)}</small></h3>",
        f'<p class="faint">{escape(place)}</p>',
        f'<div class="graph wide">{svg.drawing(report)}</div>',
        *(part for build in report.builds for part in _build(build)),
        f'<p class="faint" style="margin-top: 12px">Made with {versions}</p></div>',
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
    if build.calls:
        yield f"<h4>{formatting.count(len(build.calls), 'call')} of external code</h4>"
        yield _table(("", "object", "called at", "by way of", "returned"), map(_call, build.calls))
    yield f"<h4>Link {'with' if link.lto else 'without'} LTO</h4>"
    yield f'<p class="faint">{escape(link.why)}</p>'
    if link.inputs:
        yield _table(("", "input", "kind", "bytes", "compiled", "defines", "undefined"), map(_input, link.inputs))
    more = [("Entry name", build.entry_name), ("Options", " ".join(link.options or ())), ("Log", link.log)]
    printed = "".join(f"<p class='faint'>{label}</p><pre>{escape(text)}</pre>" for label, text in more if text)
    yield f"<details><summary>Entry name, linker options and log</summary>{printed}</details>"


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of *rows*, which are numbered."""
    head = "".join(f"<th>{title}</th>" for title in titles)
    body = "".join(
        f"<tr><td class='number'>{number}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        for number, cells in enumerate(rows, 1)
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _faint(text: str) -> str:
    return f"<span class='faint'>{escape(text)}</span>"


def _call(call: CallReport) -> Iterator[str]:
    yield f"<code title='{escape(call.object)}'>{escape(call.name)}({escape(', '.join(call.argtypes))})</code>"
    yield f"<span title='{escape(call.filename)}'>{escape(formatting.file(call.filename))}:{call.line}</span>"
    yield escape(formatting.chain(call.chain))
    returned = "<br>".join(map(_name, call.returned)) or _faint("nothing to link")
    if call.seconds is not None:
        returned += " " + _faint(f"in {formatting.time(call.seconds)}{', stored' if call.stored else ''}")
    yield returned


def _name(code: CodeReport) -> str:
    return f"<span title='sha256 {code.sha256}'>{escape(formatting.file(formatting.function(code.name)))}</span>"


def _input(code: CodeReport) -> Iterator[str]:
    yield "the kernel's own code" if code.own else _name(code)
    yield escape(code.kind)
    yield f"<span title='{code.size} bytes'>{formatting.size(code.size)}</span><br>{_faint(code.sha256[:12])}"
    yield escape(formatting.compiled(code.compiled)) if code.compiled is not None else ""
    yield _symbols(() if code.own else code.defines)
    yield _symbols(code.undefined)


def _symbols(names: tuple[str, ...] | None) -> str:
    if names is None:
        return _faint("not readable")
    shown = [f"<code>{escape(name)}</code>" for name in names[:4]]
    if len(names) > 4:
        rest = escape("\n".join(names[4:]))
        shown.append(f"<span class='faint' title='{rest}'>and {len(names) - 4} more</span>")
    return "<br>".join(shown)
