# SPDX-License-Identifier: BSD-2-Clause
"""A translation unit in the cache: the headers that it reads, its key, and its program.

A program's key is its translation unit, NVRTC, and the content of every header. Which headers those are is recorded
when it is compiled. While their files are unchanged, only the files' states are read.

Whether its functions have the types with which Python calls them is not part of the program's key, so that kernels that
call different functions of one source share the program.
"""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..cache.entry import CacheKey
from ..cache.store import Fetched, Origin, current_store
from ..diagnostics import timeline
from ..headers.manifest import HeaderManifest
from .nvrtc import Compiled, CompileError
from .translation_unit import TranslationUnit, UnitKeys, checked_key, derived_key, working_directory
from .unit_headers import UnitHeaders

# What it takes to compile is imported where it is needed: a cached program is found without it.
if TYPE_CHECKING:
    from ..inputs.c_prototypes import CalledFunction

# Options that make NVRTC write a file, or read one that is not a header: a program compiled with them is not cached.
_NOT_CACHEABLE = ("create_pch", "fdevice_time_trace", "pch", "pch_dir", "time", "use_pch")

# Bytes of headers from which on compiling takes longer than starting a process for it.
MANY_HEADERS = 1 << 20

Compile = Callable[..., Compiled]  # of a unit, perhaps with name expressions to lower
Called = Sequence["CalledFunction"]
_HIDDEN = b"but for structs"  # what is noted of a function that was checked


class KnownHeaders(NamedTuple):
    """The record of a unit's headers, and the program's key, which contains it."""

    key: CacheKey
    manifest: HeaderManifest


@dataclasses.dataclass(frozen=True)
class FetchedProgram(Fetched):
    """A program as it was fetched, and the digest of its *key*, which contains the headers that it was compiled with;
    ``None`` if these are not known. *hidden* are the functions that were checked, but for their structs by value."""

    key: bytes | None = None
    hidden: tuple[CalledFunction, ...] = ()


class Lowered(NamedTuple):
    """The lowered names of a unit's name expressions, NVRTC's log, and where both are from."""

    names: dict[str, str]
    log: str
    origin: Origin


@dataclasses.dataclass
class _Checks:
    """A run of NVRTC that checks the types of the functions *called*. Of those that are *hidden*, it has found structs
    by value that C++ does not take apart."""

    called: Called = ()
    hidden: tuple[CalledFunction, ...] = ()

    def compile(self, unit: TranslationUnit, compile_: Compile) -> Compiled:
        if not (called := self.called):
            return compile_(unit)
        from ..platform.child_process import ChildEndedError
        from .prototype_assertions import has_structs, list_hidden, questions, raise_understood, with_assertions

        for of_structs in (True, False) if has_structs(called) else (False,):
            asked = questions(called) if of_structs else []
            try:
                compiled = compile_(with_assertions(unit, called, of_structs=of_structs), asked)
            except CompileError as error:
                if isinstance(error.__cause__, ChildEndedError):  # NVRTC would end again, at the same limit
                    raise
                raise_understood(error, unit.name, called)
            else:
                self.hidden = list_hidden(called, [compiled.names[each] for each in asked])
                return compiled
        self.hidden = list_hidden(called, [])
        return compile_(unit)  # nothing can be told of one of the functions, which the unit need not define

    def note(self, program: CacheKey) -> None:
        """Note that the functions of *program* have the types of the calls, but for structs of those that hide them."""
        for each in self.called:
            current_store().put(checked_key(program, each), _HIDDEN if each in self.hidden else b"")


@dataclasses.dataclass
class _Names:
    """A run of NVRTC that lowers *names* in a unit with the text that is *asked*, and what it *found*."""

    names: Sequence[str]
    asked: str
    found: Lowered | None = None

    def compile(self, unit: TranslationUnit, compile_: Compile) -> Compiled:
        compiled = compile_(dataclasses.replace(unit, code=f"{unit.code}{self.asked}"), self.names)
        self.found = Lowered(compiled.names, compiled.log, "built")
        return compiled

    def key(self, program: CacheKey) -> CacheKey:
        names = ("names", json.dumps(list(self.names))), ("with", "log"), ("asked", self.asked)
        return CacheKey("names", program.name, (("program", program.digest), *names))

    def packed(self) -> bytes:
        assert self.found is not None
        return json.dumps(self.found[:2]).encode()

    def note(self, program: CacheKey) -> None:
        """Note what was found in *program*."""
        current_store().put(self.key(program), self.packed())


_Run: TypeAlias = _Checks | _Names


class _Made(NamedTuple):
    """A program that was compiled now, and its headers and key, if they are known as they were read."""

    data: bytes
    known: KnownHeaders | None = None

    @property
    def key(self) -> bytes | None:
        return None if self.known is None else self.known.key.digest


