# SPDX-License-Identifier: BSD-2-Clause
"""Asked calls: a call site travels with the answer of the object that is called there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numba.cuda.cudadrv.external_code.target import Target

from .answers import Answer
from .asking import ask
from .call_sites import CallSite


@dataclass(frozen=True)
class AskedCall(CallSite):
    """A call site together with the answer for one target. Two are equal if their call sites are.

    It is pickled as its call site: the answer holds code and callbacks, which the object gives again.
    """

    target: Target = field(compare=False)
    answer: Answer = field(compare=False, repr=False)

    @property
    def site(self) -> CallSite:
        """The call site alone, without an answer."""
        return CallSite(self.callee, self.argtypes, self.filename, self.line, self.function)

    def __reduce__(self) -> Any:
        return _site, (self.site,)


def _site(site: CallSite) -> CallSite:
    return site


def with_answer(call: CallSite, target: Target) -> AskedCall:
    """Return *call* with its answer for *target*.

    A call that was asked for this target is returned as it is. The called object is asked only where there is no such
    answer: by the compiler, when it finds the call; for a link for another target than the compilation's, as
    ``get_cubin(cc=...)`` makes it; and for a kernel loaded from a cache, whose calls come without answers.

    Raises
    ------
    HookError
        As `ask`. It does not name the call site, which the caller knows.
    """
    if isinstance(call, AskedCall) and call.target == target:
        return call
    answer = ask(call.callee, call.argtypes, target)
    return AskedCall(call.callee, call.argtypes, call.filename, call.line, call.function, target, answer)
