# SPDX-License-Identifier: BSD-2-Clause
"""Compiling several translation units at a time. NVRTC compiles one at a time in each process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping

from . import nvrtc as nvrtc_call
from .nvrtc import Compiled, CompileError
from .translation_unit import TranslationUnit, compile_unit

JOBS = "NUMBA_CUDA_AUTOLINK_JOBS"

_START = (
    "import json, runpy, sys; sys.path[:] = json.loads(sys.argv[1]); runpy.run_path(sys.argv[2], run_name='__main__')"
)
_nvrtc_here = threading.Lock()


def most_jobs(environ: Mapping[str, str] = os.environ) -> int:
    """How many units may be compiled at a time: what ``NUMBA_CUDA_AUTOLINK_JOBS`` says, else the number of CPUs that
    this process may use. Without an interpreter to run (in an embedded Python), one."""
    if not sys.executable:
        return 1
    try:
        return max(1, int(environ[JOBS]))
    except (KeyError, ValueError):
        pass
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def compile_beside(unit: TranslationUnit) -> Compiled:
    """Compile *unit*: in this process if NVRTC is free here, else in another one. Safe to call from threads.

    Raises
    ------
    CompileError
        If the code does not compile.
    """
    if _nvrtc_here.acquire(blocking=False):
        try:
            return compile_unit(unit)
        finally:
            _nvrtc_here.release()
    return compile_elsewhere(unit)


def compile_elsewhere(unit: TranslationUnit, *, traces: bool = False) -> Compiled:
    """Compile *unit* in a process of its own; with *traces*, NVRTC tells which headers it reads.

    Raises
    ------
    CompileError
        If the code does not compile, or NVRTC crashes.
    """
    call = {
        "code": unit.code,
        "name": unit.name,
        "options": dict(unit.options),
        "output": unit.output,
        "traces": traces,
    }
    try:
        question = json.dumps(call)
    except TypeError:  # an option that JSON cannot tell
        return compile_unit(unit)
    path = json.dumps([entry for entry in sys.path if isinstance(entry, str)])
    command = [sys.executable, "-c", _START, path, nvrtc_call.__file__]
    done = subprocess.run(command, input=question.encode(), capture_output=True)
    if done.returncode < 0:
        raise CompileError(unit.name, f"NVRTC's process was ended by {signal.Signals(-done.returncode).name}")
    if done.returncode:
        raise CompileError(unit.name, f"NVRTC's process failed: {done.stderr.decode(errors='replace').strip()}")
    return nvrtc_call.unpack(unit.name, done.stdout)
