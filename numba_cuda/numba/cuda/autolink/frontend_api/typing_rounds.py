# SPDX-License-Identifier: BSD-2-Clause
"""Calls that type inference puts off: what costs one run of a compiler is asked once for all calls of a function.

Type inference goes through the calls of a function in rounds, until no further type is found. A call that is put off
is not typed in one round. When no type can be found without such calls, all of them are resolved together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numba.cuda.core.errors import TypingError

from ..compilation.context import calls_put_off, putting_off

Resolve = Callable[[Sequence[Any]], None]


class DeferredCallError(TypingError):
    """A call is put off. Type inference takes it as a call that cannot be typed yet."""


def put_off(resolve: Resolve, request: Any) -> None:
    """Raise `DeferredCallError`, so that *resolve* is called with this and all other requests once, and then the object
    is asked for the call again. Do nothing outside of type inference."""
    if (requests := calls_put_off()) is not None:
        requests.setdefault(resolve, []).append(request)
        raise DeferredCallError("a call is put off until the other calls of the function are known")


def propagated(propagate: Callable[..., Any], inferer: Any, raise_errors: bool) -> Any:
    """Run type inference's *propagate* until no call is put off."""
    while True:
        requests: dict[Resolve, list[Any]] = {}
        with putting_off(requests):
            errors = propagate(inferer, raise_errors=False)
        if not requests:
            break
        with putting_off(None):
            for resolve, each in requests.items():
                resolve(list(dict.fromkeys(each)))
    return propagate(inferer, raise_errors=True) if errors and raise_errors else errors
