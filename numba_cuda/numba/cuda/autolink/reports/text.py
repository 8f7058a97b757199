# SPDX-License-Identifier: BSD-2-Clause
"""An outline of what a report says, in order: its content as plain text, and in colour for terminals."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numba_cuda_autolink.mangled_names import readable
from numba_cuda_autolink.printable_texts import number_of
from numba_cuda_autolink.source_locations import shown_file

from ..function_code.object_names import file_of_item, item_name
from . import formatting
from .records import BuildReport, CallReport, CodeReport, KernelReport, ResultReport
from .trace import totals_of

if TYPE_CHECKING:
    from rich.tree import Tree

_STATISTICS = re.compile(r"(ptxas )?info +:|ptxas +\. +\d|INFO: ")  # lines of a linker's log that are left out
_AMOUNT, _NO_BREAK = re.compile(r"(?<=\d) (?=(?:µs|ms|s|bytes?|[KMG]iB)\b)"), "\0"  # in a number with its unit
WIDTH = 80  # characters of a line, unless a name is longer
_LONGEST_OBJECT = 300  # characters
_ROOM = 100  # characters of an object's repr
_LONGEST_OF_TEXT = 70  # characters of the repr of a library's item, up to which it has all of the library's text
_MOST_ALIKE = 4  # options of one name
MANY = 24  # calls, from which on those of a function are one line
_FEW = 4  # pieces of a list of numbers
_LABELS = ("bold", "bold cyan", "green", "blue", "magenta")


@dataclass(frozen=True)
class Item:
    """A line: a label that may be highlighted, the text after it, and the items below it."""

    label: str
    text: str = ""
    below: tuple[Item, ...] = ()


def to_text(report: KernelReport, width: int = WIDTH) -> str:
    """Return the text of *report*, in lines of *width* characters unless a name is longer."""
    return "\n".join(_lines(_outline(report), 0, width))


def _lines(item: Item, depth: int, width: int) -> Iterator[str]:
    separator = "" if item.text.startswith("(") and depth else ": " if item.label and item.text else ""
    indent, line = "  " * depth, f"{item.label}{separator}{item.text}"
    whole_names = textwrap.TextWrapper(width, indent, f"{indent}    ", break_long_words=False, break_on_hyphens=False)
    yield from (each.replace(_NO_BREAK, " ") for each in whole_names.wrap(_AMOUNT.sub(_NO_BREAK, line)))
    for below in item.below:
        yield from _lines(below, depth + 1, width)


def to_tree(report: KernelReport) -> Tree:
    return _tree(_outline(report), 0)


def _tree(item: Item, depth: int) -> Tree:
    from rich.text import Text  # rich is only needed on terminals
    from rich.tree import Tree

    # Without markup and highlighting: names contain brackets and numbers.
    line = Text(item.label, style=_LABELS[min(depth, len(_LABELS) - 1)])
    if item.text:
        line.append("" if item.text.startswith("(") and depth else "  ", style="not bold")
        line.append(item.text, style="default not bold")
    tree = Tree(line, guide_style="dim")
    tree.children += [_tree(below, depth + 1) for below in item.below]
    return tree


def _outline(report: KernelReport) -> Item:
    place = f"{shown_file(report.filename)}:{report.line}" if report.filename else ""
    below = [item for build in report.builds for item in _build(build, report.builds[0])]
    if len(report.builds) > 1:
        below.insert(0, Item(f"{len(report.builds)} architectures", "", tuple(_architectures(report.builds))))
    made_with = Item("made with", ", ".join(map(" ".join, report.versions)))
    return Item(f"{formatting.function(report.kernel)}{report.signature}", place, (*below, made_with))


def _architectures(builds: Sequence[BuildReport]) -> Iterator[Item]:
    """Yield the rows of a table, one for each build."""
    rows = [architecture(build) for build in builds]
    titles = [title for title in rows[0] if any(row[title] for row in rows)]
    table = [titles, *([row[title] for title in titles] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        yield Item("", "  ".join(map(str.ljust, line, widths)).rstrip())


def architecture(build: BuildReport) -> dict[str, str]:
    """Return what is compared between architectures, by title; empty where it is not known."""
    result = build.result
    spills = formatting.size(result.spill_stores) if result.spill_stores else "none"
    return {
        "": build.arch,
        "registers": "" if result.registers is None else str(result.registers),
        "shared": "" if result.shared is None else formatting.size(result.shared),
        "stack": formatting.stack(result) or "",
        "spills": "" if result.spill_stores is None else spills,
        "occupancy": formatting.occupancy_range(result.occupancy),
        "inlined": formatting.inlined(build.calls) or "",
        "size": formatting.size(result.size),
    }


def _build(build: BuildReport, first: BuildReport) -> Iterator[Item]:
    """Yield what there is to say of a *build* that is not as for the *first* one."""
    if build.restored:
        yield Item(build.arch, formatting.RESTORED)
    seen: dict[CodeReport, int] = {}
    many, is_first, heading = len(build.calls) >= MANY, build is first, [_inlined(build.calls)]
    as_before = not is_first and bool(build.calls) and list(map(_asked, build.calls)) == list(map(_asked, first.calls))
    if as_before:
        became = zip(build.calls, first.calls, strict=True)
        other = [(number, new) for number, (new, old) in enumerate(became, 1) if inlining(new) != inlining(old)]
        heading.append(f"as for {first.arch}{' but for' if other else ''}")
        calls = _grouped([call for _, call in other]) if many else tuple(_inlined_call(*each) for each in other)
    else:
        heading.append("more in HTML, JSON" if many else "")
        calls = _grouped(build.calls) if many else tuple(_call(n, call, seen) for n, call in enumerate(build.calls, 1))
    what = f"{number_of(len(build.calls), 'call')} of external code for {build.arch}"
    yield Item(what, "; ".join(filter(None, heading)), calls)
    took = formatting.origin(build.link.origin, build.link.seconds)
    yield _but_for(Item(f"link for {build.arch}", took, tuple(_link(build))), _link(first), build, first)
    if build.timeline:
        yield Item(f"time of the build for {build.arch}", "", tuple(_totals(build)))
    result = Item(f"result for {build.arch}", formatting.code(build.result), tuple(_result(build)))
    yield _but_for(result, _result(first), build, first)


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


def _call(number: int, call: CallReport, seen: dict[CodeReport, int]) -> Item:
    asked = "" if call.seconds is None else f" in {formatting.time(call.seconds)}"
    asked += ", stored earlier under its link key" if call.stored else ""
    returned = tuple(
        _code(code) if seen.setdefault(code, number) == number else Item(code.name, f"same as for call {seen[code]}")
        for code in call.returned
    )
    of = [Item("object", whole)] if (whole := whole_name(call)) else []
    place = *of, Item("at", f"{shown_file(call.filename)}:{call.line}"), Item("by way of", formatting.chain(call.chain))
    became = [] if call.inlined is None else [Item("inlined", inlining(call))]
    found = Item(f"returned{asked}", "" if returned else "nothing to link", returned)
    return Item(f"{number}. {full_name(call)}", f"({', '.join(call.argtypes)})", (*place, found, *became))


def inlining(call: CallReport) -> str:
    """Return whether a call was inlined, and if not, what is called; empty where that is not known."""
    if call.inlined is None:
        return ""
    return "yes" if call.inlined else f"no, {formatting.listed(call.called) or 'it'} {_is(call.called)} called"


def _is(names: Sequence[str]) -> str:
    return "are" if len(names) > 1 else "is"


def _inlined(calls: Sequence[CallReport]) -> str:
    """Return how many of several calls were inlined; empty where that is not known."""
    number = formatting.inlined(calls) if len(calls) > 1 else None
    return "" if number is None else f"{number} inlined"


def boxes(build: BuildReport) -> list[tuple[str, str]]:
    """Return what the page shows first of a build: pairs of a label and a value."""
    link, result = build.link, build.result
    found = [(result.kind, formatting.size(result.size)), *resources(result)]
    found.append(("occupancy", formatting.occupancy_range(result.occupancy)))
    found.append(("inlined", formatting.inlined(build.calls) or ""))
    return [pair for pair in (*found, ("link", formatting.origin(link.origin, link.seconds))) if pair[1]]


def _asked(call: CallReport) -> tuple[object, ...]:
    """Return what a call is on all architectures for which the same is called and returned."""
    returned = tuple((code.kind, code.name, code.source or code.sha256) for code in call.returned)
    return call.name, call.argtypes, call.chain, returned


def _inlined_call(number: int, call: CallReport) -> Item:
    became = (Item("inlined", inlining(call) or "not known"),)
    return Item(f"{number}. {full_name(call)}", f"({', '.join(call.argtypes)})", became)


def _grouped(calls: Iterable[CallReport]) -> tuple[Item, ...]:
    """Return the calls of a large report, of which HTML and JSON have the rest: those of a function that became the
    same are one item."""
    groups: dict[tuple[str, str, str], list[CallReport]] = {}
    for call in calls:
        arguments = f"({', '.join(call.argtypes)})"
        returned = ", ".join(formatting.file(code.name) for code in call.returned) or "nothing to link"
        found = "" if returned == f"{call.name}{arguments}" else f": {returned}"
        left = f": {formatting.listed(call.called)}" if call.called else ""
        became = {True: "", False: f", not inlined{left}", None: ""}[call.inlined]
        groups.setdefault((full_name(call), arguments, f"{found}{became}"), []).append(call)
    found_groups = []
    for (name, arguments, rest), some in groups.items():
        times = f" \N{MULTIPLICATION SIGN}{len(some)}" if len(some) > 1 else ""
        found_groups.append(Item(name, f"{arguments}{times} at {formatting.places(some)}{rest}"))
    return tuple(found_groups)


def full_name(call: CallReport) -> str:
    """Return the name of a call's object, with all its arguments where there is room for them."""
    return call.object if "…" in call.name and len(call.object) <= _ROOM else call.name


