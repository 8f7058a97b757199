# SPDX-License-Identifier: BSD-2-Clause
"""Resolves calls: one run of NVRTC resolves those of one translation unit, and makes their code.

The calls that a kernel makes are compiled together, as the link of the kernel compiles them, which then finds the
program in the cache. For each kernel, what is known of a call is looked up in the cache of programs again, so that a
changed header is noticed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CalledFunction
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CUDASource
from numba.cuda.cudadrv.external_code.platform.target import Target

from ..c_abi.extern import Extern, prototype
from ..compilation.context import asking, compilation, current_target
from ..frontend_api.typing_rounds import put_off
from ..linkables.compiled_source import CompiledSource, compiled, unit_of_sources
from .calls import Call, Records
from .refusals import CxxError, explain_refusal, find_called_kernel, is_named_in
from .results import make_extern

Unit = tuple[Call, ...]


class _Notes:
    """What is known in one compilation: the calls of the kernel so far and, by symbol, their C functions or why C++
    refuses them; and the units that were looked up, with their lowered names."""

    def __init__(self) -> None:
        self.calls: dict[str, Call] = {}
        self.externs: dict[str, Extern | CxxError] = {}
        self.compiled: dict[Unit, CompiledSource] = {}


class Resolver:
    """What is known of the calls of one library. *make_source* makes the source of a call; *records* returns the
    structs that the library knows, by their Numba types."""

    def __init__(self, make_source: Callable[[Call], CUDASource], records: Callable[[], Records]):
        self._make_source = make_source
        self._sources: dict[str, CUDASource] = {}
        self._records = records
        self._resolved: dict[tuple[str, Target], Unit] = {}  # with which others a call was resolved
        self._declared: dict[tuple[str, Target], Unit] = {}  # with which others a call was declared

    def resolve(self, call: Call, target: Target) -> Extern:
        """Return the C function of a call. Raise `CxxError` if C++ refuses the call; within type inference,
        `DeferredCallError` if NVRTC has to be asked."""
        notes = self._notes()
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

    def resolve_together(self, calls: Sequence[Call]) -> None:
        """Resolve calls that were put off."""
        self._resolve(calls, current_target(), self._notes())

    def resolve_linked(self, calls: Sequence[Call]) -> None:
        """Resolve the calls of a kernel in the translation unit that its link compiles: with those that were declared
        together with them."""
        target = current_target()
        declared = [self._declared.get((call.symbol, target), (call,)) for call in calls]
        self._resolve(tuple(dict.fromkeys(itertools.chain(*declared))), target, self._notes())

    def compile_alone(self, call: Call, target: Target) -> None:
        """Compile a call in a unit of its own. Raise `CompileError` if that does not compile."""
        self._compiled((call,), target, self._notes())

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

    def symbols(self, call: Call, target: Target) -> list[str]:
        """Return the names of the C functions of the `sources`, which stand for all of their text."""
        return [each.symbol for each in self._linked_with(call, target)]

    def get_refusal(self, call: Call) -> CxxError | None:
        """Return why a call was refused in this compilation; None if it was not."""
        found = self._notes().externs.get(call.symbol)
        return found if isinstance(found, CxxError) else None

    def _linked_with(self, call: Call, target: Target) -> Unit:
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
        before = tuple(each for each in notes.calls.values() if each not in calls)
        unit = (*before, *calls)
        if len(calls) == 1:
            unit = self._resolved.get((calls[0].symbol, target), unit)
        try:
            found = self._compiled(unit, target, notes)
        except CompileError as error:
            self._resolve_apart(calls, unit, error, target, notes)
            return
        for call in calls:
            notes.externs[call.symbol] = self._extern(call, found)
            self._resolved[call.symbol, target] = unit

    def _resolve_apart(
        self, calls: Sequence[Call], unit: Unit, error: CompileError, target: Target, notes: _Notes
    ) -> None:
        """Resolve *calls* whose *unit* does not compile: those that are not at fault together, or each alone."""
        at_fault = [call for call in calls if is_named_in(error.log, call.label)] or (calls if len(unit) == 1 else [])
        for call in at_fault:
            notes.externs[call.symbol] = explain_refusal(call.label, error, self._source_of(call), target)
        others = [call for call in calls if call not in at_fault]
        if at_fault and others:
            self._resolve(others, target, notes)
        elif others:  # none is at fault by itself: two need different definitions of one name, for example
            for call in others:
                self._resolved[call.symbol, target] = (call,)
                self._resolve([call], target, notes)

    def _extern(self, call: Call, unit: CompiledSource) -> Extern | CxxError:
        if refused := find_called_kernel(call.label, unit.log):
            return refused
        try:
            return make_extern(call, unit.names[call.question], self._records())
        except CxxError as error:
            return error

    def _compiled(self, unit: Unit, target: Target, notes: _Notes) -> CompiledSource:
        """Return a unit with the lowered names of what it is asked, which is looked up once for each compilation."""
        if unit not in notes.compiled:
            with asking(target):
                found = compiled([self._source_of(each) for each in unit], [each.question for each in unit])
            notes.compiled[unit] = found
            if not found.was_cached:
                self._note_checked(unit, found, target)
        return notes.compiled[unit]

    def _note_checked(self, unit: Unit, found: CompiledSource, target: Target) -> None:
        """Note that the C functions have the types of the calls, which follow from their lowered names: a link need not
        check them."""
        from numba.cuda.cudadrv.external_code.compile import programs

        called = []
        for call in unit:
            if isinstance(extern := self._extern(call, found), Extern):
                named = {f"args_{number}": each for number, each in enumerate(call.argtypes)}
                called.append(CalledFunction(call.symbol, prototype(extern, named, None).c_prototype))
        programs.note_checked(unit_of_sources([self._source_of(each) for each in unit]), target, called)
