# SPDX-License-Identifier: BSD-2-Clause
"""Resolves calls: one run of NVRTC resolves those of one translation unit, and makes their code.

The calls that a kernel makes are compiled together, as the link of the kernel compiles them, which then finds the
program in the cache. For each kernel, what is known of a call is looked up in the cache of programs again, so that a
changed header is noticed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

from numba.cuda.cudadrv.external_code.cache.entry import CacheKey
from numba.cuda.cudadrv.external_code.cache.store import current_store
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CalledFunction
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CUDASource
from numba.cuda.cudadrv.external_code.platform.target import Target

from ..c_abi.extern import Extern, prototype
from ..compilation.context import asking, compilation, current_target
from ..frontend_api.typing_rounds import DeferredCallError, Use, note_guessed, put_off
from ..linkables.compiled_source import CompiledSource, compiled_with
from .call_text import write_call
from .calls import Call, Records
from .cxx_errors import CxxError
from .declared_names import may_refer
from .guesses import KnownResults
from .log_of_calls import find_called_kernel, is_at_fault
from .refusals import explain_refusal
from .results import WrittenArgumentError, make_extern


class Unit(NamedTuple):
    """Calls that are resolved together: those whose code a translation unit has, and *others*, whose types alone are
    asked. What these add makes no code: the unit compiles to the same bytes with and without it."""

    calls: tuple[Call, ...]
    others: tuple[Call, ...] = ()


class _Notes:
    """What is known in one compilation: the calls of the kernel so far and, by symbol, their C functions or why C++
    refuses them; the units that were looked up, with their lowered names; and, by symbol, whether calls that are
    guessed have been refused, with the errors of this compilation."""

    def __init__(self) -> None:
        self.calls: dict[str, Call] = {}
        self.externs: dict[str, Extern | CxxError] = {}
        self.compiled: dict[Unit, CompiledSource] = {}
        self.unlikely: dict[str, bool] = {}
        self.refused: dict[str, CompileError] = {}


class Resolver:
    """What is known of the calls of one library. *make_source* makes the source of a call; *records* returns the
    structs that the library knows, by their Numba types; *place_error* returns an error with its lines in Python;
    *ask_type* returns the type of an expression."""

    def __init__(
        self,
        make_source: Callable[[Call], CUDASource],
        records: Callable[[], Records],
        place_error: Callable[[CxxError], CxxError],
        ask_type: Callable[[str], str | None],
    ):
        self._make_source = make_source
        self._place_error = place_error
        self._ask_type = ask_type
        self._sources: dict[str, CUDASource] = {}
        self._records = records
        self._results = KnownResults()
        self._resolved: dict[tuple[str, Target], Unit] = {}  # with which others a call was resolved
        self._declared: dict[tuple[str, Target], tuple[Call, ...]] = {}  # with which others a call was declared

    def resolve(self, call: Call, target: Target) -> Extern:
        """Return the C function of a call. Raise `CxxError` if C++ refuses the call; within type inference,
        `DeferredCallError` if NVRTC has to be asked."""
        notes = self._notes()
        if call.symbol not in notes.externs and call.symbol in notes.refused:
            notes.externs[call.symbol] = self._explain(call, notes.refused[call.symbol], target)
        if call.symbol not in notes.externs:
            if (call.symbol, target) not in self._resolved:
                put_off(self.resolve_together, call)
            self._resolve([call], target, notes)
        extern = notes.externs[call.symbol]
        if isinstance(extern, CxxError):
            raise extern
        for each in self._linked_with(call, target):
            notes.calls.setdefault(each.symbol, each)
        return extern

    def guess(self, call: Call, use: Use, target: Target) -> Any:
        """Return what a call probably returns, and note it to be resolved. Raise `DeferredCallError` if nothing is
        likely, or a compiler has refused a call that was guessed so."""
        notes = self._notes()
        found = notes.externs.get(call.symbol)
        if isinstance(found, CxxError) or (found is None and self._is_unlikely(call, target)):
            raise DeferredCallError
        note_guessed(self.resolve_together, call)
        returns = self._results.guess(call, use, self._records()) if found is None else found.returns
        if returns is None:
            raise DeferredCallError
        return returns

    def resolve_together(self, calls: Sequence[Call], others: Sequence[Call], certain: Set[Call]) -> None:
        """Resolve the *calls* of a kernel, and *others* that led to their types. Only those that are *certain* need be
        possible."""
        target = current_target()
        # What reads further headers is part of the program, which knows its headers.
        reading = (call for call in others if any(each.headers or each.as_array for each in call.parameters))
        linked = {each.symbol: each for call in (*calls, *reading) for each in self._linked_with(call, target)}
        only_asked = {call.symbol: call for call in others if call.symbol not in linked}
        self._resolve_unit(Unit(tuple(linked.values()), tuple(only_asked.values())), target, self._notes(), certain)

    def resolve_linked(self, calls: Sequence[Call]) -> None:
        """Resolve the calls of a kernel in the translation unit that its link compiles: with those that were declared
        together with them."""
        target = current_target()
        declared = [self._declared.get((call.symbol, target), (call,)) for call in calls]
        self._resolve(tuple(dict.fromkeys(itertools.chain(*declared))), target, self._notes())

    def compile_alone(self, call: Call, target: Target) -> None:
        """Compile a call in a unit of its own. Raise `CompileError` if that does not compile."""
        self._compiled(Unit((call,)), target, self._notes())

    def find_refusals(self, calls: Sequence[Call], target: Target) -> dict[str, CxxError]:
        """Resolve *calls* together. Return why C++ refuses some, by their symbols."""
        notes = _Notes()
        self._resolve(tuple({call.symbol: call for call in calls}.values()), target, notes)
        return {symbol: found for symbol, found in notes.externs.items() if isinstance(found, CxxError)}

    def declare(self, calls: Sequence[Call], target: Target) -> None:
        """Resolve *calls* together. Raise `CxxError` if C++ refuses one."""
        unit = tuple({call.symbol: call for call in calls}.values())
        for refusal in self.find_refusals(unit, target).values():
            raise refusal
        for call in unit:
            self._declared[call.symbol, target] = unit

    def sources(self, call: Call, target: Target) -> list[CUDASource]:
        """Return the sources of a call, and of those that were declared with it."""
        return [self._source_of(each) for each in self._linked_with(call, target)]

    def list_resolved(self) -> list[list[CUDASource]]:
        """Return the sources of one unit of calls that were resolved; none if there is none yet."""
        return [[self._source_of(call) for call in itertools.chain(*unit)] for unit in [*self._resolved.values()][:1]]

    def get_refusal(self, call: Call) -> CxxError | None:
        """Return why a call was refused in this compilation; None if it was not."""
        found = self._notes().externs.get(call.symbol)
        return found if isinstance(found, CxxError) else None

    def _linked_with(self, call: Call, target: Target) -> tuple[Call, ...]:
        return self._declared.get((call.symbol, target), (call,))

    def _source_of(self, call: Call) -> CUDASource:
        if call.symbol not in self._sources:
            self._sources[call.symbol] = self._make_source(call)
        return self._sources[call.symbol]

    def _notes(self) -> _Notes:
        in_progress = compilation()
        if in_progress is None:
            return _Notes()
        notes: _Notes = in_progress.notes.setdefault(self, _Notes())
        return notes

    def _resolve(self, calls: Sequence[Call], target: Target, notes: _Notes) -> None:
        """Note the C functions of *calls*, or why C++ refuses them."""
        known = self._resolved.get((calls[0].symbol, target)) if len(calls) == 1 else None
        before = (each for each in notes.calls.values() if each not in calls)
        self._resolve_unit(known or Unit((*before, *calls)), target, notes, {*calls})

    def _resolve_unit(self, unit: Unit, target: Target, notes: _Notes, certain: Set[Call]) -> None:
        """Note the C functions of the calls of *unit*, or why C++ refuses those that are *certain*."""
        try:
            found = self._compiled(unit, target, notes)
        except CompileError as refused:
            error = self._with_labels(refused, unit)
            likely = self._without_unlikely(unit, error, target, notes, certain)
            if likely == unit:
                self._resolve_apart(unit, error, target, notes, certain)
            elif any(likely):
                self._resolve_unit(likely, target, notes, certain)
            return
        for call in itertools.chain(*unit):
            notes.externs[call.symbol] = extern = self._extern(call, found)
            self._resolved[call.symbol, target] = unit
            if isinstance(extern, (Extern, WrittenArgumentError)):
                self._results.note(call, extern.returns)

    def _with_labels(self, error: CompileError, unit: Unit) -> CompileError:
        """Return an *error* with what messages call the calls of *unit*: the text of a call may be that of one with
        arguments of other types, which C++ cannot tell apart."""
        log = error.log
        for call in itertools.chain(*unit):
            log = log.replace(self._source_of(call).name, call.label)
        return error if log == error.log else CompileError(next(itertools.chain(*unit)).label, log)

    def _without_unlikely(
        self, unit: Unit, error: CompileError, target: Target, notes: _Notes, certain: Set[Call]
    ) -> Unit:
        """Return *unit* without the calls that were only guessed and that C++ refuses with this *error*, which are not
        guessed again."""
        known = {*notes.calls, *(call.symbol for call in certain)}
        guessed = [call for call in itertools.chain(*unit) if call.symbol not in known]
        at_fault = [call for call in itertools.chain(*unit) if is_at_fault(error.log, call.label)]
        refused = {call.symbol: call for call in guessed if call in at_fault or not at_fault}
        notes.unlikely.update(dict.fromkeys(refused, True))
        notes.refused.update({symbol: error for symbol, call in refused.items() if call in at_fault})
        for call in refused.values():
            current_store().put(_unlikely(call, target), b"")
        return Unit(*(tuple(call for call in calls if call.symbol not in refused) for calls in unit))

    def _is_unlikely(self, call: Call, target: Target) -> bool:
        if (call.symbol, target) in self._resolved:
            return False
        unlikely = self._notes().unlikely
        if call.symbol not in unlikely:
            unlikely[call.symbol] = current_store().has(_unlikely(call, target))
        return unlikely[call.symbol]

    def _resolve_apart(
        self, unit: Unit, error: CompileError, target: Target, notes: _Notes, certain: Set[Call]
    ) -> None:
        """Resolve the calls of a *unit* that does not compile: those that are not at fault together, or each alone."""
        calls = tuple(itertools.chain(*unit))
        at_fault = [each for each in calls if is_at_fault(error.log, each.label)] or (calls if len(calls) == 1 else ())
        for call in at_fault:
            notes.externs[call.symbol] = self._explain(call, error, target)
        if at_fault and len(at_fault) < len(calls):
            others = Unit(*(tuple(call for call in each if call not in at_fault) for each in unit))
            self._resolve_unit(others, target, notes, certain)
        elif not at_fault:  # none is at fault by itself: two need different definitions of one name, for example
            for call in calls:
                self._resolve_unit(Unit((call,)), target, notes, certain)

    def _explain(self, call: Call, error: CompileError, target: Target) -> CxxError:
        with asking(target):
            refusal = explain_refusal(call.label, error, self._source_of(call), target, self._ask_type)
        return self._place_error(refusal)

    def _extern(self, call: Call, unit: CompiledSource) -> Extern | CxxError:
        if refused := find_called_kernel(call.label, unit.log):
            return refused
        try:
            return make_extern(call, unit.names[call.question], self._records(), lambda: _may_refer(call, unit))
        except CxxError as error:
            return error

    def _compiled(self, unit: Unit, target: Target, notes: _Notes) -> CompiledSource:
        """Return a unit with the lowered names of what it is asked, which is looked up once for each compilation."""
        if unit not in notes.compiled:
            calls = unit.calls or unit.others  # something must be compiled
            asked = "".join(write_call(each, is_asked_only=True) for each in unit.others if unit.calls)
            questions = [each.question for each in itertools.chain(*unit)]
            labels = [each.label for each in itertools.chain(*unit)]
            with asking(target):
                found = compiled_with([self._source_of(each) for each in calls], questions, asked, labels)
            notes.compiled[unit] = found
            if not found.was_cached:
                self._note_checked(calls, found, target)
        return notes.compiled[unit]

    def _note_checked(self, calls: Sequence[Call], found: CompiledSource, target: Target) -> None:
        """Note that the C functions have the types of the calls, which follow from their lowered names: a link need not
        check them."""
        from numba.cuda.cudadrv.external_code.compile import programs

        called = []
        for call in calls:
            if isinstance(extern := self._extern(call, found), Extern):
                named = {f"args_{number}": each for number, each in enumerate(call.argtypes)}
                called.append(CalledFunction(call.symbol, prototype(extern, named, None).c_prototype))
        programs.note_checked(found.unit, target, called)


def _may_refer(call: Call, unit: CompiledSource) -> bool:
    """Return whether C++ may take a number as ``T&``, where it also takes temporary values: if the text of the call or
    the library's own may declare it so. CUDA's headers take such numbers by value or as ``const``."""
    name = "" if call.pattern.callee else call.pattern.name.partition("(")[0]
    return may_refer([call.head.source, unit.own_headers, call.pattern.text, call.pattern.callee], name)


def _unlikely(call: Call, target: Target) -> CacheKey:
    """Return the key under which it is noted that C++ refused a call that was guessed: also for later processes, which
    else would ask NVRTC again."""
    return CacheKey("guesses", call.label, (("refused", call.symbol), ("target", repr(target))))
