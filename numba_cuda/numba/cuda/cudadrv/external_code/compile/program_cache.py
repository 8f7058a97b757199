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
import functools
import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..cache.key import CacheKey
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
CompileNames = Callable[[TranslationUnit, Sequence[str]], Compiled]
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


@dataclasses.dataclass
class _Checks:
    """The functions *called* whose types are checked. Of those that are *hidden*, a compile has found structs by value
    that C++ does not take apart."""

    called: Called = ()
    hidden: tuple[CalledFunction, ...] = ()


class Lowered(NamedTuple):
    """The lowered names of a unit's name expressions, NVRTC's log, and where both are from."""

    names: dict[str, str]
    log: str
    origin: Origin


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
        # The digest of the key of the program that was last compiled, if its headers were read as they are.
        self._found: bytes | None = None

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
        start = time.perf_counter()
        self._found = None
        checks = _Checks(called)
        known, data = self._recorded_or_compiled(compile_, checks, lambda _: None)
        if known is None and data is None:
            data = self._compiled_and_recorded(compile_, checks)
        if data is not None:
            return FetchedProgram(data, "built", time.perf_counter() - start, self._found, checks.hidden)
        assert known is not None
        program, manifest = known
        found: bytes | None = program.digest
        store, key = current_store(), program
        if store.settings.verify:  # only in the same places does a compile give the same bytes again
            places = repr((self.unit.name, self.unit.option("include_path"), working_directory()))
            key = dataclasses.replace(key, parts=(*key.parts, ("places", places)))

        edited: bytes | None = None  # compiled while a header was edited

        def build() -> bytes | None:
            nonlocal edited
            data, is_certain = self._compile(compile_, checks, manifest)
            edited = None if is_certain else data
            return data if is_certain else None

        fetched = store.fetch(key, build)
        if fetched is not None:
            unchecked = called if fetched.origin == "built" else _unchecked(program, called)
            if unchecked and fetched.origin != "built" and (data := build()) is not None:
                fetched = Fetched(data, "built", 0)
            if edited is None:
                _put_checked(program, unchecked, checks.hidden)
        if edited is not None:
            fetched, found = Fetched(edited, "built", 0), None
        assert fetched is not None
        hidden = checks.hidden if fetched.origin == "built" else _list_hidden(program, called)
        return FetchedProgram(fetched.data, fetched.origin, time.perf_counter() - start, found, hidden)

    def lowered(self, names: Sequence[str], compile_: CompileNames, asked: str = "") -> Lowered:
        """Return the lowered names of the name expressions *names*, from a cache or from a compile by *compile_*, whose
        program is cached too, with the text that is *asked*. Raise `CompileError` if the code does not compile, or a
        name means nothing in it."""
        from .nvrtc_processes import compile_traced

        found: Lowered | None = None

        def compile_asked(compile_: CompileNames, unit: TranslationUnit) -> Compiled:
            nonlocal found
            compiled = compile_(dataclasses.replace(unit, code=f"{unit.code}{asked}"), names)
            found = Lowered(compiled.names, compiled.log, "built")
            return compiled

        here = functools.partial(compile_asked, compile_)

        def built() -> Lowered:
            assert found is not None
            return found

        def key_of(program: CacheKey) -> CacheKey:
            parts = ("program", program.digest), ("names", json.dumps(list(names))), ("with", "log"), ("asked", asked)
            return CacheKey("names", self.unit.name, parts)

        def put_names(program: CacheKey) -> None:
            current_store().put(key_of(program), json.dumps(built()[:2]).encode())

        known, _ = self._recorded_or_compiled(here, _Checks(), put_names)
        if known is None:
            self._found = None
            self._compiled_and_recorded(here, _Checks(), functools.partial(compile_asked, compile_traced))
            if self._found is not None:  # the program is cached: a later process that finds it wants the names too
                put_names(self._current().key)
            return built()
        program, manifest = known

        def build() -> bytes | None:
            data, is_certain = self._compile(here, _Checks(), manifest)
            if not is_certain:
                return None
            current_store().put(program, data)
            return json.dumps(built()[:2]).encode()

        lowered = current_store().fetch(key_of(program), build)
        if lowered is None or found is not None:
            return built()
        known_names, log = json.loads(lowered.data)
        return Lowered(known_names, log, lowered.origin)

    def _recorded_or_compiled(
        self, compile_: Compile, checks: _Checks, put_more: Callable[[CacheKey], None]
    ) -> tuple[KnownHeaders | None, bytes | None]:
        """Return the headers and the key, or None if only a compile can find them; and the program, if it is new and
        was compiled now: then *put_more* has been called with its key, before other processes find it. Raise
        `CompileError` for a header that cannot be read."""
        try:
            known = self.recorded()
            data = self._compiled_first(compile_, checks, put_more) if known is None else None
            return known or self.known(), data
        except OSError as error:
            raise CompileError(self.unit.name, f"{error.filename}: {error.strerror}") from error

    def _compiled_first(self, compile_: Compile, checks: _Checks, put_more: Callable[[CacheKey], None]) -> bytes | None:
        """Compile the program and meanwhile find its headers, if no cache can have it; record both. Return ``None`` if
        that is not so or cannot be done, or another process has done it."""
        store = current_store()
        if not self._is_new(store):
            return None
        from .unit_headers import compiled_with_headers

        data: bytes | None = None
        start = time.perf_counter()

        def record() -> bytes | None:
            nonlocal data
            result = compiled_with_headers(self._headers.text, lambda: self._checked(compile_, checks))
            if result is None or result[1] is None:
                return None
            data = _packed(result[0])
            with self._lock:
                self._headers.note(result[1], time.monotonic())
                key = self._current().key
            store.put(key, data, built_since=start)
            _put_checked(key, checks.called, checks.hidden)
            put_more(key)
            self._compiled_with(result[1])
            self._found = key.digest
            return result[1].packed

        store.fetch(self.base_key, record, is_portable=lambda _: False)
        return data

    def _is_new(self, store: CacheStore) -> bool:
        return (
            self._is_cacheable
            and not store.settings.verify
            and not store.settings.read_only
            and store.remote is None
            and store.get(self.base_key) is None
            and store.get(self._keys.source) is None
        )

    def _compiled_with(self, manifest: HeaderManifest) -> None:
        """Note that there is a program of this source, if it is not compiled in less time than that takes, and begin to
        precompile its headers for others."""
        if _is_slow(manifest):
            from .nvrtc_processes import precompile

            current_store().put(self._keys.source, b"")
            precompile(self.unit, manifest)

    def _compile(self, compile_: Compile, checks: _Checks, manifest: HeaderManifest) -> tuple[bytes, bool]:
        """Compile the program. Return it, and whether its headers are those of *manifest*: where one was edited
        meanwhile, nobody knows which text was compiled."""
        data = _packed(self._checked(compile_, checks))
        if is_certain := manifest.refreshed() is not None:
            self._compiled_with(manifest)
        return data, is_certain

    def _checked(self, compile_: Compile, checks: _Checks) -> Compiled:
        if not (called := checks.called):
            return compile_(self.unit)
        from ..platform.child_process import ChildEndedError
        from .prototype_assertions import has_structs, list_hidden, questions, raise_understood, with_assertions

        for of_structs in (True, False) if has_structs(called) else (False,):
            asked = questions(called) if of_structs else []
            unit = with_assertions(self.unit, called, of_structs=of_structs)
            try:
                compiled = compile_(unit, asked) if asked else compile_(unit)
            except CompileError as error:
                if isinstance(error.__cause__, ChildEndedError):  # NVRTC would end again, at the same limit
                    raise
                raise_understood(error, self.unit.name, called)
            else:
                checks.hidden = list_hidden(called, [compiled.names[each] for each in asked])
                return compiled
        checks.hidden = list_hidden(called, [])
        return compile_(self.unit)  # nothing can be told of one of the functions, which the unit need not define

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

    def _compiled_and_recorded(self, compile_: Compile, checks: _Checks, traced: Compile | None = None) -> bytes:
        """Compile the program, whose headers only NVRTC can report. If it does, as *traced* lets it, the program is
        cached."""
        if not self._is_cacheable or self._headers.are_unclear or not nvrtc_reports_headers():
            return _packed(self._checked(compile_, checks))
        began = time.time_ns()
        from .nvrtc_processes import compile_traced

        compiled = self._checked(traced or compile_traced, checks)
        data = _packed(compiled)
        with self._lock:
            if not compiled.headers or not self._headers.find(compiled.headers):
                return data
            key, manifest = self._current()
        if not dataclasses.replace(manifest, recorded=began).is_settled:
            # One is so new that it may have been edited after NVRTC read it. Now it is known which to watch.
            data, is_certain = self._compile(compile_, checks, manifest)
            if not is_certain:
                return data
        current_store().put(key, data)
        _put_checked(key, checks.called, checks.hidden)
        self._found = key.digest
        return data


def _put_checked(program: CacheKey, called: Called, hidden: Called) -> None:
    """Note that the functions *called* of *program* have the types of the calls, but for the structs of those that are
    *hidden*."""
    for each in called:
        current_store().put(checked_key(program, each), _HIDDEN if each in hidden else b"")


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
