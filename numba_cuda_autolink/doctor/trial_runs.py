# SPDX-License-Identifier: BSD-2-Clause
"""The runs of ``doctor``'s trials, in processes of their own, and their results."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from typing import Any, NamedTuple

from ..installed_packages import dotted
from ..missing_parts import HEADERS, LIBRARIES
from . import trial_script
from .trial_script import NOT_FOUND, NOT_LOADED

START = "start"  # in place of a trial, if Python does not get to the first
# What numba-cuda is built on, in the order of its imports, and the packages that have it.
IMPORTED = {
    "numpy": "numpy",
    "llvmlite.binding": "llvmlite",
    "numba": "numba",
    "cuda.pathfinder": "cuda-pathfinder",
    "cuda.bindings.driver": "cuda-bindings",
    "cuda.core": "cuda-core",
    "numba_cuda": "numba-cuda",
    "numba.cuda.cudadrv.driver": "numba-cuda",
    "numba.cuda.autolink.cache": "numba-cuda-autolink",
}
_FOUND_APART = [name for name, headers in HEADERS.items() if headers.is_found_apart]
PARTS = (*(f"library {name}" for name in LIBRARIES), "libdevice", *(f"headers {name}" for name in _FOUND_APART))
_VERSIONS = ("version nvrtc", "version nvJitLink", "driver", "version driver")
_IMPORTS = tuple(f"import {module}" for module in IMPORTED)
AFTER_IMPORT = (*(f"version {name} headers" for name in _FOUND_APART), "state", "settings", "cache", "build")
NAMES = (*PARTS, *_VERSIONS, *_IMPORTS, *AFTER_IMPORT, "modules")
_NOT_TRIED = "not tried"
_LIMIT = 120  # seconds of all trials
# What changes how libraries are found, and how kernels are compiled.
_VARIABLES = ("NUMBA_", "CUDA_HOME", "CUDA_PATH", "CUDA_TOOLKIT", "LD_LIBRARY_PATH", "LD_PRELOAD")


class End(NamedTuple):
    """*How* a trial ended the process that ran it, and whether the process *was_killed* since it took too long."""

    how: str
    was_killed: bool = False


class Trials(NamedTuple):
    """The *results* of trials by their names, and those that *ended* the process that ran them."""

    results: dict[str, Any]
    ended: dict[str, End]

    def failed_import(self) -> tuple[str, str] | None:
        """Return the module that cannot be imported, and why; ``None`` if all can."""
        for name in _IMPORTS:
            if result := self.results.get(name):
                return name.partition(" ")[2], result["failed"] if isinstance(result, dict) else result
        return None

    def builds(self) -> bool:
        """Whether a kernel was built."""
        return self.results.get("build") == ""

    def part(self, name: str) -> str:
        """Return where the trial *name* found a library, libdevice or headers, or why not."""
        result, end = self.results.get(name), self.ended.get(name)
        return result if isinstance(result, str) else f"{NOT_LOADED}: {end.how}" if end else _NOT_TRIED

    def parts(self) -> dict[str, str]:
        """Return where each library and header directory of the CUDA toolkit is, and what the driver is for."""
        found = {}
        for name in PARTS:
            if isinstance(result := self.results.get(name), dict):
                return {"cuda.pathfinder": result["failed"]}
            kind, _, what = name.partition(" ")
            found[f"{what} headers" if kind == "headers" else what or kind] = self.part(name)
        driver = dotted(self.version("driver"))
        found["driver"] = f"for CUDA {driver}" if driver else f"{NOT_FOUND}: kernels run in the emulator only"
        return found

    def version(self, name: str) -> tuple[int, ...]:
        """Return ``(major, minor)`` of what has this *name*; empty if it was not found."""
        result = self.results.get(f"version {name}")
        return tuple(result) if isinstance(result, list) else ()

    def state(self) -> dict[str, str]:
        """Return what numba-cuda uses, or why it cannot be asked."""
        if failed := self.failed_import():
            return {"import": f"failed at {failed[0]}: {failed[1]}"}
        for name, end in self.ended.items():
            if name in ("state", *_IMPORTS):
                return {name: f"ended Python: {end.how}"}
        state: dict[str, str] = self.results.get("state", {"state": _NOT_TRIED})
        return state


def run_trials() -> Trials:
    """Run all trials in a process, and those after one that ends it in another."""
    trials = Trials({}, {})
    is_full = os.environ.get("NUMBA_CUDA_AUTOLINK_TRACEBACK") == "full"
    while True:
        lines, code = run_process(_left(trials), None if is_full else subprocess.DEVNULL)
        name = ""
        for line in lines:
            name, *result = json.loads(line)
            if result:
                trials.results[name], name = result[0], ""
        if not lines and code:
            trials.ended[START] = End(_why_none_starts())
            return trials
        if not name:
            trials.results["variables"] = _variables_at_fault(trials)
            return trials
        if code is None:
            trials.ended[name] = End(f"it took longer than {_LIMIT} s", was_killed=True)
        else:
            trials.ended[name] = End(signal.Signals(-code).name if code < 0 else f"exit code {code}")


def _left(trials: Trials) -> list[str]:
    """Return the trials that have not run, and the imports before them."""
    if trials.ended.keys() & set(_IMPORTS):
        return ["modules"]
    done = trials.results.keys() - set(_IMPORTS) | trials.ended.keys()
    return [name for name in NAMES if name not in done]


def _why_none_starts() -> str:
    """Return the last line that Python prints where it cannot run trials."""
    command = [sys.executable, trial_script.__file__, "version driver"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    return done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"


def run_process(
    names: list[str], stderr: int | None, environment: dict[str, str] | None = None
) -> tuple[list[str], int | None]:
    """Run the trials *names* in a process. Return the lines that it printed, and its exit code; ``None`` if it had to
    be killed, with those that it had started."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        command = [sys.executable, trial_script.__file__, *names]
        process = subprocess.Popen(command, stdout=output, stderr=stderr, start_new_session=True, env=environment)
        code: int | None = None
        try:
            code = process.wait(_LIMIT)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if code is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        return output.read().splitlines(), code


def _variables_at_fault(trials: Trials) -> list[str]:
    """Return the environment variable without which a kernel can be built, if with it it cannot; or all of them, if it
    takes more than one."""
    given = sorted(name for name in os.environ if name.startswith(_VARIABLES))
    if not (trials.results.get("build") or "build" in trials.ended) or not _builds_without(given):
        return []
    return next(([name] for name in given if len(given) == 1 or _builds_without([name])), given)


def _builds_without(variables: list[str]) -> bool:
    """Whether a kernel can be built without these environment variables; not if there are none."""
    environment = {name: value for name, value in os.environ.items() if name not in variables}
    lines, _ = run_process([*_IMPORTS, "build"], subprocess.DEVNULL, environment) if variables else ([], None)
    return bool(lines) and json.loads(lines[-1]) == ["build", ""]
