# SPDX-License-Identifier: BSD-2-Clause
"""Streams of other libraries as the driver's handles."""

from __future__ import annotations

import operator
from typing import Any

from ..errors import LaunchError, called_at
from .views import shown

_ATTRIBUTES = ("cuda_stream", "ptr", "handle")  # PyTorch, CuPy, numba-cuda before 0.30


def stream_handle(stream: Any) -> int:
    """Return the handle of *stream*: a stream of cuda.core, numba-cuda, CuPy or PyTorch, or of any library that has
    ``__cuda_stream__``; an integer; or ``None``, which like 0 is the default stream. Raise `LaunchError` for others."""
    if stream is None:
        return 0
    why = ""
    try:
        handle = _handle(stream)
    except Exception as error:  # foreign objects raise whatever they like
        handle, why = None, f"\n  it raised: {type(error).__name__}"
    if handle is not None and 0 <= handle < 1 << 64:
        return handle
    raise LaunchError(
        f"a stream is needed, got {shown(stream)}{called_at()}"
        f"\n  expected: a stream of numba-cuda, cuda.core, CuPy or PyTorch, or an integer{why}"
    )


def _handle(stream: Any) -> int | None:
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version, handle = protocol() if callable(protocol) else protocol
        if version == 0:
            return int(handle)
    if isinstance(stream, (bool, float, str, type)):
        return None
    try:
        return operator.index(stream)
    except TypeError:
        pass
    for name in _ATTRIBUTES:
        handle = getattr(stream, name, None)
        if handle is not None:
            return int(handle)
    # A graph builder of cuda.core has its stream.
    return _handle(stream.stream) if hasattr(stream, "stream") else None
