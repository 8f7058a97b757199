# SPDX-License-Identifier: BSD-2-Clause
"""Streams of other libraries as the driver's handles."""

from __future__ import annotations

import operator
from typing import Any

from .errors import LaunchError, called_at

_ATTRIBUTES = ("cuda_stream", "ptr", "handle")  # PyTorch, CuPy, numba-cuda before 0.30


def stream_handle(stream: Any) -> int:
    """Return the handle of *stream*: a stream of cuda.core, numba-cuda, CuPy or PyTorch, or of any library that has
    ``__cuda_stream__``; an integer; or ``None``, which like 0 is the default stream. Raise `LaunchError` for others."""
    if stream is None:
        return 0
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version, handle = protocol() if callable(protocol) else protocol
        if version == 0:
            return int(handle)
    if not isinstance(stream, (bool, float, str)):
        try:
            return operator.index(stream)
        except TypeError:
            pass
        for name in _ATTRIBUTES:
            handle = getattr(stream, name, None)
            if handle is not None:
                return int(handle)
        if hasattr(stream, "stream"):  # a graph builder of cuda.core
            return stream_handle(stream.stream)
    raise LaunchError(
        f"a stream is needed, got {type(stream).__name__} {stream!r:.40}{called_at()}"
        "\n  expected: a stream of numba-cuda, cuda.core, CuPy or PyTorch, or an integer"
    )
