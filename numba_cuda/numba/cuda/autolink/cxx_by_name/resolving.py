# SPDX-License-Identifier: BSD-2-Clause
"""Asks C++ about calls: one run of NVRTC resolves those of one translation unit, and makes their code.

The calls that a kernel makes are compiled together, as the link of the kernel compiles them, which then finds the
program in the cache. What is known of a call is looked up in the cache of programs again for each kernel, so that a
changed header is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numba.cuda.cudadrv.external_code.compile.c_prototypes import CalledFunction
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CUDASource
from numba.cuda.cudadrv.external_code.target import Target

from ..compilation import asking, compilation
from ..device_callable.extern import Extern, prototype
from ..lowered_names import compiled, unit_of_sources
from .calls import Call
from .refusals import CxxError, refusal
from .results import numba_type_told, numbers_in


@dataclass(frozen=True)
class Resolved:
    """What C++ told of a call: the Numba type of the result or a `CxxObject`, how open arrays are passed, and the
    numbers that it writes to, as bits."""

    returns: Any
    mode: int
    written: int


class Resolver:
    """What is known of the calls of one library. *source_of* returns the source of a call."""

    def __init__(self, source_of: Callable[[Call], CUDASource]):
        self._source_of = source_of
        self._units: dict[tuple[str, Target], tuple[Call, ...]] = {}  # in which calls were resolved
        self._declared: dict[tuple[str, Target], tuple[Call, ...]] = {}
        self._names: dict[tuple[tuple[Call, ...], Target], Mapping[str, str]] = {}
        self._answers: dict[tuple[str, Target], str] = {}
        self._called: dict[tuple[str, Target], CalledFunction] = {}

    def resolve(self, call: Call, target: Target, records: Sequence[Any]) -> Resolved:
        """Return what C++ says of a call. Raise `CxxError` if it refuses it."""
        in_progress = compilation()
        noted = {} if in_progress is None else in_progress.notes.setdefault(self, {})
        known = call.symbol, target
        unit = self._units.get(known) or (*noted.values(), call)
        unit, answer = self._told(unit, call, target)
        self._units[known], self._answers[known] = unit, answer
        for each in self._declared.get(known, (call,)):
            noted.setdefault(each.symbol, each)
        mode, written, *numbers = numbers_in(answer)
        return Resolved(numba_type_told(iter(numbers), records), mode, written)

    def _told(self, unit: tuple[Call, ...], call: Call, target: Target) -> tuple[tuple[Call, ...], str]:
        """Return what C++ tells of *call*, and the unit in which it did: with the others of *unit*, or alone where one
        of those is at fault."""
        try:
            return unit, self._compiled(unit, target)[call.question]
        except CompileError as error:
            if len(unit) == 1 or call.label in error.log:
                raise self._refused(call, target, error) from error
        return self._told((call,), call, target)

    def declare(self, calls: Sequence[Call], target: Target) -> None:
        """Resolve *calls* together. Raise `CxxError` if C++ refuses one."""
        unit = tuple({call.symbol: call for call in calls}.values())
        try:
            self._compiled(unit, target)
        except CompileError as error:
            for call in unit:
                if call.label in error.log or len(unit) == 1:
                    raise self._refused(call, target, error) from error
            raise self._refused(unit[0], target, error) from error
        for call in unit:
            self._units[call.symbol, target] = self._declared[call.symbol, target] = unit

    def _refused(self, call: Call, target: Target, error: CompileError) -> CxxError:
        from numba.cuda.cudadrv.external_code.compile import programs

        source = self._source_of(call)
        unit = unit_of_sources([source])
        return refusal(
            call.label, error, source.compile_options.include_paths, lambda: programs.header_texts(unit, target)
        )

    def note(self, call: Call, extern: Extern, args: Sequence[Any], target: Target) -> None:
        """Note that *extern*, which follows from what C++ told, has the types of the C function: so it has them in the
        units of other calls that tell the same of it."""
        from numba.cuda.cudadrv.external_code.compile import programs

        named = {f"args_{number}": each for number, each in enumerate(args)}
        known = call.symbol, target
        self._called[known] = CalledFunction(call.symbol, prototype(extern, named, None).c_prototype)
        unit = self._units[known]
        same = [c for c in unit if self._answers.get((c.symbol, target)) == self._names[unit, target].get(c.question)]
        called = [self._called[c.symbol, target] for c in same if (c.symbol, target) in self._called]
        programs.note_checked(unit_of_sources([self._source_of(each) for each in unit]), target, called)

    def sources(self, call: Call, target: Target) -> list[CUDASource]:
        """Return the sources of a call, and of those that were declared with it."""
        return [self._source_of(each) for each in self._declared.get((call.symbol, target), (call,))]

    def symbols(self, call: Call, target: Target) -> list[str]:
        """Return the names of the C functions of the `sources`, which stand for all of their text."""
        return [each.symbol for each in self._declared.get((call.symbol, target), (call,))]

    def _compiled(self, unit: tuple[Call, ...], target: Target) -> Mapping[str, str]:
        with asking(target):
            found = compiled([self._source_of(each) for each in unit], [each.question for each in unit]).names
        self._names[unit, target] = found
        return found
