# SPDX-License-Identifier: BSD-2-Clause
"""What users get of a kernel that is compiled, or is compiled for it now: its report, for one or several architectures,
and the launch of finished kernels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.diagnostics.messages import shown, suggest_names
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapabilityLike

from numba_cuda_autolink.launch.kernel import Kernel

from ..frontend_api.front_end import Vocabulary, front_end_of, is_kernel, vocabulary_of_kernel
from ..function_code.build_record import BuildRecord, FunctionRecord
from ..protocol.kernel_signatures import normalize
from ..reports.collect import report_of
from ..reports.report import Report
from .ahead_of_time import build


@suggest_names
def report(
    kernel: Any,
    signature: Any = None,
    cc: ComputeCapabilityLike | list[ComputeCapabilityLike] | None = None,
    *,
    listings: bool = False,
) -> Report:
    """Return a report of what the calls in *kernel* brought, how it was linked, and the result.

    Parameters
    ----------
    kernel:
        A kernel made by ``cuda.jit``, or with a *signature* a Python function, or a device function, whose report shows
        what it brings to the kernels that call it.
    signature:
        The signature to build the kernel for now, as `build` does; no GPU is needed. Without one, the report describes
        the kernel as it is already compiled.
    cc:
        The compute capability, ``(9, 0)``, or a list of several. Default: that of the current GPU, or those that the
        kernel is compiled for already.
    listings:
        Whether the report shows what the code became: PTX and, if ``nvdisasm`` is installed, machine code, beside the
        lines of Python and C++ that it comes from. With a *signature* the kernel is built once more for that, with
        ``lineinfo=True``; one that is compiled already needs that option, and device functions for lines of their own.

    Raises `TypeError` if *kernel* is not a kernel, or is a device function that does not return what the *signature*
    says; without a *signature* `ValueError`, if it is not compiled yet, or is compiled for several signatures.
    """
    capabilities: list[Any] = cc if isinstance(cc, list) else [cc]
    front_end = front_end_of(kernel)
    records: Sequence[FunctionRecord]
    if signature is None:
        records = front_end.read_launched(kernel, capabilities)
    elif front_end.is_device_function(kernel):
        records = [front_end.compile_device_function(kernel, signature, each) for each in capabilities]
    else:
        records = [build(kernel, signature, cc=each) for each in capabilities]
    reports = [report_of(record, listings=listings) for record in records]
    if signature is None:
        lineinfo = str(bool(kernel.targetoptions.get("lineinfo")))  # the emulator adds it to what is launched
        reports = [_with_option(each, "lineinfo", lineinfo) for each in reports]
    if listings and signature is not None:
        reports = [_with_lines(each, record, kernel) for each, record in zip(reports, records, strict=True)]
    return replace(reports[0], builds=tuple(build for each in reports for build in each.builds))


def _with_option(reported: Report, name: str, value: str) -> Report:
    """Return the report with this *value* of an option of the kernel."""
    builds = (replace(each, options=tuple({**dict(each.options), name: value}.items())) for each in reported.builds)
    return replace(reported, builds=tuple(builds))


def _with_lines(reported: Report, record: FunctionRecord, kernel: Any) -> Report:
    """Return the report of the kernel of *record* with the listings of a build that has line information."""
    has_lines = record.facts.target.lineinfo or record.facts.target.debug  # which lineinfo=True contradicts
    if has_lines or not isinstance(record, BuildRecord):
        return reported
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the kernel were shown; none of its lines were asked for
        lined = build(kernel, record.launch_facts.argtypes, cc=record.cc, lineinfo=True)
    (own,), (other,) = reported.builds, report_of(lined, listings=True).builds
    shown = replace(own, listings=other.listings, listings_with_lineinfo=True)
    return replace(reported, builds=(shown,))


@suggest_names
def bind(kernel: Any, *what: Any) -> Kernel:
    """Compile *kernel* for one signature, if it is not, and return it with the launch of finished kernels.

    The result is launched as the kernel is, ``bound[grid, block, stream, shared](*args)``, in a fraction of the time.
    It takes arguments of that signature alone, with arrays on the device. Setup and teardown callbacks run as always.

    Parameters
    ----------
    kernel:
        A kernel made by ``cuda.jit``.
    *what:
        A signature, as for ``cuda.jit``; or the arguments of a launch, whose types are taken.

    Raises
    ------
    FinishedKernelError
        If the kernel needs the launch of its front end: for exceptions (``debug=True``), ``extensions=``, or arguments
        without a value at run time.
    TypeError
        If *kernel* is not a kernel made by ``cuda.jit``, numba-cuda's or numba-cuda-mlir's.
    """
    if config.ENABLE_CUDASIM:
        raise RuntimeError("bind() launches on a GPU, and the simulator (NUMBA_ENABLE_CUDASIM=1) has none")
    if not is_kernel(kernel) or kernel.targetoptions.get("device"):
        raise TypeError(f"bind() expects a kernel made by cuda.jit\n  got: {shown(kernel)}")
    vocabulary = vocabulary_of_kernel(kernel)
    code = front_end_of(kernel).code_for_bind(kernel, _argtypes(what, vocabulary))
    return Kernel(kernel.py_func.__name__, lambda: [code])


def _argtypes(what: tuple[Any, ...], vocabulary: Vocabulary) -> tuple[Any, ...]:
    if len(what) == 1:
        (one,) = what
        is_types = isinstance(one, tuple) and all(map(vocabulary.is_type, one))
        if isinstance(one, str) or hasattr(one, "return_type") or is_types:
            return normalize(one, vocabulary)[0]
    typeof = vocabulary.typeof
    return tuple(typeof.typeof(value, typeof.Purpose.argument) for value in what)
