# SPDX-License-Identifier: BSD-2-Clause
"""What a report says, in order, as an outline: the content of both its plain and its coloured text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import words
from .records import BuildReport, CallReport, CodeReport, Report, ResultReport


@dataclass(frozen=True)
class Item:
    """A line: a label that may be set off, the text after it, and what belongs under it."""

    label: str
    text: str = ""
    below: tuple[Item, ...] = ()


def outline(report: Report) -> Item:
    """The whole report."""
    below: list[Item] = []
    for build in report.builds:
        below += _build(build)
    versions = ", ".join(f"{name} {version}" for name, version in report.versions)
    place = f"{report.filename}:{report.line}" if report.filename else ""
    title = f"{words.function(report.kernel)}{report.signature}"
    return Item(title, place, (*below, Item("made with", versions)))


def _build(build: BuildReport) -> Iterator[Item]:
    seen: dict[CodeReport, int] = {}
    calls = [_call(number, call, seen) for number, call in enumerate(build.calls, 1)]
    if build.restored:
        yield Item(build.arch, "out of the disk cache of cuda.jit(cache=True); what follows is how it was built then")
    yield Item(f"{words.count(len(calls), 'call')} of external code for {build.arch}", "", tuple(calls))
    yield _link(build)
    yield _result(build)


def _call(number: int, call: CallReport, seen: dict[CodeReport, int]) -> Item:
    chain = " → ".join(f"{words.function(frame.function)}:{frame.line or '?'}" for frame in call.chain)
    below = [Item("at", f"{call.filename}:{call.line}"), Item("by way of", chain)]
    asked = "" if call.seconds is None else f" in {words.time(call.seconds)}"
    if call.stored:
        asked += ", stored before under its link key"
    returned = tuple(
        _code(code) if seen.setdefault(code, number) == number else Item(code.name, f"the same as of call {seen[code]}")
        for code in call.returned
    )
    below.append(Item(f"returned{asked}", "" if returned else "nothing to link", returned))
    return Item(f"{number}. {call.name}", f"({', '.join(call.argtypes)})", tuple(below))


def _code(code: CodeReport) -> Item:
    below = []
    if code.compiled is not None:
        done = code.compiled
        what = f"{done.kind}, {words.size(done.size)}, {words.digest(done.sha256)}"
        together = f" (with others, as {code.unit})" if code.unit else ""
        below.append(Item("compiled to", f"{what}: {words.origin(done.origin, done.seconds)}{together}"))
    if code.unit is None:
        below.append(Item("defines", _symbols(code.defines)))
    if code.unit is None and code.wants != ():
        below.append(Item("wants", _symbols(code.wants)))
    return Item(code.name, f"{code.kind}, {words.size(code.size)}, {words.digest(code.sha256)}", tuple(below))


def _symbols(names: tuple[str, ...] | None) -> str:
    if names is None:
        return "(this format does not tell)"
    return ", ".join(names) or "nothing that is wanted"


def _link(build: BuildReport) -> Item:
    link = build.link
    calls = {text: number for number, call in enumerate(build.calls, 1) for text in _texts(call)}
    inputs = tuple(_input(number, code, calls) for number, code in enumerate(link.inputs, 1))
    below = [Item("with LTO" if link.lto else "without LTO", link.why)]
    if inputs:
        below.append(Item("inputs", f"{len(inputs)}, in this order", inputs))
    if link.options is not None:
        below.append(Item("options", " ".join(link.options)))
    said = words.notable(link.log)
    if said:
        below.append(Item("log", "", tuple(Item("", line) for line in said)))
    return Item(f"link for {build.arch}", words.origin(link.origin, link.seconds), tuple(below))


def _texts(call: CallReport) -> list[str]:
    return [f"{call.call} called at {call.filename}:{call.line}"]


def _input(number: int, code: CodeReport, calls: dict[str, int]) -> Item:
    who = []
    for origin in code.brought_by:
        call = calls.get(origin.rpartition(" in ")[0])
        who.append(f"call {call}" if call is not None else origin)
    by = "the kernel's own code" if code.own else " and ".join(dict.fromkeys(who))
    kind = f"{code.kind} → {code.compiled.kind}" if code.compiled else code.kind
    kind += f" of {words.count(len(code.parts), 'source')}" if code.parts else ""
    return Item(f"{number}. {words.function(code.name)}", f"{kind}, of {by}" if not code.own else f"{kind}, {by}")


def _result(build: BuildReport) -> Item:
    result = build.result
    what = f"{result.kind}, {words.size(result.size)}, {words.digest(result.sha256)}"
    below = [Item(label, value) for label, value in numbers(result)]
    return Item(f"result for {build.arch}", what, (*below, Item("entry name", build.entry_name)))


def numbers(result: ResultReport) -> list[tuple[str, str]]:
    """What the result takes of the GPU: labels and amounts."""
    found = []
    if result.registers is not None:
        found.append(("registers", f"{result.registers} per thread"))
    if result.shared is not None:
        found.append(("static shared memory", f"{words.size(result.shared)} per block"))
    if result.stack is not None:
        found.append(("stack", f"{words.size(result.stack)} per thread"))
    if result.spill_stores is not None and result.spill_loads is not None:
        if result.spill_stores or result.spill_loads:
            spills = f"{words.size(result.spill_stores)} stored, {words.size(result.spill_loads)} loaded"
        else:
            spills = "none"
        found.append(("register spills", spills))
    return found
