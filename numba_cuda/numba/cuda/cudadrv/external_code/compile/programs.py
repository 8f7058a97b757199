# SPDX-License-Identifier: BSD-2-Clause
"""The cache of programs: CUDA C++ compiled to LTO-IR or relocatable cubins, in memory and on disk.

A program's key is its translation unit, NVRTC, and the content of every header. Which headers those are is kept under
the same key without them: as long as these files are as they were, nothing is read but their states.

=====================  ===============================================================================
``cuda_compile``       what NVRTC is given, and what comes of it
``nvrtc_call``         the call of NVRTC
``compile_jobs``       compiling several units at a time
``header_scan``        the headers that a text includes, ``header_macros`` those that a macro names
``headers``            whether they are still what they were
``cache_store``        where programs and records of headers are kept
=====================  ===============================================================================
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import cuda.core

from .. import progress
from ..cache.key import CacheKey
from ..cache.store import Fetched, Origin, current_store
from ..headers.manifest import MANIFEST_FORMAT, HeaderManifest, HeaderWatch
from ..inputs import kinds
from ..inputs.kinds import Kind
from ..inputs.link_input import LinkInput
from ..target import Target
from ..toolkit import nvrtc_build, nvrtc_version
from .nvrtc import Compiled, CompileError
from .translation_unit import (
    TranslationUnit,
    compile_unit,
    fixed_include_paths,
    messages_outside_toolkit,
    toolkit_include_paths,
)

# What it takes to compile is imported where it is needed: a program that is cached is found without.
if TYPE_CHECKING:
    from ..headers.scan import SourceText

# Options that make NVRTC write a file or read one that is no header: a program compiled with them is not cached.
_NOT_CACHEABLE = ("create_pch", "fdevice_time_trace", "pch", "pch_dir", "time", "use_pch")

# The first NVRTC that can tell which headers it reads.
_TELLS_HEADERS = (13, 0)

# Bytes of headers from which on compiling takes longer than starting a process for it.
_MANY_HEADERS = 1 << 20

# Records of headers that are remembered, the least recently used forgotten first: one of CUB's takes 100 KB.
_MOST_WATCHED = 256

Compile = Callable[[TranslationUnit], Compiled]


@dataclass(frozen=True)
class Program:
    """A compiled source.

    Attributes
    ----------
    code:
        The code that NVRTC made.
    kind:
        `kinds.LTO_IR` or `kinds.CUBIN`.
    origin:
        ``"built"``, or from which cache: ``"memory"``, ``"disk"``.
    seconds:
        How long it took to build or find.
    """

    code: bytes = field(repr=False)
    kind: Kind
    origin: Origin
    seconds: float


class SourceError(Exception):
    """One of several sources does not compile: ``error`` is the `CompileError`, ``number`` that source's index."""

    def __init__(self, number: int, error: CompileError):
        self.number = number
        self.error = error
        super().__init__(str(error))


def compiled(source: LinkInput, target: Target) -> Program:
    """*source* compiled for *target*, a `Target`; NVRTC's warnings become a Python warning.

    Raises
    ------
    CompileError
        If it does not compile.
    """
    entry = _entry(source, target)
    return entry.program(entry.fetched(compile_unit))


def all_compiled(sources: Sequence[LinkInput], target: Target) -> list[Program]:
    """Each of *sources* compiled for *target*; several that take long and are in no cache are compiled at a time.

    Raises
    ------
    SourceError
        If one does not compile: the first such one.
    """
    entries = [_entry(source, target) for source in sources]
    slow = [entry for entry in dict.fromkeys(entries) if entry.is_slow()] if len(entries) > 1 else []
    if len(slow) > 1:
        from .jobs import compile_in_free_process, most_jobs

        if (jobs := min(len(slow), most_jobs())) > 1:
            return _compiled_at_a_time(entries, slow, jobs, compile_in_free_process)
    return [
        entry.program(_fetched(number, entry, compile_unit, left=len(entries) - number - 1))
        for number, entry in enumerate(entries)
    ]


