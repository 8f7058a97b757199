# SPDX-License-Identifier: BSD-2-Clause
"""What changed between two reports of a kernel."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator

from . import formatting
from .records import BuildReport, CallReport, KernelReport, ResultReport


@dataclasses.dataclass(frozen=True)
class Change:
    """One difference: for which architecture, of what, before and now; ``None`` for what is only in one of the
    reports."""

    arch: str
    what: str
    before: str | None
    now: str | None

    def __str__(self) -> str:
        before, now = ("nothing" if each is None else each for each in (self.before, self.now))
        return f"{self.arch}: {self.what}: {before} → {now}"


def changes(before: KernelReport, now: KernelReport) -> list[Change]:
    """Return what differs, in the order of a report. Times are not compared."""
    found = [Change("all", "signature", before.signature, now.signature)] if before.signature != now.signature else []
    versions = dict(before.versions), dict(now.versions)
    for name in dict.fromkeys((*versions[0], *versions[1])):
        found += _differing("all", name, versions[0].get(name), versions[1].get(name))
    builds = {build.arch: build for build in before.builds}, {build.arch: build for build in now.builds}
    for arch in dict.fromkeys((*builds[0], *builds[1])):
        old, new = builds[0].get(arch), builds[1].get(arch)
        if old is None or new is None:
            results = (None if each is None else formatting.code(each.result) for each in (old, new))
            found.append(Change(arch, "build", *results))
        else:
            found += _of_build(old, new)
    return found


def to_text(before: KernelReport, now: KernelReport) -> str:
    """Return what differs as lines, or that nothing does."""
    return "\n".join(map(str, changes(before, now))) or "nothing changed"


def _of_build(before: BuildReport, now: BuildReport) -> Iterator[Change]:
    arch = now.arch
    numbers = (("registers", ""), ("shared", " bytes"), ("stack", " bytes"), ("spill_stores", " bytes"))
    for name, unit in (*numbers, ("spill_loads", " bytes")):
        yield from _differing(
            arch, name.replace("_", " "), *(_number(each.result, name, unit) for each in (before, now))
        )
    yield from _differing(arch, before.result.kind, formatting.code(before.result), formatting.code(now.result))
    yield from _differing(arch, "link", *(f"with{'' if each.link.lto else 'out'} LTO" for each in (before, now)))
    options = (" ".join(each.link.options or ()) for each in (before, now))
    yield from _differing(arch, "options", *options)
    functions = [{each.name: each.size for each in build.result.functions} for build in (before, now)]
    for name in dict.fromkeys((*functions[0], *functions[1])):
        sizes = (None if name not in each else formatting.size(each[name]) for each in functions)
        yield from _differing(arch, f"function {name}", *sizes)
    calls = [_by_name(build.calls) for build in (before, now)]
    for name in dict.fromkeys((*calls[0], *calls[1])):
        old, new = (each.get(name) for each in calls)
        yield from _differing(arch, f"call {name}", _call(old), _call(new))


def _by_name(calls: tuple[CallReport, ...]) -> dict[str, CallReport]:
    """Return *calls* by what is called, with a number for repeated ones: lines move, and reprs may have addresses."""
    found: dict[str, CallReport] = {}
    numbers: Counter[str] = Counter()
    for call in calls:
        name = f"{call.name}({', '.join(call.argtypes)})"
        numbers[name] += 1
        found[f"{name} #{numbers[name]}" if numbers[name] > 1 else name] = call
    return found


def _call(call: CallReport | None) -> str | None:
    if call is None:
        return None
    how = {True: "inlined; ", False: "called; ", None: ""}[call.inlined]
    return how + (", ".join(f"{code.name} {code.sha256[:12]}" for code in call.returned) or "nothing to link")


def _number(result: ResultReport, name: str, unit: str) -> str | None:
    value = getattr(result, name)
    return None if value is None else f"{value}{unit}"


def _differing(arch: str, what: str, before: str | None, now: str | None) -> Iterator[Change]:
    if before != now:
        yield Change(arch, what, before, now)
