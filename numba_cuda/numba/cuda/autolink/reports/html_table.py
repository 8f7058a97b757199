# SPDX-License-Identifier: BSD-2-Clause
"""Tables of the HTML report: numbered rows, which a script sorts by any column and filters."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

from .theme import CLASS

_MANY = 24  # rows, from which on a table scrolls under its head
_WIDE = 5  # columns, from which on a row becomes a card on a narrow screen

STYLE = """
& .table { overflow: auto; }
& .many { max-height: 560px; border: 1px solid var(--nca-line); border-radius: 6px; padding: 0 8px; }
& .many thead th { position: sticky; top: 0; background: var(--nca-back); }
& table { border-collapse: collapse; width: 100%; margin: 0; font-size: 13px; color: inherit; }
& th, & td { text-align: left; vertical-align: top; padding: 4px 14px 4px 0; border-bottom: 1px solid var(--nca-line);
  color: inherit; white-space: normal; overflow-wrap: anywhere; background: none; min-width: 6.5em; }
& th { color: var(--nca-faint); font-weight: normal; white-space: nowrap; }
& th[aria-sort] { cursor: pointer; }
& th[aria-sort]::after { content: " ↕"; }
& th[aria-sort=ascending]::after { content: " ↑"; }
& th[aria-sort=descending]::after { content: " ↓"; }
& td.number, & th:first-child { color: var(--nca-faint); width: 1em; min-width: 0; white-space: nowrap;
  overflow-wrap: normal; }
& tbody tr:last-child td { border-bottom: 0; }
& tr[hidden] { display: none; }
& .filter { display: flex; gap: 10px; align-items: center; margin: 6px 0; }
& .filter input { font: inherit; color: inherit; background: var(--nca-node); border: 1px solid var(--nca-line);
  border-radius: 6px; padding: 3px 8px; width: 260px; max-width: 60%; }
& .bar { height: 4px; width: var(--nca-share); background: var(--nca-kernel); border-radius: 2px; }
& [role=button] { cursor: pointer; text-decoration: underline dotted; }
@container (max-width: 600px) {
& th, & td { min-width: 0; padding-right: 8px; white-space: normal; overflow-wrap: break-word; }
& .wide thead { display: none; }
& .wide table, & .wide tbody, & .wide tr { display: block; }
& .wide tbody tr { padding: 4px 0; border-bottom: 1px solid var(--nca-line); }
& .wide td { display: flex; gap: 8px; border-bottom: 0; padding: 1px 0; }
& .wide td::before { content: attr(data-title); color: var(--nca-faint); flex: 0 0 96px; }
& .wide td.number { width: auto; }
& .wide td.number::before { content: "no."; }
& .wide td:empty, & .wide td.empty { display: none; }
}
"""

SCRIPT = f"""{{
const picked = [];
for (const box of document.querySelectorAll(".{CLASS} .table:not([data-ready])")) {{
  box.dataset.ready = "";
  const body = box.querySelector("tbody"), rows = [...body.rows], heads = [...box.querySelectorAll("thead th")];
  const value = (row, column) => row.cells[column].dataset.key ?? row.cells[column].innerText.trim();
  const compare = (a, b) => (a !== "" && b !== "" && !isNaN(a) && !isNaN(b)) ? a - b
    : a.localeCompare(b, undefined, {{numeric: true}});
  picked.push(...box.querySelectorAll("[data-filter]"));  // they filter the next table
  if (rows.length < 2) continue;
  heads.forEach((head, column) => {{
    head.ariaSort = "none";
    head.tabIndex = 0;
    const sort = () => {{
      const down = head.ariaSort === "ascending";
      heads.forEach(other => other.ariaSort = "none");
      head.ariaSort = down ? "descending" : "ascending";
      const sorted = [...rows].sort((a, b) => compare(value(a, column), value(b, column)));
      body.append(...(down ? sorted.reverse() : sorted));
    }};
    head.onclick = sort;
    head.onkeydown = event => {{ if (event.key === "Enter") sort(); }};
  }});
  if (rows.length < 6 || box.querySelector("[data-filter]")) continue;
  const line = document.createElement("div"), input = document.createElement("input"),
    count = document.createElement("span");
  line.className = "filter";
  count.className = "faint";
  input.type = "search";
  input.placeholder = "filter " + rows.length + " rows";
  input.setAttribute("aria-label", input.placeholder);
  const texts = rows.map(row => row.textContent.toLowerCase());
  input.oninput = () => {{
    const words = input.value.toLowerCase().split(/\\s+/);
    rows.forEach((row, index) => row.hidden = !words.every(word => texts[index].includes(word)));
    const shown = rows.filter(row => !row.hidden).length;
    count.textContent = shown < rows.length ? shown + " of " + rows.length : "";
  }};
  line.append(input, count);
  box.before(line);
  if (!picked.length) continue;
  for (const name of picked.splice(0)) {{
    name.role = "button";
    name.tabIndex = 0;
    name.title = "show these calls only";
    name.onclick = () => {{ input.value = name.dataset.filter; input.oninput(); input.focus(); }};
    name.onkeydown = event => {{ if (event.key === "Enter") name.onclick(); }};
  }}
}}
}}
"""


class Cell(NamedTuple):
    """A cell: its HTML, the number that it is sorted by if that is not its text, and the length of its bar, as a part
    of the longest one."""

    html: str
    key: float | None = None
    share: float | None = None


def table(titles: Iterable[str], rows: Iterable[Iterable[Cell]]) -> str:
    """Return a table of *rows*, which are numbered."""
    titles = tuple(titles)
    head = "".join(f"<th>{escape(title)}</th>" for title in ("", *titles))
    body = [
        f'<tr><td class="number">{number}</td>{"".join(map(_cell, titles, cells))}</tr>'
        for number, cells in enumerate(rows, 1)
    ]
    kind = (" many" if len(body) >= _MANY else "") + (" wide" if len(titles) >= _WIDE else "")
    return f'<div class="table{kind}"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'


def _cell(title: str, cell: Cell) -> str:
    key = "" if cell.key is None else f' data-key="{cell.key}"'
    if not cell.html:
        return '<td class="empty"></td>'
    bar = "" if cell.share is None else f'<div class="bar" style="--nca-share: {cell.share:.1%}"></div>'
    return f'<td data-title="{escape(title)}"{key}><div>{cell.html}{bar}</div></td>'