def _compiled_at_a_time(entries: list[_Entry], slow: list[_Entry], jobs: int, compile_: Compile) -> list[Program]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(jobs, "compile") as pool:
        found = {
            entry: pool.submit(_fetched, number, entry, compile_)
            for number, entry in enumerate(entries)
            if entry in slow
        }
        try:
            return [
                entry.program(found[entry].result() if entry in found else _fetched(number, entry, compile_unit))
                for number, entry in enumerate(entries)
            ]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _fetched(number: int, entry: _Entry, compile_: Compile, left: int = 0) -> Fetched:
    try:
        with progress.step(f"compiling {os.path.basename(entry.unit.name)}", left):
            return entry.fetched(compile_)
    except CompileError as error:
        raise SourceError(number, error) from error


def fingerprint(source: LinkInput, target: Target) -> bytes:
    """What stands for all that *source* compiled for *target* depends on, headers included; nothing is compiled.

    Of what can be compiled but not be cached it is another one each time.
    """
    try:
        known = _entry(source, target).known()
    except Exception:  # source that is not text, say: whoever compiles it says so
        known = None
    return os.urandom(32) if known is None else known.key.digest


class _Known(NamedTuple):
    """A program's key, and the record of the headers that is in it."""

    key: CacheKey
    manifest: HeaderManifest


class _Entry:
    """A translation unit, and what is known of its headers."""

    def __init__(self, unit: TranslationUnit):
        self.unit = unit
        self.base = _base_key(unit)
        self._lock = threading.Lock()
        self._watch: HeaderWatch | None = None
        self._known: _Known | None = None

    def known(self) -> _Known | None:
        """The program's key with the headers of now, ``None`` if only a compile could tell what is read."""
        with self._lock:
            if not self._is_cacheable or not (self._are_headers_known() or self._find_headers()):
                return None
            return self._now_known()

    def is_slow(self) -> bool:
        """Whether it has yet to be compiled, with many headers."""
        known = self.known()
        if known is None:
            return True
        store = current_store()
        return known.manifest.size > _MANY_HEADERS and not store.settings.verify and not store.has(known.key)

    def fetched(self, compile_: Compile) -> Fetched:
        """The program and its log, from a cache or compiled by *compile_*."""
        start = time.perf_counter()
        known = self.known()
        if known is None:
            return Fetched(self._compiled_and_recorded(compile_), "built", time.perf_counter() - start)
        try:
            fetched = current_store().fetch(
                _reproducible(known.key), functools.partial(self._compiled, compile_, known.manifest)
            )
        except _ChangedError as changed:
            return Fetched(changed.data, "built", time.perf_counter() - start)
        return dataclasses.replace(fetched, seconds=time.perf_counter() - start)

    def program(self, fetched: Fetched) -> Program:
        """What was *fetched*, and a warning if NVRTC warned."""
        size = int.from_bytes(fetched.data[:8], "little")
        if size and (text := messages_outside_toolkit(fetched.data[8 : 8 + size].decode())):
            warnings.warn(f"NVRTC log messages: {text}", stacklevel=2)
        kind = kinds.LTO_IR if self.unit.output == "ltoir" else kinds.CUBIN
        return Program(fetched.data[8 + size :], kind, fetched.origin, fetched.seconds)

    @functools.cached_property
    def _is_cacheable(self) -> bool:
        return not any(self.unit.option(option) for option in _NOT_CACHEABLE)

    def _now_known(self) -> _Known | None:
        if self._watch is None:
            return None
        manifest = self._watch.manifest
        if self._known is None or self._known.manifest is not manifest:
            headers = f"{len(manifest.headers)} files, sha256 {manifest.digest}"
            key = CacheKey("program", self.unit.name, (*self.base.parts, ("headers", headers)))
            self._known = _Known(key, manifest)
        return self._known

    def _are_headers_known(self) -> bool:
        """Whether the headers are those that are on record, which is the case for all but new and edited sources."""
        if self._watch is None and (data := current_store().get(self.base)) is not None:
            try:
                self._watch = HeaderWatch(HeaderManifest.unpacked(data), fixed_include_paths())
            except (ValueError, KeyError, TypeError, IndexError):
                return False
        if self._watch is None:
            return False
        before = self._watch.manifest
        if not self._watch.unchanged():
            self._watch = None
            return False
        if self._watch.manifest is not before:
            current_store().put(self.base, self._watch.manifest.packed())  # files were touched, or are older now
        return True

    def _find_headers(self, traced: Sequence[str] = ()) -> bool:
        """Look at the texts for headers, and record them. Not if that does not tell which they are."""
        began = time.time_ns()
        found = self._text.scan(traced)
        if found.clocks or found.computed_probes or (found.computed_includes and not traced):
            return False
        manifest = HeaderManifest.of(found, began, traced=bool(traced))
        if manifest is None:
            return False
        self._watch = HeaderWatch(manifest, fixed_include_paths())
        current_store().put(self.base, manifest.packed())
        return True

    @functools.cached_property
    def _text(self) -> SourceText:
        from ..headers.scan import SourceText

        unit = self.unit
        search = tuple(unit.option("include_path") or ())
        before = unit.option("pre_include") or ()
        folder = None if unit.option("no_source_include") else os.path.dirname(unit.name)
        preincluded = (before,) if isinstance(before, str) else tuple(before)
        return SourceText(unit.code.encode(), folder, search, preincluded, tuple(unit.option("define_macro") or ()))

    def _compiled(self, compile_: Compile, manifest: HeaderManifest) -> bytes:
        """The program, whose headers are those of *manifest*.

        Raises
        ------
        _ChangedError
            If one was edited meanwhile, so that nobody knows which text was compiled.
        """
        data = _packed(compile_(self.unit))
        if manifest.refreshed() is None:
            raise _ChangedError(data)
        return data

    def _compiled_and_recorded(self, compile_: Compile) -> bytes:
        """The program, whose headers NVRTC alone can tell. If it does, the program can be found next time."""
        if not self._is_cacheable or (nvrtc_version() or (0, 0)) < _TELLS_HEADERS:
            return _packed(compile_(self.unit))
        began = time.time_ns()
        from . import jobs

        compiled = jobs.compile_in_child(self.unit, traces=True)
        data = _packed(compiled)
        with self._lock:
            if compiled.headers and self._find_headers(compiled.headers):
                known = self._now_known()
                if known is not None and dataclasses.replace(known.manifest, recorded=began).is_settled:
                    current_store().put(known.key, data)
        return data


