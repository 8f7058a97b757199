# SPDX-License-Identifier: BSD-2-Clause
"""The errors that users meet, and the pieces that their messages are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba.cuda.core.errors import TypingError

if TYPE_CHECKING:
    from .call_sites import CallSite
    from .callee import Callee


class HookError(Exception):
    """A ``__numba_cuda_link__`` gave no usable answer. Becomes a `CallError` where the call site is known."""

    def __init__(self, callee: Callee, argtypes: tuple[Any, ...], message: str, raised_at: str | None = None):
        self.callee = callee
        self.argtypes = argtypes
        self.raised_at = raised_at
        super().__init__(message)


class AskedAgainError(HookError):
    """A ``__numba_cuda_link__`` is asked the question that it is still answering."""


class CallError(TypingError):
    """A called object provides no linkable code for this signature: a typing error at the line of the call.

    ``call_site`` is the `CallSite`, ``hook_error`` the `HookError`; the object's own exception is ``__cause__``.
    """

    def __init__(self, error: HookError, call_site: CallSite, loc: Any):
        self.call_site = call_site
        self.hook_error = error
        text = f"{call_site.callee}.__numba_cuda_link__({', '.join(map(str, call_site.argtypes))}) {error}"
        if error.raised_at:
            text += f"\n  raised at: {error.raised_at}"
        text += f"\n  called at: {call_site.place}"
        super().__init__(text, loc=loc)
