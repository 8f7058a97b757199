# SPDX-License-Identifier: BSD-2-Clause
"""The errors that users see when a called object gives no usable answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba.cuda.core.errors import TypingError

if TYPE_CHECKING:
    from .call_sites import CallSite
    from .callee import Callee


class HookError(Exception):
    """A ``__numba_cuda_link__`` gave no usable answer. It becomes a `CallError` where the call site is known.

    Attributes
    ----------
    callee, argtypes:
        The object, and the Numba types that it was asked with.
    raised_at:
        File, line and function in which its hook raised an exception, or None.
    """

    def __init__(self, callee: Callee, argtypes: tuple[Any, ...], message: str, raised_at: str | None = None):
        self.callee = callee
        self.argtypes = argtypes
        self.raised_at = raised_at
        super().__init__(message)

    def describe(self, call_site: CallSite) -> str:
        """Return the whole message for users: the diagnosis, the object, where its hook raised, where it is called."""
        signature = ", ".join(map(str, self.argtypes))
        text = f"{self.callee.name}.__numba_cuda_link__({signature}) {self}\n  object: {self.callee}"
        if self.raised_at:
            text += f"\n  raised at: {self.raised_at}"
        return f"{text}\n  called at: {call_site.place}"


class AskedAgainError(HookError):
    """A ``__numba_cuda_link__`` is asked the question that it is still answering."""


class CallError(TypingError):
    """A called object provides no linkable code for these argument types: a typing error at the line of the call.

    Attributes
    ----------
    call_site:
        The `CallSite`.
    hook_error:
        The `HookError`. The object's own exception is ``__cause__``.
    """

    def __init__(self, error: HookError, call_site: CallSite, loc: Any):
        self.call_site = call_site
        self.hook_error = error
        super().__init__(error.describe(call_site), loc=loc)