class CachedUnit:
    """A translation unit, and what is known of its headers."""

    def __init__(self, unit: TranslationUnit):
        self.unit = unit
        self._excluded = next((option for option in _NOT_CACHEABLE if unit.option(option)), "")
        self._keys = UnitKeys(unit)
        self.base_key = self._keys.headers
        self._lock = threading.Lock()
        self._headers = UnitHeaders(unit, self._keys)
        self._known: KnownHeaders | None = None

    def known(self) -> KnownHeaders | None:
        """Return the headers of now and the program's key, if they are on record; ``None`` if only a compile can find
        the headers."""
        with self._lock:
            return None if self._excluded or not self._headers.on_record() else self._current()

    def describe(self) -> CacheKey:
        """Return the key of the program, or what describes one that is not cached, and why it is not."""
        return known.key if (known := self.known()) is not None else self._headers.uncached_key()

    def is_slow(self, called: Called = ()) -> bool:
        if (known := self.known()) is None:
            return "include" in self.unit.code or bool(self.unit.option("pre_include"))
        store = current_store()
        if not _is_slow(known.manifest) or store.settings.verify:
            return False
        return not store.has(known.key) or bool(_unchecked(known.key, called))

    def fetched(self, compile_: Compile, called: Called = ()) -> FetchedProgram:
        """Return the program and its log, which `unpacked` separates, from a cache or compiled by *compile_*.

        The functions *called* must have the types of the calls. Where that was not checked when the program was
        compiled, it is compiled once more. What was checked is stored next to the program.

        Raises `CompileError` if the code does not compile, or a function has other types (`PrototypeError`).
        """
        start, checks = time.perf_counter(), _Checks(called)

        def result(data: bytes, origin: Origin, key: bytes | None, hidden: Any) -> FetchedProgram:
            return FetchedProgram(data, origin, time.perf_counter() - start, key, hidden)

        known, made = self._known_or_made(compile_, checks)
        if known is not None:
            program = known.key

            def build() -> bytes | None:
                nonlocal made
                made = self._make(compile_, checks, known)
                return made.data if made.key == program.digest else None  # a header was edited since

            fetched = current_store().fetch(self._stored_key(program), build)
            if fetched is not None and fetched.origin != "built":
                if not _unchecked(program, called):
                    return result(fetched.data, fetched.origin, program.digest, _list_hidden(program, called))
                build()
        assert made is not None
        return result(made.data, "built", made.key, checks.hidden)

    def lowered(self, names: Sequence[str], compile_: Compile, asked: str = "") -> Lowered:
        """Return the lowered names of the name expressions *names*, from a cache or from a compile by *compile_*, whose
        program is cached too, with the text that is *asked*. Raise `CompileError` if the code does not compile, or a
        name means nothing in it."""
        run = _Names(names, asked)
        known, _ = self._known_or_made(compile_, run)
        if known is not None:

            def build() -> bytes | None:
                made = self._make(compile_, run, None)
                return run.packed() if made.key == known.key.digest else None

            lowered = current_store().fetch(run.key(known.key), build)
            if lowered is not None and run.found is None:
                known_names, log = json.loads(lowered.data)
                return Lowered(known_names, log, lowered.origin)
        assert run.found is not None
        return run.found

    def _known_or_made(self, compile_: Compile, run: _Run) -> tuple[KnownHeaders | None, _Made | None]:
        """Return the headers and the key, if they are on record; else the program, which was compiled now, by one of
        the processes that need it."""
        if (known := self.known()) is not None:
            return known, None
        if self._excluded:
            return None, self._make(compile_, run, None)
        with current_store().turn(self.base_key):
            if (known := self.known()) is not None:
                return known, None
            return None, self._make(compile_, run, None)

    def _make(self, compile_: Compile, run: _Run, kept: KnownHeaders | None) -> _Made:
        """Compile the program, and record its headers and what else the *run* has found, unless nobody knows from which
        texts it was compiled. The program is cached, but for that of the headers *kept*: the caller does that."""
        start, began = time.perf_counter(), time.time_ns()
        compiled = run.compile(self.unit, compile_)
        timeline.note_program(compiled.code)
        data = _packed(compiled)
        with self._lock:
            if not self._headers.record(compiled.lookups, began, self._excluded):
                return _Made(data)
            known = self._current()
        if kept is None or known.key != kept.key:
            current_store().put(self._stored_key(known.key), data, built_since=start)
        run.note(known.key)
        self._precompile(known.manifest)
        return _Made(data, known)

    def _stored_key(self, program: CacheKey) -> CacheKey:
        if not current_store().settings.verify:
            return program
        # Only in the same places does a compile give the same bytes again.
        return dataclasses.replace(program, parts=(*program.parts, ("compiled in", working_directory())))

    def _precompile(self, manifest: HeaderManifest) -> None:
        """Begin to precompile the headers for other sources, if that takes longer than to start it."""
        if _is_slow(manifest):
            from .nvrtc_processes import precompile

            if not self._headers.may_have_path(manifest, by_macros=False):
                precompile(self.unit, manifest)

    def note_checked(self, called: Called) -> None:
        """Note that the functions *called*, all of the unit, have the types of the calls, which their author derived
        from it."""
        if (known := self.known()) is not None:
            derived = json.dumps([(each.symbol, each.types) for each in called])
            current_store().put(derived_key(known.key), derived.encode())

    def _current(self) -> KnownHeaders:
        manifest = self._headers.manifest
        assert manifest is not None
        if self._known is None or self._known.manifest is not manifest:
            self._known = KnownHeaders(self._keys.program(manifest, self._headers.places), manifest)
        return self._known


def _list_hidden(program: CacheKey, called: Called) -> tuple[CalledFunction, ...]:
    store = current_store()
    return tuple(each for each in called if each.has_structs and store.get(checked_key(program, each)) == _HIDDEN)


def _unchecked(program: CacheKey, called: Called) -> Called:
    store = current_store()
    derived = set(map(tuple, json.loads((store.get(derived_key(program)) if called else None) or b"[]")))
    others = [each for each in called if (each.symbol, each.types) not in derived]
    return [each for each in others if store.get(checked_key(program, each)) is None]


def _packed(compiled: Compiled) -> bytes:
    log = compiled.log.encode()
    return len(log).to_bytes(8, "little") + log + compiled.code


def unpacked(data: bytes) -> tuple[bytes, str]:
    end = 8 + int.from_bytes(data[:8], "little")
    return data[end:], data[8:end].decode()


def _is_slow(manifest: HeaderManifest) -> bool:
    return manifest.size > MANY_HEADERS
