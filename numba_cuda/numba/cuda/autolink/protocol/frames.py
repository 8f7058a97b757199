# SPDX-License-Identifier: BSD-2-Clause
"""Where in a user's own source an exception was raised."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Iterable

from numba.cuda.cudadrv import external_code

_OWN_FOLDERS = (
    os.path.dirname(os.path.dirname(__file__)) + os.sep,
    os.path.dirname(external_code.__file__) + os.sep,
    contextlib.__file__,
)


def raised_at(error: BaseException) -> str | None:
    """Return file, line and function of the innermost frame of *error*, or None if every frame is this package's."""
    frames = traceback.extract_tb(error.__traceback__)
    return _described(frames[-1]) if _outside(frames) else None


def raised_by_user_code(error: BaseException) -> str:
    """Return file and line of the innermost frame of *error* that is not this package's, else of the innermost one."""
    frames = traceback.extract_tb(error.__traceback__)
    frame = (_outside(frames) or frames)[-1]
    return f"{frame.filename}:{frame.lineno}"


def raised_by_hook(error: BaseException) -> str | None:
    """Return file, line and function of the outermost frame of *error* that is not this package's, or None."""
    outside = _outside(traceback.extract_tb(error.__traceback__))
    return _described(outside[0]) if outside else None


def _described(frame: traceback.FrameSummary) -> str:
    return f"{frame.filename}:{frame.lineno} in {frame.name}"


def _outside(frames: Iterable[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    return [frame for frame in frames if not frame.filename.startswith(_OWN_FOLDERS)]
