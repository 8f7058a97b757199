# SPDX-License-Identifier: BSD-2-Clause
"""Whether an object returns the same code when it is asked again: in this process, and in another one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, LinkInputError
from numba.cuda.cudadrv.external_code.safe_repr import safe_repr

from ..protocol.asking import link_key
from ..protocol.callee import KEY_HOOK
from ..protocol.errors import HookError
from . import reproducibility
from .records import Findings
from .reproducibility import CodeSummary
from .subject import Subject

KEY_OF_VALUES = "make the key of values: no hash() of a string, no id(), no address in a repr, no counter, no time"
_OTHER_PROCESS = "returns the same code in another process without a GPU"


def check_repetition(subject: Subject, findings: Findings) -> bool:
    """Check that the object returns the same code when it is asked again in this process."""
    name = "returns the same code when asked again"
    for target in subject.targets:
        try:
            again = reproducibility.fresh(subject.callee, subject.site.argtypes, target).inputs()
            difference = code_difference(subject.answers[target], again)
        except (HookError, LinkInputError) as error:
            difference = str(error)
        if difference:
            return findings.fail(
                name,
                difference,
                "the same code each time",
                "make the code depend on nothing but the object's own constant attributes, the argument types and"
                " autolink.current_target()",
            )
    return findings.ok(name)


def check_other_process(subject: Subject, findings: Findings, requested: bool) -> None:
    """Check that the object returns the same code and link key in another process, if that is *requested*."""
    if not requested:
        findings.skip(_OTHER_PROCESS, "not requested")
        return
    callee, argtypes, targets = subject.callee, subject.site.argtypes, subject.targets
    try:
        here = reproducibility.ask_here(callee, argtypes, targets)
        there = reproducibility.ask_there(callee, argtypes, targets)
    except reproducibility.NotPicklableError as error:
        findings.skip(_OTHER_PROCESS, f"it cannot be sent there ({error})")
        return
    except HookError as error:
        findings.fail(_OTHER_PROCESS, str(error), "the same code each time", "let the hook answer whenever it is asked")
        return
    except reproducibility.AskingError as error:
        findings.fail(
            _OTHER_PROCESS,
            str(error),
            "the same code, with no GPU visible",
            "use nothing in the hook that needs a GPU: autolink.current_target() is what to generate code for",
        )
        return
    pairs = zip(here.code, there.code, strict=True)
    difference = next((found for one, other in pairs if (found := _difference(one, other, "here", "there"))), "")
    if difference:
        findings.fail(
            _OTHER_PROCESS,
            difference,
            "the same code",
            "put nothing into code or symbols that differs between processes: hash() of a string, id(), the order"
            " of a set, addresses in a repr, temporary paths, times, random numbers",
        )
    elif here.key != there.key:
        findings.fail(
            f"its {KEY_HOOK} is the same in another process",
            f"another key there: {safe_repr(link_key(callee, argtypes, targets[0]))} here",
            "the same value",
            KEY_OF_VALUES,
        )
    else:
        findings.ok(_OTHER_PROCESS)


def code_difference(one: Sequence[LinkInput], other: Sequence[LinkInput]) -> str:
    """Return how two answers differ, or an empty text if they are the same code."""
    return _difference(
        [CodeSummary.of(item) for item in one], [CodeSummary.of(item) for item in other], "first", "then"
    )


def _difference(one: Sequence[CodeSummary], other: Sequence[CodeSummary], first: str, then: str) -> str:
    if len(one) != len(other):
        return f"{first} {len(one)} pieces of code, {then} {len(other)}"
    for before, after in zip(one, other, strict=True):
        if before.digest != after.digest:
            return f"{first} {before}, {then} {after}{_differing_line(before, after, first, then)}"
    return ""


def _differing_line(before: CodeSummary, after: CodeSummary, first: str, then: str) -> str:
    lines = itertools.zip_longest((before.text or "").splitlines(), (after.text or "").splitlines(), fillvalue="")
    for number, (one, other) in enumerate(lines, 1):
        if one != other:
            return f"\nline {number} {first}: {one.strip()}\nline {number} {then}: {other.strip()}"
    return ""