class _ChangedError(Exception):
    """A header was edited while its program was compiled."""

    def __init__(self, data: bytes):
        self.data = data
        super().__init__("a header was edited while it was compiled")


def _packed(compiled: Compiled) -> bytes:
    log = compiled.log.encode()
    return len(log).to_bytes(8, "little") + log + compiled.code


def _base_key(unit: TranslationUnit) -> CacheKey:
    """What a program depends on beside its headers."""
    parts = [
        ("source", unit.code),
        ("name", unit.name),
        ("output", unit.output),
        *((f"option {name}", repr(value)) for name, value in unit.options),
        ("NVRTC", nvrtc_build()),
        ("cuda.core", cuda.core.__version__),
        ("record of headers", MANIFEST_FORMAT),
    ]
    # NVRTC writes the working directory into LTO-IR. Debuggers and profilers look for sources there; nothing else does.
    if unit.option("lineinfo") or unit.option("debug"):
        parts.append(("working directory", _working_directory()))
    return CacheKey("headers", unit.name, tuple(parts))


def _reproducible(key: CacheKey) -> CacheKey:
    """In verify mode, the key of what is the same to the byte when it is compiled again."""
    if not current_store().settings.verify or "working directory" in dict(key.parts):
        return key
    return dataclasses.replace(key, parts=(*key.parts, ("working directory", _working_directory())))


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


class _Entries:
    """The entries of this process, for as long as its store is the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: collections.OrderedDict[object, _Entry] = collections.OrderedDict()
        self._store: object = None

    def of(self, source: LinkInput, target: Target) -> _Entry:
        # Names do not tell inputs apart, but compile to other code.
        question = (source, source.name, target, toolkit_include_paths(), _working_directory())
        with self._lock:
            store = current_store()
            if store is not self._store:
                self._store = store
                self._entries.clear()
            entry = self._entries.get(question)
            if entry is None:
                entry = self._entries[question] = _Entry(TranslationUnit.of(source, target))
                if len(self._entries) > _MOST_WATCHED:
                    self._entries.popitem(last=False)
            else:
                self._entries.move_to_end(question)
        return entry


_entries = _Entries()


def _entry(source: LinkInput, target: Target) -> _Entry:
    return _entries.of(source, target)


def _forget() -> None:
    global _entries
    _entries = _Entries()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # another thread of the parent may have had it in use
