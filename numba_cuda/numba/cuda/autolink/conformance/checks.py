# SPDX-License-Identifier: BSD-2-Clause
"""The checks, in their order; the last are whether the code links, and whether it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.cuda.cudadrv.external_code.platform.target import ComputeCapabilityLike, Target

from ..compilation.context import compute_capability
from .comparison import check_link_key, check_own_symbols, check_repetition
from .emulated_run import check_run
from .records import FailedError, Linkable, LinkedCode
from .subject import CalledSubject, describe_linking, find_python_subject, find_subject


def run_checks(
    obj: Any,
    argtypes: Sequence[Any],
    cc: ComputeCapabilityLike,
    lto: Sequence[bool],
    others: Sequence[Any],
    length: int,
) -> Linkable:
    """Run the checks of `testing.check_linkable`. A check that builds on one that failed is left out."""
    targets = tuple(Target(compute_capability(cc), lto=each) for each in lto)
    if (python := find_python_subject(obj, argtypes, targets)) is not None:
        _check_links(python)
        check_run(python.findings, obj, python.args, targets[0], length)
        python.findings.raise_failed()
        code = dict.fromkeys(LinkedCode.of(planned.input) for planned in python.built.inputs)
        types = tuple(arg.type for arg in python.args if arg.type is not None)
        return Linkable(python.findings.call, types, (), tuple(code), tuple(python.findings.checks))
    subject = find_subject(obj, argtypes, targets)
    repeats = check_repetition(subject)
    if repeats:
        pairs = (other if isinstance(other, tuple) else (other,) for other in others)
        compared = [find_subject(one, given or argtypes, targets[:1]) for one, *given in pairs]
        check_own_symbols(subject, compared)
        check_link_key(subject, compared)
    _check_links(subject)
    if not subject.findings.wrong:
        check_run(subject.findings, obj, subject.args, targets[0], length)
    subject.findings.raise_failed()
    code = dict.fromkeys(LinkedCode.of(item) for inputs in subject.answers.values() for item in inputs)
    checks = tuple(subject.findings.checks)
    return Linkable(subject.findings.call, subject.site.argtypes, subject.symbols, tuple(code), checks)


def _check_links(subject: CalledSubject) -> None:
    for target in subject.targets:
        how = describe_linking(target)
        for name, calls in ((f"links alone, {how}", 1), (f"links in a kernel that calls it twice, {how}", 2)):
            with subject.findings.check(name):
                if message := subject.build_error(target, calls):
                    raise FailedError(message, "a kernel that links", "see the message")
            if message:
                break
