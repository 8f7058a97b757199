# SPDX-License-Identifier: BSD-2-Clause
"""Whether the linked code runs: in the emulator, with several samples of arguments, with the results of its Python
equivalent."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numba.cuda import compile as compile_function
from numba.cuda import types
from numba.cuda.cudadrv.external_code.platform.target import Target
from numba.cuda.np.numpy_support import from_dtype

from numba_cuda_autolink.emulator.errors import AddressSpaceError, BarrierError, EmulationError, FaultError
from numba_cuda_autolink.errors import FinishedKernelError

from ..compilation.context import compute_capability, without_device
from .equivalent import CALLS, Comparison, Expected, place_of_equivalent
from .records import FailedError, FailedRunError, Findings, SkippedError, take_remedy
from .results import Results
from .samples import Block, RunOptions, Sample, block_size, dtype_of, given_samples, random_samples, wide_samples
from .subject import Argument, Probe, make_probe

_THREADS = 32
_MOST_BACK_EDGES = 1 << 22
_THREAD = "    thread = cuda.threadIdx.x + cuda.blockDim.x * (cuda.threadIdx.y + cuda.blockDim.y * cuda.threadIdx.z)\n"
_WRONG_ARGUMENTS = (
    "if these are wrong arguments, pass check_linkable samples= of right ones, the length= of arrays, the threads= that"
    " make a call, constants (types.literal(2)), or let __call__ raise ValueError for them"
)
_Launch: TypeAlias = "Callable[[Block, Sequence[Any]], list[np.ndarray]]"


def check_run(findings: Findings, obj: Any, args: Sequence[Argument], target: Target, options: RunOptions) -> None:
    """Check that calls of *obj* run in the emulator, and compute there what its Python equivalent, ``__call__``, does.

    A kernel makes two calls, and is launched with several samples of arguments: what depends on earlier calls shows.
    Each thread has scalars of its own. With arrays, which all threads share, a block of the threads that are given
    makes one call; where none are, a warp runs, and one thread is compared.
    """
    what = "random arguments" if options.samples is None else "the arguments of samples="
    with findings.check(f"runs in the emulator as in Python, for {what}"):
        is_shared = any(isinstance(arg.type, types.Array) for arg in args)
        blocks: list[Block] = [1, _THREADS] if is_shared else [_THREADS]
        if options.threads is not None:
            blocks = [options.threads]
        how = (args, 1 if is_shared else block_size(blocks[0]), options.length)
        given = options.samples
        samples = [*(random_samples(*how) if given is None else given_samples(args, given))]
        parts, not_compared = _find_parts(obj, args, target)
        run = _Run(_emulated(obj, args, target, parts), blocks)
        expected, refused = _all_expected(obj, samples)
        if given is None and (expected or isinstance(refused, FailedRunError)):
            expected += _all_expected(obj, wide_samples(*how))[0]
        if not expected and refused is not None:
            if isinstance(refused.__cause__, RecursionError):
                got = f"its __call__ calls itself without an end{place_of_equivalent(obj)}"
                raise FailedError(got, "a result", "let it end, or leave __call__ out") from refused
            run.alone(samples, refused)
            raise FailedRunError(f"it runs, and {refused}") if isinstance(refused, FailedRunError) else refused
        if not_compared is not None:
            run.alone(samples, not_compared)
            raise FailedRunError(f"it runs, and {not_compared}")
        comparison = Comparison(_dtypes_of(args, parts), parts, expected, options.rtol, place_of_equivalent(obj))
        for each in expected:
            run.compared(each, comparison)
        if given is not None and refused is not None:
            raise refused


def _all_expected(obj: Any, samples: Iterable[Sample]) -> tuple[list[Expected], SkippedError | None]:
    """Return what the samples compute in Python, without those that it refuses, and the first reason for that."""
    expected, refused = [], None
    for sample in samples:
        try:
            expected.append(Expected.of(obj, sample))
        except SkippedError as reason:
            refused = refused or reason
    return expected, refused


@dataclass(frozen=True)
class _Run:
    """Runs samples in *blocks*; what the first one computes is compared."""

    launched: _Launch
    blocks: Sequence[Block]

    def compared(self, expected: Expected, comparison: Comparison) -> None:
        """Run calls, and compare them with those in Python."""
        sample, first = expected.sample, self.blocks[0]
        on_device = sample.make_values(first)
        parts = self._launch(first, sample, on_device)
        for number in range(CALLS):
            comparison.check_results(expected, number, [part[number, : sample.calls] for part in parts])
        for k, arg in enumerate(sample.args):
            if isinstance(arg.type, (types.Array, types.Record)):
                comparison.check_argument(expected, k, on_device[k][: sample.calls] if arg.is_scalar else on_device[k])
        for block in () if sample.is_wide else self.blocks[1:]:
            self._launch(block, sample, sample.make_values(block))

    def alone(self, samples: Iterable[Sample], reason: SkippedError) -> None:
        """Run calls that are not compared with those in Python, for a *reason*."""
        block = self.blocks[-1]
        refused = str(reason) if isinstance(reason, FailedRunError) else ""
        for sample in samples:
            parts = self._launch(block, sample, sample.make_values(block), refused)
            if not refused:
                _compare_repeated(sample, parts)

    def _launch(self, block: Block, sample: Sample, values: Sequence[Any], refused: str = "") -> list[np.ndarray]:
        """Return the results of the calls. Raise `FailedError` for a fault, unless the arguments may be wrong ones."""
        try:
            return self.launched(block, values)
        except AddressSpaceError as error:
            raise SkippedError("an array must be in shared memory, and the check passes it in global memory") from error
        except EmulationError as error:
            said, remedy = take_remedy(str(error))
            remedy = f"{remedy}; {_WRONG_ARGUMENTS}".removeprefix("; ")
            diagnosis, *where = said.split("\n")
            where.append(f"  with: {sample.describe(sample.call_of(error.thread, block))}")
            if isinstance(error, BarrierError) and sample.integers_differ:
                refused = "integers differ in each thread"
            elif sample.is_wide:
                refused = "in Python it does not fail"
            if isinstance(error, FaultError) and not refused:
                raise FailedError("\n".join([diagnosis, *where]), "a run without faults", remedy) from error
            diagnosis += f"; {refused}" * bool(refused)
            raise FailedRunError("\n".join([diagnosis, *where, f"  what to do: {remedy}"])) from error


def _compare_repeated(sample: Sample, parts: Sequence[np.ndarray]) -> None:
    """Raise `FailedRunError` where two calls with equal numbers return different results."""
    if any(isinstance(arg.type, (types.Array, types.Record)) for arg in sample.args):
        return  # which the first call may have changed
    comparison = Comparison([part.dtype for part in parts], Results(types.none), [], None)
    for number, (first, again) in itertools.chain(*(enumerate(part.T) for part in parts)):
        if not comparison.is_close(first, again, sample.largest):
            got = f"of {sample.describe(number)} it returns {first!r}, and {again!r} when it is called again"
            raise FailedRunError(f"{got}: it has state, which only a Python equivalent can check")


def _dtypes_of(args: Sequence[Argument], results: Results) -> list[np.dtype]:
    found = (arg.type.dtype if isinstance(arg.type, types.Array) else arg.type for arg in args if arg.type is not None)
    return [*map(dtype_of, found), *(part.dtype for part in results.parts)]


def _result_type(obj: Any, args: Sequence[Argument], target: Target) -> types.Type:
    probe = make_probe(obj, args, "    return obj({arguments})\n")
    with without_device(compute_capability(target.cc)):
        how = {"device": True, "output": "ltoir", "cc": target.compute_capability}
        _, returns = compile_function(probe.function, probe.types, **how)
    return returns


def _find_parts(obj: Any, args: Sequence[Argument], target: Target) -> tuple[Results, SkippedError | None]:
    """Return the parts of results; of those that cannot be compared, none, and the reason."""
    try:
        return Results(_result_type(obj, args, target)), None
    except SkippedError as reason:
        return Results(types.none), reason


def _emulated(obj: Any, args: Sequence[Argument], target: Target, results: Results) -> _Launch:
    """Return what runs the calls in a block, with these arguments, and returns the results of all calls, those of each
    part of a result in an array. Raise `SkippedError` if the emulator cannot run them."""
    try:
        linked = _kernel(obj, args, results).build(target, lto=target.lto)
        kernel = linked.emulate.with_checks().with_limit(_MOST_BACK_EDGES)
    except (FinishedKernelError, RuntimeError, ImportError) as error:
        raise SkippedError(_first_line(error)) from error

    def launch(block: Block, given: Sequence[Any]) -> list[np.ndarray]:
        kept = None if results.dtype is None else np.zeros((CALLS, block_size(block)), results.dtype)
        values = [value for value in (*given, kept) if value is not None]
        try:
            kernel[1, block](*values)
        except EmulationError as error:
            if error.thread is not None:  # of a kernel that runs
                raise
            raise SkippedError(_first_line(error)) from error
        except (FinishedKernelError, RuntimeError, ImportError) as error:
            raise SkippedError(_first_line(error)) from error
        return [] if kept is None else results.parts_of(kept)

    return launch


def _kernel(obj: Any, args: Sequence[Argument], results: Results) -> Probe:
    """Return a kernel whose scalar parameters are arrays with an element for each thread, and whose last one takes the
    results of each call."""
    from numba import cuda

    arrays = [Argument(types.Array(arg.type, 1, "C")) if arg.is_scalar else arg for arg in args]
    passed = {k: f"value{k}" for k, arg in enumerate(args) if arg.is_scalar}
    # In variables of its own, each call has the numbers that an earlier one may have written to.
    read = "".join(f"    {name} = a{k}[thread]\n" for k, name in passed.items())
    calls = (read + results.keep_call(call) for call in range(CALLS))
    parameters = {} if results.dtype is None else {"results": types.Array(from_dtype(results.dtype), 2, "C")}
    return make_probe(obj, arrays, _THREAD + "    cuda.syncthreads()\n".join(calls), passed, parameters, cuda=cuda)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
