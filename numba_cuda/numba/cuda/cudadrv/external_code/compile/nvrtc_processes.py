# SPDX-License-Identifier: BSD-2-Clause
"""Compile translation units in child processes, with limits of memory and time.

No source takes this process down, and Ctrl-C ends a compile at once. One child is kept while this process runs, with
the headers that it has precompiled. NVRTC compiles one source at a time in each process: more children run while more
threads compile.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any

from cuda.core import ProgramOptions

from numba_cuda_autolink.settings import parse_size

from ..cache.entry import CacheKey
from ..cache.settings import logger
from ..cache.store import current_store
from ..diagnostics import timeline
from ..headers.manifest import HeaderManifest
from ..headers.outside_words import find_time
from ..inputs.link_input import split_at_markers
from ..platform.child_process import (
    ChildEndedError,
    ChildError,
    ChildPool,
    ChildProcess,
    ChildStartError,
    limited_memory,
)
from . import nvrtc, nvrtc_child, precompiled_headers
from .nvrtc import Compiled, CompileError
from .translation_unit import TranslationUnit, fixed_include_paths, working_directory

JOBS = "NUMBA_CUDA_AUTOLINK_JOBS"
MEMORY = "NUMBA_CUDA_AUTOLINK_COMPILE_MEMORY"
TIME = "NUMBA_CUDA_AUTOLINK_COMPILE_TIME"

_IN_LIBRARY = {"source of autolink.cxx": "the source"}
_MOST_MEMORY = 16 << 30  # bytes, or half of the machine's if that is less
_MOST_SECONDS = 900.0
_OUT_OF_MEMORY = "catastrophic error: out of memory"  # as NVRTC says it, where it can still answer


class NvrtcProcess(ChildProcess):
    """A child process that compiles, and the headers that it has precompiled."""

    def __init__(self) -> None:
        super().__init__(nvrtc_child.__file__, memory=memory_limit(), has_folder=True, has_packages=False)
        self.headers = precompiled_headers.PrecompiledHeaders(self.folder)


processes = ChildPool.of_process(NvrtcProcess)


def is_ending() -> bool:
    """Whether the interpreter is ending, and only runs what was registered with `atexit`: then no threads start."""
    return not threading.main_thread().is_alive()


def most_jobs() -> int:
    """Return how many units may be compiled concurrently: ``NUMBA_CUDA_AUTOLINK_JOBS``, or else the number of CPUs
    that this process may use; one in an embedded Python, which has no interpreter to start, and in an ending one."""
    if not sys.executable or is_ending():
        return 1
    with contextlib.suppress(KeyError, ValueError):
        return max(1, int(os.environ[JOBS]))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_limit() -> int:
    """Return how many bytes a process that compiles may take: ``NUMBA_CUDA_AUTOLINK_COMPILE_MEMORY`` (such as 4G), or
    else half of the machine's memory, at most 16 GiB."""
    return parse_size(os.environ.get(MEMORY, "").strip()) or limited_memory(_MOST_MEMORY)


def time_limit() -> float:
    """Return how many seconds a compile may take: ``NUMBA_CUDA_AUTOLINK_COMPILE_TIME``, or else 900."""
    with contextlib.suppress(KeyError, ValueError):
        return max(1.0, float(os.environ[TIME]))
    return _MOST_SECONDS


def compile_unit(
    unit: TranslationUnit, names: Sequence[str] = (), *, running: set[ChildProcess] | None = None
) -> Compiled:
    """Compile *unit* in a child process, and lower the name expressions *names*. Safe to call from threads. The child
    is in *running* meanwhile: of several that compile at once, none is ended when it is done.

    Raises `CompileError` if the code does not compile, a limit is reached, or NVRTC crashes.
    """
    options = nvrtc_options(unit)
    if not sys.executable or is_ending():
        return _compile_here(unit, options, names)
    try:
        with processes.child() as child, _noted(child, running):
            code, given = child.headers.use(unit, options)
            compiled = run_in_child(child, unit, code, given, names)
            if len(given) > len(options) and current_store().settings.verify:
                _verify(unit, compiled, run_in_child(child, unit, unit.code, options, names))
    except ChildStartError as error:
        logger.warning("NVRTC runs in this process: %s", error)
        return _compile_here(unit, options, names)
    if running is None:
        processes.trim()
    return compiled


