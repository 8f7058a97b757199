# SPDX-License-Identifier: BSD-2-Clause
"""The cache of programs: CUDA C++ compiled to LTO-IR or relocatable cubins, in memory and on disk."""

from __future__ import annotations

import collections
import os
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

from .. import progress
from ..cache.store import Fetched, Origin, current_store
from ..inputs import kinds
from ..inputs.kinds import Kind
from ..inputs.link_input import LinkInput
from ..target import Target
from .cached_unit import CachedUnit, Compile, unpacked
from .nvrtc import CompileError
from .translation_unit import (
    TranslationUnit,
    compile_unit,
    messages_outside_toolkit,
    toolkit_include_paths,
    working_directory,
)

# Units whose headers are watched; the least recently used is dropped first. The record of CUB's headers has 100 KB.
_MOST_WATCHED = 256


@dataclass(frozen=True)
class Program:
    """A compiled source.

    Attributes
    ----------
    code:
        The compiled code.
    kind:
        `kinds.LTO_IR`, `kinds.CUBIN` or, from bitcode, `kinds.PTX`.
    origin:
        ``"built"``, or the cache that it came from: ``"memory"``, ``"disk"``.
    seconds:
        How long it took to build or find.
    """

    code: bytes = field(repr=False)
    kind: Kind
    origin: Origin
    seconds: float


# The units whose headers were unknown, by the random digest that stood for them.
_unknown: collections.OrderedDict[bytes, CachedUnit] = collections.OrderedDict()


class SourceError(Exception):
    """One of several sources does not compile: ``error`` is the `CompileError`, ``number`` that source's index."""

    def __init__(self, number: int, error: CompileError):
        self.number = number
        self.error = error
        super().__init__(str(error))


def compiled(source: LinkInput, target: Target) -> Program:
    """Return *source* compiled for *target*; NVRTC's warnings become a Python warning.

    Raises
    ------
    CompileError
        If it does not compile.
    """
    unit = _units.of(source, target)
    return _program(unit, unit.fetched(compile_unit))


def all_compiled(sources: Sequence[LinkInput], target: Target) -> list[Program]:
    """Return each of *sources* compiled for *target*; slow ones that are in no cache are compiled concurrently.

    Raises
    ------
    SourceError
        If one does not compile: the first such one.
    """
    units = [_units.of(source, target) for source in sources]
    slow = [unit for unit in dict.fromkeys(units) if unit.is_slow()] if len(units) > 1 else []
    if len(slow) > 1:
        from .jobs import compile_in_free_process, most_jobs

        if (jobs := min(len(slow), most_jobs())) > 1:
            return _compiled_concurrently(units, slow, jobs, compile_in_free_process)
    return [
        _program(unit, _fetched(number, unit, compile_unit, remaining=len(units) - number - 1))
        for number, unit in enumerate(units)
    ]


def _compiled_concurrently(
    units: list[CachedUnit], slow: list[CachedUnit], jobs: int, compile_: Compile
) -> list[Program]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(jobs, "compile") as pool:
        futures = {
            unit: pool.submit(_fetched, number, unit, compile_) for number, unit in enumerate(units) if unit in slow
        }
        try:
            return [
                _program(unit, futures[unit].result() if unit in futures else _fetched(number, unit, compile_unit))
                for number, unit in enumerate(units)
            ]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _fetched(number: int, unit: CachedUnit, compile_: Compile, remaining: int = 0) -> Fetched:
    try:
        with progress.step(f"compiling {os.path.basename(unit.unit.name)}", remaining):
            return unit.fetched(compile_)
    except CompileError as error:
        raise SourceError(number, error) from error


def _program(unit: CachedUnit, fetched: Fetched) -> Program:
    """Return what was *fetched* as a record, and warn if NVRTC warned."""
    code, log = unpacked(fetched.data)
    if log and (messages := messages_outside_toolkit(log)):
        warnings.warn(f"NVRTC log messages: {messages}", stacklevel=2)
    kind = kinds.LTO_IR if unit.unit.output == "ltoir" else kinds.CUBIN
    return Program(code, kind, fetched.origin, fetched.seconds)


def fingerprint(source: LinkInput, target: Target) -> bytes:
    """Return a digest of all that *source* compiled for *target* depends on, headers included; nothing is compiled.

    It is random for what can be compiled but not cached.
    """
    unit = _units.of(source, target)
    try:
        known = unit.known()
    except OSError:  # a header that cannot be read, for example; compiling it reports that
        known = None
    if known is not None:
        return known.key.digest
    unit.found = None
    digest = os.urandom(32)
    _unknown[digest] = unit
    if len(_unknown) > _MOST_WATCHED:
        _unknown.popitem(last=False)
    return digest


def fingerprint_after_compiling(digest: bytes) -> bytes:
    """Return what `fingerprint` would have returned in place of *digest* if it had known what the compile since then
    has found."""
    unit = _unknown.pop(digest, None)
    return digest if unit is None or unit.found is None else unit.found


class _Units:
    """The units of this process, for as long as its store is the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._units: collections.OrderedDict[object, CachedUnit] = collections.OrderedDict()
        self._store: object = None

    def of(self, source: LinkInput, target: Target) -> CachedUnit:
        # Inputs that differ only in their names are equal, but compile to different code.
        places = source.name, os.path.isfile(source.name), toolkit_include_paths(), working_directory()
        question = source, target, places
        with self._lock:
            store = current_store()
            if store is not self._store:
                self._store = store
                self._units.clear()
            unit = self._units.get(question)
            if unit is None:
                unit = self._units[question] = CachedUnit(TranslationUnit.of(source, target))
                if len(self._units) > _MOST_WATCHED:
                    self._units.popitem(last=False)
            else:
                self._units.move_to_end(question)
        return unit


_units = _Units()


def _after_fork_in_child() -> None:
    global _units
    _units = _Units()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)  # another thread of the parent may hold the lock
