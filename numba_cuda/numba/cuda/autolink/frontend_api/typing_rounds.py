# SPDX-License-Identifier: BSD-2-Clause
"""Calls that type inference puts off: what costs one run of a compiler is asked once for all calls of a function.

Type inference goes through the calls of a function in rounds, until no further type is found. A call that is put off
is not typed in one round. When no type can be found without such calls, all of them are resolved together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from numba.cuda.core.errors import TypingError

Resolve = Callable[[Sequence[Any]], None]


class DeferredCallError(TypingError):
    """A call is put off. Type inference takes it as a call that cannot be typed yet."""


class _State(threading.local):
    # What is to be resolved, by the function that resolves it; None outside of type inference.
    requests: dict[Resolve, list[Any]] | None = None


_state = _State()


def put_off(resolve: Resolve, request: Any) -> None:
    """Raise `DeferredCallError`, so that *resolve* is called with this and all other requests once, and then the object
    is asked for the call again. Do nothing outside of type inference."""
    if _state.requests is not None:
        _state.requests.setdefault(resolve, []).append(request)
        raise DeferredCallError("a call is put off until the other calls of the function are known")


def propagated(propagate: Callable[..., Any], inferer: Any, raise_errors: bool) -> Any:
    """Run type inference's *propagate* until no call is put off."""
    outer = _state.requests
    try:
        while True:
            _state.requests = {}
            errors = propagate(inferer, raise_errors=False)
            requests, _state.requests = _state.requests, None
            if not requests:
                break
            for resolve, each in requests.items():
                resolve(list(dict.fromkeys(each)))
    finally:
        _state.requests = outer
    return propagate(inferer, raise_errors=True) if errors and raise_errors else errors
