# SPDX-License-Identifier: BSD-2-Clause
"""The cache of programs, in memory and on disk: CUDA C++ compiled to LTO-IR or relocatable cubins, and LLVM bitcode."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import os
import re
import threading
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from numba_cuda_autolink.printable_texts import bounded
from numba_cuda_autolink.short_tracebacks import warn_user

from ..cache.entry import CacheKey
from ..cache.store import CacheStore, Origin, current_store
from ..diagnostics import progress, timeline
from ..diagnostics.signal_handlers import interrupts_unchanged
from ..headers.file_state import Header
from ..inputs import kinds
from ..inputs.c_prototypes import CalledFunction
from ..inputs.kinds import Kind
from ..inputs.link_input import LinkInput
from ..platform.target import Target
from .nvrtc import Compiled, CompileError
from .program_cache import CachedUnit, Called, Compile, FetchedProgram, KnownHeaders, Lowered, unpacked
from .translation_unit import (
    TranslationUnit,
    messages_outside_toolkit,
    toolkit_include_paths,
    working_directory,
)

if TYPE_CHECKING:
    from ..platform.child_process import ChildProcess

# Units whose headers are watched; the least recently used is dropped first. The record of CUB's headers has 100 KB.
_MOST_WATCHED = 256
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\\\n]|\\.)*", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Program:
    """Compiled code, of *kind* LTO-IR, cubin or, from bitcode, PTX; *origin* is ``"built"`` or the cache that it came
    from, and *seconds* how long it took to build or find. *key* is the digest of the key of a source's program, with
    the headers that it was compiled with; ``None`` if these are not known. *hidden* are the functions that calls
    reference, but whose structs by value C++ does not take apart, so that they were not compared. *warning* is what the
    user is told of what NVRTC printed, nothing for messages about the toolkit's own headers."""

    code: bytes = field(repr=False)
    kind: Kind
    origin: Origin
    seconds: float
    key: bytes | None = None
    hidden: tuple[CalledFunction, ...] = ()
    warning: str = ""


class SourceError(Exception):
    """One of several sources does not compile: ``error`` is the `CompileError`, ``number`` that source's index.
    ``others`` are the errors of those that were found not to compile until then."""

    def __init__(self, number: int, error: CompileError, others: Sequence[SourceError] = ()):
        self.number = number
        self.error = error
        self.others = tuple(others)
        super().__init__(str(error))


@interrupts_unchanged()
def compiled(
    link_input: LinkInput, target: Target, referenced: Collection[str] | None = None, called: Called = ()
) -> Program:
    """Return *link_input*, CUDA C++ or bitcode, compiled for *target*, from a cache or now. Of bitcode, only the
    *referenced* functions and what they need, or all of it for ``None``. NVRTC's warnings become a Python warning.
    Raises `CompileError` if it does not compile, or (`PrototypeError`) one of the functions *called* has other types
    than the call."""
    if link_input.kind is kinds.BITCODE:
        from . import bitcode

        with timeline.span("compile", link_input.name) as span:
            kind, fetched = bitcode.compiled(link_input, target, referenced)
            span.origin = fetched.origin
        return Program(fetched.data, kind, fetched.origin, fetched.seconds)
    unit = unit_of(link_input, target)
    return _program(unit, _timed(_Checked(unit, tuple(called)), compile_unit))


@interrupts_unchanged()
def lowered_names(link_input: LinkInput, target: Target, names: Sequence[str], asked: str = "") -> Lowered:
    """Return the lowered names of the name expressions *names* in *link_input*, CUDA C++, from a cache or from a
    compile for *target*, whose program is cached too. The text that is *asked* follows that of the source: it makes no
    code and reads no header. Raises `CompileError` if it does not compile."""
    return unit_of(link_input, target).lowered(names, compile_unit, asked)


def header_texts(link_input: LinkInput, target: Target, *, with_toolkit: bool = True) -> Iterator[str]:
    """Yield the texts of a source and of the headers that it reads, as far as these are known; *with* those of CUDA's
    *toolkit*, or without."""
    yield link_input.text
    yield from (text for _, text in header_files(link_input, target, with_toolkit=with_toolkit))


