# SPDX-License-Identifier: BSD-2-Clause
"""Links in a child process, which some damaged inputs crash.

Links whose result is used share one child, started when it is first needed, while they succeed; trials have their own.
A crash or the time limit ends a child, and the next link starts another. It needs neither a GPU nor numba_cuda, and
starts in about a tenth of a second.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cuda.core import LinkerOptions

from ..child_process import ChildEndedError, ChildError, ChildProcess
from ..compile.dispatch import compiled
from ..inputs.kinds import LTO_IR, Kind
from ..inputs.link_input import LinkInput
from ..target import Target
from . import trial_child

TIMEOUT = 60.0  # seconds for a link that is only tried
LINK_TIMEOUT = 120.0  # seconds for a link whose result is used
# What nvJitLink reports for any link without its kernel, or without the rest of its code.
_INCOMPLETE = re.compile(r"Undefined reference to|Unresolved extern|undefined symbol|NO_MODULE_IN_PROGRAM")


class TrialError(RuntimeError):
    """No child process could be started, or it could not load nvJitLink: nothing was tried."""


@dataclass(frozen=True)
class Outcome:
    """How one link went: whether it succeeded, nvJitLink's log followed by what it printed, and how the process
    ended if it did so in the middle of the link, such as ``"SIGSEGV"`` or ``"no answer within 60 s"``."""

    ok: bool
    log: str = ""
    crash: str = ""
    printed: str = ""
    code: bytes = field(default=b"", repr=False, compare=False)
    error: Exception | None = field(default=None, repr=False, compare=False)

    @property
    def is_incomplete(self) -> bool:
        """Whether it failed only for missing symbols."""
        return not self.ok and not self.crash and bool(_INCOMPLETE.search(self.log))


@dataclass(frozen=True)
class Trial:
    """The result of `try_link`.

    Attributes
    ----------
    ok:
        Whether the link succeeded.
    message:
        What happened, in a sentence or more.
    signal:
        The signal that ended the process, such as ``"SIGSEGV"``; ``None`` if it survived.
    culprit:
        The input at fault, if there is one.
    log:
        nvJitLink's log, followed by what it printed.
    """

    ok: bool
    message: str
    signal: str | None = None
    culprit: LinkInput | None = None
    log: str = field(default="", repr=False)


def try_link(inputs: Iterable[LinkInput], target: Target, *, timeout: float = TIMEOUT) -> Trial:
    """Link *inputs* for *target* in a child process.

    CUDA C++ sources and bitcode are compiled here. If the link fails or crashes, each input is linked alone, and then
    the others are linked without it, to find the one at fault. *timeout* is in seconds, for each link.

    Raises
    ------
    TrialError
        If nothing could be tried.
    CompileError
        If an input does not compile.
    """
    given = list(inputs)
    code = [_linkable(item, target) for item in given]
    options = options_for(target.arch, [kind for kind, _, _ in code])
    everything = range(len(code))
    (whole,) = run_trials(code, [everything], options, timeout)
    if whole.ok:
        return Trial(True, f"{len(given)} inputs link for {target.arch}", log=whole.log)
    at_fault = _worst(run_trials(code, [[index] for index in everything], options, timeout))
    if at_fault is None and not whole.is_incomplete and len(given) > 1:
        others = [[other for other in everything if other != index] for index in everything]
        without = run_trials(code, others, options, timeout)
        survived = [index for index, outcome in enumerate(without) if outcome.ok or outcome.is_incomplete]
        at_fault = survived[0] if len(survived) == 1 else None
    culprit = given[at_fault] if at_fault is not None else None
    what = f"nvJitLink does not survive it ({whole.crash})" if whole.crash else "nvJitLink rejects it"
    message = f"linking {len(given)} inputs for {target.arch} fails: {what}"
    if culprit is not None:
        message += f"; the {culprit.kind} {culprit.name!r} is at fault"
        if whole.crash:
            message += ": it is damaged, or it triggers a bug in nvJitLink. Rebuild it"
    signal = whole.crash if whole.crash.lower().startswith("sig") else None
    return Trial(False, message, signal, culprit, whole.log)


def _worst(alone: Sequence[Outcome]) -> int | None:
    """Return which of the inputs linked alone crashed, or else failed for more than missing the others."""
    for bad in (
        [index for index, outcome in enumerate(alone) if outcome.crash],
        [index for index, outcome in enumerate(alone) if not outcome.ok and not outcome.is_incomplete],
    ):
        if bad:
            return bad[0]
    return None


def _linkable(item: LinkInput, target: Target) -> tuple[Kind, bytes, str]:
    if not item.kind.is_compiled:
        return item.kind, item.code, item.name
    program = compiled(item, target)
    return program.kind, program.code, item.name


def options_for(arch: str, kinds: Iterable[Kind]) -> list[str]:
    """Return nvJitLink's options for a link of inputs of these *kinds*."""
    lto = LTO_IR in set(kinds)
    return [option.decode() for option in LinkerOptions(arch=arch, link_time_optimization=lto or None).as_bytes()]


