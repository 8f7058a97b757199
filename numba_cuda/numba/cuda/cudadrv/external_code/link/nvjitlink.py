# SPDX-License-Identifier: BSD-2-Clause
"""Links with nvJitLink, in this process or in a child process, which some damaged inputs crash.

Links whose result is used share one child, started when it is first needed, while they succeed; trials have their own.
A crash or the time limit ends a child, and the next link starts another. It needs neither a GPU nor numba_cuda, and
starts in about a tenth of a second.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from numba_cuda_autolink.errors import PrintableError

from ..diagnostics import timeline
from ..platform.child_process import ChildEndedError, ChildError, ChildPool, ChildProcess, limited_memory
from . import nvjitlink_child
from .linker_input import Linkable, options_for

TIMEOUT = 60.0  # seconds for a link that is only tried
LINK_TIMEOUT = 120.0  # seconds for a link whose result is used
_MOST_MEMORY = 8 << 30  # bytes: of a damaged size, nvJitLink takes as much as it says, and fills it
_Link: TypeAlias = tuple[list[int], Sequence[str], str]  # the indices of inputs, nvJitLink's options, the output
_MULTIPLY_DEFINED = re.compile(r"Linking globals named '([^']+)': symbol multiply defined")
# What nvJitLink reports for any link without its kernel, or without the rest of its code.
_INCOMPLETE = re.compile(r"Undefined reference to|Unresolved extern|undefined symbol|NO_MODULE_IN_PROGRAM")


class TrialError(PrintableError, RuntimeError):
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


def run_trials(inputs: Sequence[Linkable], trials: Iterable[Iterable[int]], arch: str) -> list[Outcome]:
    """Run each of *trials*, a link of some of *inputs* given by index, in a child process. Raises `TrialError` if
    nothing could be tried."""
    options = options_for(inputs, arch)
    links = [(list(trial), options, "cubin") for trial in trials]
    with contextlib.closing(ChildPool(_start)) as own:
        return _run(own, inputs, links, TIMEOUT)


def multiply_defined(log: str) -> str | None:
    found = _MULTIPLY_DEFINED.search(log)
    return found[1] if found else None


def link_in_helper(inputs: Sequence[Linkable], options: Sequence[str], output: str = "cubin") -> Outcome:
    """Link *inputs* to *output* (``"cubin"`` or ``"ptx"``) in this process's helper process. Raises `TrialError` if it
    could not be tried."""
    return _run(helpers, inputs, [(list(range(len(inputs))), options, output)], LINK_TIMEOUT)[0]


def link_here(inputs: Sequence[Linkable], options: Sequence[str], output: str = "cubin") -> Outcome:
    ok, log, code = nvjitlink_child.link([(_type(item), item.code, item.name) for item in inputs], options, output)
    return Outcome(ok, log, code=code)


def _type(item: Linkable) -> str:
    return item.kind.object_code.upper()


def _start() -> ChildProcess:
    return ChildProcess(nvjitlink_child.__file__, memory=limited_memory(_MOST_MEMORY))


helpers = ChildPool.of_process(_start)


def _run(
    children: ChildPool[ChildProcess], inputs: Sequence[Linkable], links: Sequence[_Link], timeout: float
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    try:
        while len(outcomes) < len(links):
            with children.child() as child:
                names = [(_type(item), item.name) for item in inputs]
                child.request({"inputs": names}, [item.code for item in inputs], timeout=TIMEOUT)
                while len(outcomes) < len(links) and not child.has_ended:
                    outcomes.append(_try(child, links[len(outcomes)], timeout))
                # After ptxas, which follows joining, failed once in a process, nvJitLink may let pass what is wrong.
                if not outcomes[-1].ok and multiply_defined(outcomes[-1].log) is None:
                    child.close()
    except ChildError as error:
        raise TrialError(f"{error}") from error
    children.trim()
    return outcomes


def _try(child: ChildProcess, link: _Link, timeout: float) -> Outcome:
    timeline.in_process(child.pid)
    try:
        reply = child.request({"link": link}, timeout=timeout)
    except ChildEndedError as ended:
        return Outcome(False, ended.printed, ended.how, ended.printed)
    log = "\n".join(text for text in (reply.content["log"], reply.printed) if text)
    return Outcome(reply.content["ok"], log, "", reply.printed, b"".join(reply.blobs))
