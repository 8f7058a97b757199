# SPDX-License-Identifier: BSD-2-Clause
"""Whether the linked code runs: in the emulator, with random arguments, with the results of its Python equivalent."""

from __future__ import annotations

import copy
import dataclasses
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.cuda import compile as compile_function
from numba.cuda import types
from numba.cuda.cudadrv.external_code.platform.target import Target
from numba.cuda.np.numpy_support import as_dtype

from numba_cuda_autolink.emulator import AddressSpaceError, EmulationError, FaultError
from numba_cuda_autolink.errors import FinishedKernelError

from ..compilation.context import compute_capability, without_device
from .records import FailedError, FailedRunError, Findings, SkippedError
from .subject import Argument, Probe, make_probe

_THREADS = 32
_CALLS = 2
_INTEGERS, _FLOATS = (1, 8), (0.05, 0.95)
_MOST_BACK_EDGES = 1 << 22
_SEED = 20260101


def check_run(findings: Findings, obj: Any, args: Sequence[Argument], target: Target, length: int) -> None:
    """Check that calls of *obj* compute in the emulator what its Python equivalent, ``__call__``, computes.

    A kernel makes two calls, and is launched with several samples of arguments: what depends on earlier calls shows.
    Axes of arrays have *length* elements. Scalars differ in each thread; with arrays there is one thread.
    """
    name = "computes in the emulator what its __call__ does, for random arguments"
    with findings.check(name):
        returns = _result_type(obj, args, target)
        threads = 1 if any(isinstance(arg.type, types.Array) for arg in args) else _THREADS
        launch = _emulated(obj, args, target, returns)
        for given in _samples(args, threads, length):
            _check_sample(obj, args, given, threads, launch)


def _check_sample(
    obj: Any, args: Sequence[Argument], given: Sequence[Any], threads: int, launch: Callable[..., Any]
) -> None:
    on_device, in_python = copy.deepcopy(given), copy.deepcopy(given)
    expected: list[list[Any]] = []
    raised: SkippedError | None = None
    try:
        expected = [_call_python(obj, args, in_python, threads) for _ in range(_CALLS)]
    except SkippedError as error:
        raised = error
    try:
        results = launch(threads, on_device)
    except AddressSpaceError as error:
        raise SkippedError("an array must be in shared memory, and the check passes it in global memory") from error
    except FaultError as error:
        if isinstance(raised, FailedRunError):
            raise FailedRunError(f"with random arguments: {_first_line(error)}; {raised}") from error
        todo = (
            "let the code do so for no arguments; if these are wrong ones, pass check_linkable the length= of arrays,"
            " constants (types.literal(2)), or let __call__ raise ValueError for them"
        )
        raise FailedError(f"{error}\n{_Run('with', given, args).describe(0)}", "a run without faults", todo) from error
    except EmulationError as error:
        raise FailedRunError(f"with random arguments: {_first_line(error)}") from error
    if isinstance(raised, FailedRunError):
        raise FailedRunError(f"it runs, and {raised}") from raised
    if raised is not None:
        raise raised
    run = _Run("the result", given, args)
    for number, returned in enumerate(results if results is not None else ()):
        _compare(run, returned, expected[number], ", called again," * number)
    for k, arg in enumerate(args):
        if isinstance(arg.type, (types.Array, types.Record)):
            changed = dataclasses.replace(run, what=f"argument {k + 1} after the call")
            _compare(changed, on_device[k], in_python[k])


@dataclass(frozen=True)
class _Run:
    """What is compared, and the arguments of the calls, for messages."""

    what: str
    given: Sequence[Any]
    args: Sequence[Argument]

    def describe(self, thread: int) -> str:
        shown = (
            str(arg) if value is None or isinstance(arg.type, types.Array) else repr(value[thread].item())
            for arg, value in zip(self.args, self.given, strict=True)
        )
        return ", ".join(shown)


def _samples(args: Sequence[Argument], threads: int, length: int) -> Iterator[list[Any]]:
    """Yield the arguments of several launches: an array for each argument with a type; of a scalar, the values of all
    threads. In the first one all are random, and then all integers are equal: to 1, to 2, and so on."""
    random = np.random.default_rng(_SEED)
    for equal in (None, *range(*_INTEGERS)):
        values: list[Any] = []
        for arg in args:
            if arg.type is None:
                values.append(None)
                continue
            is_array = isinstance(arg.type, types.Array)
            dtype = _dtype_of(arg.type.dtype if is_array else arg.type)
            array = _random_array(random, dtype, (length,) * arg.type.ndim if is_array else (threads,))
            if equal is not None and dtype.kind in "iu" and not is_array:
                array[:] = equal
            values.append(np.asfortranarray(array) if is_array and arg.type.layout == "F" else array)
        yield values


def _dtype_of(type: types.Type) -> np.dtype:
    if isinstance(type, (types.Number, types.Boolean, types.Record)):
        return as_dtype(type)
    raise SkippedError(f"there are no random values of the type {type}")


