# SPDX-License-Identifier: BSD-2-Clause
"""A translation unit in the cache: the headers that it reads, its key, and its program.

A program's key is its translation unit, NVRTC, and the content of every header. Which headers those are is recorded
under the same key without them. While their files are unchanged, only the files' states are read.

Whether its functions have the types with which Python calls them is not part of the program's key, so that kernels that
call different functions of one source share the program.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..cache.entry import CacheKey
from ..cache.store import CacheStore, Fetched, Origin, current_store
from ..headers.manifest import HeaderManifest
from .nvrtc import Compiled, CompileError
from .translation_unit import TranslationUnit, UnitKeys, checked_key, derived_key, working_directory
from .unit_headers import UnitHeaders, nvrtc_reports_headers

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
        current_store().put(self.key(program), self.packed())


_Run: TypeAlias = _Checks | _Names


class _Made(NamedTuple):
    """A program that was compiled now, and the digest of its key, if its headers are known as they were read."""

    data: bytes
    key: bytes | None = None


class CachedUnit:
    """A translation unit, and what is known of its headers."""

    def __init__(self, unit: TranslationUnit):
        self.unit = unit
        self._is_cacheable = not any(unit.option(option) for option in _NOT_CACHEABLE)
        self._keys = UnitKeys(unit)
        self.base_key = self._keys.headers
        self._lock = threading.Lock()
        self._headers = UnitHeaders(unit, self.base_key)
        self._known: KnownHeaders | None = None

    def known(self) -> KnownHeaders | None:
        """Return the headers of now and the program's key; ``None`` if only a compile can find the headers. Raise
        `OSError` if one cannot be read, or is not a regular file."""
        with self._lock:
            # To find them here is faster than to ask another machine which they are.
            if not self._is_cacheable or not (
                self._headers.on_record() or self._headers.find() or self._headers.on_record(remote=True)
            ):
                return None
            return self._current()

    def recorded(self) -> KnownHeaders | None:
        """Return what `known` does if the headers are on record; ``None`` if they would have to be found."""
        with self._lock:
            return self._current() if self._is_cacheable and self._headers.on_record() else None

    def is_slow(self, called: Called = ()) -> bool:
        try:
            known = self.known()
        except OSError:  # which `fetched` reports
            return False
        if known is None:
            return True
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
        if known is None:
            assert made is not None
            return result(made.data, "built", made.key, checks.hidden)
        program, _ = known
        store, key = current_store(), program
        if store.settings.verify:  # only in the same places does a compile give the same bytes again
            places = repr((self.unit.name, self.unit.option("include_path"), working_directory()))
            key = dataclasses.replace(key, parts=(*key.parts, ("places", places)))

        def build() -> bytes | None:
            nonlocal made
            made = self._make(compile_, checks, known)
            return made.data if made.key is not None else None  # else it was compiled while a header was edited

        if made is None:
            fetched = store.fetch(key, build)
            if fetched is not None and fetched.origin != "built":
                if not _unchecked(program, called):
                    return result(fetched.data, fetched.origin, program.digest, _list_hidden(program, called))
                build()
            assert made is not None
            if made.key is not None:
                checks.note(program)
        return result(made.data, "built", made.key, checks.hidden)

    def lowered(self, names: Sequence[str], compile_: Compile, asked: str = "") -> Lowered:
        """Return the lowered names of the name expressions *names*, from a cache or from a compile by *compile_*, whose
        program is cached too, with the text that is *asked*. Raise `CompileError` if the code does not compile, or a
        name means nothing in it."""
        run = _Names(names, asked)
        known, made = self._known_or_made(compile_, run)
        if known is not None and made is None:

            def build() -> bytes | None:
                made = self._make(compile_, run, known)
                if made.key is None:
                    return None
                current_store().put(known.key, made.data)
                return run.packed()

            lowered = current_store().fetch(run.key(known.key), build)
            if lowered is not None and run.found is None:
                known_names, log = json.loads(lowered.data)
                return Lowered(known_names, log, lowered.origin)
        assert run.found is not None
        return run.found

    def _known_or_made(self, compile_: Compile, run: _Run) -> tuple[KnownHeaders | None, _Made | None]:
        """Return the headers and the key, ``None`` if only a compile can find them; and the program, if no cache can
        have it: then it was compiled now. Raise `CompileError` for a header that cannot be read."""
        try:
            if (known := self.recorded()) is not None:
                return known, None
            made = self._make_with_headers(compile_, run)
            known = self.known()
        except OSError as error:
            raise CompileError(self.unit.name, f"{error.filename}: {error.strerror}") from error
        return known, made or (None if known is not None else self._make_traced(compile_, run))

    def _make_with_headers(self, compile_: Compile, run: _Run) -> _Made | None:
        """Compile the program and meanwhile find its headers, if no cache can have it; record both. Return ``None`` if
        that is not so or cannot be done, or another process has done it."""
        store = current_store()
        if not self._is_new(store):
            return None
        from .unit_headers import compiled_with_headers

        made: _Made | None = None
        start = time.perf_counter()

        def record() -> bytes | None:
            nonlocal made
            result = compiled_with_headers(self._headers.text, lambda: run.compile(self.unit, compile_))
            if result is None:
                return None
            compiled, manifest = result
            with self._lock:
                self._headers.note(manifest, time.monotonic())
                key = self._current().key
            made = _Made(_packed(compiled), key.digest)
            store.put(key, made.data, built_since=start)
            run.note(key)  # before other processes find the program
            self._note_made(manifest)
            return manifest.packed

        store.fetch(self.base_key, record, is_portable=lambda _: False)
        return made

    def _is_new(self, store: CacheStore) -> bool:
        return (
            self._is_cacheable
            and not store.settings.verify
            and not store.settings.read_only
            and store.remote is None
            and store.get(self.base_key) is None
            and store.get(self._keys.source) is None
        )

    def _note_made(self, manifest: HeaderManifest) -> None:
        """Note that there is a program of this source, if it is not compiled in less time than that takes, and begin to
        precompile its headers for others."""
        if _is_slow(manifest):
            from .nvrtc_processes import precompile

            current_store().put(self._keys.source, b"")
            precompile(self.unit, manifest)

    def _make(self, compile_: Compile, run: _Run, known: KnownHeaders) -> _Made:
        """Compile the program. It has no key where a header was edited meanwhile: nobody knows which text was read."""
        data = _packed(run.compile(self.unit, compile_))
        if known.manifest.refreshed() is None:
            return _Made(data)
        self._note_made(known.manifest)
        return _Made(data, known.key.digest)

    def note_checked(self, called: Called) -> None:
        """Note that the functions *called*, all of the unit, have the types of the calls, which their author derived
        from it."""
        with contextlib.suppress(OSError):
            if (known := self.known()) is not None:
                derived = json.dumps([(each.symbol, each.types) for each in called])
                current_store().put(derived_key(known.key), derived.encode())

    def _current(self) -> KnownHeaders:
        manifest = self._headers.manifest
        assert manifest is not None
        if self._known is None or self._known.manifest is not manifest:
            self._known = KnownHeaders(self._keys.program(manifest), manifest)
        return self._known

    def _make_traced(self, compile_: Compile, run: _Run) -> _Made:
        """Compile the program, whose headers only NVRTC can report. If it does, the program is cached."""
        if not self._is_cacheable or self._headers.are_unclear or not nvrtc_reports_headers():
            return _Made(_packed(run.compile(self.unit, compile_)))
        began = time.time_ns()
        from .nvrtc_processes import compile_traced

        compiled = run.compile(self.unit, compile_traced)
        made = _Made(_packed(compiled))
        with self._lock:
            if not compiled.headers or not self._headers.find(compiled.headers):
                return made
            known = self._current()
        if dataclasses.replace(known.manifest, recorded=began).is_settled:
            made = made._replace(key=known.key.digest)
        else:  # one is so new that it may have been edited after NVRTC read it; now it is known which to watch
            made = self._make(compile_, run, known)
        if made.key is not None:
            current_store().put(known.key, made.data)
            run.note(known.key)
        return made


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
