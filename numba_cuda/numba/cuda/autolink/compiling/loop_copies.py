# SPDX-License-Identifier: BSD-2-Clause
"""Loops over tuples replaced by copies of their bodies, one for each element."""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from numba.cuda.core import ir
from numba.cuda.core.ir_utils import build_definitions, replace_vars_inner, replace_vars_stmt, simplify_CFG

from .carried_values import Carried, CarriedValues
from .tuple_loops import TupleLoop, assigned_names, tuple_loops, used_names

# For each variable that a loop carries, the variables that hold its value between the rounds.
Between = tuple[tuple[str, ...], ...]


def unroll(func_ir: ir.FunctionIR) -> Between | None:
    """Unroll the loops over tuples in *func_ir*, in place, and return the variables whose types must agree for this to
    mean the same as the loops: in a loop a variable has one type in all rounds. Return None if there is no such loop.

    Raises `UnknownFormError`, and leaves *func_ir* as it was, if a loop has a form that is not known.
    """
    if not (loops := tuple_loops(func_ir)):
        return None
    values = CarriedValues(func_ir)
    planned = [(loop, tuple(values.of(loop))) for loop in loops]
    between: list[tuple[str, ...]] = []
    for loop, carried in planned:
        between += _Unrolling(func_ir.blocks, loop, carried).run()
    _drop_unused(func_ir.blocks, set().union(*(loop.machinery for loop in loops)))
    func_ir.blocks = simplify_CFG(func_ir.blocks)
    func_ir._definitions = build_definitions(func_ir.blocks)
    return tuple(between)


class _Unrolling:
    """Replaces one *loop* in *blocks*.

    Before each round, and after the last one, what is carried passes through a variable of its own, whose type can be
    read and set after the types are inferred.
    """

    def __init__(self, blocks: dict[int, ir.Block], loop: TupleLoop, carried: Iterable[Carried]):
        self._blocks = blocks
        self._loop = loop
        self._carried = carried
        self._header = blocks[loop.header]
        self._labels = itertools.count(max(blocks) + 1)
        self._between: dict[str, list[str]] = {each.name: [] for each in carried}
        self._taken = set().union(*assigned_names(blocks).values())

    def run(self) -> Iterator[tuple[str, ...]]:
        """Replace the loop; yield for each carried variable those that hold it between rounds."""
        start = next(self._labels)
        for label in self._loop.entries:
            _redirect(self._blocks[label], {self._loop.header: start})
        body = {label: self._blocks.pop(label) for label in sorted(self._loop.body)}
        del self._blocks[self._loop.header]
        if len(body) == 1 and isinstance(body[self._loop.first].terminator, ir.Jump):
            self._in_one_block(start, body[self._loop.first])
        else:
            self._in_blocks(start, body)
        yield from map(tuple, self._between.values())

    def _in_one_block(self, start: int, body: ir.Block) -> None:
        """Put all rounds into one block, where each assignment gets a variable of its own: what an assignment means is
        plain there, and Numba would take long to find it out."""
        scope, loc = self._header.scope, self._header.loc
        block = self._new_block(start)
        names: dict[str, ir.Var] = {}  # the variables that hold the values of those of the body
        for each in self._carried:
            if each.before:
                names[each.name] = held = self._fresh(each.name)
                block.append(ir.Assign(ir.Var(scope, each.name, loc), held, loc))
                self._between[each.name].append(held.name)
        for number in range(len(self._loop.elements)):
            block.append(self._element(number, names))
            for original in body.body[:-1]:
                statement = _copied(original, names, keep_target=True)
                if isinstance(statement, ir.Assign):
                    name = statement.target.name
                    if isinstance(statement.value, ir.Var) and name not in self._between:
                        names[name] = statement.value
                        continue
                    names[name] = statement.target = self._fresh(name)
                block.append(statement)
            for each in self._carried:
                self._between[each.name].append(names[each.name].name)
        for each in self._carried:
            block.append(ir.Assign(names[each.name], ir.Var(scope, each.name, loc), loc))
        block.append(ir.Jump(self._loop.after, loc))

    def _in_blocks(self, start: int, body: Mapping[int, ir.Block]) -> None:
        """Put each round into blocks of its own."""
        assigned = Counter(each.target.name for block in body.values() for each in block.find_insts(ir.Assign))
        # Numba takes long to tell apart what several assignments to one variable mean. It must do so for variables that
        # a round assigns to in several places.
        own = sorted(name for name, number in assigned.items() if number == 1 and name not in self._between)
        for number in range(len(self._loop.elements)):
            block = self._new_block(start)
            block.body.extend(self._passing(is_first=number == 0))
            start, labels = next(self._labels), {label: next(self._labels) for label in body}
            names = {name: self._fresh(name) for name in own}
            block.append(self._element(number, names))
            block.append(ir.Jump(labels[self._loop.first], block.loc))
            for label, original in body.items():
                self._blocks[labels[label]] = copied = ir.Block(original.scope, original.loc)
                copied.body.extend(_copied(each, names) for each in original.body)
                _redirect(copied, {**labels, self._loop.header: start})
        block = self._new_block(start)
        block.body.extend(self._passing(is_first=False))
        block.append(ir.Jump(self._loop.after, block.loc))

    def _new_block(self, label: int) -> ir.Block:
        block = self._blocks[label] = ir.Block(self._header.scope, self._header.loc)
        return block

    def _fresh(self, name: str) -> ir.Var:
        while (variable := self._header.scope.redefine(name, self._header.loc)).name in self._taken:
            pass
        return variable

    def _passing(self, is_first: bool) -> Iterator[ir.Assign]:
        """Yield what is done with carried variables between two rounds."""
        scope, loc = self._header.scope, self._header.loc
        for each in self._carried:
            if each.before or not is_first:
                held, variable = self._fresh(each.name), ir.Var(scope, each.name, loc)
                self._between[each.name].append(held.name)
                yield ir.Assign(variable, held, loc)
                yield ir.Assign(held, variable, loc)

    def _element(self, number: int, names: dict[str, ir.Var]) -> ir.Assign:
        """Return the assignment of the element of round *number*, and add to *names* what it is called in the round."""
        loc = self._header.loc
        element = self._fresh("$element")
        names.update(dict.fromkeys(self._loop.element_names, element))
        return ir.Assign(ir.Expr.static_getitem(self._loop.source, number, None, loc), element, loc)


