# SPDX-License-Identifier: BSD-2-Clause
from collections.abc import Callable
from typing import Any

from numba_cuda.numba.cuda.extending import *  # noqa: F403

# Kernels call it without the context, which is its first parameter.
def intrinsic(*args: Any, **kwargs: Any) -> Callable[..., Any]: ...
def __getattr__(name: str) -> Any: ...
