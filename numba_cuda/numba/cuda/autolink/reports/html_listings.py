# SPDX-License-Identifier: BSD-2-Clause
"""What code became, in the HTML report: functions and occupancy, and source, PTX and machine code side by side."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from . import formatting
from .html_table import Cell, table
from .occupancy import Occupancy
from .outline import occupancies
from .records import BuildReport, ListingReport

STYLE = """
& .listings { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(320px, 100%), 1fr)); gap: 8px; }
& .listings div { min-width: 0; }
& .listings pre { max-height: 420px; overflow: auto; white-space: pre; overflow-wrap: normal; padding: 6px 8px;
  background: var(--nca-node); border: 1px solid var(--nca-line); border-radius: 6px; }
"""
_NO_MACHINE_CODE = "Machine code needs NVIDIA's disassembler: <code>pip install nvidia-cuda-nvdisasm</code>"


def listings(build: BuildReport) -> Iterator[str]:
    """Yield the section on what the code of *build* became."""
    if functions := build.result.functions:
        yield "<h4>Functions in the result</h4>"
        shown = [(f"<code>{escape(each.name)}</code>", each.size) for each in functions]
        most = max(size for _, size in shown) or 1
        rows = ((Cell(name), Cell(formatting.size(size), size, size / most)) for name, size in shown)
        yield table(("function", "machine code"), rows)
    if room := occupancies(build):
        yield "<h4>Occupancy</h4>"
        yield table(("threads per block", "blocks per SM", "occupancy", "limited by"), map(_occupancy, room))
    if build.listings:
        yield "<h4>What the code became</h4>"
        if not any(listing.sass for listing in build.listings):
            yield f'<p class="faint">{_NO_MACHINE_CODE}</p>'
        yield table(("code",), ((Cell(_listing(listing)),) for listing in build.listings))


def _occupancy(found: Occupancy) -> Iterator[Cell]:
    yield Cell(str(found.threads), found.threads)
    yield Cell(str(found.blocks), found.blocks)
    yield Cell(f"{found.share:.0%}", found.share)
    yield Cell(escape(found.limit))


def _listing(listing: ListingReport) -> str:
    columns = (("source", listing.source), ("PTX", listing.ptx), ("machine code", listing.sass))
    shown = "".join(
        f'<div><span class="faint">{title}</span><pre>{escape(text)}</pre></div>' for title, text in columns if text
    )
    name = escape(formatting.file(listing.name))
    return f'<details><summary>{name}</summary><div class="listings">{shown}</div></details>'
