# SPDX-License-Identifier: BSD-2-Clause
"""The places of a call's arguments: numbers to which C++ refers are elements of arrays, or variables, each in an array
of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..frontend_api.front_end import Vocabulary
from .calls import ELEMENT
from .functions import CxxFunction

# The name of a temporary value: "$20binary_subscr.4". In an inlined function Numba puts the function's name before it,
# and makes it a name in Python: "closure__locals__h_v2__v20binary_subscr_4".
_TEMPORARY = re.compile(r"\$|.*__v(?:const)?\d\w*_\d+(?:\.\d+)*\Z")


@dataclass
class PlacedCall:
    """The call in a *statement* of a *block*, whose variables have the types *found*."""

    state: Any
    vocabulary: Vocabulary
    found: Mapping[str, Any]
    block: Any
    statement: Any
    before: list[Any] = field(default_factory=list)  # statements before the call, and after it
    after: list[Any] = field(default_factory=list)
    slots: dict[str, Any] = field(default_factory=dict)  # the arrays of variables, by the names of these

    def pass_places(self, callee: CxxFunction, referred: Sequence[int], written: Sequence[int]) -> bool:
        """Let the statement call *callee* with the places of the arguments at the positions *referred*. Return whether
        that is so: arguments that are *written* must have one."""
        call, ir = self.statement.value, self.vocabulary.ir
        origins = {number: self._find_origin(call.args[number], number in written) for number in referred}
        temporaries = tuple(number for number, origin in origins.items() if origin is None)
        if {*written} & {*temporaries}:
            return False
        constants = tuple(
            number
            for number, origin in origins.items()
            if number not in written and isinstance(origin, ir.Var) and self._is_constant(origin)
        )
        args, ways = [*call.args], [*callee._pattern.passing]
        ways += [None] * (len(args) - len(ways))
        for number in {*referred} - {*temporaries, *constants}:
            args[number], ways[number] = self._place(origins[number], call.args[number]), ELEMENT
        changed = callee._change(passing=tuple(ways), temporaries=temporaries, constants=constants)
        called = self._assign(self.before, ir.Global(changed.__name__, changed, self._loc))
        definitions = self.state.func_ir._definitions[self.statement.target.name]
        self.statement.value = ir.Expr.call(called, args, (), self._loc)
        definitions[definitions.index(call)] = self.statement.value
        at = self.block.body.index(self.statement)
        self.block.body[at : at + 1] = [*self.before, self.statement, *self.after]
        return True

    @property
    def _loc(self) -> Any:
        return self.statement.loc

    def _find_origin(self, arg: Any, is_written: bool) -> Any:
        """Return what has a place: a variable, or the expression of an element; None for a temporary value."""
        while True:
            if not _TEMPORARY.match(arg.name):
                return arg
            definitions = self.state.func_ir._definitions[arg.name]
            if len(definitions) != 1:
                return None
            if not isinstance(definitions[0], self.vocabulary.ir.Var):
                break
            arg = definitions[0]
        element = definitions[0]
        if not isinstance(element, self.vocabulary.ir.Expr) or element.op not in ("getitem", "static_getitem"):
            return None
        words, container = self.vocabulary.types, self.found.get(element.value.name)
        if isinstance(container, words.Array):
            return element if container.mutable or not is_written else None
        return element if isinstance(container, (words.CPointer, words.Record)) else None

    def _is_constant(self, variable: Any) -> bool:
        return isinstance(self.found.get(variable.name), self.vocabulary.types.Literal)

    def _place(self, origin: Any, arg: Any) -> Any:
        """Return a variable with the array whose first element is the argument."""
        ir = self.vocabulary.ir
        if not isinstance(origin, ir.Var):
            if isinstance(self.found[origin.value.name], self.vocabulary.types.Array):
                return self._view(origin)
            slot = self._make_slot(arg)
            value = self._assign(self.after, ir.Expr.getitem(slot, self._zero, self._loc))
            self.after.append(ir.SetItem(origin.value, self._index_of(origin), value, self._loc))
            return slot
        if origin.name not in self.slots:
            self.slots[origin.name] = slot = self._make_slot(arg)
            target = ir.Var(arg.scope, origin.name, self._loc)
            self._assign(self.after, ir.Expr.getitem(slot, self._zero, self._loc), target)
        return self.slots[origin.name]

    def _make_slot(self, arg: Any) -> Any:
        """Return an array of one element, which has the value of *arg*."""
        ir = self.vocabulary.ir
        of_arg = self.vocabulary.types.unliteral(self.found[arg.name])
        module = self._assign(self.before, ir.Global("cuda", self.vocabulary.find_module(), self._loc))
        local = self._assign(self.before, ir.Expr.getattr(module, "local", self._loc))
        make = self._assign(self.before, ir.Expr.getattr(local, "array", self._loc))
        given = [ir.Const(1, self._loc), ir.Global(str(of_arg), of_arg, self._loc)]
        args = [self._assign(self.before, each) for each in given]
        slot = self._assign(self.before, ir.Expr.call(make, args, (), self._loc))
        self.before.append(ir.SetItem(slot, self._zero, arg, self._loc))
        return slot

    @property
    def _zero(self) -> Any:
        if "" not in self.slots:
            self.slots[""] = self._assign(self.before, self.vocabulary.ir.Const(0, self._loc))
        return self.slots[""]

    def _index_of(self, element: Any) -> Any:
        return element.index if element.op == "getitem" else element.index_var

    def _view(self, element: Any) -> Any:
        """Return a variable with the array from an *element* on, along the last axis."""
        ir, index = self.vocabulary.ir, self._index_of(element)
        statements: list[Any] = []
        *others, last = self._list_indices(index, statements)
        if last is None:
            return element.value
        function = self._assign(statements, ir.Global("slice", slice, self._loc))
        end = self._assign(statements, ir.Const(None, self._loc))
        part = self._assign(statements, ir.Expr.call(function, [last, end], (), self._loc))
        if others:
            part = self._assign(statements, ir.Expr.build_tuple([*others, part], self._loc))
        view = self._assign(statements, ir.Expr.getitem(element.value, part, self._loc))
        # Where the element is read: later its index may have changed.
        block, read = next(
            (block, statement)
            for block in self.state.func_ir.blocks.values()
            for statement in block.find_insts(ir.Assign)
            if statement.value is element
        )
        at = block.body.index(read)
        block.body[at:at] = statements
        return view

    def _list_indices(self, index: Any, statements: list[Any]) -> Iterator[Any]:
        """Yield variables with the indices of an element; None for that of an array without axes."""
        of_index = self.found[index.name]
        if not isinstance(of_index, self.vocabulary.types.BaseTuple):
            yield None if of_index == self.vocabulary.types.ellipsis else index
            return
        ir = self.vocabulary.ir
        if not len(of_index):
            yield None
        for number in range(len(of_index)):
            position = self._assign(statements, ir.Const(number, self._loc))
            yield self._assign(statements, ir.Expr.static_getitem(index, number, position, self._loc))

    def _assign(self, statements: list[Any], value: Any, target: Any = None) -> Any:
        """Return a new variable, or the *target*, to which *statements* assign this value."""
        target = target or self.block.scope.redefine("$of_cxx", self._loc)
        self.state.func_ir._definitions[target.name].append(value)
        statements.append(self.vocabulary.ir.Assign(value, target, self._loc))
        return target
