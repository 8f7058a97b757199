# SPDX-License-Identifier: BSD-2-Clause
"""Whether the linked code runs: in the emulator, with random arguments, with the results of its Python equivalent."""

from __future__ import annotations

import copy
import math
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numba.cuda import compile as compile_function
from numba.cuda import types
from numba.cuda.cudadrv.external_code.platform.target import Target
from numba.cuda.np.numpy_support import as_dtype

from numba_cuda_autolink.emulator.errors import AddressSpaceError, BarrierError, EmulationError, FaultError
from numba_cuda_autolink.errors import FinishedKernelError

from ..compilation.context import compute_capability, without_device
from .records import FailedError, FailedRunError, Findings, SkippedError
from .subject import Argument, Probe, make_probe

MOST_THREADS = 1024
_THREADS = 32
_CALLS = 2
_INTEGERS, _FLOATS = (1, 8), (0.05, 0.95)
_MOST_BACK_EDGES = 1 << 22
_SEED = 20260101
_THREAD = "    thread = cuda.threadIdx.x + cuda.blockDim.x * (cuda.threadIdx.y + cuda.blockDim.y * cuda.threadIdx.z)\n"
_NO_EQUIVALENT = "it runs, and has no Python equivalent to compare with"
_WRONG_ARGUMENTS = (
    "if these are wrong arguments, pass check_linkable the length= of arrays, the threads= that make a call, constants"
    " (types.literal(2)), or let __call__ raise ValueError for them"
)
Block: TypeAlias = "int | tuple[int, ...]"
_Launch: TypeAlias = "Callable[[Block, Sequence[Any]], np.ndarray | None]"


def block_size(block: Block) -> int:
    return math.prod(block) if isinstance(block, tuple) else block


def check_run(
    findings: Findings, obj: Any, args: Sequence[Argument], target: Target, length: int, threads: Block | None
) -> None:
    """Check that calls of *obj* run in the emulator, and compute there what its Python equivalent, ``__call__``, does.

    A kernel makes two calls, and is launched with several samples of arguments: what depends on earlier calls shows.
    Axes of arrays have *length* elements. Each thread has scalars of its own. With arrays, which all threads share, the
    block of *threads* makes one call; where it is not given, a warp runs, and one thread is compared.
    """
    name = "computes in the emulator what its __call__ does, for random arguments"
    with findings.check(name):
        is_shared = any(isinstance(arg.type, types.Array) for arg in args)
        blocks: list[Block] = [threads] if threads is not None else [1, _THREADS] if is_shared else [_THREADS]
        launch = _emulated(obj, args, target, _result_type(obj, args, target))
        samples = _samples(args, 1 if is_shared else block_size(blocks[0]), length)
        not_compared = [_check_sample(obj, sample, blocks, launch) for sample in samples]
        for error in filter(None, not_compared):
            raise error


@dataclass(frozen=True)
class _Sample:
    """Arguments of *calls* in Python: an array for each argument with a type; of a scalar, the values of all calls."""

    args: Sequence[Argument]
    values: Sequence[Any]
    calls: int

    def make_values(self, block: Block) -> list[Any]:
        """Return the values for the threads of a block, which can write to them."""
        return [
            np.resize(value, block_size(block)) if arg.is_scalar else copy.deepcopy(value)
            for arg, value in zip(self.args, self.values, strict=True)
        ]

    @property
    def integers_differ(self) -> bool:
        values = (value for arg, value in zip(self.args, self.values, strict=True) if arg.is_scalar)
        return any(value.dtype.kind in "iu" and np.any(value != value[0]) for value in values)

    def describe(self, call: int) -> str:
        shown = (
            repr(value[call].item()) if arg.is_scalar else str(arg)
            for arg, value in zip(self.args, self.values, strict=True)
        )
        return ", ".join(shown)


def _check_sample(obj: Any, sample: _Sample, blocks: Sequence[Block], launch: _Launch) -> SkippedError | None:
    """Run the calls in each block, and compare those in the first one. Return the reason where none is compared."""
    in_python = copy.deepcopy(sample.values)
    try:
        expected = [_call_python(obj, sample, in_python) for _ in range(_CALLS)]
    except SkippedError as reason:
        return _run_alone(sample, blocks[-1], launch, reason)
    on_device = sample.make_values(blocks[0])
    results = _run(launch, blocks[0], sample, on_device)
    for number, returned in enumerate(results if results is not None else ()):
        _compare("the result", sample, returned[: sample.calls], expected[number], ", called again," * number)
    for k, arg in enumerate(sample.args):
        if isinstance(arg.type, (types.Array, types.Record)):
            got = on_device[k][: sample.calls] if arg.is_scalar else on_device[k]
            _compare(f"argument {k + 1} after the call", sample, got, in_python[k])
    for block in blocks[1:]:
        _run(launch, block, sample, sample.make_values(block))
    return None


def _run_alone(sample: _Sample, block: Block, launch: _Launch, reason: SkippedError) -> SkippedError:
    """Run calls that are not compared with those in Python, and return the *reason* for it."""
    is_refused = isinstance(reason, FailedRunError)
    results = _run(launch, block, sample, sample.make_values(block), str(reason) if is_refused else "")
    if is_refused:
        return FailedRunError(f"it runs, and {reason}")
    _compare_repeated(sample, results)
    return reason


