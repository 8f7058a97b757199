# SPDX-License-Identifier: BSD-2-Clause
"""An outline of what a report says, in order: its content as plain text, and in colour for terminals."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numba_cuda_autolink.mangled_names import readable
from numba_cuda_autolink.printable_texts import number_of
from numba_cuda_autolink.source_locations import shown_file

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
_MOST_ALIKE = 4  # options of one name
MANY = 24  # calls, from which on each has one line
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
    below = (item for build in report.builds for item in _build(build))
    made_with = Item("made with", ", ".join(map(" ".join, report.versions)))
    return Item(f"{formatting.function(report.kernel)}{report.signature}", place, (*below, made_with))


def _build(build: BuildReport) -> Iterator[Item]:
    if build.restored:
        yield Item(build.arch, formatting.RESTORED)
    seen: dict[CodeReport, int] = {}
    many = len(build.calls) >= MANY
    calls = tuple(
        _call_in_one_line(number, call) if many else _call(number, call, seen)
        for number, call in enumerate(build.calls, 1)
    )
    heading = "; ".join(each for each in (_inlined(build.calls), "more in HTML, JSON" if many else "") if each)
    yield Item(f"{number_of(len(calls), 'call')} of external code for {build.arch}", heading, calls)
    took = formatting.origin(build.link.origin, build.link.seconds)
    yield Item(f"link for {build.arch}", took, tuple(_link(build)))
    if build.timeline:
        yield Item(f"time of the build for {build.arch}", "", tuple(_totals(build)))
    items = (Item(label, value) for label, value in (*resources(build.result), *_room(build)))
    result = formatting.code(build.result)
    yield Item(f"result for {build.arch}", result, (*items, *_entry(build.entry_name)))


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


def _call_in_one_line(number: int, call: CallReport) -> Item:
    """Return a call of a large report, of which HTML and JSON have the rest."""
    arguments = f"({', '.join(call.argtypes)})"
    returned = ", ".join(formatting.file(code.name) for code in call.returned) or "nothing to link"
    found = "" if returned == f"{call.name}{arguments}" else f": {returned}"
    became = {True: "", False: ", not inlined", None: ""}[call.inlined]
    at = f"{formatting.file(call.filename)}:{call.line}"
    return Item(f"{number}. {full_name(call)}", f"{arguments} at {at}{found}{became}")


def full_name(call: CallReport) -> str:
    """Return the name of a call's object, with all its arguments where there is room for them."""
    return call.object if "…" in call.name and len(call.object) <= _ROOM else call.name


def whole_name(call: CallReport) -> str:
    """Return the repr of a call's object where `full_name` leaves a part of it out; else an empty text."""
    tells_all = full_name(call) == call.object or call.object.startswith("<")
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
    by = "the kernel's own code" if code.own else f"of {formatting.listed(_call_ranges(origins), len(origins))}"
    kind = f"{code.kind} → {code.compiled.kind}" if code.compiled else code.kind
    kind += f" of {number_of(len(code.parts), 'source')}" if code.parts and not formatting.is_of_library(code) else ""
    return Item(f"{number}. {formatting.function(name)}", f"{kind}, {by}")


def _call_ranges(origins: Iterable[str]) -> list[str]:
    """Return *origins*, with ``calls 1 to 10`` for three calls or more in a row."""

    def row(origin: tuple[int, str]) -> int | str:  # the same for calls in a row
        at, name = origin
        return int(name.removeprefix("call ")) - at if name.startswith("call ") else name

    found: list[str] = []
    for _, each in itertools.groupby(enumerate(origins), row):
        names = [name for _, name in each]
        is_range = len(names) > 2
        found += [f"calls {names[0].removeprefix('call ')} to {names[-1].removeprefix('call ')}"] if is_range else names
    return found


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
