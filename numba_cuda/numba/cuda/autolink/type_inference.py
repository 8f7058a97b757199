# SPDX-License-Identifier: BSD-2-Clause
"""Type inference, which runs again where functions of C++ write to their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .compilation import compilation
from .vocabulary import NUMBA_CUDA, Vocabulary


def inferred(
    infer: Callable[[Any, Any], Any],
    inference: Any,
    state: Any,
    refused: type[Exception],
    vocabulary: Vocabulary = NUMBA_CUDA,
) -> Any:
    """Return what *infer*, with the pass *inference*, makes of the compiler's *state*, in the IR of *vocabulary*. Calls
    of C++ that write to variables or elements are *refused* first, and then rewritten."""
    while True:
        try:
            return infer(inference, state)
        except refused:
            if compilation() is None:
                raise
            from .cxx_by_name.written_arguments import rewrite_written

            if not rewrite_written(state, vocabulary):
                raise