def whole_name(call: CallReport) -> str:
    """Return the repr of a call's object where `full_name` leaves a part of it out; else an empty text, as for an item
    of a library that is given as a long text, of which the repr has the beginning."""
    of_text = item_name(call.object) is not None and file_of_item(call.object) is None
    is_cut = of_text and len(call.object) > _LONGEST_OF_TEXT
    tells_all = full_name(call) == call.object or call.object.startswith("<") or is_cut
    return "" if tells_all else formatting.shortened(call.object, _LONGEST_OBJECT)


def _code(code: CodeReport) -> Item:
    below = [Item("compiled with", given)] if (given := formatting.options(code.options)) else []
    if (done := code.compiled) is not None:
        together = f" (with others{formatting.unit(code.unit)})" if code.unit else ""
        took = formatting.origin(done.origin, done.seconds)
        below.append(Item("compiled to", f"{formatting.code(done)}: {took}{together}"))
    if code.defines is None and code.undefined is None:
        below.append(Item("symbols", _symbols(None)))
    else:
        below.append(Item("defines", _symbols(code.defines)))
        if code.unit is None and code.undefined != ():
            below.append(Item("undefined", _symbols(code.undefined)))
    return Item(code.name, f"{code.kind}, {formatting.size(code.size)}, {formatting.digest(code)}", tuple(below))