def _run(launch: _Launch, block: Block, sample: _Sample, values: Sequence[Any], refused: str = "") -> np.ndarray | None:
    """Return the results of the calls. Raise `FailedError` for a fault, unless the arguments may be wrong ones."""
    try:
        return launch(block, values)
    except AddressSpaceError as error:
        raise SkippedError("an array must be in shared memory, and the check passes it in global memory") from error
    except FaultError as error:
        if isinstance(error, BarrierError) and sample.integers_differ:
            refused = "integers differ in each thread"
        if refused:
            raise FailedRunError(f"with random arguments: {_first_line(error)}; {refused}") from error
        todo = f"let the code do so for no arguments; {_WRONG_ARGUMENTS}"
        raise FailedError(f"{error}\nwith ({sample.describe(0)})", "a run without faults", todo) from error
    except EmulationError as error:
        raise FailedRunError(
            f"with random arguments: {_first_line(error)}\n  what to do: {_WRONG_ARGUMENTS}"
        ) from error


def _samples(args: Sequence[Argument], calls: int, length: int) -> Iterator[_Sample]:
    """Yield the arguments of several launches. In all but the last one, all integers are equal: to 1, to 2, and so on;
    all else is random."""
    random = np.random.default_rng(_SEED)
    for equal in (*range(*_INTEGERS), None):
        values: list[Any] = []
        for arg in args:
            if arg.type is None:
                values.append(None)
            elif arg.is_scalar:
                array = _random_array(random, _dtype_of(arg.type), (calls,))
                if equal is not None and array.dtype.kind in "iu":
                    array[:] = equal
                values.append(array)
            else:
                array = _random_array(random, _dtype_of(arg.type.dtype), (length,) * arg.type.ndim)
                values.append(np.asfortranarray(array) if arg.type.layout == "F" else array)
        yield _Sample(args, values, calls)


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


def _emulated(obj: Any, args: Sequence[Argument], target: Target, returns: types.Type) -> _Launch:
    """Return what runs the calls in a block, with these arguments, and returns the results of each call, or ``None`` if
    there are none. Raise `SkippedError` if the emulator cannot run them."""
    dtype = None if isinstance(returns, types.NoneType) else _dtype_of(returns)
    try:
        linked = _kernel(obj, args, returns).build(target, lto=target.lto, output="ptx")
        kernel = linked.emulate.with_checks().with_limit(_MOST_BACK_EDGES)
    except (FinishedKernelError, RuntimeError, ImportError) as error:
        raise SkippedError(_first_line(error)) from error

    def launch(block: Block, given: Sequence[Any]) -> np.ndarray | None:
        results = None if dtype is None else np.zeros((_CALLS, block_size(block)), dtype)
        values = [value for value in (*given, results) if value is not None]
        try:
            kernel[1, block](*values)
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

    arrays = [Argument(types.Array(arg.type, 1, "C")) if arg.is_scalar else arg for arg in args]
    passed = {k: "[thread]" for k, arg in enumerate(args) if arg.is_scalar}
    has_result = not isinstance(returns, types.NoneType)
    keep = "results[{call}, thread] = " if has_result else ""
    calls = (f"    {keep.format(call=call)}obj({{arguments}})\n" for call in range(_CALLS))
    parameters = {"results": types.Array(returns, 2, "C")} if has_result else {}
    return make_probe(obj, arrays, _THREAD + "    cuda.syncthreads()\n".join(calls), passed, parameters, cuda=cuda)


def _call_python(obj: Any, sample: _Sample, values: Sequence[Any]) -> list[Any]:
    if not callable(obj):
        raise SkippedError(_NO_EQUIVALENT)
    results = []
    for number in range(sample.calls):
        call = [
            arg.constant if arg.type is None else value[number] if arg.is_scalar else value
            for arg, value in zip(sample.args, values, strict=True)
        ]
        try:
            with np.errstate(all="ignore"):
                results.append(obj(*call))
        except NotImplementedError as error:
            raise SkippedError(_NO_EQUIVALENT) from error
        except Exception as error:
            if _is_for_simulator(error):
                raise SkippedError("it runs, and its Python equivalent, for the simulator, uses numba.cuda") from error
            raised = f"raises {type(error).__name__}: {_first_line(error)}"
            if isinstance(error, (NameError, AttributeError, TypeError)):
                todo = "correct it, or leave __call__ out"
                raise FailedError(f"its __call__ {raised}", "a result", todo) from error
            raise FailedRunError(f"in Python {raised}") from error
    return results


def _is_for_simulator(error: BaseException) -> bool:
    """Return whether a function that raised *error* uses ``numba.cuda``, whose names in Python mean nothing."""
    from numba import cuda

    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_globals["__name__"] != __name__]
    return any(frame.f_globals.get(name) is cuda for frame in frames for name in frame.f_code.co_names)


def _compare(what: str, sample: _Sample, got: np.ndarray, expected: Any, again: str = "") -> None:
    """Raise `FailedError` where *got* and *expected* differ by more than rounding."""
    for index, one in np.ndenumerate(got):
        other = expected[index] if isinstance(expected, np.ndarray) else expected[index[0]]
        if not _is_close(one, other):
            of_calls = not isinstance(expected, np.ndarray)
            where = what if of_calls else f"{what} {list(index)}"
            raise FailedError(
                f"{where} of ({sample.describe(index[0] if of_calls else 0)}){again} is {one!r} in the emulator",
                f"{other!r}, as its __call__ returns",
                "let the linked code and __call__ compute the same, at each call",
            )


def _compare_repeated(sample: _Sample, results: np.ndarray | None) -> None:
    """Raise `FailedRunError` where two calls with equal numbers return different results."""
    if results is None or any(isinstance(arg.type, (types.Array, types.Record)) for arg in sample.args):
        return  # which the first call may have changed
    for number, (first, again) in enumerate(results.T):
        if not _is_close(first, again):
            got = f"of ({sample.describe(number)}) it returns {first!r}, and {again!r} when it is called again"
            raise FailedRunError(f"{got}: it has state, which only a Python equivalent can check")


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
