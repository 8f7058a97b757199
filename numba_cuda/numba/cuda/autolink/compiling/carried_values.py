# SPDX-License-Identifier: BSD-2-Clause
"""Variables whose values one round of a loop carries to the next, or out of the loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from numba.cuda.core import ir
from numba.cuda.core.analysis import compute_use_defs

from .tuple_loops import TupleLoop, UnknownFormError, assigned_names


@dataclass(frozen=True)
class Carried:
    """The variable *name*, which the body of a loop assigns to. *before* says whether it always has a value before the
    first round; if not, it has none there, and always has one after each round."""

    name: str
    before: bool


class CarriedValues:
    """The data flow of a function's variables before any loop is unrolled."""

    def __init__(self, func_ir: ir.FunctionIR):
        blocks = func_ir.blocks
        self._assigned = assigned_names(blocks)
        self._next = {label: set(block.terminator.get_targets()) for label, block in blocks.items()}
        self._used = compute_use_defs(blocks).usemap
        self._live = self._live_at_start()
        self._certain = self._assigned_at_end(min(blocks))

    def of(self, loop: TupleLoop) -> Iterator[Carried]:
        """Yield the variables that *loop* carries, in the order of their names. Raises `UnknownFormError` if one of
        them has a value on some ways only, which Numba then tells the user."""
        inside = {*loop.body, loop.header}
        targets = set().union(*(self._next[label] for label in inside)) - inside
        live = self._live[loop.header].union(*(self._live[label] for label in targets))
        assigned = set().union(*(self._assigned[label] for label in loop.body))
        again = [label for label in loop.body if loop.header in self._next[label]]
        for name in sorted(assigned & live):
            before = all(name in self._certain[label] for label in loop.entries)
            if not before:
                outside = any(name in names for label, names in self._assigned.items() if label not in inside)
                if outside or not all(name in self._certain[label] for label in again):
                    raise UnknownFormError(f"{name} has a value on some ways only")
            yield Carried(name, before)

    def _live_at_start(self) -> dict[int, set[str]]:
        """Return, by label, the variables whose values a block or one that follows it reads."""
        live = {label: set(used) for label, used in self._used.items()}
        changed = True
        while changed:
            changed = False
            for label in reversed(live):
                after = set().union(*(live[each] for each in self._next[label]))
                if not (new := after - self._assigned[label]) <= live[label]:
                    live[label] |= new
                    changed = True
        return live

    def _assigned_at_end(self, start: int) -> dict[int, set[str]]:
        """Return, by label, the variables that have a value at the end of a block on every way to it."""
        everything = set().union(*self._assigned.values())
        before: dict[int, list[int]] = {label: [] for label in self._next}
        for label, following in self._next.items():
            for each in following:
                before[each].append(label)
        certain = {label: set(everything) for label in self._next}
        changed = True
        while changed:
            changed = False
            for label, names in self._assigned.items():
                known = set.intersection(*(certain[each] for each in before[label])) if before[label] else set()
                if label == start:
                    known = set()
                if (new := known | names) != certain[label]:
                    certain[label] = new
                    changed = True
        return certain