def _symbols(names: tuple[str, ...] | None) -> str:
    if names is None:
        return "not visible in this format"
    return ", ".join(map(readable, names)) or "nothing that is referenced"


def _link(build: BuildReport) -> Iterator[Item]:
    link = build.link
    calls = {call.site: f"call {number}" for number, call in enumerate(build.calls, 1)}
    yield Item("with LTO" if link.lto else "without LTO", link.why)
    if link.inputs:
        named = zip(link.inputs, formatting.titles(link.inputs, build.calls), strict=True)
        inputs = [(code, _input(number, code, title, calls)) for number, (code, title) in enumerate(named, 1)]
        shown = [item for code, item in inputs if len(inputs) < MANY or not calls.keys() & {*code.brought_by}]
        returned = len(inputs) - len(shown)
        text = f"{returned} that the calls returned, and" if returned else "in this order"
        yield Item("inputs", f"{len(inputs)}{': ' if returned else ', '}{text}", tuple(shown))
    if given := formatting.options(build.options):
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


def resources(result: ResultReport) -> list[tuple[str, str]]:
    """Return what the result needs of the GPU: pairs of a label and an amount."""
    size, stores, loads = formatting.size, result.spill_stores, result.spill_loads
    found = [] if result.registers is None else [("registers", f"{result.registers} per thread")]
    if result.shared is not None:
        found.append(("static shared memory", f"{size(result.shared)} per block"))
    if (stack := formatting.stack(result)) is not None:
        found.append(("stack", stack if result.stack is None else f"{stack} per thread"))
    if stores is not None and loads is not None:
        spills = f"{size(stores)} stored, {size(loads)} loaded" if stores or loads else "none"
        found.append(("register spills", spills))
    return found