def included_files(link_input: LinkInput, target: Target, *, with_toolkit: bool = True) -> Iterator[tuple[str, str]]:
    """Yield the paths and texts of the headers that a source includes, which itself need not compile."""
    directives = "\n".join(_DIRECTIVE.findall(link_input.text)).encode()
    options = dataclasses.replace(link_input.options, prologue="")
    source = dataclasses.replace(link_input, code=directives, options=options)
    # LTO-IR is not assembled, which headers may not let happen.
    yield from header_files(source, dataclasses.replace(target, lto=True), with_toolkit=with_toolkit)


def texts_and_headers(link_input: LinkInput, target: Target) -> Iterator[str]:
    """Yield the text of a source, which need not compile, and the texts of the headers that it includes."""
    yield link_input.text
    yield from (text for _, text in included_files(link_input, target))


def header_files(link_input: LinkInput, target: Target, *, with_toolkit: bool = True) -> Iterator[tuple[str, str]]:
    """Yield the paths and texts of the headers that a source reads, as far as these are known; *with* those of CUDA's
    *toolkit*, or without."""
    for header in _headers_of(link_input, target):
        if not with_toolkit and header.path.startswith(toolkit_include_paths()):
            continue
        with contextlib.suppress(OSError), open(header.path, errors="replace") as file:
            yield header.path, file.read()


def _headers_of(link_input: LinkInput, target: Target) -> tuple[Header, ...]:
    known = _known(link_input, target)
    return () if known is None else known.manifest.headers


def _known(source: LinkInput, target: Target) -> KnownHeaders | None:
    """Return the headers and the key of a source: those on record, or else of a compile, if it compiles."""
    unit = unit_of(source, target)
    with contextlib.suppress(CompileError):
        if (known := unit.known()) is not None:
            return known
        unit.fetched(compile_unit)
    return unit.known()


def note_checked(link_input: LinkInput, target: Target, called: Called) -> None:
    """Note that the functions *called* of *link_input* have the types of the calls, as its lowered names show."""
    unit_of(link_input, target).note_checked(called)


def all_compiled(sources: Sequence[LinkInput], target: Target, called: Sequence[Called] | None = None) -> list[Program]:
    """Return each of *sources*, CUDA C++, compiled for *target*; slow ones that are in no cache are compiled
    concurrently. *called* are the functions in each of them whose types are checked. Raises `SourceError` when one does
    not compile: sources that are not begun by then are left out."""
    units = [
        _Checked(unit_of(source, target), tuple(functions))
        for source, functions in zip(sources, called or [()] * len(sources), strict=True)
    ]
    slow = [unit for unit in dict.fromkeys(units) if unit.cached.is_slow(unit.called)] if len(units) > 1 else []
    done = _all_fetched({unit: units.index(unit) for unit in slow})
    return [
        _program(unit.cached, done.get(unit) or _fetched(number, unit, compile_unit, len(units) - number - 1))
        for number, unit in enumerate(units)
    ]


def _all_fetched(numbers: Mapping[_Checked, int]) -> dict[_Checked, FetchedProgram]:
    """Compile units, whose *numbers* are their indices, concurrently; return nothing where that is no faster. Once one
    fails, no other is begun; raise `SourceError` with all failures when those that were begun have ended."""
    if len(numbers) < 2:
        return {}
    from . import nvrtc_processes

    if (jobs := min(len(numbers), nvrtc_processes.most_jobs())) < 2:
        return {}
    from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait

    failing = threading.Event()
    running: set[ChildProcess] = set()
    compile_ = functools.partial(nvrtc_processes.compile_unit, running=running)

    def fetched(number: int, unit: _Checked) -> FetchedProgram:
        if failing.is_set():
            raise CancelledError
        try:
            return _fetched(number, unit, compile_)
        except SourceError:
            failing.set()
            raise

    pool = ThreadPoolExecutor(jobs, "compile")
    try:
        # In copies of the context, which has the timeline.
        run = [(unit, contextvars.copy_context().run, number) for unit, number in numbers.items()]
        futures = {unit: pool.submit(run_, fetched, number, unit) for unit, run_, number in run}
        wait(futures.values(), return_when=FIRST_EXCEPTION)
    except BaseException:  # Ctrl-C, for example: nobody waits for what is compiled
        failing.set()
        for child in list(running):
            child.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        nvrtc_processes.processes.trim()
    raised = [each.exception() for each in futures.values() if not each.cancelled()]
    if failed := [each for each in raised if isinstance(each, SourceError)]:
        # Not `PrototypeError`, which a declaration may cause that does not matter.
        first, *others = sorted(failed, key=lambda each: type(each.error) is not CompileError)
        raise SourceError(first.number, first.error, others) from first.error
    return {unit: future.result() for unit, future in futures.items()}


