# SPDX-License-Identifier: BSD-2-Clause
"""Trying a link in a child process, and telling what happened: some damage shows only in that nvJitLink crashes.

The child is a new interpreter, not a fork. It needs neither a GPU nor numba-cuda and starts in about a tenth of a
second.
"""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cuda.core import LinkerOptions

from ..compile.dispatch import compiled
from ..inputs.kinds import ARCHIVE, CUBIN, FATBIN, LTO_IR, OBJECT, PTX, Kind
from ..inputs.link_input import LinkInput
from ..target import Target
from . import trial_child

TIMEOUT = 60.0
_TYPES = {
    PTX: "PTX",
    LTO_IR: "LTOIR",
    CUBIN: "CUBIN",
    FATBIN: "FATBIN",
    OBJECT: "OBJECT",
    ARCHIVE: "LIBRARY",
}
_START = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
# What a link without its kernel, or without the rest of its code, says anyway.
_INCOMPLETE = re.compile(r"Undefined reference to|Unresolved extern|undefined symbol|NO_MODULE_IN_PROGRAM")


class TrialError(RuntimeError):
    """No child process could be started, so that nothing was tried."""


@dataclass(frozen=True)
class Outcome:
    """How one link went.

    Attributes
    ----------
    ok:
        Whether it succeeded.
    log:
        What nvJitLink reported, and what it printed by itself.
    crash:
        How the process ended in the middle of it, such as ``"SIGSEGV"`` or ``"no answer within 60 s"``; else empty.
    """

    ok: bool
    log: str = ""
    crash: str = ""

    @property
    def is_incomplete(self) -> bool:
        """Whether it failed for nothing but missing symbols."""
        return not self.ok and not self.crash and bool(_INCOMPLETE.search(self.log))


@dataclass(frozen=True)
class Trial:
    """What came of `try_link`.

    Attributes
    ----------
    ok:
        Whether the link succeeded.
    message:
        What happened, in a sentence or more.
    signal:
        The name of the signal that ended the process, such as ``"SIGSEGV"``; ``None`` if it lived.
    culprit:
        The input that is at fault, if one is.
    log:
        What nvJitLink said.
    """

    ok: bool
    message: str
    signal: str | None = None
    culprit: LinkInput | None = None
    log: str = field(default="", repr=False)


def try_link(inputs: Iterable[LinkInput], target: Target, *, timeout: float = TIMEOUT) -> Trial:
    """Link *inputs* for *target* (a `Target`) in a child process.

    CUDA C++ source and bitcode are compiled here. Where the link fails or the process does not survive it, each input
    is linked alone, and then the rest without it, to find the one at fault. *timeout* is in seconds, for each link.

    Raises
    ------
    TrialError
        If no child process can be started.
    CompileError
        If one does not compile.
    """
    given = list(inputs)
    compiled = [_compiled(item, target) for item in given]
    options = options_for(target.arch, [kind for kind, _, _ in compiled])
    everything = range(len(compiled))
    (whole,) = run_trials(compiled, [everything], options, timeout)
    if whole.ok:
        return Trial(True, f"{len(given)} inputs link for {target.arch}", log=whole.log)
    alone = run_trials(compiled, [[index] for index in everything], options, timeout)
    guilty = _worst(alone)
    if guilty is None and not whole.is_incomplete and len(given) > 1:
        without = run_trials(
            compiled, [[o for o in everything if o != index] for index in everything], options, timeout
        )
        lived = [index for index, outcome in enumerate(without) if outcome.ok or outcome.is_incomplete]
        guilty = lived[0] if len(lived) == 1 else None
    culprit = given[guilty] if guilty is not None else None
    what = f"nvJitLink does not survive it ({whole.crash})" if whole.crash else "nvJitLink refuses it"
    message = f"linking {len(given)} inputs for {target.arch} fails: {what}"
    if culprit is not None:
        message += f"; the {culprit.kind} {culprit.name!r} is at fault"
    if whole.crash and culprit is not None:
        message += ": it is damaged inside, or nvJitLink has a fault that it meets. Make it anew"
    return Trial(False, message, whole.crash if whole.crash.startswith("SIG") else None, culprit, whole.log)


