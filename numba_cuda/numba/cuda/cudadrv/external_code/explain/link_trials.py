# SPDX-License-Identifier: BSD-2-Clause
"""Links in a child process that find the input at fault."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..compile.programs import compiled
from ..inputs.link_input import LinkInput
from ..link.nvjitlink import Outcome, run_trials
from ..platform.target import Target


@dataclass(frozen=True)
class Trial:
    """The result of `try_link`: whether the link succeeded, what happened in a sentence or more, the *signal* that
    ended the process, such as ``"SIGSEGV"``, the input at fault (*culprit*), and nvJitLink's *log* followed by what it
    printed. *signal* and *culprit* are ``None`` if there is none."""

    ok: bool
    message: str
    signal: str | None = None
    culprit: LinkInput | None = None
    log: str = field(default="", repr=False)


def try_link(inputs: Iterable[LinkInput], target: Target, *, timeout: float | None = None) -> Trial:
    """Link *inputs* for *target* in a child process.

    CUDA C++ sources and bitcode are compiled here. If the link fails or crashes, each input is linked alone, and then
    the others are linked without it, to find the one at fault. *timeout* is in seconds, for each link; 60 by default.
    Raises `TrialError` if nothing could be tried, `CompileError` if an input does not compile.
    """
    given = list(inputs)
    code = [_linkable(item, target) for item in given]
    everything = range(len(code))
    (whole,) = run_trials(code, [everything], target.arch, timeout)
    if whole.ok:
        return Trial(True, f"{len(given)} inputs link for {target.arch}", log=whole.log)
    at_fault = worst(run_trials(code, [[index] for index in everything], target.arch, timeout))
    if at_fault is None and whole.is_faulty and len(given) > 1:
        others = [[other for other in everything if other != index] for index in everything]
        without = run_trials(code, others, target.arch, timeout)
        survived = [index for index, outcome in enumerate(without) if not outcome.is_faulty]
        at_fault = survived[0] if len(survived) == 1 else None
    culprit = None if at_fault is None else given[at_fault]
    what = f"nvJitLink does not survive it ({whole.crash})" if whole.crash else "nvJitLink rejects it"
    message = f"linking {len(given)} inputs for {target.arch} fails: {what}"
    if culprit is not None:
        message += f"; the {culprit.kind} {culprit.name!r} is at fault"
        if whole.crash:
            message += ": it is damaged, or it triggers a bug in nvJitLink. Rebuild it"
    signal = whole.crash if whole.crash.lower().startswith("sig") else None
    return Trial(False, message, signal, culprit, whole.log)


def _linkable(item: LinkInput, target: Target) -> LinkInput:
    program = compiled(item, target) if item.kind.is_compiled else None
    return item if program is None else LinkInput(program.kind, program.code, name=item.name)


def worst(alone: Sequence[Outcome]) -> int | None:
    """Return which of the inputs linked alone crashed, or else failed for more than missing the others."""
    faulty = [index for index, outcome in enumerate(alone) if outcome.is_faulty]
    return min(faulty, key=lambda index: not alone[index].crash, default=None)