def compile_unit(unit: TranslationUnit, names: Sequence[str] = ()) -> Compiled:
    """Compile *unit* as `nvrtc_processes.compile_unit` does, which is imported when nothing is cached."""
    from . import nvrtc_processes

    return nvrtc_processes.compile_unit(unit, names)


class _Checked(NamedTuple):
    """A unit, and the functions of it whose types are checked."""

    cached: CachedUnit
    called: tuple[CalledFunction, ...]


def _fetched(number: int, unit: _Checked, compile_: Compile, remaining: int = 0) -> FetchedProgram:
    try:
        source = unit.cached.unit
        with progress.step(f"compiling {os.path.basename(source.name)} for {source.option('arch')}", remaining):
            return _timed(unit, compile_)
    except CompileError as error:
        raise SourceError(number, error) from error


def _timed(unit: _Checked, compile_: Compile) -> FetchedProgram:
    _write_debug_sources(unit.cached.unit)
    with timeline.span("compile", unit.cached.unit.name) as span:
        fetched = unit.cached.fetched(compile_, unit.called)
        span.origin = fetched.origin
    return fetched


def write_debug_sources(source: LinkInput, target: Target) -> None:
    """Write the files of a generated *source* that debuggers and profilers look for, if its program names them."""
    _write_debug_sources(unit_of(source, target).unit)


def _write_debug_sources(unit: TranslationUnit) -> None:
    if unit.option("lineinfo") or unit.option("debug"):
        from .debug_sources import write_files

        write_files(unit.code)


def _program(unit: CachedUnit, fetched: FetchedProgram) -> Program:
    code, log = unpacked(fetched.data)
    warning = ""
    if log and (messages := messages_outside_toolkit(log)):
        from .nvrtc_log import in_python, title_warnings

        warning = bounded(title_warnings(messages))  # without lines of Python, which a cached link may outlive
        warn_user(in_python(warning, unit.unit.code, unit.unit.name))
    kind = kinds.LTO_IR if unit.unit.output == "ltoir" else kinds.CUBIN
    return Program(code, kind, fetched.origin, fetched.seconds, fetched.key, fetched.hidden, warning)


def program_digest(source: LinkInput, target: Target, *, on_record: bool) -> bytes | None:
    """Return the digest of the key of a source's program for *target*, with its headers as they are. If they are not on
    record, it is compiled, or, *on_record*, not; ``None`` if they cannot be determined then."""
    known = unit_of(source, target).known() if on_record else _known(source, target)
    return None if known is None else known.key.digest


def describe(source: LinkInput, target: Target) -> CacheKey:
    """Return the key of a source's program for *target*, with its headers as they are, or what describes one that is
    not cached."""
    return unit_of(source, target).describe()


def unit_of(source: LinkInput, target: Target) -> CachedUnit:
    """Return the unit of *source* for *target*: the same one for as long as this process's store is the same."""
    # Inputs that differ only in their names are equal, but compile to different code.
    places = source.name, os.path.isfile(source.name), toolkit_include_paths(), working_directory()
    return _unit(weakref.ref(current_store()), source, target, places)


@functools.lru_cache(_MOST_WATCHED)
def _unit(store: weakref.ref[CacheStore], source: LinkInput, target: Target, places: object) -> CachedUnit:
    return CachedUnit(TranslationUnit.of(source, target))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unit.cache_clear)  # another thread of the parent may hold a unit's lock