def _random_array(random: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    if dtype.names is not None:
        array = np.zeros(shape, dtype)
        for name in dtype.names:
            base, inner = dtype[name].subdtype or (dtype[name], ())
            array[name] = _random_array(random, base, (*shape, *inner))
        return array
    if dtype.kind == "c":
        return (random.uniform(*_FLOATS, shape) + 1j * random.uniform(*_FLOATS, shape)).astype(dtype)
    if dtype.kind == "f":
        return random.uniform(*_FLOATS, shape).astype(dtype)
    return random.integers(*((0, 2) if dtype.kind == "b" else _INTEGERS), shape).astype(dtype)


def _result_type(obj: Any, args: Sequence[Argument], target: Target) -> types.Type:
    probe = make_probe(obj, args, "    return obj({arguments})\n")
    with without_device(compute_capability(target.cc)):
        how = {"device": True, "output": "ltoir", "cc": target.compute_capability}
        _, returns = compile_function(probe.function, probe.types, **how)
    return returns


def _emulated(
    obj: Any, args: Sequence[Argument], target: Target, returns: types.Type
) -> Callable[[int, Sequence[Any]], np.ndarray | None]:
    """Return what runs the calls in some threads, with these arguments, and returns the results of each call, or
    ``None`` if there are none. Raise `SkippedError` if the emulator cannot run them."""
    dtype = None if isinstance(returns, types.NoneType) else _dtype_of(returns)
    try:
        linked = _kernel(obj, args, returns).build(target, lto=target.lto, output="ptx")
        kernel = linked.emulate.with_checks().with_limit(_MOST_BACK_EDGES)
    except (FinishedKernelError, RuntimeError, ImportError) as error:
        raise SkippedError(_first_line(error)) from error

    def launch(threads: int, given: Sequence[Any]) -> np.ndarray | None:
        results = None if dtype is None else np.zeros((_CALLS, threads), dtype)
        values = [value for value in (*given, results) if value is not None]
        try:
            kernel[1, threads](*values)
        except EmulationError as error:
            if error.thread is not None:  # of a kernel that runs
                raise
            raise SkippedError(_first_line(error)) from error
        except (FinishedKernelError, RuntimeError, ImportError) as error:
            raise SkippedError(_first_line(error)) from error
        return results

    return launch


def _kernel(obj: Any, args: Sequence[Argument], returns: types.Type) -> Probe:
    """Return a kernel whose scalar parameters are arrays with an element for each thread, and whose last one takes the
    results of each call."""
    from numba import cuda

    scalars = {k for k, arg in enumerate(args) if arg.type is not None and not isinstance(arg.type, types.Array)}
    arrays = [Argument(types.Array(arg.type, 1, "C")) if k in scalars else arg for k, arg in enumerate(args)]
    passed = {k: "[cuda.threadIdx.x]" for k in scalars}
    has_result = not isinstance(returns, types.NoneType)
    keep = "results[{call}, cuda.threadIdx.x] = " if has_result else ""
    calls = (f"    {keep.format(call=call)}obj({{arguments}})\n" for call in range(_CALLS))
    parameters = {"results": types.Array(returns, 2, "C")} if has_result else {}
    return make_probe(obj, arrays, "    cuda.syncthreads()\n".join(calls), passed, parameters, cuda=cuda)


def _call_python(obj: Any, args: Sequence[Argument], given: Sequence[Any], threads: int) -> list[Any]:
    if not callable(obj):
        raise SkippedError("it runs, and has no Python equivalent to compare with")
    results = []
    for thread in range(threads):
        call = [
            arg.constant if arg.type is None else value if isinstance(arg.type, types.Array) else value[thread]
            for arg, value in zip(args, given, strict=True)
        ]
        try:
            with np.errstate(all="ignore"):
                results.append(obj(*call))
        except NotImplementedError as error:
            raise SkippedError("it runs, and has no Python equivalent to compare with") from error
        except (NameError, AttributeError, TypeError) as error:
            if _is_for_simulator(error):
                raise SkippedError("it runs, and its Python equivalent, for the simulator, uses numba.cuda") from error
            got = f"its __call__ raises {type(error).__name__}: {_first_line(error)}"
            raise FailedError(got, "a result", "correct it, or leave __call__ out") from error
        except Exception as error:
            raise FailedRunError(f"in Python raises {type(error).__name__}: {_first_line(error)}") from error
    return results


def _is_for_simulator(error: BaseException) -> bool:
    """Return whether a function that raised *error* uses ``numba.cuda``, whose names in Python mean nothing."""
    from numba import cuda

    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_globals["__name__"] != __name__]
    return any(frame.f_globals.get(name) is cuda for frame in frames for name in frame.f_code.co_names)


def _compare(run: _Run, got: np.ndarray, expected: Any, again: str = "") -> None:
    """Raise `FailedError` where *got* and *expected* differ by more than rounding."""
    for index, one in np.ndenumerate(got):
        other = expected[index] if isinstance(expected, np.ndarray) else expected[index[0]]
        if not _is_close(one, other):
            of_threads = not isinstance(expected, np.ndarray)
            where = run.what if of_threads else f"{run.what} {list(index)}"
            raise FailedError(
                f"{where} of ({run.describe(index[0] if of_threads else 0)}){again} is {one!r} in the emulator",
                f"{other!r}, as its __call__ returns",
                "let the linked code and __call__ compute the same, at each call",
            )


def _is_close(one: Any, other: Any) -> bool:
    if isinstance(one, np.void):
        return all(_is_close(one[name], other[name]) for name in one.dtype.names or ())
    kind = np.asarray(one).dtype
    if kind.kind not in "fc":
        return bool(np.array_equal(one, other))
    tolerance = float(np.finfo(kind).eps) ** 0.5
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True))


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