def run_trials(
    inputs: Sequence[tuple[Kind, bytes, str]],
    trials: Sequence[Iterable[int]],
    options: Sequence[str],
    timeout: float | None = None,
) -> list[Outcome]:
    """Run each of *trials*, a link of some of *inputs* (kind, code and name) given by index, in a child process.

    *timeout* is in seconds, for each link. Raises `TrialError` if nothing could be tried.
    """
    helper = _Helper()
    try:
        return helper.run(inputs, trials, {"options": list(options), "output": "cubin"}, timeout or TIMEOUT)
    finally:
        helper.close()


def link_in_helper(inputs: Sequence[tuple[Kind, bytes, str]], options: Sequence[str], output: str) -> Outcome:
    """Link *inputs* (kind, code and name) to *output* (``"cubin"`` or ``"ptx"``) in this process's helper process.

    Raises `TrialError` if it could not be tried.
    """
    how = {"options": list(options), "output": output}
    return _helper.run(inputs, [range(len(inputs))], how, LINK_TIMEOUT)[0]


class _Helper:
    """The child process of this process's links."""

    def __init__(self) -> None:
        self.after_fork()

    def after_fork(self) -> None:
        """Forget the child, which is the parent process's."""
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None
        self._command = ("", "")

    def run(
        self,
        inputs: Sequence[tuple[Kind, bytes, str]],
        trials: Sequence[Iterable[int]],
        how: Mapping[str, object],
        timeout: float,
    ) -> list[Outcome]:
        names = [(kind.object_code.upper(), name) for kind, _, name in inputs]
        outcomes: list[Outcome] = []
        sent_to: ChildProcess | None = None
        with self._lock:
            try:
                for trial in trials:
                    child = self._running()
                    if child is not sent_to:
                        child.request({"inputs": names}, [code for _, code, _ in inputs], timeout=TIMEOUT)
                        sent_to = child
                    outcomes.append(self._try(child, {"link": list(trial), **how}, timeout))
                if not outcomes[-1].ok:  # after ptxas failed once in a process, nvJitLink may let pass what is wrong
                    self.close()
            except ChildError as error:
                self.close()
                raise TrialError(f"{error}") from error
        return outcomes

    def _try(self, child: ChildProcess, request: dict[str, object], timeout: float) -> Outcome:
        try:
            reply = child.request(request, timeout=timeout)
        except ChildEndedError as ended:
            self.close()
            return Outcome(False, ended.printed, ended.how, ended.printed)
        log = "\n".join(text for text in (reply.content["log"], reply.printed) if text)
        return Outcome(reply.content["ok"], log, "", reply.printed, b"".join(reply.blobs))

    def _running(self) -> ChildProcess:
        command = (sys.executable, trial_child.__file__)
        if self._child is None or self._command != command:
            self.close()
            self._child, self._command = ChildProcess(trial_child.__file__), command
        return self._child

    def close(self) -> None:
        """End the child, if there is one."""
        if self._child is not None:
            self._child.close()
            self._child = None


_helper = _Helper()
atexit.register(_helper.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helper.after_fork)
