# SPDX-License-Identifier: BSD-2-Clause
"""Loops over a constant tuple of called objects, ``for f in literal_unroll(functions)``, in a function's IR.

Numba compiles such a loop to a loop over the index, with a branch for each element in its body, and infers all types
several times. `loop_copies` replaces it by copies of its body, one after the other, if each ``literal_unroll`` of the
function has a form that is known here; otherwise Numba gets the function as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from numba.cuda import literal_unroll
from numba.cuda.core import ir
from numba.cuda.core.ir_utils import compute_cfg_from_blocks, get_definition, guard

from ..protocol.callee import find_callee

# Statements of a body that can be copied.
_COPIED = (ir.Assign, ir.SetItem, ir.StaticSetItem, ir.Jump, ir.Branch, ir.Return, ir.StaticRaise, ir.Print)
_COPIED_VALUES = (ir.Expr, ir.Var, ir.Const, ir.Global, ir.FreeVar)


class UnknownFormError(Exception):
    """A loop over a tuple has a form that is left to Numba."""


@dataclass(frozen=True)
class TupleLoop:
    """A loop over the tuple *elements*, which is the value of the variable *source*.

    The block labelled *header* gets the next element, assigns it to the variables *element_names*, and goes on in the
    block *first*, or in *after* when there is none left. The blocks *body* go back to the header; the blocks *entries*
    enter it. The variables *machinery* have no other use than iterating.
    """

    header: int
    first: int
    after: int
    body: frozenset[int]
    entries: frozenset[int]
    source: ir.Var
    elements: tuple[Any, ...]
    element_names: frozenset[str]
    machinery: frozenset[str]


def used_names(statement: Any) -> set[str]:
    """Return the names of the variables that *statement* reads."""
    if isinstance(statement, ir.Assign):
        value = statement.value
        if isinstance(value, ir.Var):
            return {value.name}
        return {var.name for var in value.list_vars()} if isinstance(value, ir.Inst) else set()
    return {var.name for var in statement.list_vars()}


def tuple_loops(func_ir: ir.FunctionIR) -> list[TupleLoop]:
    """Return all loops over ``literal_unroll`` in *func_ir*; an empty list if there is none.

    Raises `UnknownFormError` if one of them is not a loop over a constant tuple of called objects, is inside another
    one, or has a form that is not known.
    """
    calls = set(_unroll_calls(func_ir))
    if not calls:
        return []
    loops = compute_cfg_from_blocks(func_ir.blocks).loops().values()
    found = dict(pair for loop in loops for pair in _Recognizer(func_ir, loop).found(calls))
    if set(found) != calls:
        raise UnknownFormError("literal_unroll is used otherwise than in the head of a loop")
    inside = [one for one in found.values() for other in found.values() if one.header in other.body]
    if inside:
        raise UnknownFormError("a loop over a tuple is inside another one")
    return sorted(found.values(), key=lambda loop: loop.header)


def _unroll_calls(func_ir: ir.FunctionIR) -> Iterator[ir.Expr]:
    """Yield all calls of ``literal_unroll``; raise `UnknownFormError` if it is used in another way."""
    names = set()
    for block in func_ir.blocks.values():
        for assign in block.find_insts(ir.Assign):
            if isinstance(assign.value, (ir.Global, ir.FreeVar)) and assign.value.value is literal_unroll:
                names.add(assign.target.name)
    for block in func_ir.blocks.values() if names else ():
        for statement in block.body:
            if names & used_names(statement):
                call = statement.value if isinstance(statement, ir.Assign) else None
                if not isinstance(call, ir.Expr) or call.op != "call" or call.func.name not in names:
                    raise UnknownFormError("literal_unroll is not called where it is named")
                yield call


class _Recognizer:
    """Finds out whether a *loop* of a function's control flow runs over a tuple."""

    def __init__(self, func_ir: ir.FunctionIR, loop: Any):
        self._func_ir = func_ir
        self._loop = loop
        self._header = func_ir.blocks[loop.header]

    def found(self, calls: set[ir.Expr]) -> Iterator[tuple[ir.Expr, TupleLoop]]:
        """Yield the call among *calls* that the loop runs over, with the loop; or nothing if it runs over none."""
        iternexts = list(self._header.find_exprs("iternext"))
        chain: set[str] = set()  # the variables from the call to the iterator
        for iternext in iternexts:
            getiter = self._definition(iternext.value, chain)
            call = self._definition(getiter.value, chain) if _is(getiter, "getiter") else None
            if _is(call, "call") and call in calls:
                if len(iternexts) > 1:
                    raise UnknownFormError("the head of a loop gets several elements")
                yield call, self._recognized(call, chain)

    def _recognized(self, call: ir.Expr, chain: set[str]) -> TupleLoop:
        if len(call.args) != 1 or call.kws or call.vararg:
            raise UnknownFormError("literal_unroll has other arguments than a tuple")
        (source,) = call.args
        definition = guard(get_definition, self._func_ir, source)
        elements = definition.value if isinstance(definition, (ir.Global, ir.FreeVar)) else None
        if type(elements) is not tuple or not elements or not all(find_callee(each) for each in elements):
            raise UnknownFormError("the loop does not run over a constant tuple of called objects")
        if len(elements) > 2 * len(set(map(id, elements))):
            raise UnknownFormError("objects are so often in the tuple that Numba's loop is smaller")
        element_names, in_header = self._header_names()
        branch, body = self._header.body[-1], frozenset(self._loop.body - {self._loop.header})
        if branch.truebr not in body or branch.falsebr in self._loop.body:
            raise UnknownFormError("the loop is left where there is an element")
        self._check_uses(in_header, chain, element_names, body)
        self._check_copies(body)
        loop = self._loop
        entries = frozenset(loop.entries)
        machinery = frozenset(chain | {call.func.name})
        return TupleLoop(
            loop.header, branch.truebr, branch.falsebr, body, entries, source, elements, element_names, machinery
        )

    def _definition(self, var: Any, chain: set[str]) -> Any:
        """Return the one definition of *var*, and add the variables on the way to *chain*."""
        definition = var
        while isinstance(definition, ir.Var):
            chain.add(definition.name)
            definitions = self._func_ir._definitions.get(definition.name, ())
            if len(definitions) != 1:
                return None
            (definition,) = definitions
        return definition

    def _header_names(self) -> tuple[frozenset[str], set[str]]:
        """Return the variables that the header assigns the element to, and all that it assigns to."""
        kinds: dict[str, str] = {}  # what the variables of the header are
        *assigns, branch = self._header.body
        for assign in assigns:
            value = getattr(assign, "value", None)
            kind = None
            if isinstance(assign, ir.Assign) and isinstance(value, ir.Expr):
                takes = {"iternext": None, "pair_first": "iternext", "pair_second": "iternext"}
                if value.op in takes and takes[value.op] in (None, kinds.get(value.value.name)):
                    kind = value.op
            elif isinstance(assign, ir.Assign) and isinstance(value, ir.Var):
                kind = kinds.get(value.name)
            if kind is None or assign.target.name in kinds:
                raise UnknownFormError("the head of the loop does more than to get an element")
            kinds[assign.target.name] = kind
        if not isinstance(branch, ir.Branch) or kinds.get(branch.cond.name) != "pair_second":
            raise UnknownFormError("the head of the loop does not end with the question for an element")
        return frozenset(name for name, kind in kinds.items() if kind == "pair_first"), set(kinds)

    def _check_uses(self, in_header: set[str], chain: set[str], elements: frozenset[str], body: frozenset[int]) -> None:
        """Raise `UnknownFormError` if what iterates is used for something else."""
        counts: dict[str, int] = dict.fromkeys(chain, 0)
        for label, block in self._func_ir.blocks.items():
            for statement in block.body:
                used = used_names(statement)
                for name in used & chain:
                    counts[name] += 1
                if label != self._loop.header and used & (in_header - elements):
                    raise UnknownFormError("the iterator is used in the loop")
                if label != self._loop.header and label not in body and used & elements:
                    raise UnknownFormError("the element is used after the loop")
                assigned = statement.target.name if isinstance(statement, ir.Assign) else None
                if label != self._loop.header and assigned in in_header:
                    raise UnknownFormError("the element is assigned to in the loop")
        if any(count != 1 for count in counts.values()):
            raise UnknownFormError("the iterator is used outside the loop")

    def _check_copies(self, body: frozenset[int]) -> None:
        for label in body:
            for statement in self._func_ir.blocks[label].body:
                copied = isinstance(statement, _COPIED)
                if isinstance(statement, ir.Assign):
                    copied = isinstance(statement.value, _COPIED_VALUES)
                if not copied:
                    raise UnknownFormError(f"a statement in the loop is not known: {statement}")


def _is(value: Any, op: str) -> bool:
    return isinstance(value, ir.Expr) and value.op == op


def assigned_names(blocks: Mapping[int, ir.Block]) -> dict[int, set[str]]:
    """Return, by label, the names of the variables that each of *blocks* assigns to."""
    return {label: {each.target.name for each in block.find_insts(ir.Assign)} for label, block in blocks.items()}
