# SPDX-License-Identifier: BSD-2-Clause
"""Compile translation units concurrently: NVRTC compiles one at a time in each process."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import threading
from collections.abc import Sequence

from ..diagnostics import timeline
from ..platform.child_process import ChildError, ChildProcess, fork_lock
from . import nvrtc
from .nvrtc import Compiled, CompileError
from .translation_unit import TranslationUnit, compile_unit

JOBS = "NUMBA_CUDA_AUTOLINK_JOBS"
_in_process = fork_lock()  # held while NVRTC compiles in this process


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


def compile_in_free_process(unit: TranslationUnit, kept: list[ChildProcess] | None = None) -> Compiled:
    """Compile *unit* in this process if NVRTC is idle here, else as `compile_in_child` does. Safe to call from threads.
    Raises `CompileError` if it does not compile."""
    if _in_process.acquire(blocking=False):
        try:
            return compile_unit(unit)
        finally:
            _in_process.release()
    return compile_in_child(unit, kept=kept)


def compile_in_child(
    unit: TranslationUnit,
    names: Sequence[str] = (),
    *,
    traces: bool = False,
    kept: list[ChildProcess] | None = None,
) -> Compiled:
    """Compile *unit* in a child process, and lower the name expressions *names*; with *traces*, NVRTC reports which
    headers it reads. The child is one of *kept*, if there is one, and is kept there for the next unit: to start one
    takes a quarter of a second. Raises `CompileError` if the code does not compile, or NVRTC crashes."""
    content = dataclasses.asdict(unit) | {"options": dict(unit.options), "names": list(names)}
    child = None
    try:
        child = kept.pop() if kept else ChildProcess(nvrtc.__file__)
        timeline.in_process(child.pid)
        reply = child.request(content | ({"traces": child.folder()} if traces else {}))
        if kept is not None:
            kept.append(child)
            child = None
    except TypeError:  # an option may be any object, which cannot be sent
        return compile_unit(unit, names)
    except ChildError as error:
        raise CompileError(unit.name, f"NVRTC in a child process: {error}") from error
    finally:
        if child is not None:
            child.close()
    if "error" in reply.content:
        raise CompileError(unit.name, reply.content["error"])
    content = reply.content
    return Compiled(reply.blobs[0], content["log"], tuple(content["headers"]), content["names"])
