# SPDX-License-Identifier: BSD-2-Clause
"""An outline of what a report says, in order, which all forms of text show."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from numba_cuda_autolink.mangled_names import readable
from numba_cuda_autolink.printable_texts import number_of
from numba_cuda_autolink.source_locations import shown_file

from . import formatting
from .call_items import asks_the_same, call_item, differing_calls, group_calls, inlined_call
from .item import Item
from .records import NOT_LINKED, BuildReport, CodeReport, KernelReport
from .summary import head, resources
from .trace import totals_of

_STATISTICS = re.compile(r"(ptxas )?info +:|ptxas +\. +\d|INFO: ")  # lines of a linker's log that are left out
_MOST_ALIKE = 4  # options of one name
_MOST_FUNCTIONS = 8  # of the result
_MANY = 6  # calls, from which on those of a function are one line
_FEW = 4  # pieces of a list of numbers


def outline(report: KernelReport, width: int) -> Item:
    """Return the outline of *report* for lines below it of *width* characters."""
    place = f"{shown_file(report.filename)}:{report.line}" if report.filename else ""
    below = [item for build in report.builds for item in _build(build, report.builds[0])]
    made_with = Item("made with", ", ".join(map(" ".join, report.versions)))
    return Item(
        f"{formatting.function(report.kernel)}{report.signature}",
        place,
        (*head(report.builds, width), *below, made_with),
    )


def _build(build: BuildReport, first: BuildReport) -> Iterator[Item]:
    """Yield what there is to say of a *build* that is not as for the *first* one."""
    if build.restored:
        yield Item(build.arch, formatting.RESTORED)
    seen: dict[CodeReport | str, int] = {}
    many, calls = len(build.calls) >= _MANY, differing_calls(build, first)
    as_before = bool(build.calls) and asks_the_same(build, first)
    heading = "more in HTML, JSON" if many else ""
    if as_before:
        heading = f"as for {first.arch}{' but for' if calls else ''}"
    if many:
        below = group_calls([call for _, call in calls])
    else:
        below = tuple(inlined_call(*each) if as_before else call_item(*each, seen) for each in calls)
        below += tuple(_compiled_otherwise(build, first)) if as_before else ()
    yield Item(f"{number_of(len(build.calls), 'call')} of external code for {build.arch}", heading, below)
    took = formatting.origin(build.link.origin, build.link.seconds)
    took = f"{took}, {build.link.why}" if build.link.origin == NOT_LINKED else took
    yield _but_for(Item(f"link for {build.arch}", took, tuple(_link(build))), _link(first), build, first)
    if build.timeline:
        yield Item(f"time of the build for {build.arch}", "", tuple(_totals(build)))
    result = Item(f"result for {build.arch}", formatting.code(build.result), tuple(_result(build)))
    yield _but_for(result, _result(first), build, first)


def _compiled_otherwise(build: BuildReport, first: BuildReport) -> Iterator[Item]:
    """Yield what sources were compiled to for a *build* of which the calls are as those of the *first* one."""
    known = {code.compiled for code in first.link.inputs}
    for code, title in zip(build.link.inputs, formatting.titles(build.link.inputs, build.calls), strict=True):
        if code.compiled is not None and code.compiled not in known:
            took = formatting.origin(code.compiled.origin, code.compiled.seconds)
            yield Item(title, f"compiled to {formatting.code(code.compiled)}: {took}")


def _but_for(item: Item, of_first: Iterable[Item], build: BuildReport, first: BuildReport) -> Item:
    """Return the *item* of a *build* without what is below it for the *first* one too."""
    if build is first:
        return item
    known = [(each.label, each.text.replace(f"-arch={first.arch}", ""), each.below) for each in of_first]
    rest = [
        each
        for each in item.below
        if (each.label, each.text.replace(f"-arch={build.arch}", ""), each.below) not in known
    ]
    text = (
        f"{item.text}; {'the rest ' if rest else ''}as for {first.arch}" if len(rest) < len(item.below) else item.text
    )
    return Item(item.label, text, tuple(rest))


def _result(build: BuildReport) -> Iterator[Item]:
    yield from (Item(label, value) for label, value in (*resources(build.result), *_room(build)))
    functions = build.result.functions[:_MOST_FUNCTIONS]
    more = len(build.result.functions) - len(functions)
    if len(functions) > 1:
        sizes = [Item(each.name, formatting.in_result(each), facts=True) for each in functions]
        yield Item("functions", "", (*sizes, *([Item("", f"and {more} more")] if more else [])))
    yield from _entry(build.entry_name)


def _room(build: BuildReport) -> Iterator[tuple[str, str]]:
    """Yield the occupancies, one for all sizes of blocks that have the same."""
    for text, same in itertools.groupby(build.result.occupancy, formatting.occupancy):
        yield f"occupancy of {formatting.listed([str(each.threads) for each in same])} threads", text


def _entry(name: str) -> Iterator[Item]:
    if readable(name) != name:
        yield Item("entry", readable(name))
    yield Item("entry name", name)


def _totals(build: BuildReport) -> Iterator[Item]:
    for total in totals_of(build):
        text = f"{formatting.time(total.seconds)}: {formatting.origins(total.origins)}"
        yield Item(total.kind, text)


def _link(build: BuildReport) -> Iterator[Item]:
    link = build.link
    calls = {call.site: f"call {number}" for number, call in enumerate(build.calls, 1)}
    if link.origin != NOT_LINKED:
        yield Item("with LTO" if link.lto else "without LTO", link.why)
    if link.inputs:
        named = zip(link.inputs, formatting.titles(link.inputs, build.calls), strict=True)
        inputs = [(code, _input(number, code, title, calls)) for number, (code, title) in enumerate(named, 1)]
        shown = [item for code, item in inputs if len(inputs) < _MANY or not calls.keys() & {*code.brought_by}]
        returned = len(inputs) - len(shown)
        text = f"{returned} that the calls returned, and" if returned else "in this order"
        yield Item("inputs", f"{len(inputs)}{': ' if returned else ', '}{text}", tuple(shown))
    if given := formatting.kernel_options(build.options):
        yield Item("options of the kernel", given)
    if link.options is not None:
        yield Item("options", " ".join(_options(link.options)))
    lines = (line.strip() for line in link.log.splitlines())
    if notable := tuple(Item("", line) for line in lines if line and not _STATISTICS.match(line)):
        yield Item("log", "", notable)


def _options(options: Sequence[str]) -> Iterator[str]:
    """Yield *options* as text; of one that is given many times, the first few and how many there are."""
    counts = Counter(option.partition("=")[0] for option in options)
    shown: Counter[str] = Counter()
    for option in options:
        name, equals, value = option.partition("=")
        shown[name] += 1
        if shown[name] <= _MOST_ALIKE:
            yield f"{name}{equals}{readable(value)}"
        elif shown[name] == counts[name]:
            yield f"and {counts[name] - _MOST_ALIKE} more of {name}"


def _input(number: int, code: CodeReport, name: str, calls: dict[str, str]) -> Item:
    origins = dict.fromkeys(calls.get(origin, origin) for origin in code.brought_by)
    by = "the kernel's own code" if code.own else f"of {_call_ranges(origins)}"
    kind = f"{code.kind} → {code.compiled.kind}" if code.compiled else code.kind
    kind += f" of {number_of(len(code.parts), 'source')}" if code.parts and not formatting.is_of_library(code) else ""
    return Item(f"{number}. {formatting.function(name)}", f"{kind}, {by}")


def _call_ranges(origins: Collection[str]) -> str:
    """Return *origins* with the calls in order, ``calls 1 to 10`` for three or more in a row; how many there are, where
    that are many pieces."""
    numbers = sorted(int(name.removeprefix("call ")) for name in origins if name.startswith("call "))
    found = [name for name in origins if not name.startswith("call ")]
    pieces: list[str] = []
    for _, each in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        row = [number for _, number in each]
        pieces += [f"calls {row[0]} to {row[-1]}"] if len(row) > 2 else [f"call {number}" for number in row]
    pieces = pieces if len(pieces) <= _FEW else [number_of(len(numbers), "call")]
    return formatting.listed([*pieces, *found], len(pieces) + len(found))
