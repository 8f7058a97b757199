# SPDX-License-Identifier: BSD-2-Clause
from collections.abc import Callable
from typing import Any

from numba_cuda.numba.cuda.kernels.reduction import *  # noqa: F403

from numba.cuda.core._stubs.launches import StreamLike

class Reduce:
    """A reduction on the device, by a function of two values."""

    def __init__(self, functor: Callable[[Any, Any], Any]) -> None: ...
    def __call__(
        self, arr: Any, size: int | None = None, res: Any = None, init: Any = 0, stream: StreamLike = 0
    ) -> Any:
        """Return what *arr* is reduced to, or write it to the first element of *res*."""

def __getattr__(name: str) -> Any: ...
