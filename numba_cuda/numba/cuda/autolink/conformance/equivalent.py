# SPDX-License-Identifier: BSD-2-Clause
"""The Python equivalent of linked code, ``__call__``: what it computes, and whether the code computes the same."""

from __future__ import annotations

import copy
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr
from numba.cuda.cudadrv.external_code.diagnostics.signal_handlers import raised_by_signal_handler
from numba.cuda.cudadrv.external_code.inputs.link_input import NOT_ASYNC, close_coroutine

from ..protocol.errors import raised_by_user_code
from .records import FailedError, FailedRunError, SkippedError
from .results import Results, elements_of
from .samples import Sample, array_of, largest_of
from .subject import line_of_place

CALLS = 2
_MOST_LINES = 1 << 16
_DIGITS_OF_DOUBLES = 1e-12
_NEAR = 1e-2
_NO_EQUIVALENT = "it runs, and has no Python equivalent to compare with"


@dataclass(frozen=True)
class Expected:
    """What calls compute in Python: the results of each call, made several times, and the arguments afterwards.

    ``sample`` has the calls that the equivalent accepts.
    """

    sample: Sample
    results: Sequence[Sequence[Any]]
    values: Sequence[Any]

    @classmethod
    def of(cls, obj: Any, sample: Sample) -> Expected:
        """Call *obj*. Raise `SkippedError` if it is no equivalent, or refuses all calls."""
        if not callable(obj):
            raise SkippedError(_NO_EQUIVALENT)
        values = copy.deepcopy(sample.values)
        accepted: dict[int, list[Any]] = {}
        refused: FailedRunError | None = None
        for number in range(sample.calls):
            call = [
                arg.constant if arg.type is None else value[number] if arg.is_scalar else value
                for arg, value in zip(sample.args, values, strict=True)
            ]
            try:
                accepted[number] = [_call(obj, call, sample.is_wide) for _ in range(CALLS)]
            except FailedRunError as error:
                refused = refused or error
        if not accepted and refused is not None:
            raise refused
        done = Sample(sample.args, values, sample.calls).of_calls([*accepted]).values
        return cls(sample.of_calls([*accepted]), [*zip(*accepted.values(), strict=True)], done)


def _call(obj: Any, call: Sequence[Any], is_wide: bool) -> Any:
    """Return what the equivalent returns. Raise `FailedRunError` where it refuses the arguments.

    Wide arguments are refused, too, if it computes infinity, NaN or a complex number of real ones, or does not end.
    """
    try:
        if is_wide:
            with np.errstate(divide="raise", over="raise", invalid="raise", under="ignore"):
                result = _call_within_limit(obj, call)
            if np.iscomplexobj(result) and not any(map(np.iscomplexobj, call)):
                raise ValueError("the result is complex")
        else:
            with np.errstate(all="ignore"):
                result = obj(*call)
    except NotImplementedError as error:
        raise SkippedError(_NO_EQUIVALENT) from error
    except (Exception, SystemExit) as error:
        if raised_by_signal_handler(error):
            raise
        if _is_for_simulator(error):
            raise SkippedError("it runs, and its Python equivalent, for the simulator, uses numba.cuda") from error
        raised = f"raises {type(error).__name__}: {str(error).partition(chr(10))[0]}"
        mistakes = (NameError, SystemExit) if is_wide else (NameError, SystemExit, AttributeError, TypeError)
        if isinstance(error, mistakes):
            if misfit := _misfit(obj, call):
                got = f"its __call__ does not take the arguments of the call: {misfit}{place_of_equivalent(obj)}"
                todo = "give it the parameters of __numba_cuda_call__, or leave it out"
                raise FailedError(got, "a result", todo) from error
            got = f"its __call__ {raised}\nraised at: {raised_by_user_code(error)}"
            raise FailedError(got, "a result", "correct it, or leave __call__ out") from error
        raise FailedRunError(f"in Python {raised}") from error
    if close_coroutine(result):
        raise FailedError(f"its __call__ returns a coroutine{place_of_equivalent(obj)}", "a result", NOT_ASYNC)
    return result


def _misfit(obj: Any, call: Sequence[Any]) -> str:
    """Return why ``__call__`` does not take the arguments of a *call*, in Python's words; empty if it does."""
    try:
        inspect.signature(obj).bind(*call)
    except TypeError as error:
        return str(error)
    except ValueError:  # it has no signature
        return ""
    return ""


def place_of_equivalent(obj: Any) -> str:
    """Return a line with the place where ``__call__`` is defined; empty if that is unknown, or it stands for another
    function."""
    return "" if obj.__call__.__module__.startswith("numba.cuda.autolink.") else line_of_place(obj.__call__)


class _TooLongError(BaseException):
    """Raised within a function that does not end; a class that no function handles."""


def _call_within_limit(obj: Any, call: Sequence[Any]) -> Any:
    """Return ``obj(*call)``. Raise `TimeoutError` once it has executed more lines than any call needs."""
    left = _MOST_LINES

    def count(frame: Any, event: str, arg: Any) -> Callable[..., Any]:
        nonlocal left
        left -= 1
        if left < 0:
            raise _TooLongError
        return count

    previous = sys.gettrace()
    sys.settrace(count)
    try:
        return obj(*call)
    except _TooLongError:
        raise TimeoutError("it does not end") from None
    finally:
        sys.settrace(previous)


