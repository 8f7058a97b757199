# SPDX-License-Identifier: BSD-2-Clause
"""The checks, in their order; the last is whether the code links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.cuda.cudadrv.external_code.safe_repr import safe_repr
from numba.cuda.cudadrv.external_code.target import ComputeCapabilityLike, Target

from ..ahead_of_time import compute_capability
from .comparison import check_link_key, check_other_process, check_own_symbols, check_repetition
from .probe_kernel import Argument, argument
from .records import FailedError, Findings, Linkable, LinkedCode
from .subject import Subject, describe_linking, find_subject
from .symbols import check_symbols


def run_checks(
    obj: Any,
    argtypes: Sequence[Any],
    cc: ComputeCapabilityLike,
    lto: Sequence[bool],
    others: Sequence[Any],
    other_process: bool,
) -> Linkable:
    """Run the checks of `testing.check_linkable`. A check that builds on one that failed is left out."""
    capability = compute_capability(cc)
    targets = tuple(Target(capability, lto=each) for each in lto)
    args = tuple(map(argument, argtypes))
    findings = _findings(obj, args)
    subject = find_subject(obj, args, targets, findings)
    defined = check_symbols(subject, findings)
    repeats = check_repetition(subject, findings)
    check_other_process(subject, findings, other_process)
    if repeats:
        compared = [_other_subject(other, args, targets[:1]) for other in others]
        check_own_symbols(subject, compared, findings)
        check_link_key(subject, compared, findings)
    if defined:
        _check_links(subject, findings)
    findings.raise_failed()
    code = dict.fromkeys(LinkedCode.of(item) for inputs in subject.answers.values() for item in inputs)
    return Linkable(subject.call, subject.site.argtypes, tuple(subject.symbols), tuple(code), tuple(findings.checks))


def _findings(obj: Any, args: Sequence[Argument]) -> Findings:
    return Findings(f"{safe_repr(obj)}({', '.join(map(str, args))})")


def _other_subject(other: Any, args: tuple[Argument, ...], targets: tuple[Target, ...]) -> Subject:
    """Return the subject of *other*, which is an object to compare with, or a tuple of one and its argument types."""
    obj, *argtypes = other if isinstance(other, tuple) else (other,)
    args = tuple(map(argument, argtypes)) if argtypes else args
    return find_subject(obj, args, targets, _findings(obj, args))


def _check_links(subject: Subject, findings: Findings) -> None:
    """Check that kernels that call the object once and twice link, for each target."""
    for target in subject.targets:
        how = describe_linking(target)
        for name, calls in ((f"links alone, {how}", 1), (f"links in a kernel that calls it twice, {how}", 2)):
            with findings.check(name):
                if message := subject.build_error(target, calls):
                    raise FailedError(message, "a kernel that links", "see the message")
            if message:
                break
