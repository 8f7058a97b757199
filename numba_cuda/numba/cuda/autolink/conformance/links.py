# SPDX-License-Identifier: BSD-2-Clause
"""Whether the code links."""

from __future__ import annotations

from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.link import trial

from .findings import Findings
from .subject import Subject, describe_linking


def check_survival(subject: Subject, findings: Findings) -> bool:
    """Link finished code, which may be damaged inside, in a child process first."""
    for target in subject.targets:
        finished = [item for item in subject.answers[target] if item.kind not in (kinds.CUDA, kinds.PTX)]
        if not finished:
            continue
        try:
            tried = trial.try_link(finished, target)
        except trial.TrialError:
            return True
        if tried.signal is not None:
            return findings.fail(
                "does not crash nvJitLink",
                f"{tried.message}\n{tried.log}",
                "code that links, or that nvJitLink rejects",
                "rebuild the code",
            )
    return True


def check_links(subject: Subject, findings: Findings) -> None:
    """Check that kernels that call the object once and twice link, for each target."""
    for target in subject.targets:
        how = describe_linking(target)
        for name, calls in ((f"links alone, {how}", 1), (f"links in a kernel that calls it twice, {how}", 2)):
            message = subject.build_error(target, calls)
            if message:
                findings.fail(name, message, "a kernel that links", "see the message")
                break
            findings.ok(name)