def _is_for_simulator(error: BaseException) -> bool:
    """Return whether a function that raised *error* uses ``numba.cuda``, whose names in Python mean nothing."""
    from numba import cuda

    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_globals["__name__"] != __name__]
    return any(frame.f_globals.get(name) is cuda for frame in frames for name in frame.f_code.co_names)


class Comparison:
    """Compares what linked code computed with what the *expected* calls, all of the check, compute in Python.

    Floating values differ by up to *rtol* of their size, and near zero by as much of the largest result or argument,
    whichever is smaller. The default is half of the digits, or 12 of them where all floats of the call are doubles.
    """

    def __init__(
        self,
        dtypes: Sequence[np.dtype],
        results: Results,
        expected: Sequence[Expected],
        rtol: float | None,
        place: str = "",
    ):
        self._results = results
        self._rtol = rtol
        self._place = place  # of the equivalent, as a line
        self._are_doubles = all(np.finfo(each).eps < _DIGITS_OF_DOUBLES for each in _floats_in(dtypes))
        returned = (result for each in expected for repeated in each.results for result in repeated)
        split = [parts for parts in map(results.split, returned) if parts is not None]
        self._largest = [max(map(largest_of, part), default=0.0) for part in zip(*split, strict=True)]

    def check_results(self, expected: Expected, repetition: int, got: Sequence[np.ndarray]) -> None:
        """Raise `FailedError` where a result differs from that of the same call in Python: *got* has an array for each
        part of it."""
        if not got:
            return
        calls = zip(zip(*got, strict=True), expected.results[repetition], strict=True)
        for number, (ones, returned) in enumerate(calls):
            call, others = expected.sample.describe(number), self._results.split(returned)
            if others is None:
                said = f"its __call__ returns {safe_repr(returned)} for {call}"
                wanted = f"a value as the linked code returns, {self._results.describe(ones)}"
                raise FailedError(said + self._place, wanted, "return the result from __call__")
            for part, one, other, largest in zip(self._results.parts, ones, others, self._largest, strict=True):
                scale = min(largest, expected.sample.largest)
                if not self.is_close(one, other, scale):
                    what = f"the result{part.name} of {call}{', called again,' * repetition}"
                    raise self._difference(what, one, other, expected.sample, scale)

    def check_argument(self, expected: Expected, k: int, got: np.ndarray) -> None:
        """Raise `FailedError` where argument *k*, arrays or records, differs from that after the calls in Python."""
        scale = min(largest_of(expected.values[k]), expected.sample.largest)
        if self.is_close(got, expected.values[k], scale):
            return
        for index, one in np.ndenumerate(got):
            other = expected.values[k][index]
            if not self.is_close(one, other, scale):
                what = f"argument {k + 1} after the call {list(index)} of {expected.sample.describe(0)}"
                raise self._difference(what, one, other, expected.sample, scale)

    def is_close(self, one: Any, other: Any, scale: float, rtol: float | None = None) -> bool:
        if isinstance(one, np.void):
            ones, others = elements_of(one) or [], elements_of(other)
            return (
                others is not None
                and len(ones) == len(others)
                and all(self.is_close(*pair, scale, rtol) for pair in zip(ones, others, strict=True))
            )
        got, expected = np.asarray(one), array_of(other)
        if got.dtype.kind not in "fc":
            return bool(np.array_equal(got, expected))
        if expected.dtype.kind not in "biufc" or expected.shape != got.shape:
            return False
        rtol = rtol or self._tolerance(got.dtype, expected.dtype)
        if got.dtype.kind == "c" or expected.dtype.kind != "c":
            with np.errstate(all="ignore"):
                expected = expected.astype(got.dtype)
        return bool(np.allclose(got, expected, rtol=rtol, atol=rtol * scale, equal_nan=True))

    def _tolerance(self, *compared: np.dtype) -> float:
        if self._rtol is not None:
            return self._rtol
        digits = max(float(np.finfo(dtype).eps) for dtype in _floats_in(compared))
        return _DIGITS_OF_DOUBLES if self._are_doubles and digits < _DIGITS_OF_DOUBLES else digits**0.5

    def _difference(self, what: str, one: Any, other: Any, sample: Sample, scale: float) -> FailedError:
        todo = "let the linked code and __call__ compute the same, at each call"
        dtypes = np.asarray(one).dtype, array_of(other).dtype
        if dtypes[0].kind in "fc" and self.is_close(one, other, scale, _NEAR):
            todo += f"; pass rtol= if they may differ by more than {self._tolerance(*dtypes):.1e} of it"
        if sample.is_wide:
            todo += "; let __call__ raise ValueError for arguments that it is not for, or pass samples="
        expected = f"{other!r}, as its __call__ returns{self._place}"
        return FailedError(f"{what} is {one!r} in the emulator, and {other!r} in Python", expected, todo)


def _floats_in(dtypes: Iterable[np.dtype]) -> Iterator[np.dtype]:
    for dtype in dtypes:
        if dtype.names is not None:
            yield from _floats_in(dtype[name].base for name in dtype.names)
        elif dtype.kind in "fc":
            yield dtype