def _worst(alone: Sequence[Outcome]) -> int | None:
    """Of inputs linked alone the one that crashed, else the one that failed for more than missing the others."""
    for bad in (
        [index for index, outcome in enumerate(alone) if outcome.crash],
        [index for index, outcome in enumerate(alone) if not outcome.ok and not outcome.is_incomplete],
    ):
        if bad:
            return bad[0]
    return None


def _compiled(item: LinkInput, target: Target) -> tuple[Kind, bytes, str]:
    if not item.kind.is_compiled:
        return item.kind, item.code, item.name
    program = compiled(item, target)
    return program.kind, program.code, item.name


def options_for(arch: str, kinds: Iterable[Kind]) -> list[str]:
    """nvJitLink's options for a link of inputs of these *kinds*."""
    lto = LTO_IR in set(kinds)
    return [option.decode() for option in LinkerOptions(arch=arch, link_time_optimization=lto or None).as_bytes()]


def run_trials(
    inputs: Sequence[tuple[Kind, bytes, str]],
    trials: Sequence[Iterable[int]],
    options: Sequence[str],
    timeout: float = TIMEOUT,
) -> list[Outcome]:
    """Link each of *trials*, which choose among *inputs* (kind, code and name) by index, in a child process; after a
    crash, the rest in another one.

    Raises
    ------
    TrialError
        If no child process can be started.
    """
    outcomes: list[Outcome] = []
    while len(outcomes) < len(trials):
        job = {
            "path": [path for path in sys.path if path],
            "inputs": [(_TYPES[kind], code, name) for kind, code, name in inputs],
            "options": list(options),
            "trials": [list(trial) for trial in trials[len(outcomes) :]],
        }
        outcomes += _run_child(job, timeout)
    return outcomes


def _run_child(job: dict[str, Any], timeout: float) -> list[Outcome]:
    """The outcomes of the trials up to and with the first that the child does not survive."""
    if not sys.executable:
        raise TrialError("there is no interpreter to start (sys.executable is empty)")
    # Where only the environment leads to a library, the child finds it the same way.
    command = [sys.executable, "-c", _START, os.path.abspath(trial_child.__file__)]
    ended = ""
    try:
        done = subprocess.run(
            command, input=pickle.dumps(job), capture_output=True, timeout=timeout * len(job["trials"]), check=False
        )
        output, errors = done.stdout, done.stderr
        if done.returncode:
            ended = _how_it_ended(done.returncode)
    except subprocess.TimeoutExpired as expired:
        output, errors = expired.stdout or b"", expired.stderr or b""
        ended = f"no answer within {timeout * len(job['trials']):g} s"
    except OSError as error:
        raise TrialError(f"no child process can be started: {error}") from error
    return _outcomes(output, errors.decode("utf-8", "replace"), ended)


def _how_it_ended(code: int) -> str:
    if code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"
    return f"exit code {code}"


def _outcomes(output: bytes, errors: str, ended: str) -> list[Outcome]:
    import json

    printed = _by_trial(errors)
    outcomes: list[Outcome] = []
    begun = 0
    for line in output.splitlines():
        try:
            said = json.loads(line)
        except ValueError:  # what a library printed, or the cut-off end
            continue
        if "begin" in said:
            begun += 1
            continue
        log = "\n".join(text for text in (said.get("error") or said.get("log", ""), printed.get(said["end"])) if text)
        outcomes.append(Outcome("error" not in said, log))
    if begun == 0:
        raise TrialError(f"the child process did not begin ({ended or 'no answer'}): {errors.strip()[-2000:]}")
    if begun > len(outcomes):
        outcomes.append(Outcome(False, printed.get(begun - 1, ""), ended or "it ended without a word"))
    return outcomes


def _by_trial(errors: str) -> dict[int, str]:
    """What was printed on standard error, by trial."""
    found = {}
    for text in errors.split("\x1e")[1:]:
        number, _, rest = text.partition("\n")
        found[int(number)] = rest.strip()
    return found
