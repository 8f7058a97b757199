# SPDX-License-Identifier: BSD-2-Clause
"""Links with nvJitLink, in this process or in a child process, which some damaged inputs crash.

Links whose result is used share one child, started when it is first needed, while they succeed; trials have their own.
A crash or the time limit ends a child, and the next link starts another. It needs neither a GPU nor numba_cuda, and
starts in about a tenth of a second.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ..diagnostics import timeline
from ..platform.child_process import ChildEndedError, ChildError, ChildProcess
from . import nvjitlink_child
from .linker_options import Linkable, options_for

TIMEOUT = 60.0  # seconds for a link that is only tried
LINK_TIMEOUT = 120.0  # seconds for a link whose result is used
_Link: TypeAlias = tuple[list[int], Sequence[str], str]  # the indices of inputs, nvJitLink's options, the output
_MULTIPLY_DEFINED = re.compile(r"Linking globals named '([^']+)': symbol multiply defined")
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

    @property
    def is_faulty(self) -> bool:
        """Whether it crashed, or failed for more than missing symbols."""
        return not self.ok and (self.crash != "" or not _INCOMPLETE.search(self.log))


def run_trials(
    inputs: Sequence[Linkable], trials: Iterable[Iterable[int]], arch: str, timeout: float | None = None
) -> list[Outcome]:
    """Run each of *trials*, a link of some of *inputs* given by index, in a child process; *timeout* is in seconds, for
    each link. Raises `TrialError` if nothing could be tried."""
    options = options_for(inputs, arch)
    with contextlib.closing(_Helper()) as helper:
        return helper.run(inputs, [(list(trial), options, "cubin") for trial in trials], timeout or TIMEOUT)


def multiply_defined(log: str) -> str | None:
    """Return the symbol that a linker's *log* says two LTO-IR inputs define, or ``None``."""
    found = _MULTIPLY_DEFINED.search(log)
    return found[1] if found else None


def link_in_helper(inputs: Sequence[Linkable], options: Sequence[str], output: str = "cubin") -> Outcome:
    """Link *inputs* to *output* (``"cubin"`` or ``"ptx"``) in this process's helper process. Raises `TrialError` if it
    could not be tried."""
    return _helper.run(inputs, [(list(range(len(inputs))), options, output)], LINK_TIMEOUT)[0]


def link_here(inputs: Sequence[Linkable], options: Sequence[str], output: str = "cubin") -> Outcome:
    """Link *inputs* to *output* (``"cubin"`` or ``"ptx"``) in this process."""
    ok, log, code = nvjitlink_child.link([(_type(item), item.code, item.name) for item in inputs], options, output)
    return Outcome(ok, log, code=code)


def _type(item: Linkable) -> str:
    return item.kind.object_code.upper()


class _Helper:
    """The child process of this process's links."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Have no child: after a fork, it is the parent process's."""
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None

    def run(self, inputs: Sequence[Linkable], links: Iterable[_Link], timeout: float) -> list[Outcome]:
        names = [(_type(item), item.name) for item in inputs]
        codes = [item.code for item in inputs]
        outcomes: list[Outcome] = []
        sent_to: ChildProcess | None = None
        with self._lock:
            try:
                for link in links:
                    child = self._running()
                    if child is not sent_to:
                        child = sent_to = self._sent({"inputs": names}, codes)
                    outcomes.append(self._try(child, link, timeout))
                # After ptxas, which follows joining, failed once in a process, nvJitLink may let pass what is wrong.
                if not outcomes[-1].ok and multiply_defined(outcomes[-1].log) is None:
                    self.close()
            except ChildError as error:
                self.close()
                raise TrialError(f"{error}") from error
        return outcomes

    def _sent(self, inputs: dict[str, object], codes: Sequence[bytes]) -> ChildProcess:
        """Send the inputs to the child, and return it; to another one if it died while it was idle."""
        child = self._running()
        try:
            child.request(inputs, codes, timeout=TIMEOUT)
        except ChildEndedError:
            child = self._running()
            child.request(inputs, codes, timeout=TIMEOUT)
        return child

    def _running(self) -> ChildProcess:
        if self._child is None or self._child.has_ended:
            self.close()
            self._child = ChildProcess(nvjitlink_child.__file__)
        return self._child

    def _try(self, child: ChildProcess, link: _Link, timeout: float) -> Outcome:
        timeline.in_process(child.pid)
        try:
            reply = child.request({"link": link}, timeout=timeout)
        except ChildEndedError as ended:
            self.close()
            return Outcome(False, ended.printed, ended.how, ended.printed)
        log = "\n".join(text for text in (reply.content["log"], reply.printed) if text)
        return Outcome(reply.content["ok"], log, "", reply.printed, b"".join(reply.blobs))

    def close(self) -> None:
        """End the child, if there is one."""
        if self._child is not None:
            self._child.close()
            self._child = None


_helper = _Helper()
atexit.register(_helper.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helper.forget)
