# SPDX-License-Identifier: BSD-2-Clause
"""Whether an object returns the same code when it is asked again: in this process, and in another one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, LinkInputError
from numba.cuda.cudadrv.external_code.safe_repr import safe_repr

from ..protocol.asking import link_key
from ..protocol.callee import KEY_HOOK
from ..protocol.errors import HookError
from . import reproducibility
from .records import FailedCheck, FailedError, Findings, LinkedCode, SkippedError
from .subject import Subject

KEY_OF_VALUES = "make the key of values: no hash() of a string, no id(), no address in a repr, no counter, no time"


def check_repetition(subject: Subject, findings: Findings) -> bool:
    """Check that the object returns the same code when it is asked again in this process. Return whether it does."""
    difference = ""
    with findings.check("returns the same code when asked again"):
        for target in subject.targets:
            try:
                again = reproducibility.fresh(subject.callee, subject.site.argtypes, target).inputs()
                difference = code_difference(subject.answers[target], again)
            except (HookError, LinkInputError) as error:
                difference = str(error)
            if difference:
                raise FailedError(
                    difference,
                    "the same code each time",
                    "make the code depend on nothing but the object's own constant attributes, the argument types and"
                    " autolink.current_target()",
                )
    return not difference


def check_other_process(subject: Subject, findings: Findings, requested: bool) -> None:
    """Check that the object returns the same code and link key in another process, if that is *requested*."""
    callee, argtypes, targets = question = subject.callee, subject.site.argtypes, subject.targets
    with findings.check("returns the same code in another process without a GPU"):
        if not requested:
            raise SkippedError("not requested")
        try:
            here, there = reproducibility.ask_here(*question), reproducibility.ask_there(*question)
        except reproducibility.NotPicklableError as error:
            raise SkippedError(f"it cannot be sent there ({error})") from error
        except HookError as error:
            todo = "let the hook answer whenever it is asked"
            raise FailedError(str(error), "the same code each time", todo) from error
        except reproducibility.AskingError as error:
            todo = "use nothing in the hook that needs a GPU: autolink.current_target() is what to generate code for"
            raise FailedError(str(error), "the same code, with no GPU visible", todo) from error
        for one, other in zip(here.code, there.code, strict=True):
            if difference := _difference(one, other, "here", "there"):
                raise FailedError(
                    difference,
                    "the same code",
                    "put nothing into code or symbols that differs between processes: hash() of a string, id(), the"
                    " order of a set, addresses in a repr, temporary paths, times, random numbers",
                )
        if here.key != there.key:
            got = f"another key there: {safe_repr(link_key(callee, argtypes, targets[0]))} here"
            name = f"its {KEY_HOOK} is the same in another process"
            findings.wrong.append(FailedCheck(name, got, "the same value", KEY_OF_VALUES))


def code_difference(one: Iterable[LinkInput], other: Iterable[LinkInput]) -> str:
    """Return how two answers differ, or an empty text if they are the same code."""
    return _difference([*map(LinkedCode.of, one)], [*map(LinkedCode.of, other)], "first", "then")


def _difference(one: Sequence[LinkedCode], other: Sequence[LinkedCode], first: str, then: str) -> str:
    if len(one) != len(other):
        return f"{first} {len(one)} pieces of code, {then} {len(other)}"
    for before, after in zip(one, other, strict=True):
        if before.digest != after.digest:
            return f"{first} {before}, {then} {after}{_differing_line(before, after, first, then)}"
    return ""


def _differing_line(before: LinkedCode, after: LinkedCode, first: str, then: str) -> str:
    lines = itertools.zip_longest((before.text or "").splitlines(), (after.text or "").splitlines(), fillvalue="")
    for number, (one, other) in enumerate(lines, 1):
        if one != other:
            return f"\nline {number} {first}: {one.strip()}\nline {number} {then}: {other.strip()}"
    return ""
