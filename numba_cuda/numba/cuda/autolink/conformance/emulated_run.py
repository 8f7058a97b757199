# SPDX-License-Identifier: BSD-2-Clause
"""Whether the linked code runs: in the emulator, with random arguments, with the results of its Python equivalent."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.cuda import compile as compile_function
from numba.cuda import types
from numba.cuda.cudadrv.external_code.platform.target import Target
from numba.cuda.np.numpy_support import as_dtype

from numba_cuda_autolink.errors import FinishedKernelError

from ..compilation.context import compute_capability, without_device
from .records import FailedError, Findings, SkippedError
from .subject import Argument, Probe, make_probe

_THREADS = 32
_LENGTH = 64  # of each axis of an array: small integers are indices in it
_INTEGERS, _FLOATS = (1, 8), (0.05, 0.95)
_MOST_BACK_EDGES = 1 << 22
_SEED = 20260101


def check_run(findings: Findings, obj: Any, args: Sequence[Argument], target: Target) -> None:
    """Check that a call of *obj* computes in the emulator what its Python equivalent, ``__call__``, computes.

    Random scalars differ in each thread; with arrays there is one thread. What fails with random arguments, as an index
    may, is not an error of the object.
    """
    name = "computes in the emulator what its __call__ does, for random arguments"
    with findings.check(name):
        given = _random_arguments(args)
        returns = _result_type(obj, args, target)
        threads = 1 if any(isinstance(arg.type, types.Array) for arg in args) else _THREADS
        on_device, in_python = copy.deepcopy(given), copy.deepcopy(given)
        results = _emulate(obj, args, target, returns, threads, on_device)
        expected = _call_python(obj, args, in_python, threads)
        _compare(_Run("the result", given, args), results, expected)
        for k, arg in enumerate(args):
            if isinstance(arg.type, types.Array):
                _compare(_Run(f"argument {k + 1} after the call", given, args), on_device[k], in_python[k])


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


def _random_arguments(args: Sequence[Argument]) -> list[Any]:
    """Return an array for each argument with a type: of a scalar, the values of all threads."""
    random = np.random.default_rng(_SEED)
    values: list[Any] = []
    for arg in args:
        if arg.type is None:
            values.append(None)
            continue
        is_array = isinstance(arg.type, types.Array)
        dtype = _dtype_of(arg.type.dtype if is_array else arg.type)
        shape = (_LENGTH,) * arg.type.ndim if is_array else (_THREADS,)
        array = _random_array(random, dtype, shape)
        values.append(np.asfortranarray(array) if is_array and arg.type.layout == "F" else array)
    return values


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


def _emulate(
    obj: Any, args: Sequence[Argument], target: Target, returns: types.Type, threads: int, given: Sequence[Any]
) -> np.ndarray | None:
    """Run the call in *threads* threads; return the results, or ``None`` if there are none."""
    has_result = not isinstance(returns, types.NoneType)
    results = np.zeros(threads, _dtype_of(returns)) if has_result else None
    probe = _kernel(obj, args, returns)
    values = [value for value in given if value is not None]
    try:
        linked = probe.build(target, lto=target.lto, output="ptx")
        kernel = linked.emulate.with_limit(_MOST_BACK_EDGES)
        kernel[1, threads](*values, *([results] if has_result else []))
    except FinishedKernelError as error:
        raise SkippedError(_first_line(error)) from error
    except (RuntimeError, ImportError) as error:
        raise SkippedError(f"with random arguments: {_first_line(error)}") from error
    return results


def _kernel(obj: Any, args: Sequence[Argument], returns: types.Type) -> Probe:
    """Return a kernel whose scalar parameters are arrays with an element for each thread, and whose last one takes the
    results."""
    from numba import cuda

    scalars = {k for k, arg in enumerate(args) if arg.type is not None and not isinstance(arg.type, types.Array)}
    arrays = [Argument(types.Array(arg.type, 1, "C")) if k in scalars else arg for k, arg in enumerate(args)]
    passed = {k: "[cuda.threadIdx.x]" for k in scalars}
    if isinstance(returns, types.NoneType):
        return make_probe(obj, arrays, "    obj({arguments})\n", passed, cuda=cuda)
    body = "    results[cuda.threadIdx.x] = obj({arguments})\n"
    return make_probe(obj, arrays, body, passed, {"results": types.Array(returns, 1, "C")}, cuda=cuda)


def _call_python(obj: Any, args: Sequence[Argument], given: Sequence[Any], threads: int) -> list[Any]:
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
        except Exception as error:
            raise SkippedError(f"it runs, and in Python raises {type(error).__name__}: {_first_line(error)}") from error
    return results


def _compare(run: _Run, got: np.ndarray | None, expected: Any) -> None:
    """Raise `FailedError` where *got* and *expected* differ by more than rounding."""
    if got is None:
        return
    for index, one in np.ndenumerate(got):
        other = expected[index] if isinstance(expected, np.ndarray) else expected[index[0]]
        if not _is_close(one, other):
            call = f"({run.describe(index[0] if got.shape == (_THREADS,) else 0)})"
            where = f"{run.what} {list(index)}" if run.what != "the result" else run.what
            raise FailedError(
                f"{where} of {call} is {one!r} in the emulator",
                f"{other!r}, as its __call__ returns",
                "let the linked code and __call__ compute the same",
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
