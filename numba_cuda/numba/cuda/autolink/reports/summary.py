# SPDX-License-Identifier: BSD-2-Clause
"""What a report shows first: what a launch needs, and which calls were not inlined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from numba_cuda_autolink.printable_texts import number_of

from . import formatting
from .call_items import full_name
from .item import Item
from .records import BuildReport, CallReport, ResultReport

_MOST = 8  # functions that are listed


def head(builds: Sequence[BuildReport], width: int) -> Iterator[Item]:
    """Yield what each architecture needs, of several as a table where *width* characters have room for it, and which
    calls were not inlined."""
    rows = list(_table(builds)) if len(builds) > 1 else []
    if rows and max(map(len, rows)) <= width:
        yield from (Item("", row) for row in rows)
    else:
        yield from (Item(build.arch, _needs(build), facts=True) for build in builds)
    left = {build.arch: tuple(_not_inlined(build.calls)) for build in builds}
    first = left[builds[0].arch]
    if all(items == first for items in left.values()):
        left = {"": first}
    for arch, items in left.items():
        if items:
            yield Item(f"not inlined{f' for {arch}' if arch else ''}", "", items)


def _not_inlined(calls: Sequence[CallReport]) -> Iterator[Item]:
    """Yield the calls that were not inlined, those alike together, and how many more there are."""
    groups: dict[tuple[str, str], list[CallReport]] = {}
    for call in calls:
        if call.may_be_left:
            inner = f": {left}" if (left := formatting.left(call)) else ""
            groups.setdefault((f"{full_name(call)}{call.arguments}", inner), []).append(call)
    for (name, inner), some in [*groups.items()][:_MOST]:
        yield Item(f"{name}{formatting.times(some)}", f"at {formatting.places(some)}{inner}")
    if len(groups) > _MOST:
        yield Item("", f"and {number_of(sum(map(len, [*groups.values()][_MOST:])), 'more call')}")


def _table(builds: Sequence[BuildReport]) -> Iterator[str]:
    """Yield the rows of a table, one for each build."""
    rows = [_row(build) for build in builds]
    titles = [title for title in rows[0] if any(row[title] for row in rows)]
    table = [titles, *([row[title] for title in titles] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        yield "  ".join(map(str.ljust, line, widths)).rstrip()


def _row(build: BuildReport) -> dict[str, str]:
    """Return what is compared between architectures, by title; empty where it is not known. Sizes are in bytes."""
    result = build.result
    spills = _bytes(result.spill_stores) if result.spill_stores else "none"
    return {
        "": build.arch,
        "registers": "" if result.registers is None else str(result.registers),
        "shared": "" if result.shared is None else _bytes(result.shared),
        "stack": "recursion" if result.stack is None and result.registers is not None else _bytes(result.stack),
        "spills": "" if result.spill_stores is None else spills,
        "occupancy": formatting.occupancy_range(result.occupancy).replace("% to ", "-"),
        "inlined": (formatting.inlined(build.calls) or "").replace(" of ", "/"),
        "size": formatting.size(result.size),
    }


def _bytes(number: int | None) -> str:
    return "" if number is None else formatting.size(number).removesuffix(" bytes").removesuffix(" byte")


def _needs(build: BuildReport) -> str:
    """Return what a launch needs, and how many calls were inlined, in one line."""
    result = build.result
    found = {
        "{} registers": result.registers,
        "{} shared": formatting.size(result.shared) if result.shared else None,
        "stack {}": formatting.stack(result),
        "{}": _spilled(result),
        "occupancy {}": formatting.occupancy_summary(result.occupancy) or None,
        "inlined {}": formatting.inlined(build.calls),
    }
    needs = [text.format(value) for text, value in found.items() if value is not None]
    return ", ".join(needs) or formatting.code(result)


def _spilled(result: ResultReport) -> str | None:
    """Return how much is spilled; ``None`` where that is not known."""
    if result.spill_stores is None:
        return None
    spills = result.spill_stores or result.spill_loads
    return f"{formatting.size(spills)} spilled" if spills else "no spills"


def boxes(build: BuildReport) -> list[tuple[str, str]]:
    """Return what the page shows first of a build: pairs of a label and a value."""
    link, result = build.link, build.result
    found = [(result.kind, formatting.size(result.size)), *resources(result)]
    found.append(("occupancy", formatting.occupancy_summary(result.occupancy)))
    found.append(("inlined", formatting.inlined(build.calls) or ""))
    return [pair for pair in (*found, ("link", formatting.origin(link.origin, link.seconds))) if pair[1]]


def resources(result: ResultReport) -> list[tuple[str, str]]:
    """Return what the result needs of the GPU: pairs of a label and an amount."""
    size, stores, loads = formatting.size, result.spill_stores, result.spill_loads
    found = [] if result.registers is None else [("registers", f"{result.registers} per thread")]
    if result.shared is not None:
        found.append(("static shared memory", f"{size(result.shared)} per block"))
    if (stack := formatting.stack(result)) is not None:
        found.append(("stack", stack if result.stack is None else f"{stack} per thread"))
    memory = {"constant memory": result.constant_memory, "global memory": result.global_memory}
    found += [(f"{name} of variables", size(number)) for name, number in memory.items() if number]
    if stores is not None and loads is not None:
        spills = f"{size(stores)} stored, {size(loads)} loaded" if stores or loads else "none"
        found.append(("register spills", spills))
    elif result.registers is not None:  # ptxas counts them in a link that is asked for its log
        found.append(("register spills", "not known"))
    return found