def _copied(statement: Any, names: Mapping[str, ir.Var], keep_target: bool = False) -> Any:
    """Return a copy of *statement* with the variables *names*; with *keep_target*, an assignment keeps its target."""
    copied = copy.copy(statement)
    if not isinstance(copied, ir.Assign):
        replace_vars_stmt(copied, names)
        return copied
    copied.value = copy.copy(copied.value)
    if isinstance(copied.value, ir.Expr):
        copied.value._kws = dict(copied.value._kws)
    copied.value = replace_vars_inner(copied.value, names)
    if not keep_target:
        copied.target = replace_vars_inner(copied.target, names)
    return copied


def _redirect(block: ir.Block, labels: Mapping[int, int]) -> None:
    """Let *block* go on in other blocks."""
    end = block.body[-1]
    if isinstance(end, ir.Jump):
        block.body[-1] = ir.Jump(labels.get(end.target, end.target), end.loc)
    elif isinstance(end, ir.Branch):
        yes, no = (labels.get(label, label) for label in (end.truebr, end.falsebr))
        block.body[-1] = ir.Branch(end.cond, yes, no, end.loc)


def _drop_unused(blocks: Mapping[int, ir.Block], names: set[str]) -> None:
    """Remove the assignments to those of *names* that nothing reads."""
    while True:
        used = set().union(*(used_names(statement) for block in blocks.values() for statement in block.body))
        unused = names - used
        for block in blocks.values():
            block.body = [
                each for each in block.body if not isinstance(each, ir.Assign) or each.target.name not in unused
            ]
        if not (names := names & used) or not unused:
            return
