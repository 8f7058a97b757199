# SPDX-License-Identifier: BSD-2-Clause
"""Type inference, which runs again where a registered function has rewritten calls that it refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..compilation.context import compilation
from .front_end import NUMBA_CUDA, Vocabulary
from .typing_rounds import GuessedFunction, is_guessing

Rewrite = Callable[[Any, Vocabulary], bool]
_rewrites: list[Rewrite] = []


def register_rewrite(rewrite: Rewrite) -> Rewrite:
    """Decorate a function that rewrites the IR in a compiler's state after type inference has failed, and returns
    whether it changed any call."""
    _rewrites.append(rewrite)
    return rewrite


def infer_types(
    infer: Callable[[Any, Any], Any],
    inference: Any,
    state: Any,
    refused: type[Exception],
    vocabulary: Vocabulary = NUMBA_CUDA,
) -> Any:
    """Return what *infer*, with the pass *inference*, makes of the compiler's *state*, in the IR of *vocabulary*. It
    runs again as long as it is *refused* and a rewrite changes calls of the function. Raise `GuessedFunction` for a
    function that is typed under guesses."""
    while True:
        try:
            inferred_types = infer(inference, state)
        except refused:
            if is_guessing() or compilation() is None:
                raise
            if not any([rewrite(state, vocabulary) for rewrite in _rewrites]):
                raise
        else:
            if is_guessing() and inference._raise_errors:  # where it does not, a part of a function is typed
                raise GuessedFunction(state.return_type)
            return inferred_types