def precompile(unit: TranslationUnit, manifest: HeaderManifest) -> None:
    """Begin to precompile the headers that *unit* begins with, once: it was compiled, and read those of *manifest*.
    Other sources that begin in the same way will use them."""
    child = processes.kept
    if child is None or is_ending() or not precompiled_headers.worth(unit):
        return
    options = nvrtc_options(unit)
    with contextlib.suppress(ChildError), processes.child() as child:
        if child is processes.kept and (made := child.headers.to_make(unit, options, manifest)) is not None:
            path, source = made
            arguments = _arguments(unit, options, ()) | {"to": path}
            child.request(arguments, [source.encode()], timeout=time_limit())


def nvrtc_options(unit: TranslationUnit) -> list[str]:
    """Return the options of *unit* as NVRTC takes them. Raises `CompileError` if there is no such option."""
    try:
        # A tuple would be taken for a macro and its value.
        given = {name: list(value) if isinstance(value, tuple) else value for name, value in unit.options}
        made = ProgramOptions(name=unit.name, **given).as_bytes("nvrtc", unit.output)
        return [os.fsdecode(option) for option in made]
    except Exception as error:
        raise CompileError(unit.name, f"{error}") from error


def _compile_here(unit: TranslationUnit, options: Sequence[str], names: Sequence[str]) -> Compiled:
    try:
        compiled = nvrtc.run_nvrtc(unit.code.encode(), **_run(unit, options, names))
        return dataclasses.replace(compiled, log=_named(compiled.log, unit))
    except (RuntimeError, ValueError) as error:
        raise CompileError(unit.name, _named(f"{error}", unit)) from error


def _named(log: str, unit: TranslationUnit) -> str:
    """Return NVRTC's *log* with the names that the sources of *unit* have."""
    if not (unit.option("lineinfo") or unit.option("debug")):
        return log
    from .debug_sources import without_files

    return without_files(log)


@contextlib.contextmanager
def _noted(child: ChildProcess, running: set[ChildProcess] | None) -> Any:
    if running is None:
        yield
        return
    running.add(child)
    try:
        yield
    finally:
        running.discard(child)


def run_in_child(
    child: ChildProcess,
    unit: TranslationUnit,
    code: str,
    options: Sequence[str],
    names: Sequence[str],
) -> Compiled:
    """Have a child run NVRTC, as all compiles of this process do. Raises `CompileError` as `compile_unit`."""
    timeline.in_process(child.pid)
    try:
        reply = child.request(_arguments(unit, options, names), [code.encode()], timeout=time_limit())
    except (UnicodeEncodeError, RuntimeError) as error:
        raise CompileError(unit.name, f"{error}") from error
    except ChildEndedError as error:
        raise CompileError(unit.name, _ended(error)) from error
    except ChildError as error:
        child.close()  # its script failed, where NVRTC should have
        raise CompileError(unit.name, f"NVRTC failed: {error}") from error
    content = reply.content
    if "error" in content:
        log = _named(content["error"], unit)
        raise CompileError(unit.name, f"{log.rstrip()}\n{_limits()}" if _OUT_OF_MEMORY in log else log)
    made, *texts = reply.blobs
    lookups = content["lookups"] | {"texts": texts}
    if lookups["unknown"] is None:
        whole = "\n".join((code, *options))
        read = [*split_at_markers(unit.text, unit.name), ("the source", whole)]
        texts_of = ((text, _IN_LIBRARY.get(name, name)) for name, text in read)
        used = (find_time(text.encode("utf-8", "surrogateescape"), name) for text, name in texts_of)
        lookups["unknown"] = next(filter(None, used), None)
    return Compiled(made, _named(content["log"], unit), content["names"], lookups)


def _arguments(unit: TranslationUnit, options: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    return {
        "run": _run(unit, options, names),
        "library": nvrtc.library_path(),
        "folder": working_directory(),
        "precompiles": precompiled_headers.enabled(),
        "packages": fixed_include_paths(),
        "to": "",
    }


def _run(unit: TranslationUnit, options: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    return {"name": unit.name, "options": list(options), "output": unit.output, "names": list(names)}


def _ended(error: ChildEndedError) -> str:
    return f"NVRTC ended ({error.how}){error.printed and ': '}{error.printed}\n{_limits()}"


def _limits() -> str:
    memory = memory_limit() / (1 << 30)
    return f"It may take {memory:.3g} GiB of memory ({MEMORY}) and {time_limit():g} s ({TIME})."


def _verify(unit: TranslationUnit, compiled: Compiled, plain: Compiled) -> None:
    """Raise `CacheMismatchError` if *unit* compiles to other code with precompiled headers than without."""
    key = CacheKey("program", unit.name, (("variable", precompiled_headers.VARIABLE),))
    current_store().verify(key, compiled.code, "precompiled headers", lambda: plain.code)
