# SPDX-License-Identifier: BSD-2-Clause
"""Totals of a report by the class of the objects that are called: what a large kernel consists of."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from numba.cuda.cudadrv.external_code.formats.mangled_names import readable

from . import formatting
from .records import BuildReport, CallReport, CodeReport

MANY = 24  # calls, from which on a report begins with its totals


@dataclass(frozen=True)
class ClassTotal:
    """All calls of one class's objects: how many they are, and how many of them are known to be left in the result; the
    number of the inputs that they returned; the size of these as they are linked, and of the functions that they define
    in the result, in bytes; and how long these inputs took to compile, in seconds."""

    name: str
    calls: int
    called: int | None
    inputs: int
    linked: int
    machine_code: int
    seconds: float


def class_totals(build: BuildReport) -> list[ClassTotal]:
    """Return the totals, the class with most machine code first; of equal ones, the one that took longer to compile."""
    calls: defaultdict[str, list[CallReport]] = defaultdict(list)
    for call in build.calls:
        calls[call.type_name].append(call)
    sizes = {function.name: function.size for function in build.result.functions}
    found = [_total(name, members, sizes) for name, members in calls.items()]
    return sorted(found, key=lambda total: (-total.machine_code, -total.seconds))


def _total(name: str, calls: list[CallReport], sizes: dict[str, int]) -> ClassTotal:
    inputs: dict[tuple[str, str], CodeReport] = {
        (code.name, code.sha256): code for call in calls for code in call.returned
    }
    units = {code.unit or key: code.compiled for key, code in inputs.items() if code.compiled}
    as_they_are = sum(code.size for code in inputs.values() if not code.compiled)
    defined = {readable(symbol) for code in inputs.values() for symbol in code.defines or ()}
    return ClassTotal(
        name,
        len(calls),
        None if all(call.inlined is None for call in calls) else sum(call.inlined is False for call in calls),
        len(inputs),
        as_they_are + sum(made.size for made in units.values()),
        sum(sizes.get(symbol, 0) for symbol in defined),
        sum(made.seconds for made in units.values()),
    )


def to_text(total: ClassTotal) -> str:
    inlined = "" if total.called is None else f", {total.called} not inlined" if total.called else ", all inlined"
    left = f"{formatting.size(total.machine_code)} of machine code, " if total.machine_code else ""
    inputs = f"{formatting.count(total.inputs, 'input')} of {formatting.size(total.linked)}"
    return (
        f"{formatting.count(total.calls, 'call')}{inlined}; {left}{inputs}, "
        f"compiled in {formatting.time(total.seconds)}"
    )
