# SPDX-License-Identifier: BSD-2-Clause
"""Compiling a function with its loops over tuples unrolled; where that fails or means something else, as Numba does."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from numba.cuda import types

_T = TypeVar("_T")


@dataclass
class _Attempt:
    """The compilation of *function*. If loops of it are unrolled, *between* names variables whose types must agree."""

    function: Any
    between: tuple[tuple[str, ...], ...] | None = None


class _State(threading.local):
    attempt: _Attempt | None = None


_state = _State()


class TypesDifferError(Exception):
    """A variable has several types in the rounds of an unrolled loop, where a loop has one that fits all of them."""


@contextlib.contextmanager
def _attempting(attempt: _Attempt | None) -> Iterator[None]:
    outer, _state.attempt = _state.attempt, attempt
    try:
        yield
    finally:
        _state.attempt = outer


def with_unrolled_loops(function: Any, compile_: Callable[[], _T]) -> _T:
    """Return what *compile_* returns, which compiles *function*, with its loops over tuples of called objects unrolled.

    If that fails, in whatever way, it is called once more, and Numba compiles the loops, or says what is wrong.
    """
    attempt = _Attempt(function)
    try:
        with _attempting(attempt):
            return compile_()
    except Exception:
        if attempt.between is None:
            raise
    with _attempting(None):
        return compile_()


def unroll_loops(state: Any) -> bool:
    """Unroll the loops over tuples in the function of a compiler's *state*; return whether there were any."""
    attempt, flags = _state.attempt, state.flags
    if attempt is None or state.func_id.func is not attempt.function or attempt.between is not None:
        return False
    if not flags.enable_ssa or flags.dbg_extend_lifetimes:  # a debugger steps through loops
        return False
    from .loop_copies import unroll
    from .tuple_loops import UnknownFormError

    attempt.between = ()  # whatever fails from here on, Numba tries again
    try:
        attempt.between = unroll(state.func_ir)
    except UnknownFormError:
        attempt.between = None
    return attempt.between is not None


def types_to_infer_again(state: Any) -> bool:
    """After types were inferred, check those between the rounds of unrolled loops. Return whether they must be inferred
    again: constants are given the type that they would have in a loop. Raises `TypesDifferError`."""
    attempt = _state.attempt
    if attempt is None or attempt.between is None or state.func_id.func is not attempt.function:
        return False
    again = False
    for names in attempt.between:
        found = [state.typemap[name] for name in names]
        if len(set(found)) == 1:
            continue
        if len({*map(types.unliteral, found)}) != 1:
            raise TypesDifferError
        constants = [name for name, each in zip(names, found, strict=True) if isinstance(each, types.Literal)]
        if any(name in state.locals for name in constants):
            raise TypesDifferError
        state.locals.update({name: types.unliteral(state.typemap[name]) for name in constants})
        again = True
    return again
